/* outline.c - see outline.h. */
#include "kernels/features/shape/outline.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SIDES = 6 };

struct corner {
    int64_t x, y;
};

struct outline {
    const uint64_t *bits;
    struct image_extent extent;
    struct hull_point *points;
    size_t count, room;
    struct corner *first, *last; /* the hull of a slice, by its first and by its last columns */
};

/* The first and the last column of a row that is of the region; false: none is. */
static bool
row_ends(const struct outline *outline, int64_t y, int64_t z, int64_t ends[2])
{
    const int64_t columns = outline->extent.columns, words = (columns + 63) / 64;
    const uint64_t *row = outline->bits + (z * outline->extent.rows + y) * words;

    ends[1] = -1;
    for (int64_t word = 0; word < words; word++) {
        const int64_t left = columns - 64 * word;
        const uint64_t bits = left < 64 ? row[word] & ((UINT64_C(1) << left) - 1) : row[word];

        if (bits == 0)
            continue;
        if (ends[1] < 0)
            ends[0] = 64 * word + __builtin_ctzll(bits);
        ends[1] = 64 * word + 63 - __builtin_clzll(bits);
    }
    return ends[1] >= 0;
}

/* Adds a corner of a later row to one side of a hull, of which it may make others that were corners none
 * (Andrew 1979). `sign`: 1 on the side of the first columns, -1 on that of the last. */
static size_t
chain_add(struct corner *chain, size_t count, struct corner added, int64_t sign)
{
    while (count >= 2) {
        const struct corner a = chain[count - 2], b = chain[count - 1];
        const int64_t turn = (b.x - a.x) * (added.y - a.y) - (b.y - a.y) * (added.x - a.x);

        if (sign * turn < 0)
            break;
        count--;
    }
    chain[count] = added;
    return count + 1;
}

static int
outline_add(struct outline *outline, int64_t x, int64_t y, int64_t z)
{
    static const int8_t sides[SIDES][3] = {{-1, 0, 0}, {1, 0, 0},  {0, -1, 0},
                                           {0, 1, 0},  {0, 0, -1}, {0, 0, 1}};

    if (outline->count + SIDES > outline->room) {
        const size_t room = 2 * outline->room + 1024;
        struct hull_point *grown = realloc(outline->points, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        outline->points = grown;
        outline->room = room;
    }
    for (int side = 0; side < SIDES; side++)
        outline->points[outline->count++] = (struct hull_point){
            {(int32_t)(2 * x + 1 + sides[side][0]), (int32_t)(2 * y + 1 + sides[side][1]),
             (int32_t)(2 * z + 1 + sides[side][2])}};
    return 0;
}

static int
outline_add_slice(struct outline *outline, int64_t z)
{
    size_t first = 0, last = 0;
    int rc = 0;

    for (int64_t y = 0; y < outline->extent.rows; y++) {
        int64_t ends[2];

        if (!row_ends(outline, y, z, ends))
            continue;
        first = chain_add(outline->first, first, (struct corner){ends[0], y}, 1);
        last = chain_add(outline->last, last, (struct corner){ends[1], y}, -1);
    }
    for (size_t i = 0; i < first && rc == 0; i++)
        rc = outline_add(outline, outline->first[i].x, outline->first[i].y, z);
    for (size_t i = 0; i < last && rc == 0; i++)
        rc = outline_add(outline, outline->last[i].x, outline->last[i].y, z);
    return rc;
}

/* The corners of the volume. */
static int
outline_add_all(struct outline *outline)
{
    const struct image_extent *extent = &outline->extent;
    int rc = 0;

    for (int i = 0; i < 8 && rc == 0; i++)
        rc = outline_add(outline, i & 1 ? extent->columns - 1 : 0, i & 2 ? extent->rows - 1 : 0,
                         i & 4 ? extent->slices - 1 : 0);
    return rc;
}

int
outline_points(const uint64_t *bits, const struct image_extent *extent, struct hull_point **points,
               size_t *count)
{
    struct outline outline = {.bits = bits, .extent = *extent};
    int rc = 0;

    outline.first = malloc((size_t)extent->rows * sizeof(*outline.first));
    outline.last = malloc((size_t)extent->rows * sizeof(*outline.last));
    if (!outline.first || !outline.last)
        rc = -ENOMEM;
    else if (!bits)
        rc = outline_add_all(&outline);
    for (int64_t z = 0; z < extent->slices && bits && rc == 0; z++)
        rc = outline_add_slice(&outline, z);
    free(outline.first);
    free(outline.last);
    if (rc) {
        free(outline.points);
        return rc;
    }
    *points = outline.points;
    *count = outline.count;
    return 0;
}
