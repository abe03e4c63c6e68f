#include "service/pipeline/segment/segment_fuzzy.h"

#include "base/error.h"
#include "service/pipeline/segment/segment.h"
#include "service/pipeline/volume.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIDDLE = 8 }; /* maximum number of voxels of it */

/* --------------------------------------------------------------- requirements of a series ---- */

static const char *
plane_path(const struct segmentation *segmentation, int32_t z)
{
    return segmentation->instances[segmentation->stack->planes[z].instance]->path;
}

/* Checks that all planes have the same padding. */
static int
check_planes(const struct segmentation *segmentation, struct image_range padding, struct error *error)
{
    const struct geometry_stack *stack = segmentation->stack;
    for (int32_t z = 1; z < stack->plane_count; z++) {
        struct image_range other = volume_padding(segmentation->instances[stack->planes[z].instance]);
        if (padding.lo != other.lo || padding.hi != other.hi)
            return error_set_files(error, -EINVAL, CODE_PADDING_MIXED, plane_path(segmentation, 0),
                                   plane_path(segmentation, z),
                                   "the padding values of the series differ, or only some of its files have one, and "
                                   "fuzzy connectedness takes one for all slices");
    }
    return 0;
}

/* ---------------------------------------------------------------------------------- seeds ---- */

/* Finds the voxel at the centre; two per axis with an even number. */
static size_t
find_middle(const struct geometry_stack *stack, struct kernels_voxel seeds[MIDDLE])
{
    const int32_t size[3] = {stack->columns, stack->rows, stack->plane_count};
    size_t count = 0;
    for (int32_t z = (size[2] - 1) / 2; z <= size[2] / 2; z++)
        for (int32_t y = (size[1] - 1) / 2; y <= size[1] / 2; y++)
            for (int32_t x = (size[0] - 1) / 2; x <= size[0] / 2; x++)
                seeds[count++] = (struct kernels_voxel){x, y, z};
    return count;
}

static int
make_object(const struct conf_segment *segment, const struct geometry_stack *stack, struct image_range padding,
            struct kernels_voxel *seeds, struct kernels_fuzzy_object *object, struct error *error)
{
    const int32_t size[3] = {stack->columns, stack->rows, stack->plane_count};
    for (size_t i = 0; i < segment->seed_count; i++) {
        double voxel[3];
        volume_point(segment->seeds[i].at, segment->seeds[i].unit, stack, voxel);
        for (int axis = 0; axis < 3; axis++) {
            voxel[axis] = floor(voxel[axis] + 0.5);
            if (!(voxel[axis] >= 0 && voxel[axis] < size[axis]))
                return error_set(error, -EINVAL, CODE_SEED_OUTSIDE,
                                 "seed %zu of segment \"%s\" is at column %.0f, row %.0f, slice "
                                 "%.0f, outside of the volume of %d x %d x %d voxels",
                                 i + 1, segment->label, voxel[0], voxel[1], voxel[2], size[0], size[1], size[2]);
        }
        seeds[i] = (struct kernels_voxel){(int64_t)voxel[0], (int64_t)voxel[1], (int64_t)voxel[2]};
    }
    *object = (struct kernels_fuzzy_object){
        .seeds = seeds,
        .seed_count = segment->automatic == CONF_AUTO_CENTER ? find_middle(stack, seeds) : segment->seed_count,
        .sigma = 1, /* placeholders until both are measured */
        .homogeneity_sigma = 1,
        .weight = segment->weight,
        .threshold = (uint16_t)floor(65535 * segment->threshold),
        .padding = padding,
        .map = segment->connectedness_map,
    };
    return 0;
}

/* -------------------------------------------------------------------------------- objects ---- */

static size_t
fuzzy_most_seeds(const struct conf_segment *segment)
{
    return segment->automatic == CONF_AUTO_CENTER ? MIDDLE : segment->seed_count;
}

