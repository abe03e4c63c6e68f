/*
 * delivery_rows.h - what is shared by all that moves or reads deliveries: the row that an edge
 * leaves, its event, and rows as the queue gives them away. Private to db/: deliveries.c,
 * due.c and commitments.c.
 */
#ifndef NOCTULE_DELIVERY_ROWS_H
#define NOCTULE_DELIVERY_ROWS_H

#include "db/queue/queue_private.h"

/* Sets of states. */
#define DELIVERY_PENDING   (1u << QUEUE_DELIVERY_PENDING)
#define DELIVERY_SENDING   (1u << QUEUE_DELIVERY_SENDING)
#define DELIVERY_SENT      (1u << QUEUE_DELIVERY_SENT)
#define DELIVERY_DELAYED   (1u << QUEUE_DELIVERY_DELAYED)
#define DELIVERY_FAILED    (1u << QUEUE_DELIVERY_FAILED)
#define DELIVERY_CANCELLED (1u << QUEUE_DELIVERY_CANCELLED)

/* What an edge needs to know of the row it leaves. */
struct delivery_row {
    int64_t id, job_id, series_id;
    enum queue_delivery_state state;
    enum queue_commitment commitment;
    int32_t attempts;
    bool has_result;
    char destination[256]; /* for the words of events */
};

int delivery_read_row(struct queue *queue, int64_t delivery_id, struct delivery_row *row);
/* Reads the row; -EAGAIN unless its state is one of `allowed`. */
int delivery_expect_row(struct queue *queue, int64_t delivery_id, unsigned allowed,
                        struct delivery_row *row);
/* -EAGAIN, with the state in words. */
int delivery_wrong_state(struct queue *queue, const struct delivery_row *row);

/* An event, told of the destination and in words; states are NULL where none changes. */
int delivery_note(struct queue *queue, const struct delivery_row *row, const char *kind,
                  const char *from_state, const char *to_state, const char *words, int64_t now_ms);
/* Turns what the guarded UPDATE of an edge returned into 0 or -errno, and writes the event. */
int delivery_moved(struct queue *queue, int changed, const struct delivery_row *row,
                   enum queue_delivery_state to, const char *kind, const char *words,
                   int64_t now_ms);
/* Applies an edge to each of the deliveries that `sql` finds; how many went into *count. */
int delivery_for_each(struct queue *queue, const char *sql, const struct database_value *values,
                      size_t value_count,
                      int (*edge)(struct queue *queue, const struct delivery_row *row,
                                  int64_t now_ms),
                      int64_t now_ms, int64_t *count);

/* What a struct queue_delivery is read from. */
#define DELIVERY_FIELDS(FIELD)                                                                     \
    FIELD(INT64, id, "id")                                                                         \
    FIELD(INT64, job_id, "job_id")                                                                 \
    FIELD(TEXT, destination, "destination")                                                        \
    FIELD(NAME(state_names), state, "state")                                                       \
    FIELD(NAME(commitment_names), commitment, "commitment")                                        \
    FIELD(INT32, attempts, "attempts")                                                             \
    FIELD(TIME, since_ms, "since_at")                                                              \
    FIELD(TIME, due_ms, "due_at")                                                                  \
    FIELD(TEXT, kind, "kind")                                                                      \
    FIELD(TEXT, path, "path")                                                                      \
    FIELD(TEXT, sop_class_uid, "sop_class_uid")                                                    \
    FIELD(TEXT, sop_instance_uid, "sop_instance_uid")
#define DELIVERY_COLUMNS DELIVERY_FIELDS(DATABASE_COLUMN) "NULL"

extern const struct database_shape delivery_shape;

#endif
