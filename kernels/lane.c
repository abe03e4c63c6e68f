/*
 * lane.c - the table of backends, and every argument check, once for all of them.
 *
 * A lane goes EMPTY -> VOLUME (kernels_volume_begin) -> LABELS (kernels_level_set_begin) ->
 * SEGMENTED (kernels_level_set_finish); a call out of this order is -EINVAL, and a backend never
 * sees it.
 */
#include "kernels/backend.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which "auto" tries them. */
static const struct kernels_backend *const backends[] = {
#ifdef NOCTULE_CUDA
    &kernels_backend_cuda,
#endif
    &kernels_backend_cpu,
};

enum { BACKEND_COUNT = sizeof(backends) / sizeof(backends[0]) };

int
kernels_fail(int error, char *reason, size_t reason_size, const char *format, ...)
{
    if (reason && reason_size > 0) {
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(reason, reason_size, format, arguments);
        va_end(arguments);
    }
    return error;
}

int
kernels_device_open(const struct kernels_device_options *options, struct kernels_device **device,
                    char *reason, size_t reason_size)
{
    bool any = strcmp(options->backend, "auto") == 0;

    if (options->threads < 0)
        return kernels_fail(-EINVAL, reason, reason_size, "%d threads is not a number of threads",
                            options->threads);
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        if (!any && strcmp(options->backend, backends[i]->name) != 0)
            continue;
        int error = backends[i]->device_open(options, device, reason, reason_size);
        if (!any || error != -ENODEV)
            return error;
    }
    return kernels_fail(-ENODEV, reason, reason_size, "there is no compute backend \"%s\"",
                        options->backend);
}

int
kernels_gpus(struct kernels_gpu *gpus, int capacity)
{
#ifdef NOCTULE_CUDA
    return cuda_gpus(gpus, capacity);
#else
    (void)gpus;
    (void)capacity;
    return 0;
#endif
}

void
kernels_device_close(struct kernels_device *device)
{
    if (device)
        device->backend->device_close(device);
}

const char *
kernels_device_backend(const struct kernels_device *device)
{
    return device->backend->name;
}

const char *
kernels_device_description(const struct kernels_device *device)
{
    return device->description;
}

int
kernels_device_threads(const struct kernels_device *device)
{
    return device->threads;
}

int
kernels_lane_open(struct kernels_device *device, struct kernels_lane **lane, char *reason,
                  size_t reason_size)
{
    int error = device->backend->lane_open(device, lane, reason, reason_size);

    if (error == 0)
        (*lane)->device = device;
    return error;
}

void
kernels_lane_close(struct kernels_lane *lane)
{
    if (!lane)
        return;
    free(lane->announced);
    lane->device->backend->lane_close(lane);
}

static int
check_extent(const struct image_extent *extent, char *reason, size_t reason_size)
{
    int64_t voxels;

    if (extent->columns < 1 || extent->rows < 1 || extent->slices < 1)
        return kernels_fail(
            -EINVAL, reason, reason_size, "a volume of %lld x %lld x %lld voxels does not exist",
            (long long)extent->columns, (long long)extent->rows, (long long)extent->slices);
    if (__builtin_mul_overflow(extent->columns, extent->rows, &voxels) ||
        __builtin_mul_overflow(voxels, extent->slices, &voxels) || voxels > KERNELS_MAX_VOXELS)
        return kernels_fail(-E2BIG, reason, reason_size,
                            "%lld x %lld x %lld voxels are more than the limit of %lld",
                            (long long)extent->columns, (long long)extent->rows,
                            (long long)extent->slices, (long long)KERNELS_MAX_VOXELS);
    return 0;
}

