/*
 * inbox.h - one watched folder: finds the files in it that are complete, and hands out each once.
 *
 * Two ways lead to a file: inotify tells at once, and a full sweep every sweep_seconds finds what
 * inotify does not tell of (network shares, overflows, folders it cannot watch). Where it tells of
 * all, sweeps come ever more rarely, and take their time. Both only cause looks; seen_file_settled
 * (inbox_seen.h) decides. All looks are made in pool threads, in steps of bounded length, one at a
 * time for each inbox, so the loop never waits for a disk or a share, and a share that hangs holds
 * one thread.
 *
 * Memory is bounded: 32 bytes a file that is known, and paths only for files that settle or have
 * been handed out, of which there are at most a few ten thousand; the sweep waits meanwhile.
 *
 * Belongs to the loop's thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_H
#define NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_H

#include "service/common/file_ops.h"

#include "config/config.h"

#include <uv.h>

struct inbox;

/* A file that is complete, or (error: -errno) a file or folder that cannot be looked at. */
struct inbox_find {
    const char *relative; /* to the inbox; valid during the call */
    struct file_stamp stamp;
    int error;
    bool told; /* that it could not be read has been told before */
};

struct inbox_events {
    /* Each find is answered by inbox_done, later or at once. */
    void (*found)(void *context, struct inbox *inbox, const struct inbox_find *find);
    /* Files that were known, by their keys, and are not there any more. */
    void (*forgot)(void *context, struct inbox *inbox, const uint64_t *keys, size_t count);
};

enum inbox_fate {
    INBOX_GONE,  /* moved or deleted: forget it */
    INBOX_LEFT,  /* stays; of no interest until it changes */
    INBOX_LATER, /* to be handed out again in a while, or when it changes */
    INBOX_AGAIN, /* has changed: to be looked at anew */
};

/* It reads no folder before inbox_begin: until then inbox_know tells of files, by their keys and looks
 * (inbox_seen.h), that are of no interest until they change. `events` outlives it. */
int inbox_open(uv_loop_t *loop, const struct conf_inbox *conf, const char *root,
               const struct inbox_events *events, void *context, struct inbox **inbox);
void inbox_know(struct inbox *inbox, uint64_t key, uint64_t look);
void inbox_begin(struct inbox *inbox);
/* Other settings for the same path. */
int inbox_configure(struct inbox *inbox, const struct conf_inbox *conf);

const char *inbox_path(const struct inbox *inbox); /* valid until every find is answered */
enum conf_after inbox_after(const struct inbox *inbox);
enum conf_newest inbox_resent(const struct inbox *inbox);
const char *inbox_move_to(const struct inbox *inbox); /* NULL unless CONF_MOVE */

/* What keeps it from being looked at, "": nothing; NULL: it is being looked at for the first time. */
const char *inbox_trouble(const struct inbox *inbox);

/* The stamp is that of the file as it stays. */
void inbox_done(struct inbox *inbox, const char *relative, const struct file_stamp *stamp,
                enum inbox_fate fate);

/* No find comes any more; it lives on until the ones handed out are answered. NULL is allowed. */
void inbox_close(struct inbox *inbox);

#endif
