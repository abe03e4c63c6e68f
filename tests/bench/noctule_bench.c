/*
 * noctule_bench.c - the program noctule-bench: times each kernel, one JSON line a case.
 *
 * A level set job is timed from kernels_volume_begin to the masks, from voxels in memory, its
 * slices announced by as many threads as the device has. Beside it stands the time of reading the
 * volume once with the same number of threads, taken in the same run: the ratio of the two is what
 * can be compared between machines. Times are medians; a line is printed as soon as its case is
 * done.
 */
#include "kernels.h"
#include "ref_drive.h"
#include "ref_volumes.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LABELS = 4,
    MAX_THREADS = 4096,
    IN_VALUE = 100,
    OUT_VALUE = 0,
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

struct level_set_case {
    const char *name;
    const char *description;
    enum pattern pattern;
    int64_t side;
    enum kernels_pixel pixel;
    size_t labels;
    bool only_by_name;
};

static const struct level_set_case cases[] = {
    {"sphere-128", "sphere, int16", SPHERE, 128, KERNELS_INT16, 1, false},
    {"sphere-256", "sphere, int16", SPHERE, 256, KERNELS_INT16, 1, false},
    {"sphere-512", "sphere, int16", SPHERE, 512, KERNELS_INT16, 1, false},
    {"sphere-512-uint8", "sphere, uint8", SPHERE, 512, KERNELS_UINT8, 1, false},
    {"sphere-512-labels-4", "sphere, int16, 4 labels", SPHERE, 512, KERNELS_INT16, 4, false},
    {"sphere-1024", "sphere, int16", SPHERE, 1024, KERNELS_INT16, 1, true},
    {"maze-x-512", "serpentine along x", SERPENTINE_X, 512, KERNELS_INT16, 1, false},
    {"maze-y-512", "serpentine along y", SERPENTINE_Y, 512, KERNELS_INT16, 1, false},
    {"maze-z-512", "serpentine along z", SERPENTINE_Z, 512, KERNELS_INT16, 1, false},
    {"maze-random-512", "spanning tree of random walks", RANDOM_MAZE, 512, KERNELS_INT16, 1, false},
    {"checkerboard-512", "checkerboard", CHECKERBOARD, 512, KERNELS_INT16, 1, false},
    {"noise-30-512", "noise, 30 % in range", NOISE_30, 512, KERNELS_INT16, 1, false},
    {"noise-60-512", "noise, 60 % in range", NOISE_60, 512, KERNELS_INT16, 1, false},
};

enum { CASE_COUNT = sizeof(cases) / sizeof(cases[0]) };

struct options {
    const char *backend;
    int threads; /* 0: as many as the device takes */
    int repeat;
    const char *raw;
    struct kernels_extent extent;
    enum kernels_pixel pixel;
    struct kernels_range range;
    struct kernels_shape sphere;
    const char *mask_out;
};

struct measured {
    double median;
    double least;
};

struct bench {
    const struct options *options;
    struct kernels_device *device;
    struct kernels_lane *lane;
    int threads;
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

/* One thread's share of a plain read. */
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

/* What was read is part of the state of the program, so reading cannot be optimised away. */
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
    size_t bytes = (size_t)ref_voxels(job->extent) * kernels_pixel_size(job->pixel);
    double *seconds = allocate((size_t)repeat * sizeof(*seconds));
    struct measured measured;

    read_once(job->voxels, bytes, bench->threads);
    for (int i = 0; i < repeat; i++)
        seconds[i] = read_once(job->voxels, bytes, bench->threads);
    measured = summarise(seconds, repeat);
    free(seconds);
    return measured;
}

static struct measured
measure_job(const struct bench *bench, const struct ref_job *job, struct kernels_mask *masks)
{
    int repeat = bench->options->repeat;
    double *seconds = allocate((size_t)(repeat + 1) * sizeof(*seconds));
    struct measured measured;

    /* The first run is the one that reserves memory. */
    for (int i = 0; i < repeat + 1; i++) {
        int error = ref_segment(bench->lane, job, masks, &seconds[i]);
        if (error) {
            fprintf(stderr, "noctule-bench: the level set failed: %s\n", strerror(-error));
            exit(EXIT_FAILURE);
        }
    }
    measured = summarise(seconds + 1, repeat);
    free(seconds);
    return measured;
}

