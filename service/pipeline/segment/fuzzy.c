/* fuzzy.c - see fuzzy.h. */
#include "service/pipeline/segment/fuzzy.h"

#include "base/error.h"
#include "service/pipeline/volume.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- what a series has to be */

static const char *
plane_path(const struct segmentation *segmentation, int32_t z)
{
    return segmentation->instances[segmentation->stack->planes[z].instance]->path;
}

/* One slope and intercept for all planes, and one padding. */
static int
check_planes(const struct segmentation *segmentation, struct image_rescale first,
             struct image_range padding, struct error *error)
{
    const struct geometry_stack *stack = segmentation->stack;
    for (int32_t z = 1; z < stack->plane_count; z++) {
        struct image_rescale other = volume_rescale(segmentation->instances, &stack->planes[z]);
        if (other.slope != first.slope || other.intercept != first.intercept)
            return error_set_files(
                error, -EINVAL, CODE_RESCALE_VARIES, plane_path(segmentation, 0),
                plane_path(segmentation, z),
                "the slices differ in their rescale (%g * value + %g in one file, %g * value + %g "
                "in another), and fuzzy connectedness compares values of neighbouring slices: "
                "give the series one rescale, or use method = \"level-set\"",
                first.slope, first.intercept, other.slope, other.intercept);
    }
    for (int32_t z = 1; z < stack->plane_count; z++) {
        struct image_range other =
            volume_padding(segmentation->instances[stack->planes[z].instance]);
        if (padding.lo != other.lo || padding.hi != other.hi)
            return error_set_files(
                error, -EINVAL, CODE_PADDING_MIXED, plane_path(segmentation, 0),
                plane_path(segmentation, z),
                "the padding values of the series differ, or only some of its files have one, and "
                "fuzzy connectedness takes one for all slices");
    }
    return 0;
}

/* ---------------------------------------------------------------------------------- seeds ---- */

static int
find_seed(const struct conf_segment *segment, size_t i, const struct geometry_stack *stack,
          struct kernels_voxel *seed, struct error *error)
{
    const int32_t size[3] = {stack->columns, stack->rows, stack->plane_count};
    double voxel[3];
    volume_point(segment->seeds[i].at, segment->seeds[i].unit, stack, voxel);
    for (int axis = 0; axis < 3; axis++) {
        voxel[axis] = floor(voxel[axis] + 0.5);
        if (!(voxel[axis] >= 0 && voxel[axis] < size[axis]))
            return error_set(error, -EINVAL, CODE_SEED_OUTSIDE,
                             "seed %zu of segment \"%s\" is at column %.0f, row %.0f, slice %.0f, "
                             "outside of the volume of %d x %d x %d voxels",
                             i + 1, segment->label, voxel[0], voxel[1], voxel[2], size[0], size[1],
                             size[2]);
    }
    *seed = (struct kernels_voxel){(int64_t)voxel[0], (int64_t)voxel[1], (int64_t)voxel[2]};
    return 0;
}

static int
make_object(const struct conf_segment *segment, const struct geometry_stack *stack,
            struct image_range padding, struct kernels_voxel *seeds,
            struct kernels_fuzzy_object *object, struct error *error)
{
    int rc = 0;
    for (size_t i = 0; i < segment->seed_count && rc == 0; i++)
        rc = find_seed(segment, i, stack, &seeds[i], error);
    *object = (struct kernels_fuzzy_object){
        .seeds = seeds,
        .seed_count = segment->seed_count,
        .weight = segment->weight,
        .threshold = (uint16_t)floor(65535 * segment->threshold),
        .padding = padding,
        .map = segment->connectedness_map,
    };
    return rc;
}

/* -------------------------------------------------------------------------------- objects ---- */

