#include "service/daemon/retention/remover.h"

#include "base/durable.h"
#include "service/common/file_ops.h"
#include "service/common/layout.h"
#include "service/daemon/core.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ASIDE_NAME 40

static bool
remover_is_original(const struct remover_item *item)
{
    return item->removal.path[0] == '/';
}

void
remover_take(struct remover_item *item, const struct queue_removal *removal, const struct conf *conf)
{
    *item = (struct remover_item){.removal = *removal, .folder = -1};
    if (!remover_is_original(item))
        return;
    const struct conf_inbox *inbox = core_find_inbox(conf, removal->path, &item->relative);
    item->gone = !inbox; /* a path outside of all inboxes stays */
    if (inbox)
        item->folder = open(inbox->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (inbox && item->folder < 0)
        item->error = -errno;
}

void
remover_release(struct remover_item *item)
{
    if (item->folder >= 0)
        close(item->folder);
    queue_removal_clear(&item->removal);
}

/* Deletes the file if it is the one that was received: not a new file of that name, and not rewritten since. */
static int
remover_delete_original(const struct remover_item *item)
{
    const char *name;
    struct stat status;
    const int folder = file_open_parent(item->folder, item->relative, &name);
    if (folder < 0)
        return folder;
    int error = fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
    if (!error) {
        const int64_t written_ms = (int64_t)status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec / 1000000;
        const bool is_unchanged =
            S_ISREG(status.st_mode) && status.st_size == item->removal.size && written_ms <= item->removal.taken_ms;
        if (is_unchanged && unlinkat(folder, name, 0) != 0)
            error = -errno;
    }
    close(folder);
    return error;
}

void
remover_set_aside(const char *root, struct remover_item *item)
{
    const char *path = item->removal.path;
    char aside[ASIDE_NAME];
    if (remover_is_original(item))
        return;
    /* The path cannot lead out of the root. The service never writes such a path. */
    if (!strchr(path, '/') || strstr(path, "..") || strstr(path, "//") || path[strlen(path) - 1] == '/') {
        item->error = -EINVAL;
        return;
    }
    const int base = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base < 0) {
        item->error = -errno;
        return;
    }
    snprintf(aside, sizeof aside, LAYOUT_REMOVED "/%" PRId64, item->removal.id);
    /* A daemon that was killed may have renamed it before. */
    if (renameat(base, path, base, aside) != 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
        item->error = -errno;
    close(base);
}

static int
remover_delete_item(int base, const struct remover_item *item, atomic_bool *stop)
{
    const char *path = item->removal.path;
    char aside[ASIDE_NAME], folder[256];
    /* Sync the rename before its row is deleted; otherwise a power failure could restore the files. */
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    const int error = durable_sync_folder(base, folder);
    if (!error && strchr(folder, '/'))
        unlinkat(base, folder, AT_REMOVEDIR); /* a day's folder in quarantine/, once it is empty */
    snprintf(aside, sizeof aside, LAYOUT_REMOVED "/%" PRId64, item->removal.id);
    return error && error != -ENOENT ? error : file_remove(base, aside, stop);
}

void
remover_delete(const char *root, struct remover_item *items, size_t count, atomic_bool *stop)
{
    const int base = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int failed = base < 0 ? -errno : 0;
    for (size_t i = 0; i < count && !atomic_load(stop); i++) {
        struct remover_item *item = &items[i];
        if (item->error || item->gone)
            continue;
        item->error = failed                      ? failed
                      : remover_is_original(item) ? remover_delete_original(item)
                                                  : remover_delete_item(base, item, stop);
        item->gone = item->error == 0 || item->error == -ENOENT;
    }
    if (base >= 0)
        close(base);
}
