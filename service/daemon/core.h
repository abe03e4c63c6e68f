/*
 * core.h - what the parts of the daemon share: the loop, the queue, the pool, the batch, and what
 * the daemon as a whole is up to. It calls none of them: daemon.c hands on what happens. Owned by
 * daemon.c; one thread.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CORE_H
#define NOCTULE_SERVICE_DAEMON_CORE_H

#include "config/config.h"
#include "db/queue.h"
#include "service/common/pseudonym.h"
#include "service/daemon/batch.h"
#include "service/daemon/child_pool.h"
#include "service/daemon/due_timer.h"

#include <stdbool.h>
#include <uv.h>

struct answer;
struct cluster;
struct couriers;
struct deliveries;
struct inspections;
struct jobs;
struct known;
struct local_executor;
struct nights;
struct pulls;
struct retention;
struct workers;

/* What the intake says of it. */
struct intake_state {
    bool awaited; /* it has been told of a new configuration, and what came of it is not known */
    bool open;    /* its ports are, and its inboxes watched */
    int64_t since_ms;  /* of what follows, or of the daemon's start */
    char trouble[512]; /* "": none */
};

struct core {
    uv_loop_t loop;
    const char *root;  /* absolute */
    struct conf *conf; /* the one in force; a reload exchanges it */
    struct queue *queue;
    struct batch *batch;
    struct pool *pool;
    struct inspections *inspections;
    struct known *known;
    struct jobs *jobs;
    struct local_executor *local;
    struct cluster *cluster;
    struct executor *executors[2]; /* EXECUTOR_COUNT: of these two */
    struct workers *workers;
    struct couriers *couriers;
    struct deliveries *deliveries;
    struct pulls *pulls;
    struct retention *retention;
    struct nights *nights;
    struct due jobs_due, deliveries_due; /* when there may be something to start */
    int64_t windows_due_ms;              /* when one opens or closes; 0: that is not known */
    int intake;                          /* its slot; -1: there is none yet */
    int page;                            /* the same, empty where none is configured */
    struct intake_state reception;
    struct pseudonym_key pseudonym_key;
    bool intake_paused; /* it was told so */
    bool draining;
    int64_t draining_since_ms; /* Unix time */
    int64_t started_ms;        /* of clock_steady_ms */
    uint64_t ends;             /* of jobs, deliveries and commitments: something may go, perhaps */
    bool disk_low;             /* less than min_free_mib is free: nothing is taken in */
    bool disk_spent;           /* less than half of it: no job starts, either */
    bool trouble;              /* the database cannot be written */
    int64_t trouble_since_ms;  /* Unix time, as disk_low_since_ms */
    int64_t disk_low_since_ms;
    char trouble_why[128];
    bool probing;     /* trying whether it can again */
    bool auditing;    /* not all files that are missing are known yet: no series is judged */
    uv_timer_t probe; /* its callback, with `trouble`, is daemon.c's */
    void (*on_trouble)(struct core *core, const char *why);
    int (*reload)(struct core *core, const char *by, struct error *error); /* daemon.c's */
    struct answer
        *reloading; /* to requests that wait for the ports of a reload (command_requests.c) */
};

/* Nothing new may begin. */
bool core_closed(const struct core *core);

/* Begins or joins the batch; false, and the trouble is told, when it cannot. */
bool core_change(struct core *core);

/*
 * Did a call of the queue fail (-errno)? Logs it then, and when the disk or the database is to blame
 * tells on_trouble and has the probe try again later. `what` names the call: "store an instance".
 */
bool core_failed(struct core *core, int error, const char *what);

/* An event row; losing one to a full disk is logged and no more. */
void core_note(struct core *core, const char *kind, const char *detail);

/* The same of a child that died without being told to. */
void core_note_death(struct core *core, const char *kind, const struct pool_gone *gone);

/* Is the disk or the database to blame, and not what was to be written? */
bool core_is_trouble(int error);

/* A number that a child tells, as a column takes it. */
int32_t core_count(int64_t told);

/* How long a job waits for a point of priority; 0: for ever. */
int64_t core_ageing_ms(const struct core *core);

/* What the intake would wait for in vain: where there is no memory to tell it, it is ended. The next one asks, as after one that left. */
void core_tell_intake(const struct core *core, struct proto_writer *writer);

/* "<root>/<path>"; a path that is absolute is only copied. malloc'd; NULL: no memory. */
char *core_path(const struct core *core, const char *path);

#endif
