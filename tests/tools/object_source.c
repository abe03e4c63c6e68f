#include "tests/tools/object_source.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Noreturn void
die(const char *code, const char *message)
{
    fprintf(stderr, "%s: %s\n", code, message);
    exit(1);
}

void
check(int rc, const struct error *error)
{
    if (rc)
        die(code_name(error->code), error->message);
}

void *
need(void *memory)
{
    if (!memory)
        die("OUT_OF_MEMORY", "no memory");
    return memory;
}

double
seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int
object_create(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        die("OUTPUT_UNWRITABLE", path);
    return fd;
}

static const struct geometry_stack *
choose_stack(const struct geometry_series *series, const char *name)
{
    const struct geometry_stack *chosen = NULL;
    for (int32_t i = 0; i < series->stack_count; i++) {
        if (name ? strcmp(series->stacks[i].name, name) == 0 : series->stack_count == 1)
            chosen = &series->stacks[i];
    }
    if (!chosen)
        die("STACK_NOT_FOUND", "there is none of that name, or there are several");
    check(!chosen->accepted, &chosen->error);
    return chosen;
}

void
object_source_read(char **paths, int count, const char *stack, struct object_source *source)
{
    const struct geometry_limits limits = {.min_planes = 1, .spacing_tolerance = 0.01};
    struct error error;
    source->instances = need(calloc((size_t)count, sizeof(*source->instances)));
    source->count = count;
    for (int i = 0; i < count; i++)
        check(dicom_peek(paths[i], &source->instances[i], &error), &error);
    check(geometry_group(source->instances, count, &limits, &source->series, &error), &error);
    source->stack = choose_stack(source->series, stack);
}

void
object_source_free(struct object_source *source)
{
    geometry_series_free(source->series);
    for (int32_t i = 0; i < source->count; i++)
        dicom_instance_free(source->instances[i]);
    free(source->instances);
}

struct seg_request
object_source_request(const struct object_source *source, const char *pipeline)
{
    return (struct seg_request){
        .source =
            {
                .instances = source->instances,
                .instance_count = source->count,
                .stack = source->stack,
                .pipeline = pipeline,
                .pipeline_settings = "settings",
                .software_version = NOCTULE_VERSION,
                .device_serial_number = "TEST-1",
            },
        .series_description = "",
        .series_number = 5001,
    };
}
