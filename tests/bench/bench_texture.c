/*
 * bench_texture.c - times texture on the CPU: co-occurrence matrices, histograms and local patterns. Prints a JSON
 * line per case, with the wall-clock time and the total CPU time.
 *
 *     bench_texture [OPTIONS]
 *     bench_texture [OPTIONS] --raw FILE --extent C,R,S --top T --task glcm-2d|glcm-3d|patterns
 *
 *     --repeat N, --threads N, --levels L, --region FILE, --strict, --integer-average, --out FILE
 *
 * The first form runs on built-in volumes. The second takes int16 values 0 .. T, in steps of T + 1 / L, and bytes
 * that are nonzero within the region. --out writes the counts (uint64), or the three maps one after the other, for
 * comparison with other software.
 */
#include "kernels/texture/texture.h"
#include "tests/kernels/ref_drive.h"
#include "tests/kernels/ref_volumes.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_REPEAT = 99,
    DIRECTIONS_2D = 4,
    DIRECTIONS_3D = 13,
    COLUMNS = 512,
    ROWS = 512,
    SLICES = 100,
    TOP = 4095,
    VALUES = 65536,
};

static const char *const task_names[] = {"glcm-2d", "glcm-3d", "patterns", "histogram"};

enum task {
    GLCM_2D,
    GLCM_3D,
    PATTERNS,
    HISTOGRAM,
    TASKS,
};

struct volume {
    const char *name;
    struct image_extent extent;
    int32_t top;
    int16_t *voxels;
    uint64_t *region; /* NULL: everything */
};

struct job {
    const struct volume *volume;
    enum task task;
    int levels;
    bool per_slice;
    bool histograms; /* of patterns, in addition to the maps */
    bool strict, integer_average;
    int threads;
    int repeat;
};

/* Wall-clock time and total CPU time of a run. They differ on a busy machine. */
struct cost {
    double seconds;
    double processor;
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
    double left = ((const struct cost *)a)->seconds, right = ((const struct cost *)b)->seconds;

    return (left > right) - (left < right);
}

static void *
allocate(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);

    if (!memory) {
        fprintf(stderr, "no memory for %lld times %zu bytes\n", (long long)count, size);
        exit(EXIT_FAILURE);
    }
    return memory;
}

static void
check(int rc, const char *message)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s\n", message);
    exit(EXIT_FAILURE);
}

/* ------------------------------------------------------------------------------- a run ---- */

