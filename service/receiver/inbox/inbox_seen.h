/*
 * inbox_seen.h - the table of an inbox's known files, 32 bytes per file, and the settle test.
 *
 * A file is identified by a 64-bit digest of its path, and its state by a digest of its stamp (its look). To confuse
 * two of a million files, both digests must collide. Pure: no I/O, no clock. Must be used by one thread. Pointers to
 * entries are valid until the next seen_files_add or seen_files_remove.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_SEEN_H
#define NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_SEEN_H

#include "service/common/file_ops.h"

enum seen_state {
    SEEN_WAITING, /* found; another look is due */
    SEEN_HANDED,  /* complete and being imported */
    SEEN_LEFT,    /* ignored until it changes */
    SEEN_LATER,   /* tried again at since_ms, or when it changes */
};

struct seen_file {
    uint64_t key;     /* of the path; 0: a free place */
    uint64_t look;    /* digest of the stamp at the last change, or 0 */
    int64_t since_ms; /* time of that change; SEEN_LATER: time of the next attempt */
    uint32_t sweep;   /* the last sweep that found it */
    uint8_t state;    /* enum seen_state */
    bool touched;     /* it changed while it was SEEN_HANDED */
    bool reported;    /* its error has been reported once */
};

struct seen_files;

uint64_t seen_file_look(const struct file_stamp *stamp); /* never 0 */

int seen_files_open(struct seen_files **seen_files);
void seen_files_close(struct seen_files *seen_files);
size_t seen_files_count(const struct seen_files *seen_files);

struct seen_file *seen_files_find(struct seen_files *seen_files, uint64_t key);
/* Returns the entry of the key; a new entry is zero except for its key. Returns NULL if memory is short. */
struct seen_file *seen_files_add(struct seen_files *seen_files, uint64_t key);
void seen_files_remove(struct seen_files *seen_files, uint64_t key);
/* Removes files in SEEN_LEFT and SEEN_LATER that sweep number `sweep` did not find, at most
 * `limit`. Returns their number and writes their keys. */
size_t seen_files_forget_unmet(struct seen_files *seen_files, uint32_t sweep, uint64_t *keys, size_t limit);

/* Processes a look at a file in SEEN_WAITING. Returns whether the file is complete: this look
 * equals the last one, which is at least settle_ms old, or the file was renamed into place.
 * Otherwise the caller must look again at file->since_ms + settle_ms. */
bool seen_file_is_complete(struct seen_file *file, uint64_t look, bool renamed, int64_t now_ms, int64_t settle_ms);

#endif
