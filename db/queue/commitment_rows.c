/*
 * commitment_rows.c - storage commitment: requests and answers of destinations. delivery_rows.c has the state diagram.
 */
#include "db/queue/edges.h"

#include <errno.h>

int
queue_find_commitment(struct queue *queue, const char *transaction_uid, const char *sop_instance_uid,
                      struct queue_delivery *delivery)
{
    int rc =
        queue_read_row(queue,
                       "SELECT " DELIVERY_COLUMNS "WHERE transaction_uid = ? "
                       "AND transaction_uid <> '' "
                       "AND iif(sent_sop_instance_uid = '', sop_instance_uid, sent_sop_instance_uid) = ? "
                       "AND state = 'SENT' ORDER BY id LIMIT 1",
                       VALUES(value_text(transaction_uid), value_text(sop_instance_uid)), &delivery_shape, delivery);
    if (rc == 1)
        rc = database_refuse(&queue->db, -ENOENT, "no delivery of instance %s is under transaction %s",
                             sop_instance_uid, transaction_uid);
    return rc;
}

int
queue_delivery_committed(struct queue *queue, const char *transaction_uid, const char *sop_instance_uid, bool committed,
                         enum code code, const char *message, int64_t now_ms)
{
    struct queue_delivery delivery;
    struct edge_row row;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_find_commitment(queue, transaction_uid, sop_instance_uid, &delivery);
    if (rc == 0) {
        rc = edge_read_row(queue, &machine_delivery, delivery.id, &row);
        queue_delivery_clear(&delivery);
    }
    if (rc == 0)
        rc = database_change(&queue->db,
                             "UPDATE delivery SET commitment = ?2, committed_at = ?3, "
                             "code = iif(?3 IS NULL, ?4, code), message = iif(?3 IS NULL, ?5, message) "
                             "WHERE id = ?1 AND state = 'SENT' AND commitment = 'REQUESTED'",
                             VALUES(value_int(row.id), value_text(committed ? "COMMITTED" : "FAILED"),
                                    committed ? value_time(now_ms) : value_null(), value_text(code_name(code)),
                                    value_text(message)));
    if (rc > 0) /* 0: reported before; one event is enough */
        rc = edge_note(queue, &row, NULL, NULL, committed ? "COMMITMENT_DONE" : "COMMITMENT_FAILED", code, message,
                       now_ms);
    return queue_leave(queue, rc);
}

int
queue_commitment_refused(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt, int64_t now_ms)
{
    struct edge_row row;
    int rc = edge_enter(queue, &machine_delivery, delivery_id, IN(QUEUE_DELIVERY_SENT), &row);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db,
                         "UPDATE delivery SET commitment = 'FAILED', requested_at = ?3 "
                         "WHERE id = ?1 AND state = ?2 AND commitment = 'NONE'",
                         VALUES(EDGE_GUARD(&row), value_time(now_ms)));
    if (rc > 0)
        rc = edge_note(queue, &row, NULL, NULL, "COMMITMENT_FAILED", attempt->code, attempt->message, now_ms);
    return queue_leave(queue, rc);
}

int
queue_overdue_commitments(struct queue *queue, const char *destination, int64_t before_ms, size_t limit,
                          struct queue_delivery **deliveries, size_t *count)
{
    return queue_list(queue,
                      "SELECT " DELIVERY_COLUMNS "WHERE commitment = 'REQUESTED' AND destination = ? "
                      "AND requested_at < ? ORDER BY requested_at, id LIMIT ?",
                      VALUES(value_text(destination), value_time(before_ms), queue_row_limit(limit)), &delivery_shape,
                      deliveries, count);
}
