/*
 * grow_cpu.c - balls on the CPU: a row of the result is the union of source rows, each widened by
 * its span (ball.h). Shrinking grows the complement within the volume.
 *
 * Rows of a slice are made in tiles, of the words that may have voxels. A ball is symmetric: its
 * rows at slice distance k equal those at -k. A tile therefore first unites each such pair of
 * slices, and then needs only half of the ball's rows, from a compact memory area. Rows beyond the
 * volume are empty in these unions and need no special case.
 */
#include "kernels/mask/mask_cpu.h"

#include <string.h>

enum {
    TOGETHER = 16,   /* rows of the result, which share source rows */
    TILE_ROWS = 128, /* rows of a slice distributed together */
};

/* Per thread: unions of slice pairs, the places of the ball's rows in them, and memory for
 * isa.unite. */
struct grow_thread {
    uint64_t *pairs;
    int64_t *offsets;
    int64_t *ends;
    uint64_t *unite;
};

struct grow_job {
    const struct mask_growing *of;
    int64_t tiles, next_tile; /* next_tile and next_thread: atomic */
    int64_t next_thread;
};

/* Places a thread's pieces, which are only counted without memory. */
static size_t
grow_thread_place(struct grow_thread *thread, const struct mask_volume *volume, const struct mask_reach *most,
                  unsigned char *memory)
{
    const int64_t words = volume->extent.words_per_row;
    const struct isa_rows rows = {.count = TOGETHER, .words = words};
    const int64_t pair_words = (most->size[2] + 1) * (TILE_ROWS + 2 * most->size[1]) * words;
    struct kernels_arena arena = {.memory = memory};

    thread->pairs = kernels_take(&arena, (size_t)pair_words, sizeof(*thread->pairs));
    thread->offsets = kernels_take(&arena, mask_ball_rows(most), sizeof(*thread->offsets));
    thread->ends = kernels_take(&arena, mask_ball_groups(most), sizeof(*thread->ends));
    thread->unite = kernels_take(&arena, (size_t)ISA_UNITE_SPACE(&rows), sizeof(*thread->unite));
    return arena.used;
}

void
mask_grow_place(struct mask_grow_space *space, const struct mask_volume *volume, const struct mask_reach *most,
                struct kernels_arena *arena)
{
    const size_t slices = (size_t)volume->extent.size[2];
    struct grow_thread thread;

    space->most = *most;
    space->bytes = grow_thread_place(&thread, volume, most, NULL);
    space->slices = kernels_take(arena, slices, sizeof(*space->slices));
    space->reached = kernels_take(arena, slices, sizeof(*space->reached));
    space->threads = kernels_take(arena, (size_t)volume->threads, space->bytes);
}

static int64_t
grow_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the rectangle within the ball's reach of voxels in slices around z. */
static struct mask_rectangle
find_grown(const struct mask_growing *growing, int64_t z)
{
    const int64_t *size = growing->volume->extent.size, *reach = growing->ball->reach.size;
    const int64_t end = bits_least(z + reach[2], size[2] - 1);
    struct mask_rectangle to = {{INT64_MAX, INT64_MAX}, {-1, -1}};

    for (int64_t k = grow_most(z - reach[2], 0); k <= end; k++) {
        const struct mask_rectangle *from = &growing->space->slices[k];

        for (int axis = 0; axis < 2 && !mask_rectangle_is_empty(from); axis++) {
            to.first[axis] = bits_least(to.first[axis], grow_most(from->first[axis] - reach[axis], 0));
            to.last[axis] = grow_most(to.last[axis], bits_least(from->last[axis] + reach[axis], size[axis] - 1));
        }
    }
    return to;
}

/* Returns the intersection of the rectangles of all slices in reach of z. Its own is reduced by the
 * reach except at the volume's faces. */
