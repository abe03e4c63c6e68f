/*
 * noctule_bench.c - the program noctule-bench: times each kernel, one JSON line per case.
 *
 * A job is timed from kernels_volume_begin to its results, with voxels in the lane's memory. As many threads as the
 * device has on the CPU announce its slices. For a GPU, one thread does, because it does no other work. The same run
 * also times one read of the volume with the CPU's threads and, for a GPU, its bare upload. Compare machines by these
 * ratios. Times are medians. A line is printed as soon as its case is done.
 *
 * On a GPU, cases of the kernels alone follow, with resident input: gpu_bench.h.
 */
#include "kernels/kernels.h"
#include "tests/bench/mask_cases.h"
#include "tests/kernels/ref_drive.h"
#include "tests/kernels/ref_jobs.h"
#include "tests/kernels/ref_volumes.h"

#ifdef NOCTULE_CUDA
#include "tests/bench/gpu_bench.h"
#endif

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_THREADS = 4096,
    IN_VALUE = 100,
    OUT_VALUE = 0,
    TOP_VALUE = 3000, /* of grey volumes */
    LANES = 2,        /* that run concurrently */
};

enum pattern {
    SPHERE,
    SERPENTINE_X,
    SERPENTINE_Y,
    SERPENTINE_Z,
    RANDOM_MAZE,
    CHECKERBOARD,
    NOISE_30,
    NOISE_60,
};

/* Contents for fuzzy connectedness. */
enum grey {
    VESSELS,
    SMOOTH,
    MAZE,
};

struct level_set_case {
    const char *name;
    const char *description;
    enum pattern pattern;
    struct image_extent extent;
    double radius; /* of the initial sphere; 0: an eighth of the columns */
    enum image_pixel pixel;
    size_t labels;
    bool only_by_name;
};

#define CUBE(side)                                                                                                     \
    {                                                                                                                  \
        side, side, side                                                                                               \
    }

static const struct level_set_case cases[] = {
    {"sphere-128", "sphere, int16", SPHERE, CUBE(128), 0, IMAGE_INT16, 1, false},
    {"sphere-256", "sphere, int16", SPHERE, CUBE(256), 0, IMAGE_INT16, 1, false},
    {"brain-384",
     "sphere, int16, extent and radius of Trapani 2018's MRI",
     SPHERE,
     {274, 384, 384},
     50,
     IMAGE_INT16,
     1,
     false},
    {"sphere-512", "sphere, int16", SPHERE, CUBE(512), 0, IMAGE_INT16, 1, false},
    {"sphere-512-uint8", "sphere, uint8", SPHERE, CUBE(512), 0, IMAGE_UINT8, 1, false},
    {"sphere-512-labels-4", "sphere, int16, 4 labels", SPHERE, CUBE(512), 0, IMAGE_INT16, 4, false},
    {"sphere-1024", "sphere, int16", SPHERE, CUBE(1024), 0, IMAGE_INT16, 1, true},
    {"sphere-1024-inward", "sphere, int16, from outside", SPHERE, CUBE(1024), 512, IMAGE_INT16, 1, true},
    {"maze-x-512", "serpentine along x", SERPENTINE_X, CUBE(512), 0, IMAGE_INT16, 1, false},
    {"maze-y-512", "serpentine along y", SERPENTINE_Y, CUBE(512), 0, IMAGE_INT16, 1, false},
    {"maze-z-512", "serpentine along z", SERPENTINE_Z, CUBE(512), 0, IMAGE_INT16, 1, false},
    {"maze-random-512", "spanning tree of random walks", RANDOM_MAZE, CUBE(512), 0, IMAGE_INT16, 1, false},
    {"checkerboard-512", "checkerboard", CHECKERBOARD, CUBE(512), 0, IMAGE_INT16, 1, false},
    {"noise-30-512", "noise, 30 % in range", NOISE_30, CUBE(512), 0, IMAGE_INT16, 1, false},
    {"noise-60-512", "noise, 60 % in range", NOISE_60, CUBE(512), 0, IMAGE_INT16, 1, false},
};

struct fuzzy_case {
    const char *name;
    const char *description;
    enum grey grey;
    struct image_extent extent;
    bool map;
    bool only_by_name;
};

