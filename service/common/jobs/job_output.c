#include "service/common/jobs/job_output.h"

#include "base/durable.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".part"

/* A descriptor that a thread of its own syncs and closes. */
struct sync {
    int fd;
    bool is_folder;
    bool has_thread;
    pthread_t thread;
    int error; /* owned by the thread until it ends */
};

struct file {
    struct file *next;
    char *name, *part; /* final name, and hidden name until it is published */
    struct sync sync;
    bool finished; /* by its writer */
};

struct output {
    char *path;
    int folder;
    bool durable; /* on disk; otherwise no file is synced */
    /* Number of folders of the path, counted from the last, that this run created. */
    int made;
    struct sync parent;        /* contains the folder's entry */
    bool published;            /* files of this run may have their final names */
    pthread_mutex_t lock;      /* protects the list: its links and the `finished` flags */
    struct file *files, **end; /* in the order of creation */
};

static bool
is_part(const char *name)
{
    size_t length = strlen(name);
    return name[0] == '.' && length > sizeof SUFFIX && strcmp(name + length - (sizeof SUFFIX - 1), SUFFIX) == 0;
}

static bool
was_made(const struct output *output, const char *name)
{
    for (const struct file *file = output->files; file; file = file->next) {
        if (strcmp(file->name, name) == 0)
            return true;
    }
    return false;
}

/* Removes all files accepted by `chosen` that this run did not create. */
static int
sweep(const struct output *output, bool (*chosen)(const char *name))
{
    int copy = openat(output->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) {
        int error = -errno;
        if (copy >= 0)
            close(copy);
        return error;
    }
    int error = 0;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (chosen(entry->d_name) && !was_made(output, entry->d_name) &&
            unlinkat(output->folder, entry->d_name, 0) != 0 && errno != ENOENT)
            error = -errno;
    }
    closedir(entries);
    return error;
}

/* ---------------------------------------------------------------------------------- syncing -- */

/* For a file, syncs its data and size but not its times. For a folder, syncs everything. */
static void *
sync_and_close(void *argument)
{
    struct sync *sync = argument;
    do
        sync->error = (sync->is_folder ? fsync(sync->fd) : fdatasync(sync->fd)) != 0 ? -errno : 0;
    while (sync->error == -EINTR);
    int closed = durable_close(sync->fd);
    if (sync->error == 0)
        sync->error = closed;
    return NULL;
}

static void
sync_begin(struct sync *sync)
{
    sync->has_thread = pthread_create(&sync->thread, NULL, sync_and_close, sync) == 0;
    if (!sync->has_thread)
        sync_and_close(sync);
}

/* Returns 0, also if no sync was begun, or -errno if the data is not on disk. */
static int
sync_end(struct sync *sync)
{
    if (sync->has_thread)
        pthread_join(sync->thread, NULL);
    sync->has_thread = false;
    return sync->error;
}

/* ------------------------------------------------------------------------ opening, closing -- */

/* Syncs a new folder's entry in its parent. Removes the folder on an error. */
static int
sync_entry(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = folder < 0 ? -errno : durable_sync_folder(folder, "..");
    if (folder >= 0)
        close(folder);
    if (error)
        rmdir(path);
    return error;
}

/* Removes the last name of a path and the slashes before it. */
static void
cut_last(char *path)
{
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 0 && path[length - 1] == '/')
        length--;
    path[length] = '\0';
}

/* Removes a folder and its parents while they are empty, at most `count` folders. */
static void
remove_empty(const char *path, int count)
{
    char *copy = strdup(path);
    for (; copy && copy[0] && count > 0 && rmdir(copy) == 0; count--)
        cut_last(copy);
    free(copy);
}

/* Creates the missing folders of a path and syncs the entries of all but the last. Sets *made to
 * the number of new folders. On an error no new folder stays. */
static int
make_all(char *path, int *made)
{
    int rc = 0;
    *made = 0;
    for (char *at = path + 1; rc >= 0 && at[-1]; at++) {
        at = strchrnul(at, '/');
        const char end = *at;
        *at = '\0';
        const bool is_new = mkdir(path, 0750) == 0;
        rc = is_new || errno == EEXIST ? 0 : -errno;
        if (is_new && end)
            rc = sync_entry(path);
        if (rc < 0) {
            cut_last(path);
            remove_empty(path, *made);
        }
        *made += is_new;
        *at = end;
    }
    return rc;
}

/* Unlocks the folder. Removes the folders that this run created if they are empty. */
static void
output_release(struct output *output)
{
    sync_end(&output->parent);
    remove_empty(output->path, output->made);
    if (output->folder >= 0)
        close(output->folder);
    pthread_mutex_destroy(&output->lock);
    free(output->path);
    free(output);
}