static const char *
pixel_name(enum kernels_pixel pixel)
{
    switch (pixel) {
    case KERNELS_UINT8:
        return "uint8";
    case KERNELS_INT16:
        return "int16";
    case KERNELS_UINT16:
        return "uint16";
    }
    return "";
}

static void
measure_level_set(const struct bench *bench, const char *name, const struct ref_job *job,
                  struct kernels_mask *masks)
{
    struct measured own = measure_job(bench, job, masks);
    struct measured plain = measure_read(bench, job);
    int64_t voxels = ref_voxels(job->extent), segmented = 0;

    for (size_t i = 0; i < job->label_count; i++)
        segmented += masks[i].voxels;
    printf("{\"case\":\"%s\",\"backend\":\"%s\",\"description\":\"%s\",\"threads\":%d,"
           "\"extent\":[%" PRId64 ",%" PRId64 ",%" PRId64 "],\"pixel\":\"%s\",\"labels\":%zu,"
           "\"bytes\":%" PRId64 ",\"repeat\":%d,\"median_seconds\":%.6f,\"min_seconds\":%.6f,"
           "\"read_seconds\":%.6f,\"ratio_to_read\":%.2f,\"voxels_per_second\":%.4g,"
           "\"segmented_voxels\":%" PRId64 ",\"version\":\"%s\"}\n",
           name, kernels_device_backend(bench->device), kernels_device_description(bench->device),
           bench->threads, job->extent.columns, job->extent.rows, job->extent.slices,
           pixel_name(job->pixel), job->label_count,
           voxels * (int64_t)kernels_pixel_size(job->pixel), bench->options->repeat, own.median,
           own.least, plain.median, own.median / plain.median, (double)voxels / own.median,
           segmented, NOCTULE_VERSION);
    fflush(stdout);
}

static void
generate(enum pattern pattern, struct kernels_extent extent, uint8_t *in)
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

/* The initial curve is a sphere of an eighth of the side, as in paper 001's outward evolution. */
static void
run_case(const struct bench *bench, const struct level_set_case *chosen)
{
    double middle = (double)chosen->side / 2;
    struct kernels_extent extent = {chosen->side, chosen->side, chosen->side};
    struct kernels_range range = {IN_VALUE, IN_VALUE};
    struct kernels_shape sphere = {
        KERNELS_SPHERE, {middle, middle, middle}, {(double)chosen->side / 8}};
    struct kernels_level_set_label labels[MAX_LABELS];
    struct kernels_mask masks[MAX_LABELS];
    size_t count = (size_t)ref_voxels(extent);
    uint8_t *in = allocate(count);
    void *voxels = allocate(count * kernels_pixel_size(chosen->pixel));
    struct ref_job job = {.extent = extent,
                          .pixel = chosen->pixel,
                          .voxels = voxels,
                          .labels = labels,
                          .label_count = chosen->labels,
                          .threads = bench->threads};

    for (size_t i = 0; i < chosen->labels; i++)
        labels[i] = (struct kernels_level_set_label){.shapes = &sphere,
                                                     .shape_count = 1,
                                                     .ranges = &range,
                                                     .range_count = 1,
                                                     .padding = {1, 0}};
    generate(chosen->pattern, extent, in);
    ref_paint(chosen->pixel, in, (int64_t)count, IN_VALUE, OUT_VALUE, voxels);
    free(in);
    measure_level_set(bench, chosen->name, &job, masks);
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

/* The words as they are: rows padded to whole words. */
static void
save_mask(const char *path, struct kernels_extent extent, const struct kernels_mask *mask)
{
    size_t words = (size_t)(extent.rows * extent.slices * mask->words_per_row);
    FILE *file = fopen(path, "wb");

    if (!file || fwrite(mask->bits, sizeof(*mask->bits), words, file) != words || fclose(file))
        fail_on_file(path);
}

static void
run_raw(const struct bench *bench)
{
    const struct options *options = bench->options;
    size_t bytes = (size_t)ref_voxels(options->extent) * kernels_pixel_size(options->pixel);
    struct kernels_level_set_label label = {.shapes = &options->sphere,
                                            .shape_count = 1,
                                            .ranges = &options->range,
                                            .range_count = 1,
                                            .padding = {1, 0}};
    struct kernels_mask mask;
    void *voxels = allocate(bytes);
    struct ref_job job = {.extent = options->extent,
                          .pixel = options->pixel,
                          .voxels = voxels,
                          .labels = &label,
                          .label_count = 1,
                          .threads = bench->threads};

    load_raw(options->raw, voxels, bytes);
    measure_level_set(bench, "raw", &job, &mask);
    if (options->mask_out)
        save_mask(options->mask_out, options->extent, &mask);
    free(voxels);
}

static void
list_cases(void)
{
    for (size_t i = 0; i < CASE_COUNT; i++)
        printf("%-20s %s%s\n", cases[i].name, cases[i].description,
               cases[i].only_by_name ? " (only when named)" : "");
}

static const struct level_set_case *
find_case(const char *name)
{
    for (size_t i = 0; i < CASE_COUNT; i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    return NULL;
}

static const char usage[] =
    "usage: noctule-bench [--backend NAME] [--threads N] [--repeat N] [CASE...]\n"
    "       noctule-bench --list\n"
    "       noctule-bench --raw FILE --extent COLUMNS,ROWS,SLICES --pixel int16|uint16|uint8\n"
    "                     --range LO,HI --sphere X,Y,Z,RADIUS [--mask-out FILE]\n";

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

static enum kernels_pixel
parse_pixel(const char *text)
{
    static const enum kernels_pixel pixels[] = {KERNELS_UINT8, KERNELS_INT16, KERNELS_UINT16};

    for (size_t i = 0; i < sizeof(pixels) / sizeof(pixels[0]); i++)
        if (strcmp(text, pixel_name(pixels[i])) == 0)
            return pixels[i];
    refuse();
    return KERNELS_UINT8;
}

/* `count` numbers with commas between them. */
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
        options->extent =
            (struct kernels_extent){(int64_t)numbers[0], (int64_t)numbers[1], (int64_t)numbers[2]};
        break;
    case 'g':
        parse_numbers(text, numbers, 2);
        options->range = (struct kernels_range){(int32_t)numbers[0], (int32_t)numbers[1]};
        break;
    default:
        parse_numbers(text, numbers, 4);
        options->sphere = (struct kernels_shape){
            KERNELS_SPHERE, {numbers[0], numbers[1], numbers[2]}, {numbers[3]}};
        break;
    }
}

