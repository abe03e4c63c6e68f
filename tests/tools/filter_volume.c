/*
 * filter_volume.c - for tests: filters a volume of int16 values, and writes its responses as doubles. Image types of pyradiomics
 * read doubles. Bands of a wavelet follow each other: LLL, HLL, LHL, HHL, LLH, ...
 *
 *   filter_volume BACKEND COLUMNS,ROWS,SLICES SPACING,SPACING,SPACING INPUT OUTPUT KEY=VALUE...
 *
 * Keys are kind, boundary, pooling, in_slice, size, sigma_mm, laws (names with commas), energy, wavelet, high (such as
 * LHL), level, start_level, gamma, lambda_mm, theta_degrees, riesz (numbers with commas), repeat. Prints the step of the
 * responses (image types: 0), and the seconds of the processor and of the clock in the filter, per repetition.
 */
#include "kernels/filter/filter.h"
#include "kernels/filter/image_type.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct error error;

static void
must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "filter_volume: %s\n", error.message);
    exit(EXIT_FAILURE);
}

static void *
take(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (!memory)
        abort();
    return memory;
}

static int
choose(const char *const *names, const char *text, size_t length)
{
    for (int i = 0; names[i]; i++)
        if (strncmp(names[i], text, length) == 0 && names[i][length] == '\0')
            return i;
    fprintf(stderr, "filter_volume: no such choice: %s\n", text);
    exit(EXIT_FAILURE);
}

static void
parse_lists(struct filter_options *options, const char *key, const char *value)
{
    for (int axis = 0; axis < 3 && *value; axis++) {
        const size_t length = strcspn(value, ",");

        if (strcmp(key, "laws") == 0)
            options->laws[axis] = (enum filter_laws)choose(filter_laws_names, value, length);
        else if (strcmp(key, "riesz") == 0)
            options->riesz[axis] = atoi(value);
        value += length + (value[length] == ',');
    }
}

static void
parse(struct filter_options *options, const char *key, const char *value)
{
    const struct {
        const char *key;
        int *whole;
        double *real;
    } numbers[] = {
        {"size", &options->size, NULL},           {"energy", &options->energy, NULL},
        {"level", &options->level, NULL},         {"start_level", &options->start_level, NULL},
        {"sigma_mm", NULL, &options->sigma_mm},   {"gamma", NULL, &options->gamma},
        {"lambda_mm", NULL, &options->lambda_mm}, {"theta_degrees", NULL, &options->theta_degrees},
    };

    const size_t length = strlen(value);

    if (strcmp(key, "kind") == 0)
        options->kind = (enum filter_kind)choose(filter_kind_names, value, length);
    if (strcmp(key, "boundary") == 0)
        options->boundary = (enum filter_boundary)choose(filter_boundary_names, value, length);
    if (strcmp(key, "pooling") == 0)
        options->pooling = (enum filter_pooling)choose(filter_pooling_names, value, length);
    if (strcmp(key, "wavelet") == 0)
        options->wavelet = (enum filter_wavelet)choose(filter_wavelet_names, value, length);
    if (strcmp(key, "in_slice") == 0)
        options->in_slice = true;
    for (size_t axis = 0; strcmp(key, "high") == 0 && axis < length && axis < 3; axis++)
        options->high[axis] = value[axis] == 'H';
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (strcmp(key, numbers[i].key) == 0) {
            if (numbers[i].whole)
                *numbers[i].whole = atoi(value);
            else
                *numbers[i].real = atof(value);
        }
    parse_lists(options, key, value);
}