static int
take_folder(struct output *output)
{
    output->folder = open(output->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (output->folder < 0)
        return -errno;
    if (faccessat(output->folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return -errno;
    /* File systems without flock are used without a lock. */
    if (flock(output->folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return -EBUSY;
    int error = sweep(output, is_part);
    if (error || !output->durable)
        return error;
    /* Sync the folder's entry, also of a folder that existed: a killed run may have left it unsynced. If the parent of
     * an existing folder cannot be opened for want of rights, continue without. */
    struct sync *parent = &output->parent;
    parent->fd = openat(output->folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent->fd < 0)
        return output->made > 0 || errno != EACCES ? -errno : 0;
    parent->is_folder = true;
    sync_begin(parent);
    return 0;
}

int
output_open(const char *path, bool durable, struct output **output)
{
    struct output *o = calloc(1, sizeof *o);
    char *copy = strdup(path);
    int made, error = o && copy ? make_all(copy, &made) : -ENOMEM;
    if (error) {
        free(o);
        free(copy);
        return error;
    }
    *o = (struct output){.path = copy, .durable = durable, .made = made, .end = &o->files};
    pthread_mutex_init(&o->lock, NULL);
    error = take_folder(o);
    if (error) {
        output_release(o);
        return error;
    }
    *output = o;
    return 0;
}

static void
remove_made(const struct output *output)
{
    for (const struct file *file = output->files; file; file = file->next) {
        unlinkat(output->folder, file->part, 0);
        if (output->published)
            unlinkat(output->folder, file->name, 0);
    }
}

static void
file_free(struct file *file)
{
    free(file->name);
    free(file->part);
    free(file);
}

/* All writers must have ended. */
static void
forget_made(struct output *output)
{
    while (output->files) {
        struct file *file = output->files;
        output->files = file->next;
        sync_end(&file->sync);
        if (!file->finished)
            close(file->sync.fd);
        file_free(file);
    }
    output->end = &output->files;
}

void
output_close(struct output *output)
{
    if (!output)
        return;
    remove_made(output);
    forget_made(output);
    output_release(output);
}

/* ------------------------------------------------------------------------------------ files - */

int
output_create(struct output *output, const char *name, int *fd)
{
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        return -ENOMEM;
    file->name = strdup(name);
    if (!file->name || asprintf(&file->part, ".%s" SUFFIX, name) < 0) {
        file->part = NULL;
        file_free(file);
        return -ENOMEM;
    }
    *fd = openat(output->folder, file->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (*fd < 0) {
        int rc = -errno;
        file_free(file);
        return rc;
    }
    file->sync.fd = *fd;
    pthread_mutex_lock(&output->lock);
    *output->end = file;
    output->end = &file->next;
    pthread_mutex_unlock(&output->lock);
    return 0;
}

char *
output_part_path(const struct output *output, const char *name)
{
    char *path;
    return asprintf(&path, "%s/.%s" SUFFIX, output->path, name) < 0 ? NULL : path;
}

void
output_finish(struct output *output, int fd)
{
    /* The writer of this file has just ended. An earlier file may have had the same descriptor. */
    pthread_mutex_lock(&output->lock);
    struct file *file = output->files;
    while (file->finished || file->sync.fd != fd)
        file = file->next;
    file->finished = true;
    pthread_mutex_unlock(&output->lock);
    struct sync *sync = &file->sync;
    if (output->durable)
        sync_begin(sync);
    else
        sync->error = durable_close(sync->fd);
}

int
output_sync_all(struct output *output, const char **name)
{
    int error = sync_end(&output->parent);
    *name = "the folder";
    for (struct file *file = output->files; file; file = file->next) {
        int own = file->finished ? sync_end(&file->sync) : -EBUSY;
        if (own && error == 0) {
            error = own;
            *name = file->name;
        }
    }
    return error;
}

int
output_publish(struct output *output, bool (*is_result)(const char *name))
{
    const char *name;
    int error = output_sync_all(output, &name);
    output->published = error == 0;
    for (const struct file *file = output->files; file && error == 0; file = file->next)
        if (renameat(output->folder, file->part, output->folder, file->name) != 0)
            error = -errno;
    if (error == 0 && is_result)
        error = sweep(output, is_result);
    if (error == 0 && output->durable && fsync(output->folder) != 0)
        error = -errno;
    if (error) {
        remove_made(output);
        return error;
    }
    forget_made(output);
    output->made = 0;
    return 0;
}