static int
fuzzy_reserve(struct fuzzy_objects *objects, const struct conf_pipeline *pipeline,
              struct error *error)
{
    const size_t count = objects->demand.objects;
    size_t seeds = 0;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        seeds += pipeline->segments[i].seed_count;
    objects->items = calloc(count, sizeof *objects->items);
    objects->gaussians = calloc(count, sizeof *objects->gaussians);
    objects->seeds = calloc(seeds, sizeof *objects->seeds);
    bool complete = objects->items && objects->gaussians && objects->seeds;
    return complete ? 0 : error_set_system(error, -ENOMEM, "prepare the segments");
}

static int
make_objects(const struct segmentation *segmentation, struct fuzzy_objects *objects,
             struct image_range padding, struct error *error)
{
    struct kernels_voxel *seeds = objects->seeds;
    int rc = 0;
    for (size_t k = 0; k < objects->demand.objects && rc == 0; k++) {
        const struct conf_segment *segment = segment_at(segmentation, CONF_FUZZY, k);
        rc = make_object(segment, segmentation->stack, padding, seeds, &objects->items[k], error);
        objects->gaussians[k] = (struct fuzzy_gaussians){
            .mean = segment->object_mean,
            .sigma = segment->object_sigma,
            .homogeneity_sigma = segment->homogeneity_sigma,
        };
        objects->demand.maps += segment->connectedness_map;
        seeds += segment->seed_count;
    }
    return rc;
}

static int
fuzzy_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    struct fuzzy_objects *objects = prepared;
    const struct geometry_plane *first = &segmentation->stack->planes[0];
    const struct image_range padding = volume_padding(segmentation->instances[first->instance]);
    objects->rescale = volume_rescale(segmentation->instances, first);
    objects->demand.objects = segmentation->of[CONF_FUZZY].count;
    objects->demand.relative = segmentation->pipeline->relative_connectedness;
    int rc = fuzzy_reserve(objects, segmentation->pipeline, error);
    if (rc == 0)
        rc = check_planes(segmentation, objects->rescale, padding, error);
    return rc ? rc : make_objects(segmentation, objects, padding, error);
}

static void
fuzzy_release(void *prepared)
{
    struct fuzzy_objects *objects = prepared;
    free(objects->items);
    free(objects->gaussians);
    free(objects->seeds);
}

/* ------------------------------------------------------------------------------ measuring ---- */

struct neighbourhood {
    const struct kernels_fuzzy_object *object;
    const struct geometry_stack *stack;
    const void *voxels;
    int64_t reach; /* from a seed along each axis */
};

/* Sums over the voxels and pairs of a neighbourhood. Values are taken less the first one, which
 * keeps the sums far within 64 bits: 256 cubes of 33^3 voxels of 17 bits. */
struct sums {
    int64_t first;
    int64_t voxels, values, squares;
    int64_t pairs, square_differences;
};

static bool
is_in_cube(const struct kernels_voxel *at, const struct kernels_voxel *seed, int64_t reach)
{
    return llabs(at->x - seed->x) <= reach && llabs(at->y - seed->y) <= reach &&
           llabs(at->z - seed->z) <= reach;
}

/* Whether one of the first `count` seeds has the voxel in its cube. */
static bool
is_near(const struct neighbourhood *n, const struct kernels_voxel *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_in_cube(at, &n->object->seeds[i], n->reach))
            return true;
    return false;
}

/* A voxel of the neighbourhood that is no padding: its value. */
static bool
fuzzy_take(const struct neighbourhood *n, const struct kernels_voxel *at, int32_t *value)
{
    *value = image_value(n->voxels, n->stack->pixel,
                         (at->z * n->stack->rows + at->y) * n->stack->columns + at->x);
    return *value < n->object->padding.lo || *value > n->object->padding.hi;
}

