/*
 * bench_resample.c - times resampling of volumes to other grids, and conversion of contours to masks. Prints a JSON
 * line per case; times are medians over the repeats.
 *
 *   bench_resample [BACKEND [THREADS [REPEATS]]]   "cpu" or "cuda" (auto), 0 (as many as CPUs), 5
 *
 * The volume is resident. The time ends with the result in the lane's host memory, so on a GPU it includes the
 * download. floor_bytes is one read of the source and one write of the result. floor_seconds is the time of one
 * thread to copy half as many bytes.
 */
#include "kernels/mask/contours.h"
#include "kernels/resample/resample.h"
#include "tests/kernels/ref_drive.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_REPEATS = 99 };

static struct kernels_lane *lane;
static struct kernels_device *device;
static int repeats = 5;
static struct error error;

static void
must(int rc)
{
    if (rc) {
        fprintf(stderr, "bench_resample: %s\n", error.message);
        exit(EXIT_FAILURE);
    }
}

static void *
allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (!memory)
        abort();
    return memory;
}

static int
compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double
median(double *seconds)
{
    qsort(seconds, (size_t)repeats, sizeof(*seconds), compare);
    return (seconds[(repeats - 1) / 2] + seconds[repeats / 2]) / 2;
}

static double
copy_seconds(size_t bytes)
{
    char *from = allocate(bytes, 1), *to = allocate(bytes, 1);
    double seconds[MOST_REPEATS];

    memset(from, 1, bytes);
    memset(to, 2, bytes);
    for (int i = 0; i < repeats; i++) {
        const double begun = ref_clock();
        memcpy(to, from, bytes);
        seconds[i] = ref_clock() - begun;
        from[i] = to[bytes - 1]; /* uses the copy */
    }
    free(from);
    free(to);
    return median(seconds);
}

/* Makes planes of 0.8 mm pixels at distance `step`, sheared by `shear` of it along the columns. */
static struct image_planes
make_planes(struct image_extent extent, double step, double shear)
{
    double *origins = allocate((size_t)extent.slices * 3, sizeof(*origins));

    for (int64_t z = 0; z < extent.slices; z++) {
        origins[3 * z + 1] = shear * step * (double)z;
        origins[3 * z + 2] = step * (double)z;
    }
    return (struct image_planes){extent, {1, 0, 0, 0, 1, 0}, {0.8, 0.8}, step, origins};
}

static void
time_grid(const char *name, const struct image_planes *planes, const struct resample_grid *grid, int order)
{
    const struct resample_demand demand = {grid->extent, order, IMAGE_INT16, RESAMPLE_STORED};
    const struct kernels_demand asked = {.of = {[KERNELS_RESAMPLE] = &demand}};
    const struct resample_request request = {planes, grid, order, 0, NULL, NULL};
    const int64_t bytes = 2 * (image_voxels(&planes->extent) + image_voxels(&grid->extent));
    double seconds[MOST_REPEATS];
    const void *resampled;
    void *voxels;

    must(kernels_volume_begin(lane, planes->extent, IMAGE_INT16, &asked, &voxels, &error));
    for (int64_t i = 0; i < image_voxels(&planes->extent); i++)
        ((int16_t *)voxels)[i] = (int16_t)((i * 37) % 3000);
    must(kernels_volume_ready(lane, 0, planes->extent.slices, &error));
    must(kernels_resample(lane, &request, &resampled, &error)); /* first touch of the memory */
    for (int i = 0; i < repeats; i++) {
        const double begun = ref_clock();
        must(kernels_resample(lane, &request, &resampled, &error));
        seconds[i] = ref_clock() - begun;
    }
    printf("{\"case\":\"%s\",\"backend\":\"%s\",\"threads\":%d,\"extent\":[%lld,%lld,%lld],"
           "\"grid\":[%lld,%lld,%lld],\"median_seconds\":%.6f,\"floor_bytes\":%lld,"
           "\"floor_seconds\":%.6f}\n",
           name, kernels_device_backend(device), kernels_device_threads(device), (long long)planes->extent.columns,
           (long long)planes->extent.rows, (long long)planes->extent.slices, (long long)grid->extent.columns,
           (long long)grid->extent.rows, (long long)grid->extent.slices, median(seconds), (long long)bytes,
           copy_seconds((size_t)bytes / 2));
    fflush(stdout);
}

