/*
 * pull_queue.h - what archives are asked for, item by item; the diagram is in queue/pulls.c.
 *
 * As queue.h says of errors, times and threads. No call is given an accession number but as the
 * identifier, which is what may stand in the database.
 */
#ifndef NOCTULE_DB_PULL_QUEUE_H
#define NOCTULE_DB_PULL_QUEUE_H

#include "db/queue.h"

enum queue_pull_state {
    QUEUE_PULL_WAITING,
    QUEUE_PULL_FINDING,
    QUEUE_PULL_MOVING,
    QUEUE_PULL_DONE,
    QUEUE_PULL_NOT_FOUND,
    QUEUE_PULL_PARTIAL,
    QUEUE_PULL_FAILED,
    QUEUE_PULL_CANCELLED,
};

const char *queue_pull_state_name(enum queue_pull_state state);

enum queue_pull_key { QUEUE_PULL_ACCESSION, QUEUE_PULL_STUDY, QUEUE_PULL_SERIES };

/* "accession", "study", "series"; false: it is none of them. */
bool queue_pull_key_find(const char *name, enum queue_pull_key *key);
const char *queue_pull_key_name(enum queue_pull_key key);

struct queue_pull {
    int64_t id, batch;
    int32_t line;
    char *source; /* a name of the configuration */
    enum queue_pull_key key;
    char *identifier;
    int32_t attempts;
    int64_t since_ms; /* the first attempt; 0: none yet */
};

void queue_pull_clear(struct queue_pull *pull);

struct queue_pull_wish {
    enum queue_pull_key key;
    char *identifier;
    int32_t list_line; /* in the site's own list, or the place among the arguments; from 1 */
};

/* The number that the next batch has to have: that of its first item. */
int queue_next_batch(struct queue *queue, int64_t *batch);
/* A batch of items, WAITING and due at once. */
int queue_add_pulls(struct queue *queue, int64_t batch, const char *source, const char *by,
                    const struct queue_pull_wish *wishes, size_t count, int64_t now_ms);

/* The first of a source that waits, in the order in which they are due; *due_ms may be past. 1: none. */
int queue_next_pull(struct queue *queue, const char *source, struct queue_pull *pull,
                    int64_t *due_ms);
/* When a C-MOVE was last asked for at the source; 0: never. */
int queue_last_move(struct queue *queue, const char *source, int64_t *at_ms);
/* Names of sources for which something waits; the caller frees them. */
int queue_pulled_sources(struct queue *queue, char ***sources, size_t *count);

/* WAITING -> FINDING, attempts + 1: committed before the courier is told. */
int queue_start_pull(struct queue *queue, int64_t id, int64_t now_ms);

struct queue_pull_part {
    char *study_uid, *series_uid; /* "": the whole study */
    int64_t expected;             /* instances; -1: not known */
    int64_t arrived;              /* are stored here; of queue_pull_parts */
    int64_t unwanted;             /* came and were not kept; likewise */
};

/* FINDING -> MOVING: what the archive has of it, in place of what it said before. */
int queue_pull_found(struct queue *queue, int64_t id, const struct queue_pull_part *parts,
                     size_t count, int64_t now_ms);
/* With what is stored of them by now. Free with queue_pull_parts_free. */
int queue_pull_parts(struct queue *queue, int64_t id, struct queue_pull_part **parts,
                     size_t *count);
void queue_pull_parts_free(struct queue_pull_part *parts, size_t count);

/* An instance that a source sent and that is not kept: its class is not processed, or it is a result of ours. */
struct queue_unwanted {
    const char *sop_instance_uid, *sop_class_uid, *series_uid, *study_uid;
};

/* Counts it once, for the items of its study. Does nothing if no item of the study is MOVING. */
int queue_add_unwanted(struct queue *queue, const struct queue_unwanted *instance);
/* MOVING: a C-MOVE is asked for; committed before the courier is told. */
int queue_note_move(struct queue *queue, int64_t id, int64_t now_ms);

/* How an attempt ended. FINDING | MOVING -> WAITING until then; attempts - 1 where it is not counted. */
int queue_delay_pull(struct queue *queue, int64_t id, int64_t due_ms, bool counted, enum code code,
                     const char *message, int64_t now_ms);
/* The same, at once due and not counted: it was given back untried. */
int queue_return_pull(struct queue *queue, int64_t id, const char *why, int64_t now_ms);
/* WAITING | FINDING | MOVING -> DONE, NOT_FOUND, PARTIAL or FAILED. */
int queue_end_pull(struct queue *queue, int64_t id, enum queue_pull_state state, enum code code,
                   const char *message, int64_t now_ms);

/*
 * What of a batch has not ended is CANCELLED. *busy: those of them that were FINDING or MOVING, for
 * the caller to free. -ENOENT: there is no such batch; -EAGAIN: all of it has ended.
 */
int queue_cancel_pulls(struct queue *queue, int64_t batch, const char *by, int64_t now_ms,
                       struct queue_ids *busy, int64_t *count);

/* Whether the batch has accession numbers that may have to be asked for: 1, 0 or -errno. */
int queue_pulls_need_keys(struct queue *queue, int64_t batch);

#endif