/* The pairs of a voxel with its next ones along the axes: so every pair is met once. */
static void
add_pairs(const struct neighbourhood *n, const struct kernels_voxel *at, int32_t value,
          struct sums *sums)
{
    const struct geometry_stack *stack = n->stack;
    const struct kernels_voxel next[3] = {
        {at->x + 1, at->y, at->z}, {at->x, at->y + 1, at->z}, {at->x, at->y, at->z + 1}};
    for (int axis = 0; axis < 3; axis++) {
        const struct kernels_voxel *other = &next[axis];
        int32_t other_value;
        if (other->x >= stack->columns || other->y >= stack->rows ||
            other->z >= stack->plane_count || !is_near(n, other, n->object->seed_count) ||
            !fuzzy_take(n, other, &other_value))
            continue;
        int64_t difference = (int64_t)value - other_value;
        sums->square_differences += difference * difference;
        sums->pairs++;
    }
}

static void
add_voxel(const struct neighbourhood *n, const struct kernels_voxel *at, struct sums *sums)
{
    int32_t value;
    if (!fuzzy_take(n, at, &value))
        return;
    if (sums->voxels++ == 0)
        sums->first = value;
    int64_t shifted = value - sums->first;
    sums->values += shifted;
    sums->squares += shifted * shifted;
    add_pairs(n, at, value, sums);
}

static int64_t
clip(int64_t value, int64_t size)
{
    return value < 0 ? 0 : value >= size ? size - 1 : value;
}

/* The voxels around a seed that are in no earlier seed's cube. */
static void
add_cube(const struct neighbourhood *n, size_t index, struct sums *sums)
{
    const struct geometry_stack *stack = n->stack;
    const struct kernels_voxel *seed = &n->object->seeds[index];
    struct kernels_voxel at;
    for (at.z = clip(seed->z - n->reach, stack->plane_count);
         at.z <= clip(seed->z + n->reach, stack->plane_count); at.z++)
        for (at.y = clip(seed->y - n->reach, stack->rows);
             at.y <= clip(seed->y + n->reach, stack->rows); at.y++)
            for (at.x = clip(seed->x - n->reach, stack->columns);
                 at.x <= clip(seed->x + n->reach, stack->columns); at.x++)
                if (!is_near(n, &at, index))
                    add_voxel(n, &at, sums);
}

/* In stored values, never 0. */
static double
deviation(double mean_square)
{
    return mean_square > 0 ? sqrt(mean_square) : 1;
}

static void
fill_in(struct conf_estimable *number, double measured)
{
    if (!number->given)
        number->value = measured;
}

static int
measure(const struct conf_segment *segment, const struct neighbourhood *n,
        struct image_rescale rescale, struct fuzzy_gaussians *gaussians, struct error *error)
{
    struct sums sums = {0};
    for (size_t i = 0; i < n->object->seed_count; i++)
        add_cube(n, i, &sums);
    if (sums.voxels == 0)
        return error_set(error, -EINVAL, CODE_SEEDS_IN_PADDING,
                         "there is nothing but padding within %d voxels of the seeds of segment "
                         "\"%s\", so its values cannot be measured",
                         segment->estimate_voxels, segment->label);
    double count = (double)sums.voxels, mean = (double)sums.values / count;
    double variance = (double)sums.squares / count - mean * mean;
    double half_squares =
        sums.pairs > 0 ? (double)sums.square_differences / (4 * (double)sums.pairs) : 0;
    fill_in(&gaussians->mean, rescale.slope * ((double)sums.first + mean) + rescale.intercept);
    fill_in(&gaussians->sigma, fabs(rescale.slope) * deviation(variance));
    fill_in(&gaussians->homogeneity_sigma, fabs(rescale.slope) * deviation(half_squares));
    gaussians->measured_voxels = sums.voxels;
    return 0;
}

