#include "service/pipeline/results/panel.h"

#include "service/pipeline/volume.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------- volume --- */

int
panel_volume_make(struct panel_volume *volume)
{
    const struct geometry_stack *stack = volume->stack;
    const struct geometry_plane *planes = stack->planes;
    const int32_t last = stack->plane_count - 1;
    const double step = last > 0 ? (planes[last].position - planes[0].position) / last : 0;
    volume->rescale = calloc((size_t)stack->plane_count, sizeof *volume->rescale);
    volume->even = calloc((size_t)stack->plane_count, sizeof *volume->even);
    if (!volume->rescale || !volume->even)
        return -ENOMEM;
    /* Positions ascend. */
    for (int32_t z = 0, plane = 0; z <= last; z++) {
        const double wanted = planes[0].position + z * step;
        while (plane < last && fabs(planes[plane + 1].position - wanted) <= fabs(planes[plane].position - wanted))
            plane++;
        volume->even[z] = step > 0 ? plane : z;
        volume->rescale[z] = volume_rescale(volume->instances, &planes[z]);
    }
    return 0;
}

void
panel_volume_free(struct panel_volume *volume)
{
    free(volume->rescale);
    free(volume->even);
}

int32_t
panel_voxels(const struct geometry_stack *stack, int axis)
{
    return axis == 0 ? stack->columns : axis == 1 ? stack->rows : stack->plane_count;
}

double
panel_spacing(const struct geometry_stack *stack, int axis)
{
    return stack->has_geometry || stack->flat ? stack->spacing[axis] : 1;
}

/* --------------------------------------------------------------------------- coordinates --- */

static int32_t *
list_voxels(const struct panel_volume *volume, int axis, bool backwards)
{
    const int32_t count = panel_voxels(volume->stack, axis);
    int32_t *voxels = malloc((size_t)count * sizeof *voxels);
    for (int32_t i = 0; voxels && i < count; i++) {
        const int32_t at = backwards ? count - 1 - i : i;
        voxels[i] = axis == 2 ? volume->even[at] : at;
    }
    return voxels;
}

/* Returns the voxel, counted from the left or the top, that contains the centre of a pixel. */
static int32_t
middle_voxel(int32_t voxels, int pixels, int pixel)
{
    return (int32_t)((2 * (int64_t)pixel + 1) * voxels / (2 * (int64_t)pixels));
}

/* Returns the first voxel whose centre lies at or after the start of a pixel. */
static int32_t
first_voxel(int32_t voxels, int pixels, int pixel)
{
    return (int32_t)((2 * (int64_t)pixel * voxels + pixels - 1) / (2 * (int64_t)pixels));
}

/* Makes spans of coordinates: a pixel also includes those between its first and last voxel. */
static struct panel_span *
list_spans(const int32_t *coordinates, int32_t voxels, int pixels)
{
    struct panel_span *spans = malloc((size_t)pixels * sizeof *spans);
    for (int i = 0; spans && i < pixels; i++) {
        int32_t first = first_voxel(voxels, pixels, i), end = first_voxel(voxels, pixels, i + 1);
        if (voxels < pixels) {
            first = middle_voxel(voxels, pixels, i);
            end = first + 1;
        }
        const int32_t a = coordinates[first], b = coordinates[end - 1];
        spans[i] = a < b ? (struct panel_span){a, b + 1} : (struct panel_span){b, a + 1};
    }
    return spans;
}

int
panel_make(const struct panel_volume *volume, struct panel *panel)
{
    const size_t width = (size_t)panel->box.width, height = (size_t)panel->box.height;
    panel->columns = panel_voxels(volume->stack, panel->across);
    panel->rows = panel_voxels(volume->stack, panel->down);
    panel->voxel_across = list_voxels(volume, panel->across, panel->from_right);
    panel->voxel_down = list_voxels(volume, panel->down, panel->from_below);
    panel->line = malloc(((size_t)panel->columns + 63) / 64 * sizeof *panel->line);
    panel->values = malloc(width * height * sizeof *panel->values);
    panel->cover = malloc((width + 2) * (height + 2));
    panel->core = calloc(width + 2, height + 2);
    const int rc = resampler_make(panel->columns, panel->rows, panel->box.width, panel->box.height, &panel->resampler);
    panel->scratch = malloc(resampler_scratch(&panel->resampler) * sizeof *panel->scratch);
    if (rc || !panel->voxel_across || !panel->voxel_down || !panel->line || !panel->values || !panel->cover ||
        !panel->core || !panel->scratch)
        return -ENOMEM;
    panel->span_across = list_spans(panel->voxel_across, panel->columns, panel->box.width);
    panel->span_down = list_spans(panel->voxel_down, panel->rows, panel->box.height);
    return panel->span_across && panel->span_down ? 0 : -ENOMEM;
}

void
panel_free(struct panel *panel)
{
    resampler_free(&panel->resampler);
    free(panel->voxel_across);
    free(panel->voxel_down);
    free(panel->span_across);
    free(panel->span_down);
    free(panel->scratch);
    free(panel->values);
    free(panel->line);
    free(panel->cover);
    free(panel->core);
}

/* -------------------------------------------------------------------------------- values --- */

struct panel_source {
    const struct panel_volume *volume;
    const struct panel *panel;
};

/* Returns the distance between neighbours on an axis, in voxels. */
static int64_t
axis_stride(const struct geometry_stack *stack, int axis)
{
    return axis == 0 ? 1 : axis == 1 ? stack->columns : (int64_t)stack->columns * stack->rows;
}