/* Numbers of slices as in Wang 2016's three series. */
static const struct fuzzy_case fuzzy_cases[] = {
    {"fuzzy-vessels-131", "vessels in noise, connectedness map", VESSELS, {512, 512, 131}, true, false},
    {"fuzzy-vessels-261", "vessels in noise, connectedness map", VESSELS, {512, 512, 261}, true, true},
    {"fuzzy-vessels-576", "vessels in noise, connectedness map", VESSELS, {512, 512, 576}, true, true},
    {"fuzzy-smooth-131", "smooth field, connectedness map", SMOOTH, {512, 512, 131}, true, false},
    {"fuzzy-smooth-261", "smooth field, connectedness map", SMOOTH, {512, 512, 261}, true, true},
    {"fuzzy-smooth-576", "smooth field, connectedness map", SMOOTH, {512, 512, 576}, true, true},
    {"fuzzy-object-576", "vessels in noise, object only", VESSELS, {512, 512, 576}, false, true},
    {"fuzzy-maze-256", "serpentine, connectedness map", MAZE, CUBE(256), true, false},
};

enum {
    CASE_COUNT = sizeof(cases) / sizeof(cases[0]),
    FUZZY_CASE_COUNT = sizeof(fuzzy_cases) / sizeof(fuzzy_cases[0]),
};

struct options {
    const char *backend;
    int threads; /* 0: the device's maximum */
    int repeat;
    const char *raw;
    struct image_extent extent;
    enum image_pixel pixel;
    struct image_range range;
    struct kernels_shape sphere;
    double spacing[3];
    struct kernels_mask_step steps[MASK_CASE_STEPS]; /* instead of the level set */
    size_t step_count;
    const char *mask_out;
    bool kernels; /* run only the kernel cases whose name contains kernel_filter */
    const char *kernel_filter;
};

struct measured {
    double median;
    double least;
};

struct bench {
    const struct options *options;
    struct kernels_device *device;
    struct kernels_lane *lane;
    int threads;    /* of the CPU */
    int announcers; /* threads that announce slices */
    bool gpu;
};

static void *
allocate(size_t size)
{
    void *memory = malloc(size);

    if (!memory) {
        fprintf(stderr, "noctule-bench: no memory for %zu bytes\n", size);
        exit(EXIT_FAILURE);
    }
    return memory;
}

