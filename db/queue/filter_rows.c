/* filter_rows.c - filters of lists that persons saved. */
#include "db/queue/queue_private.h"

#include <errno.h>

int
queue_save_filter(struct queue *queue, const struct queue_filter *filter, int64_t now_ms)
{
    int64_t others = 0;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_get(&queue->db,
                      "SELECT count(*) FROM saved_filter WHERE person = ?1 AND NOT (list = ?2 AND name = ?3)",
                      VALUES(value_text(filter->person), value_text(filter->list), value_text(filter->name)), &others);
    if (rc >= 0)
        rc = 0;
    if (rc == 0 && others >= QUEUE_FILTERS)
        rc = database_refuse(&queue->db, -EDQUOT, "%s has %d saved filters: delete one", filter->person, QUEUE_FILTERS);
    if (rc == 0)
        rc = database_run(&queue->db, "INSERT OR REPLACE INTO saved_filter VALUES (?, ?, ?, ?, ?)",
                          VALUES(value_text(filter->person), value_text(filter->list), value_text(filter->name),
                                 value_text(filter->filter), value_time(now_ms)));
    return queue_leave(queue, rc);
}

int
queue_delete_filter(struct queue *queue, const struct queue_filter *filter)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_change(&queue->db, "DELETE FROM saved_filter WHERE person = ? AND list = ? AND name = ?",
                         VALUES(value_text(filter->person), value_text(filter->list), value_text(filter->name)));
    if (rc == 0)
        rc = database_refuse(&queue->db, -ENOENT, "%s has no saved filter \"%s\" of the list %s", filter->person,
                             filter->name, filter->list);
    return queue_leave(queue, rc > 0 ? 0 : rc);
}
