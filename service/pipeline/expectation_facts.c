#include "service/pipeline/expectation_facts.h"

#include "service/common/parallel.h"
#include "service/pipeline/components.h"

#include "base/error.h"
#include "kernels/texture/region.h"
#include "kernels/texture/texture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------- a slice -- */

/* Values of eight voxels. */
typedef int16_t slice_lanes __attribute__((vector_size(16)));

enum { SLICE_LANES = 8, SLICE_ADDED = INT16_MAX / UINT8_MAX }; /* a lane holds so many low bytes */

/* Sums and limits of 16-bit values, less `zero`. */
struct slice_values {
    slice_lanes low, high; /* sums of low bytes, and of high bytes */
    slice_lanes lowest, highest;
    int added; /* since the sums were moved */
    int64_t sum;
    int32_t zero; /* 0 of signed values, 32768 of unsigned ones */
};

static struct slice_values
slice_values_none(enum image_pixel pixel)
{
    struct slice_values none = {.zero = pixel == IMAGE_INT16 ? 0 : INT16_MAX + 1};
    none.lowest += INT16_MAX;
    none.highest += INT16_MIN;
    return none;
}

static void
slice_values_move(struct slice_values *values)
{
    for (int i = 0; i < SLICE_LANES; i++)
        values->sum += values->low[i] + 256 * values->high[i];
    values->low ^= values->low;
    values->high ^= values->high;
    values->added = 0;
}

/* Adds 64 voxels, whose sum 32 bits hold. */
static void
slice_values_add_all(struct slice_values *values, const uint16_t *at)
{
    int32_t sum = 0;
    int16_t lowest = values->lowest[0], highest = values->highest[0];
    for (int i = 0; i < 64; i++) {
        const int16_t value = (int16_t)(at[i] ^ values->zero);
        sum += value;
        lowest = value < lowest ? value : lowest;
        highest = value > highest ? value : highest;
    }
    values->sum += sum;
    values->lowest[0] = lowest;
    values->highest[0] = highest;
}

/* Adds those of up to 64 voxels that are set; `left`: voxels up to the end of the row. */
static void
slice_values_add(struct slice_values *values, const uint16_t *at, int64_t left, uint64_t bits)
{
    static const slice_lanes places = {1, 2, 4, 8, 16, 32, 64, 128};
    if (bits == ~UINT64_C(0)) {
        slice_values_add_all(values, at);
        return;
    }
    if (values->added > SLICE_ADDED - SLICE_LANES)
        slice_values_move(values);
    for (; bits; bits >>= SLICE_LANES, at += SLICE_LANES, left -= SLICE_LANES) {
        const slice_lanes in = (places & (int16_t)(bits & UINT8_MAX)) == places;
        slice_lanes value = {0};
        if (left >= SLICE_LANES)
            memcpy(&value, at, sizeof value);
        else
            memcpy(&value, at, (size_t)left * sizeof *at);
        value ^= (int16_t)values->zero;
        const slice_lanes lower = (value < values->lowest) & in, higher = (value > values->highest) & in;
        values->lowest = (value & lower) | (values->lowest & ~lower);
        values->highest = (value & higher) | (values->highest & ~higher);
        values->low += value & in & UINT8_MAX;
        values->high += (value & in) >> 8;
        values->added++;
    }
}

static void
slice_add_values(struct expect_slice *slice, struct slice_values *values)
{
    slice_values_move(values);
    slice->stored += values->sum + slice->voxels * values->zero;
    for (int i = 0; i < SLICE_LANES && slice->voxels > 0; i++) {
        const int32_t low = values->lowest[i] + values->zero, high = values->highest[i] + values->zero;
        slice->lowest = low < slice->lowest ? low : slice->lowest;
        slice->highest = high > slice->highest ? high : slice->highest;
    }
}

/* Adds the stored values of up to 64 voxels in a row, for pixels of other than 16 bits. */
static void
slice_add_run(struct expect_slice *slice, const struct expect_volume *volume, int64_t begin, int count)
{
    for (int i = 0; i < count; i++) {
        const int32_t value = image_value(volume->voxels, volume->pixel, begin + i);
        slice->stored += value;
        slice->lowest = value < slice->lowest ? value : slice->lowest;
        slice->highest = value > slice->highest ? value : slice->highest;
    }
}

