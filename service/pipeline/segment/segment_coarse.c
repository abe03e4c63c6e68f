#include "service/pipeline/segment/segment_coarse.h"

#include "base/error.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/rescaled_series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOUNSFIELD_UNIT 0.125 /* of real values, HU */

enum { FINEST_SCALE = 64 };

/* ------------------------------------------------------------------------------- preparing -- */

/* Makes the stack of the blocks. */
static int
coarse_volume_lay_out(struct coarse_volume *coarse, const struct segmentation *fine, struct error *error)
{
    const struct geometry_stack *from = fine->stack;
    const struct image_extent extent = {from->columns, from->rows, from->plane_count};
    struct geometry_stack *own = &coarse->stack;
    double mm = 0;
    for (size_t i = 0; i < fine->pipeline->segment_count; i++)
        mm = fine->pipeline->segments[i].grid_mm > 0 ? fine->pipeline->segments[i].grid_mm : mm;
    coarse_grid_find(extent, from->spacing, mm, &coarse->blocks);
    *own = *from;
    own->pixel = IMAGE_INT16;
    own->columns = (int32_t)coarse->blocks.extent.columns;
    own->rows = (int32_t)coarse->blocks.extent.rows;
    own->plane_count = (int32_t)coarse->blocks.extent.slices;
    memcpy(own->spacing, coarse->blocks.spacing, sizeof own->spacing);
    own->planes = calloc((size_t)own->plane_count, sizeof *own->planes);
    if (!own->planes)
        return error_set_system(error, -ENOMEM, "make the coarse grid");
    for (int axis = 0; axis < 3; axis++)
        for (int i = 0; i < 3; i++)
            own->origin[i] += from->axes[3 * axis + i] * (own->spacing[axis] - from->spacing[axis]) / 2;
    for (int32_t z = 0; z < own->plane_count; z++)
        own->planes[z].position =
            from->planes[0].position + (own->spacing[2] - from->spacing[2]) / 2 + z * own->spacing[2];
    return 0;
}

/* Finds the unit and the origin of the blocks of real values: 1/8 HU, or one for which all values fit. */
static struct image_rescale
coarse_volume_scale_real(struct rescaled_series *series, bool is_hounsfield)
{
    const struct image_rescale of = series->rescale;
    const double span = series->highest - series->lowest;
    struct image_rescale scale = {.slope = span / UINT16_MAX};
    if (is_hounsfield)
        return (struct image_rescale){HOUNSFIELD_UNIT / of.slope, (0 - of.intercept) / of.slope};
    if (series->values.whole)
        for (scale.slope = 1; scale.slope * UINT16_MAX < span;)
            scale.slope *= 2;
    scale.intercept = series->lowest - INT16_MIN * scale.slope;
    return scale;
}

/* Sets the values of blocks that are means of real values. Returns their rescale. */
static struct image_rescale
coarse_volume_set_real(struct rescaled_series *series, bool is_hounsfield)
{
    const struct image_rescale scale = coarse_volume_scale_real(series, is_hounsfield), of = series->rescale;
    for (int64_t z = 0; z < series->values.extent.slices; z++) {
        series->rescales[z].slope /= scale.slope;
        series->rescales[z].intercept = (series->rescales[z].intercept - scale.intercept) / scale.slope;
    }
    series->values.padded = (series->values.padded - scale.intercept) / scale.slope;
    return (struct image_rescale){of.slope * scale.slope, of.slope * scale.intercept + of.intercept};
}

