/* configuration.c - the configuration in force and the last refused one, and the known key. Events have the history. */
#include "db/queue/edges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
configuration_note(struct queue *queue, const struct queue_configuration *is, int64_t now_ms)
{
    /* "FILE and 2 more files, by root (jane)", or the reason of the refusal in place of the files. */
    char more[48] = "", *detail;
    size_t others = 0;
    for (const char *at = is->files; (at = strchr(at, '\n')); at++)
        others++;
    if (others > 0)
        snprintf(more, sizeof more, " and %zu more file%s", others, others == 1 ? "" : "s");
    const int length = (int)strcspn(is->files, "\n");
    const char *by = *is->asked_by ? is->asked_by : "a signal";
    int rc = *is->reason ? asprintf(&detail, "%s; requested by %s", is->reason, by)
                         : asprintf(&detail, "%.*s%s, requested by %s", length, is->files, more, by);
    if (rc < 0)
        return database_refuse(&queue->db, -ENOMEM, "out of memory");
    const struct queue_event event = {.kind = *is->reason ? "RELOAD_FAILED" : "RELOAD", .detail = detail};
    rc = queue_add_event(queue, &event, now_ms);
    free(detail);
    return rc;
}

int
queue_set_configuration(struct queue *queue, const struct queue_configuration *is, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    /* A refusal keeps the time of the first one. */
    rc = database_run(&queue->db,
                      "INSERT INTO configuration (state, at, since_at, cause, asked_by, files, reason) "
                      "VALUES (iif(?5 = '', 'LOADED', 'REFUSED'), ?1, ?1, ?2, ?3, ?4, ?5) "
                      "ON CONFLICT (state) DO UPDATE SET at = ?1, cause = ?2, asked_by = ?3, files = ?4, "
                      "reason = ?5, since_at = iif(?5 = '', ?1, since_at)",
                      VALUES(value_time(now_ms), value_text(is->cause), value_text(is->asked_by), value_text(is->files),
                             value_text(is->reason)));
    if (rc == 0 && !*is->reason)
        rc = database_run(&queue->db, "DELETE FROM configuration WHERE state = 'REFUSED'", NO_VALUES);
    if (rc == 0 && strcmp(is->cause, "start") != 0)
        rc = configuration_note(queue, is, now_ms);
    return queue_leave(queue, rc);
}

int
queue_check_key(struct queue *queue, const char *fingerprint)
{
    int64_t known;
    int rc = database_get(&queue->db, "SELECT fingerprint = ? FROM identifier_key WHERE id = 1",
                          VALUES(value_text(fingerprint)), &known);
    if (rc)
        return rc < 0 ? rc : (int)known;
    rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_leave(
        queue, database_run(&queue->db, "INSERT INTO identifier_key VALUES (1, ?)", VALUES(value_text(fingerprint))));
    return rc < 0 ? rc : 1;
}

int
queue_replace_key(struct queue *queue, const char *fingerprint, int64_t now_ms)
{
    const struct queue_event event = {.kind = "IDENTIFIER_KEY_REPLACED",
                                      .detail = "noctuled --new-identifier-key: identifier.key is another one"};
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_run(&queue->db, "UPDATE identifier_key SET fingerprint = ? WHERE id = 1",
                      VALUES(value_text(fingerprint)));
    return queue_leave(queue, rc < 0 ? rc : queue_add_event(queue, &event, now_ms));
}
