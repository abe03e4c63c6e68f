/*
 * due.c - which deliveries are to be sent next, destination by destination: one that is down
 * holds up no other.
 *
 * INDEXED BY: without statistics SQLite prefers delivery_state here, reads all that wait for an
 * archive that has been down all night, and sorts them, at each turn of the daemon.
 */
#include "db/queue/delivery_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The next destination by name that has deliveries waiting: 1, or 0 when there is none. */
static int
next_destination(struct queue *queue, char **destination)
{
    sqlite3_stmt *statement;
    int rc = database_start(&queue->db,
                            "SELECT destination FROM delivery INDEXED BY delivery_due "
                            "WHERE state IN ('PENDING', 'DELAYED') AND destination > ? "
                            "ORDER BY destination LIMIT 1",
                            VALUES(value_text(*destination)), &statement);
    if (rc < 0)
        return rc;
    char *next = NULL;
    rc = database_step(&queue->db, statement);
    if (rc == 1 && database_column_text(statement, 0, &next) < 0)
        rc = database_refuse(&queue->db, -ENOMEM, "out of memory");
    database_end(statement);
    free(*destination);
    *destination = next;
    return rc;
}

static bool
is_blocked(const char *destination, const char *const *blocked, size_t blocked_count)
{
    for (size_t i = 0; i < blocked_count; i++)
        if (strcmp(destination, blocked[i]) == 0)
            return true;
    return false;
}

/* Visits every destination that has deliveries waiting and is not blocked. */
static int
each_waiting_destination(struct queue *queue, const char *const *blocked, size_t blocked_count,
                         int (*visit)(struct queue *queue, const char *destination, void *context),
                         void *context)
{
    char *destination = strdup("");
    if (!destination)
        return database_refuse(&queue->db, -ENOMEM, "out of memory");
    int rc;
    while ((rc = next_destination(queue, &destination)) == 1) {
        if (is_blocked(destination, blocked, blocked_count))
            continue;
        rc = visit(queue, destination, context);
        if (rc < 0)
            break;
    }
    free(destination);
    return rc;
}

struct due_search {
    int64_t now_ms;
    size_t limit;
    struct queue_rows rows;
};

static int
append_due(struct queue *queue, const char *destination, void *context)
{
    struct due_search *due = context;
    return queue_append_rows(
        queue,
        "SELECT " DELIVERY_COLUMNS
        " FROM delivery INDEXED BY delivery_due WHERE state IN ('PENDING', 'DELAYED') "
        "AND destination = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?",
        VALUES(value_text(destination), value_time(due->now_ms), queue_row_limit(due->limit)),
        &due->rows);
}

int
queue_due_deliveries(struct queue *queue, int64_t now_ms, size_t limit, const char *const *blocked,
                     size_t blocked_count, struct queue_delivery **deliveries, size_t *count)
{
    struct due_search due = {now_ms, limit, {.shape = &delivery_shape}};
    int rc = each_waiting_destination(queue, blocked, blocked_count, append_due, &due);
    rc = queue_settle_rows(&due.rows, rc);
    *deliveries = due.rows.at;
    *count = due.rows.count;
    return rc;
}

struct earliest {
    bool any;
    int64_t due_ms;
};

static int
look_at_earliest(struct queue *queue, const char *destination, void *context)
{
    struct earliest *earliest = context;
    sqlite3_stmt *statement;
    int rc = database_start(
        &queue->db,
        "SELECT due_at FROM delivery INDEXED BY delivery_due "
        "WHERE state IN ('PENDING', 'DELAYED') AND destination = ? ORDER BY due_at, id LIMIT 1",
        VALUES(value_text(destination)), &statement);
    if (rc < 0)
        return rc;
    int64_t due_ms = 0;
    rc = database_step(&queue->db, statement);
    if (rc == 1)
        rc = database_column_time(statement, 0, &due_ms);
    database_end(statement);
    if (rc == 0 && (!earliest->any || due_ms < earliest->due_ms))
        *earliest = (struct earliest){.any = true, .due_ms = due_ms};
    return rc;
}

int
queue_next_delivery(struct queue *queue, const char *const *blocked, size_t blocked_count,
                    int64_t *due_ms)
{
    struct earliest earliest = {0};
    int rc = each_waiting_destination(queue, blocked, blocked_count, look_at_earliest, &earliest);
    if (rc == 0 && !earliest.any)
        rc = database_refuse(&queue->db, -ENOENT, "no delivery waits");
    if (rc == 0)
        *due_ms = earliest.due_ms;
    return rc;
}
