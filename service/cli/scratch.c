#include "service/cli/scratch.h"

#include "service/common/file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SCRATCH_PREFIX "noctule-step-"

/* Before the lock, another step may remove the new folder. Returns -EAGAIN then, and the caller
 * creates another one. */
static int
scratch_lock(struct scratch *scratch)
{
    struct stat open_one, named;
    scratch->fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (scratch->fd < 0)
        return errno == ENOENT ? -EAGAIN : -errno;
    if (flock(scratch->fd, LOCK_EX | LOCK_NB) != 0 || fstat(scratch->fd, &open_one) != 0 ||
        stat(scratch->path, &named) != 0 || open_one.st_ino != named.st_ino) {
        close(scratch->fd);
        return -EAGAIN;
    }
    return 0;
}

static int
scratch_make(struct scratch *scratch, const char *where)
{
    int rc;
    do {
        free(scratch->path);
        if (asprintf(&scratch->path, "%s/" SCRATCH_PREFIX "XXXXXX", where) < 0) {
            scratch->path = NULL;
            return -ENOMEM;
        }
        rc = mkdtemp(scratch->path) ? scratch_lock(scratch) : -errno;
    } while (rc == -EAGAIN);
    if (rc) {
        free(scratch->path);
        scratch->path = NULL;
    }
    return rc;
}

const char *
scratch_where(const char *given)
{
    const char *where = given ? given : getenv("TMPDIR");
    return where && *where ? where : "/tmp";
}

static void
scratch_sweep(const char *where)
{
    DIR *entries;
    if (file_open_directory(AT_FDCWD, where, 0, &entries) != 0)
        return;
    for (const struct dirent *entry; (entry = readdir(entries));) {
        struct stat status;
        const int base = dirfd(entries);
        const int fd = strncmp(entry->d_name, SCRATCH_PREFIX, sizeof SCRATCH_PREFIX - 1) == 0
                           ? openat(base, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                           : -1;
        if (fd < 0)
            continue;
        if (fstat(fd, &status) == 0 && status.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
            file_remove(base, entry->d_name, NULL);
        close(fd);
    }
    closedir(entries);
}

int
scratch_open(struct scratch *scratch, const char *where, struct error *error)
{
    char what[400], *real = realpath(where, NULL);
    *scratch = (struct scratch){0};
    int rc = real ? 0 : -errno;
    if (rc == 0) {
        scratch_sweep(real);
        rc = scratch_make(scratch, real);
    }
    free(real);
    if (rc == 0 && asprintf(&scratch->results, "%s/results", scratch->path) < 0) {
        scratch->results = NULL;
        rc = -ENOMEM;
    }
    if (rc == 0 && asprintf(&scratch->programs, "%s/programs", scratch->path) < 0) {
        scratch->programs = NULL;
        rc = -ENOMEM;
    }
    snprintf(what, sizeof what, "make a folder in %.300s", where);
    return rc ? error_set_system(error, rc, what) : 0;
}

void
scratch_clear(const struct scratch *scratch)
{
    if (scratch->results)
        file_remove(AT_FDCWD, scratch->results, NULL);
}

void
scratch_close(struct scratch *scratch)
{
    if (scratch->path) {
        scratch_clear(scratch);
        if (scratch->programs)
            file_remove(AT_FDCWD, scratch->programs, NULL);
        rmdir(scratch->path); /* a confined process must not call unlink first */
        close(scratch->fd);
    }
    free(scratch->results);
    free(scratch->programs);
    free(scratch->path);
    *scratch = (struct scratch){0};
}