/* Sets the values of blocks that are means of stored values. Returns their rescale. */
static struct image_rescale
coarse_volume_set_stored(const struct rescaled_series *series, bool is_hounsfield, struct coarse_request *request)
{
    const struct image_range limits = series->limits;
    const struct image_rescale rescale = series->rescale;
    request->lo = limits.lo;
    request->hi = limits.hi;
    request->padding = series->padding;
    request->offset = limits.lo + (limits.hi - limits.lo + 1) / 2;
    if (is_hounsfield)
        request->offset = (int32_t)lround(fmin(fmax(-rescale.intercept / rescale.slope, limits.lo), limits.hi));
    while ((limits.hi - request->offset) * request->scale > INT16_MAX ||
           (limits.lo - request->offset) * request->scale < INT16_MIN)
        request->scale /= 2;
    return (struct image_rescale){rescale.slope / request->scale, rescale.slope * request->offset + rescale.intercept};
}

/* Fills the request or the values of the slices, and the instance that gives the blocks their meaning. */
static int
coarse_volume_scale(struct coarse_volume *coarse, const struct segmentation *fine, const struct kernels_lane *lane,
                    struct coarse_request *request, struct rescaled_series *series, struct error *error)
{
    const struct geometry_plane *first = &fine->stack->planes[0];
    struct dicom_instance *own = &coarse->instance;
    *request = (struct coarse_request){.grid = coarse->blocks, .scale = FINEST_SCALE, .blocks = coarse->voxels};
    int rc = rescaled_series_make(fine->instances, fine->stack, lane, series, error);
    if (rc == 0)
        rc = rescaled_series_limit(fine->instances, fine->stack, series, error);
    if (rc)
        return rc;
    const bool is_hounsfield = strcmp(value_unit_of(fine->instances, fine->stack), "[hnsf'U]") == 0;
    const struct image_rescale rescale = series->is_apart ? coarse_volume_set_real(series, is_hounsfield)
                                                          : coarse_volume_set_stored(series, is_hounsfield, request);
    *own = *fine->instances[first->instance];
    coarse->frame = own->frames[first->frame];
    coarse->frame.has_rescale = true;
    coarse->frame.slope = rescale.slope;
    coarse->frame.intercept = rescale.intercept;
    own->frames = &coarse->frame;
    own->frame_count = 1;
    own->pixel = IMAGE_INT16;
    own->bits_stored = 16;
    own->has_padding = false;
    if (strcmp(value_unit_of(fine->instances, fine->stack), "1") == 0)
        own->value_unit[0] = '\0';
    coarse->instances[0] = own;
    return 0;
}

bool
coarse_volume_is_wanted(const struct conf_pipeline *pipeline)
{
    bool any = false;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        any |= pipeline->segments[i].grid_mm > 0;
    return any;
}

int
coarse_volume_prepare(struct coarse_volume *coarse, struct segmentation *fine, struct kernels_lane *lane,
                      int64_t most_bytes, struct error *error)
{
    struct kernels_demand demand = {.of = {NULL}, .most_bytes = most_bytes};
    struct coarse_request request;
    struct rescaled_series series = {.is_apart = false};
    coarse->lane = lane;
    int rc = coarse_volume_lay_out(coarse, fine, error);
    if (rc == 0)
        rc = coarse_volume_scale(coarse, fine, NULL, &request, &series, error);
    rescaled_series_release(&series);
    if (rc)
        return rc;
    coarse->grid = (struct grid){.instances = coarse->instances,
                                 .stack = &coarse->stack,
                                 .source = &coarse->stack,
                                 .source_instances = coarse->instances};
    coarse->segmentation = (struct segmentation){.pipeline = fine->pipeline,
                                                 .is_coarse = true,
                                                 .instances = coarse->instances,
                                                 .stack = &coarse->stack,
                                                 .grid = &coarse->grid};
    rc = segmentation_prepare(&coarse->segmentation, &demand, error);
    return rc ? rc
              : kernels_volume_begin(coarse->lane, coarse->blocks.extent, IMAGE_INT16, &demand, &coarse->voxels, error);
}

void
coarse_volume_release(struct coarse_volume *coarse)
{
    segmentation_release(&coarse->segmentation);
    free(coarse->stack.planes);
    *coarse = (struct coarse_volume){.voxels = NULL};
}