static int
fuzzy_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    struct fuzzy_objects *objects = prepared;
    const struct geometry_plane *first = &segmentation->stack->planes[0];
    const struct image_range padding = volume_padding(segmentation->instances[first->instance]);
    objects->demand.objects = segmentation->of[CONF_FUZZY].count;
    objects->demand.relative = segmentation->pipeline->relative_connectedness;
    const size_t count = objects->demand.objects;
    size_t most_seeds = 1;
    for (size_t k = 0; k < count; k++)
        most_seeds += fuzzy_most_seeds(segment_at(segmentation, CONF_FUZZY, k));
    objects->items = calloc(count, sizeof *objects->items);
    objects->gaussians = calloc(count, sizeof *objects->gaussians);
    objects->seeds = calloc(most_seeds, sizeof *objects->seeds);
    if (!objects->items || !objects->gaussians || !objects->seeds)
        return error_set_system(error, -ENOMEM, "prepare the segments");
    int rc = check_planes(segmentation, padding, error);
    objects->series.rescale = volume_rescale(segmentation->instances, first);
    if (rc == 0 && rescaled_series_differs(segmentation->instances, segmentation->stack)) {
        rc = rescaled_series_make(segmentation->instances, segmentation->stack, NULL, &objects->series, error);
        objects->real = calloc(count, sizeof *objects->real);
        rc = objects->real ? rc : error_set_system(error, -ENOMEM, "prepare the segments");
    }
    struct kernels_voxel *seeds = objects->seeds;
    for (size_t k = 0; k < count && rc == 0; k++) {
        const struct conf_segment *segment = segment_at(segmentation, CONF_FUZZY, k);
        rc = make_object(segment, segmentation->stack, padding, seeds, &objects->items[k], error);
        objects->gaussians[k] = (struct fuzzy_gaussians){
            .mean = segment->object_mean,
            .sigma = segment->object_sigma,
            .homogeneity_sigma = segment->homogeneity_sigma,
        };
        objects->demand.maps += segment->connectedness_map;
        seeds += fuzzy_most_seeds(segment);
    }
    return rc;
}

static void
fuzzy_release(void *prepared)
{
    struct fuzzy_objects *objects = prepared;
    for (size_t k = 0; objects->real && k < objects->demand.objects; k++) {
        free(objects->real[k].bits);
        free(objects->real[k].map);
    }
    free(objects->real);
    rescaled_series_release(&objects->series);
    free(objects->items);
    free(objects->gaussians);
    free(objects->seeds);
}

/* ------------------------------------------------------------------------- the method ---- */

static const char *
origin(const struct conf_estimable *number)
{
    return number->given ? "" : " (measured)";
}

/* Writes the used numbers, marks measured ones, and writes the seeds in voxels. */
static void
fuzzy_describe(const struct segmentation *segmentation, size_t number, char text[SEGMENT_DESCRIPTION])
{
    const struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    const size_t k = segment_place(segmentation, number);
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const struct kernels_fuzzy_object *object = &objects->items[k];
    const struct fuzzy_gaussians *gaussians = &objects->gaussians[k];
    const struct conf_estimable *mean = &gaussians->mean, *sigma = &gaussians->sigma,
                                *homogeneity = &gaussians->homogeneity_sigma;
    snprintf(text, SEGMENT_DESCRIPTION,
             "object mean %.9g%s, sigma %.9g%s; homogeneity sigma %.9g%s; weight %g; threshold %g%s", mean->value,
             origin(mean), sigma->value, origin(sigma), homogeneity->value, origin(homogeneity), segment->weight,
             segment->threshold, objects->demand.relative ? "; relative connectedness" : "");
    start_describe(segment, text);
    if (segment->from)
        segment_append(text, SEGMENT_DESCRIPTION, "; from the object of segment %s", segment->from);
    for (size_t i = 0; i < object->seed_count; i++) {
        const struct kernels_voxel *seed = &object->seeds[i];
        segment_append(text, SEGMENT_DESCRIPTION, "%s %" PRId64 ",%" PRId64 ",%" PRId64,
                       i == 0 ? "; seeds in voxels" : "", seed->x, seed->y, seed->z);
    }
}

static void
fuzzy_report(const struct segmentation *segmentation, size_t segment, struct pipeline_segment *report)
{
    const struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    const struct fuzzy_gaussians *gaussians = &objects->gaussians[segment_place(segmentation, segment)];

    const struct {
        const char *key, *words;
        const struct conf_estimable *number;
    } numbers[] = {{"object_mean", "mean", &gaussians->mean},
                   {"object_sigma", "sigma", &gaussians->sigma},
                   {"homogeneity_sigma", "homogeneity sigma", &gaussians->homogeneity_sigma}};

    report->number_count = sizeof numbers / sizeof numbers[0];
    for (int i = 0; i < report->number_count; i++)
        report->numbers[i] = (struct segment_number){numbers[i].key, numbers[i].words, numbers[i].number->value,
                                                     !numbers[i].number->given};
    report->measured_voxels = gaussians->measured_voxels;
}

