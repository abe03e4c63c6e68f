/* expect.c - see expect.h. */
#include "service/pipeline/expect.h"

#include "base/text.h"
#include "service/pipeline/components.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t *
expect_row(const struct image_extent *extent, const struct image_mask *mask, int64_t y, int64_t z)
{
    return mask->bits + (z * extent->rows + y) * mask->words_per_row;
}

/* -------------------------------------------------------------------------------- measuring -- */

static bool
slice_has_voxels(const struct image_extent *extent, const struct image_mask *mask, int64_t z)
{
    const uint64_t *bits = expect_row(extent, mask, 0, z);
    for (int64_t w = 0; w < extent->rows * mask->words_per_row; w++)
        if (bits[w])
            return true;
    return false;
}

static int64_t
count_slices(const struct image_extent *extent, const struct image_mask *mask)
{
    int64_t slices = 0;
    for (int64_t z = 0; z < extent->slices; z++)
        slices += slice_has_voxels(extent, mask, z);
    return slices;
}

static double
volume_ml(const struct expect_volume *volume, const struct image_mask *mask)
{
    return (double)mask->voxels * volume->spacing[0] * volume->spacing[1] * volume->spacing[2] /
           1000;
}

/* Stored values of `count` voxels in a row. */
static int64_t
sum_run(const struct expect_volume *volume, int64_t begin, int64_t count)
{
    int64_t sum = 0;
    if (volume->pixel == IMAGE_INT16)
        for (const int16_t *value = (const int16_t *)volume->voxels + begin; count > 0; count--)
            sum += *value++;
    else
        for (int64_t i = 0; i < count; i++)
            sum += image_value(volume->voxels, volume->pixel, begin + i);
    return sum;
}

/* Stored values of a plane's voxels, and how many these are: run by run, a word's each for itself. */
static int64_t
sum_plane(const struct expect_volume *volume, const struct image_mask *mask, int64_t z,
          int64_t *voxels)
{
    const struct image_extent *extent = &volume->extent;
    int64_t sum = 0;
    *voxels = 0;
    for (int64_t y = 0; y < extent->rows; y++) {
        const uint64_t *row = expect_row(extent, mask, y, z);
        const int64_t begin = (z * extent->rows + y) * extent->columns;
        for (int64_t w = 0; w < mask->words_per_row; w++)
            for (uint64_t bits = row[w]; bits;) {
                const int first = __builtin_ctzll(bits);
                const uint64_t behind = ~(bits >> first);
                const int count = behind ? __builtin_ctzll(behind) : 64;
                sum += sum_run(volume, begin + 64 * w + first, count);
                *voxels += count;
                bits = count < 64 ? bits & ~((UINT64_C(1) << count) - 1) << first : 0;
            }
    }
    return sum;
}

static double
mean_of(const struct expect_volume *volume, const struct image_mask *mask)
{
    double sum = 0;
    for (int64_t z = 0; z < volume->extent.slices; z++) {
        int64_t voxels;
        const int64_t stored = sum_plane(volume, mask, z, &voxels);
        const struct image_rescale *rescale = &volume->rescale[z];
        if (voxels > 0)
            sum += rescale->slope * (double)stored + rescale->intercept * (double)voxels;
    }
    return sum / (double)mask->voxels;
}

/* ----------------------------------------------------------------------------------- touching */

enum face {
    FACE_FIRST_COLUMN,
    FACE_LAST_COLUMN,
    FACE_FIRST_ROW,
    FACE_LAST_ROW,
    FACE_LOWEST_SLICE,
    FACE_HIGHEST_SLICE,
    FACE_PADDING, /* beside a row's first or last voxel: as where a round field of view ends */
    FACES
};

static const char *const face_names[FACES] = {"first column", "last column",  "first row",
                                              "last row",     "lowest slice", "highest slice",
                                              "padding"};

/* The first and the last voxel of a row that are set; false: none is. */
static bool
row_span(const uint64_t *row, int64_t words, int64_t *first, int64_t *last)
{
    *first = *last = -1;
    for (int64_t w = 0; w < words; w++) {
        if (!row[w])
            continue;
        *first = *first < 0 ? 64 * w + __builtin_ctzll(row[w]) : *first;
        *last = 64 * w + 63 - __builtin_clzll(row[w]);
    }
    return *first >= 0;
}

