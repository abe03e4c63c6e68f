/* result_slices.c - the file of the slice viewer: the volume on the grid of the masks, as it was computed on. */
#include "service/common/slices/slices.h"

#include "service/pipeline/measure/measure.h"
#include "service/pipeline/results/row.h"
#include "service/pipeline/volume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool
result_slices_wanted(const struct results *results)
{
    const enum job_slices of = results->request->spec->slices;
    return of == JOB_SLICES_ALL || (of == JOB_SLICES_REVIEW && results->report->review);
}

/* Fills the tables of the head, which the caller must free. */
static int
slices_fill_tables(const struct results *results, const struct preview_style *style, struct slices_volume *volume)
{
    const struct grid *grid = results->request->grid;
    volume->rescales = calloc((size_t)grid->stack->plane_count, sizeof *volume->rescales);
    volume->segments = calloc(results->segment_count + 1, sizeof *volume->segments);
    if (!volume->rescales || !volume->segments)
        return -ENOMEM;
    volume->rescale_count = (int32_t)volume_tables(grid->instances, grid->stack, volume->rescales, NULL);
    volume->segment_count = (int32_t)results->segment_count;
    for (size_t i = 0; i < results->segment_count; i++) {
        struct slices_segment *segment = &volume->segments[i];
        memcpy(segment->rgb, (const uint8_t[]){style->colors[i].r, style->colors[i].g, style->colors[i].b}, 3);
        snprintf(segment->label, sizeof segment->label, "%s", results->preview_segments[i].label);
    }
    return 0;
}

int
result_slices_write(const struct results *results, const struct preview_style *style, int fd)
{
    const struct grid *grid = results->request->grid;
    const struct geometry_stack *stack = grid->stack;
    const struct dicom_instance *first = grid->instances[stack->planes[0].instance];
    struct slices_volume volume = {.size = {stack->columns, stack->rows, stack->plane_count},
                                   .pixel = stack->pixel,
                                   .monochrome1 = first->monochrome1,
                                   .has_geometry = stack->has_geometry,
                                   .in_mm = stack->has_geometry || (stack->flat && geometry_is_in_mm(stack)),
                                   .spacing = {1, 1, 1},
                                   .window = {style->low, style->high}};
    if (volume.in_mm)
        memcpy(volume.spacing, stack->spacing, sizeof volume.spacing);
    if (stack->has_geometry) {
        memcpy(volume.origin, stack->origin, sizeof volume.origin);
        memcpy(volume.axes, stack->axes, sizeof volume.axes);
    }
    snprintf(volume.unit, sizeof volume.unit, "%s", value_unit_of(grid->instances, stack));
    const struct image_mask **masks = calloc(results->segment_count + 1, sizeof *masks);
    int rc = masks ? slices_fill_tables(results, style, &volume) : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < results->segment_count; i++)
        masks[i] = results->preview_segments[i].mask;
    const struct slices_request request = {&volume, results->request->voxels, masks, results->request->threads};
    if (rc == 0)
        rc = slices_write(&request, fd);
    free(volume.rescales);
    free(volume.segments);
    free(masks);
    return rc;
}
