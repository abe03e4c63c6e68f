/*
 * window_rows.c - pipelines with a window, and whether it is open. The daemon computes it;
 * queue_ready() and the views read the rows.
 */
#include "db/queue/edges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A window that is new was open before: jobs could start. */
static int
window_set(struct queue *queue, const struct queue_window *window, int64_t now_ms)
{
    int64_t was_open = 1;
    int rc = database_get(&queue->db, "SELECT is_open FROM pipeline_window WHERE pipeline = ?",
                          VALUES(value_text(window->pipeline)), &was_open);
    if (rc >= 0)
        rc = database_run(&queue->db,
                          "INSERT INTO pipeline_window (pipeline, text, is_open, opens_at, closes_at, "
                          "open_share) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (pipeline) DO UPDATE SET "
                          "text = ?2, is_open = ?3, opens_at = ?4, closes_at = ?5, open_share = ?6",
                          VALUES(value_text(window->pipeline), value_text(window->text), value_int(window->is_open),
                                 value_optional_time(window->opens_ms), value_optional_time(window->closes_ms),
                                 value_real(window->open_share)));
    if (rc == 0 && window->is_open != (was_open != 0)) {
        char words[512];
        snprintf(words, sizeof words, "%s, %s", window->pipeline, window->text);
        const struct queue_event event = {.kind = window->is_open ? "WINDOW_OPENED" : "WINDOW_CLOSED", .detail = words};
        rc = queue_add_event(queue, &event, now_ms);
    }
    return rc;
}

int
queue_set_windows(struct queue *queue, const struct queue_window *windows, size_t count, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    /* Deletes windows that are no longer configured. */
    char **names;
    size_t names_count;
    rc = queue_list(queue, "SELECT pipeline FROM pipeline_window ORDER BY pipeline", NO_VALUES, &database_string,
                    &names, &names_count);
    for (size_t i = 0; i < names_count; i++) {
        bool is_named = false;
        for (size_t k = 0; k < count; k++)
            is_named |= strcmp(windows[k].pipeline, names[i]) == 0;
        if (rc == 0 && !is_named)
            rc = database_run(&queue->db, "DELETE FROM pipeline_window WHERE pipeline = ?",
                              VALUES(value_text(names[i])));
        free(names[i]);
    }
    free(names);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = window_set(queue, &windows[i], now_ms);
    return queue_leave(queue, rc);
}