/* The voxels of the box around a mask that is not empty. */
static int64_t
box_voxels(const struct image_extent *extent, const struct image_mask *mask)
{
    int64_t first[3] = {INT64_MAX, INT64_MAX, INT64_MAX}, last[3] = {-1, -1, -1};
    for (int64_t z = 0; z < extent->slices; z++)
        for (int64_t y = 0; y < extent->rows; y++) {
            int64_t from[3] = {0, y, z}, to[3] = {0, y, z};
            if (!row_span(expect_row(extent, mask, y, z), mask->words_per_row, &from[0], &to[0]))
                continue;
            for (int axis = 0; axis < 3; axis++) {
                first[axis] = from[axis] < first[axis] ? from[axis] : first[axis];
                last[axis] = to[axis] > last[axis] ? to[axis] : last[axis];
            }
        }
    return (last[0] - first[0] + 1) * (last[1] - first[1] + 1) * (last[2] - first[2] + 1);
}

static bool
voxel_is_padding(const struct expect_volume *volume, int64_t x, int64_t y, int64_t z)
{
    const int64_t at = (z * volume->extent.rows + y) * volume->extent.columns + x;
    const int32_t value = image_value(volume->voxels, volume->pixel, at);
    return value >= volume->padding[z].lo && value <= volume->padding[z].hi;
}

/* A set of faces. */
static unsigned
faces_of_slice(const struct expect_volume *volume, const struct image_mask *mask, int64_t z,
               const struct expect_window *window)
{
    const int64_t *low = window->first, *high = window->last;
    unsigned faces = 0;
    for (int64_t y = 0; y < volume->extent.rows; y++) {
        int64_t first, last;
        if (!row_span(expect_row(&volume->extent, mask, y, z), mask->words_per_row, &first, &last))
            continue;
        faces |= first <= low[0] ? 1u << FACE_FIRST_COLUMN : 0;
        faces |= last >= high[0] ? 1u << FACE_LAST_COLUMN : 0;
        faces |= y <= low[1] ? 1u << FACE_FIRST_ROW : 0;
        faces |= y >= high[1] ? 1u << FACE_LAST_ROW : 0;
        if (y > low[1] && y < high[1] &&
            ((first > low[0] && voxel_is_padding(volume, first - 1, y, z)) ||
             (last < high[0] && voxel_is_padding(volume, last + 1, y, z))))
            faces |= 1u << FACE_PADDING;
    }
    return faces;
}

static unsigned
faces_of(const struct expect_volume *volume, const struct image_mask *mask)
{
    const struct image_extent *extent = &volume->extent;
    const struct expect_window whole = {{0, 0}, {extent->columns - 1, extent->rows - 1}};
    unsigned faces = 0;
    for (int64_t z = 0; z < extent->slices; z++)
        faces |= faces_of_slice(volume, mask, z, volume->windows ? &volume->windows[z] : &whole);
    if (slice_has_voxels(extent, mask, 0))
        faces |= 1u << FACE_LOWEST_SLICE;
    if (slice_has_voxels(extent, mask, extent->slices - 1))
        faces |= 1u << FACE_HIGHEST_SLICE;
    return faces;
}

/* ----------------------------------------------------------------------------------- breaches */

struct expect_look {
    const struct conf_pipeline *pipeline;
    const struct expect_volume *volume;
    const struct image_mask *masks;
    struct expect_breaches *breaches; /* there is room */
    size_t segment;                   /* from 0 */
};

static void __attribute__((format(printf, 3, 4)))
look_add(const struct expect_look *look, const struct expect_breach *given, const char *format, ...)
{
    struct expect_breach *breach = &look->breaches->at[look->breaches->count++];
    *breach = *given;
    breach->segment = look->segment;
    int length = snprintf(breach->text, sizeof breach->text,
                          "%s: ", look->pipeline->segments[look->segment].label);
    va_list values;
    va_start(values, format);
    if (length > 0 && (size_t)length < sizeof breach->text)
        vsnprintf(breach->text + length, sizeof breach->text - (size_t)length, format, values);
    va_end(values);
    text_utf8_mend_end(breach->text);
}