static int
compare_seconds(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static struct measured
summarise(double *seconds, int count)
{
    qsort(seconds, (size_t)count, sizeof(*seconds), compare_seconds);
    return (struct measured){(seconds[(count - 1) / 2] + seconds[count / 2]) / 2, seconds[0]};
}

/* The part of a plain read that one thread does. */
struct reader {
    const uint64_t *words;
    size_t count;
    uint64_t sum;
};

static void *
read_words(void *argument)
{
    struct reader *reader = argument;
    uint64_t sums[8] = {0};
    size_t i = 0;

    for (; i + 8 <= reader->count; i += 8)
        for (size_t k = 0; k < 8; k++)
            sums[k] += reader->words[i + k];
    for (; i < reader->count; i++)
        sums[0] += reader->words[i];
    reader->sum = sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
    return NULL;
}

/* Stores the sum, so that the compiler cannot remove the read. */
static volatile uint64_t read_sum;

static double
read_once(const void *voxels, size_t bytes, int threads)
{
    struct reader *readers = allocate((size_t)threads * sizeof(*readers));
    pthread_t *others = allocate((size_t)threads * sizeof(*others));
    size_t words = bytes / sizeof(uint64_t), share = words / (size_t)threads;
    double begun = ref_clock(), seconds;

    for (int i = 0; i < threads; i++) {
        size_t first = (size_t)i * share;
        readers[i].words = (const uint64_t *)voxels + first;
        readers[i].count = i + 1 < threads ? share : words - first;
        if (i > 0 && pthread_create(&others[i], NULL, read_words, &readers[i]))
            abort();
    }
    read_words(&readers[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    seconds = ref_clock() - begun;
    for (int i = 0; i < threads; i++)
        read_sum += readers[i].sum;
    free(others);
    free(readers);
    return seconds;
}

static struct measured
measure_read(const struct bench *bench, const struct ref_job *job)
{
    int repeat = bench->options->repeat;
    size_t bytes = (size_t)ref_voxels(job->extent) * image_pixel_size(job->pixel);
    double *seconds = allocate((size_t)repeat * sizeof(*seconds));
    struct measured measured;

    read_once(job->voxels, bytes, bench->threads);
    for (int i = 0; i < repeat; i++)
        seconds[i] = read_once(job->voxels, bytes, bench->threads);
    measured = summarise(seconds, repeat);
    free(seconds);
    return measured;
}

static void
run_job(struct kernels_lane *lane, const struct ref_whole *whole, struct ref_results *results, double *seconds)
{
    struct error error = {0};
    int rc = ref_run(lane, whole, results, seconds, &error);

    if (rc) {
        fprintf(stderr, "noctule-bench: %s: %s\n", error.message, strerror(-rc));
        exit(EXIT_FAILURE);
    }
}

static struct measured
measure_job(const struct bench *bench, const struct ref_whole *whole, struct ref_results *results)
{
    int repeat = bench->options->repeat;
    double *seconds = allocate((size_t)(repeat + 1) * sizeof(*seconds));
    struct measured measured;

    /* The first run also reserves memory and does not count. */
    for (int i = 0; i < repeat + 1; i++)
        run_job(bench->lane, whole, results, &seconds[i]);
    measured = summarise(seconds + 1, repeat);
    free(seconds);
    return measured;
}

/* One of several lanes that run the same job at the same time. */
struct lane_share {
    const struct bench *bench;
    struct kernels_lane *lane;
    struct ref_whole whole;
    struct ref_results results;
};

static void *
run_share(void *argument)
{
    struct lane_share *share = argument;

    for (int i = 0; i < share->bench->options->repeat; i++)
        run_job(share->lane, &share->whole, &share->results, NULL);
    return NULL;
}

/*
 * Returns the seconds per job while LANES lanes run, from the first begin to the last result. The voxels are already
 * in place.
 */
static double
measure_lanes(const struct bench *bench, const struct ref_whole *whole)
{
    struct lane_share shares[LANES];
    pthread_t threads[LANES];
    double begun;

    for (int i = 0; i < LANES; i++) {
        shares[i] = (struct lane_share){.bench = bench, .whole = *whole};
        if (kernels_lane_open(bench->device, &shares[i].lane, NULL))
            abort();
        run_job(shares[i].lane, whole, &shares[i].results, NULL);
        shares[i].whole.job.voxels = NULL;
    }
    begun = ref_clock();
    for (int i = 0; i < LANES; i++)
        if (pthread_create(&threads[i], NULL, run_share, &shares[i]))
            abort();
    for (int i = 0; i < LANES; i++)
        pthread_join(threads[i], NULL);
    begun = ref_clock() - begun;
    for (int i = 0; i < LANES; i++)
        kernels_lane_close(shares[i].lane);
    return begun / LANES / bench->options->repeat;
}

static const char *
pixel_name(enum image_pixel pixel)
{
    switch (pixel) {
    case IMAGE_UINT8:
        return "uint8";
    case IMAGE_INT16:
        return "int16";
    case IMAGE_UINT16:
        return "uint16";
    }
    return "";
}

static double
bare_upload(int repeat, size_t bytes)
{
#ifdef NOCTULE_CUDA
    return gpu_bench_bare_upload(repeat, bytes);
#else
    (void)repeat;
    (void)bytes;
    return 0;
#endif
}

/* Prints the values that only a GPU has: the bare upload, and lanes that overlap. */
static void
print_gpu(const struct bench *bench, const struct ref_whole *whole, double median, size_t bytes)
{
    double upload = bare_upload(bench->options->repeat, bytes);
    double lanes = measure_lanes(bench, whole);

    printf("\"upload_seconds\":%.6f,\"ratio_to_upload\":%.3f,\"lanes\":%d,"
           "\"lanes_seconds\":%.6f,\"lanes_ratio_to_upload\":%.3f,",
           upload, median / upload, LANES, lanes, lanes / upload);
}

static int64_t
results_voxels(const struct ref_whole *whole, const struct ref_results *results)
{
    int64_t voxels = 0;

    for (size_t i = 0; i < whole->job.label_count; i++)
        voxels += results->masks[i].voxels;
    for (size_t i = 0; i < whole->object_count; i++)
        voxels += results->fuzzy[i].object.voxels;
    return voxels;
}

static void
measure(const struct bench *bench, const char *name, const struct ref_whole *whole, struct ref_results *results)
{
    const struct ref_job *job = &whole->job;
    struct measured own = measure_job(bench, whole, results);
    struct measured plain = measure_read(bench, job);
    int64_t voxels = ref_voxels(job->extent), bytes = voxels;

    bytes *= (int64_t)image_pixel_size(job->pixel);
    printf("{\"case\":\"%s\",\"backend\":\"%s\",\"description\":\"%s\",\"threads\":%d,"
           "\"extent\":[%" PRId64 ",%" PRId64 ",%" PRId64 "],\"pixel\":\"%s\",\"labels\":%zu,"
           "\"objects\":%zu,\"bytes\":%" PRId64 ",\"repeat\":%d,\"median_seconds\":%.6f,"
           "\"min_seconds\":%.6f,\"read_seconds\":%.6f,\"ratio_to_read\":%.2f,",
           name, kernels_device_backend(bench->device), kernels_device_description(bench->device), bench->threads,
           job->extent.columns, job->extent.rows, job->extent.slices, pixel_name(job->pixel), job->label_count,
           whole->object_count, bytes, bench->options->repeat, own.median, own.least, plain.median,
           own.median / plain.median);
    if (bench->gpu)
        print_gpu(bench, whole, own.median, (size_t)bytes);
    printf("\"voxels_per_second\":%.4g,\"segmented_voxels\":%" PRId64 ",\"version\":\"%s\"}\n",
           (double)voxels / own.median, results_voxels(whole, results), NOCTULE_VERSION);
    fflush(stdout);
}

static void
generate(enum pattern pattern, struct image_extent extent, uint8_t *in)
{
    switch (pattern) {
    case SPHERE:
        ref_sphere(extent, (double)extent.columns / 4, in);
        break;
    case SERPENTINE_X:
    case SERPENTINE_Y:
    case SERPENTINE_Z:
        ref_serpentine(extent, (int)pattern - (int)SERPENTINE_X, in);
        break;
    case RANDOM_MAZE:
        ref_random_maze(extent, 1, in);
        break;
    case CHECKERBOARD:
        ref_checkerboard(extent, in);
        break;
    case NOISE_30:
        ref_noise(extent, 0.3, 1, in);
        break;
    case NOISE_60:
        ref_noise(extent, 0.6, 1, in);
        break;
    }
}

/* Starts from a sphere in the middle. An eighth of the side is Trapani 2018's outward evolution. */
static void
run_case(const struct bench *bench, const struct level_set_case *chosen)
{
    struct image_extent extent = chosen->extent;
    struct image_range range = {IN_VALUE, IN_VALUE};
    double radius = chosen->radius > 0 ? chosen->radius : (double)extent.columns / 8;
    struct kernels_shape sphere = {
        KERNELS_SPHERE, {(double)extent.columns / 2, (double)extent.rows / 2, (double)extent.slices / 2}, {radius}};
    struct kernels_level_set_label labels[REF_MOST];
    struct ref_results results;
    size_t count = (size_t)ref_voxels(extent);
    uint8_t *in = allocate(count);
    void *voxels = allocate(count * image_pixel_size(chosen->pixel));
    struct ref_whole whole = {.job = {.extent = extent,
                                      .pixel = chosen->pixel,
                                      .voxels = voxels,
                                      .labels = labels,
                                      .label_count = chosen->labels,
                                      .threads = bench->announcers}};

    for (size_t i = 0; i < chosen->labels; i++)
        labels[i] = (struct kernels_level_set_label){
            .shapes = &sphere, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = {1, 0}};
    generate(chosen->pattern, extent, in);
    ref_paint(chosen->pixel, in, (int64_t)count, IN_VALUE, OUT_VALUE, voxels);
    free(in);
    measure(bench, chosen->name, &whole, &results);
    free(voxels);
}

/* Returns the voxel where the object begins. */
static struct kernels_voxel
draw_grey(enum grey grey, struct image_extent extent, int16_t *voxels)
{
    struct kernels_voxel seed = {extent.columns / 2, extent.rows / 2, extent.slices / 2};
    uint8_t *in;

    switch (grey) {
    case VESSELS:
        ref_vessels(extent, IMAGE_INT16, TOP_VALUE, 1, 1, voxels, &seed);
        break;
    case SMOOTH:
        ref_smooth(extent, IMAGE_INT16, TOP_VALUE, 1, voxels);
        break;
    case MAZE:
        in = allocate((size_t)ref_voxels(extent));
        ref_serpentine(extent, 0, in);
        ref_paint(IMAGE_INT16, in, ref_voxels(extent), 3 * TOP_VALUE / 4, 0, voxels);
        free(in);
        seed = (struct kernels_voxel){0, 0, 0};
        break;
    }
    return seed;
}

static void
run_fuzzy_case(const struct bench *bench, const struct fuzzy_case *chosen)
{
    int16_t *voxels = allocate((size_t)ref_voxels(chosen->extent) * sizeof(*voxels));
    struct kernels_voxel seed = draw_grey(chosen->grey, chosen->extent, voxels);
    struct kernels_fuzzy_object object = {.seeds = &seed,
                                          .seed_count = 1,
                                          .mean = 0.75 * TOP_VALUE,
                                          .sigma = 0.1 * TOP_VALUE,
                                          .homogeneity_sigma = 0.05 * TOP_VALUE,
                                          .weight = 0.5,
                                          .threshold = 32767,
                                          .padding = {1, 0},
                                          .map = chosen->map};
    struct ref_whole whole = {
        .job = {.extent = chosen->extent, .pixel = IMAGE_INT16, .voxels = voxels, .threads = bench->announcers},
        .objects = &object,
        .object_count = 1};
    struct ref_results results;

    measure(bench, chosen->name, &whole, &results);
    free(voxels);
}

static void
fail_on_file(const char *path)
{
    fprintf(stderr, "noctule-bench: %s: %s\n", path, errno ? strerror(errno) : "too short");
    exit(EXIT_FAILURE);
}

static void
load_raw(const char *path, void *voxels, size_t bytes)
{
    FILE *file = fopen(path, "rb");

    if (!file)
        fail_on_file(path);
    errno = 0;
    if (fread(voxels, 1, bytes, file) != bytes)
        fail_on_file(path);
    fclose(file);
}

/* Writes the words unchanged: rows padded to whole words. */
static void
save_mask(const char *path, struct image_extent extent, const struct image_mask *mask)
{
    size_t words = (size_t)(extent.rows * extent.slices * mask->words_per_row);
    FILE *file = fopen(path, "wb");

    if (!file || fwrite(mask->bits, sizeof(*mask->bits), words, file) != words || fclose(file))
        fail_on_file(path);
}

static void
fail_on_error(int rc, const struct error *error)
{
    if (rc == 0)
        return;
    fprintf(stderr, "noctule-bench: %s: %s\n", error->message, strerror(-rc));
    exit(EXIT_FAILURE);
}

/* Makes the voxels in range mask 0 of the lane. */
static struct kernels_mask_result
begin_masks(const struct bench *bench, const struct mask_case *chosen, enum image_pixel pixel, const void *voxels,
            struct image_range range)
{
    const struct kernels_mask_demand masks = mask_case_demand(chosen);
    const struct kernels_demand demand = {.of = {[KERNELS_MASK] = &masks}};
    const struct kernels_mask_request request = {.ranges = &range, .range_count = 1, .padding = {1, 0}};
    size_t bytes = (size_t)ref_voxels(chosen->extent) * image_pixel_size(pixel);
    struct kernels_mask_result result;
    struct error error = {0};
    void *resident;

    fail_on_error(kernels_volume_begin(bench->lane, chosen->extent, pixel, &demand, &resident, &error), &error);
    memcpy(resident, voxels, bytes);
    fail_on_error(kernels_volume_ready(bench->lane, 0, chosen->extent.slices, &error), &error);
    fail_on_error(kernels_mask_run(bench->lane, 0, &request, &result, &error), &error);
    return result;
}

/* Times one read of the bytes of the masks that go in and out. */
static struct measured
measure_floor(const struct bench *bench, size_t bytes)
{
    struct ref_job job = {.extent = {(int64_t)bytes, 1, 1}, .pixel = IMAGE_UINT8};
    void *memory = allocate(bytes);
    struct measured measured;

    memset(memory, 1, bytes);
    job.voxels = memory;
    measured = measure_read(bench, &job);
    free(memory);
    return measured;
}

/* Times only the steps, from mask to mask of the lane. On a GPU this includes the download of the result. */
static void
measure_mask(const struct bench *bench, const struct mask_case *chosen, enum image_pixel pixel, const void *voxels,
             struct image_range range)
{
    const int repeat = bench->options->repeat;
    const struct kernels_mask_result begun = begin_masks(bench, chosen, pixel, voxels, range);
    const struct kernels_mask_request request = {
        .found = begun.mask.bits, .steps = chosen->steps, .step_count = chosen->count};
    const int64_t floor = mask_case_floor(chosen->extent);
    double *seconds = allocate((size_t)(repeat + 1) * sizeof(*seconds));
    struct kernels_mask_result result;
    struct measured own, plain;

    for (int i = 0; i < repeat + 1; i++) {
        struct error error = {0};
        double start = ref_clock();

        fail_on_error(kernels_mask_run(bench->lane, 1, &request, &result, &error), &error);
        seconds[i] = ref_clock() - start;
    }
    own = summarise(seconds + 1, repeat);
    free(seconds);
    plain = measure_floor(bench, (size_t)floor);
    printf("{\"case\":\"%s\",\"backend\":\"%s\",\"description\":\"%s, %s\",\"threads\":%d,"
           "\"extent\":[%" PRId64 ",%" PRId64 ",%" PRId64 "],\"spacing\":[%g,%g,%g],"
           "\"steps\":%zu,\"repeat\":%d,\"median_seconds\":%.6f,\"min_seconds\":%.6f,"
           "\"floor_bytes\":%" PRId64 ",\"read_seconds\":%.6f,\"ratio_to_read\":%.2f,"
           "\"voxels_before\":%" PRId64 ",\"segmented_voxels\":%" PRId64 ",\"components\":%" PRId64
           ",\"version\":\"%s\"}\n",
           chosen->name, kernels_device_backend(bench->device), kernels_device_description(bench->device),
           chosen->description, bench->threads, chosen->extent.columns, chosen->extent.rows, chosen->extent.slices,
           chosen->spacing[0], chosen->spacing[1], chosen->spacing[2], chosen->count, repeat, own.median, own.least,
           floor, plain.median, own.median / plain.median, begun.mask.voxels, result.mask.voxels,
           result.components_found, NOCTULE_VERSION);
    fflush(stdout);
    if (bench->options->mask_out)
        save_mask(bench->options->mask_out, chosen->extent, &result.mask);
}

static void
run_mask_case(const struct bench *bench, const struct mask_case *chosen)
{
    const struct image_range in_range = {IN_VALUE, IN_VALUE};
    size_t count = (size_t)ref_voxels(chosen->extent);
    uint8_t *in = allocate(count), *voxels = allocate(count);

    mask_case_draw(chosen->content, chosen->extent, in);
    ref_paint(IMAGE_UINT8, in, (int64_t)count, IN_VALUE, OUT_VALUE, voxels);
    free(in);
    measure_mask(bench, chosen, IMAGE_UINT8, voxels, in_range);
    free(voxels);
}

/* Runs the steps on a file. */
static void
run_raw_mask(const struct bench *bench)
{
    const struct options *options = bench->options;
    size_t bytes = (size_t)ref_voxels(options->extent) * image_pixel_size(options->pixel);
    struct mask_case given = {
        .name = "raw", .description = "steps", .extent = options->extent, .count = options->step_count};
    void *voxels = allocate(bytes);

    memcpy(given.spacing, options->spacing, sizeof(given.spacing));
    memcpy(given.steps, options->steps, sizeof(given.steps));
    load_raw(options->raw, voxels, bytes);
    measure_mask(bench, &given, options->pixel, voxels, options->range);
    free(voxels);
}

static void
run_raw(const struct bench *bench)
{
    const struct options *options = bench->options;
    size_t bytes = (size_t)ref_voxels(options->extent) * image_pixel_size(options->pixel);
    struct kernels_level_set_label label = {
        .shapes = &options->sphere, .shape_count = 1, .ranges = &options->range, .range_count = 1, .padding = {1, 0}};
    struct ref_results results;
    void *voxels = allocate(bytes);
    struct ref_whole whole = {.job = {.extent = options->extent,
                                      .pixel = options->pixel,
                                      .voxels = voxels,
                                      .labels = &label,
                                      .label_count = 1,
                                      .threads = bench->announcers}};

    load_raw(options->raw, voxels, bytes);
    measure(bench, "raw", &whole, &results);
    if (options->mask_out)
        save_mask(options->mask_out, options->extent, &results.masks[0]);
    free(voxels);
}

static void
list_case(const char *name, const char *description, bool only_by_name)
{
    printf("%-20s %s%s\n", name, description, only_by_name ? " (only when named)" : "");
}

static void
list_cases(void)
{
    for (size_t i = 0; i < CASE_COUNT; i++)
        list_case(cases[i].name, cases[i].description, cases[i].only_by_name);
    for (size_t i = 0; i < FUZZY_CASE_COUNT; i++)
        list_case(fuzzy_cases[i].name, fuzzy_cases[i].description, fuzzy_cases[i].only_by_name);
    for (size_t i = 0; i < mask_case_count; i++)
        list_case(mask_cases[i].name, mask_cases[i].description, mask_cases[i].only_by_name);
}

/* Returns whether there is a case of that name. Runs it unless the bench is NULL. */
static bool
take_case(const struct bench *bench, const char *name)
{
    for (size_t i = 0; i < CASE_COUNT; i++)
        if (strcmp(cases[i].name, name) == 0) {
            if (bench)
                run_case(bench, &cases[i]);
            return true;
        }
    for (size_t i = 0; i < FUZZY_CASE_COUNT; i++)
        if (strcmp(fuzzy_cases[i].name, name) == 0) {
            if (bench)
                run_fuzzy_case(bench, &fuzzy_cases[i]);
            return true;
        }
    for (size_t i = 0; i < mask_case_count; i++)
        if (strcmp(mask_cases[i].name, name) == 0) {
            if (bench)
                run_mask_case(bench, &mask_cases[i]);
            return true;
        }
    return false;
}

static void
run_all(const struct bench *bench)
{
    for (size_t i = 0; i < CASE_COUNT; i++)
        if (!cases[i].only_by_name)
            run_case(bench, &cases[i]);
    for (size_t i = 0; i < FUZZY_CASE_COUNT; i++)
        if (!fuzzy_cases[i].only_by_name)
            run_fuzzy_case(bench, &fuzzy_cases[i]);
    for (size_t i = 0; i < mask_case_count; i++)
        if (!mask_cases[i].only_by_name)
            run_mask_case(bench, &mask_cases[i]);
}

/* Returns the number of the GPU's own cases that differ from their references. */
static int
run_kernels(const struct bench *bench)
{
#ifdef NOCTULE_CUDA
    const struct gpu_bench kernels = {
        .rounds = bench->options->repeat, .filter = bench->options->kernel_filter, .out = stdout};

    if (bench->gpu)
        return gpu_bench_level_set(&kernels) + gpu_bench_fuzzy(&kernels) + gpu_bench_mask(&kernels) +
               gpu_bench_enclosed(&kernels) + gpu_bench_resample(&kernels) + gpu_bench_smooth(&kernels) +
               gpu_bench_filter(&kernels) + gpu_bench_texture(&kernels) + gpu_bench_picture(&kernels) +
               gpu_bench_features(&kernels) + gpu_bench_voxelwise(&kernels);
#else
    (void)bench;
#endif
    return 0;
}

static const char usage[] =
    "usage: noctule-bench [--backend NAME] [--threads N] [--repeat N] [CASE...]\n"
    "       noctule-bench --kernels[=PART OF A NAME] [--repeat N]    on a GPU, input resident\n"
    "       noctule-bench --list\n"
    "       noctule-bench --raw FILE --extent COLUMNS,ROWS,SLICES --pixel int16|uint16|uint8\n"
    "                     --range LO,HI --sphere X,Y,Z,RADIUS [--mask-out FILE]\n"
    "       noctule-bench --raw FILE --extent ... --pixel ... --range LO,HI --spacing X,Y,Z\n"
    "                     --step KIND[=AMOUNT][,corners|,slice] [--step ...] [--mask-out FILE]\n";

static void
refuse(void)
{
    fputs(usage, stderr);
    exit(2);
}

static int
parse_count(const char *text, int most)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (*text == '\0' || *end != '\0' || value < 1 || value > most)
        refuse();
    return (int)value;
}

static enum image_pixel
parse_pixel(const char *text)
{
    static const enum image_pixel pixels[] = {IMAGE_UINT8, IMAGE_INT16, IMAGE_UINT16};

    for (size_t i = 0; i < sizeof(pixels) / sizeof(pixels[0]); i++)
        if (strcmp(text, pixel_name(pixels[i])) == 0)
            return pixels[i];
    refuse();
    return IMAGE_UINT8;
}

static void
parse_numbers(const char *text, double *numbers, int count)
{
    for (int i = 0; i < count; i++) {
        char *end;
        numbers[i] = strtod(text, &end);
        if (end == text || *end != (i + 1 < count ? ',' : '\0'))
            refuse();
        text = end + 1;
    }
}

static void
parse_geometry(struct options *options, int option, const char *text)
{
    double numbers[4];

    switch (option) {
    case 'e':
        parse_numbers(text, numbers, 3);
        options->extent = (struct image_extent){(int64_t)numbers[0], (int64_t)numbers[1], (int64_t)numbers[2]};
        break;
    case 'i':
        parse_numbers(text, options->spacing, 3);
        break;
    case 'g':
        parse_numbers(text, numbers, 2);
        options->range = (struct image_range){(int32_t)numbers[0], (int32_t)numbers[1]};
        break;
    default:
        parse_numbers(text, numbers, 4);
        options->sphere = (struct kernels_shape){KERNELS_SPHERE, {numbers[0], numbers[1], numbers[2]}, {numbers[3]}};
        break;
    }
}

static struct options
parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"backend", required_argument, NULL, 'b'},
        {"threads", required_argument, NULL, 't'},
        {"repeat", required_argument, NULL, 'r'},
        {"list", no_argument, NULL, 'l'},
        {"raw", required_argument, NULL, 'w'},
        {"extent", required_argument, NULL, 'e'},
        {"pixel", required_argument, NULL, 'p'},
        {"range", required_argument, NULL, 'g'},
        {"sphere", required_argument, NULL, 's'},
        {"mask-out", required_argument, NULL, 'm'},
        {"spacing", required_argument, NULL, 'i'},
        {"step", required_argument, NULL, 'o'},
        {"kernels", optional_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.backend = "auto", .repeat = 7, .pixel = IMAGE_INT16, .spacing = {1, 1, 1}};
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'b':
            options.backend = optarg;
            break;
        case 't':
            options.threads = parse_count(optarg, MAX_THREADS);
            break;
        case 'r':
            options.repeat = parse_count(optarg, 1000000);
            break;
        case 'l':
            list_cases();
            exit(EXIT_SUCCESS);
        case 'h':
            fputs(usage, stdout);
            exit(EXIT_SUCCESS);
        case 'w':
            options.raw = optarg;
            break;
        case 'p':
            options.pixel = parse_pixel(optarg);
            break;
        case 'm':
            options.mask_out = optarg;
            break;
        case 'k':
            options.kernels = true;
            options.kernel_filter = optarg;
            break;
        case 'o':
            if (options.step_count == MASK_CASE_STEPS || !mask_case_parse(optarg, &options.steps[options.step_count++]))
                refuse();
            break;
        case 'e':
        case 'g':
        case 'i':
        case 's':
            parse_geometry(&options, option, optarg);
            break;
        default:
            refuse();
        }
    }
    if (options.raw &&
        (options.extent.columns < 1 || options.extent.rows < 1 || options.extent.slices < 1 || optind < argc))
        refuse();
    return options;
}

