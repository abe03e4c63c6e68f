/*
 * child_pool.h - the daemon's child processes: slots that are filled, supervised and refilled.
 *
 * A slot holds one child at a time: this program again, with --role and its slot number, and a
 * socket pair as its fd 3. The child sends HELLO with the daemon's own build id first, and must
 * send a frame at least once per pool_timing.silence. A child that misses HELLO or a heartbeat, or
 * sends a malformed frame, gets SIGTERM, then SIGKILL. A child that sends RENEW gets DRAIN, and its
 * slot is refilled when it has finished its current work. If a child died, its slot is refilled at
 * once, or with growing delays when children keep dying young. `gone` is called once per child,
 * after its last frame was read and it was reaped.
 *
 * Loop thread only. The pool owns all memory.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CHILD_POOL_H
#define NOCTULE_SERVICE_DAEMON_CHILD_POOL_H

#include "service/common/wire/messages.h"

#include <uv.h>

struct pool;

struct pool_gone {
    bool was_ready;  /* HELLO had arrived */
    bool ordered;    /* the daemon had ordered its end: drain or restart */
    const char *why; /* the reason for a kill; "" when it ended by itself */
    int64_t exit_status;
    int signal; /* 0: no signal */
};

/* A condition of a child that needs an alert. */
struct pool_alert {
    const char *role;
    int slot, number;
    int64_t since_ms; /* Unix time */
    bool works;       /* a child is ready and sent a frame recently */
    char text[192];   /* "died 3 times, ..." */
};

struct pool_events {
    void (*ready)(void *context, int slot);
    /* Called for each frame except HELLO and ALIVE. The handler must read it to its end. If proto_end() then finds an
     * error, the child is killed. */
    void (*frame)(void *context, int slot, struct proto_reader *reader);
    /* Called after a child was reaped. Calls on the slot are allowed; the next child is started afterwards. */
    void (*gone)(void *context, int slot, const struct pool_gone *gone);
    void *context;
};

/* Milliseconds. */
struct pool_timing {
    uint64_t hello;      /* from the start to HELLO */
    uint64_t silence;    /* without any frame, before the child counts as hung */
    uint64_t term;       /* between TERM and KILL */
    uint64_t young;      /* a child that dies earlier than this after HELLO died young */
    uint64_t calm;       /* after one death, until its alert clears */
    uint64_t first_wait; /* before the next start; doubled each time */
    uint64_t longest_wait;
};

extern const struct pool_timing pool_default_timing;

struct pool_options {
    const char *program;     /* "/proc/self/exe" */
    const char *config_file; /* the configuration in force, passed to the children */
    struct pool_timing timing;
    struct pool_events events;
};

int pool_open(uv_loop_t *loop, const struct pool_options *options, struct pool **pool);

/* Adds a slot for a child of this role and fills it at once. Returns the slot's number or -errno. */
int pool_add(struct pool *pool, const char *role, int number);
/* Adds a slot that stays empty until pool_fill(). Returns the slot's number or -errno. */
int pool_reserve(struct pool *pool, const char *role, int number);

/* Children of the slot that start later can hand over descriptors (handed.h). */
void pool_take_handed(struct pool *pool, int slot);
/* Returns the daemon's end for these, or -1 if no child runs. */
int pool_handed(const struct pool *pool, int slot);

/* The compute device of a worker, as passed in its arguments (role.h). */
struct pool_device {
    const char *name;
    int share;
};

/*
 * Starts children of the slot with --device and --share from now on (device NULL: without both).
 * A living child gets DRAIN, and the next one starts after
 * its end. Resets the restart delay.
 */
void pool_fill(struct pool *pool, int slot, const struct pool_device *device);
/* Sends DRAIN and leaves the slot empty afterwards. */
void pool_empty(struct pool *pool, int slot);

bool pool_ready(const struct pool *pool, int slot);
/* Returns whether the child is ready and sent a frame recently. */
bool pool_works(const struct pool *pool, int slot);
/* Queues a frame and always releases the writer. Returns 0, or -EPIPE if no child receives. Kills a child whose backlog
 * of unread frames exceeds 16 MiB. */
int pool_send(struct pool *pool, int slot, struct proto_writer *writer);
/* Sends a frame that has no fields. */
int pool_send_empty(struct pool *pool, int slot, enum proto_type type);

/* Sets the configuration file for children that start later, and the text that RELOAD carries. Without memory for the
 * file's name, the former name stays. The caller owns `config` and must keep it until the next call. */
void pool_set_config(struct pool *pool, const char *config_file, const char *config);

/* Sends RELOAD. A child that is starting may have read the old file, and gets RELOAD when it is ready. A child that
 * cannot be sent RELOAD for lack of memory is replaced. */
void pool_reload(struct pool *pool, int slot);

/* Sends SIGTERM now and SIGKILL later. `why` must be a literal. Has no effect without a child. */
void pool_kill(struct pool *pool, int slot, const char *why);

/* Sends DRAIN to all children. No slot is refilled afterwards. */
void pool_drain(struct pool *pool);
void pool_kill_all(struct pool *pool, const char *why);
size_t pool_living(const struct pool *pool);

/* Reports each slot whose child keeps dying, does not become ready or sends no frames. */
void pool_each_alert(const struct pool *pool, void (*report)(void *context, const struct pool_alert *alert),
                     void *context);

/* Frees the pool asynchronously. All children must be gone. NULL is allowed. */
void pool_close(struct pool *pool);

/* Returns the delay before slot is refilled after the n-th early death in a row, in milliseconds. Pure. */
uint64_t pool_wait(const struct pool_timing *timing, bool was_ready, int deaths);

#endif