/* Converts values in memory order, which compilers can vectorise. */
static void
convert_values(const struct panel_volume *volume, int64_t start, int32_t count, float *values)
{
    switch (volume->stack->pixel) {
    case IMAGE_UINT8:
        for (int32_t i = 0; i < count; i++)
            values[i] = ((const uint8_t *)volume->voxels + start)[i];
        break;
    case IMAGE_INT16:
        for (int32_t i = 0; i < count; i++)
            values[i] = ((const int16_t *)volume->voxels + start)[i];
        break;
    case IMAGE_UINT16:
        for (int32_t i = 0; i < count; i++)
            values[i] = ((const uint16_t *)volume->voxels + start)[i];
        break;
    }
}

/* Reads the stored values at start + stride * voxels[i]. */
static void
gather_values(const struct panel_volume *volume, int64_t start, int64_t stride, const int32_t *voxels, int32_t count,
              float *values)
{
    switch (volume->stack->pixel) {
    case IMAGE_UINT8:
        for (int32_t i = 0; i < count; i++)
            values[i] = ((const uint8_t *)volume->voxels)[start + stride * voxels[i]];
        break;
    case IMAGE_INT16:
        for (int32_t i = 0; i < count; i++)
            values[i] = ((const int16_t *)volume->voxels)[start + stride * voxels[i]];
        break;
    case IMAGE_UINT16:
        for (int32_t i = 0; i < count; i++)
            values[i] = ((const uint16_t *)volume->voxels)[start + stride * voxels[i]];
        break;
    }
}

static void
read_panel_row(const void *context, int row, float *values)
{
    const struct panel_source *source = context;
    const struct panel *panel = source->panel;
    const struct geometry_stack *stack = source->volume->stack;
    const struct image_rescale *rescale = source->volume->rescale;
    const int32_t down = panel->voxel_down[row];
    const int64_t start = panel->at * axis_stride(stack, panel->through) + down * axis_stride(stack, panel->down);
    if (panel->across == 0 && !panel->from_right)
        convert_values(source->volume, start, panel->columns, values);
    else
        gather_values(source->volume, start, axis_stride(stack, panel->across), panel->voxel_across, panel->columns,
                      values);
    if (panel->across == 2) {
        for (int32_t i = 0; i < panel->columns; i++) {
            const struct image_rescale *own = &rescale[panel->voxel_across[i]];
            values[i] = (float)own->slope * values[i] + (float)own->intercept;
        }
        return;
    }
    const struct image_rescale *common = &rescale[panel->down == 2 ? down : panel->at];
    const float slope = (float)common->slope, intercept = (float)common->intercept;
    for (int32_t i = 0; i < panel->columns; i++)
        values[i] = slope * values[i] + intercept;
}

void
panel_sample(const struct panel_volume *volume, struct panel *panel)
{
    const struct panel_source context = {volume, panel};
    const struct resample_source source = {read_panel_row, &context};
    resample_rows(&panel->resampler, &source, panel->scratch, panel->values);
}

/* --------------------------------------------------------------------------------- masks --- */

static bool
mask_has(const struct geometry_stack *stack, const struct image_mask *mask, const int32_t voxel[3])
{
    const int64_t row = (int64_t)voxel[2] * stack->rows + voxel[1];
    return mask->bits[row * mask->words_per_row + voxel[0] / 64] >> (voxel[0] % 64) & 1;
}

bool
panel_has(const struct panel_volume *volume, const struct panel *panel, const struct image_mask *mask, int x, int y)
{
    int32_t voxel[3];
    voxel[panel->through] = panel->at;
    voxel[panel->across] = panel->voxel_across[middle_voxel(panel->columns, panel->box.width, x)];
    voxel[panel->down] = panel->voxel_down[middle_voxel(panel->rows, panel->box.height, y)];
    return mask_has(volume->stack, mask, voxel);
}

/* Adds a row of the cut to the panel's line. Returns false if the mask is empty there. */
static bool
panel_add_line(const struct panel_volume *volume, struct panel *panel, const struct image_mask *mask, int32_t down)
{
    int32_t voxel[3];
    uint64_t any = 0;
    voxel[panel->through] = panel->at;
    voxel[panel->down] = down;
    if (panel->across == 0) {
        const int64_t row = (int64_t)voxel[2] * volume->stack->rows + voxel[1];
        const uint64_t *words = mask->bits + row * mask->words_per_row;
        for (int64_t w = 0; w < (panel->columns + 63) / 64; w++) {
            panel->line[w] |= words[w];
            any |= words[w];
        }
        return any;
    }
    for (int32_t i = 0; i < panel->columns; i++) {
        voxel[panel->across] = i;
        const uint64_t bit = mask_has(volume->stack, mask, voxel);
        panel->line[i / 64] |= bit << (i % 64);
        any |= bit;
    }
    return any;
}

static bool
span_has(const uint64_t *line, struct panel_span span)
{
    for (int32_t i = span.first; i < span.end; i++)
        if (line[i / 64] >> (i % 64) & 1)
            return true;
    return false;
}

bool
panel_find_cover(const struct panel_volume *volume, struct panel *panel, const struct image_mask *mask)
{
    const size_t pitch = (size_t)panel->box.width + 2;
    bool covered = false;
    memset(panel->cover, 0, pitch * ((size_t)panel->box.height + 2));
    for (int y = 0; y < panel->box.height; y++) {
        uint8_t *at = panel->cover + (size_t)(y + 1) * pitch + 1;
        const struct panel_span span = panel->span_down[y];
        bool any = false;
        memset(panel->line, 0, ((size_t)panel->columns + 63) / 64 * sizeof *panel->line);
        for (int32_t down = span.first; down < span.end; down++)
            any |= panel_add_line(volume, panel, mask, down);
        for (int x = 0; any && x < panel->box.width; x++)
            at[x] = span_has(panel->line, panel->span_across[x]);
        covered |= any;
    }
    return covered;
}
