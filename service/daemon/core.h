/*
 * core.h - state shared by the parts of the daemon: the loop, the queue, the pool, the batch, and the condition of the
 * daemon as a whole. It calls no part: daemon.c distributes events. Owned by daemon.c; loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CORE_H
#define NOCTULE_SERVICE_DAEMON_CORE_H

#include "config/config.h"
#include "db/queue.h"
#include "service/common/pseudonym.h"
#include "service/daemon/batch.h"
#include "service/daemon/child_pool.h"
#include "service/daemon/config_watch.h"
#include "service/daemon/due_timer.h"

#include <stdbool.h>
#include <uv.h>

struct answer;
struct slurm_executor;
struct senders;
struct commitments;
struct deliveries;
struct inspections;
struct jobs;
struct known;
struct local_executor;
struct notifications;
struct program_checks;
struct programs;
struct report_schedule;
struct pulls;
struct retention;
struct uploads;
struct workers;

/* The state that the receiver reported last. */
struct receiver_state {
    bool awaited;      /* a new configuration was sent, and its result has not arrived */
    bool open;         /* its ports are open and its inboxes watched */
    int64_t since_ms;  /* Unix time of the problem, or of the daemon's start */
    char problem[512]; /* "": no problem */
};

struct core {
    uv_loop_t loop;
    const char *root;  /* absolute path */
    struct conf *conf; /* the configuration in force; a reload replaces it */
    struct queue *queue;
    struct batch *batch;
    struct pool *pool;
    struct inspections *inspections;
    struct known *known;
    struct jobs *jobs;
    struct local_executor *local;
    struct slurm_executor *slurm;
    struct executor *executors[2]; /* these two; count: EXECUTOR_COUNT */
    struct workers *workers;
    struct programs *programs;
    struct program_checks *program_checks; /* of programs */
    struct senders *senders;
    struct deliveries *deliveries;
    struct commitments *commitments; /* of deliveries */
    struct pulls *pulls;
    struct retention *retention;
    struct uploads *uploads;
    struct report_schedule *reports;
    struct notifications *notifications;
    struct due jobs_due, programs_due, deliveries_due; /* time of the next check for work to start */
    int64_t windows_due_ms;                            /* next opening or closing of a window; 0: unknown */
    int64_t blocks_due_ms;                             /* next check for pattern blocks, of clock_steady_ms() */
    int receiver;                                      /* slot; -1: not added yet */
    int web;                                           /* slot, empty if no web UI is configured; -1: not added yet */
    struct receiver_state reception;
    struct pseudonym_key pseudonym_key;
    char key_fingerprint[PSEUDONYM_SIZE];
    bool key_changed; /* the database knows another one: no de-identified copy may leave */
    struct config_watch config_watch;
    bool receiver_paused; /* PAUSE was sent */
    bool draining;
    int64_t draining_since_ms; /* Unix time */
    int64_t started_ms;        /* of clock_steady_ms() */
    /* finished jobs, deliveries and commitments; a change means that files may be removable */
    uint64_t ends;
    bool disk_low;              /* less than min_free_mib is free: reception stops */
    bool disk_spent;            /* less than half of min_free_mib is free: no job starts either */
    bool db_failed;             /* the database rejects writes */
    int64_t db_failed_since_ms; /* Unix time, as for disk_low_since_ms */
    int64_t disk_low_since_ms;
    char db_failure[128];
    bool probing;     /* a trial write is under way */
    bool auditing;    /* the audit of missing files is unfinished: no series is inspected */
    uv_timer_t probe; /* its callback and the next two members are set by daemon.c */
    void (*on_db_failure)(struct core *core, const char *why);
    int (*reload)(struct core *core, const char *by, struct error *error);
    /* requests that wait for the ports of a reload (command_requests.c) */
    struct answer *reloading;
};

/* Returns whether no new work may begin. */
bool core_closed(const struct core *core);

/* Begins or joins the batch. Returns false after reporting the failure, if it cannot. */
bool core_change(struct core *core);

/* Returns whether a queue call failed, and logs the failure. If the disk or the database caused it, calls
 * on_db_failure() and starts the probe timer. `action` is for the log: "store an instance". */
bool core_failed(struct core *core, int error, const char *action);

/* Adds an event row. An event that a full disk loses is only logged. */
void core_note(struct core *core, const char *kind, const char *detail);

/* Adds an event row for a child that died unexpectedly. */
void core_note_death(struct core *core, const char *kind, const struct pool_gone *gone);

/* Returns whether the error is transient: caused by the disk, the database or a lack of resources, not by the data. */
bool core_is_transient(int error);

/* Returns a count from a child's message, limited to the range of a column. */
int32_t core_count(int64_t count);

/* Returns the waiting time that raises a job's priority by one, in milliseconds; 0: never raised. */
int64_t core_ageing_ms(const struct core *core);

/* Sends a frame that the receiver waits for. If there is no memory for it, the receiver is killed. The next one sends
 * its request again. */
void core_send_receiver(const struct core *core, struct proto_writer *writer);

/* Returns the configured inbox that contains the path, or NULL. Sets *rest to the path below it. */
const struct conf_inbox *core_find_inbox(const struct conf *conf, const char *path, const char **rest);

/* Returns "<root>/<path>", or a copy of an absolute path. The caller must free it; NULL: no memory. */
char *core_path(const struct core *core, const char *path);

#endif
