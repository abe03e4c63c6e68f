/*
 * orphans.c - adopts files in quarantine/ without a row, once at start. They exist if a process was stopped after it
 * moved a file and before it reported that. Each gets the row it would have had, from the reason file. Declared in
 * daemon.h.
 */
#include "service/daemon/daemon.h"

#include "base/text.h"
#include "service/common/clock.h"
#include "service/common/file_ops.h"
#include "service/common/layout.h"
#include "service/common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REASON_ENDING ".reason.json"
#define REASON_SIZE   8192 /* more than the receiver writes */

/* Skips a folder that cannot be read: the next start adopts its files. */
static int
orphans_adopt_day(struct core *core, int quarantine, const char *day)
{
    DIR *files;
    int error = 0;
    if (file_open_directory(quarantine, day, O_NOFOLLOW, &files))
        return 0;
    for (const struct dirent *entry; !error && (entry = readdir(files));) {
        char path[PATH_MAX], file[NAME_MAX + sizeof REASON_ENDING], reason[REASON_SIZE];
        const char *name = entry->d_name;
        if (*name == '.' || text_ends_in(name, REASON_ENDING))
            continue;
        snprintf(path, sizeof path, LAYOUT_QUARANTINE "/%s/%s", day, name);
        const int known = queue_has_quarantine(core->queue, path);
        error = known < 0 ? known : 0;
        if (known)
            continue;
        /* The receiver's reason file; "" if it was not written in time. */
        snprintf(file, sizeof file, "%s" REASON_ENDING, name);
        int fd = openat(dirfd(files), file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        ssize_t length = fd < 0 ? 0 : read(fd, reason, sizeof reason - 1);
        reason[length > 0 ? length : 0] = 0;
        if (fd >= 0)
            close(fd);
        log_warn("file.adopted", LOG_STR("path", path));
        error = queue_adopt_quarantine(core->queue, path, reason, clock_unix_ms());
    }
    closedir(files);
    return error;
}

int
orphans_adopt(struct core *core)
{
    char *path = core_path(core, LAYOUT_QUARANTINE);
    DIR *days;
    int error = path ? file_open_directory(AT_FDCWD, path, 0, &days) : -ENOMEM;
    free(path);
    if (error)
        return error == -ENOMEM ? error : 0;
    for (const struct dirent *day; !error && (day = readdir(days));) {
        if (day->d_name[0] != '.')
            error = orphans_adopt_day(core, dirfd(days), day->d_name);
    }
    closedir(days);
    return error;
}
