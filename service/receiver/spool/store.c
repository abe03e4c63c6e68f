#include "service/receiver/spool/store.h"

#include "base/durable.h"
#include "base/text.h"
#include "service/common/layout.h"
#include "service/common/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DURABLE_FOLDERS 64

struct store {
    int root;
    char *path;
    char run[40]; /* prefix of this run's files in incoming/ */
    atomic_uint_least64_t created;
    atomic_bool digests; /* whether digests are wanted */
    struct folder_sync *folders;

    /* The latest folders whose own entries are known to be on disk. A further file in them needs one sync, not two. */
    pthread_mutex_t lock;
    char durable[DURABLE_FOLDERS][NAME_MAX + 1];
    size_t next_durable;
    /* Number of folders created; an earlier sync does not cover a folder created since. */
    uint64_t made;
};

static char *
find_durable(struct store *store, const char *folder)
{
    for (size_t i = 0; i < DURABLE_FOLDERS; i++) {
        if (strcmp(store->durable[i], folder) == 0)
            return store->durable[i];
    }
    return NULL;
}

/* ------------------------------------------------------------------ opening, closing ------ */

int
store_open(const char *root, struct store **out)
{
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return -ENOMEM;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(store->run, sizeof store->run, "%" PRIx64 "%09ld-%d-", (uint64_t)now.tv_sec, now.tv_nsec, (int)getpid());
    int error = -ENOMEM;
    pthread_mutex_init(&store->lock, NULL); /* cannot fail */
    store->path = strdup(root);
    if (!store->path)
        goto fail_path;
    store->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->root < 0) {
        error = -errno;
        goto fail_root;
    }
    error = folder_sync_open(store->root, durable_sync_folder, &store->folders);
    if (error)
        goto fail_root;
    *out = store;
    return 0;

fail_root:
    if (store->root >= 0)
        close(store->root);
    free(store->path);
fail_path:
    pthread_mutex_destroy(&store->lock);
    free(store);
    return error;
}

void
store_close(struct store *store)
{
    if (!store)
        return;
    folder_sync_close(store->folders);
    close(store->root);
    free(store->path);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

const char *
store_root(const struct store *store)
{
    return store->path;
}

int
store_fd(const struct store *store)
{
    return store->root;
}

void
store_want_digests(struct store *store, bool wanted)
{
    atomic_store(&store->digests, wanted);
}

bool
store_wants_digests(const struct store *store)
{
    return atomic_load(&store->digests);
}

/* Creates each folder of a relative path. */
static int
make_folder(struct store *store, const char *folder)
{
    char path[NAME_MAX + 1];
    for (const char *at = folder;; at++) {
        at += strcspn(at, "/");
        if (snprintf(path, sizeof path, "%.*s", (int)(at - folder), folder) >= (int)sizeof path)
            return -ENAMETOOLONG;
        if (mkdirat(store->root, path, 0750) == 0) {
            pthread_mutex_lock(&store->lock);
            store->made++;
            char *durable = find_durable(store, path);
            if (durable)
                durable[0] = '\0';
            pthread_mutex_unlock(&store->lock);
        } else if (errno != EEXIST) {
            return -errno;
        }
        if (!*at)
            return 0;
    }
}

/* Opens a folder. Creates it if it is missing, which is rare. */
static int
store_open_folder(struct store *store, const char *folder)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(store->root, folder, flags);
    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? -errno : fd;
    int error = make_folder(store, folder);
    if (error)
        return error;
    fd = openat(store->root, folder, flags);
    return fd < 0 ? -errno : fd;
}

static int
remove_left_overs(struct store *store)
{
    DIR *directory;
    int error = make_folder(store, LAYOUT_INCOMING);
    if (!error)
        error = file_open_directory(store->root, LAYOUT_INCOMING, 0, &directory);
    if (error)
        return error;
    int64_t removed = 0;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        const char *name = entry->d_name;
        if (text_ends_in(name, ".part") && strncmp(name, store->run, strlen(store->run)) != 0 &&
            unlinkat(dirfd(directory), name, 0) == 0)
            removed++;
    }
    closedir(directory);
    if (removed > 0)
        log_info("store.swept", LOG_INT("files", removed));
    return 0;
}