static void
time_mask(const struct image_planes *planes, const struct resample_grid *grid)
{
    const size_t words = (size_t)((grid->extent.columns + 63) / 64 * grid->extent.rows * grid->extent.slices);
    const size_t on_planes = (size_t)((planes->extent.columns + 63) / 64 * planes->extent.rows * planes->extent.slices);
    uint64_t *bits = allocate(words, sizeof(*bits)), *back = allocate(on_planes, sizeof(*back));
    double seconds[MOST_REPEATS];
    int64_t voxels;

    memset(bits, 0x5A, words * sizeof(*bits));
    for (int i = 0; i < repeats; i++) {
        const double begun = ref_clock();
        must(kernels_resample_mask(planes, grid, bits, back, &voxels, &error));
        seconds[i] = ref_clock() - begun;
    }
    printf("{\"case\":\"mask-back\",\"median_seconds\":%.6f,\"voxels\":%lld,\"floor_bytes\":%zu}\n", median(seconds),
           (long long)voxels, (words + on_planes) * sizeof(*bits));
    free(bits);
    free(back);
}

/* Times 200 flowers of 2,000 points on slices of 512 x 512. */
static void
time_contours(void)
{
    enum { COUNT = 200, POINTS = 2000, SIDE = 512 };
    struct image_planes planes = make_planes((struct image_extent){SIDE, SIDE, COUNT}, 1, 0);
    double *points = allocate((size_t)3 * COUNT * POINTS, sizeof(*points));
    uint64_t *bits = allocate((size_t)SIDE / 64 * SIDE * COUNT, sizeof(*bits));
    struct contour contours[COUNT];
    struct contours_drawn drawn;
    double seconds[MOST_REPEATS];

    for (int64_t i = 0; i < COUNT * POINTS; i++) {
        const double turn = 2 * acos(-1) * (double)(i % POINTS) / POINTS;
        const double radius = 120 + 30 * sin(7 * turn) + 2 * sin(97 * turn);

        points[3 * i] = 204.8 + radius * cos(turn);
        points[3 * i + 1] = 204.8 + radius * sin(turn);
        points[3 * i + 2] = (double)(i / POINTS);
        contours[i / POINTS] = (struct contour){points + 3 * (i / POINTS) * POINTS, POINTS, false};
    }
    for (int i = 0; i < repeats; i++) {
        const struct contours_request request = {&planes, contours, COUNT, false, false};
        const double begun = ref_clock();
        must(kernels_mask_contours(&request, bits, &drawn, &error));
        seconds[i] = ref_clock() - begun;
    }
    printf("{\"case\":\"contours\",\"contours\":%d,\"points\":%d,\"voxels\":%lld,"
           "\"median_seconds\":%.6f,\"floor_bytes\":%d}\n",
           COUNT, POINTS, (long long)drawn.voxels, median(seconds), 24 * COUNT * POINTS + SIDE * SIDE / 8 * COUNT);
}

int
main(int argc, char **argv)
{
    const struct kernels_device_options options = {.backend = argc > 1 ? argv[1] : "auto",
                                                   .threads = argc > 2 ? atoi(argv[2]) : 0};
    struct resample_grid grid;

    repeats = argc > 3 ? atoi(argv[3]) : repeats;
    if (repeats < 1 || repeats > MOST_REPEATS || options.threads < 0) {
        fputs("usage: bench_resample [BACKEND [THREADS [REPEATS]]]\n", stderr);
        return 2;
    }
    must(kernels_device_open(&options, &device, &error));
    must(kernels_lane_open(device, &lane, &error));
    time_contours();
    const struct image_planes tilted = make_planes((struct image_extent){512, 512, 60}, 2.5, 0.33);
    resample_straight(&tilted, 0, &grid);
    time_grid("straight-linear", &tilted, &grid, RESAMPLE_LINEAR);
    time_mask(&tilted, &grid);
    const struct image_planes upright = make_planes((struct image_extent){512, 512, 300}, 2.5, 0);
    resample_spaced(&upright, (const double[3]){1, 1, 1}, &grid);
    time_grid("spaced-nearest", &upright, &grid, RESAMPLE_NEAREST);
    time_grid("spaced-linear", &upright, &grid, RESAMPLE_LINEAR);
    time_grid("spaced-cubic", &upright, &grid, RESAMPLE_CUBIC);
    kernels_lane_close(lane);
    kernels_device_close(device);
    return 0;
}