/* A cleared bit for every slice. */
static int
reserve_announcements(struct kernels_lane *lane, int64_t slices)
{
    size_t words = ((size_t)slices + 63) / 64;

    if (words > lane->announced_words) {
        uint64_t *grown = realloc(lane->announced, words * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        lane->announced = grown;
        lane->announced_words = words;
    }
    memset(lane->announced, 0, words * sizeof(*lane->announced));
    return 0;
}

int
kernels_volume_begin(struct kernels_lane *lane, struct image_extent extent, enum image_pixel pixel,
                     const struct kernels_demand *demand, void **voxels, char *reason,
                     size_t reason_size)
{
    lane->phase = LANE_EMPTY;
    int error = check_extent(&extent, reason, reason_size);
    if (error)
        return error;
    if (image_pixel_size(pixel) == 0)
        return kernels_fail(-EINVAL, reason, reason_size, "%d is not a pixel type", (int)pixel);
    if (reserve_announcements(lane, extent.slices))
        return kernels_fail(-ENOMEM, reason, reason_size, "no memory to keep track of %lld slices",
                            (long long)extent.slices);
    lane->extent = extent;
    lane->pixel = pixel;
    lane->demand = *demand;
    lane->fuzzy_done = false;
    lane->slices_ready = 0;
    error = lane->device->backend->volume_begin(lane, voxels, reason, reason_size);
    if (error == 0)
        lane->phase = LANE_VOLUME;
    return error;
}

static bool
shape_is_sound(const struct kernels_shape *shape)
{
    size_t radii = shape->kind == KERNELS_SPHERE ? 1 : 3;

    if (shape->kind != KERNELS_SPHERE && shape->kind != KERNELS_ELLIPSOID &&
        shape->kind != KERNELS_BOX)
        return false;
    for (size_t i = 0; i < 3; i++)
        if (!isfinite(shape->center[i]))
            return false;
    for (size_t i = 0; i < radii; i++)
        if (!isfinite(shape->radius[i]) || shape->radius[i] < 0)
            return false;
    return true;
}

static int
check_label(const struct kernels_level_set_label *label, size_t index, int64_t slices, char *reason,
            size_t reason_size)
{
    if (!label->ranges || (label->range_count != 1 && label->range_count != (size_t)slices))
        return kernels_fail(-EINVAL, reason, reason_size,
                            "label %zu has %zu ranges; it needs 1 or one for each of %lld slices",
                            index, label->range_count, (long long)slices);
    if (!label->shapes && label->shape_count > 0)
        return kernels_fail(-EINVAL, reason, reason_size, "label %zu has no shapes", index);
    for (size_t i = 0; i < label->shape_count; i++)
        if (!shape_is_sound(&label->shapes[i]))
            return kernels_fail(-EINVAL, reason, reason_size,
                                "shape %zu of label %zu has an unknown kind, or a number that is "
                                "negative or not finite",
                                i, index);
    return 0;
}

int
kernels_level_set_begin(struct kernels_lane *lane, const struct kernels_level_set_label *labels,
                        size_t count, char *reason, size_t reason_size)
{
    if (lane->phase != LANE_VOLUME || lane->slices_ready > 0)
        return kernels_fail(-EINVAL, reason, reason_size,
                            "labels are named once, before the first slice is announced");
    if (count != lane->demand.level_set_labels)
        return kernels_fail(-EINVAL, reason, reason_size,
                            "%zu labels are named where memory was reserved for %zu", count,
                            lane->demand.level_set_labels);
    for (size_t i = 0; i < count; i++) {
        int error = check_label(&labels[i], i, lane->extent.slices, reason, reason_size);
        if (error)
            return error;
    }
    int error = lane->device->backend->level_set_begin(lane, labels, reason, reason_size);
    if (error == 0)
        lane->phase = LANE_LABELS;
    return error;
}

/* Whether this call is the one that announces slice z. */
static bool
announce(struct kernels_lane *lane, int64_t z)
{
    uint64_t bit = UINT64_C(1) << (z % 64);

    return !(__atomic_fetch_or(&lane->announced[z / 64], bit, __ATOMIC_RELAXED) & bit);
}

int
kernels_volume_ready(struct kernels_lane *lane, int64_t first, int64_t count)
{
    bool named = lane->phase == LANE_LABELS ||
                 (lane->phase == LANE_VOLUME && !lane->demand.level_set_labels);

    if (!named || first < 0 || count < 0 || first > lane->extent.slices ||
        count > lane->extent.slices - first)
        return -EINVAL;
    for (int64_t z = first; z < first + count; z++)
        if (!announce(lane, z))
            return -EALREADY;
    int error = lane->device->backend->volume_ready(lane, first, count);
    if (error == 0)
        __atomic_fetch_add(&lane->slices_ready, count, __ATOMIC_RELEASE);
    return error;
}

int64_t
kernels_slices_missing(struct kernels_lane *lane)
{
    return lane->extent.slices - __atomic_load_n(&lane->slices_ready, __ATOMIC_ACQUIRE);
}

int
kernels_level_set_finish(struct kernels_lane *lane, struct image_mask *masks, char *reason,
                         size_t reason_size)
{
    if (lane->phase != LANE_LABELS)
        return kernels_fail(-EINVAL, reason, reason_size, "no labels were named");
    if (kernels_slices_missing(lane) > 0)
        return kernels_fail(-EBUSY, reason, reason_size, "%lld of %lld slices are not announced",
                            (long long)kernels_slices_missing(lane),
                            (long long)lane->extent.slices);
    int error = lane->device->backend->level_set_finish(lane, masks, reason, reason_size);
    if (error == 0)
        lane->phase = LANE_SEGMENTED;
    return error;
}

int
kernels_level_set_codes(struct kernels_lane *lane, size_t label, int8_t *codes)
{
    if (lane->phase != LANE_SEGMENTED || label >= lane->demand.level_set_labels)
        return -EINVAL;
    return lane->device->backend->level_set_codes(lane, label, codes);
}

/* Whether a Gaussian of this standard deviation can be computed: 2 sigma^2 divides. */
static bool
sigma_is_sound(double sigma)
{
    double doubled = 2 * (sigma * sigma);

    return sigma > 0 && isnormal(doubled);
}

static bool
seeds_are_inside(const struct kernels_fuzzy_object *object, const struct image_extent *extent)
{
    if (!object->seeds && object->seed_count > 0)
        return false;
    for (size_t i = 0; i < object->seed_count; i++) {
        const struct kernels_voxel *seed = &object->seeds[i];

        if (seed->x < 0 || seed->x >= extent->columns || seed->y < 0 || seed->y >= extent->rows ||
            seed->z < 0 || seed->z >= extent->slices)
            return false;
    }
    return true;
}

static int
check_object(const struct kernels_fuzzy_object *object, size_t index,
             const struct image_extent *extent, char *reason, size_t reason_size)
{
    if (!seeds_are_inside(object, extent))
        return kernels_fail(-EINVAL, reason, reason_size,
                            "object %zu has a seed outside of the volume", index);
    if (!isfinite(object->mean) || !sigma_is_sound(object->sigma) ||
        !sigma_is_sound(object->homogeneity_sigma) || !(object->weight >= 0 && object->weight <= 1))
        return kernels_fail(
            -EINVAL, reason, reason_size,
            "object %zu needs a finite mean, sigmas above 0, and a weight of 0 to 1", index);
    return 0;
}

static int
check_objects(const struct kernels_lane *lane, const struct kernels_fuzzy_object *objects,
              size_t count, bool relative, char *reason, size_t reason_size)
{
    size_t scenes = 0;

    for (size_t i = 0; i < count; i++) {
        int error = check_object(&objects[i], i, &lane->extent, reason, reason_size);
        if (error)
            return error;
        scenes += objects[i].scene;
    }
    if (count != lane->demand.fuzzy_objects || scenes != lane->demand.fuzzy_scenes ||
        relative != lane->demand.fuzzy_relative)
        return kernels_fail(-EINVAL, reason, reason_size,
                            "memory was reserved for other objects than these %zu", count);
    return 0;
}

int
kernels_fuzzy_run(struct kernels_lane *lane, const struct kernels_fuzzy_object *objects,
                  size_t count, bool relative, struct kernels_fuzzy_result *results, char *reason,
                  size_t reason_size)
{
    if (lane->phase == LANE_EMPTY || lane->fuzzy_done)
        return kernels_fail(-EINVAL, reason, reason_size,
                            "fuzzy connectedness runs once a job, after kernels_volume_begin");
    int error = check_objects(lane, objects, count, relative, reason, reason_size);
    if (error)
        return error;
    if (kernels_slices_missing(lane) > 0)
        return kernels_fail(-EBUSY, reason, reason_size, "%lld of %lld slices are not announced",
                            (long long)kernels_slices_missing(lane),
                            (long long)lane->extent.slices);
    lane->fuzzy_done = true;
    return lane->device->backend->fuzzy_run(lane, objects, relative, results, reason, reason_size);
}

int
kernels_volume_range(struct kernels_lane *lane, struct image_range padding,
                     struct image_range *range)
{
    if (lane->phase == LANE_EMPTY)
        return -EINVAL;
    if (kernels_slices_missing(lane) > 0)
        return -EBUSY;
    return lane->device->backend->volume_range(lane, padding, range);
}