int
store_begin(struct store *store)
{
    int error = make_folder(store, LAYOUT_SERIES);
    if (!error)
        error = make_folder(store, LAYOUT_QUARANTINE);
    if (!error)
        error = make_folder(store, LAYOUT_RELEASED);
    if (!error)
        error = remove_left_overs(store);
    /* If an earlier run was killed between a rename and its sync, the names of its files are only in memory. */
    if (!error && syncfs(store->root) != 0)
        error = -errno;
    return error;
}

void
store_hurry(const struct staged *staged)
{
    sync_file_range(staged->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

int
store_stage(struct store *store, int source, const struct stat *status, int64_t token, struct staged *staged,
            bool *source_failed)
{
    *staged = (struct staged){.fd = -1};
    *source_failed = false;
    int incoming = store_open_folder(store, LAYOUT_INCOMING);
    if (incoming < 0)
        return incoming;
    snprintf(staged->name, sizeof staged->name, "%s%" PRIx64 ".part", store->run, (uint64_t)token);
    staged->fd = openat(incoming, staged->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
    int error = staged->fd < 0 ? -errno : file_copy(source, staged->fd, source_failed);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, status->st_mtim};
    if (!error && futimens(staged->fd, times) != 0)
        error = -errno;
    if (!error) {
        store_hurry(staged); /* while the rest of the batch is staged */
    } else {
        if (staged->fd >= 0) {
            close(staged->fd);
            unlinkat(incoming, staged->name, 0);
        }
        *staged = (struct staged){.fd = -1};
    }
    close(incoming);
    return error;
}

int
store_create(struct store *store, struct staged *staged)
{
    *staged = (struct staged){.fd = -1};
    int incoming = store_open_folder(store, LAYOUT_INCOMING);
    if (incoming < 0)
        return incoming;
    const uint64_t serial = atomic_fetch_add(&store->created, 1);
    snprintf(staged->name, sizeof staged->name, "%sr%" PRIx64 ".part", store->run, serial);
    staged->fd = openat(incoming, staged->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
    int error = staged->fd < 0 ? -errno : 0;
    if (error)
        staged->name[0] = '\0';
    close(incoming);
    return error;
}

int
store_staged_path(const struct store *store, const struct staged *staged, char *path, size_t size)
{
    int length = snprintf(path, size, "%s/" LAYOUT_INCOMING "/%s", store->path, staged->name);
    return length >= 0 && (size_t)length < size ? 0 : -ENAMETOOLONG;
}

int
store_sync(struct staged *staged)
{
    int error = durable_finish(staged->fd, 0);
    staged->fd = -1;
    return error;
}

int
store_publish(struct store *store, struct staged *staged, const char *folder, const char *name)
{
    int incoming = store_open_folder(store, LAYOUT_INCOMING);
    if (incoming < 0)
        return incoming;
    int to = store_open_folder(store, folder);
    int error = to < 0 ? to : durable_rename_new(incoming, staged->name, to, name);
    if (to >= 0)
        close(to);
    close(incoming);
    if (!error)
        staged->name[0] = '\0';
    return error;
}

void
store_discard(struct store *store, struct staged *staged)
{
    if (staged->fd >= 0)
        close(staged->fd);
    staged->fd = -1;
    if (!staged->name[0])
        return;
    char path[sizeof LAYOUT_INCOMING + sizeof staged->name];
    snprintf(path, sizeof path, LAYOUT_INCOMING "/%s", staged->name);
    unlinkat(store->root, path, 0);
    staged->name[0] = '\0';
}

int
store_sync_folder(struct store *store, const char *folder)
{
    int error = folder_sync_run(store->folders, folder);
    const char *slash = strchr(folder, '/');
    if (error || !slash)
        return error;
    pthread_mutex_lock(&store->lock);
    const bool durable = find_durable(store, folder) != NULL;
    const uint64_t made = store->made;
    pthread_mutex_unlock(&store->lock);
    if (durable)
        return 0;
    char parent[NAME_MAX + 1];
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - folder), folder);
    error = folder_sync_run(store->folders, parent);
    pthread_mutex_lock(&store->lock);
    if (!error && made == store->made && !find_durable(store, folder)) {
        snprintf(store->durable[store->next_durable], sizeof store->durable[0], "%s", folder);
        store->next_durable = (store->next_durable + 1) % DURABLE_FOLDERS;
    }
    pthread_mutex_unlock(&store->lock);
    return error;
}
