/*
 * window_rows.c - pipelines with a window, and whether it is open. The daemon computes it;
 * queue_ready() and the views read the rows.
 */
#include "db/queue/edges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct database_value
window_time(int64_t ms)
{
    return ms ? value_time(ms) : value_null();
}

static int
window_note(struct queue *queue, const struct queue_window *window, int64_t now_ms)
{
    char words[512];
    snprintf(words, sizeof words, "%s, %s", window->pipeline, window->text);
    const struct queue_event event = {.kind = window->is_open ? "WINDOW_OPENED" : "WINDOW_CLOSED",
                                      .detail = words};
    return queue_add_event(queue, &event, now_ms);
}

/* A window that is new was open before: jobs could start. */
static int
window_set(struct queue *queue, const struct queue_window *window, int64_t now_ms)
{
    int64_t was_open = 1;
    int rc = database_get(&queue->db, "SELECT is_open FROM pipeline_window WHERE pipeline = ?",
                          VALUES(value_text(window->pipeline)), &was_open);
    if (rc >= 0)
        rc = database_run(
            &queue->db,
            "INSERT INTO pipeline_window (pipeline, text, is_open, opens_at, closes_at, "
            "open_share) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (pipeline) DO UPDATE SET "
            "text = ?2, is_open = ?3, opens_at = ?4, closes_at = ?5, open_share = ?6",
            VALUES(value_text(window->pipeline), value_text(window->text),
                   value_int(window->is_open), window_time(window->opens_ms),
                   window_time(window->closes_ms), value_real(window->open_share)));
    if (rc == 0 && window->is_open != (was_open != 0))
        rc = window_note(queue, window, now_ms);
    return rc;
}

static bool
window_is_named(const struct queue_window *windows, size_t count, const char *pipeline)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(windows[i].pipeline, pipeline) == 0)
            return true;
    return false;
}

/* Deletes windows that are no longer configured. */
static int
windows_forget(struct queue *queue, const struct queue_window *windows, size_t count)
{
    char **names;
    size_t names_count;
    int rc = queue_list(queue, "SELECT pipeline FROM pipeline_window ORDER BY pipeline", NO_VALUES,
                        &database_string, &names, &names_count);
    for (size_t i = 0; i < names_count; i++) {
        if (rc == 0 && !window_is_named(windows, count, names[i]))
            rc = database_run(&queue->db, "DELETE FROM pipeline_window WHERE pipeline = ?",
                              VALUES(value_text(names[i])));
        free(names[i]);
    }
    free(names);
    return rc;
}

int
queue_set_windows(struct queue *queue, const struct queue_window *windows, size_t count,
                  int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = windows_forget(queue, windows, count);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = window_set(queue, &windows[i], now_ms);
    return queue_leave(queue, rc);
}
