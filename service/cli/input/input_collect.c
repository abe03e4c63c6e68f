/* input_collect.c - see input.h. */
#include "service/cli/input/input.h"

#include "base/array.h"
#include "base/text.h"
#include "service/common/layout.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool
is_hidden(const FTSENT *entry)
{
    return entry->fts_level > FTS_ROOTLEVEL && entry->fts_name[0] == '.';
}

static bool
is_unfinished(const FTSENT *entry)
{
    return entry->fts_level > FTS_ROOTLEVEL &&
           (text_ends_in(entry->fts_name, ".part") || text_ends_in(entry->fts_name, ".tmp"));
}

/* Returns whether the entry is the spool's link to a replacement file. */
static bool
is_replaced(const FTSENT *entry)
{
    char to;
    return readlink(entry->fts_accpath, &to, 1) == 1 && to == LAYOUT_REPLACED;
}

static int
by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

int
input_collect_add(struct collection *collection, const char *path)
{
    char **grown = array_grow(collection->paths, &collection->capacity, collection->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    collection->paths = grown;
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    collection->paths[collection->count++] = copy;
    return 0;
}

static int
visit(struct collection *collection, FTS *walk, FTSENT *entry)
{
    switch (entry->fts_info) {
    case FTS_D:
        if (is_hidden(entry) || (collection->flat && entry->fts_level > FTS_ROOTLEVEL))
            fts_set(walk, entry, FTS_SKIP);
        return 0;
    case FTS_F:
        return is_hidden(entry) || is_unfinished(entry) ? 0 : input_collect_add(collection, entry->fts_path);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return entry->fts_errno ? -entry->fts_errno : -EIO;
    case FTS_SLNONE: /* a dangling link is reported as an unreadable file */
        return is_replaced(entry) || is_hidden(entry) || is_unfinished(entry)
                   ? 0
                   : input_collect_add(collection, entry->fts_path);
    default: /* leaving a folder, link loops, sockets and devices */
        return 0;
    }
}

int
input_collect(struct collection *collection, const char *input, char **where)
{
    char absolute[PATH_MAX];
    *where = NULL;
    if (!realpath(input, absolute)) {
        int error = -errno;
        *where = strdup(input);
        return error;
    }
    char *const roots[] = {absolute, NULL};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    if (!walk)
        return -errno;
    int error = 0;
    for (FTSENT *entry; error == 0 && (errno = 0, entry = fts_read(walk)) != NULL;) {
        error = visit(collection, walk, entry);
        if (error)
            *where = strdup(entry->fts_path);
    }
    if (error == 0 && errno != 0)
        error = -errno;
    fts_close(walk);
    return error;
}

static int
compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void
input_collect_sort(struct collection *collection)
{
    if (collection->count > 0)
        qsort(collection->paths, collection->count, sizeof *collection->paths, compare_paths);
}

bool
input_collect_has(const struct collection *collection, const char *path)
{
    return collection->count > 0 &&
           bsearch(&path, collection->paths, collection->count, sizeof *collection->paths, compare_paths);
}

void
input_collect_free(struct collection *collection)
{
    for (size_t i = 0; i < collection->count; i++)
        free(collection->paths[i]);
    free(collection->paths);
    memset(collection, 0, sizeof *collection);
}
