/*
 * watch.c - see watch.h.
 */
#include "service/intake/inbox/watch.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* No IN_MODIFY: the settle test looks at the file itself, and writes come by the thousand. */
#define WATCH_MASK                                                                                 \
    (IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)

#define NEWS_BYTES (64u << 10)

struct named {
    int descriptor;
    uint32_t sweep;
    char *folder;
};

struct watch {
    int fd;
    struct named *names; /* ascending descriptors, which the kernel hands out in that order */
    size_t count, capacity;
};

int
watch_open(struct watch **out)
{
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return -ENOMEM;
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd < 0) {
        int error = -errno;
        free(watch);
        return error;
    }
    *out = watch;
    return 0;
}

void
watch_close(struct watch *watch)
{
    if (!watch)
        return;
    close(watch->fd);
    for (size_t i = 0; i < watch->count; i++)
        free(watch->names[i].folder);
    free(watch->names);
    free(watch);
}

int
watch_fd(const struct watch *watch)
{
    return watch->fd;
}

int
watch_add(const struct watch *watch, const char *path)
{
    int descriptor = inotify_add_watch(watch->fd, path, WATCH_MASK);
    return descriptor < 0 ? -errno : descriptor;
}

/* Index of the first name whose descriptor is not below the given one. */
static size_t
lower_bound(const struct watch *watch, int descriptor)
{
    size_t low = 0, high = watch->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (watch->names[middle].descriptor < descriptor)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct named *
find(struct watch *watch, int descriptor)
{
    size_t at = lower_bound(watch, descriptor);
    if (at < watch->count && watch->names[at].descriptor == descriptor)
        return &watch->names[at];
    return NULL;
}

static int
insert(struct watch *watch, int descriptor, char *folder, uint32_t sweep)
{
    if (watch->count == watch->capacity) {
        size_t capacity = watch->capacity ? 2 * watch->capacity : 16;
        struct named *names = realloc(watch->names, capacity * sizeof *names);
        if (!names)
            return -ENOMEM;
        watch->names = names;
        watch->capacity = capacity;
    }
    size_t at = lower_bound(watch, descriptor);
    memmove(watch->names + at + 1, watch->names + at, (watch->count - at) * sizeof *watch->names);
    watch->names[at] = (struct named){descriptor, sweep, folder};
    watch->count++;
    return 0;
}

int
watch_name(struct watch *watch, int descriptor, const char *folder, uint32_t sweep)
{
    char *copy = strdup(folder);
    if (!copy)
        return -ENOMEM;
    struct named *named = find(watch, descriptor);
    if (named) {
        free(named->folder);
        named->folder = copy;
        named->sweep = sweep;
        return 0;
    }
    int error = insert(watch, descriptor, copy, sweep);
    if (error)
        free(copy);
    return error;
}

static void
remove_name(struct watch *watch, struct named *named)
{
    size_t at = (size_t)(named - watch->names);
    free(named->folder);
    memmove(named, named + 1, (watch->count - at - 1) * sizeof *named);
    watch->count--;
}

void
watch_forget_unmet(struct watch *watch, uint32_t sweep)
{
    size_t kept = 0;
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->names[i].sweep == sweep) {
            watch->names[kept++] = watch->names[i];
            continue;
        }
        inotify_rm_watch(watch->fd, watch->names[i].descriptor);
        free(watch->names[i].folder);
    }
    watch->count = kept;
}

static void
tell_one(struct watch *watch, const struct inotify_event *event, watch_tell tell, void *context)
{
    if (event->mask & IN_Q_OVERFLOW) {
        tell(context, WATCH_OVERFLOW, "", "");
        return;
    }
    struct named *named = find(watch, event->wd);
    if (!named)
        return;
    if (event->mask & IN_IGNORED) {
        remove_name(watch, named);
        return;
    }
    if (event->len == 0)
        return;
    enum watch_news news = WATCH_WRITTEN;
    if (event->mask & IN_ISDIR)
        news = WATCH_FOLDER;
    else if (event->mask & IN_MOVED_TO)
        news = WATCH_RENAMED;
    tell(context, news, named->folder, event->name);
}

int
watch_read(struct watch *watch, watch_tell tell, void *context)
{
    alignas(struct inotify_event) char news[NEWS_BYTES];
    ssize_t size = read(watch->fd, news, sizeof news);
    if (size < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    for (const char *at = news; at < news + size;) {
        struct inotify_event event;
        memcpy(&event, at, sizeof event);
        tell_one(watch, (const struct inotify_event *)(const void *)at, tell, context);
        at += sizeof event + event.len;
    }
    return 0;
}
