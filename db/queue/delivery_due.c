/*
 * delivery_due.c - the next deliveries, per destination: an unreachable destination does not block others.
 *
 * INDEXED BY: without statistics SQLite prefers delivery_state here. It then reads and sorts all
 * waiting deliveries of an unreachable archive at each turn of the daemon.
 */
#include "db/queue/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Calls `look` for each destination with waiting deliveries that is neither blocked nor held. */
static int
each_waiting_destination(struct queue *queue, const char *const *blocked, size_t blocked_count,
                         int (*look)(struct queue *queue, const char *destination, void *context), void *context)
{
    char **destinations;
    size_t count;
    int rc = queue_list(queue,
                        "WITH RECURSIVE waiting(name) AS (VALUES ('') UNION ALL "
                        "SELECT (SELECT destination FROM delivery INDEXED BY delivery_due "
                        "  WHERE state IN ('PENDING', 'DELAYED') AND destination > name "
                        "  ORDER BY destination LIMIT 1) "
                        "FROM waiting WHERE name IS NOT NULL) SELECT name FROM waiting WHERE name <> '' "
                        "AND NOT EXISTS (SELECT 1 FROM hold h WHERE h.kind = 'queue' "
                        "  OR h.kind = 'destination' AND h.name = waiting.name)",
                        NO_VALUES, &database_string, &destinations, &count);
    for (size_t i = 0; i < count; i++) {
        bool is_blocked = false;
        for (size_t k = 0; k < blocked_count; k++)
            is_blocked |= strcmp(destinations[i], blocked[k]) == 0;
        if (rc == 0 && !is_blocked)
            rc = look(queue, destinations[i], context);
        free(destinations[i]);
    }
    free(destinations);
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
    return queue_append_rows(queue,
                             "SELECT " DELIVERY_COLUMNS "INDEXED BY delivery_due WHERE state IN ('PENDING', 'DELAYED') "
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
    return queue_settle_rows(&due.rows, rc, deliveries, count);
}

static int
look_at_earliest(struct queue *queue, const char *destination, void *context)
{
    int64_t due_ms, *earliest = context;
    int rc = queue_read_row(queue,
                            "SELECT due_at FROM delivery INDEXED BY delivery_due "
                            "WHERE state IN ('PENDING', 'DELAYED') AND destination = ? ORDER BY due_at, id LIMIT 1",
                            VALUES(value_text(destination)), &database_time, &due_ms);
    if (rc == 0 && due_ms < *earliest)
        *earliest = due_ms;
    return rc < 0 ? rc : 0;
}

int
queue_next_delivery(struct queue *queue, const char *const *blocked, size_t blocked_count, int64_t *due_ms)
{
    int64_t earliest = INT64_MAX;
    int rc = each_waiting_destination(queue, blocked, blocked_count, look_at_earliest, &earliest);
    if (rc == 0 && earliest == INT64_MAX)
        rc = database_refuse(&queue->db, -ENOENT, "no delivery waits");
    if (rc == 0)
        *due_ms = earliest;
    return rc;
}
