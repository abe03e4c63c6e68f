#include "service/common/program/work_folder.h"

#include "base/durable.h"
#include "base/test_hook.h"
#include "service/common/file_ops.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LEVELS    64
#define MAX_TEMPORARY 1000000 /* entries of "tmp" */

int
work_folder_make(const char *path)
{
    static const char *const names[] = {"in", "out", "tmp", "tmp/shm"};
    if (mkdir(path, 0750) < 0)
        return -errno;
    const int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = folder < 0 ? -errno : 0;
    for (size_t i = 0; rc == 0 && i < sizeof names / sizeof *names; i++)
        rc = mkdirat(folder, names[i], 0750) < 0 ? -errno : 0;
    if (folder >= 0)
        close(folder);
    return rc;
}

/* ------------------------------------------------------------------------------- walking ---- */

struct work_walk {
    struct work_usage *usage;
    int64_t entries, max_entries;
    bool unlocks; /* gives each folder the mode that its removal needs */
};

static void
work_walk(int base, const char *name, int level, struct work_walk *walk)
{
    struct stat status;
    DIR *directory;
    if (walk->unlocks)
        (void)!fchmodat(base, name, 0700, 0);
    if (level > MAX_LEVELS)
        walk->usage->unbounded = true;
    if (level > MAX_LEVELS || file_open_directory(base, name, O_NOFOLLOW, &directory) != 0)
        return;
    for (const struct dirent *entry; !walk->usage->unbounded && (entry = readdir(directory));) {
        const char *below = entry->d_name;
        if (strcmp(below, ".") == 0 || strcmp(below, "..") == 0 ||
            fstatat(dirfd(directory), below, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        walk->entries++;
        if (S_ISDIR(status.st_mode))
            work_walk(dirfd(directory), below, level + 1, walk);
        else
            walk->usage->bytes += status.st_size;
        walk->usage->unbounded = walk->usage->unbounded || walk->entries > walk->max_entries;
    }
    closedir(directory);
}

void
work_folder_measure(const char *path, int64_t entries, struct work_usage *usage)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *usage = (struct work_usage){0};
    if (folder < 0)
        return;
    struct work_walk walk = {.usage = usage, .max_entries = entries};
    work_walk(folder, "out", 0, &walk);
    usage->entries = walk.entries;
    walk = (struct work_walk){.usage = usage, .max_entries = MAX_TEMPORARY};
    work_walk(folder, "tmp", 0, &walk);
    close(folder);
}

int
work_folder_remove(const char *path)
{
    int rc = file_remove(AT_FDCWD, path, NULL);
    if (rc != -EACCES)
        return rc;
    struct work_usage usage = {0};
    struct work_walk walk = {.usage = &usage, .max_entries = INT64_MAX, .unlocks = true};
    work_walk(AT_FDCWD, path, 0, &walk);
    return file_remove(AT_FDCWD, path, NULL);
}

/* ------------------------------------------------------------------------------ finishing ---- */

/* Collects the files of the result in the folder "done". */
static int
work_collect(int folder, bool well, const struct output_tail *tail)
{
    char *text = malloc(LIMIT_PROGRAM_OUTPUT_BYTES + 1);
    if (!text)
        return -ENOMEM;
    const size_t size = output_tail_copy(tail, text);
    int rc = mkdirat(folder, "done", 0750) < 0 ? -errno : 0;
    const int done = rc ? -1 : openat(folder, "done", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!rc)
        rc = done < 0 ? -errno : durable_write(done, "output.txt", text, size, 0640, DURABLE_NEW);
    if (!rc && well && renameat(folder, "mask", done, "mask") < 0)
        rc = -errno;
    if (!rc && fsync(done) < 0)
        rc = -errno;
    if (done >= 0)
        close(done);
    free(text);
    return rc;
}

int
work_folder_finish(const char *path, const char *result, bool well, const struct output_tail *tail)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    int rc = work_collect(folder, well, tail);
    if (!rc)
        rc = file_remove(AT_FDCWD, result, NULL);
    crash_point("broker_before_rename");
    if (!rc && renameat(folder, "done", AT_FDCWD, result) < 0)
        rc = -errno;
    crash_point("broker_after_rename");
    close(folder);
    char *copy = rc ? NULL : strdup(result);
    if (!rc)
        rc = copy ? durable_sync_folder(AT_FDCWD, dirname(copy)) : -ENOMEM;
    free(copy);
    return rc;
}
