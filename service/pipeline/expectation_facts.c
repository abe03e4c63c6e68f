/* expectation_facts.c - see expectation_facts.h. */
#include "service/pipeline/expectation_facts.h"

#include "service/common/parallel.h"
#include "service/pipeline/components.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ----------------------------------------------------------------------------------- a slice -- */

/* 32 bits must hold the sum: at most 64 values. */
static inline void
slice_add_int16(struct expect_slice *slice, const int16_t *values, int count)
{
    int32_t sum = 0;
    int16_t lowest = INT16_MAX, highest = INT16_MIN;
    for (int i = 0; i < count; i++) {
        sum += values[i];
        lowest = values[i] < lowest ? values[i] : lowest;
        highest = values[i] > highest ? values[i] : highest;
    }
    slice->stored += sum;
    slice->lowest = lowest < slice->lowest ? lowest : slice->lowest;
    slice->highest = highest > slice->highest ? highest : slice->highest;
}

/* Adds the stored values of up to 64 voxels in a row. A full word of 64 is vectorised. */
static void
slice_add_run(struct expect_slice *slice, const struct expect_volume *volume, int64_t begin, int count)
{
    if (volume->pixel == IMAGE_INT16) {
        const int16_t *values = (const int16_t *)volume->voxels + begin;
        if (count == 64)
            slice_add_int16(slice, values, 64);
        else
            slice_add_int16(slice, values, count);
        return;
    }
    for (int i = 0; i < count; i++) {
        const int32_t value = image_value(volume->voxels, volume->pixel, begin + i);
        slice->stored += value;
        slice->lowest = value < slice->lowest ? value : slice->lowest;
        slice->highest = value > slice->highest ? value : slice->highest;
    }
}

/* Adds the voxels of a row, run by run within each word. */
static void
slice_add_row(struct expect_slice *slice, const struct expect_facts *facts, const uint64_t *row, int64_t y,
              int64_t begin)
{
    for (int64_t w = 0; w < facts->mask->words_per_row; w++)
        for (uint64_t bits = row[w]; bits;) {
            const int first = __builtin_ctzll(bits);
            const uint64_t behind = ~(bits >> first);
            const int count = behind ? __builtin_ctzll(behind) : 64;
            const int64_t x = 64 * w + first;
            slice_add_run(slice, facts->volume, begin + x, count);
            slice->voxels += count;
            slice->columns += count * (2 * x + count - 1) / 2;
            slice->rows += count * y;
            bits = count < 64 ? bits & ~((UINT64_C(1) << count) - 1) << first : 0;
        }
}

/* Finds the first and the last set voxel of a row. Returns false if none is set. */
static bool
row_span(const uint64_t *row, int64_t words, int64_t *first, int64_t *last)
{
    int64_t from = 0, to = words - 1;
    while (from < words && !row[from])
        from++;
    if (from == words)
        return false;
    while (!row[to])
        to--;
    *first = 64 * from + __builtin_ctzll(row[from]);
    *last = 64 * to + 63 - __builtin_clzll(row[to]);
    return true;
}

static bool
voxel_is_padding(const struct expect_volume *volume, int64_t x, int64_t y, int64_t z)
{
    const struct image_range *padding = &volume->padding[z];
    if (padding->lo > padding->hi)
        return false;
    const int64_t at = (z * volume->extent.rows + y) * volume->extent.columns + x;
    const int32_t value = image_value(volume->voxels, volume->pixel, at);
    return value >= padding->lo && value <= padding->hi;
}

/* Returns whether a block has a voxel of padding. */
static bool
block_has_padding(const struct expect_volume *volume, int64_t x, int64_t y, int64_t z)
{
    const struct expect_volume *finer = volume->finer;
    const int64_t sizes[3] = {finer->extent.columns, finer->extent.rows, finer->extent.slices};
    int64_t first[3] = {x, y, z}, end[3], at[3];
    for (int axis = 0; axis < 3; axis++) {
        const int64_t factor = (int64_t)floor(volume->spacing[axis] / finer->spacing[axis] + 0.5);
        first[axis] *= factor;
        end[axis] = first[axis] + factor < sizes[axis] ? first[axis] + factor : sizes[axis];
    }
    for (at[2] = first[2]; at[2] < end[2]; at[2]++)
        for (at[1] = first[1]; at[1] < end[1]; at[1]++)
            for (at[0] = first[0]; at[0] < end[0]; at[0]++)
                if (voxel_is_padding(finer, at[0], at[1], at[2]))
                    return true;
    return false;
}

