/*
 * inbox_inotify.h - inotify on many folders: reports the folder and the name of each event.
 *
 * uv_fs_event is not suitable. It reports "rename" for created, deleted, moved away and moved into
 * place alike, so a complete file looks like one that will grow. It wakes for every write, and does
 * not report an overflow of the queue. The descriptor is for a uv_poll.
 *
 * inotify_watch may be called from a pool thread, since it resolves a path, which a hung share can block. All other
 * functions must be called on the loop's thread. Events of a watch without a name are dropped. The caller must add the
 * watch, name it, and only then read the folder, so that no file is missed.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_INOTIFY_H
#define NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_INOTIFY_H

#include <stdint.h>

struct inotify;

enum inotify_event_kind {
    INOTIFY_WRITTEN,  /* a file was created, linked, or closed after writing */
    INOTIFY_RENAMED,  /* a file was renamed to this name: it is complete */
    INOTIFY_FOLDER,   /* a folder was created in it or moved into it */
    INOTIFY_GONE,     /* the folder itself was moved or removed; name is "" */
    INOTIFY_OVERFLOW, /* events were lost; folder and name are "" */
};

int inotify_open(struct inotify **inotify);
void inotify_close(struct inotify *inotify);
int inotify_fd(const struct inotify *inotify);

/* Starts watching a folder. Returns its descriptor (the same one for the same folder) or -errno. */
int inotify_watch(const struct inotify *inotify, const char *path);
/* Sets the name of a descriptor, or changes it after a move. `sweep` marks it as seen. Returns 0 or
 * -ENOMEM. */
int inotify_name(struct inotify *inotify, int descriptor, const char *folder, uint32_t sweep);
/* Drops the watches that were not seen in sweep number `sweep`. */
void inotify_forget_unmet(struct inotify *inotify, uint32_t sweep);

typedef void (*inotify_report)(void *context, enum inotify_event_kind kind, const char *folder, const char *name);
/* Reads one buffer of events and reports each to `report`. Returns 0, also if there was none, or
 * -errno. */
int inotify_read(struct inotify *inotify, inotify_report report, void *context);

#endif
