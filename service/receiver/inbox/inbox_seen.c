/* inbox_seen.c - see inbox_seen.h. A hash table with open addressing and linear probing, at most
 * two thirds full. A removal shifts the following entries back, so that there are no tombstones. */
#include "service/receiver/inbox/inbox_seen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PLACES 256u

struct seen_files {
    struct seen_file *files;
    size_t places; /* a power of two */
    size_t count;
};

uint64_t
seen_file_look(const struct file_stamp *stamp)
{
    const uint64_t fields[] = {stamp->device, stamp->inode, (uint64_t)stamp->size, (uint64_t)stamp->mtime_ns,
                               (uint64_t)stamp->ctime_ns};
    uint64_t look = file_digest(0, fields, sizeof fields);
    return look ? look : 1;
}

int
seen_files_open(struct seen_files **out)
{
    struct seen_files *seen_files = calloc(1, sizeof *seen_files);
    if (!seen_files)
        return -ENOMEM;
    seen_files->places = FIRST_PLACES;
    seen_files->files = calloc(seen_files->places, sizeof *seen_files->files);
    if (!seen_files->files) {
        free(seen_files);
        return -ENOMEM;
    }
    *out = seen_files;
    return 0;
}

void
seen_files_close(struct seen_files *seen_files)
{
    if (!seen_files)
        return;
    free(seen_files->files);
    free(seen_files);
}

size_t
seen_files_count(const struct seen_files *seen_files)
{
    return seen_files->count;
}

/* Returns the index of the key, or the free index for it. */
static size_t
seen_files_place(const struct seen_files *seen_files, uint64_t key)
{
    size_t at = (size_t)key & (seen_files->places - 1);
    while (seen_files->files[at].key && seen_files->files[at].key != key)
        at = (at + 1) & (seen_files->places - 1);
    return at;
}

struct seen_file *
seen_files_find(struct seen_files *seen_files, uint64_t key)
{
    struct seen_file *file = &seen_files->files[seen_files_place(seen_files, key)];
    return file->key ? file : NULL;
}

struct seen_file *
seen_files_add(struct seen_files *seen_files, uint64_t key)
{
    size_t at = seen_files_place(seen_files, key);
    if (seen_files->files[at].key)
        return &seen_files->files[at];
    if ((seen_files->count + 1) * 3 > seen_files->places * 2) {
        const struct seen_files old = *seen_files;
        struct seen_file *files = calloc(old.places * 2, sizeof *files);
        if (!files)
            return NULL;
        seen_files->files = files;
        seen_files->places = old.places * 2;
        for (size_t i = 0; i < old.places; i++) {
            if (old.files[i].key)
                files[seen_files_place(seen_files, old.files[i].key)] = old.files[i];
        }
        free(old.files);
        at = seen_files_place(seen_files, key);
    }
    seen_files->count++;
    seen_files->files[at].key = key;
    return &seen_files->files[at];
}

static void
seen_files_remove_at(struct seen_files *seen_files, size_t hole)
{
    const size_t mask = seen_files->places - 1;
    for (size_t at = (hole + 1) & mask; seen_files->files[at].key; at = (at + 1) & mask) {
        const size_t home = (size_t)seen_files->files[at].key & mask;
        /* An entry may fill the hole unless its home is between the hole and itself. */
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            seen_files->files[hole] = seen_files->files[at];
            hole = at;
        }
    }
    seen_files->files[hole] = (struct seen_file){0};
    seen_files->count--;
}

void
seen_files_remove(struct seen_files *seen_files, uint64_t key)
{
    size_t at = seen_files_place(seen_files, key);
    if (seen_files->files[at].key)
        seen_files_remove_at(seen_files, at);
}

size_t
seen_files_forget_unmet(struct seen_files *seen_files, uint32_t sweep, uint64_t *keys, size_t limit)
{
    size_t count = 0;
    /* An entry that is shifted back into a place is checked before the loop advances. An entry that
     * wraps around to the end comes from the beginning and was checked before. */
    for (size_t at = 0; at < seen_files->places; at++) {
        const struct seen_file *file = &seen_files->files[at];
        while (count < limit && file->key && file->sweep != sweep &&
               (file->state == SEEN_LEFT || file->state == SEEN_LATER)) {
            keys[count++] = file->key;
            seen_files_remove_at(seen_files, at);
        }
    }
    return count;
}

bool
seen_file_is_complete(struct seen_file *file, uint64_t look, bool renamed, int64_t now_ms, int64_t settle_ms)
{
    if (file->look != look) {
        file->look = look;
        file->since_ms = now_ms;
        return renamed;
    }
    return renamed || now_ms - file->since_ms >= settle_ms;
}
