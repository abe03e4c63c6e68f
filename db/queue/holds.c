/*
 * holds.c - holds of operators: a job, a pipeline, all jobs (a pause), a destination, or the queue. A hold changes no
 * state: queue_ready() and delivery_due.c leave out held rows. Running jobs and deliveries continue.
 */
#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
hold_refuse(struct queue *queue, const struct queue_hold *hold, int error, const char *words)
{
    return database_refuse(&queue->db, error, "%s%s%s %s", hold->kind, *hold->name ? " " : "", hold->name, words);
}

/* Returns whether people call the hold a pause. */
static bool
hold_is_pause(const struct queue_hold *hold)
{
    return strcmp(hold->kind, "jobs") == 0;
}

static int
hold_note(struct queue *queue, const struct queue_hold *hold, const struct edge_row *row, const char *kind,
          int64_t now_ms)
{
    char words[512];
    const bool reason = hold->reason && *hold->reason;
    snprintf(words, sizeof words, "%s%s%s, by %s%s%s", hold->kind, *hold->name ? " " : "", hold->name, hold->by,
             reason ? ": " : "", reason ? hold->reason : "");
    return edge_note(queue, row, NULL, NULL, kind, CODE_NONE, words, now_ms);
}

int
queue_hold(struct queue *queue, const struct queue_hold *hold, int64_t now_ms)
{
    static const char *const kinds[] = {"queue", "jobs", "pipeline", "destination", "job"};
    struct edge_row row = {.machine = &machine_job};
    size_t kind = 0;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    while (kind < 5 && strcmp(hold->kind, kinds[kind]) != 0)
        kind++;
    if (kind == 5 || (kind < 2) != !*hold->name)
        rc = database_refuse(&queue->db, -EINVAL, "a queue, all jobs, a pipeline, destination or job is held");
    else if (kind == 4)
        rc = edge_expect(queue, &machine_job, strtoll(hold->name, NULL, 10),
                         IN(QUEUE_READY) | IN(QUEUE_DELAYED) | IN(QUEUE_RUNNING), &row);
    if (rc == 0)
        rc = database_change(&queue->db,
                             "INSERT INTO hold (kind, name, held_at, held_by, reason) VALUES (?, ?, ?, ?, ?) "
                             "ON CONFLICT DO NOTHING",
                             VALUES(value_text(hold->kind), value_text(hold->name), value_time(now_ms),
                                    value_text(hold->by), value_text(hold->reason)));
    if (rc == 0)
        rc = hold_is_pause(hold) ? database_refuse(&queue->db, -EEXIST, "jobs are paused already")
                                 : hold_refuse(queue, hold, -EEXIST, "is held already");
    if (rc > 0)
        rc = hold_note(queue, hold, &row, hold_is_pause(hold) ? "PAUSED" : "HELD", now_ms);
    return queue_leave(queue, rc);
}

/* The schema ends the hold of a job with the job. */
int
queue_release(struct queue *queue, const struct queue_hold *hold, int64_t now_ms)
{
    struct edge_row row = {.machine = &machine_job};
    int64_t held_ms;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    if (strcmp(hold->kind, "job") == 0)
        rc = edge_read_row(queue, &machine_job, strtoll(hold->name, NULL, 10), &row);
    if (rc == 0)
        rc = queue_read_row(queue, "SELECT held_at FROM hold WHERE kind = ? AND name = ?",
                            VALUES(value_text(hold->kind), value_text(hold->name)), &database_time, &held_ms);
    if (rc == 1)
        rc = hold_is_pause(hold) ? database_refuse(&queue->db, -ENOENT, "jobs are not paused")
                                 : hold_refuse(queue, hold, -ENOENT, "is not held");
    if (rc == 0)
        rc = database_run(&queue->db, "DELETE FROM hold WHERE kind = ? AND name = ?",
                          VALUES(value_text(hold->kind), value_text(hold->name)));
    const bool of_queue = strcmp(hold->kind, "queue") == 0;
    if (rc == 0 && (of_queue || strcmp(hold->kind, "destination") == 0))
        rc = queue_count_out(queue, of_queue ? NULL : hold->name, held_ms, now_ms);
    if (rc == 0)
        rc = hold_note(queue, hold, &row, hold_is_pause(hold) ? "RESUMED" : "RELEASED", now_ms);
    return queue_leave(queue, rc);
}

int
queue_starts_no_job(struct queue *queue)
{
    int64_t held;
    return database_get(&queue->db, "SELECT 1 FROM hold WHERE kind IN ('queue', 'jobs') LIMIT 1", NO_VALUES, &held);
}
