#include "service/pipeline/suv_series.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The attributes of all frames of a series, while factors are computed. */
struct suv_reading {
    struct suv_header **frames; /* by instance, then by frame */
    size_t count;
    struct suv_header *slices; /* of the stack */
    double *factors;
    double earliest;
};

static int
suv_reading_reserve(struct suv_reading *reading, const struct headers *headers, const struct geometry_stack *stack)
{
    const size_t planes = (size_t)stack->plane_count;
    *reading = (struct suv_reading){.count = headers->count, .earliest = NAN};
    reading->frames = calloc(headers->count + 1, sizeof *reading->frames);
    reading->slices = calloc(planes, sizeof *reading->slices);
    reading->factors = calloc(planes, sizeof *reading->factors);
    return reading->frames && reading->slices && reading->factors ? 0 : -ENOMEM;
}

static void
suv_reading_free(struct suv_reading *reading)
{
    for (size_t i = 0; reading->frames && i < reading->count; i++)
        free(reading->frames[i]);
    free(reading->frames);
    free(reading->slices);
    free(reading->factors);
}

/* Reads all instances, because the earliest Acquisition Time is that of the series. */
static int
suv_reading_fill(struct suv_reading *reading, const struct headers *headers, const struct geometry_stack *stack,
                 struct error *error)
{
    for (size_t i = 0; i < headers->count; i++) {
        const struct dicom_instance *instance = headers->instances[i];
        reading->frames[i] = calloc((size_t)instance->frame_count, sizeof *reading->frames[i]);
        if (!reading->frames[i])
            return error_set_system(error, -ENOMEM, "compute the SUV");
        const int rc = suv_read(instance, reading->frames[i], error);
        if (rc)
            return rc;
        for (int32_t f = 0; f < instance->frame_count; f++)
            reading->earliest = fmin(reading->earliest, reading->frames[i][f].acquired);
    }
    for (int32_t z = 0; z < stack->plane_count; z++)
        reading->slices[z] = reading->frames[stack->planes[z].instance][stack->planes[z].frame];
    return 0;
}

/* Copies the instances of the stack. */
static int
suv_series_copy(struct suv_series *series, const struct headers *headers, const struct geometry_stack *stack)
{
    series->headers = *headers;
    series->headers.instances = calloc(headers->count + 1, sizeof(struct dicom_instance *));
    series->own = calloc(headers->count + 1, sizeof *series->own);
    if (!series->headers.instances || !series->own)
        return -ENOMEM;
    memcpy(series->headers.instances, headers->instances, headers->count * sizeof(struct dicom_instance *));
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const int32_t i = stack->planes[z].instance;
        const struct dicom_instance *from = headers->instances[i];
        if (series->headers.instances[i] != from)
            continue;
        struct dicom_instance *own = &series->own[series->own_count];
        struct dicom_frame *frames = calloc((size_t)from->frame_count, sizeof *frames);
        if (!frames)
            return -ENOMEM;
        memcpy(frames, from->frames, (size_t)from->frame_count * sizeof *frames);
        *own = *from;
        own->frames = frames;
        snprintf(own->value_unit, sizeof own->value_unit, "%s", suv_unit_rows[series->is.found.unit].ucum);
        series->headers.instances[i] = own;
        series->own_count++;
    }
    return 0;
}

/* Changes the rescale of a frame, and its window, which is in the values of the rescale. */
static void
suv_scale_frame(struct dicom_frame *frame, const struct suv_header *header, double factor)
{
    const double slope = frame->has_rescale ? frame->slope : 1, intercept = frame->has_rescale ? frame->intercept : 0;
    frame->slope = factor * (header->mapped ? header->slope : slope);
    frame->intercept = factor * (header->mapped ? header->intercept : intercept);
    frame->has_rescale = true;
    frame->has_window &= !header->mapped;
    frame->has_mapping &= !header->mapped;
    frame->window_center *= factor;
    frame->window_width *= factor;
    frame->window_low *= factor;
    frame->window_high *= factor;
}

/* Adds a value and its unit, if the attribute is there. */
static void
suv_add_value(char *text, size_t size, const char *name, double value, const char *unit)
{
    const size_t used = strlen(text);
    if (!isnan(value))
        snprintf(text + used, size - used, ", %s %.10g %s", name, value, unit);
}

static void
suv_series_describe(struct suv_series *series)
{
    const struct suv_found *found = &series->is.found;
    const struct suv_header *used = &found->used;
    char *text = series->is.text, range[40] = "";
    const size_t size = sizeof series->is.text;
    if (found->lowest != found->highest)
        snprintf(range, sizeof range, " to %.10g", found->highest);
    snprintf(text, size, "values in %s: factor %.10g%s of %s (%s)", suv_unit_rows[found->unit].spoken, found->lowest,
             range, used->units, found->rule);
    if (isnan(found->body))
        return;
    suv_add_value(text, size, "weight", used->weight, "kg");
    if (found->unit != SUV_BW || used->stored != SUV_NO_UNIT)
        suv_add_value(text, size, "size", used->size, "m");
    if (isnan(found->seconds))
        return;
    suv_add_value(text, size, "dose", used->dose, "Bq");
    suv_add_value(text, size, "half-life", used->half_life, "s");
    suv_add_value(text, size, "decay of", found->seconds, "s");
    snprintf(text + strlen(text), size - strlen(text), "%s%s to %s", found->start[0] ? " from " : "", found->start,
             found->clock);
}

static int
suv_series_scale(struct suv_series *series, const struct suv_reading *reading, const struct headers *headers,
                 const struct geometry_stack *stack)
{
    const int rc = suv_series_copy(series, headers, stack);
    for (int32_t z = 0; z < stack->plane_count && rc == 0; z++) {
        const struct geometry_plane *plane = &stack->planes[z];
        suv_scale_frame(&series->headers.instances[plane->instance]->frames[plane->frame], &reading->slices[z],
                        reading->factors[z]);
    }
    return rc;
}

int
suv_series_make(const struct conf_pipeline *pipeline, const struct headers *headers, const struct geometry_stack *stack,
                struct suv_series *series, struct error *error)
{
    struct suv_reading reading;
    *series = (struct suv_series){.is.given = pipeline->unit != CONF_UNIT_OF_IMAGES};
    if (!series->is.given)
        return 0;
    const enum suv_unit unit = (enum suv_unit)(pipeline->unit - CONF_UNIT_SUV_BW);
    const struct dicom_instance *first = headers->instances[stack->planes[0].instance];
    if (strcmp(first->modality, "PT") != 0)
        return error_set(error, -EINVAL, CODE_SUV_UNITS_UNKNOWN, "a series of modality %s has no SUV",
                         first->modality[0] ? first->modality : "unknown");
    int rc = suv_reading_reserve(&reading, headers, stack);
    if (rc)
        error_set_system(error, rc, "compute the SUV");
    else
        rc = suv_reading_fill(&reading, headers, stack, error);
    if (rc == 0)
        rc = suv_factors(reading.slices, (size_t)stack->plane_count, reading.earliest, unit, reading.factors,
                         &series->is.found, error);
    if (rc == 0) {
        rc = suv_series_scale(series, &reading, headers, stack);
        if (rc)
            error_set_system(error, rc, "compute the SUV");
        else
            suv_series_describe(series);
    }
    suv_reading_free(&reading);
    return rc;
}

void
suv_series_release(struct suv_series *series)
{
    for (size_t i = 0; i < series->own_count; i++)
        free(series->own[i].frames);
    free(series->own);
    if (series->is.given)
        free(series->headers.instances);
    *series = (struct suv_series){0};
}
