/* delivery_rows.c - see delivery_rows.h. */
#include "db/queue/delivery_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
    [QUEUE_DELIVERY_PENDING] = "PENDING", [QUEUE_DELIVERY_SENDING] = "SENDING",
    [QUEUE_DELIVERY_SENT] = "SENT",       [QUEUE_DELIVERY_DELAYED] = "DELAYED",
    [QUEUE_DELIVERY_FAILED] = "FAILED",   [QUEUE_DELIVERY_CANCELLED] = "CANCELLED",
};

static const char *const commitment_names[] = {
    [QUEUE_COMMITMENT_NONE] = "NONE",
    [QUEUE_COMMITMENT_REQUESTED] = "REQUESTED",
    [QUEUE_COMMITMENT_COMMITTED] = "COMMITTED",
    [QUEUE_COMMITMENT_FAILED] = "FAILED",
};

#define COUNT_OF(names) (sizeof(names) / sizeof *(names))

const char *
queue_delivery_state_name(enum queue_delivery_state state)
{
    return (size_t)state < COUNT_OF(state_names) ? state_names[state] : "UNKNOWN";
}

/* ------------------------------------------------------------------------- what edges share -- */

static int
no_such_delivery(struct queue *queue, int64_t delivery_id)
{
    return database_refuse(&queue->db, -ENOENT, "there is no delivery %lld",
                           (long long)delivery_id);
}

static int
unpack_row(sqlite3_stmt *statement, struct delivery_row *row)
{
    int state =
        database_find_name(state_names, COUNT_OF(state_names), sqlite3_column_text(statement, 2));
    int commitment = database_find_name(commitment_names, COUNT_OF(commitment_names),
                                        sqlite3_column_text(statement, 3));
    if (state < 0 || commitment < 0)
        return -EUCLEAN;
    row->job_id = sqlite3_column_int64(statement, 0);
    row->series_id = sqlite3_column_int64(statement, 1);
    row->state = (enum queue_delivery_state)state;
    row->commitment = (enum queue_commitment)commitment;
    row->attempts = sqlite3_column_int(statement, 4);
    row->has_result = sqlite3_column_type(statement, 5) != SQLITE_NULL;
    snprintf(row->destination, sizeof row->destination, "%s", sqlite3_column_text(statement, 6));
    return 0;
}

int
delivery_read_row(struct queue *queue, int64_t delivery_id, struct delivery_row *row)
{
    sqlite3_stmt *statement;
    *row = (struct delivery_row){.id = delivery_id};
    int rc = database_start(&queue->db,
                            "SELECT d.job_id, j.series_id, d.state, d.commitment, d.attempts, "
                            "d.result_id, d.destination "
                            "FROM delivery d JOIN job j ON j.id = d.job_id WHERE d.id = ?",
                            VALUES(value_int(delivery_id)), &statement);
    if (rc < 0)
        return rc;
    rc = database_step(&queue->db, statement);
    if (rc == 1)
        rc = unpack_row(statement, row);
    else if (rc == 0)
        rc = no_such_delivery(queue, delivery_id);
    database_end(statement);
    return rc;
}

int
delivery_wrong_state(struct queue *queue, const struct delivery_row *row)
{
    return database_refuse(&queue->db, -EAGAIN, "delivery %lld is %s", (long long)row->id,
                           state_names[row->state]);
}

int
delivery_expect_row(struct queue *queue, int64_t delivery_id, unsigned allowed,
                    struct delivery_row *row)
{
    int rc = delivery_read_row(queue, delivery_id, row);
    if (rc == 0 && !(allowed & 1u << row->state))
        rc = delivery_wrong_state(queue, row);
    return rc;
}

int
delivery_note(struct queue *queue, const struct delivery_row *row, const char *kind,
              const char *from_state, const char *to_state, const char *words, int64_t now_ms)
{
    char detail[768];
    snprintf(detail, sizeof detail, "%s%s%s", row->destination, words[0] ? ", " : "", words);
    struct queue_event event = {.kind = kind,
                                .series_id = row->series_id,
                                .job_id = row->job_id,
                                .delivery_id = row->id,
                                .from_state = from_state,
                                .to_state = to_state,
                                .detail = detail};
    return queue_add_event(queue, &event, now_ms);
}

int
delivery_moved(struct queue *queue, int changed, const struct delivery_row *row,
               enum queue_delivery_state to, const char *kind, const char *words, int64_t now_ms)
{
    if (changed < 0)
        return changed;
    if (changed == 0)
        return delivery_wrong_state(queue, row);
    return delivery_note(queue, row, kind, state_names[row->state], state_names[to], words, now_ms);
}

int
delivery_for_each(struct queue *queue, const char *sql, const struct database_value *values,
                  size_t value_count,
                  int (*edge)(struct queue *queue, const struct delivery_row *row, int64_t now_ms),
                  int64_t now_ms, int64_t *count)
{
    struct queue_ids ids;
    int rc = queue_read_ids(queue, sql, values, value_count, &ids);
    for (size_t i = 0; rc == 0 && i < ids.count; i++) {
        struct delivery_row row;
        rc = delivery_read_row(queue, ids.at[i], &row);
        if (rc == 0)
            rc = edge(queue, &row, now_ms);
    }
    *count = (int64_t)ids.count;
    free(ids.at);
    return rc;
}

/* ----------------------------------------------------------------------------------- reading - */

#define DELIVERY_FIELD(kind, member, sql)                                                          \
    {DATABASE_##kind, offsetof(struct queue_delivery, member)},

static const struct database_field delivery_fields[] = {DELIVERY_FIELDS(DELIVERY_FIELD)};
const struct database_shape delivery_shape = {"delivery", sizeof(struct queue_delivery),
                                              delivery_fields, COUNT_OF(delivery_fields)};

void
queue_delivery_clear(struct queue_delivery *delivery)
{
    database_clear_row(&delivery_shape, delivery);
}

int
queue_get_delivery(struct queue *queue, int64_t delivery_id, struct queue_delivery *delivery)
{
    int rc = queue_read_row(queue, "SELECT " DELIVERY_COLUMNS " FROM delivery WHERE id = ?",
                            VALUES(value_int(delivery_id)), &delivery_shape, delivery);
    return rc == 1 ? no_such_delivery(queue, delivery_id) : rc;
}