/* Six digits, or all where these would say that it lies within the bounds. */
static void
look_put_found(double found, const double bounds[2], char text[TEXT_DIGITS])
{
    snprintf(text, TEXT_DIGITS, "%.6g", found);
    const double rounded = strtod(text, NULL);
    if (rounded >= bounds[0] && rounded <= bounds[1])
        text_digits(found, text);
}

/* `before` and `behind`: the words around the number that was found and those that are expected. */
static void
look_compare(const struct expect_look *look, const char *expectation, const double bounds[2],
             double found, const char *before, const char *behind)
{
    char number[TEXT_DIGITS], expected[80];
    if (found >= bounds[0] && found <= bounds[1])
        return;
    look_put_found(found, bounds, number);
    if (bounds[0] < bounds[1])
        snprintf(expected, sizeof expected, "%.10g to %.10g", bounds[0], bounds[1]);
    else
        snprintf(expected, sizeof expected, "%.10g", bounds[0]);
    const struct expect_breach breach = {.expectation = expectation,
                                         .found = found,
                                         .bounded = true,
                                         .allowed = {bounds[0], bounds[1]}};
    look_add(look, &breach, "%s%s%s, expected %s%s", before, number, behind, expected, behind);
}

static void
look_at_touches(const struct expect_look *look, enum conf_touches touches)
{
    static const unsigned allowed[] = {
        [CONF_TOUCHES_ANY] = ~0u,
        [CONF_TOUCHES_TOP_BOTTOM] = 1u << FACE_LOWEST_SLICE | 1u << FACE_HIGHEST_SLICE,
        [CONF_TOUCHES_NONE] = 0,
    };
    char names[160] = "";
    const char *between = "";
    int broken = 0;
    if (touches == CONF_TOUCHES_ANY)
        return;
    const unsigned faces = faces_of(look->volume, &look->masks[look->segment]) & ~allowed[touches];
    for (int face = 0; face < FACES; face++) {
        if (!(faces >> face & 1))
            continue;
        const size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", between, face_names[face]);
        between = ", ";
        broken++;
    }
    const struct expect_breach breach = {.expectation = "touches", .found = broken};
    if (broken)
        look_add(look, &breach, "reaches the edge of the volume (%s), expected %s", names,
                 touches == CONF_TOUCHES_NONE ? "to reach none"
                                              : "in the lowest and the highest slice alone");
}

static void
look_at_share(const struct expect_look *look, const struct conf_share *share)
{
    size_t other = 0;
    char before[96];
    while (strcmp(look->pipeline->segments[other].label, share->label) != 0)
        other++;
    const int64_t whole = look->masks[other].voxels;
    const struct expect_breach breach = {.expectation = "share_of"};
    if (whole == 0) {
        look_add(look, &breach, "its share of %s is not known, in which nothing was found",
                 share->label);
        return;
    }
    snprintf(before, sizeof before, "share of %s ", share->label);
    look_compare(look, "share_of", share->range,
                 (double)look->masks[look->segment].voxels / (double)whole, before, "");
}

static void
look_at_share_of_box(const struct expect_look *look, const struct conf_bounds *bounds)
{
    const struct image_mask *mask = &look->masks[look->segment];
    const int64_t box = bounds->given ? box_voxels(&look->volume->extent, mask) : 0;
    if (bounds->given)
        look_compare(look, "share_of_box", bounds->at, (double)mask->voxels / (double)box,
                     "share of the box around it ", "");
}

/* A micrometre is what decimals of positions may be off by. */
static void
look_at_slice_mm(const struct expect_look *look, const struct conf_bounds *bounds)
{
    const double found = round(look->volume->slice_mm * 1000) / 1000;
    if (bounds->given && found > 0)
        look_compare(look, "slice_mm", bounds->at, found, "slices of ", " mm");
    else if (bounds->given)
        look_add(look, &(struct expect_breach){.expectation = "slice_mm"},
                 "how thick the slices are is not known");
}

