/*
 * inbox_seen.h - what an inbox remembers of its files: 32 bytes each, whatever their names; and the
 * settle test.
 *
 * Files are named by a 64-bit digest of their path, their looks by a digest of the stamp: for two
 * of a million files to be taken for each other, both would have to collide. Pure: no I/O, no clock
 * of its own. One thread. Pointers to entries are valid until the next seen_files_add or seen_files_remove.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_SEEN_H
#define NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_SEEN_H

#include "service/common/file_ops.h"

enum seen_state {
    SEEN_WAITING, /* it was seen; a further look is due */
    SEEN_HANDED,  /* it is complete, and being taken in */
    SEEN_LEFT,    /* nothing to do as long as it stays as it is */
    SEEN_LATER,   /* to be tried again at since_ms, or when it changes */
};

struct seen_file {
    uint64_t key;     /* of the path; 0 is an empty place */
    uint64_t look;    /* digest of the stamp at the last change; 0: never looked at */
    int64_t since_ms; /* when that was; SEEN_LATER: not before */
    uint32_t sweep;   /* the last sweep that met it */
    uint8_t state;    /* enum seen_state */
    bool touched;     /* something happened to it while it was SEEN_HANDED */
    bool told;        /* its trouble has been told once */
};

struct seen_files;

uint64_t seen_file_look(const struct file_stamp *stamp); /* never 0 */

int seen_files_open(struct seen_files **seen_files);
void seen_files_close(struct seen_files *seen_files);
size_t seen_files_count(const struct seen_files *seen_files);

struct seen_file *seen_files_find(struct seen_files *seen_files, uint64_t key);
/* The entry of the key, new (zeroed but for its key) or as it was; NULL: no memory. */
struct seen_file *seen_files_add(struct seen_files *seen_files, uint64_t key);
void seen_files_remove(struct seen_files *seen_files, uint64_t key);
/* Forgets files in SEEN_LEFT and SEEN_LATER that sweep number `sweep` did not meet, at most `limit`;
 * returns how many, and their keys. */
size_t seen_files_forget_unmet(struct seen_files *seen_files, uint32_t sweep, uint64_t *keys,
                               size_t limit);

/*
 * One look at a file in SEEN_WAITING: is it complete? It is when this look equals the last one and
 * that lies at least settle_ms back, or when it was renamed into place. Otherwise look again at
 * file->since_ms + settle_ms.
 */
bool seen_file_settled(struct seen_file *file, uint64_t look, bool renamed, int64_t now_ms,
                       int64_t settle_ms);

#endif
