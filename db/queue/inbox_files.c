/*
 * inbox_files.c - files that inboxes keep, as they were when received. A restart does not read them
 * again, nor those whose instances were removed.
 */
#include "db/queue/queue_private.h"

/* Has no effect if another file has replaced it meanwhile. */
int
queue_keep_in_mind(struct queue *queue, const char *source, const struct queue_kept *kept, const char *path)
{
    if (kept->file == 0 && kept->look == 0)
        return 0;
    return database_run(&queue->db,
                        "INSERT INTO kept (source, file, look, instance_id, object_id) "
                        "SELECT ?1, ?2, ?3, id, NULL FROM instance WHERE path = ?4 "
                        "UNION ALL SELECT ?1, ?2, ?3, NULL, id FROM object WHERE path = ?4 AND removed_at IS NULL "
                        "ON CONFLICT DO UPDATE SET look = excluded.look, instance_id = excluded.instance_id, "
                        "object_id = excluded.object_id",
                        VALUES(value_text(source), value_int(kept->file), value_int(kept->look), value_text(path)));
}

static const struct database_shape kept_shape =
    DATABASE_SHAPE("kept", struct queue_kept, {DATABASE_INT64, offsetof(struct queue_kept, file)},
                   {DATABASE_INT64, offsetof(struct queue_kept, look)});

int
queue_kept(struct queue *queue, const char *source, bool with_original, int64_t after, size_t limit,
           struct queue_kept **kept, size_t *count)
{
    return queue_list(queue,
                      "SELECT file, look FROM kept WHERE source = ?1 AND file > ?2 AND (NOT ?3 "
                      "OR instance_id IS NULL AND object_id IS NULL "
                      "OR EXISTS (SELECT 1 FROM instance "
                      "  WHERE id = instance_id AND original_path <> '') "
                      "OR EXISTS (SELECT 1 FROM object WHERE id = object_id "
                      "  AND (original_path <> '' OR removed_at IS NOT NULL))) "
                      "ORDER BY file LIMIT ?4",
                      VALUES(value_text(source), value_int(after), value_int(with_original), queue_row_limit(limit)),
                      &kept_shape, kept, count);
}

int
queue_forget_kept(struct queue *queue, const char *source, int64_t file)
{
    return queue_change(queue, "DELETE FROM kept WHERE source = ? AND file = ?",
                        VALUES(value_text(source), value_int(file)));
}
