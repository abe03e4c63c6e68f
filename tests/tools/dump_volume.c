/*
 * dump_volume.c - for tests: reads DICOM files like a job, prints the result as one JSON object, and writes the
 * decoded planes.
 *
 *   dump_volume [--threads N] [--flat] [--channel N] OUTPUT INPUT...
 *
 * OUTPUT gets the planes of all stacks, in the order printed, as dicom_pixels_read returns them (little endian).
 * --flat accepts 2-D images. --channel: enum dicom_channel. Rejected files and stacks also exit with 0: the JSON has their reasons.
 */
#include "dicom/read/geometry/geometry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    int thread_count;
    bool flat;
    enum dicom_channel channel;
};

struct inputs {
    struct dicom_instance **instances;
    int32_t count;
};

static void *
allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

static void
print_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void
print_error(const struct error *error)
{
    printf("{\"code\": ");
    print_string(code_name(error->code));
    printf(", \"message\": ");
    print_string(error->message);
    printf(", \"files\": [");
    print_string(error->file[0]);
    printf(", ");
    print_string(error->file[1]);
    printf("]}");
}

static void
peek_all(int count, char **paths, struct inputs *inputs)
{
    inputs->instances = allocate((size_t)count, sizeof(*inputs->instances));
    bool first = true;
    printf("\"refused\": [");
    for (int i = 0; i < count; i++) {
        struct error error;
        if (dicom_peek(paths[i], &inputs->instances[inputs->count], &error) == 0) {
            inputs->count++;
            continue;
        }
        printf("%s", first ? "" : ", ");
        print_error(&error);
        first = false;
    }
    printf("]");
}

static void
print_numbers(const char *name, const double *values, int count)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < count; i++)
        printf("%s%.17g", i ? ", " : "", values[i]);
    printf("]");
}

static void
print_plane(const struct inputs *inputs, const struct geometry_plane *plane)
{
    const struct dicom_instance *instance = inputs->instances[plane->instance];
    const struct dicom_frame *frame = &instance->frames[plane->frame];
    printf("{\"path\": ");
    print_string(instance->path);
    printf(", \"frame\": %d, \"position\": %.17g, \"has_rescale\": %s", plane->frame, plane->position,
           frame->has_rescale ? "true" : "false");
    printf(", \"slope\": %.17g, \"intercept\": %.17g, \"acquired\": ", frame->slope, frame->intercept);
    print_string(frame->acquired);
    printf("}");
}

static void
print_stack(const struct inputs *inputs, const struct geometry_stack *stack)
{
    static const char *const types[] = {"uint8", "int16", "uint16"};
    printf("{\"name\": ");
    print_string(stack->name);
    printf(", \"split_by\": ");
    print_string(stack->split_by);
    printf(", \"accepted\": %s, \"passed_over\": %s, \"fault\": ", stack->accepted ? "true" : "false",
           stack->passed_over ? "true" : "false");
    print_error(&stack->error);
    printf(", \"columns\": %d, \"rows\": %d, \"pixel\": \"%s\"", stack->columns, stack->rows, types[stack->pixel]);
    print_numbers("spacing", stack->spacing, 3);
    print_numbers("origin", stack->origin, 3);
    print_numbers("axes", stack->axes, 9);
    printf(", \"flat\": %s, \"spacing_source\": \"%s\", \"calibrated\": [%d, %d, %d, %d]",
           stack->flat ? "true" : "false", dicom_spacing_word(stack->spacing_source), stack->calibrated[0],
           stack->calibrated[1], stack->calibrated[2], stack->calibrated[3]);
    printf(", \"planes\": [");
    for (int32_t i = 0; i < stack->plane_count; i++) {
        printf("%s", i ? ", " : "");
        print_plane(inputs, &stack->planes[i]);
    }
    printf("]}");
}

/* State of decoding one stack. Each thread takes the next plane. */
struct decoding {
    const struct inputs *inputs;
    const struct geometry_stack *stack;
    enum dicom_channel channel;
    uint8_t *volume;
    size_t plane_size;
    atomic_int next;
    atomic_flag faulted; /* the first thread to set it owns `error` */
    struct error error;
};

static int
decode_plane(const struct decoding *decoding, int32_t index, struct error *error)
{
    const struct geometry_plane *plane = &decoding->stack->planes[index];
    struct dicom_pixels *pixels;
    int rc = dicom_pixels_open(decoding->inputs->instances[plane->instance], &pixels, error);
    if (rc)
        return rc;
    dicom_pixels_choose(pixels, decoding->channel);
    rc = dicom_pixels_read(pixels, plane->frame, decoding->volume + (size_t)index * decoding->plane_size, error);
    dicom_pixels_close(pixels);
    return rc;
}

