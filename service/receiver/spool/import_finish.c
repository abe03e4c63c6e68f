/* import_finish.c - see import.h: move or delete originals. */
#include "service/receiver/spool/import.h"

#include "base/durable.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/receiver/inbox/inbox_scan.h"
#include "service/receiver/spool/replaced.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CLASHES 10000 /* names tried for a moved original */

static int
copy_across(int from_folder, const char *name, int to_folder, const char *target)
{
    char part[NAME_MAX + 1];
    if (snprintf(part, sizeof part, ".%s.part", target) >= (int)sizeof part)
        return -ENAMETOOLONG;
    int from = openat(from_folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return -errno;
    struct stat status;
    int error = fstat(from, &status) == 0 ? 0 : -errno;
    int to = -1;
    if (!error) {
        to = durable_create(to_folder, part, 0640);
        error = to < 0 ? to : 0;
    }
    if (!error) {
        bool read_failed;
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, status.st_mtim};
        error = file_copy(from, to, &read_failed);
        if (!error && futimens(to, times) != 0)
            error = -errno;
        error = durable_finish(to, error);
        if (!error)
            error = durable_rename_new(to_folder, part, to_folder, target);
        if (error)
            unlinkat(to_folder, part, 0);
    }
    close(from);
    return error;
}

/* Moves within a file system or to another one. Returns -EEXIST if the name is taken. */
static int
move_to_name(int from_folder, const char *name, int to_folder, const char *target)
{
    int error = durable_rename_new(from_folder, name, to_folder, target);
    const bool copies = error == -EXDEV;
    if (copies)
        error = copy_across(from_folder, name, to_folder, target);
    if (!error && fsync(to_folder) != 0)
        error = -errno;
    if (!error && copies && unlinkat(from_folder, name, 0) != 0)
        error = -errno;
    return error ? error : durable_sync_folder(from_folder, ".");
}

/* Opens the folder below move_to with the same relative path as the original's below the inbox.
 * Creates it if it is missing. */
static int
open_target(const struct import_item *item, const char *move_to)
{
    char path[PATH_MAX];
    const char *slash = strrchr(item->relative, '/');
    const int length = slash ? (int)(slash - item->relative) : 0;
    if (snprintf(path, sizeof path, "%s/%.*s", move_to, length, item->relative) >= (int)sizeof path)
        return -ENAMETOOLONG;
    int error = file_make_path(path);
    if (error)
        return error;
    /* A link could lead from move_to back into the inbox. The file would be found and moved again and again. */
    char inbox[PATH_MAX], target[PATH_MAX];
    if (!realpath(item->folder, inbox) || !realpath(path, target) || scan_is_within(target, inbox))
        return -ELOOP;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int
finish_in(int folder, const char *name, const struct import_item *item, const char *move_to)
{
    struct stat status;
    struct file_stamp stamp;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    file_stamp_from(&status, &stamp);
    if (!file_stamp_equal(&stamp, &item->stamp))
        return -ESTALE;
    if (item->after == CONF_MOVE && item->outcome != IMPORT_QUARANTINED) {
        int target = open_target(item, move_to);
        if (target < 0)
            return target;
        char other[NAME_MAX + 1];
        int error = move_to_name(folder, name, target, name);
        for (int i = 1; error == -EEXIST && i < MAX_CLASHES; i++)
            error = snprintf(other, sizeof other, "%s.%d", name, i) >= (int)sizeof other
                        ? -ENAMETOOLONG
                        : move_to_name(folder, name, target, other);
        close(target);
        return error;
    }
    return unlinkat(folder, name, 0) == 0 ? 0 : -errno;
}

void
import_retire(struct store *store, const struct import_report *report)
{
    char folder[IMPORT_PATH];
    if (report->replaced == 0)
        return;
    snprintf(folder, sizeof folder, LAYOUT_SERIES "/%s", report->series_uid);
    int error = replaced_retire(store, folder, report->sop_instance_uid, report->replaced);
    if (error)
        log_warn("instance.kept", LOG_STR("sop", report->sop_instance_uid), LOG_STR("error", strerror(-error)));
}

bool
import_leaves(const struct import_item *item)
{
    switch (item->outcome) {
    case IMPORT_ARRIVED:
        return item->after == CONF_KEEP;
    case IMPORT_QUARANTINED:
        return item->after == CONF_KEEP || !item->report.path[0];
    case IMPORT_OWN_RESULT:
        return item->after != CONF_MOVE;
    case IMPORT_UNREADABLE:
    case IMPORT_CHANGED:
    case IMPORT_GONE:
    case IMPORT_RETRY:
        return true;
    }
    return true;
}

int
import_finish(const struct import_item *item, const char *move_to)
{
    if (import_leaves(item))
        return 0;
    int base = open(item->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return -errno;
    const char *name;
    int folder = file_open_parent(base, item->relative, &name);
    close(base);
    if (folder < 0)
        return folder;
    int error = finish_in(folder, name, item, move_to);
    close(folder);
    return error;
}
