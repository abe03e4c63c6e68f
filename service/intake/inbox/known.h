/*
 * known.h - what an inbox remembers of its files: 32 bytes each, whatever their names; and the
 * settle test.
 *
 * Files are named by a 64-bit digest of their path, their looks by a digest of the stamp: for two
 * of a million files to be taken for each other, both would have to collide. Pure: no I/O, no clock
 * of its own. One thread. Pointers to entries are valid until the next known_add or known_remove.
 */
#ifndef NOCTULE_KNOWN_H
#define NOCTULE_KNOWN_H

#include "service/common/file_ops.h"

enum known_state {
    KNOWN_WAITING, /* it was seen; a further look is due */
    KNOWN_HANDED,  /* it is complete, and being taken in */
    KNOWN_LEFT,    /* nothing to do as long as it stays as it is */
    KNOWN_LATER,   /* to be tried again at since_ms, or when it changes */
};

struct known_file {
    uint64_t key;     /* of the path; 0 is an empty place */
    uint64_t look;    /* digest of the stamp at the last change; 0: never looked at */
    int64_t since_ms; /* when that was; KNOWN_LATER: not before */
    uint32_t sweep;   /* the last sweep that met it */
    uint8_t state;    /* enum known_state */
    bool touched;     /* something happened to it while it was KNOWN_HANDED */
    bool told;        /* its trouble has been told once */
};

struct known;

uint64_t known_key(const char *path);                /* never 0 */
uint64_t known_look(const struct file_stamp *stamp); /* never 0 */

int known_open(struct known **known);
void known_close(struct known *known);
size_t known_count(const struct known *known);

struct known_file *known_find(struct known *known, uint64_t key);
/* The entry of the key, new (zeroed but for its key) or as it was; NULL: no memory. */
struct known_file *known_add(struct known *known, uint64_t key);
void known_remove(struct known *known, uint64_t key);
/* Forgets the files in KNOWN_LEFT and KNOWN_LATER that sweep number `sweep` did not meet. */
void known_forget_unmet(struct known *known, uint32_t sweep);

/*
 * One look at a file in KNOWN_WAITING: is it complete? It is when this look equals the last one and
 * that lies at least settle_ms back, or when it was renamed into place. Otherwise look again at
 * file->since_ms + settle_ms.
 */
bool known_settled(struct known_file *file, uint64_t look, bool renamed, int64_t now_ms,
                   int64_t settle_ms);

#endif
