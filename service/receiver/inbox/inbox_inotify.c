#include "service/receiver/inbox/inbox_inotify.h"

#include "base/array.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Without IN_MODIFY: the settle test reads the file's state, and writes cause thousands of events. */
#define WATCH_MASK                                                                                                     \
    (IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)

#define EVENT_BYTES (64u << 10)

struct named {
    int descriptor;
    uint32_t sweep;
    char *folder;
};

struct inotify {
    int fd;
    struct named *names; /* sorted by descriptor; the kernel issues them in ascending order */
    size_t count, capacity;
};

int
inotify_open(struct inotify **out)
{
    struct inotify *inotify = calloc(1, sizeof *inotify);
    if (!inotify)
        return -ENOMEM;
    inotify->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (inotify->fd < 0) {
        int error = -errno;
        free(inotify);
        return error;
    }
    *out = inotify;
    return 0;
}

void
inotify_close(struct inotify *inotify)
{
    if (!inotify)
        return;
    close(inotify->fd);
    for (size_t i = 0; i < inotify->count; i++)
        free(inotify->names[i].folder);
    free(inotify->names);
    free(inotify);
}

int
inotify_fd(const struct inotify *inotify)
{
    return inotify->fd;
}

int
inotify_watch(const struct inotify *inotify, const char *path)
{
    int descriptor = inotify_add_watch(inotify->fd, path, WATCH_MASK);
    return descriptor < 0 ? -errno : descriptor;
}

/* Returns the index of the first name whose descriptor is not less than the given one. */
static size_t
inotify_place(const struct inotify *inotify, int descriptor)
{
    size_t low = 0, high = inotify->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (inotify->names[middle].descriptor < descriptor)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct named *
inotify_find(struct inotify *inotify, int descriptor)
{
    size_t at = inotify_place(inotify, descriptor);
    if (at < inotify->count && inotify->names[at].descriptor == descriptor)
        return &inotify->names[at];
    return NULL;
}

int
inotify_name(struct inotify *inotify, int descriptor, const char *folder, uint32_t sweep)
{
    char *copy = strdup(folder);
    if (!copy)
        return -ENOMEM;
    struct named *named = inotify_find(inotify, descriptor);
    if (!named) {
        struct named *names = array_grow(inotify->names, &inotify->capacity, inotify->count + 1, sizeof *names);
        if (!names) {
            free(copy);
            return -ENOMEM;
        }
        inotify->names = names;
        named = names + inotify_place(inotify, descriptor);
        memmove(named + 1, named, (size_t)(names + inotify->count - named) * sizeof *named);
        *named = (struct named){.descriptor = descriptor};
        inotify->count++;
    }
    free(named->folder);
    named->folder = copy;
    named->sweep = sweep;
    return 0;
}

void
inotify_forget_unmet(struct inotify *inotify, uint32_t sweep)
{
    size_t kept = 0;
    for (size_t i = 0; i < inotify->count; i++) {
        if (inotify->names[i].sweep == sweep) {
            inotify->names[kept++] = inotify->names[i];
            continue;
        }
        inotify_rm_watch(inotify->fd, inotify->names[i].descriptor);
        free(inotify->names[i].folder);
    }
    inotify->count = kept;
}

static void
inotify_report_one(struct inotify *inotify, const struct inotify_event *event, inotify_report report, void *context)
{
    if (event->mask & IN_Q_OVERFLOW) {
        report(context, INOTIFY_OVERFLOW, "", "");
        return;
    }
    struct named *named = inotify_find(inotify, event->wd);
    if (!named)
        return;
    if (event->mask & (IN_IGNORED | IN_MOVE_SELF)) {
        report(context, INOTIFY_GONE, named->folder, "");
        if (event->mask & IN_IGNORED) {
            free(named->folder);
            inotify->count--;
            const size_t after = (size_t)(inotify->names + inotify->count - named);
            memmove(named, named + 1, after * sizeof *named);
        }
        return;
    }
    if (event->len == 0)
        return;
    enum inotify_event_kind kind = INOTIFY_WRITTEN;
    if (event->mask & IN_ISDIR)
        kind = INOTIFY_FOLDER;
    else if (event->mask & IN_MOVED_TO)
        kind = INOTIFY_RENAMED;
    report(context, kind, named->folder, event->name);
}

int
inotify_read(struct inotify *inotify, inotify_report report, void *context)
{
    alignas(struct inotify_event) char buffer[EVENT_BYTES];
    ssize_t size = read(inotify->fd, buffer, sizeof buffer);
    if (size < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    for (const char *at = buffer; at < buffer + size;) {
        struct inotify_event event;
        memcpy(&event, at, sizeof event);
        inotify_report_one(inotify, (const struct inotify_event *)(const void *)at, report, context);
        at += sizeof event + event.len;
    }
    return 0;
}
