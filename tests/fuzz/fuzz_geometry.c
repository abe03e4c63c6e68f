/*
 * fuzz_geometry.c - any bytes as the frames of a series. Every frame must end up in exactly one stack, in order,
 * whatever the input order. Names must differ. The geometry check must accept only stacks that geometry.h allows.
 */
#include "dicom/read/geometry/geometry.h"
#include "tests/fuzz/must.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_FRAMES = 64,
    FRAME_BYTES = 12, /* input bytes per frame */
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const double orientations[4][6] = {
    {1, 0, 0, 0, 1, 0},
    {1, 0, 0, 0, 0, -1},
    {0, 1, 0, 0, 0, -1},
    {0.8, 0.6, 0, 0, 0, -1},
};

/* Makes a number from two bytes: mostly multiples of half a millimetre, sometimes an impossible value. */
static double
number(const uint8_t *bytes)
{
    static const double odd[] = {0, 3e5, -3e5, 5e-324, NAN, 1e-9, 0.005, 1000};
    return bytes[0] == 255 ? odd[bytes[1] % 8] : 0.5 * bytes[0] + (bytes[1] == 0 ? 0.004 : 0);
}

static void
key(char text[DICOM_DS_SIZE], uint8_t value)
{
    if (value)
        snprintf(text, DICOM_DS_SIZE, "%u", value);
}

static void
describe(const uint8_t *bytes, int32_t index, struct dicom_instance *instance, struct dicom_frame *frame)
{
    snprintf(instance->sop_instance_uid, sizeof(instance->sop_instance_uid), "1.%d", index);
    strcpy(instance->series_uid, "1.2");
    strcpy(instance->modality, "MR");
    instance->frame_count = 1;
    instance->frames = frame;
    instance->rows = 4;
    instance->columns = bytes[0] & 128 ? 5 : 4;
    instance->bits_allocated = 16;
    instance->pixel = bytes[1] & 128 ? IMAGE_INT16 : IMAGE_UINT16;
    frame->has_position = bytes[0] % 16 != 15;
    frame->has_orientation = bytes[0] % 16 != 14;
    frame->has_spacing = bytes[0] % 16 != 13;
    frame->has_rescale = bytes[0] % 16 != 12;
    memcpy(frame->orientation, orientations[bytes[0] >> 4 & 3], sizeof(frame->orientation));
    frame->pixel_spacing[0] = frame->pixel_spacing[1] = 1;
    frame->slope = bytes[1] % 64 ? 1 : 0;
    const double place = number(bytes + 2);
    for (int i = 0; i < 3; i++)
        frame->position[i] = place * (bytes[4] >> (2 * i) & 3);
    /* dicom_peek guarantees this. */
    frame->has_position = frame->has_position && isfinite(place);
    key(frame->echo, bytes[5] & 3);
    key(frame->b_value, bytes[5] >> 2 & 3);
    key(frame->temporal, bytes[5] >> 4 & 7);
    key(frame->phase, bytes[6]);
    key(frame->image_type, bytes[7] & 3);
    key(frame->acquisition, bytes[7] >> 4);
    instance->instance_number = bytes[8];
    instance->images_in_acquisition = bytes[9] & 15;
    instance->expected_instances = instance->images_in_acquisition * (bytes[9] >> 4);
    key(frame->acquired, bytes[10] & 15);
    key(instance->content, bytes[10] & 3);
    key(instance->created, bytes[10] >> 4);
    if (bytes[11] & 1)
        frame->excluded = CODE_LOCALIZER;
    frame->derived = bytes[11] & 2;
    instance->flat = bytes[11] & 4;
}

static void
check_accepted(struct dicom_instance *const *instances, const struct geometry_stack *stack)
{
    must(stack->has_geometry != stack->flat && stack->error.code == CODE_NONE);
    must(!stack->flat || stack->plane_count == 1);
    for (int i = 0; i < 3; i++)
        must(stack->spacing[i] > 0 && isfinite(stack->spacing[i]));
    for (int32_t i = 0; i < stack->plane_count; i++) {
        const struct dicom_instance *instance = instances[stack->planes[i].instance];
        must(instance->columns == stack->columns && instance->pixel == stack->pixel);
        must(instance->frames[0].slope != 0 && instance->frames[0].excluded == CODE_NONE);
        if (i > 0)
            must(stack->planes[i].position > stack->planes[i - 1].position);
    }
}

static void
check_series(struct dicom_instance *const *instances, int32_t count, const struct geometry_series *series)
{
    int seen[MOST_FRAMES] = {0};
    for (int32_t i = 0; i < series->stack_count; i++) {
        const struct geometry_stack *stack = &series->stacks[i];
        must(stack->plane_count > 0);
        must(stack->accepted == (stack->error.code == CODE_NONE));
        if (i > 0)
            must(strverscmp(stack[-1].name, stack->name) < 0);
        for (int32_t p = 0; p < stack->plane_count; p++)
            seen[stack->planes[p].instance]++;
        if (stack->accepted)
            check_accepted(instances, stack);
    }
    for (int32_t i = 0; i < count; i++)
        must(seen[i] == 1);
}

static void
must_be_the_same(struct dicom_instance *const *a_instances, const struct geometry_series *a,
                 struct dicom_instance *const *b_instances, const struct geometry_series *b)
{
    must(a->stack_count == b->stack_count);
    for (int32_t i = 0; i < a->stack_count; i++) {
        const struct geometry_stack *s = &a->stacks[i], *t = &b->stacks[i];
        must(strcmp(s->name, t->name) == 0 && s->error.code == t->error.code);
        must(strcmp(s->error.message, t->error.message) == 0);
        must(s->plane_count == t->plane_count);
        for (int32_t p = 0; p < s->plane_count; p++)
            must(a_instances[s->planes[p].instance] == b_instances[t->planes[p].instance]);
    }
}

static struct geometry_series *
group(struct dicom_instance *const *instances, int32_t count, const struct geometry_limits *limits)
{
    struct geometry_series *series;
    must(geometry_group(instances, count, limits, &series, NULL) == 0);
    check_series(instances, count, series);
    return series;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct dicom_instance storage[MOST_FRAMES] = {0};
    struct dicom_frame frames[MOST_FRAMES] = {0};
    struct dicom_instance *forward[MOST_FRAMES], *backward[MOST_FRAMES];
    char paths[MOST_FRAMES][16];
    const int32_t count = (int32_t)(size / FRAME_BYTES < MOST_FRAMES ? size / FRAME_BYTES : MOST_FRAMES);
    for (int32_t i = 0; i < count; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%d", i);
        storage[i].path = paths[i];
        describe(bytes + FRAME_BYTES * i, i, &storage[i], &frames[i]);
        forward[i] = backward[count - 1 - i] = &storage[i];
    }
    const struct geometry_limits limits = {.min_planes = 2,
                                           .spacing_tolerance = 0.01,
                                           .allow_missing = size % 2,
                                           .newest_of_duplicates = size % 3 == 1,
                                           .include_derived = size % 5 == 1,
                                           .take_flat = size % 7 < 4};
    struct geometry_series *a = group(forward, count, &limits);
    struct geometry_series *b = group(backward, count, &limits);
    must_be_the_same(forward, a, backward, b);
    geometry_series_free(a);
    geometry_series_free(b);
    return 0;
}