static struct options
parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"backend", required_argument, NULL, 'b'}, {"threads", required_argument, NULL, 't'},
        {"repeat", required_argument, NULL, 'r'},  {"list", no_argument, NULL, 'l'},
        {"raw", required_argument, NULL, 'w'},     {"extent", required_argument, NULL, 'e'},
        {"pixel", required_argument, NULL, 'p'},   {"range", required_argument, NULL, 'g'},
        {"sphere", required_argument, NULL, 's'},  {"mask-out", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    struct options options = {.backend = "auto", .repeat = 7, .pixel = KERNELS_INT16};
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
        case 'e':
        case 'g':
        case 's':
            parse_geometry(&options, option, optarg);
            break;
        default:
            refuse();
        }
    }
    if (options.raw && (options.extent.columns < 1 || options.extent.rows < 1 ||
                        options.extent.slices < 1 || optind < argc))
        refuse();
    return options;
}

static void
open_bench(struct bench *bench)
{
    struct kernels_device_options device = {.backend = bench->options->backend,
                                            .threads = bench->options->threads};
    char reason[KERNELS_REASON];

    if (kernels_device_open(&device, &bench->device, reason, sizeof(reason)) ||
        kernels_lane_open(bench->device, &bench->lane, reason, sizeof(reason))) {
        fprintf(stderr, "noctule-bench: %s\n", reason);
        exit(EXIT_FAILURE);
    }
    bench->threads = kernels_device_threads(bench->device);
}

int
main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    struct bench bench = {.options = &options};

    for (int i = optind; i < argc; i++)
        if (!find_case(argv[i])) {
            fprintf(stderr, "noctule-bench: there is no case \"%s\"; see --list\n", argv[i]);
            return 2;
        }
    open_bench(&bench);
    if (options.raw)
        run_raw(&bench);
    for (int i = optind; i < argc; i++)
        run_case(&bench, find_case(argv[i]));
    for (size_t i = 0; i < CASE_COUNT && optind == argc && !options.raw; i++)
        if (!cases[i].only_by_name)
            run_case(&bench, &cases[i]);
    kernels_lane_close(bench.lane);
    kernels_device_close(bench.device);
    return EXIT_SUCCESS;
}
