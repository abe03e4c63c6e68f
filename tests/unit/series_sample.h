/* series_sample.h - a series of instances made by hand, and what stacks it makes. No file is read.
 */
#ifndef NOCTULE_SERIES_SAMPLE_H
#define NOCTULE_SERIES_SAMPLE_H

#include "dicom/read/geometry/geometry.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 400 };

/* A series under construction; the last instance is the one that the helpers change. */
static struct {
    struct dicom_instance storage[MOST];
    struct dicom_instance *instances[MOST];
    int32_t count;
} series;

static const double axial[6] = {1, 0, 0, 0, 1, 0};
static const double coronal[6] = {1, 0, 0, 0, 0, -1};
static const double sagittal[6] = {0, 1, 0, 0, 0, -1};

static const struct geometry_limits limits = {.min_planes = 2, .spacing_tolerance = 0.01};

static inline void
free_series(void)
{
    for (int32_t i = 0; i < series.count; i++) {
        free(series.storage[i].frames);
        free(series.storage[i].path);
    }
    memset(&series, 0, sizeof(series));
}

static inline struct dicom_frame *
add_frames(int32_t frame_count)
{
    ck_assert_int_lt(series.count, MOST);
    struct dicom_instance *i = &series.storage[series.count];
    series.instances[series.count] = i;
    char path[64];
    snprintf(path, sizeof(path), "/series/%04d.dcm", series.count);
    i->path = strdup(path);
    i->frames = calloc((size_t)frame_count, sizeof(*i->frames));
    ck_assert(i->path && i->frames);
    i->frame_count = frame_count;
    snprintf(i->sop_instance_uid, sizeof(i->sop_instance_uid), "1.2.%d", 1000 + series.count);
    strcpy(i->series_uid, "1.3");
    strcpy(i->frame_of_reference_uid, "1.4");
    strcpy(i->modality, "MR");
    i->instance_number = ++series.count;
    i->rows = 20;
    i->columns = 30;
    i->bits_allocated = i->bits_stored = 16;
    i->high_bit = 15;
    i->pixel = IMAGE_UINT16;
    return i->frames;
}

static inline void
place_frame(struct dicom_frame *frame, const double orientation[6], double x, double y, double z)
{
    frame->has_position = frame->has_orientation = frame->has_spacing = frame->has_rescale = true;
    memcpy(frame->orientation, orientation, sizeof(frame->orientation));
    frame->position[0] = x;
    frame->position[1] = y;
    frame->position[2] = z;
    frame->pixel_spacing[0] = 0.5;
    frame->pixel_spacing[1] = 0.75;
    frame->slice_thickness = 2.5;
    frame->slope = 1;
}

static inline struct dicom_frame *
add_slice(double z)
{
    struct dicom_frame *frame = add_frames(1);
    place_frame(frame, axial, -10, -20, z);
    return frame;
}

static inline struct dicom_instance *
last(void)
{
    return &series.storage[series.count - 1];
}

static inline void
add_slices(int32_t count, double first, double step)
{
    for (int32_t i = 0; i < count; i++)
        add_slice(first + i * step);
}

static inline uint32_t
next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static inline void
shuffle(uint32_t seed)
{
    for (int32_t i = series.count - 1; i > 0; i--) {
        const int32_t k = (int32_t)(next_random(&seed) % (uint32_t)(i + 1));
        struct dicom_instance *held = series.instances[i];
        series.instances[i] = series.instances[k];
        series.instances[k] = held;
    }
}

static inline struct geometry_series *
group_with(const struct geometry_limits *with)
{
    struct geometry_series *result;
    struct error error;
    int rc = geometry_group(series.instances, series.count, with, &result, &error);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
    return result;
}

static inline struct geometry_series *
group(void)
{
    return group_with(&limits);
}

/* The only stack's code, CODE_NONE when it is accepted. */
static inline enum code
code_of_group(void)
{
    struct geometry_series *result = group();
    ck_assert_int_eq(result->stack_count, 1);
    enum code code = result->stacks[0].error.code;
    ck_assert_int_eq(result->stacks[0].accepted, code == CODE_NONE);
    geometry_series_free(result);
    return code;
}

static inline const struct error *
error_of_group(void)
{
    static struct error error;
    struct geometry_series *result = group();
    ck_assert_int_eq(result->stack_count, 1);
    error = result->stacks[0].error;
    geometry_series_free(result);
    return &error;
}

/* "name:planes[!CODE]" of every stack, joined by " | ". */
static inline const char *
stacks_of_group(void)
{
    static char text[4096];
    struct geometry_series *result = group();
    text[0] = 0;
    for (int32_t i = 0; i < result->stack_count; i++) {
        const struct geometry_stack *stack = &result->stacks[i];
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%d%s%s", i ? " | " : "", stack->name,
                 stack->plane_count, stack->accepted ? "" : "!", code_name(stack->error.code));
    }
    geometry_series_free(result);
    return text;
}

static inline TCase *
new_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, free_series, free_series);
    suite_add_tcase(suite, tcase);
    return tcase;
}

#endif
