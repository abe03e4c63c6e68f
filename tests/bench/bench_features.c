/*
 * bench_features.c - times each family of features, and all of them, of a region in memory. The time runs from the
 * announced volume to the values, as the worker measures them. Prints a JSON line per family with the wall-clock time
 * and the total CPU time, as medians.
 *
 *     bench_features VOXELS MASK C,R,S X,Y,Z [THREADS|cuda [REPEAT [FAMILY]]]
 *
 * With a GPU, there are as many threads as CPUs, as in a worker with one lane. VOXELS are int16, MASK has nonzero
 * bytes within the region, X,Y,Z is the spacing in mm. Levels are 25 wide with edges at multiples. Matrices are those
 * of pyradiomics' default ("3d-averaged"). "all", and "all but spatial-correlation", whose cost grows faster than the
 * region, begin with the announcement, so that they include the upload to a GPU.
 */
#include "service/common/parallel.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/measure/measure_demand.h"
#include "service/pipeline/measure/measure_values.h"
#include "tests/kernels/ref_drive.h"
#include "tests/kernels/ref_volumes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_REPEAT = 99 };

struct scene {
    struct image_extent extent;
    double spacing[3];
    int16_t *voxels;
    uint64_t *bits;
    struct dicom_frame frame;
    struct dicom_instance instance, *instances;
    struct geometry_plane *planes;
    struct geometry_stack stack;
    struct kernels_lane *lane;
    struct valuing *valuing;
    const char *device; /* as on the command line */
};

struct cost {
    double seconds, processor;
};

static struct cost
cost_now(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (struct cost){ref_clock(), (double)used.tv_sec + 1e-9 * (double)used.tv_nsec};
}

static int
compare_costs(const void *a, const void *b)
{
    const double left = ((const struct cost *)a)->processor;
    const double right = ((const struct cost *)b)->processor;

    return (left > right) - (left < right);
}

static void
fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

static void *
allocate(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);

    if (!memory)
        fail("no memory");
    return memory;
}

static void
read_file(const char *path, void *memory, size_t size)
{
    FILE *file = fopen(path, "rb");

    if (!file || fread(memory, 1, size, file) != size)
        fail("the file is shorter than the extent says");
    fclose(file);
}

static void
read_scene(struct scene *scene, const char *voxels, const char *mask)
{
    const int64_t count = ref_voxels(scene->extent), words = (scene->extent.columns + 63) / 64;
    uint8_t *in = allocate(count, 1);

    scene->voxels = allocate(count, sizeof(*scene->voxels));
    scene->bits = allocate(words * scene->extent.rows * scene->extent.slices, sizeof(uint64_t));
    read_file(voxels, scene->voxels, (size_t)count * sizeof(*scene->voxels));
    read_file(mask, in, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = i % scene->extent.columns, row = i / scene->extent.columns;

        scene->bits[row * words + x / 64] |= (uint64_t)(in[i] != 0) << x % 64;
    }
    free(in);
}

