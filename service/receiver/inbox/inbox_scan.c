#include "service/receiver/inbox/inbox_scan.h"

#include "service/common/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/vfs.h>
#include <unistd.h>

/* --------------------------------------------------------------------------- rules ------ */

static bool
scan_ends_in(const char *name, const char *suffix)
{
    size_t length = strlen(name), tail = strlen(suffix);
    return length >= tail && strcasecmp(name + length - tail, suffix) == 0;
}

bool
scan_ignores(const char *name)
{
    return name[0] == '.' || scan_ends_in(name, ".part") || scan_ends_in(name, ".tmp") ||
           scan_ends_in(name, ".partial");
}

bool
scan_is_within(const char *path, const char *above)
{
    size_t length = strlen(above);
    while (length > 0 && above[length - 1] == '/')
        length--;
    return strncmp(path, above, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

const char *
scan_conflict(const char *inbox, const char *root)
{
    static const char *const own[] = {LAYOUT_INCOMING, LAYOUT_SERIES, LAYOUT_QUARANTINE, LAYOUT_JOBS,
                                      LAYOUT_OUTBOX,   LAYOUT_RUN,    LAYOUT_PROGRAMS};
    if (scan_is_within(root, inbox))
        return "it contains the root folder, and Noctule would import its own files";
    if (!scan_is_within(inbox, root))
        return NULL;
    const char *below = inbox + strlen(root);
    below += strspn(below, "/");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (scan_is_within(below, own[i]))
            return "it is in one of the root's own folders";
    }
    return NULL;
}

/* --------------------------------------------------------------------------- steps ------ */

static int
open_inbox(const struct scan_step *step)
{
    int fd = open(step->inbox, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Opens the inbox itself. Creates it if it is missing. */
static int
enter_inbox(struct scan_step *step)
{
    int fd = open_inbox(step);
    if (fd == -ENOENT) {
        int error = file_make_path(step->inbox);
        if (error)
            return error;
        step->made = true;
        fd = open_inbox(step);
    }
    if (fd < 0)
        return fd;
    char inbox[PATH_MAX], root[PATH_MAX];
    int error = 0;
    if (!realpath(step->inbox, inbox) || !realpath(step->root, root))
        error = -errno;
    else if ((step->conflict = scan_conflict(inbox, root)))
        error = -EINVAL;
    if (error)
        close(fd);
    return error ? error : fd;
}

/* Returns whether all changes of the file system pass through this kernel, so that inotify reports them. */
static bool
scan_is_local(int folder)
{
    static const uint32_t local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
                                     TMPFS_MAGIC,      OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1 /* ZFS */};
    struct statfs status;
    if (fstatfs(folder, &status) < 0)
        return false;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
        if ((uint32_t)status.f_type == local[i])
            return true;
    }
    return false;
}

static void
scan_enter(struct scan_step *step)
{
    int inbox = step->folder[0] ? open_inbox(step) : enter_inbox(step);
    int here = inbox < 0 ? inbox : file_open_below(inbox, step->folder, O_PATH | O_DIRECTORY);
    if (inbox >= 0)
        close(inbox);
    step->error = here < 0 ? here : file_open_directory(here, ".", 0, &step->directory);
    if (here >= 0)
        close(here);
    if (step->error)
        return;
    char path[PATH_MAX];
    if (!step->inotify)
        step->descriptor = -ENOSYS;
    else if (snprintf(path, sizeof path, "%s/%s", step->inbox, step->folder) >= (int)sizeof path)
        step->descriptor = -ENAMETOOLONG;
    else
        step->descriptor = inotify_watch(step->inotify, path);
    step->remote = !scan_is_local(dirfd(step->directory));
}

static void
scan_look(int base, const char *name, struct scan_found *found)
{
    struct stat status;
    if (fstatat(base, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        found->error = -errno;
        return;
    }
    found->mode = status.st_mode;
    file_stamp_from(&status, &found->stamp);
}

static void
scan_read_on(struct scan_step *step)
{
    while (step->count < SCAN_STEP) {
        errno = 0;
        const struct dirent *entry = readdir(step->directory);
        if (!entry) {
            step->error = -errno;
            closedir(step->directory);
            step->directory = NULL;
            return;
        }
        if (scan_ignores(entry->d_name))
            continue;
        char *path;
        if (asprintf(&path, "%s%s%s", step->folder, *step->folder ? "/" : "", entry->d_name) < 0)
            continue; /* the next sweep finds it again */
        struct scan_found *found = &step->found_files[step->count];
        *found = (struct scan_found){.relative = path};
        scan_look(dirfd(step->directory), entry->d_name, found);
        step->count++;
    }
}

void
scan_run(struct scan_step *step)
{
    switch (step->kind) {
    case SCAN_ENTER:
        scan_enter(step);
        break;
    case SCAN_READ:
        scan_read_on(step);
        break;
    case SCAN_LOOK: {
        int inbox = open_inbox(step);
        for (size_t i = 0; i < step->count; i++) {
            if (inbox < 0) /* the inbox is missing: sweeps wait for it */
                step->found_files[i].error = -ENOENT;
            else
                scan_look(inbox, step->found_files[i].relative, &step->found_files[i]);
        }
        if (inbox >= 0)
            close(inbox);
    } break;
    }
}

void
scan_clear(struct scan_step *step)
{
    for (size_t i = 0; i < step->count; i++)
        free(step->found_files[i].relative);
    step->count = 0;
    free(step->folder);
    step->folder = NULL;
}