/* The four directions of scikit-image within a slice: 0, 45, 90, 135 degrees of its rows and columns. */
static const struct texture_offset offsets_2d[DIRECTIONS_2D] = {{1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {-1, 1, 0}};

static const struct texture_offset offsets_3d[DIRECTIONS_3D] = {
    {1, 0, 0},  {-1, 1, 0}, {0, 1, 0}, {1, 1, 0},  {-1, -1, 1}, {0, -1, 1}, {1, -1, 1},
    {-1, 0, 1}, {0, 0, 1},  {1, 0, 1}, {-1, 1, 1}, {0, 1, 1},   {1, 1, 1}};

/* Results of a job, as its options require. */
struct results {
    uint16_t *levels;
    uint64_t *counts;
    size_t entries;
    const uint8_t *maps[TEXTURE_PATTERNS]; /* memory of the lane */
    size_t codes;                          /* number per map */
};

static struct results
results_of(const struct job *job)
{
    struct image_extent extent = job->volume->extent;
    size_t levels = (size_t)job->levels, directions = job->task == GLCM_2D ? 4 : 13;
    struct results results = {.codes = texture_patterns_codes(&extent)};

    results.entries = levels * levels * directions;
    if (job->task == PATTERNS)
        results.entries = (size_t)TEXTURE_PATTERNS * 256;
    if (job->task == HISTOGRAM)
        results.entries = VALUES;
    if (job->per_slice)
        results.entries *= (size_t)extent.slices;
    results.levels = allocate(VALUES, sizeof(*results.levels));
    results.counts = allocate((int64_t)results.entries, sizeof(*results.counts));
    for (int32_t value = 0; value <= job->volume->top; value++)
        results.levels[value - INT16_MIN] = (uint16_t)(1 + (int64_t)value * job->levels / (job->volume->top + 1));
    return results;
}

static int
run(struct kernels_lane *lane, const struct job *job, struct results *results, struct error *error)
{
    const uint64_t *region = job->volume->region;
    struct texture_glcm glcm = {.levels = {job->levels, results->levels, 1},
                                .region = region,
                                .offsets = job->task == GLCM_2D ? offsets_2d : offsets_3d,
                                .offset_count = job->task == GLCM_2D ? DIRECTIONS_2D : DIRECTIONS_3D,
                                .per_slice = job->per_slice};
    struct texture_patterns patterns = {.wanted = {true, true, true},
                                        .maps = {true, true, true},
                                        .threshold_millionths = 900000,
                                        .strict = job->strict,
                                        .integer_average = job->integer_average,
                                        .regions = &region,
                                        .region_count = job->histograms,
                                        .histograms = results->counts};

    if (job->task == HISTOGRAM)
        return texture_histogram_run(lane, region, job->per_slice, results->counts, error);
    if (job->task != PATTERNS)
        return texture_glcm_run(lane, &glcm, results->counts, error);
    int rc = texture_patterns_run(lane, &patterns, error);
    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        results->maps[p] = texture_patterns_map(lane, (enum texture_pattern)p);
    return rc;
}

static void
print_case(const struct job *job, struct cost cost)
{
    double voxels = (double)ref_voxels(job->volume->extent);

    printf("{\"case\":\"%s\",\"task\":\"%s\",\"extent\":[%lld,%lld,%lld],\"levels\":%d,"
           "\"per_slice\":%s,\"histograms\":%s,\"region\":%s,\"threads\":%d,"
           "\"median_seconds\":%.5f,\"processor_seconds\":%.5f,\"nanoseconds_per_voxel\":%.3f}\n",
           job->volume->name, task_names[job->task], (long long)job->volume->extent.columns,
           (long long)job->volume->extent.rows, (long long)job->volume->extent.slices, job->levels,
           job->per_slice ? "true" : "false", job->histograms ? "true" : "false",
           job->volume->region ? "true" : "false", job->threads, cost.seconds, cost.processor,
           cost.seconds / voxels * 1e9);
    fflush(stdout);
}

static void
write_results(const struct job *job, const struct results *results, const char *path)
{
    FILE *file = fopen(path, "wb");

    for (int p = 0; file && job->task == PATTERNS && p < TEXTURE_PATTERNS; p++)
        fwrite(results->maps[p], 1, results->codes, file);
    if (file && job->task != PATTERNS)
        fwrite(results->counts, sizeof(*results->counts), results->entries, file);
    if (!file || fclose(file)) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

static void
load(struct kernels_lane *lane, const struct volume *volume)
{
    struct error error = {0};
    struct kernels_demand demand = {.of = {[KERNELS_GLCM] = &kernels_asked,
                                           [KERNELS_HISTOGRAM] = &kernels_asked,
                                           [KERNELS_PATTERNS] = &texture_patterns_demands[TEXTURE_PATTERNS]}};
    void *voxels;

    check(kernels_volume_begin(lane, volume->extent, IMAGE_INT16, &demand, &voxels, &error), error.message);
    memcpy(voxels, volume->voxels, (size_t)ref_voxels(volume->extent) * sizeof(int16_t));
    check(kernels_volume_ready(lane, 0, volume->extent.slices, NULL), "cannot announce slices");
}

/* Times the job after a warm-up, prints its line, and writes results if there is a path. */
static void
bench(const struct job *job, const char *path)
{
    struct kernels_device_options options = {.backend = "cpu", .threads = job->threads};
    struct kernels_device *device;
    struct kernels_lane *lane;
    struct cost costs[MAX_REPEAT];
    struct error error = {0};
    struct results results = results_of(job);

    check(kernels_device_open(&options, &device, &error), error.message);
    check(kernels_lane_open(device, &lane, &error), error.message);
    load(lane, job->volume);
    check(run(lane, job, &results, &error), error.message);
    for (int i = 0; i < job->repeat; i++) {
        struct cost begun = cost_now(), ended;

        check(run(lane, job, &results, &error), error.message);
        ended = cost_now();
        costs[i] = (struct cost){ended.seconds - begun.seconds, ended.processor - begun.processor};
    }
    qsort(costs, (size_t)job->repeat, sizeof(*costs), compare_costs);
    print_case(job, costs[job->repeat / 2]);
    if (path)
        write_results(job, &results, path);
    kernels_lane_close(lane);
    kernels_device_close(device);
    free(results.levels);
    free(results.counts);
}

/* ----------------------------------------------------------------------- built-in cases ---- */

static void
bench_volume(const struct volume *volume, int threads, int repeat)
{
    static const int levels[] = {8, 32, 64, 256};

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        for (int task = GLCM_2D; task <= GLCM_3D; task++)
            for (int per_slice = 0; per_slice <= (levels[i] <= 64); per_slice++)
                bench(&(struct job){.volume = volume,
                                    .task = (enum task)task,
                                    .levels = levels[i],
                                    .per_slice = per_slice,
                                    .threads = threads,
                                    .repeat = repeat},
                      NULL);
    for (int more = 0; more < 2; more++) {
        struct job job = {.volume = volume, .levels = 2, .threads = threads, .repeat = repeat};

        job.task = PATTERNS;
        job.histograms = more;
        bench(&job, NULL);
        job.task = HISTOGRAM;
        job.histograms = false;
        job.per_slice = more;
        bench(&job, NULL);
    }
}

static void
bench_own(int threads, int repeat)
{
    struct image_extent extent = {COLUMNS, ROWS, SLICES};
    struct volume volume = {.extent = extent, .top = TOP};

    volume.voxels = allocate(ref_voxels(extent), sizeof(*volume.voxels));
    volume.name = "smooth";
    ref_smooth(extent, IMAGE_INT16, TOP, 1, volume.voxels);
    bench_volume(&volume, threads, repeat);
    volume.name = "noise";
    ref_scatter(extent, IMAGE_INT16, TOP, 1, volume.voxels);
    bench_volume(&volume, threads, repeat);
    free(volume.voxels);
}

/* ---------------------------------------------------------------------- a given volume ---- */

static void
read_file(const char *path, void *memory, size_t size)
{
    FILE *file = fopen(path, "rb");

    if (!file || fread(memory, 1, size, file) != size) {
        fprintf(stderr, "%s: there are no %zu bytes\n", path, size);
        exit(EXIT_FAILURE);
    }
    fclose(file);
}

static uint64_t *
read_region(const char *path, struct image_extent extent)
{
    int64_t count = ref_voxels(extent), words = (extent.columns + 63) / 64;
    uint8_t *in = allocate(count, 1);
    uint64_t *bits = allocate(words * extent.rows * extent.slices, sizeof(*bits));

    read_file(path, in, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        int64_t x = i % extent.columns, row = i / extent.columns;
        bits[row * words + x / 64] |= (uint64_t)(in[i] != 0) << x % 64;
    }
    free(in);
    return bits;
}

static enum task
task_named(const char *name)
{
    for (int task = 0; task < TASKS; task++)
        if (strcmp(task_names[task], name) == 0)
            return (enum task)task;
    fprintf(stderr, "there is no task \"%s\"\n", name);
    exit(EXIT_FAILURE);
}

static void
usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--repeat N] [--threads N] [--raw FILE --extent C,R,S --top T --task TASK "
            "[--levels L] [--region FILE] [--strict] [--integer-average] [--out FILE]]\n",
            program);
    exit(EXIT_FAILURE);
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {
        {"raw", required_argument, NULL, 'r'},       {"extent", required_argument, NULL, 'e'},
        {"top", required_argument, NULL, 't'},       {"task", required_argument, NULL, 'k'},
        {"levels", required_argument, NULL, 'l'},    {"region", required_argument, NULL, 'm'},
        {"out", required_argument, NULL, 'o'},       {"repeat", required_argument, NULL, 'n'},
        {"threads", required_argument, NULL, 'j'},   {"strict", no_argument, NULL, 's'},
        {"integer-average", no_argument, NULL, 'i'}, {NULL, 0, NULL, 0}};
    struct volume volume = {.name = "given"};
    struct job job = {.volume = &volume, .levels = 32, .threads = 2, .repeat = 5};
    const char *raw = NULL, *region = NULL, *out = NULL;
    long long size[3] = {0, 0, 0};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'r':
            raw = optarg;
            break;
        case 'e':
            if (sscanf(optarg, "%lld,%lld,%lld", &size[0], &size[1], &size[2]) != 3)
                usage(argv[0]);
            break;
        case 't':
            volume.top = atoi(optarg);
            break;
        case 'k':
            job.task = task_named(optarg);
            break;
        case 'l':
            job.levels = atoi(optarg);
            break;
        case 'm':
            region = optarg;
            break;
        case 'o':
            out = optarg;
            break;
        case 'n':
            job.repeat = atoi(optarg);
            break;
        case 'j':
            job.threads = atoi(optarg);
            break;
        case 's':
            job.strict = true;
            break;
        case 'i':
            job.integer_average = true;
            break;
        default:
            usage(argv[0]);
        }
    }
    if (job.repeat < 1 || job.repeat > MAX_REPEAT || optind < argc)
        usage(argv[0]);
    if (!raw) {
        bench_own(job.threads, job.repeat);
        return EXIT_SUCCESS;
    }
    if (size[0] < 3 || size[1] < 3 || size[2] < 1)
        usage(argv[0]);
    volume.extent = (struct image_extent){size[0], size[1], size[2]};
    volume.voxels = allocate(ref_voxels(volume.extent), sizeof(*volume.voxels));
    read_file(raw, volume.voxels, (size_t)ref_voxels(volume.extent) * sizeof(*volume.voxels));
    volume.region = region ? read_region(region, volume.extent) : NULL;
    bench(&job, out);
    free(volume.region);
    free(volume.voxels);
    return EXIT_SUCCESS;
}
