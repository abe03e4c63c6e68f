/*
 * pull_queue.h - items of `noctule pull`, which archives must send; queue/pull_queue.c has the diagram.
 *
 * Errors, times and threads: see queue.h. Accession numbers are given as their identifier, which the database may hold.
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

/* QUEUE_PULL_PRIOR: the latest earlier study of the patient of a series, for a job (queue_order_prior). */
enum queue_pull_key { QUEUE_PULL_ACCESSION, QUEUE_PULL_STUDY, QUEUE_PULL_SERIES, QUEUE_PULL_PRIOR };

/* Finds "accession", "study" or "series", the keys of commands. Returns false for other names. */
bool queue_pull_key_find(const char *name, enum queue_pull_key *key);
const char *queue_pull_key_name(enum queue_pull_key key);

struct queue_pull {
    int64_t id, batch;
    int32_t line;
    char *source; /* a name in the configuration */
    enum queue_pull_key key;
    char *identifier;
    int32_t attempts;
    int64_t since_ms; /* time of the first attempt; 0: none yet */
};

void queue_pull_clear(struct queue_pull *pull);

struct queue_pull_wish {
    enum queue_pull_key key;
    char *identifier;
    int32_t list_line; /* line in the site's list, or position among the arguments; from 1 */
};

/* Reads the number of the next batch, which is that of its first item. */
int queue_next_batch(struct queue *queue, int64_t *batch);
/* Adds a batch of items, WAITING and due at once. */
int queue_add_pulls(struct queue *queue, int64_t batch, const char *source, const char *by,
                    const struct queue_pull_wish *wishes, size_t count, int64_t now_ms);

/* Finds the first WAITING item of a source by due time; *due_ms may have passed. An item of a job that is due comes before
 * the items of commands. Returns 1 if there is none. */
int queue_next_pull(struct queue *queue, const char *source, struct queue_pull *pull, int64_t *due_ms);
/* Reads the time of the last C-MOVE at the source; 0: never. */
int queue_last_move(struct queue *queue, const char *source, int64_t *at_ms);
/* Lists the sources that have WAITING items. The caller must free the names. */
int queue_pulled_sources(struct queue *queue, char ***sources, size_t *count);

/* WAITING -> FINDING, attempts + 1. Commit before the sender gets the item. */
int queue_start_pull(struct queue *queue, int64_t id, int64_t now_ms);

struct queue_pull_part {
    char *study_uid, *series_uid; /* "": the whole study */
    int64_t expected;             /* instances; -1: not known */
    int64_t arrived;              /* number that is stored; from queue_pull_parts() */
    int64_t unwanted;             /* number that arrived and is not kept; from queue_pull_parts() */
};

/* FINDING -> MOVING. Replaces the parts that the archive reported before. */
int queue_pull_found(struct queue *queue, int64_t id, const struct queue_pull_part *parts, size_t count,
                     int64_t now_ms);
/* Reads the parts with the number of instances that are stored now. Free with queue_pull_parts_free(). */
int queue_pull_parts(struct queue *queue, int64_t id, struct queue_pull_part **parts, size_t *count);
void queue_pull_parts_free(struct queue_pull_part *parts, size_t count);

/* An instance from a source that is not kept: its class is not processed, or it is a result of Noctule. */
struct queue_unwanted {
    const char *sop_instance_uid, *sop_class_uid, *series_uid, *study_uid;
};

/* Counts an instance once, for the items of its study. Has no effect unless an item of the study is MOVING. */
int queue_add_unwanted(struct queue *queue, const struct queue_unwanted *instance);
/* MOVING: notes a C-MOVE request. Commit before the sender gets it. */
int queue_note_move(struct queue *queue, int64_t id, int64_t now_ms);

/*
 * Ends an attempt. FINDING | MOVING -> WAITING until `due_ms`; attempts - 1 unless it is counted.
 */
int queue_delay_pull(struct queue *queue, int64_t id, int64_t due_ms, bool counted, enum code code, const char *message,
                     int64_t now_ms);
/* Returns an item that was not tried: WAITING, due at once, not counted. */
int queue_return_pull(struct queue *queue, int64_t id, const char *why, int64_t now_ms);
/* WAITING | FINDING | MOVING -> DONE, NOT_FOUND, PARTIAL or FAILED. */
int queue_end_pull(struct queue *queue, int64_t id, enum queue_pull_state state, enum code code, const char *message,
                   int64_t now_ms);

/*
 * Sets the open items of a batch to CANCELLED. *busy: those that were FINDING or MOVING; the caller
 * must free it. Returns -ENOENT if there is no such batch, -EAGAIN if all its items have ended.
 */
int queue_cancel_pulls(struct queue *queue, int64_t batch, const char *by, int64_t now_ms, struct queue_ids *busy,
                       int64_t *count);

/* Returns 1 if the batch has accession numbers that may still be needed, 0 if not, or -errno. */
int queue_pulls_need_keys(struct queue *queue, int64_t batch);

#endif
