/*
 * attempt.h - attempts at what children do for the daemon: a job, a delivery, or a peer's report of
 * a storage commitment; from the beginning to the rows that say how it ended.
 *
 *     begun --attempt_end--> ended --write--> written --commit--> recorded and freed
 *                              ^                 |
 *                              +-- batch lost ---+
 *
 * An attempt is made before it begins, so that there is always room to note its end. Once ended it
 * is written in the batch in which that happened; when that cannot be committed it stays, and is
 * written again when the database can be. So no result is lost to a full disk.
 *
 * An attempt is the first member of the struct that says what was attempted. One thread: the
 * loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_ATTEMPT_H
#define NOCTULE_SERVICE_DAEMON_ATTEMPT_H

#include "service/daemon/core.h"

struct attempt;

struct attempt_type {
    const char *subject; /* "job": of the log */
    const char *child;   /* that tells how it ended */
    const char *what;    /* "record how a job ended": what failed, when the database did */
    /* Has its time come? NULL: always. */
    bool (*may_write)(const struct attempt *attempt);
    /* In the open batch: 0, or -errno and nothing of it is written. */
    int (*write)(struct attempt *attempt);
    /*
     * Likewise, of what the database will never take: it must not be tried for ever, and fails
     * instead. NULL when write returns only what passes (core_is_trouble).
     */
    int (*fail)(struct attempt *attempt, enum code code, const char *message);
    /* It is on disk, and about to be freed. */
    void (*recorded)(struct attempt *attempt);
    void (*free)(struct attempt *attempt);
};

#define ATTEMPT_BUCKETS 4096 /* by id: in Slurm there may be 100,000 at a time */

struct attempts {
    struct core *core;
    const struct attempt_type *type;
    struct attempt *first;
    struct attempt *ended; /* those of them, in the order of their ends */
    struct attempt *buckets[ATTEMPT_BUCKETS];
};

struct attempt {
    struct attempt *next, **link; /* where it hangs */
    struct attempt *next_in_bucket, *next_ended;
    struct attempts *all;
    int64_t id; /* of its row */
    bool ended;
    bool written;    /* in a batch that is not committed */
    bool superseded; /* and its row had gone another way meanwhile */
};

void attempts_free(struct attempts *attempts);

void attempt_add(struct attempts *attempts, struct attempt *attempt, int64_t id);
/* From now on it is to be written. */
void attempt_end(struct attempt *attempt);
/* It did not begin after all, or does not matter any more: frees it. */
void attempt_drop(struct attempt *attempt);

/* Writes what has ended and is not recorded yet; among the last changes of a batch. */
void attempts_write(struct attempts *attempts);

/* The one for this row, be it under way or not recorded; NULL: none. */
struct attempt *attempts_find(const struct attempts *attempts, int64_t id);
size_t attempts_count(const struct attempts *attempts);

#endif
