/*
 * retention_rows.h - what of the queue goes in time: images of series, results of jobs, files in quarantine, and in
 * the end the rows of what is removed. As queue.h, which has the rest of the queue, says of errors, times and
 * threads.
 *
 * A row says that its files are removed before they are: `removal` names them until they are gone, so that a
 * restart goes on. What may go is decided here, row by row, in the transaction that marks it:
 *
 *   series      settled or refused; every job of it has ended and is not under review, and every delivery of
 *               these. With it goes what its jobs left that have no results, or were rejected
 *   results     their job is DONE, was sent at least once or is superseded, and every delivery has ended
 *   objects     they go with the series that they are of; those of no series that is there, by their age
 *   quarantine  any
 *   rows        of a removed series, when no file of it is left; of a removed object
 *
 * A delivery has ended when it is SENT and its commitment, if asked for, was given; CANCELLED; or FAILED when
 * its fallback got one instead. One that FAILED otherwise has not arrived: an operator may send it again.
 */
#ifndef NOCTULE_DB_RETENTION_ROWS_H
#define NOCTULE_DB_RETENTION_ROWS_H

#include "db/queue.h"

enum queue_stock {
    QUEUE_STOCK_SERIES,
    QUEUE_STOCK_RESULTS,
    QUEUE_STOCK_QUARANTINE,
    QUEUE_STOCK_OBJECTS,
    QUEUE_STOCK_ROWS,
    QUEUE_STOCK_OBJECT_ROWS,
    QUEUE_STOCKS
};

/* One walk through what is old, from the oldest on, a few rows at a time. */
struct queue_sweep {
    int64_t before_ms[QUEUE_STOCKS]; /* only what is older; 0: none of this stock */
    bool for_space;  /* before its time: series that were refused, or have FAILED jobs, stay */
    const char *why; /* for the events: "90 days old" */
    const char *const *sources; /* of instances whose originals stay, and so do their series */
    size_t source_count;

    struct queue_place {
        int64_t at_ms, id;
    } after[QUEUE_STOCKS]; /* where it stands; zeros: at the beginning */

    bool over; /* it has come to the end */
};

/* Marks or deletes at most `limit` of what may go, the oldest first, and counts them; looks at a bounded number
 * of rows. Called again until it is over. */
int queue_sweep(struct queue *queue, struct queue_sweep *sweep, size_t limit, int64_t now_ms,
                size_t *count);

/* Deletes at most `limit` each of the daemon's own events, of rows of quarantine of no series and of items of
 * pulls that have ended, and counts them. The last event that says how things stand stays. */
int queue_sweep_events(struct queue *queue, int64_t before_ms, size_t limit, size_t *count);

/* A file or folder that is to go: relative to the root, or an original of an inbox. */
struct queue_removal {
    int64_t id;
    char *path;
    int64_t size;     /* of an original, else 0 */
    int64_t taken_ms; /* likewise: it goes if it was not written since */
};

/* By id, behind `after`; free the array after clearing its elements. */
int queue_removals(struct queue *queue, int64_t after, size_t limit,
                   struct queue_removal **removals, size_t *count);
void queue_removal_clear(struct queue_removal *removal);
/* It is gone. */
int queue_removed(struct queue *queue, int64_t id);

/* What an operator wants to go today. */
struct queue_purge {
    const char
        *series_uid;    /* of images, or of objects; "": files in quarantine of no known series */
    const char *before; /* those older than this, as text */
    bool dry_run;
    bool undelivered; /* also what has not arrived; its deliveries end */
    const char *by;   /* who */
};

struct queue_purged {
    int64_t images, results, quarantined; /* whose files are there, or were */
    int64_t objects;                      /* that go with the series, or are it */
    int64_t bytes;                        /* of images, objects and results */
    int64_t undelivered;                  /* deliveries that have not arrived */
    int64_t originals;                    /* files of inboxes that keep them, and stay there */
};

/*
 * All files of a series, of its results and of its quarantine are marked as removed, and what its rows tell of
 * people goes: descriptions, and what files were called; so do objects that were drawn on nothing else that is
 * there. -ENOENT; -EAGAIN while it gathers, a job waits, runs or is under review, or a result is being sent; -EPERM
 * when something has not arrived, and nobody says that it may go, too. *purged is told either way, but for -ENOENT.
 *
 * A series of objects goes whatever they were drawn on; -EAGAIN while a job of that waits or runs.
 *
 * Of no known series: the files that were quarantined before the time go, and what they were called.
 */
int queue_purge(struct queue *queue, const struct queue_purge *purge, int64_t now_ms,
                struct queue_purged *purged);

/* Stores the current free space, in one row. */
int queue_measure_disk(struct queue *queue, double free_mib, int64_t now_ms);
/* Free space, as told once an hour; what is older than two weeks goes. v_night tells how fast it fills. */
int queue_note_disk(struct queue *queue, double free_mib, int64_t now_ms);
/* When that was told last; 0: never. */
int queue_last_disk(struct queue *queue, int64_t *at_ms);

/* The size of a database from before schema version 11, whose file never shrinks unless it is rebuilt; else 0. */
int queue_rebuild_size(struct queue *queue, int64_t *bytes);
/* Writes all of it anew, so that free pages can be given back from then on: in one transaction, which a kill or
 * a failure undoes. Takes up to twice its size meanwhile, in the folder that it lies in. */
int queue_rebuild(struct queue *queue);

/* The log is moved into the database file and cut, free pages at the end of the file are given back (at most
 * `pages`), and the planner's statistics are refreshed; waits for no reader. */
int queue_tidy(struct queue *queue, int pages);

#endif