/* Returns whether padding is next to an end of a row, `step` outwards, or in the block at this end. */
static bool
end_is_padding(const struct expect_volume *volume, int64_t x, int64_t y, int64_t z, int step)
{
    if (!volume->finer)
        return voxel_is_padding(volume, x + step, y, z);
    return block_has_padding(volume, x, y, z) || block_has_padding(volume, x + step, y, z);
}

/* Returns the set of faces that a row touches, from its first voxel to its last. */
static unsigned
faces_of_row(const struct expect_volume *volume, const struct expect_window *window, int64_t first, int64_t last,
             int64_t y, int64_t z)
{
    const int64_t *low = window->first, *high = window->last;
    unsigned faces = 0;
    faces |= first <= low[0] ? 1u << EXPECT_FACE_FIRST_COLUMN : 0;
    faces |= last >= high[0] ? 1u << EXPECT_FACE_LAST_COLUMN : 0;
    faces |= y <= low[1] ? 1u << EXPECT_FACE_FIRST_ROW : 0;
    faces |= y >= high[1] ? 1u << EXPECT_FACE_LAST_ROW : 0;
    if (y > low[1] && y < high[1] &&
        ((first > low[0] && end_is_padding(volume, first, y, z, -1)) ||
         (last < high[0] && end_is_padding(volume, last, y, z, 1))))
        faces |= 1u << EXPECT_FACE_PADDING;
    return faces;
}

static bool
box_is_empty(const struct expect_window *box)
{
    return box->last[0] < box->first[0];
}

static void
slice_look(const struct expect_facts *facts, int64_t z)
{
    const struct expect_volume *volume = facts->volume;
    const struct image_extent *extent = &volume->extent;
    const struct expect_window whole = {{0, 0}, {extent->columns - 1, extent->rows - 1}};
    const struct expect_window *window = volume->windows ? &volume->windows[z] : &whole;
    struct expect_slice slice = {.box = {{INT64_MAX, INT64_MAX}, {-1, -1}}, .lowest = INT32_MAX, .highest = INT32_MIN};
    struct expect_window *box = &slice.box;
    for (int64_t y = 0; y < extent->rows; y++) {
        const int64_t at = z * extent->rows + y;
        const uint64_t *row = facts->mask->bits + at * facts->mask->words_per_row;
        int64_t first, last;
        if (!row_span(row, facts->mask->words_per_row, &first, &last))
            continue;
        box->first[0] = first < box->first[0] ? first : box->first[0];
        box->last[0] = last > box->last[0] ? last : box->last[0];
        box->first[1] = y < box->first[1] ? y : box->first[1];
        box->last[1] = y;
        const int64_t before = slice.voxels;
        slice_add_row(&slice, facts, row, y, at * extent->columns);
        const unsigned faces = facts->faces ? faces_of_row(volume, window, first, last, y, z) : 0;
        slice.faces |= faces;
        for (int face = 0; face < EXPECT_FACES; face++)
            if (faces >> face & 1)
                slice.contact[face] +=
                    face == EXPECT_FACE_FIRST_ROW || face == EXPECT_FACE_LAST_ROW ? slice.voxels - before : 1;
    }
    facts->slices[z] = slice;
}

/* -------------------------------------------------------------------------------- all slices -- */

/* Takes bands of components first: they take longer than slices. */
static void
facts_share(struct parallel *loop, void *context)
{
    struct expect_facts *facts = context;
    const int64_t bands = facts->components ? components_bands(facts->bands) : 0;
    int64_t round;
    while (parallel_take(loop, &round))
        if (round >= bands)
            slice_look(facts, round - bands);
        else if (components_sweep(facts->bands, round))
            parallel_fail(loop);
}

int
expect_facts_find(struct expect_facts *facts)
{
    const int threads = facts->volume->threads;
    facts->slices = malloc((size_t)facts->volume->extent.slices * sizeof *facts->slices);
    if (!facts->slices)
        return -ENOMEM;
    /* Make two bands per thread, since bands differ in their number of voxels. */
    if (facts->components &&
        components_begin(&facts->volume->extent, facts->mask, threads > 1 ? 2 * threads : 1, &facts->bands))
        return -ENOMEM;
    struct parallel loop = {.count =
                                facts->volume->extent.slices + (facts->components ? components_bands(facts->bands) : 0),
                            .body = facts_share,
                            .context = facts};
    parallel_run(&loop, threads);
    if (atomic_load(&loop.failed))
        return -ENOMEM;
    return facts->components ? components_join(facts->bands, &facts->component_count) : 0;
}

