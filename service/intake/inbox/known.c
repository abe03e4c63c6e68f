/*
 * known.c - see known.h. Open addressing with linear probing, at most two thirds full; removal
 * shifts the followers back, so there are no tombstones.
 */
#include "service/intake/inbox/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PLACES 256u

struct known {
    struct known_file *files;
    size_t places; /* a power of two */
    size_t count;
};

uint64_t
known_key(const char *path)
{
    uint64_t key = file_digest(0, path, strlen(path));
    return key ? key : 1;
}

uint64_t
known_look(const struct file_stamp *stamp)
{
    const uint64_t fields[] = {stamp->device, stamp->inode, (uint64_t)stamp->size,
                               (uint64_t)stamp->mtime_ns, (uint64_t)stamp->ctime_ns};
    uint64_t look = file_digest(0, fields, sizeof fields);
    return look ? look : 1;
}

int
known_open(struct known **out)
{
    struct known *known = calloc(1, sizeof *known);
    if (!known)
        return -ENOMEM;
    known->places = FIRST_PLACES;
    known->files = calloc(known->places, sizeof *known->files);
    if (!known->files) {
        free(known);
        return -ENOMEM;
    }
    *out = known;
    return 0;
}

void
known_close(struct known *known)
{
    if (!known)
        return;
    free(known->files);
    free(known);
}

size_t
known_count(const struct known *known)
{
    return known->count;
}

/* Where the key is, or where it would be put. */
static size_t
place_of(const struct known *known, uint64_t key)
{
    size_t at = (size_t)key & (known->places - 1);
    while (known->files[at].key && known->files[at].key != key)
        at = (at + 1) & (known->places - 1);
    return at;
}

struct known_file *
known_find(struct known *known, uint64_t key)
{
    struct known_file *file = &known->files[place_of(known, key)];
    return file->key ? file : NULL;
}

static int
grow(struct known *known)
{
    const struct known old = *known;
    struct known_file *files = calloc(old.places * 2, sizeof *files);
    if (!files)
        return -ENOMEM;
    known->files = files;
    known->places = old.places * 2;
    for (size_t i = 0; i < old.places; i++) {
        if (old.files[i].key)
            files[place_of(known, old.files[i].key)] = old.files[i];
    }
    free(old.files);
    return 0;
}

struct known_file *
known_add(struct known *known, uint64_t key)
{
    size_t at = place_of(known, key);
    if (known->files[at].key)
        return &known->files[at];
    if ((known->count + 1) * 3 > known->places * 2) {
        if (grow(known) != 0)
            return NULL;
        at = place_of(known, key);
    }
    known->count++;
    known->files[at].key = key;
    return &known->files[at];
}

static void
remove_at(struct known *known, size_t hole)
{
    const size_t mask = known->places - 1;
    for (size_t at = (hole + 1) & mask; known->files[at].key; at = (at + 1) & mask) {
        const size_t home = (size_t)known->files[at].key & mask;
        /* It may fill the hole unless its home lies between the hole and itself. */
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            known->files[hole] = known->files[at];
            hole = at;
        }
    }
    known->files[hole] = (struct known_file){0};
    known->count--;
}

void
known_remove(struct known *known, uint64_t key)
{
    size_t at = place_of(known, key);
    if (known->files[at].key)
        remove_at(known, at);
}

static bool
is_unmet(const struct known_file *file, uint32_t sweep)
{
    return file->key && file->sweep != sweep &&
           (file->state == KNOWN_LEFT || file->state == KNOWN_LATER);
}

void
known_forget_unmet(struct known *known, uint32_t sweep)
{
    /* What is shifted back into a place is looked at before going on; what wraps around to the end
     * comes from the beginning and was looked at already. */
    for (size_t at = 0; at < known->places; at++) {
        while (is_unmet(&known->files[at], sweep))
            remove_at(known, at);
    }
}

bool
known_settled(struct known_file *file, uint64_t look, bool renamed, int64_t now_ms,
              int64_t settle_ms)
{
    if (file->look != look) {
        file->look = look;
        file->since_ms = now_ms;
        return renamed;
    }
    return renamed || now_ms - file->since_ms >= settle_ms;
}
