#include "service/daemon/spool.h"

#include "base/text.h"
#include "service/common/file_ops.h"
#include "service/common/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int
spool_make(const char *root, struct error *error)
{
    static const char *const folders[] = {LAYOUT_INCOMING, LAYOUT_SERIES,   LAYOUT_QUARANTINE, LAYOUT_JOBS,
                                          LAYOUT_OUTBOX,   LAYOUT_RELEASED, LAYOUT_REMOVED,    LAYOUT_PULL,
                                          LAYOUT_RUN,      LAYOUT_PROGRAMS, LAYOUT_CONVERTED};
    int rc = file_make_path(root);
    int base = rc ? -1 : open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!rc && base < 0)
        rc = -errno;
    for (size_t i = 0; !rc && i < sizeof folders / sizeof folders[0]; i++)
        rc = mkdirat(base, folders[i], strcmp(folders[i], LAYOUT_PULL) == 0 ? 0700 : 0750) == 0 || errno == EEXIST
                 ? 0
                 : -errno;
    /* A file system that is mounted read-only may become writable later. */
    if (!rc && faccessat(base, ".", R_OK | W_OK | X_OK, AT_EACCESS) < 0 && errno != EROFS)
        rc = -errno;
    if (rc == -EACCES)
        error_set(error, rc, CODE_NONE,
                  "%s cannot be used as the root: %s; it must belong to user %u, as which noctuled runs", root,
                  strerror(-rc), (unsigned)geteuid());
    else if (rc)
        error_set(error, rc, CODE_NONE, "%s cannot be used as the root: %s", root, strerror(-rc));
    if (base >= 0)
        close(base);
    return rc;
}

static int
spool_take_lock(const char *root, int fd, struct error *error)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    const int rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
    return error_set(
        error, rc, CODE_NONE,
        rc == -EBUSY ? "another noctuled already uses %s; stop it, or set another root" : "%s cannot be locked", root);
}

int
spool_lock(const char *root, int fds[2], struct error *error)
{
    char *path = NULL;
    fds[0] = fds[1] = -1;
    if (asprintf(&path, "%s/" LAYOUT_LOCK, root) < 0)
        return -ENOMEM;
    fds[0] = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fds[0] < 0 && errno == EROFS)
        fds[0] = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int rc = fds[0] < 0 ? -errno : 0;
    if (rc)
        error_set(error, rc, CODE_NONE, "%s cannot be opened: %s", path, strerror(-rc));
    free(path);
    if (rc)
        return rc;
    fds[1] = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rc = spool_take_lock(root, fds[0], error);
    if (!rc && fds[1] >= 0) {
        rc = spool_take_lock(root, fds[1], error);
        if (rc && rc != -EBUSY) {
            /* Some file systems cannot lock folders: there only the lock file protects the root. */
            *error = (struct error){0};
            rc = 0;
        }
    }
    if (rc)
        spool_unlock(fds);
    return rc;
}

void
spool_unlock(const int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

char *
spool_job_file(const char *root, int64_t job)
{
    char *path;
    return asprintf(&path, "%s/" LAYOUT_JOBS "/%" PRId64 ".job", root, job) < 0 ? NULL : path;
}

char *
spool_output_folder(const char *root, int64_t job)
{
    char *path;
    return asprintf(&path, "%s/" LAYOUT_OUTBOX "/%" PRId64, root, job) < 0 ? NULL : path;
}

/* Removes the files with this ending; does nothing if the folder cannot be read. */
static void
spool_remove_files(const char *folder, const char *ending)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return;
    const struct dirent *entry;
    while ((entry = readdir(directory))) {
        if (text_ends_in(entry->d_name, ending) && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
}

void
spool_sweep_incoming(const char *root)
{
    char *folder;
    if (asprintf(&folder, "%s/" LAYOUT_INCOMING, root) < 0)
        return;
    spool_remove_files(folder, ".part");
    free(folder);
}

static void
spool_clear_output(const char *root, int64_t job, const char *ending)
{
    char *folder = spool_output_folder(root, job);
    if (!folder)
        return;
    spool_remove_files(folder, ending);
    rmdir(folder); /* keeps a folder that is not empty */
    free(folder);
}

void
spool_remove_output(const char *root, int64_t job)
{
    spool_clear_output(root, job, "");
}

void
spool_sweep_job(const char *root, int64_t job)
{
    spool_clear_output(root, job, ".part");
    char *file = spool_job_file(root, job);
    if (file)
        unlink(file);
    free(file);
}

void
spool_sweep_jobs(const char *root)
{
    char *folder;
    if (asprintf(&folder, "%s/" LAYOUT_JOBS, root) < 0)
        return;
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        char *end;
        int64_t job = strtoll(entry->d_name, &end, 10);
        if (job > 0 && strcmp(end, ".job") == 0)
            spool_sweep_job(root, job);
    }
    if (directory)
        closedir(directory);
    spool_remove_files(folder, ".part");
    free(folder);
}

int
spool_free_mib(const char *root, double *free_mib)
{
    struct statvfs status;
    if (statvfs(root, &status) < 0)
        return -errno;
    *free_mib = (double)status.f_bavail * (double)status.f_frsize / (1 << 20);
    return 0;
}
