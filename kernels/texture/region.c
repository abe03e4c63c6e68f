#include "kernels/texture/region.h"

#include "kernels/op.h"
#include "kernels/texture/texture.h"

enum {
    WORD = 64,
    SLICE_PIECE = 64,
    SLICE_WORDS = 8 /* words of a row whose columns are searched at once: one cache line */
};

/* --------------------------------------------------------------------------------- boxes ---- */

void
texture_box_begin(struct texture_box_ends *ends)
{
    for (int axis = 0; axis < 3; axis++) {
        ends->first[axis] = INT64_MAX;
        ends->last[axis] = -1;
    }
}

static void
region_box_add(struct texture_box_ends *ends, int axis, int64_t first, int64_t last)
{
    if (first < ends->first[axis])
        ends->first[axis] = first;
    if (last > ends->last[axis])
        ends->last[axis] = last;
}

bool
texture_row_ends(const uint64_t *row, int64_t columns, int64_t ends[2])
{
    const int64_t words = (columns + WORD - 1) / WORD;
    const uint64_t inside = ~UINT64_C(0) >> (WORD * words - columns);
    int64_t first = 0, last = words - 1;
    uint64_t end, any;

    ends[0] = 0;
    ends[1] = columns - 1;
    if (!row)
        return true;
    end = any = row[last] & inside;
    for (int64_t w = 0; w + 1 < words; w++)
        any |= row[w];
    if (any == 0)
        return false;
    while (row[first] == 0)
        first++;
    while (end == 0)
        end = row[--last];
    ends[0] = WORD * first + __builtin_ctzll(row[first]);
    ends[1] = WORD * last + WORD - 1 - __builtin_clzll(end);
    return true;
}

bool
texture_slice_has_bits(const uint64_t *slice, int64_t words)
{
    uint64_t any = 0;
    int64_t first = 0;

    for (; first + SLICE_PIECE <= words && any == 0; first += SLICE_PIECE)
        for (int64_t i = first; i < first + SLICE_PIECE; i++)
            any |= slice[i];
    for (; first < words && any == 0; first++)
        any = slice[first];
    return any != 0;
}

bool
texture_box_add_slice(const uint64_t *slice, const struct image_extent *extent, int64_t z,
                      struct texture_box_ends *ends)
{
    const int64_t words = (extent->columns + WORD - 1) / WORD;
    const uint64_t inside = ~UINT64_C(0) >> (WORD * words - extent->columns);
    int64_t top = 0, bottom = extent->rows - 1, columns[2];
    uint64_t any = 0;

    for (int64_t first = 0; first < words; first += SLICE_WORDS) {
        const int64_t left = words - first, count = left < SLICE_WORDS ? left : SLICE_WORDS;
        uint64_t rows[SLICE_WORDS] = {0};

        for (int64_t y = 0; y < extent->rows; y++)
            for (int64_t w = 0; w < count; w++)
                rows[w] |= slice[y * words + first + w];
        if (count == left)
            rows[count - 1] &= inside;
        for (int64_t w = 0; w < count; w++)
            any |= rows[w];
        /* Add the columns of `words` from `first` on, treating all rows as one. */
        for (int64_t w = 0; w < count; w++)
            if (rows[w])
                region_box_add(ends, 0, WORD * (first + w) + __builtin_ctzll(rows[w]),
                               WORD * (first + w) + WORD - 1 - __builtin_clzll(rows[w]));
    }
    if (any == 0)
        return false;
    while (!texture_row_ends(slice + top * words, extent->columns, columns))
        top++;
    while (!texture_row_ends(slice + bottom * words, extent->columns, columns))
        bottom--;
    region_box_add(ends, 1, top, bottom);
    region_box_add(ends, 2, z, z);
    return true;
}

void
texture_box_add(struct texture_box_ends *ends, const struct texture_box_ends *others)
{
    for (int axis = 0; axis < 3; axis++)
        region_box_add(ends, axis, others->first[axis], others->last[axis]);
}

void
texture_box_end(const struct texture_box_ends *ends, struct texture_box *box)
{
    *box = (struct texture_box){.size = {0}};
    for (int axis = 0; axis < 3 && ends->last[0] >= 0; axis++) {
        box->first[axis] = ends->first[axis];
        box->size[axis] = ends->last[axis] - ends->first[axis] + 1;
    }
}

void
texture_box_of(const uint64_t *region, const struct image_extent *extent, struct texture_box *box)
{
    const int64_t words = (extent->columns + WORD - 1) / WORD;
    struct texture_box_ends ends;

    *box = (struct texture_box){.size = {extent->columns, extent->rows, extent->slices}};
    if (!region)
        return;
    texture_box_begin(&ends);
    for (int64_t z = 0; z < extent->slices; z++)
        (void)texture_box_add_slice(region + z * extent->rows * words, extent, z, &ends);
    texture_box_end(&ends, box);
}

/* ---------------------------------------------------------------------------- held regions ---- */

void
texture_region_release(struct kernels_lane *lane)
{
    struct texture_region_state *held = kernels_state(lane, KERNELS_REGION);

    held->bits = NULL;
    held->level_of = NULL;
}

const struct texture_region_state *
texture_region_held(const struct kernels_lane *lane, const uint64_t *region)
{
    const struct texture_region_state *held = kernels_state(lane, KERNELS_REGION);

    return region && held->bits == region && lane->phase[KERNELS_REGION] != KERNELS_OP_ABSENT ? held : NULL;
}

int
texture_region_hold(struct kernels_lane *lane, const uint64_t *region, struct error *error)
{
    if (texture_region_held(lane, region))
        return 0;
    texture_region_release(lane);
    return region ? kernels_op_run(lane, KERNELS_REGION, &(struct texture_hold){.bits = region}, error) : 0;
}

int
texture_levels_hold(struct kernels_lane *lane, const struct texture_levels *levels, struct error *error)
{
    struct texture_region_state *held = kernels_state(lane, KERNELS_REGION);

    held->level_of = NULL;
    return levels->table_count == 1
               ? kernels_op_run(lane, KERNELS_REGION, &(struct texture_hold){.level_of = levels->level_of}, error)
               : 0;
}

void
texture_region_box(const struct kernels_lane *lane, const uint64_t *region, struct texture_box *box)
{
    const struct texture_region_state *held = texture_region_held(lane, region);

    if (held)
        *box = held->box;
    else
        texture_box_of(region, &lane->extent, box);
}