static void
use_file(const char *path, const char *mode, void *memory, size_t size)
{
    FILE *file = fopen(path, mode);

    if (!file || (*mode == 'r' ? fread(memory, 1, size, file) : fwrite(memory, 1, size, file)) != size ||
        fclose(file)) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

static double
seconds(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* A volume to filter. */
struct work {
    struct image_extent extent;
    size_t count;
    const char *input, *output;
    int repeat;
};

static void
filter(struct kernels_lane *lane, const struct work *work, const struct filter_demand *filter)
{
    struct filter_request request = {.limit = 1, .padding = {1, 0}};
    struct kernels_demand demand = {.of = {NULL}};
    double *responses = take(work->count, sizeof(*responses)), step = 0;
    const int32_t *codes;
    void *voxels;

    filter_demand_set(&demand, filter);
    must(kernels_volume_begin(lane, work->extent, IMAGE_INT16, &demand, &voxels, &error));
    use_file(work->input, "rb", voxels, work->count * sizeof(int16_t));
    for (size_t i = 0; i < work->count; i++)
        request.limit = abs(((int16_t *)voxels)[i]) > request.limit ? abs(((int16_t *)voxels)[i]) : request.limit;
    must(kernels_volume_ready(lane, 0, work->extent.slices, &error));
    for (int i = 0; i < work->repeat; i++) {
        const double used = seconds(CLOCK_PROCESS_CPUTIME_ID), begun = seconds(CLOCK_MONOTONIC);

        must(filter_run(lane, filter->options.kind, &request, &codes, &step, &error));
        printf("%a %.6f %.6f\n", step, seconds(CLOCK_PROCESS_CPUTIME_ID) - used, seconds(CLOCK_MONOTONIC) - begun);
    }
    for (size_t i = 0; i < work->count; i++)
        responses[i] = codes[i] * step;
    use_file(work->output, "wb", responses, work->count * sizeof(*responses));
    free(responses);
}

static void
filter_image_type(struct kernels_lane *lane, const struct work *work, const struct filter_demand *filter)
{
    struct image_type_demand own = {.options = filter->options, .bands = filter->options.in_slice ? 0x0F : 0xFF};
    struct kernels_demand demand = {.of = {[KERNELS_IMAGE_TYPE] = &own}};
    double *values = take(work->count, sizeof(*values)), *responses;
    const double *found[IMAGE_TYPE_BANDS];
    void *voxels;

    memcpy(own.spacing, filter->spacing, sizeof(own.spacing));
    use_file(work->input, "rb", values, work->count * sizeof(*values));
    must(kernels_volume_begin(lane, work->extent, IMAGE_UINT8, &demand, &voxels, &error));
    memset(voxels, 0, work->count);
    must(kernels_volume_ready(lane, 0, work->extent.slices, &error));
    const size_t bands = (size_t)image_type_count(&own);
    const struct image_type_request request = {.values = values,
                                               .sides = {work->extent.columns, work->extent.rows, work->extent.slices}};
    for (int i = 0; i < work->repeat; i++) {
        const double used = seconds(CLOCK_PROCESS_CPUTIME_ID), begun = seconds(CLOCK_MONOTONIC);

        must(image_type_run(lane, &request, found, &error));
        printf("0 %.6f %.6f\n", seconds(CLOCK_PROCESS_CPUTIME_ID) - used, seconds(CLOCK_MONOTONIC) - begun);
    }
    responses = take(bands * work->count, sizeof(*responses));
    for (size_t band = 0; band < bands; band++)
        memcpy(responses + band * work->count, found[band], work->count * sizeof(*responses));
    use_file(work->output, "wb", responses, bands * work->count * sizeof(*responses));
    free(responses);
    free(values);
}

int
main(int argc, char **argv)
{
    struct kernels_device_options device_options = {.backend = argc > 6 ? argv[1] : "cpu"};
    struct filter_demand asked = {.options = {.boundary = FILTER_MIRROR}};
    struct kernels_device *device;
    struct kernels_lane *lane;
    struct work work = {.repeat = 1};

    if (argc < 7)
        return EXIT_FAILURE;
    (void)sscanf(argv[2], "%" SCNd64 ",%" SCNd64 ",%" SCNd64, &work.extent.columns, &work.extent.rows,
                 &work.extent.slices);
    (void)sscanf(argv[3], "%lf,%lf,%lf", &asked.spacing[0], &asked.spacing[1], &asked.spacing[2]);
    work.count = (size_t)image_voxels(&work.extent);
    work.input = argv[4];
    work.output = argv[5];
    for (int i = 6; i < argc; i++) {
        char *value = strchr(argv[i], '=');

        if (value)
            *value++ = '\0';
        if (strcmp(argv[i], "repeat") == 0)
            work.repeat = atoi(value ? value : "");
        else
            parse(&asked.options, argv[i], value ? value : "");
    }
    must(kernels_device_open(&device_options, &device, &error));
    must(kernels_lane_open(device, &lane, &error));
    if (filter_is_image_type(asked.options.kind))
        filter_image_type(lane, &work, &asked);
    else
        filter(lane, &work, &asked);
    kernels_lane_close(lane);
    kernels_device_close(device);
    return 0;
}
