/*
 * outline.c - see outline.h.
 *
 * A corner of the hull is the first or the last voxel of its row. The ends of a hull's rows are
 * convex, so that an end that does not exceed the midpoint of two others is no corner. This
 * excludes voxels, by neighbouring rows and by the hull of their slice. It also excludes mesh
 * vertices next to the remaining voxels.
 */
#include "kernels/features/shape/outline.h"

#include "kernels/texture/region.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    REACH = 4,       /* rows and slices over which ends are compared */
    NO_END = 1 << 28 /* end of an empty row, behind all others */
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

struct corner {
    int64_t end, y;
};

/* Offset of two rows, or two vertices in half voxels, on either side of one. */
struct apart {
    int8_t y, z;
};

struct outline {
    const struct image_extent *extent;
    enum hull_side side;
    int64_t first, end;   /* slices */
    int64_t pitch;        /* ends per slice; empty rows surround each slice */
    int32_t *ends;        /* first columns, or negative last ones: less is further out */
    struct corner *chain; /* hull of a slice */
    struct hull_point *points;
    size_t count, room;
};

static int32_t *
outline_end(const struct outline *outline, int64_t y, int64_t z)
{
    return outline->ends + (z - outline->first + REACH) * outline->pitch + y + REACH;
}

/* Returns the end of a row on the side. NULL: the whole row is in the region. */
static int32_t
row_end(const uint64_t *row, int64_t columns, enum hull_side side)
{
    const int64_t words = (columns + 63) / 64, step = side == HULL_LOWER ? 1 : -1;
    const uint64_t inside = ~UINT64_C(0) >> (64 * words - columns);

    for (int64_t w = side == HULL_LOWER ? 0 : words - 1; w >= 0 && w < words; w += step) {
        const uint64_t word = row ? row[w] : ~UINT64_C(0);
        const uint64_t bits = w == words - 1 ? word & inside : word;

        if (bits)
            return (int32_t)(side == HULL_LOWER ? 64 * w + __builtin_ctzll(bits)
                                                : -(64 * w + 63 - __builtin_clzll(bits)));
    }
    return NO_END;
}

/* Reads the ends of the slices, and of those compared with them. */
static void
outline_read(const struct outline *outline, const uint64_t *bits)
{
    const struct image_extent *extent = outline->extent;
    const int64_t words = (extent->columns + 63) / 64;
    const int64_t first = outline->first > REACH ? outline->first - REACH : 0;
    const int64_t end = outline->end + REACH < extent->slices ? outline->end + REACH : extent->slices;

    for (int64_t z = first; z < end; z++) {
        const uint64_t *slice = bits ? bits + z * extent->rows * words : NULL;

        if (slice && !texture_slice_has_bits(slice, extent->rows * words))
            continue;
        for (int64_t y = 0; y < extent->rows; y++)
            *outline_end(outline, y, z) = row_end(slice ? slice + y * words : NULL, extent->columns, outline->side);
    }
}

/* ----------------------------------------------------------------------------------- voxels ---- */

static bool
end_is_left(const int32_t *end, int64_t pitch)
{
    static const struct apart apart[] = {{1, 0}, {0, 1},  {1, 1}, {1, -1}, {2, 1}, {2, -1},
                                         {1, 2}, {1, -2}, {4, 0}, {0, 4},  {3, 3}, {3, -3}};

    for (size_t i = 0; i < COUNT(apart); i++) {
        const int64_t to = apart[i].z * pitch + apart[i].y;

        if (end[-to] + end[to] <= 2 * *end)
            return false;
    }
    return true;
}

/* Fills the chain. A corner of a later row removes previous corners that are no longer corners (Andrew 1979). Returns
 * the number of corners. */