/* Makes the planes of one instance, which is enough to measure on. */
static void
make_stack(struct scene *scene)
{
    scene->frame = (struct dicom_frame){.has_rescale = true, .slope = 1};
    scene->instance = (struct dicom_instance){.frames = &scene->frame, .frame_count = 1};
    scene->instances = &scene->instance;
    scene->planes = allocate(scene->extent.slices, sizeof(*scene->planes));
    scene->stack = (struct geometry_stack){.columns = (int32_t)scene->extent.columns,
                                           .rows = (int32_t)scene->extent.rows,
                                           .plane_count = (int32_t)scene->extent.slices,
                                           .planes = scene->planes,
                                           .pixel = IMAGE_INT16,
                                           .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    memcpy(scene->stack.spacing, scene->spacing, sizeof(scene->spacing));
}

static struct texture_options
options_of(unsigned families)
{
    return (struct texture_options){
        .families = families,
        .levels = {.kind = DISCRETISATION_PYRADIOMICS_BIN_WIDTH, .bin_width = 25},
        .aggregation = AGGREGATION_3D_AVERAGED,
        .ngtdm_distance = 1,
        .ngldm_distance = 1,
    };
}

static void
begin(const struct scene *scene, const struct texture_options *options)
{
    struct kernels_demand demand = {.most_bytes = 0};
    struct error error = {0};
    void *voxels;

    texture_demand(options, false, &demand);
    if (kernels_volume_begin(scene->lane, scene->extent, IMAGE_INT16, &demand, &voxels, &error))
        fail(error.message);
    memcpy(voxels, scene->voxels, (size_t)ref_voxels(scene->extent) * sizeof(*scene->voxels));
}

static void
announce(const struct scene *scene)
{
    struct error error = {0};

    if (kernels_volume_ready(scene->lane, 0, scene->extent.slices, &error))
        fail(error.message);
}

static size_t
measure(struct scene *scene, const struct texture_options *options)
{
    const struct texture_region region = {.segment = 1, .label = "Region", .bits = scene->bits};
    const struct texture_request request = {.options = options,
                                            .instances = &scene->instances,
                                            .stack = &scene->stack,
                                            .regions = &region,
                                            .region_count = 1,
                                            .lane = scene->lane,
                                            .valuing = scene->valuing};
    struct texture_result result = {.map_count = 0};
    struct error error = {0};
    size_t count;

    if (texture_measure(&request, &result, &error))
        fail(error.message);
    count = result.features.count;
    texture_result_clear(&result);
    return count;
}

/* Times families, given as bits. `whole` includes the announcement. */
static void
time_families(struct scene *scene, const char *name, unsigned families, bool whole, int repeat)
{
    const struct texture_options options = options_of(families);
    struct cost costs[MAX_REPEAT];
    size_t features = 0;

    for (int i = 0; i < repeat; i++) {
        if (whole || i == 0)
            begin(scene, &options);
        if (!whole && i == 0)
            announce(scene);
        const struct cost before = cost_now();

        if (whole)
            announce(scene);
        features = measure(scene, &options);
        const struct cost after = cost_now();

        costs[i] = (struct cost){after.seconds - before.seconds, after.processor - before.processor};
    }
    qsort(costs, (size_t)repeat, sizeof(*costs), compare_costs);
    printf("{\"family\": \"%s\", \"features\": %zu, \"device\": \"%s\", \"seconds\": %.5f, "
           "\"processor_seconds\": %.5f}\n",
           name, features, scene->device, costs[repeat / 2].seconds, costs[repeat / 2].processor);
    fflush(stdout);
}

static bool
asked(int argc, char **argv, const char *family)
{
    return argc < 8 || strcmp(argv[7], family) == 0;
}

int
main(int argc, char **argv)
{
    struct scene scene = {.voxels = NULL};
    struct kernels_device_options options = {.backend = "cpu", .threads = 2};
    const int repeat = argc > 6 ? atoi(argv[6]) : 3;
    struct kernels_device *device;
    struct error error = {0};
    long long size[3];

    if (argc < 5 || argc > 8 || repeat < 1 || repeat > MAX_REPEAT ||
        sscanf(argv[3], "%lld,%lld,%lld", &size[0], &size[1], &size[2]) != 3 ||
        sscanf(argv[4], "%lf,%lf,%lf", &scene.spacing[0], &scene.spacing[1], &scene.spacing[2]) != 3)
        fail("usage: bench_features VOXELS MASK C,R,S X,Y,Z [THREADS|cuda [REPEAT [FAMILY]]]");
    scene.extent = (struct image_extent){size[0], size[1], size[2]};
    read_scene(&scene, argv[1], argv[2]);
    make_stack(&scene);
    scene.device = argc > 5 ? argv[5] : "2";
    if (strcmp(scene.device, "cuda") == 0)
        options = (struct kernels_device_options){.backend = "cuda", .threads = parallel_processors()};
    else
        options.threads = atoi(scene.device);
    if (kernels_device_open(&options, &device, &error) || kernels_lane_open(device, &scene.lane, &error))
        fail(error.message);
    scene.valuing = valuing_open();
    if (!scene.valuing)
        fail("no memory");
    for (int family = 0; family < TEXTURE_FAMILIES; family++)
        if (asked(argc, argv, texture_family_names[family]))
            time_families(&scene, texture_family_names[family], 1u << family, family == TEXTURE_FAMILY_all, repeat);
    if (asked(argc, argv, "all but spatial-correlation"))
        time_families(&scene, "all but spatial-correlation",
                      (1u << TEXTURE_FAMILY_all) - 1 - (1u << TEXTURE_FAMILY_spatial_correlation), true, repeat);
    valuing_close(scene.valuing);
    kernels_lane_close(scene.lane);
    kernels_device_close(device);
    free(scene.voxels);
    free(scene.bits);
    free(scene.planes);
    return EXIT_SUCCESS;
}