/* --------------------------------------------------------------------------------- masks ---- */

bool
coarse_volume_expands(const struct conf_pipeline *pipeline, size_t segment)
{
    const struct conf_segment *own = &pipeline->segments[segment];
    bool needed = own->grid_mm > 0 && !own->hidden;
    struct conf_use use;
    for (size_t i = 0; i < pipeline->segment_count && own->grid_mm > 0; i++) {
        const struct conf_refine *refine = pipeline->segments[i].refine;
        for (size_t n = 0; pipeline->segments[i].grid_mm <= 0 && conf_segment_use(pipeline, i, n, &use); n++)
            needed |= !(refine && use.label == refine->label) && strcmp(use.label, own->label) == 0;
    }
    return needed;
}

/* Returns the number of the images' voxels in a mask of blocks: the last blocks along each axis may have fewer. */
static int64_t
coarse_volume_count(const struct coarse_grid *blocks, const struct image_mask *mask, const struct image_extent *extent)
{
    const int64_t *factor = blocks->factor, words = mask->words_per_row, rows = blocks->extent.rows;
    const int64_t end = blocks->extent.columns - 1,
                  missing[2] = {(end + 1) * factor[0] - extent->columns, rows * factor[1] - extent->rows};
    int64_t voxels = 0;
    for (int64_t z = 0; z < blocks->extent.slices; z++) {
        const uint64_t *slice = mask->bits + z * rows * words, *last = slice + (rows - 1) * words;
        const int64_t deep = extent->slices - z * factor[2];
        const int64_t high = mask_count(slice, rows * words) * factor[1] - mask_count(last, words) * missing[1];
        int64_t ends = 0; /* rows of voxels in the last blocks of rows */
        for (int64_t y = 0; y < rows && missing[0] > 0; y++)
            ends += (int64_t)(slice[y * words + end / 64] >> end % 64 & 1) * factor[1];
        ends -= (int64_t)(last[end / 64] >> end % 64 & 1) * missing[1];
        voxels += (high * factor[0] - ends * missing[0]) * (deep < factor[2] ? deep : factor[2]);
    }
    return voxels;
}

/* Gives the segmentation of the images' voxels the masks. */
static int
coarse_volume_expand(const struct coarse_volume *coarse, struct segmentation *fine, struct kernels_lane *lane,
                     struct error *error)
{
    const struct image_extent extent = {fine->stack->columns, fine->stack->rows, fine->stack->plane_count};
    int rc = 0;
    for (size_t i = 0; i < fine->pipeline->segment_count && rc == 0; i++) {
        const struct image_mask *mask = &coarse->segmentation.masks[i];
        struct kernels_mask_result result;
        uint64_t *bits;
        if (segment_is_here(fine, i))
            continue;
        fine->masks[i] = (struct image_mask){.words_per_row = (extent.columns - 1) / 64 + 1,
                                             .voxels = coarse_volume_count(&coarse->blocks, mask, &extent)};
        if (fine->places[i] == SEGMENT_NO_PLACE)
            continue;
        rc = kernels_mask_memory(lane, fine->places[i], &bits, error);
        if (rc)
            break;
        coarse_expand(&coarse->blocks, mask->bits, extent, kernels_lane_threads(lane), false, bits);
        const struct kernels_mask_request request = {.padding = {1, 0}, .found = bits};
        rc = kernels_mask_run(lane, fine->places[i], &request, &result, error);
        if (rc == 0)
            fine->masks[i].bits = result.mask.bits;
    }
    return rc;
}

