/*
 * inbox.h - one watched folder. Finds complete files in it and hands out each once.
 *
 * A file is found by inotify at once, or by a full sweep every sweep_seconds. The sweep finds files that inotify does
 * not report: network shares, overflows, folders that cannot be watched. If inotify reports all changes, sweeps become
 * rarer and slower. Both only cause looks; seen_file_is_complete (inbox_seen.h) decides whether a file is complete.
 * Looks run in pool threads, in steps of limited length, one at a time per inbox. The loop therefore never waits for a
 * disk or network share, and a share that hangs blocks one thread.
 *
 * Memory is limited: 32 bytes per known file, and a path only for files that settle or are handed
 * out, at most some ten thousand. The sweep waits if there are more.
 *
 * All functions must be called on the loop's thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_H
#define NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_H

#include "service/common/file_ops.h"

#include "config/config.h"

#include <uv.h>

struct inbox;

/* A complete file or, with `error` (-errno), a file or folder that cannot be read. */
struct inbox_find {
    const char *relative; /* below the inbox; valid during the call */
    struct file_stamp stamp;
    int error;
    bool reported; /* its error has been reported before */
};

struct inbox_events {
    /* Hands out a find. The caller must answer it with inbox_done, at once or later. */
    void (*found)(void *context, struct inbox *inbox, const struct inbox_find *find);
    /* Reports known files that were removed, by their keys. */
    void (*forgot)(void *context, struct inbox *inbox, const uint64_t *keys, size_t count);
};

enum inbox_fate {
    INBOX_GONE,  /* moved or deleted: forget it */
    INBOX_LEFT,  /* stays: ignore it until it changes */
    INBOX_LATER, /* hand it out again later, or when it changes */
    INBOX_AGAIN, /* it has changed: look at it again */
};

/* Opens an inbox. It reads no folder before inbox_begin. Until then inbox_know sets files to ignore until they change,
 * by their keys and looks (inbox_seen.h). `events` must outlive the inbox. Returns 0 or -errno. */
int inbox_open(uv_loop_t *loop, const struct conf_inbox *conf, const char *root, const struct inbox_events *events,
               void *context, struct inbox **inbox);
void inbox_know(struct inbox *inbox, uint64_t key, uint64_t look);
void inbox_begin(struct inbox *inbox);
/* Applies new settings for the same path. Returns 0 or -ENOMEM. */
int inbox_configure(struct inbox *inbox, const struct conf_inbox *conf);

/* Returns the path, `after`, `resent` and `move_to` in force; other members are not set. The path is
 * valid until all finds are answered. */
const struct conf_inbox *inbox_conf(const struct inbox *inbox);

/* Returns the reason for which the inbox cannot be read, "" if it can, or NULL during the first attempt. */
const char *inbox_problem(const struct inbox *inbox);

/* Answers a find. The stamp must be that of the file as it stays. */
void inbox_done(struct inbox *inbox, const char *relative, const struct file_stamp *stamp, enum inbox_fate fate);

/* Closes the inbox. It hands out no more finds, and is freed when all finds are answered. NULL is allowed. */
void inbox_close(struct inbox *inbox);

#endif
