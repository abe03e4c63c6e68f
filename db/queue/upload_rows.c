/* upload_rows.c - corrected masks that persons uploaded, until the receiver has stored the files. */
#include "db/queue/edges.h"

#include <errno.h>

static const struct database_shape upload_shape =
    DATABASE_SHAPE("upload", struct queue_upload, {DATABASE_INT64, offsetof(struct queue_upload, job_id)},
                   {DATABASE_TEXT, offsetof(struct queue_upload, person)});

DATABASE_CLEAR(queue_upload_clear, queue_upload, upload_shape)

int
queue_add_upload(struct queue *queue, const char *name, int64_t job_id, const char *person,
                 const char *sop_instance_uid, int64_t now_ms)
{
    return queue_change(
        queue, "INSERT INTO upload (name, job_id, person, sop_instance_uid, uploaded_at) VALUES (?, ?, ?, ?, ?)",
        VALUES(value_text(name), value_int(job_id), value_text(person), value_text(sop_instance_uid),
               value_time(now_ms)));
}

int
queue_find_upload(struct queue *queue, const char *name, const char *sop_instance_uid, struct queue_upload *upload)
{
    *upload = (struct queue_upload){0};
    const int rc = queue_read_row(
        queue, "SELECT job_id, person, NULL FROM upload WHERE name = ?1 OR sop_instance_uid = ?2 LIMIT 1",
        VALUES(value_text(name), value_text(sop_instance_uid)), &upload_shape, upload);
    return rc == 1 ? -ENOENT : rc;
}

int
queue_end_upload(struct queue *queue, const char *name)
{
    return queue_change(queue, "DELETE FROM upload WHERE name = ?", VALUES(value_text(name)));
}

int
queue_check_correctable(struct queue *queue, int64_t job_id, const char *seen)
{
    struct edge_row row;
    int rc = review_enter(queue, job_id, &row);
    if (rc < 0)
        return rc;
    rc = review_expect_current(queue, &row);
    return queue_leave(queue, rc ? rc : queue_check_review(queue, job_id, seen));
}

int
queue_is_correction(struct queue *queue, int64_t object_id)
{
    int64_t found;
    return database_get(&queue->db, "SELECT 1 FROM job WHERE correction = ? LIMIT 1", VALUES(value_int(object_id)),
                        &found);
}

int
queue_try(struct queue *queue, int (*attempt)(void *context), void *context)
{
    const int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    const int tried = attempt(context);
    const int left = queue_leave(queue, tried < 0 ? tried : -ECANCELED);
    return left == -ECANCELED ? tried : left;
}