int
coarse_volume_run(struct coarse_volume *coarse, struct segmentation *fine, struct kernels_lane *lane,
                  struct error *error)
{
    struct coarse_request request;
    struct rescaled_series series;
    int rc = coarse_volume_scale(coarse, fine, lane, &request, &series, error); /* the padding may be known only now */
    if (rc == 0)
        rc = segmentation_begin(&coarse->segmentation, coarse->lane, error);
    if (rc == 0)
        rc = series.is_apart ? rescaled_blocks(&series.values, &coarse->blocks, coarse->voxels, error)
                             : coarse_run(lane, &request, error);
    rescaled_series_release(&series);
    if (rc == 0)
        rc = kernels_volume_ready(coarse->lane, 0, coarse->stack.plane_count, error);
    if (rc == 0)
        rc = segmentation_run(&coarse->segmentation, coarse->lane, coarse->voxels, error);
    return rc ? rc : coarse_volume_expand(coarse, fine, lane, error);
}

int
coarse_volume_band(const struct coarse_volume *coarse, const struct segmentation *fine, size_t segment,
                   struct kernels_mask_step step, bool unite, uint64_t *bits, struct error *error)
{
    const struct image_extent extent = {fine->stack->columns, fine->stack->rows, fine->stack->plane_count};
    const struct kernels_mask_request request = {
        .padding = {1, 0}, .found = coarse->segmentation.masks[segment].bits, .steps = &step, .step_count = 1};
    struct kernels_mask_result result;
    const int rc = kernels_mask_run(coarse->lane, coarse->segmentation.spare, &request, &result, error);
    if (rc == 0)
        coarse_expand(&coarse->blocks, result.mask.bits, extent, kernels_lane_threads(coarse->lane), unite, bits);
    return rc;
}

int
coarse_volume_windows(const struct coarse_volume *coarse, const struct geometry_stack *fine,
                      const struct expect_window *given, struct expect_window **windows, struct error *error)
{
    const struct coarse_grid *blocks = &coarse->blocks;
    const int64_t slices = blocks->extent.slices, size[2] = {fine->columns, fine->rows};
    struct expect_window *made = calloc((size_t)slices, sizeof *made);
    *windows = made;
    if (!made)
        return error_set_system(error, -ENOMEM, "find the edges of the planes");
    for (int64_t z = 0; z < slices; z++)
        for (int axis = 0; axis < 2; axis++) {
            const int64_t factor = blocks->factor[axis];
            made[z].last[axis] = INT64_MAX;
            for (int64_t k = z * blocks->factor[2]; k < (z + 1) * blocks->factor[2] && k < fine->plane_count; k++) {
                /* the first and the last block that lie in the window with all of their voxels */
                const int64_t first = (given[k].first[axis] + factor - 1) / factor, past = given[k].last[axis] + 1;
                const int64_t last = (past < size[axis] ? past / factor : (size[axis] - 1) / factor + 1) - 1;
                made[z].first[axis] = first > made[z].first[axis] ? first : made[z].first[axis];
                made[z].last[axis] = last < made[z].last[axis] ? last : made[z].last[axis];
            }
        }
    return 0;
}

void
coarse_volume_measures(const struct coarse_volume *coarse, const struct geometry_stack *fine,
                       struct segment_measures *measures)
{
    const int64_t *factor = coarse->blocks.factor, size[3] = {fine->columns, fine->rows, fine->plane_count};
    const int64_t missing = coarse->stack.plane_count * factor[2] - size[2]; /* in the last block */
    if (measures->slices == 0)
        return;
    measures->slices *= factor[2];
    if (measures->last[2] == coarse->stack.plane_count - 1)
        measures->slices -= missing;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t end = (measures->last[axis] + 1) * factor[axis];
        measures->first[axis] *= factor[axis];
        measures->last[axis] = (end < size[axis] ? end : size[axis]) - 1;
    }
}

void
coarse_volume_describe(const struct coarse_volume *coarse, char text[SEGMENT_DESCRIPTION])
{
    const int64_t *factor = coarse->blocks.factor;
    segment_append(text, SEGMENT_DESCRIPTION, "; on means of %d x %d x %d voxels", (int)factor[0], (int)factor[1],
                   (int)factor[2]);
}