void
expect_facts_clear(struct expect_facts *facts)
{
    free(facts->slices);
    components_free(facts->bands);
}

/* Widens the box of the mask by that of a slice. */
static void
measures_add_box(struct segment_measures *measures, const struct expect_window *own, int64_t z)
{
    for (int axis = 0; axis < 2; axis++) {
        if (measures->slices == 0 || own->first[axis] < measures->first[axis])
            measures->first[axis] = own->first[axis];
        if (measures->slices == 0 || own->last[axis] > measures->last[axis])
            measures->last[axis] = own->last[axis];
    }
    if (measures->slices == 0)
        measures->first[2] = z;
    measures->last[2] = z;
    measures->slices++;
}

void
expect_facts_measure(const struct expect_facts *facts, struct segment_measures *measures)
{
    const struct expect_volume *volume = facts->volume;
    const struct expect_frame *frame = volume->frame;
    double sum = 0, position = 0;
    int64_t columns = 0, rows = 0;
    *measures = segment_measures_none;
    for (int64_t z = 0; z < volume->extent.slices; z++) {
        const struct expect_slice *slice = &facts->slices[z];
        const struct image_rescale *rescale = &volume->rescale[z];
        if (slice->voxels == 0)
            continue;
        measures_add_box(measures, &slice->box, z);
        /* A negative slope swaps the ends. NAN stands for no value yet. */
        const double one = rescale->slope * slice->lowest + rescale->intercept;
        const double other = rescale->slope * slice->highest + rescale->intercept;
        measures->minimum = fmin(fmin(measures->minimum, one), other);
        measures->maximum = fmax(fmax(measures->maximum, one), other);
        sum += rescale->slope * (double)slice->stored + rescale->intercept * (double)slice->voxels;
        columns += slice->columns;
        rows += slice->rows;
        if (frame)
            position += frame->positions[z] * (double)slice->voxels;
    }
    const double voxels = (double)facts->mask->voxels;
    measures->mean = sum / voxels;
    const double x = (double)columns / voxels, y = (double)rows / voxels, z = position / voxels;
    for (int i = 0; frame && i < 3; i++)
        measures->centroid[i] = frame->origin[i] + frame->axes[i] * volume->spacing[0] * x +
                                frame->axes[3 + i] * volume->spacing[1] * y + frame->axes[6 + i] * z;
}

int64_t
expect_box_voxels(const struct segment_measures *measures)
{
    int64_t voxels = 1;
    for (int axis = 0; axis < 3; axis++)
        voxels *= measures->last[axis] - measures->first[axis] + 1;
    return voxels;
}

unsigned
expect_facts_faces(const struct expect_facts *facts)
{
    const int64_t slices = facts->volume->extent.slices;
    unsigned faces = 0;
    for (int64_t z = 0; z < slices; z++)
        faces |= facts->slices[z].faces;
    if (!box_is_empty(&facts->slices[0].box))
        faces |= 1u << EXPECT_FACE_LOWEST_SLICE;
    if (!box_is_empty(&facts->slices[slices - 1].box))
        faces |= 1u << EXPECT_FACE_HIGHEST_SLICE;
    return faces;
}

int64_t
expect_facts_contact(const struct expect_facts *facts, enum expect_face face)
{
    const int64_t slices = facts->volume->extent.slices;
    int64_t voxels = 0;
    if (face == EXPECT_FACE_LOWEST_SLICE || face == EXPECT_FACE_HIGHEST_SLICE)
        return facts->slices[face == EXPECT_FACE_LOWEST_SLICE ? 0 : slices - 1].voxels;
    for (int64_t z = 0; z < slices; z++)
        voxels += facts->slices[z].contact[face];
    return voxels;
}

int64_t
expect_facts_sum(const struct expect_facts *facts, int axis)
{
    int64_t sum = 0;
    for (int64_t z = 0; z < facts->volume->extent.slices; z++) {
        const struct expect_slice *slice = &facts->slices[z];
        const int64_t sums[3] = {slice->columns, slice->rows, z * slice->voxels};
        sum += sums[axis];
    }
    return sum;
}
