#include "kernels/mask/contours_overlap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
overlap_by_rows(const void *left, const void *right)
{
    const struct contours_part *a = left, *b = right;
    return (a->first_row > b->first_row) - (a->first_row < b->first_row);
}

static int
overlap_by_whole(const void *left, const void *right)
{
    const struct contours_part *a = left, *b = right;
    return (a->whole > b->whole) - (a->whole < b->whole);
}

static int64_t
overlap_root(struct contours_part *parts, int64_t part)
{
    while (parts[part].whole != part)
        part = parts[part].whole = parts[parts[part].whole].whole;
    return part;
}

/* Returns the number of voxels that two parts have in common. */
static int64_t
overlap_common(const struct contours_part *a, const struct contours_part *b, int64_t words_per_row, int64_t *budget)
{
    const int64_t first = a->first_row > b->first_row ? a->first_row : b->first_row;
    const int64_t end = a->end_row < b->end_row ? a->end_row : b->end_row;
    const uint64_t *left = a->words + (first - a->first_row) * words_per_row;
    const uint64_t *right = b->words + (first - b->first_row) * words_per_row;
    const int64_t first_word = a->first_word > b->first_word ? a->first_word : b->first_word;
    const int64_t end_word = a->end_word < b->end_word ? a->end_word : b->end_word;
    int64_t common = 0;

    *budget -= 1;
    if (first_word >= end_word)
        return 0;
    *budget -= (end - first) * (end_word - first_word);
    for (int64_t row = first; row < end; row++, left += words_per_row, right += words_per_row)
        for (int64_t i = first_word; i < end_word; i++)
            common += __builtin_popcountll(left[i] & right[i]);
    return common;
}

/* Finds copies, and unites parts that cross. */
static int
overlap_compare(struct contours_part *parts, int64_t count, int64_t words_per_row, int64_t *budget)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = i + 1; k < count && parts[k].first_row < parts[i].end_row; k++) {
            if (parts[i].is_copy || parts[k].is_copy)
                continue;
            const int64_t common = overlap_common(&parts[i], &parts[k], words_per_row, budget);
            const bool in_i = common == parts[k].voxels, in_k = common == parts[i].voxels;

            if (*budget < 0)
                return -E2BIG;
            parts[k].is_copy = in_i && in_k && parts[i].direction == parts[k].direction;
            if (common > 0 && !in_i && !in_k)
                parts[overlap_root(parts, k)].whole = overlap_root(parts, i);
        }
    return 0;
}

/* Sets or flips the voxels of a part in a plane. */
static void
overlap_apply(const struct contours_part *part, int64_t words_per_row, bool flip, uint64_t *plane)
{
    const int64_t words = (part->end_row - part->first_row) * words_per_row;
    uint64_t *to = plane + part->first_row * words_per_row;

    for (int64_t i = 0; i < words; i++)
        to[i] = flip ? to[i] ^ part->words[i] : to[i] | part->words[i];
}

/* Flips the union of some parts. */
static void
overlap_flip(const struct contours_part *parts, int64_t count, int64_t words_per_row, uint64_t *whole, uint64_t *bits)
{
    int64_t first = parts[0].first_row, end = parts[0].end_row;

    for (int64_t i = 0; i < count; i++) {
        first = parts[i].first_row < first ? parts[i].first_row : first;
        end = parts[i].end_row > end ? parts[i].end_row : end;
        overlap_apply(&parts[i], words_per_row, false, whole);
    }
    for (int64_t i = first * words_per_row; i < end * words_per_row; i++) {
        bits[i] ^= whole[i];
        whole[i] = 0;
    }
}

int
contours_combine(struct contours_part *parts, int64_t count, int64_t words_per_row, int64_t *budget, uint64_t *bits,
                 struct contours_overlaps *found)
{
    int64_t rows = 0, kept = 0;

    qsort(parts, (size_t)count, sizeof(*parts), overlap_by_rows);
    for (int64_t i = 0; i < count; i++) {
        parts[i].whole = i;
        rows = parts[i].end_row > rows ? parts[i].end_row : rows;
    }
    int rc = overlap_compare(parts, count, words_per_row, budget);
    uint64_t *whole = calloc((size_t)(rows * words_per_row) + 1, sizeof(*whole));
    if (rc || !whole) {
        free(whole);
        return rc ? rc : -ENOMEM;
    }
    for (int64_t i = 0; i < count; i++)
        overlap_root(parts, i);
    for (int64_t i = 0; i < count; i++)
        parts[i].whole = overlap_root(parts, i);
    found->copies += count;
    for (int64_t i = 0; i < count; i++)
        if (!parts[i].is_copy) {
            const struct contours_part part = parts[i];
            parts[i] = parts[kept];
            parts[kept++] = part;
        }
    found->copies -= kept;
    qsort(parts, (size_t)kept, sizeof(*parts), overlap_by_whole);
    for (int64_t i = 0, end; i < kept; i = end) {
        for (end = i + 1; end < kept && parts[end].whole == parts[i].whole;)
            end++;
        if (end - i == 1)
            overlap_apply(&parts[i], words_per_row, true, bits);
        else
            overlap_flip(parts + i, end - i, words_per_row, whole, bits);
        found->crossed += end - i > 1 ? end - i : 0;
    }
    free(whole);
    return 0;
}
