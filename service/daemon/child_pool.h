/*
 * child_pool.h - the daemon's children: slots that are filled, watched and refilled.
 *
 * A slot holds one child at a time: this program again, with --role and its slot number, and a
 * socket pair as its fd 3. The child says HELLO with the daemon's own build id, then something at
 * least every so often. A child that misses HELLO or a heartbeat, or sends a malformed frame, is
 * sent SIGTERM, then SIGKILL. One that says RENEW is told to DRAIN, and its slot filled again when it has
 * ended what it was at. A slot whose child died is filled again, at once or after a growing
 * delay when children keep dying young. `gone` comes once per child, after its last frame was read
 * and it was reaped.
 *
 * One thread: the loop's. All memory is the pool's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CHILD_POOL_H
#define NOCTULE_SERVICE_DAEMON_CHILD_POOL_H

#include "service/common/wire/messages.h"

#include <uv.h>

struct pool;

struct pool_gone {
    bool was_ready;  /* HELLO had come */
    bool ordered;    /* it was told to end: drain or restart */
    const char *why; /* why it was killed; "" when it ended by itself */
    int64_t exit_status;
    int signal; /* 0: none */
};

/* Something that is not well with a child. */
struct pool_trouble {
    const char *role;
    int slot, number;
    int64_t since_ms; /* Unix time */
    bool works;       /* it is there now, and has spoken lately */
    char text[192];   /* "died 3 times, ..." */
};

struct pool_events {
    void (*ready)(void *context, int slot);
    /* Any frame but HELLO and ALIVE. The handler reads it to its end; what proto_end says decides
     * about the child. */
    void (*frame)(void *context, int slot, struct proto_reader *reader);
    /* Calls on the slot inside are allowed; the next child is started afterwards. */
    void (*gone)(void *context, int slot, const struct pool_gone *gone);
    void *context;
};

/* Milliseconds. */
struct pool_timing {
    uint64_t hello;      /* from the start to HELLO */
    uint64_t silence;    /* without any frame */
    uint64_t term;       /* between TERM and KILL */
    uint64_t young;      /* a child that dies earlier than this after HELLO died young */
    uint64_t calm;       /* after one death: no trouble any more */
    uint64_t first_wait; /* before the next try; doubled each time */
    uint64_t longest_wait;
};

extern const struct pool_timing pool_default_timing;

struct pool_options {
    const char *program;     /* "/proc/self/exe" */
    const char *config_file; /* handed to the children: the configuration in force */
    struct pool_timing timing;
    struct pool_events events;
};

int pool_open(uv_loop_t *loop, const struct pool_options *options, struct pool **pool);

/* A slot for a child of this role, filled at once. Returns the slot's number or -errno. */
int pool_add(struct pool *pool, const char *role, int number);
/* The same, but empty until pool_fill. */
int pool_reserve(struct pool *pool, const char *role, int number);

/* What a worker computes with, as its arguments say it (role.h). */
struct pool_device {
    const char *name;
    int share, node;
};

/*
 * Children of the slot are started with --device, --share and --node (-1: without) from now on
 * (NULL: without any). A child that lives there is told to DRAIN, and the next one started when it has
 * ended; the throttle begins anew.
 */
void pool_fill(struct pool *pool, int slot, const struct pool_device *device);
/* DRAIN, and nobody after it. */
void pool_empty(struct pool *pool, int slot);

bool pool_ready(const struct pool *pool, int slot);
/* It is ready and has spoken lately. */
bool pool_works(const struct pool *pool, int slot);
/* Queues a frame; the writer is released whatever happens. -EPIPE when no child listens. A child
 * that lets frames pile up is killed. */
int pool_send(struct pool *pool, int slot, struct proto_writer *writer);
/* A frame that has no fields. */
int pool_tell(struct pool *pool, int slot, enum proto_type type);

/* What children are handed from now on (no memory for the file's name: what they were), and what
 * RELOAD tells, which stays the caller's and lives until the next call. */
void pool_set_config(struct pool *pool, const char *config_file, const char *config);

/* RELOAD. One that is starting may have read the file already, and is told once it is there; another takes the place of one
 * that cannot be told, for want of memory. */
void pool_reload(struct pool *pool, int slot);

/* TERM now, KILL later; `why` is a literal. Nothing happens when no child lives. */
void pool_kill(struct pool *pool, int slot, const char *why);

/* DRAIN to all; no slot is filled any more. */
void pool_drain(struct pool *pool);
void pool_kill_all(struct pool *pool, const char *why);
size_t pool_living(const struct pool *pool);

/* Of each slot whose child keeps dying, does not come to life or says nothing. */
void pool_each_trouble(const struct pool *pool,
                       void (*tell)(void *context, const struct pool_trouble *trouble),
                       void *context);

/* All children must be gone. Frees asynchronously. NULL is allowed. */
void pool_close(struct pool *pool);

/* How long a slot stays empty after the n-th death in a row that came too early. Pure. */
uint64_t pool_wait(const struct pool_timing *timing, bool was_ready, int deaths);

#endif