static struct mask_rectangle
find_shrunk(const struct mask_growing *growing, int64_t z)
{
    const int64_t *size = growing->volume->extent.size, *reach = growing->ball->reach.size;
    const int64_t end = bits_least(z + reach[2], size[2] - 1);
    struct mask_rectangle to = growing->space->slices[z];

    for (int axis = 0; axis < 2 && !mask_rectangle_is_empty(&growing->space->slices[z]); axis++) {
        if (to.first[axis] > 0)
            to.first[axis] += reach[axis];
        if (to.last[axis] < size[axis] - 1)
            to.last[axis] -= reach[axis];
    }
    for (int64_t k = grow_most(z - reach[2], 0); k <= end; k++) {
        const struct mask_rectangle *from = &growing->space->slices[k];

        for (int axis = 0; axis < 2; axis++) {
            to.first[axis] = grow_most(to.first[axis], from->first[axis]);
            to.last[axis] = bits_least(to.last[axis], from->last[axis]);
        }
    }
    return to;
}

/* Makes rows first .. last of slice z from the source's words word .. word + words - 1. */
struct grow_tile {
    const struct mask_growing *growing;
    const struct mask_rectangle *to;
    int64_t z, first, last;
    int64_t word, words;
};

/* Returns the slice's words for the tile, or NULL if it is empty. */
static const uint64_t *
find_slice(const struct grow_tile *tile, int64_t z)
{
    const struct mask_growing *growing = tile->growing;
    const struct bits_extent *extent = &growing->volume->extent;

    if (z < 0 || z >= extent->size[2] || (!growing->shrink && mask_rectangle_is_empty(&growing->space->slices[z])))
        return NULL;
    return growing->source + z * extent->words_per_slice + tile->word;
}

/* Unites the rows within the ball's reach of slices k before and k behind, or their complements
 * when shrinking. */
static void
unite_pair(const struct grow_tile *tile, int64_t k, uint64_t *pair)
{
    const struct mask_growing *growing = tile->growing;
    const struct bits_extent *extent = &growing->volume->extent;
    const int64_t begin = tile->first - growing->ball->reach.size[1];
    const int64_t end = tile->last + growing->ball->reach.size[1] + 1;
    const int64_t first = grow_most(begin, 0), last = bits_least(end, extent->size[1]);
    const uint64_t *before = find_slice(tile, tile->z - k), *behind = find_slice(tile, tile->z + k);
    const uint64_t *one = before ? before : behind, *other = behind ? behind : before;
    struct isa_pair_rows rows = {.stride = extent->words_per_row,
                                 .count = last - first,
                                 .words = tile->words,
                                 .flip = growing->shrink ? ~UINT64_C(0) : 0};

    if (!one || first > begin || last < end)
        memset(pair, 0, (size_t)((end - begin) * tile->words) * sizeof(*pair));
    if (!one)
        return;
    rows.a = one + first * rows.stride;
    rows.b = other + first * rows.stride;
    pair += (first - begin) * tile->words;
    growing->volume->isa->unite_pair(&rows, pair);
    if (growing->shrink && tile->word + tile->words == extent->words_per_row) {
        /* Clear the bits beyond the last column, which are set in complements. */
        const uint64_t tail = mask_tail(extent);
        if (tail != ~UINT64_C(0))
            for (int64_t row = 0; row < rows.count; row++)
                pair[(row + 1) * rows.words - 1] &= tail;
    }
}

/* Writes the valid voxels of row y. Bits beyond them come from complements or padding. */
static void
put_row(const struct grow_tile *tile, const uint64_t *found, int64_t y)
{
    const struct mask_growing *growing = tile->growing;
    const struct bits_extent *extent = &growing->volume->extent;
    const uint64_t flip = growing->shrink ? ~UINT64_C(0) : 0;
    const int64_t first = tile->to->first[0] / 64, last = tile->to->last[0] / 64;
    const int64_t at = tile->z * extent->words_per_slice + y * extent->words_per_row;
    uint64_t *row = growing->target + at;

    for (int64_t word = first; word <= last; word++)
        row[word] = found[word - tile->word] ^ flip;
    row[first] &= ~UINT64_C(0) << tile->to->first[0] % 64;
    row[last] &= ~UINT64_C(0) >> (63 - tile->to->last[0] % 64);
    if (growing->bounds)
        mask_bound(growing->bounds, at + first, last - first + 1, row + first);
}