/* Adds the voxels of a row, run by run within each word. */
static void
slice_add_row(struct expect_slice *slice, struct slice_values *values, const struct expect_facts *facts,
              const uint64_t *row, int64_t y, int64_t begin)
{
    const struct expect_volume *volume = facts->volume;
    const bool is_wide = image_pixel_size(volume->pixel) == sizeof(uint16_t);
    for (int64_t w = 0; w < facts->mask->words_per_row; w++) {
        if (is_wide && !volume->counts)
            slice_values_add(values, (const uint16_t *)volume->voxels + begin + 64 * w, volume->extent.columns - 64 * w,
                             row[w]);
        if (row[w] == ~UINT64_C(0) && (is_wide || volume->counts)) {
            slice->voxels += 64;
            slice->columns += 64 * 64 * w + 64 * 63 / 2;
            slice->rows += 64 * y;
            continue;
        }
        for (uint64_t bits = row[w]; bits;) {
            const int first = __builtin_ctzll(bits);
            const uint64_t behind = ~(bits >> first);
            const int count = behind ? __builtin_ctzll(behind) : 64;
            const int64_t x = 64 * w + first;
            if (!is_wide && !volume->counts)
                slice_add_run(slice, volume, begin + x, count);
            slice->voxels += count;
            slice->columns += count * (2 * x + count - 1) / 2;
            slice->rows += count * y;
            bits = count < 64 ? bits & ~((UINT64_C(1) << count) - 1) << first : 0;
        }
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

static struct expect_slice
slice_none(void)
{
    return (struct expect_slice){.box = {{INT64_MAX, INT64_MAX}, {-1, -1}}, .lowest = INT32_MAX, .highest = INT32_MIN};
}

/* Measures rows first .. end - 1 of a slice. */
static struct expect_slice
slice_look(const struct expect_facts *facts, int64_t z, int64_t first_row, int64_t end_row)
{
    const struct expect_volume *volume = facts->volume;
    const struct image_extent *extent = &volume->extent;
    const struct expect_window whole = {{0, 0}, {extent->columns - 1, extent->rows - 1}};
    const struct expect_window *window = volume->windows ? &volume->windows[z] : &whole;
    struct expect_slice slice = slice_none();
    struct expect_window *box = &slice.box;
    struct slice_values values = slice_values_none(volume->pixel);
    for (int64_t y = first_row; y < end_row; y++) {
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
        slice_add_row(&slice, &values, facts, row, y, at * extent->columns);
        const unsigned faces = facts->faces ? faces_of_row(volume, window, first, last, y, z) : 0;
        slice.faces |= faces;
        for (int face = 0; face < EXPECT_FACES; face++)
            if (faces >> face & 1)
                slice.contact[face] +=
                    face == EXPECT_FACE_FIRST_ROW || face == EXPECT_FACE_LAST_ROW ? slice.voxels - before : 1;
    }
    if (image_pixel_size(volume->pixel) == sizeof(uint16_t) && !volume->counts)
        slice_add_values(&slice, &values);
    return slice;
}

/* Adds a band of the slice. */
static void
slice_add_band(struct expect_slice *slice, const struct expect_slice *band)
{
    for (int axis = 0; axis < 2; axis++) {
        const int64_t first = band->box.first[axis], last = band->box.last[axis];
        slice->box.first[axis] = first < slice->box.first[axis] ? first : slice->box.first[axis];
        slice->box.last[axis] = last > slice->box.last[axis] ? last : slice->box.last[axis];
    }
    slice->faces |= band->faces;
    slice->voxels += band->voxels;
    slice->stored += band->stored;
    slice->lowest = band->lowest < slice->lowest ? band->lowest : slice->lowest;
    slice->highest = band->highest > slice->highest ? band->highest : slice->highest;
    slice->columns += band->columns;
    slice->rows += band->rows;
    for (int face = 0; face < EXPECT_FACES; face++)
        slice->contact[face] += band->contact[face];
}

/* Counts the values of a mask of one slice in the lane. The sum of integers is that of slice_look(). */
static int
slice_count_values(const struct expect_facts *facts, struct expect_slice *slice, struct error *error)
{
    const struct expect_volume *volume = facts->volume;
    const struct image_range limits = image_pixel_range(volume->pixel);
    const size_t values = (size_t)(limits.hi - limits.lo) + 1;
    uint64_t *counts = calloc(values, sizeof *counts);
    int rc = counts ? texture_region_hold(volume->lane, facts->mask->bits, error)
                    : error_set_system(error, -ENOMEM, "measure the segments");
    if (rc == 0)
        rc = texture_histogram_run(volume->lane, facts->mask->bits, false, counts, error);
    for (size_t i = 0; i < values && rc == 0; i++) {
        const int32_t value = limits.lo + (int32_t)i;
        if (counts[i] == 0)
            continue;
        slice->stored += value * (int64_t)counts[i];
        slice->lowest = value < slice->lowest ? value : slice->lowest;
        slice->highest = value;
    }
    free(counts);
    return rc;
}

/* -------------------------------------------------------------------------------- all slices -- */

enum { FACTS_BAND = 1 << 20, FACTS_BANDS = 64 }; /* voxels of a band, or more; max bands per slice */

/* Masks, measured in turn, band by band: those of a volume then find its values in the cache. */
struct facts_pass {
    struct expect_facts *of;
    int64_t count;
};

/* Returns the number of bands of rows of each slice. */
static int64_t
facts_bands(const struct expect_facts *facts)
{
    const struct image_extent *extent = &facts->volume->extent;
    const int64_t bands = image_slice_voxels(extent) / FACTS_BAND, most = bands < FACTS_BANDS ? bands : FACTS_BANDS;
    return most < 1 ? 1 : most < extent->rows ? most : extent->rows;
}

static void
facts_share(struct parallel *loop, void *context)
{
    const struct facts_pass *pass = context;
    int64_t round;
    while (parallel_take(loop, &round)) {
        const struct expect_facts *facts = &pass->of[round % pass->count];
        const int64_t i = round / pass->count, bands = facts->mask ? facts_bands(facts) : 1,
                      rows = facts->volume->extent.rows;
        if (facts->mask && i < facts->volume->extent.slices * bands)
            facts->slices[i] = slice_look(facts, i / bands, i % bands * rows / bands, (i % bands + 1) * rows / bands);
    }
}

/* Joins the bands of each slice. */
static int
facts_join(const struct expect_facts *facts, struct error *error)
{
    const int64_t bands = facts_bands(facts);
    int rc = 0;
    for (int64_t z = 0; z < facts->volume->extent.slices; z++) {
        struct expect_slice slice = facts->slices[z * bands];
        for (int64_t band = 1; band < bands; band++)
            slice_add_band(&slice, &facts->slices[z * bands + band]);
        facts->slices[z] = slice;
    }
    if (facts->volume->counts)
        rc = slice_count_values(facts, facts->slices, error);
    return rc;
}

int
expect_facts_find(struct expect_facts *facts, size_t count, int threads, struct error *error)
{
    struct facts_pass pass = {facts, (int64_t)count};
    int64_t most = 0;
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t bands = facts[i].mask ? facts[i].volume->extent.slices * facts_bands(&facts[i]) : 0;
        facts[i].slices = malloc((size_t)bands * sizeof *facts[i].slices + 1);
        if (!facts[i].slices)
            return error_set_system(error, -ENOMEM, "measure the segments");
        most = bands > most ? bands : most;
    }
    struct parallel loop = {.count = most * pass.count, .body = facts_share, .context = &pass};
    parallel_run(&loop, threads);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = facts[i].mask ? facts_join(&facts[i], error) : 0;
    return rc;
}

void
expect_facts_clear(struct expect_facts *facts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(facts[i].slices);
}

static void
bands_share(struct parallel *loop, void *context)
{
    struct components *bands = context;
    int64_t band;
    while (parallel_take(loop, &band))
        if (components_sweep(bands, band))
            parallel_fail(loop);
}

int
expect_facts_components(const struct expect_facts *facts, int64_t *count)
{
    const int threads = facts->volume->threads;
    struct components *bands;
    /* Make two bands per thread, since bands differ in their number of voxels. */
    int rc = components_begin(&facts->volume->extent, facts->mask, threads > 1 ? 2 * threads : 1, &bands);
    if (rc)
        return rc;
    struct parallel loop = {.count = components_bands(bands), .body = bands_share, .context = bands};
    parallel_run(&loop, threads);
    rc = atomic_load(&loop.failed) ? -ENOMEM : components_join(bands, count);
    components_free(bands);
    return rc;
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
