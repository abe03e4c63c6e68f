/*
 * core.c - see core.h.
 *
 * When the disk is full or the database fails, no new work begins, the receiver pauses, and finished work waits in
 * memory. The probe retries everything each second. The first successful commit ends this state.
 */
#include "service/daemon/core.h"

#include "service/common/clock.h"
#include "service/common/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_MILLIS 1000

bool
core_closed(const struct core *core)
{
    return core->draining || core->disk_spent || core->db_failed;
}

bool
core_is_transient(int error)
{
    switch (-error) {
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case EROFS:
    case EBUSY:
    case ENOMEM:
    case ENFILE:
    case EMFILE:
        return true;
    default:
        return false;
    }
}

bool
core_failed(struct core *core, int error, const char *action)
{
    if (!error)
        return false;
    const char *text =
        error == -EUCLEAN ? "SQLite reports damage (if it persists, restore a backup)" : strerror(-error);
    /* While writes fail, each call fails every second: only the first is an error in the log. */
    log_write(
        core->db_failed ? LOG_DEBUG : LOG_ERROR, "queue.failed",
        LOG_FIELDS(LOG_STR("what", action), LOG_STR("error", text), LOG_STR("reason", queue_reason(core->queue))));
    core->probing = false;
    /* Damage may affect only this connection: the probe opens a new one. During a start it is taken as real. */
    if (!core->db_failed && (core_is_transient(error) || error == -EUCLEAN)) {
        core->db_failed = true;
        core->db_failed_since_ms = clock_unix_ms();
        snprintf(core->db_failure, sizeof core->db_failure, "%s", text);
    }
    if (core->db_failed)
        core->on_db_failure(core, text);
    if (core->db_failed && !uv_is_active((uv_handle_t *)&core->probe))
        uv_timer_start(&core->probe, core->probe.timer_cb, PROBE_MILLIS, 0);
    return true;
}

bool
core_change(struct core *core)
{
    return !core_failed(core, batch_begin(core->batch), "begin a transaction");
}

void
core_note(struct core *core, const char *kind, const char *detail)
{
    if (core_change(core))
        core_failed(core, queue_note(core->queue, kind, detail, clock_unix_ms()), "note an event");
}

void
core_note_death(struct core *core, const char *kind, const struct pool_gone *gone)
{
    char detail[160];
    snprintf(detail, sizeof detail, "%s%sstatus %d, signal %d", gone->why, *gone->why ? "; " : "",
             (int)gone->exit_status, gone->signal);
    core_note(core, kind, detail);
}

int32_t
core_count(int64_t count)
{
    return count < 0 ? 0 : count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

int64_t
core_ageing_ms(const struct core *core)
{
    return (int64_t)(core->conf->jobs.ageing_hours * 3600 * 1000);
}

char *
core_path(const struct core *core, const char *path)
{
    char *joined;
    if (*path == '/')
        return strdup(path);
    return asprintf(&joined, "%s/%s", core->root, path) < 0 ? NULL : joined;
}

const struct conf_inbox *
core_find_inbox(const struct conf *conf, const char *path, const char **rest)
{
    for (size_t i = 0; i < conf->inbox_count; i++) {
        const size_t length = strlen(conf->inboxes[i].path);
        if (strncmp(path, conf->inboxes[i].path, length) != 0 || path[length] != '/')
            continue;
        *rest = path + length + 1;
        return &conf->inboxes[i];
    }
    return NULL;
}

void
core_send_receiver(const struct core *core, struct proto_writer *writer)
{
    const int error = pool_send(core->pool, core->receiver, writer);
    if (error && error != -EPIPE)
        pool_kill(core->pool, core->receiver, "its missing input cannot be determined");
}