int
fuzzy_objects_measure(const struct segmentation *segmentation, const void *voxels,
                      struct error *error)
{
    struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    for (size_t i = 0; i < objects->demand.objects; i++) {
        const struct conf_segment *segment = segment_at(segmentation, CONF_FUZZY, i);
        struct kernels_fuzzy_object *object = &objects->items[i];
        struct fuzzy_gaussians *gaussians = &objects->gaussians[i];
        const struct neighbourhood neighbourhood = {object, segmentation->stack, voxels,
                                                    segment->estimate_voxels};
        bool all_given =
            gaussians->mean.given && gaussians->sigma.given && gaussians->homogeneity_sigma.given;
        int rc =
            all_given ? 0 : measure(segment, &neighbourhood, objects->rescale, gaussians, error);
        if (rc)
            return rc;
        object->mean =
            (gaussians->mean.value - objects->rescale.intercept) / objects->rescale.slope;
        object->sigma = gaussians->sigma.value / fabs(objects->rescale.slope);
        object->homogeneity_sigma =
            gaussians->homogeneity_sigma.value / fabs(objects->rescale.slope);
    }
    return 0;
}

/* ------------------------------------------------------------------------- the method ---- */

static const char *
origin(const struct conf_estimable *number)
{
    return number->given ? "" : " (measured)";
}

/* The numbers that were used, those that were measured marked so, and the seeds in voxels. */
static void
fuzzy_describe(const struct segmentation *segmentation, size_t number,
               char text[SEGMENT_DESCRIPTION])
{
    const struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    const size_t k = segment_place(segmentation, number);
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const struct kernels_fuzzy_object *object = &objects->items[k];
    const struct fuzzy_gaussians *gaussians = &objects->gaussians[k];
    const struct conf_estimable *mean = &gaussians->mean, *sigma = &gaussians->sigma,
                                *homogeneity = &gaussians->homogeneity_sigma;
    snprintf(text, SEGMENT_DESCRIPTION,
             "object mean %.9g%s, sigma %.9g%s; homogeneity sigma %.9g%s; weight %g; threshold "
             "%g%s; seeds in voxels",
             mean->value, origin(mean), sigma->value, origin(sigma), homogeneity->value,
             origin(homogeneity), segment->weight, segment->threshold,
             objects->demand.relative ? "; relative connectedness" : "");
    for (size_t i = 0; i < object->seed_count; i++) {
        const struct kernels_voxel *seed = &object->seeds[i];
        segment_append(text, SEGMENT_DESCRIPTION, " %" PRId64 ",%" PRId64 ",%" PRId64, seed->x,
                       seed->y, seed->z);
    }
}

static void
fuzzy_report(const struct segmentation *segmentation, size_t segment,
             struct pipeline_segment *report)
{
    const struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    const struct fuzzy_gaussians *gaussians =
        &objects->gaussians[segment_place(segmentation, segment)];

    const struct {
        const char *key, *words;
        const struct conf_estimable *number;
    } numbers[] = {{"object_mean", "mean", &gaussians->mean},
                   {"object_sigma", "sigma", &gaussians->sigma},
                   {"homogeneity_sigma", "homogeneity sigma", &gaussians->homogeneity_sigma}};

    report->number_count = sizeof numbers / sizeof numbers[0];
    for (int i = 0; i < report->number_count; i++)
        report->numbers[i] = (struct segment_number){
            numbers[i].key, numbers[i].words, numbers[i].number->value, !numbers[i].number->given};
    report->measured_voxels = gaussians->measured_voxels;
}

static int
fuzzy_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels,
          struct error *error)
{
    const struct fuzzy_objects *objects = segmentation->of[CONF_FUZZY].prepared;
    const size_t *segments = segmentation->of[CONF_FUZZY].segments;
    const size_t count = objects->demand.objects;
    int rc = fuzzy_objects_measure(segmentation, voxels, error);
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
    /* As near as PS3.16 CID 7162 gets. */
    .family = {"123101", "DCM", "Neighborhood Analysis"},
    .size = sizeof(struct fuzzy_objects),
    .prepare = fuzzy_prepare,
    .release = fuzzy_release,
    .run = fuzzy_run,
    .describe = fuzzy_describe,
    .report = fuzzy_report,
};