static void
grow_tile_rows(const struct grow_tile *tile, struct grow_thread *thread)
{
    const struct mask_ball *ball = tile->growing->ball;
    const int64_t rows = tile->last - tile->first + 1, reach = ball->reach.size[1];

    for (int64_t k = 0; k <= ball->reach.size[2]; k++)
        unite_pair(tile, k, thread->pairs + k * (rows + 2 * reach) * tile->words);
    /* Find the places of the ball's rows in the pairs, relative to a row of the slice itself. */
    for (int64_t group = 0, i = 0, placed = 0; group < ball->groups; group++) {
        for (; i < ball->ends[group]; i++)
            if (ball->rows[i].k >= 0)
                thread->offsets[placed++] = (ball->rows[i].k * (rows + 2 * reach) + ball->rows[i].j) * tile->words;
        thread->ends[group] = placed;
    }
    for (int64_t y = 0; y < rows; y += TOGETHER) {
        const struct isa_rows united = {.first = thread->pairs + (y + reach) * tile->words,
                                        .count = bits_least(rows - y, TOGETHER),
                                        .stride = tile->words,
                                        .words = tile->words,
                                        .groups = ball->groups,
                                        .offsets = thread->offsets,
                                        .ends = thread->ends,
                                        .widen = ball->widen};
        const uint64_t *found = tile->growing->volume->isa->unite(&united, thread->unite);

        for (int64_t r = 0; r < united.count; r++)
            put_row(tile, found + r * (tile->words + 2), tile->first + y + r);
    }
}

static void
grow_on_thread(void *context)
{
    struct grow_job *job = context;
    const struct mask_growing *growing = job->of;
    const struct mask_grow_space *space = growing->space;
    const struct bits_extent *extent = &growing->volume->extent;
    const int64_t tiles = (extent->size[1] + TILE_ROWS - 1) / TILE_ROWS; /* per slice */
    const int64_t reach = growing->shrink ? growing->ball->reach.size[0] : 0;
    int64_t number = __atomic_fetch_add(&job->next_thread, 1, __ATOMIC_RELAXED);
    struct grow_thread thread;

    grow_thread_place(&thread, growing->volume, &space->most, space->threads + (size_t)number * space->bytes);
    while ((number = __atomic_fetch_add(&job->next_tile, 1, __ATOMIC_RELAXED)) < job->tiles) {
        const int64_t z = number / tiles, begin = number % tiles * TILE_ROWS;
        const int64_t end = bits_least(begin + TILE_ROWS, extent->size[1]);
        const struct mask_rectangle *to = &growing->space->reached[z];
        struct grow_tile tile = {growing, to, z, grow_most(to->first[1], begin), bits_least(to->last[1], end - 1),
                                 0,       0};

        if (!growing->sparse || !mask_rectangle_is_empty(to))
            memset(growing->target + z * extent->words_per_slice + begin * extent->words_per_row, 0,
                   (size_t)((end - begin) * extent->words_per_row) * sizeof(*growing->target));
        if (mask_rectangle_is_empty(to) || tile.first > tile.last)
            continue;
        tile.word = grow_most(to->first[0] - reach, 0) / 64;
        tile.words = bits_least(to->last[0] + reach, extent->size[0] - 1) / 64 - tile.word + 1;
        grow_tile_rows(&tile, &thread);
    }
}

void
mask_grow(const struct mask_growing *growing)
{
    const int64_t *size = growing->volume->extent.size;
    struct grow_job job = {.of = growing, .tiles = (size[1] + TILE_ROWS - 1) / TILE_ROWS * size[2]};

    for (int64_t z = 0; z < size[2]; z++)
        growing->space->reached[z] = growing->shrink ? find_shrunk(growing, z) : find_grown(growing, z);
    cpu_pool_run(growing->volume->pool, grow_on_thread, &job);
}
