#include "db/caller_rows.h"

#include "db/queue/queue_private.h"

#include <stdlib.h>

#define CALLER_FIELDS(FIELD)                                                                                           \
    FIELD(INT64, id, "id")                                                                                             \
    FIELD(TEXT, calling_ae, "calling_ae")                                                                              \
    FIELD(TEXT, called_ae, "called_ae")                                                                                \
    FIELD(TEXT, host, "host")                                                                                          \
    FIELD(TEXT, certificate, "certificate")                                                                            \
    FIELD(TEXT, reason, "reason")
#define CALLER_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_caller, member)},

static const struct database_shape caller_shape =
    DATABASE_SHAPE("caller", struct queue_caller, CALLER_FIELDS(CALLER_FIELD));

int
queue_add_rejection(struct queue *queue, const struct queue_rejection *rejection, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_run(&queue->db,
                      "INSERT INTO caller (calling_ae, called_ae, host, reason, certificate, rejected, first_at, "
                      "last_at, admitted_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, iif(?8, ?7, NULL)) "
                      "ON CONFLICT DO UPDATE SET rejected = rejected + excluded.rejected, "
                      "last_at = excluded.last_at, certificate = excluded.certificate, "
                      "admitted_at = iif(?8, coalesce(admitted_at, ?7), NULL)",
                      VALUES(value_text(rejection->calling_ae), value_text(rejection->called_ae),
                             value_text(rejection->host), value_text(rejection->reason),
                             value_text(rejection->certificate), value_int(rejection->rejected), value_time(now_ms),
                             value_int(rejection->admitted)));
    if (rc == 0) {
        rc = database_run(&queue->db,
                          "DELETE FROM caller WHERE id IN (SELECT id FROM caller WHERE host = ? "
                          "ORDER BY last_at DESC, id DESC LIMIT -1 OFFSET ?)",
                          VALUES(value_text(rejection->host), value_int(CALLERS_OF_HOST)));
        if (rc == 0)
            rc = database_run(&queue->db,
                              "DELETE FROM caller WHERE id IN (SELECT id FROM caller "
                              "ORDER BY last_at DESC, id DESC LIMIT -1 OFFSET ?)",
                              VALUES(value_int(CALLERS_KEPT)));
    }
    return queue_leave(queue, rc);
}

int
queue_callers(struct queue *queue, struct queue_caller **callers, size_t *count)
{
    return queue_list(queue, "SELECT " CALLER_FIELDS(DATABASE_COLUMN) "NULL FROM caller ORDER BY id", NO_VALUES,
                      &caller_shape, callers, count);
}

DATABASE_FREE(queue_callers_free, queue_caller, caller_shape)

int
queue_admit_caller(struct queue *queue, int64_t id, bool admitted, int64_t now_ms)
{
    return queue_change(queue, "UPDATE caller SET admitted_at = iif(?2, coalesce(admitted_at, ?3), NULL) WHERE id = ?1",
                        VALUES(value_int(id), value_int(admitted), value_time(now_ms)));
}
