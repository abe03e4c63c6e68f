#include "tests/kernels/ref_peaks.h"

#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct scene {
    struct image_extent extent;
    enum image_pixel pixel;
    const void *voxels;
    const struct peaks *request;
};

static size_t
table_of(const struct scene *scene, int64_t z)
{
    return scene->request->table_count > 1 ? (size_t)z : 0;
}

static int32_t
stored_at(const struct scene *scene, int64_t x, int64_t y, int64_t z)
{
    return ref_stored(scene->pixel, scene->voxels, (z * scene->extent.rows + y) * scene->extent.columns + x);
}

static bool
has_value(const struct scene *scene, int64_t x, int64_t y, int64_t z)
{
    const struct image_range padding = scene->request->paddings[table_of(scene, z)];
    const int32_t stored = stored_at(scene, x, y, z);

    return stored < padding.lo || stored > padding.hi;
}

static double
value_at(const struct scene *scene, int64_t x, int64_t y, int64_t z)
{
    const struct image_rescale rescale = scene->request->rescales[table_of(scene, z)];

    return rescale.slope * (double)stored_at(scene, x, y, z) + rescale.intercept;
}

/* Adds the voxels of a slice in the ball around a voxel. */
static void
add_slice(const struct scene *scene, const int64_t centre[3], int64_t z, int64_t *stored, int64_t *voxels)
{
    const double *spacing = scene->request->spacing;

    for (int64_t y = 0; y < scene->extent.rows; y++)
        for (int64_t x = 0; x < scene->extent.columns; x++) {
            const double away[3] = {(double)(x - centre[0]) * spacing[0], (double)(y - centre[1]) * spacing[1],
                                    (double)(z - centre[2]) * spacing[2]};

            if (away[0] * away[0] + away[1] * away[1] + away[2] * away[2] > PEAKS_RADIUS_MM * PEAKS_RADIUS_MM ||
                !has_value(scene, x, y, z))
                continue;
            *stored += stored_at(scene, x, y, z);
            *voxels += 1;
        }
}

static double
mean_around(const struct scene *scene, const int64_t centre[3])
{
    const bool per_slice = scene->request->table_count > 1;
    int64_t stored = 0, voxels = 0, all = 0;
    double total = 0;

    for (int64_t z = 0; z < scene->extent.slices; z++) {
        const struct image_rescale rescale = scene->request->rescales[table_of(scene, z)];

        add_slice(scene, centre, z, &stored, &voxels);
        if (!per_slice && z + 1 < scene->extent.slices)
            continue;
        total += rescale.slope * (double)stored + rescale.intercept * (double)voxels;
        all += voxels;
        stored = voxels = 0;
    }
    return total / (double)all;
}

void
ref_peaks(struct image_extent extent, enum image_pixel pixel, const void *voxels, const struct peaks *request,
          struct peaks_found *found)
{
    const struct scene scene = {extent, pixel, voxels, request};

    *found = (struct peaks_found){-INFINITY, -INFINITY, 0};
    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        const int64_t centre[3] = {i % extent.columns, i / extent.columns % extent.rows,
                                   i / extent.columns / extent.rows};
        const double value = value_at(&scene, centre[0], centre[1], centre[2]);

        if (!ref_in_region(request->region, extent, centre[0], centre[1], centre[2]) ||
            !has_value(&scene, centre[0], centre[1], centre[2]) || value < request->kept[0] || value > request->kept[1])
            continue;
        const double mean = mean_around(&scene, centre);

        found->balls++;
        found->global = fmax(found->global, mean);
        if (value == request->largest)
            found->local = fmax(found->local, mean);
    }
}

/* ------------------------------------------------------------------------------ cases ---- */

/* Returns the distance of a voxel to the nearest face of the volume. */
static int64_t
depth_of(struct image_extent extent, int64_t i)
{
    const int64_t sides[3] = {extent.columns, extent.rows, extent.slices};
    const int64_t at[3] = {i % extent.columns, i / extent.columns % extent.rows, i / extent.columns / extent.rows};
    int64_t least = INT64_MAX;

    for (int axis = 0; axis < 3; axis++) {
        least = at[axis] < least ? at[axis] : least;
        least = sides[axis] - 1 - at[axis] < least ? sides[axis] - 1 - at[axis] : least;
    }
    return least;
}

/*
 * Makes noise on a hill or in a valley. Because of the slopes, the ball with the largest mean lies inside the volume.
 */
static void
make_hill(struct peaks_case *each, uint64_t *random)
{
    const int64_t rises = ref_random_below(random, 2) ? 4 : -4;

    each->voxels = ref_allocate(ref_voxels(each->extent), image_pixel_size(each->pixel));
    for (int64_t i = 0; i < ref_voxels(each->extent); i++)
        ref_store(each->pixel, each->voxels, i,
                  (int32_t)(100 + rises * depth_of(each->extent, i) + ref_random_below(random, 9)));
}

static void
make_voxels(struct peaks_case *each, uint64_t *random)
{
    const struct image_range range = image_pixel_range(each->pixel);
    /* Use few values, so that several voxels have the largest; or use all values. */
    const int64_t values = ref_random_below(random, 2) ? 5 : (int64_t)range.hi - (int64_t)range.lo + 1;

    each->voxels = ref_allocate(ref_voxels(each->extent), image_pixel_size(each->pixel));
    for (int64_t i = 0; i < ref_voxels(each->extent); i++)
        ref_store(each->pixel, each->voxels, i, range.lo + (int32_t)ref_random_below(random, values));
}

