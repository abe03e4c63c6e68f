/*
 * watch.h - inotify on many folders: which folder has news of which name.
 *
 * Not uv_fs_event: it says "rename" for created, deleted, moved away and moved into place alike, so
 * a file that is complete could not be told from one that is about to grow; it wakes up for every
 * write; and it does not tell of a queue that overflowed. The descriptor goes into a uv_poll.
 *
 * watch_add may be called from a pool thread (it looks up a path, which a hung share can block);
 * everything else belongs to the loop. News of a watch that has no name yet is dropped: add, name,
 * and only then read the folder, and nothing is missed.
 */
#ifndef NOCTULE_WATCH_H
#define NOCTULE_WATCH_H

#include <stdint.h>

struct watch;

enum watch_news {
    WATCH_WRITTEN,  /* a file was made, linked, or closed after writing */
    WATCH_RENAMED,  /* something that is no folder was renamed to this name: it is complete */
    WATCH_FOLDER,   /* a folder was made or moved here */
    WATCH_OVERFLOW, /* news was lost; folder and name are "" */
};

int watch_open(struct watch **watch);
void watch_close(struct watch *watch);
int watch_fd(const struct watch *watch);

/* Starts watching a folder: its descriptor (the same one for the same folder), or -errno. */
int watch_add(const struct watch *watch, const char *path);
/* Names a descriptor, or names it anew (folders move). `sweep` marks it as met. */
int watch_name(struct watch *watch, int descriptor, const char *folder, uint32_t sweep);
/* Drops the watches that sweep number `sweep` did not meet. */
void watch_forget_unmet(struct watch *watch, uint32_t sweep);

typedef void (*watch_tell)(void *context, enum watch_news news, const char *folder,
                           const char *name);
/* Reads one buffer of news and tells each; 0 when there was none, or -errno. */
int watch_read(struct watch *watch, watch_tell tell, void *context);

#endif