static void
open_bench(struct bench *bench)
{
    struct kernels_device_options device = {.backend = bench->options->backend, .threads = bench->options->threads};
    struct error error = {0};

    if (kernels_device_open(&device, &bench->device, &error) ||
        kernels_lane_open(bench->device, &bench->lane, &error)) {
        fprintf(stderr, "noctule-bench: %s\n", error.message);
        exit(EXIT_FAILURE);
    }
    bench->threads = kernels_device_threads(bench->device);
    bench->gpu = strcmp(kernels_device_backend(bench->device), "cuda") == 0;
    bench->announcers = bench->gpu ? 1 : bench->threads;
}

int
main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    struct bench bench = {.options = &options};
    bool everything = optind == argc && !options.raw && !options.kernels;
    int wrong = 0;

    for (int i = optind; i < argc; i++)
        if (!take_case(NULL, argv[i])) {
            fprintf(stderr, "noctule-bench: there is no case \"%s\"; see --list\n", argv[i]);
            return 2;
        }
    open_bench(&bench);
    if (options.raw && options.step_count > 0)
        run_raw_mask(&bench);
    else if (options.raw)
        run_raw(&bench);
    for (int i = optind; i < argc; i++)
        take_case(&bench, argv[i]);
    if (everything)
        run_all(&bench);
    if (everything || options.kernels)
        wrong = run_kernels(&bench);
    kernels_lane_close(bench.lane);
    kernels_device_close(bench.device);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