/* Returns the bytes of the mask around the seeds, if a number is measured. */
static struct segment_bytes
fuzzy_bytes(const struct segmentation *segmentation, size_t number)
{
    const int64_t looking = start_bytes(segmentation, number);
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const bool all_given =
        segment->object_mean.given && segment->object_sigma.given && segment->homogeneity_sigma.given;
    const struct geometry_stack *stack = segmentation->stack;
    const struct image_extent extent = {stack->columns, stack->rows, stack->plane_count};
    const int64_t near = all_given ? 0 : segment_mask_bytes(stack);
    struct segment_bytes bytes = {.passing = looking > near ? looking : near};
    if (!rescaled_series_differs(segmentation->instances, stack))
        return bytes;
    bytes.lasting = segment_mask_bytes(stack) + image_voxels(&extent) * (int64_t)sizeof(uint16_t);
    const int64_t queue = rescaled_fuzzy_bytes(&extent);
    bytes.passing = queue > bytes.passing ? queue : bytes.passing;
    return bytes;
}

/* Gives each segment that became ready its start segment, or the voxels that auto finds, once. */
static int
fuzzy_look(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error)
{
    static const struct kernels_mask_request any_value = {.padding = {1, 0}};
    const struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    int rc = 0;
    for (size_t k = 0; k < objects->demand.objects && rc == 0; k++) {
        const size_t number = segmentation->of[CONF_FUZZY].segments[k];
        const struct conf_segment *segment = &segmentation->pipeline->segments[number];
        struct kernels_fuzzy_object *object = &objects->items[k];
        if (segmentation->ready[number] && segment->from)
            object->start = segment_from(segmentation, number);
        else if (segmentation->ready[number] && !object->start && conf_segment_looks(segment))
            rc = start_find(segmentation, number, lane, voxels, &any_value, &object->start, error);
    }
    return rc;
}

/* Finds the objects of real values. */
static int
fuzzy_run_real(struct segmentation *segmentation, const void *voxels, struct error *error)
{
    struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    objects->series.values.voxels = voxels;
    const int rc = rescaled_fuzzy(&objects->series.values, objects->items, objects->demand.objects,
                                  objects->demand.relative, objects->real, error);
    for (size_t k = 0; k < objects->demand.objects && rc == 0; k++) {
        const size_t segment = segmentation->of[CONF_FUZZY].segments[k];
        const uint64_t *bits = objects->real[k].bits;
        segmentation->found[segment] =
            (struct image_mask){.bits = bits,
                                .words_per_row = (segmentation->stack->columns - 1) / 64 + 1,
                                .voxels = mask_count(bits, (int64_t)segment_mask_words(segmentation->stack))};
        segmentation->maps[segment] = objects->items[k].map ? objects->real[k].map : NULL;
    }
    return rc;
}

static int
fuzzy_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error)
{
    const struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    const size_t *segments = segmentation->of[CONF_FUZZY].segments;
    const size_t count = objects->demand.objects;
    int rc = fuzzy_look(segmentation, lane, voxels, error);
    if (rc == 0)
        rc = fuzzy_objects_measure(segmentation, voxels, error);
    if (rc == 0 && objects->real)
        return fuzzy_run_real(segmentation, voxels, error);
    if (rc)
        return rc;
    struct kernels_fuzzy_result *results = calloc(count, sizeof *results);
    if (!results)
        return error_set_system(error, -ENOMEM, "hold the objects");
    rc = kernels_fuzzy_run(lane, objects->items, count, objects->demand.relative, results, error);
    for (size_t k = 0; k < count && rc == 0; k++) {
        segmentation->found[segments[k]] = results[k].object;
        segmentation->maps[segments[k]] = results[k].map;
    }
    free(results);
    return rc;
}

const struct segment_method segment_fuzzy = {
    .algorithm = "Noctule fuzzy connectedness",
    .op = KERNELS_FUZZY,
    .is_stored = true,
    /* the nearest term of PS3.16 CID 7162 */
    .family = {"123101", "DCM", "Neighborhood Analysis"},
    .size = sizeof(struct fuzzy_objects),
    .prepare = fuzzy_prepare,
    .release = fuzzy_release,
    .bytes = fuzzy_bytes,
    .run = fuzzy_run,
    .describe = fuzzy_describe,
    .report = fuzzy_report,
};
