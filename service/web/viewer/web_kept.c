#include "service/web/viewer/web_kept.h"

#include "service/common/clock.h"

#include <errno.h>
#include <unistd.h>

static void
kept_close(struct web_kept_file *file)
{
    if (!file->slices)
        return;
    slices_close(file->slices);
    close(file->fd);
    file->slices = NULL;
    file->used_ms = 0;
}

static bool
kept_is_same(const struct web_kept_file *file, const struct stat *status)
{
    const struct stat *own = &file->status;
    return file->slices && own->st_dev == status->st_dev && own->st_ino == status->st_ino &&
           own->st_size == status->st_size && own->st_mtim.tv_sec == status->st_mtim.tv_sec &&
           own->st_mtim.tv_nsec == status->st_mtim.tv_nsec;
}

/* Returns the open file whose blocks have the plane, or the blocks beside it; else the one that was not used for longest. */
static struct web_kept_file *
kept_choose(struct web_kept *kept, const struct stat *status, enum slices_view view, int64_t at)
{
    struct web_kept_file *oldest = NULL, *nearest = NULL;
    int64_t least = 2; /* blocks */
    for (int i = 0; i < WEB_KEPT_FILES; i++) {
        struct web_kept_file *file = &kept->files[i];
        if (file->is_used)
            continue;
        if (!oldest || file->used_ms < oldest->used_ms)
            oldest = file;
        if (!kept_is_same(file, status))
            continue;
        const struct slices_layout layout = slices_layout_of(slices_volume_of(file->slices), view);
        const int64_t away = at < INT32_MAX ? slices_kept_distance(file->slices, &layout, (int32_t)at) : INT64_MAX;
        if (away < least) {
            least = away;
            nearest = file;
        }
    }
    return nearest ? nearest : oldest;
}

int
web_kept_open(struct web_kept *kept, int fd, enum slices_view view, int64_t at, struct web_kept_file **file,
              struct error *error)
{
    struct stat status;
    int rc = fstat(fd, &status) == 0 ? 0 : error_set_system(error, -errno, "read the slices");
    *file = NULL;
    if (rc == 0) {
        pthread_mutex_lock(&kept->lock);
        *file = kept_choose(kept, &status, view, at);
        if (*file)
            (*file)->is_used = true;
        pthread_mutex_unlock(&kept->lock);
        if (!*file)
            rc = error_set_system(error, -EAGAIN, "read the slices");
    }
    if (rc || kept_is_same(*file, &status)) {
        close(fd);
        return rc;
    }
    kept_close(*file);
    struct slices *slices;
    rc = slices_open(fd, &slices, error);
    if (rc == 0 && slices_keep(slices)) {
        slices_close(slices);
        rc = error_set_system(error, -ENOMEM, "read the slices");
    }
    if (rc == 0) {
        (*file)->slices = slices;
        (*file)->fd = fd;
        (*file)->status = status;
        return 0;
    }
    close(fd);
    web_kept_return(kept, *file, true);
    *file = NULL;
    return rc;
}

void
web_kept_return(struct web_kept *kept, struct web_kept_file *file, bool failed)
{
    if (failed)
        kept_close(file);
    pthread_mutex_lock(&kept->lock);
    file->is_used = false;
    file->used_ms = file->slices ? clock_steady_ms() : 0;
    pthread_mutex_unlock(&kept->lock);
}

void
web_kept_close_old(struct web_kept *kept, int64_t now_ms)
{
    pthread_mutex_lock(&kept->lock);
    for (int i = 0; i < WEB_KEPT_FILES; i++) {
        struct web_kept_file *file = &kept->files[i];
        if (!file->is_used && (now_ms == 0 || now_ms - file->used_ms > WEB_KEPT_MS))
            kept_close(file);
    }
    pthread_mutex_unlock(&kept->lock);
}
