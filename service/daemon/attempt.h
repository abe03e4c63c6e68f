/*
 * attempt.h - attempts at work that children do for the daemon (a job, a delivery, a peer's report of a storage
 * commitment), from their start to the rows that record their outcome.
 *
 *     begun --attempt_end--> ended --write--> written --commit--> recorded and freed
 *                              ^                 |
 *                              +-- batch lost ---+
 *
 * An attempt must be allocated before the work begins, so that its outcome can always be kept. An attempt that ended is
 * written in the current batch. If that batch cannot be committed, the attempt stays in memory and is written again as
 * soon as the database accepts writes. A full disk therefore loses no result.
 *
 * struct attempt must be the first member of the struct that describes the work. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_ATTEMPT_H
#define NOCTULE_SERVICE_DAEMON_ATTEMPT_H

#include "service/daemon/core.h"

#include <stdint.h>

struct attempt;

struct attempt_type {
    const char *subject; /* "job": used in log events */
    const char *child;   /* role of the child that reports the outcome, for messages */
    const char *action;  /* "record how a job ended": the action named in database errors */
    /* Returns whether the attempt may be written now. NULL: always. */
    bool (*may_write)(const struct attempt *attempt);
    /* Writes the outcome in the open batch. Returns 0, or -errno without any change. */
    int (*write)(struct attempt *attempt);
    /* Writes a failure with this code and message, in place of an outcome that the database permanently rejects and
     * that must not be retried forever. Returns as write() does. NULL if write() returns only transient errors (see
     * core_is_transient). */
    int (*fail)(struct attempt *attempt, enum code code, const char *message);
    /* Called when the outcome is on disk, before free(). */
    void (*recorded)(struct attempt *attempt);
    void (*free)(struct attempt *attempt);
};

#define ATTEMPT_BUCKETS 4096 /* by id: Slurm may have 100,000 at a time */

struct attempts {
    struct core *core;
    const struct attempt_type *type;
    struct attempt *first;
    struct attempt *ended; /* ended attempts, in the order of their ends */
    struct attempt *buckets[ATTEMPT_BUCKETS];
};

struct attempt {
    struct attempt *next, **link; /* position in the list of all attempts */
    struct attempt *next_in_bucket, *next_ended;
    struct attempts *all;
    int64_t id; /* of the row */
    bool ended;
    bool written;    /* in a batch that is not committed yet */
    bool superseded; /* written, but the row had already changed state */
};

void attempts_free(struct attempts *attempts);

void attempt_add(struct attempts *attempts, struct attempt *attempt, int64_t id);
/* Marks the attempt as ended. attempts_write() writes it from now on. */
void attempt_end(struct attempt *attempt);
/* Frees an attempt that did not begin or is obsolete. */
void attempt_drop(struct attempt *attempt);

/* Writes the attempts that have ended and are not recorded yet. Must be called before a batch is committed. */
void attempts_write(struct attempts *attempts);

/* Returns the running or unrecorded attempt for this row, or NULL. */
struct attempt *attempts_find(const struct attempts *attempts, int64_t id);
size_t attempts_count(const struct attempts *attempts);

/* -------------------------------------------------------------------------- jobs/backoff.c ---- */

/* Returns the delay after attempt number `attempts` in milliseconds: first_seconds, doubled each time up to
 * max_seconds, plus or minus a tenth depending on `salt` (the row's number). Rows that failed together therefore retry
 * at different times. */
int64_t backoff_ms(double first_seconds, double max_seconds, int32_t attempts, int64_t salt);

#endif
