/*
 * inbox_inotify.h - inotify on many folders: which folder has news of which name.
 *
 * Not uv_fs_event: it says "rename" for created, deleted, moved away and moved into place alike, so
 * a file that is complete could not be told from one that is about to grow; it wakes up for every
 * write; and it does not tell of a queue that overflowed. The descriptor goes into a uv_poll.
 *
 * inotify_watch may be called from a pool thread (it looks up a path, which a hung share can block);
 * everything else belongs to the loop. News of a watch that has no name yet is dropped: add, name,
 * and only then read the folder, and nothing is missed.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_INOTIFY_H
#define NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_INOTIFY_H

#include <stdint.h>

struct inotify;

enum inotify_news {
    INOTIFY_WRITTEN,  /* a file was made, linked, or closed after writing */
    INOTIFY_RENAMED,  /* something that is no folder was renamed to this name: it is complete */
    INOTIFY_FOLDER,   /* a folder was made or moved here */
    INOTIFY_GONE,     /* the folder itself is not where it was any more; name is "" */
    INOTIFY_OVERFLOW, /* news was lost; folder and name are "" */
};

int inotify_open(struct inotify **inotify);
void inotify_close(struct inotify *inotify);
int inotify_fd(const struct inotify *inotify);

/* Starts watching a folder: its descriptor (the same one for the same folder), or -errno. */
int inotify_watch(const struct inotify *inotify, const char *path);
/* Names a descriptor, or names it anew (folders move). `sweep` marks it as met. */
int inotify_name(struct inotify *inotify, int descriptor, const char *folder, uint32_t sweep);
/* Drops the watches that sweep number `sweep` did not meet. */
void inotify_forget_unmet(struct inotify *inotify, uint32_t sweep);

typedef void (*inotify_tell)(void *context, enum inotify_news news, const char *folder,
                             const char *name);
/* Reads one buffer of news and tells each; 0 when there was none, or -errno. */
int inotify_read(struct inotify *inotify, inotify_tell tell, void *context);

#endif
