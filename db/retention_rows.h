/*
 * retention_rows.h - retention: images of series, results of jobs, quarantined files and, last,
 * rows of removed data. Errors, times and threads: see queue.h.
 *
 * A row states that its files are removed before they are. The table `removal` names them until they are, so that a
 * restart continues. The functions decide row by row what may be removed, in the transaction that marks it:
 *
 *   series      complete or refused; every job has ended and is not under review, and so has every delivery of
 *               these. Leftovers of its jobs without results, or with rejected results, and masks of programs go with it
 *   results     their job is DONE, was sent at least once or is superseded, and every delivery has ended
 *   objects     annotation objects go with their series; those of no stored series go by age
 *   quarantine  any file
 *   rows        of a removed series, when none of its files is left; of a removed object
 *
 * A delivery has ended if it is SENT and its commitment, if requested, was given; if it is CANCELLED; or if it is
 * FAILED and its fallback got one instead. Any other FAILED delivery has not arrived: an operator may send it again.
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

/* One pass over old rows, oldest first, a few rows at a time. */
struct queue_sweep {
    int64_t before_ms[QUEUE_STOCKS]; /* upper limit of the time; 0: skip this stock */
    bool for_space;                  /* removal before its time: keeps refused series and those with FAILED jobs */
    const char *why;                 /* for the events: "90 days old" */
    const char *const *sources;      /* of instances with originals that stay; their series stay, too */
    size_t source_count;

    struct queue_place {
        int64_t at_ms, id;
    } after[QUEUE_STOCKS]; /* position; zeros: at the beginning */

    bool over; /* at the end */
};

/*
 * Marks or deletes at most `limit` rows, oldest first, and counts them. Reads a limited number of
 * rows per call. Call again until it is over.
 */
int queue_sweep(struct queue *queue, struct queue_sweep *sweep, size_t limit, int64_t now_ms, size_t *count);

/*
 * Deletes at most `limit` each of the daemon's own events, of quarantine rows without a series and
 * of ended items of pulls, and counts them. Keeps the last event of each state of the daemon.
 */
int queue_sweep_events(struct queue *queue, int64_t before_ms, size_t limit, size_t *count);

/* A file or folder to remove: relative to the root, or an original in an inbox. */
struct queue_removal {
    int64_t id;
    char *path;
    int64_t size;     /* of an original, else 0 */
    int64_t taken_ms; /* of an original: it is removed only if it was not written since */
};

/* Reads removals by id, after `after`. Free the array after clearing its elements. */
int queue_removals(struct queue *queue, int64_t after, size_t limit, struct queue_removal **removals, size_t *count);
void queue_removal_clear(struct queue_removal *removal);
/* Notes that the file is removed. */
int queue_removed(struct queue *queue, int64_t id);

/* A purge that an operator requests. */
struct queue_purge {
    const char *series_uid; /* of images or annotation objects; "": quarantined files of no known series */
    const char *before;     /* upper limit of their time, as text */
    bool dry_run;
    bool undelivered; /* also those that have not arrived; their deliveries end */
    const char *by;   /* name of the operator */
};

struct queue_purged {
    int64_t images, results, quarantined; /* with files that exist or existed */
    int64_t objects;                      /* annotation objects that go with the series, or are the series */
    int64_t bytes;                        /* of images, objects, results and masks */
    int64_t undelivered;                  /* deliveries that have not arrived */
    int64_t originals;                    /* files of inboxes with after = "keep"; they stay */
};

/*
 * Marks all files of a series, of its results and of its quarantine as removed, and clears descriptions and file names
 * in its rows. Annotation objects that refer to no other stored series go, too.
 *
 * Returns -ENOENT for an unknown series. Returns -EAGAIN while the series is being received, a job
 * waits, runs or is under review, or a result is being sent. Returns -EPERM if a result has not
 * arrived, unless `undelivered` is set. Sets *purged in all cases but -ENOENT.
 *
 * A series of annotation objects is purged whatever they refer to; -EAGAIN while a job that needs it waits or runs.
 *
 * Without a series: quarantined files older than `before`, and their names.
 */
int queue_purge(struct queue *queue, const struct queue_purge *purge, int64_t now_ms, struct queue_purged *purged);

/* Stores the current free space, in one row. */
int queue_measure_disk(struct queue *queue, double free_mib, int64_t now_ms);
/*
 * Stores a sample of the free space, once per hour; deletes samples older than two weeks. v_night
 * computes the fill rate from them.
 */
int queue_note_disk(struct queue *queue, double free_mib, int64_t now_ms);
/* Reads the time of the last sample; 0: never. */
int queue_last_disk(struct queue *queue, int64_t *at_ms);

/* Reads the size of a database from before schema version 11. Its file shrinks only if it is rebuilt; else 0. */
int queue_rebuild_size(struct queue *queue, int64_t *bytes);
/*
 * Rebuilds the database, so that free pages can be released from then on. One transaction: a kill
 * or a failure undoes it. Needs up to twice its size in its folder meanwhile.
 */
int queue_rebuild(struct queue *queue);

/*
 * Moves the log into the database file and cuts it, releases at most `pages` free pages at the end
 * of the file, and refreshes the planner's statistics. Does not wait for readers.
 */
int queue_tidy(struct queue *queue, int pages);

#endif