static int64_t
slice_corners(struct outline *outline, int64_t z)
{
    const int32_t *ends = outline_end(outline, 0, z);
    struct corner *chain = outline->chain;
    int64_t count = 0;

    for (int64_t y = 0; y < outline->extent->rows; y++) {
        if (!end_is_left(ends + y, outline->pitch))
            continue;
        for (; count >= 2; count--) {
            const struct corner a = chain[count - 2], b = chain[count - 1];

            if ((b.end - a.end) * (y - a.y) < (b.y - a.y) * (ends[y] - a.end))
                break;
        }
        chain[count++] = (struct corner){ends[y], y};
    }
    return count;
}

/* --------------------------------------------------------------------------------- vertices ---- */

/* Returns the outermost vertex in a row of half voxels, at this offset from a voxel: vertices are
 * next to voxels. */
static int32_t
vertex_end(const int32_t *end, int64_t pitch, int y, int z)
{
    if (y & z & 1)
        return 2 * NO_END;
    const int32_t *other = end + (y >> 1) + (z >> 1) * pitch;
    if (!((y | z) & 1))
        return 2 * *other;
    const int32_t next = other[y & 1 ? 1 : pitch];
    return 2 * (*other < next ? *other : next) + 1;
}

static bool
vertex_is_left(const int32_t *end, int64_t pitch, struct apart at, int32_t vertex)
{
    static const struct apart apart[] = {{1, 0}, {0, 1}, {1, 1},  {1, -1}, {2, 0}, {0, 2},
                                         {2, 1}, {1, 2}, {2, -1}, {1, -2}, {2, 2}, {2, -2}};

    if (vertex_end(end, pitch, at.y, at.z) < vertex)
        return false;
    for (size_t i = 0; i < COUNT(apart); i++)
        if (vertex_end(end, pitch, at.y - apart[i].y, at.z - apart[i].z) +
                vertex_end(end, pitch, at.y + apart[i].y, at.z + apart[i].z) <=
            2 * vertex)
            return false;
    return true;
}

/* Adds the vertices next to a voxel, except that towards the row's other end. */
static int
outline_add_voxel(struct outline *outline, int64_t y, int64_t z)
{
    static const struct apart beside[] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    const int32_t *end = outline_end(outline, y, z);

    if (outline->count + COUNT(beside) > outline->room) {
        const size_t room = 2 * outline->room + 1024;
        struct hull_point *grown = realloc(outline->points, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        outline->points = grown;
        outline->room = room;
    }
    for (size_t i = 0; i < COUNT(beside); i++) {
        const int32_t vertex = 2 * *end + (i > 0);
        const int32_t at = outline->side == HULL_LOWER ? vertex : 2 - vertex;

        if (vertex_is_left(end, outline->pitch, beside[i], vertex))
            outline->points[outline->count++] =
                (struct hull_point){{at, (int32_t)(2 * y + 1 + beside[i].y), (int32_t)(2 * z + 1 + beside[i].z)}};
    }
    return 0;
}

int
outline_points(const uint64_t *bits, const struct image_extent *extent, enum hull_side side, int64_t first, int64_t end,
               struct hull_point **points, size_t *count)
{
    struct outline outline = {.extent = extent, .side = side, .first = first, .end = end};
    const int64_t places = (extent->rows + 2 * REACH) * (end - first + 2 * REACH);
    int rc;

    outline.pitch = extent->rows + 2 * REACH;
    outline.chain = malloc((size_t)extent->rows * sizeof(*outline.chain));
    outline.ends = malloc((size_t)places * sizeof(*outline.ends));
    rc = outline.chain && outline.ends ? 0 : -ENOMEM;
    for (int64_t i = 0; i < places && rc == 0; i++)
        outline.ends[i] = NO_END;
    if (rc == 0)
        outline_read(&outline, bits);
    for (int64_t z = first; z < end && rc == 0; z++) {
        const int64_t corners = slice_corners(&outline, z);

        for (int64_t c = 0; c < corners && rc == 0; c++)
            rc = outline_add_voxel(&outline, outline.chain[c].y, z);
    }
    free(outline.ends);
    free(outline.chain);
    if (rc) {
        free(outline.points);
        return rc;
    }
    *points = outline.points;
    *count = outline.count;
    return 0;
}