static void
look_at_unit(const struct expect_look *look, const char *unit)
{
    const char *found = look->volume->ucum;
    if (unit && strcmp(found, unit) != 0)
        look_add(look, &(struct expect_breach){.expectation = "unit"},
                 "the images' values are %s%s, expected in %s", *found ? "in " : "of no known unit",
                 found, unit);
}

static void
look_at_contrast(const struct expect_look *look, const struct conf_expect *expect)
{
    if (expect->has_contrast && look->volume->contrast != expect->contrast)
        look_add(look, &(struct expect_breach){.expectation = "contrast"},
                 "the images name %s contrast agent, expected %s", expect->contrast ? "no" : "a",
                 expect->contrast ? "one" : "none");
}

static int
look_at_components(const struct expect_look *look, const struct conf_bounds *bounds)
{
    int64_t count;
    if (!bounds->given)
        return 0;
    int rc = components_count(&look->volume->extent, &look->masks[look->segment], &count);
    if (rc == 0)
        look_compare(look, "components", bounds->at, (double)count, "components: ", "");
    return rc;
}

static int
look_at_segment(const struct expect_look *look)
{
    const struct conf_expect *expect = look->pipeline->segments[look->segment].expect;
    const struct image_mask *mask = &look->masks[look->segment];
    const struct expect_volume *volume = look->volume;
    if (!expect)
        return 0;
    if (mask->voxels == 0) {
        look_add(look, &(struct expect_breach){.expectation = "expect"}, "nothing was found");
        return 0;
    }
    if (expect->volume_ml.given)
        look_compare(look, "volume_ml", expect->volume_ml.at, volume_ml(volume, mask), "volume ",
                     " ml");
    if (expect->mean.given)
        look_compare(look, "mean", expect->mean.at, mean_of(volume, mask), "mean ", volume->unit);
    int rc = look_at_components(look, &expect->components);
    if (expect->slices.given)
        look_compare(look, "slices", expect->slices.at, (double)count_slices(&volume->extent, mask),
                     "slices with voxels: ", "");
    look_at_touches(look, expect->touches);
    if (expect->share_of)
        look_at_share(look, expect->share_of);
    look_at_share_of_box(look, &expect->share_of_box);
    look_at_slice_mm(look, &expect->slice_mm);
    look_at_unit(look, expect->unit);
    look_at_contrast(look, expect);
    return rc;
}

enum { MOST_OF_A_SEGMENT = 10 }; /* one an option */

int
expect_check(const struct conf_pipeline *pipeline, const struct expect_volume *volume,
             const struct image_mask *masks, struct expect_breaches *breaches, struct error *error)
{
    struct expect_look look = {pipeline, volume, masks, breaches, 0};
    *breaches = (struct expect_breaches){
        calloc(MOST_OF_A_SEGMENT * pipeline->segment_count + 1, sizeof *breaches->at), 0};
    int rc = breaches->at ? 0 : -ENOMEM;
    for (; rc == 0 && look.segment < pipeline->segment_count; look.segment++)
        rc = look_at_segment(&look);
    if (rc)
        expect_clear(breaches);
    return rc ? error_set_system(error, rc, "compare the segments with what is expected") : 0;
}

void
expect_clear(struct expect_breaches *breaches)
{
    free(breaches->at);
    *breaches = (struct expect_breaches){0};
}

void
expect_tell(const struct expect_breaches *breaches, char *text, size_t size)
{
    enum { ROOM_FOR_REST = 40 };

    size_t length = 0;
    *text = '\0';
    for (size_t i = 0; i < breaches->count; i++) {
        const char *next = breaches->at[i].text;
        const size_t rest = i + 1 < breaches->count ? ROOM_FOR_REST : 0;
        if (length > 0 && length + 2 + strlen(next) + rest >= size) {
            snprintf(text + length, size - length, "; and %zu more: job.json", breaches->count - i);
            return;
        }
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? "; " : "", next);
    }
}
