/*
 * extent.c - see drawing.h.
 *
 * Columns are counted 64 at a time. Six words are the digits of 64 counters; a word of a mask's row
 * is added to them with a bitwise ripple-carry adder.
 */
#include "service/pipeline/results/drawing.h"

#include "service/common/parallel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 6, SHARES = 16 };

/* Counts voxels in a segment, by coordinate on each axis. */
struct extent_counting {
    const struct image_mask *const *masks;
    size_t mask_count;
    struct image_extent volume;
    int64_t words;
    int64_t *slices;         /* sums of all threads */
    int64_t *columns, *rows; /* per thread */
    uint64_t *row;           /* of all masks, per thread */
    uint64_t *digits;        /* per thread, DIGITS per word */
};

/* Adds the counters to the columns and clears them. */
static void
take_columns(const struct extent_counting *counting, uint64_t *digits, int64_t *columns)
{
    for (int64_t w = 0; w < counting->words; w++) {
        const int64_t left = counting->volume.columns - 64 * w;
        for (int64_t bit = 0; bit < left && bit < 64; bit++)
            for (int k = 0; k < DIGITS; k++)
                columns[64 * w + bit] += (int64_t)(digits[w * DIGITS + k] >> bit & 1) << k;
    }
    memset(digits, 0, (size_t)(counting->words * DIGITS) * sizeof *digits);
}

/* Combines the row of all masks. Returns its number of voxels. Most words have no voxel. */
static int64_t
unite_row(const struct extent_counting *counting, int64_t row, uint64_t *united)
{
    const int64_t count = counting->words;
    int64_t voxels = 0;
    memset(united, 0, (size_t)count * sizeof *united);
    for (size_t i = 0; i < counting->mask_count; i++) {
        const uint64_t *words = counting->masks[i]->bits + row * counting->masks[i]->words_per_row;
        for (int64_t w = 0; w < count; w++)
            united[w] |= words[w];
    }
    for (int64_t w = 0; w < count; w++)
        if (united[w])
            voxels += __builtin_popcountll(united[w]);
    return voxels;
}

static void
add_digits(const uint64_t *united, int64_t words, uint64_t *digits)
{
    for (int64_t w = 0; w < words; w++, digits += DIGITS) {
        uint64_t carry = united[w];
        for (int k = 0; carry; k++) {
            const uint64_t digit = digits[k];
            digits[k] = digit ^ carry;
            carry &= digit;
        }
    }
}

static void
count_share(const struct extent_counting *counting, int64_t share)
{
    const struct image_extent *volume = &counting->volume;
    uint64_t *united = counting->row + share * counting->words;
    uint64_t *digits = counting->digits + share * counting->words * DIGITS;
    int64_t *columns = counting->columns + share * volume->columns;
    int64_t *rows = counting->rows + share * volume->rows;
    int added = 0;
    for (int64_t z = share; z < volume->slices; z += SHARES) {
        for (int64_t y = 0; y < volume->rows; y++) {
            const int64_t voxels = unite_row(counting, z * volume->rows + y, united);
            if (voxels == 0)
                continue;
            counting->slices[z] += voxels;
            rows[y] += voxels;
            add_digits(united, counting->words, digits);
            if (++added == (1 << DIGITS) - 1) {
                take_columns(counting, digits, columns);
                added = 0;
            }
        }
    }
    take_columns(counting, digits, columns);
}

static void
count_shares(struct parallel *loop, void *context)
{
    int64_t share;
    while (parallel_take(loop, &share))
        count_share(context, share);
}

static int32_t
fullest_of(int64_t *counts, int64_t count, int64_t shares)
{
    for (int64_t i = count; i < count * shares; i++)
        counts[i % count] += counts[i];
    int64_t fullest = (count - 1) / 2;
    for (int64_t i = 0; i < count; i++) {
        const int64_t off = llabs(2 * i - (count - 1)), held = llabs(2 * fullest - (count - 1));
        if (counts[i] > counts[fullest] || (counts[i] == counts[fullest] && off < held))
            fullest = i;
    }
    return (int32_t)fullest;
}

int
segments_extent_find(const struct image_mask *const *masks, size_t count, struct image_extent volume, int threads,
                     struct segments_extent *extent)
{
    const int64_t words = (volume.columns + 63) / 64;
    struct extent_counting counting = {
        .masks = masks,
        .mask_count = count,
        .volume = volume,
        .words = words,
        .slices = calloc((size_t)volume.slices, sizeof(int64_t)),
        .columns = calloc((size_t)(SHARES * volume.columns), sizeof(int64_t)),
        .rows = calloc((size_t)(SHARES * volume.rows), sizeof(int64_t)),
        .row = calloc((size_t)(SHARES * words), sizeof(uint64_t)),
        .digits = calloc((size_t)(SHARES * words * DIGITS), sizeof(uint64_t)),
    };
    const bool made = counting.slices && counting.columns && counting.rows && counting.row && counting.digits;
    if (made) {
        struct parallel loop = {.count = SHARES, .body = count_shares, .context = &counting};
        const int32_t end = (int32_t)volume.slices;
        parallel_run(&loop, threads);
        *extent = (struct segments_extent){.first = 0, .last = end - 1};
        while (extent->first < end && counting.slices[extent->first] == 0)
            extent->first++;
        if (extent->first == end)
            extent->first = 0;
        else
            while (counting.slices[extent->last] == 0)
                extent->last--;
        extent->fullest[0] = fullest_of(counting.columns, volume.columns, SHARES);
        extent->fullest[1] = fullest_of(counting.rows, volume.rows, SHARES);
        extent->fullest[2] = fullest_of(counting.slices, volume.slices, 1);
    }
    free(counting.slices);
    free(counting.columns);
    free(counting.rows);
    free(counting.row);
    free(counting.digits);
    return made ? 0 : -ENOMEM;
}