static void
make_region(struct peaks_case *each, uint64_t *random)
{
    const int64_t words = (each->extent.columns + 63) / 64 * each->extent.rows;
    const int64_t rare = 1 + ref_random_below(random, 40);

    if (ref_random_below(random, 4) == 0)
        return;
    each->region = ref_allocate(words * each->extent.slices, sizeof(*each->region));
    for (int64_t i = 0; i < words * each->extent.slices * 64; i++) /* padding of rows, too */
        each->region[i / 64] |= (uint64_t)(ref_random_below(random, rare) == 0) << i % 64;
}

static void
make_tables(struct peaks_case *each, uint64_t *random)
{
    const struct image_range range = image_pixel_range(each->pixel);
    const bool per_slice = ref_random_below(random, 2), padded = ref_random_below(random, 2);
    const int64_t falls = ref_random_below(random, 3); /* one slice of three; the first may stand for all */
    const bool flat = ref_random_below(random, 10) == 0;

    each->request.table_count = per_slice ? (size_t)each->extent.slices : 1;
    each->rescales = ref_allocate(each->extent.slices, sizeof(*each->rescales));
    each->paddings = ref_allocate(each->extent.slices, sizeof(*each->paddings));
    for (int64_t z = 0; z < each->extent.slices; z++) {
        each->rescales[z] = (struct image_rescale){
            flat ? 0 : (double)(1 + ref_random_below(random, 1000)) / (z % 3 == falls ? -700 : 300),
            (double)ref_random_below(random, 3000) / 7 - 200};
        each->paddings[z] = (struct image_range){range.lo + 1, range.lo + (padded ? 2 : 0)};
    }
    each->request.rescales = each->rescales;
    each->request.paddings = each->paddings;
}

/* Makes a range, and finds the largest value that it keeps, if there is one. */
static void
make_range(struct peaks_case *each, uint64_t *random)
{
    const struct scene scene = {each->extent, each->pixel, each->voxels, &each->request};
    const int64_t chosen = ref_random_below(random, ref_voxels(each->extent));
    struct peaks *request = &each->request;

    request->kept[0] = -INFINITY;
    request->kept[1] = INFINITY;
    if (ref_random_below(random, 2))
        request->kept[1] =
            value_at(&scene, chosen % each->extent.columns, chosen / each->extent.columns % each->extent.rows,
                     chosen / each->extent.columns / each->extent.rows);
    request->largest = -INFINITY;
    for (int64_t i = 0; i < ref_voxels(each->extent); i++) {
        const int64_t x = i % each->extent.columns, y = i / each->extent.columns % each->extent.rows;
        const int64_t z = i / each->extent.columns / each->extent.rows;
        const double value = value_at(&scene, x, y, z);

        if (ref_in_region(each->region, each->extent, x, y, z) && has_value(&scene, x, y, z) &&
            value <= request->kept[1])
            request->largest = fmax(request->largest, value);
    }
}

void
peaks_make_case(struct peaks_case *each, uint64_t seed)
{
    static const double spacings[] = {0.3, 0.45, 0.7, 0.977, 1, 1.5, 2, 3, 5, 12};
    uint64_t random = seed + 1;

    *each = (struct peaks_case){
        .extent = {1 + ref_random_below(&random, 40), 1 + ref_random_below(&random, 9),
                   1 + ref_random_below(&random, 7)},
        .pixel = (enum image_pixel)(seed % 3),
    };
    if (seed % 25 == 24) /* longer than one batch */
        each->extent = (struct image_extent){1100, 1, 1};
    const bool lies_within = seed % 12 == 11;
    if (lies_within) /* room for balls and rows */
        each->extent = (struct image_extent){40 + ref_random_below(&random, 30), 20 + ref_random_below(&random, 15),
                                             18 + ref_random_below(&random, 14)};
    const int64_t finest = seed % 20 == 7 ? 0 : 2; /* balls of many voxels are slow */
    for (int axis = 0; axis < 3; axis++)
        each->request.spacing[axis] = spacings[finest + ref_random_below(&random, 10 - finest)];
    if (lies_within)
        make_hill(each, &random);
    else
        make_voxels(each, &random);
    make_region(each, &random);
    make_tables(each, &random);
    each->request.region = each->region;
    make_range(each, &random);
}

void
peaks_free_case(struct peaks_case *each)
{
    free(each->voxels);
    free(each->region);
    free(each->rescales);
    free(each->paddings);
}

int
peaks_run_case(struct kernels_lane *lane, const struct peaks_case *each, struct peaks_found *found, struct error *error)
{
    const struct kernels_demand demand = {.of = {[KERNELS_PEAKS] = &kernels_asked}};
    void *voxels;
    int rc = kernels_volume_begin(lane, each->extent, each->pixel, &demand, &voxels, error);

    if (rc)
        return rc;
    memcpy(voxels, each->voxels, (size_t)ref_voxels(each->extent) * image_pixel_size(each->pixel));
    rc = kernels_volume_ready(lane, 0, each->extent.slices, error);
    return rc ? rc : peaks_run(lane, &each->request, found, error);
}
