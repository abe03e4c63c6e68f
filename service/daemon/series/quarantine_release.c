/*
 * quarantine_release.c - quarantined files that an operator releases or forgets. Declared in series.h.
 *
 * The order is: link in released/, synced; the row and its event; deletion of the file in quarantine/ by the remover.
 * If the daemon is killed in between, the file is in both folders and is imported again.
 */
#include "service/daemon/series/series.h"

#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
released_link(const struct core *core, const char *path, int64_t id)
{
    char name[32];
    int root = open(core->conf->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    snprintf(name, sizeof name, LAYOUT_RELEASED "/%" PRId64, id);
    int error = linkat(root, path, root, name, 0) < 0 && errno != EEXIST ? -errno : 0;
    int folder = error ? -1 : openat(root, LAYOUT_RELEASED, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!error && (folder < 0 || fsync(folder) < 0))
        error = -errno;
    if (folder >= 0)
        close(folder);
    close(root);
    return error;
}

int
quarantine_release_link(struct core *core, int64_t id, const char *by)
{
    struct queue_released file;
    int error = queue_find_released(core->queue, id, &file);
    if (!error && !file.removed && *file.path)
        error = released_link(core, file.path, id);
    queue_released_clear(&file);
    crash_point("daemon_after_release_link");
    return error ? error : queue_release_quarantine(core->queue, id, by, clock_unix_ms());
}

int
quarantine_release_find(struct core *core, const char *source, struct released *released)
{
    struct queue_released file;
    const size_t length = strlen(RELEASED_SOURCE);
    *released = (struct released){0};
    if (strncmp(source, RELEASED_SOURCE, length) != 0)
        return 0;
    const int64_t id = strtoll(source + length, NULL, 10);
    int error = queue_find_released(core->queue, id, &file);
    if (error)
        return error == -ENOENT ? 0 : error;
    const bool sent = strncmp(file.original_path, "scu:", 4) == 0;
    const size_t sender = strcspn(file.original_path, "/");
    const char *rest;
    const struct conf_inbox *inbox = core_find_inbox(core->conf, file.original_path, &rest);
    released->source = sent    ? strndup(file.original_path, sender)
                       : inbox ? layout_inbox_source(inbox->path)
                               : strdup(source);
    released->sender = sent ? strndup(file.original_path + 4, sender - 4) : strdup("");
    released->called_ae = strdup(file.called_ae);
    queue_released_clear(&file);
    if (!released->source || !released->sender || !released->called_ae) {
        quarantine_release_clear(released);
        return -ENOMEM;
    }
    released->id = id;
    return 0;
}

void
quarantine_release_clear(struct released *released)
{
    free(released->source);
    free(released->sender);
    free(released->called_ae);
    *released = (struct released){0};
}