static void *
decode_planes(void *argument)
{
    struct decoding *decoding = argument;
    for (;;) {
        const int32_t index = atomic_fetch_add(&decoding->next, 1);
        if (index >= decoding->stack->plane_count)
            return NULL;
        struct error error;
        if (decode_plane(decoding, index, &error) && !atomic_flag_test_and_set(&decoding->faulted))
            decoding->error = error;
    }
}

static bool
same_sizes(const struct inputs *inputs, const struct geometry_stack *stack)
{
    for (int32_t i = 0; i < stack->plane_count; i++) {
        const struct dicom_instance *instance = inputs->instances[stack->planes[i].instance];
        if (instance->rows != stack->rows || instance->columns != stack->columns || instance->pixel != stack->pixel)
            return false;
    }
    return true;
}

/* Prints the stack and the error of decoding it, whose code is "" on success. */
static void
write_stack(const struct inputs *inputs, const struct geometry_stack *stack, const struct options *options,
            FILE *output)
{
    struct decoding decoding = {.inputs = inputs, .stack = stack, .channel = options->channel};
    decoding.plane_size = (size_t)stack->rows * (size_t)stack->columns * image_pixel_size(stack->pixel);
    decoding.volume = allocate((size_t)stack->plane_count, decoding.plane_size);
    pthread_t threads[64];
    for (int i = 0; i < options->thread_count; i++)
        if (pthread_create(&threads[i], NULL, decode_planes, &decoding))
            abort();
    for (int i = 0; i < options->thread_count; i++)
        pthread_join(threads[i], NULL);
    if (fwrite(decoding.volume, decoding.plane_size, (size_t)stack->plane_count, output) != (size_t)stack->plane_count)
        abort();
    print_error(&decoding.error);
    free(decoding.volume);
}

static void
dump_stacks(const struct inputs *inputs, const struct geometry_series *series, const struct options *options,
            FILE *output)
{
    printf(", \"times\": [%d, %d], \"stacks\": [", series->times, series->times_announced);
    for (int32_t i = 0; i < series->stack_count; i++) {
        printf("%s", i ? ", " : "");
        print_stack(inputs, &series->stacks[i]);
    }
    printf("], \"decoding\": [");
    bool first = true;
    for (int32_t i = 0; i < series->stack_count; i++) {
        if (!same_sizes(inputs, &series->stacks[i]))
            continue;
        printf("%s", first ? "" : ", ");
        write_stack(inputs, &series->stacks[i], options, output);
        first = false;
    }
    printf("]");
}

/* Reads the options before OUTPUT. Returns the index of OUTPUT, or 0 if the arguments are invalid. */
static int
read_options(int argc, char **argv, struct options *options)
{
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--threads") == 0 && at + 1 < argc)
            options->thread_count = atoi(argv[++at]);
        else if (strcmp(argv[at], "--channel") == 0 && at + 1 < argc)
            options->channel = (enum dicom_channel)atoi(argv[++at]);
        else if (strcmp(argv[at], "--flat") == 0)
            options->flat = true;
        else
            return 0;
    }
    return options->thread_count < 1 || options->thread_count > 64 || argc < at + 2 ? 0 : at;
}

int
main(int argc, char **argv)
{
    struct options options = {.thread_count = 1};
    const int first = read_options(argc, argv, &options);
    const struct geometry_limits limits = {.min_planes = 1, .spacing_tolerance = 0.01, .take_flat = options.flat};
    if (!first) {
        fputs("usage: dump_volume [--threads N] [--flat] [--channel N] OUTPUT INPUT...\n", stderr);
        return 2;
    }
    FILE *output = fopen(argv[first], "wb");
    if (!output) {
        perror(argv[first]);
        return 2;
    }
    dicom_init();
    struct inputs inputs = {0};
    printf("{");
    peek_all(argc - first - 1, argv + first + 1, &inputs);
    struct geometry_series *series;
    struct error error = {0};
    if (geometry_group(inputs.instances, inputs.count, &limits, &series, &error) == 0) {
        dump_stacks(&inputs, series, &options, output);
        geometry_series_free(series);
    }
    printf(", \"fault\": ");
    print_error(&error);
    printf("}\n");
    for (int32_t i = 0; i < inputs.count; i++)
        dicom_instance_free(inputs.instances[i]);
    free(inputs.instances);
    return fclose(output) ? 1 : 0;
}
