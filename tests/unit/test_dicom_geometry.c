/* From instances to stacks, and the gate: made by hand, no file is read. */
#include "geometry.h"

#include <check.h>
#include <errno.h>
#include <math.h>
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

static void
free_series(void)
{
    for (int32_t i = 0; i < series.count; i++) {
        free(series.storage[i].frames);
        free(series.storage[i].path);
    }
    memset(&series, 0, sizeof(series));
}

static struct dicom_frame *
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
    i->pixel = DICOM_UINT16;
    return i->frames;
}

static void
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

static struct dicom_frame *
add_slice(double z)
{
    struct dicom_frame *frame = add_frames(1);
    place_frame(frame, axial, -10, -20, z);
    return frame;
}

static struct dicom_instance *
last(void)
{
    return &series.storage[series.count - 1];
}

static void
add_slices(int32_t count, double first, double step)
{
    for (int32_t i = 0; i < count; i++)
        add_slice(first + i * step);
}

static uint32_t
next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void
shuffle(uint32_t seed)
{
    for (int32_t i = series.count - 1; i > 0; i--) {
        const int32_t k = (int32_t)(next_random(&seed) % (uint32_t)(i + 1));
        struct dicom_instance *held = series.instances[i];
        series.instances[i] = series.instances[k];
        series.instances[k] = held;
    }
}

static struct geometry_series *
group_with(const struct geometry_limits *with)
{
    struct geometry_series *result;
    struct dicom_fault fault;
    int error = geometry_group(series.instances, series.count, with, &result, &fault);
    ck_assert_msg(error == 0, "%s: %s", fault.code, fault.sentence);
    return result;
}

static struct geometry_series *
group(void)
{
    return group_with(&limits);
}

/* The only stack's code, "" when it is accepted. */
static const char *
code_of_group(void)
{
    static struct dicom_fault fault;
    struct geometry_series *result = group();
    ck_assert_int_eq(result->stack_count, 1);
    fault = result->stacks[0].fault;
    ck_assert_int_eq(result->stacks[0].accepted, fault.code[0] == 0);
    geometry_series_free(result);
    return fault.code;
}

static const struct dicom_fault *
fault_of_group(void)
{
    static struct dicom_fault fault;
    struct geometry_series *result = group();
    ck_assert_int_eq(result->stack_count, 1);
    fault = result->stacks[0].fault;
    geometry_series_free(result);
    return &fault;
}

/* "name:planes[!CODE]" of every stack, joined by " | ". */
static const char *
stacks_of_group(void)
{
    static char text[4096];
    struct geometry_series *result = group();
    text[0] = 0;
    for (int32_t i = 0; i < result->stack_count; i++) {
        const struct geometry_stack *stack = &result->stacks[i];
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%d%s%s", i ? " | " : "",
                 stack->name, stack->plane_count, stack->accepted ? "" : "!", stack->fault.code);
    }
    geometry_series_free(result);
    return text;
}

/* ---- order and frame of one stack ---- */

START_TEST(slices_are_ordered_by_position_whatever_else_says)
{
    add_slices(40, -50, 2.5);
    for (int32_t i = 0; i < series.count; i++) {
        series.storage[i].instance_number = (i * 7) % 40; /* lies */
        snprintf(series.storage[i].sop_instance_uid, DICOM_UID_SIZE, "1.2.%d", (i * 13) % 40);
    }
    for (uint32_t seed = 0; seed < 50; seed++) {
        shuffle(seed);
        struct geometry_series *result = group();
        ck_assert_int_eq(result->stack_count, 1);
        const struct geometry_stack *stack = &result->stacks[0];
        ck_assert_msg(stack->accepted, "%s", stack->fault.sentence);
        ck_assert_str_eq(stack->name, "");
        ck_assert_int_eq(stack->plane_count, 40);
        for (int32_t i = 0; i < 40; i++) {
            const struct geometry_plane *plane = &stack->planes[i];
            ck_assert_ptr_eq(series.instances[plane->instance], &series.storage[i]);
            ck_assert_double_eq_tol(plane->position, -50 + 2.5 * i, 1e-12);
        }
        geometry_series_free(result);
    }
}

END_TEST

START_TEST(frame_of_a_stack)
{
    add_slices(5, 30, -2);
    struct geometry_series *result = group();
    const struct geometry_stack *s = &result->stacks[0];
    ck_assert(s->accepted && s->has_geometry);
    ck_assert(s->columns == 30 && s->rows == 20 && s->pixel == DICOM_UINT16);
    ck_assert(s->spacing[0] == 0.75 && s->spacing[1] == 0.5 && s->spacing[2] == 2);
    ck_assert(s->normal[0] == 0 && s->normal[1] == 0 && s->normal[2] == 1);
    ck_assert(s->origin[0] == -10 && s->origin[1] == -20 && s->origin[2] == 22);
    const double point[3] = {-10 + 3 * 0.75, -20 + 7 * 0.5, 22 + 2.5 * 2};
    double voxel[3];
    geometry_voxel_from_mm(s, point, voxel);
    ck_assert(voxel[0] == 3 && voxel[1] == 7 && voxel[2] == 2.5);
    geometry_series_free(result);
}

END_TEST

/* An oblique stack: the normal, not a coordinate axis, gives order and spacing. */
START_TEST(oblique_stacks)
{
    const double angle = 0.7, orientation[6] = {1, 0, 0, 0, cos(angle), sin(angle)};
    const double normal[3] = {0, -sin(angle), cos(angle)};
    for (int32_t i = 0; i < 12; i++)
        place_frame(add_frames(1), orientation, 5, 6 + normal[1] * 3 * i, 7 + normal[2] * 3 * i);
    shuffle(3);
    struct geometry_series *result = group();
    const struct geometry_stack *s = &result->stacks[0];
    ck_assert_msg(s->accepted, "%s", s->fault.sentence);
    ck_assert_double_eq_tol(s->spacing[2], 3, 1e-12);
    for (int k = 0; k < 3; k++)
        ck_assert_double_eq_tol(s->normal[k], normal[k], 1e-12);
    const double point[3] = {5 + 0.75, 6 + 2 * 0.5 * cos(angle) + normal[1] * 9,
                             7 + 2 * 0.5 * sin(angle) + normal[2] * 9};
    double voxel[3];
    geometry_voxel_from_mm(s, point, voxel);
    ck_assert_double_eq_tol(voxel[0], 1, 1e-9);
    ck_assert_double_eq_tol(voxel[1], 2, 1e-9);
    ck_assert_double_eq_tol(voxel[2], 3, 1e-9);
    geometry_series_free(result);
}

END_TEST

START_TEST(frames_of_one_instance_in_any_order)
{
    struct dicom_frame *frames = add_frames(30);
    for (int32_t i = 0; i < 30; i++)
        place_frame(&frames[i], axial, 0, 0, 1.5 * ((i * 11) % 30));
    struct geometry_series *result = group();
    const struct geometry_stack *s = &result->stacks[0];
    ck_assert_msg(s->accepted, "%s", s->fault.sentence);
    for (int32_t i = 0; i < 30; i++)
        ck_assert_int_eq((s->planes[i].frame * 11) % 30, i);
    geometry_series_free(result);
}

END_TEST

START_TEST(one_plane)
{
    const struct geometry_limits one = {.min_planes = 1, .spacing_tolerance = 0.01};
    add_slice(5);
    ck_assert_str_eq(code_of_group(), "TOO_FEW_SLICES");
    struct geometry_series *result = group_with(&one);
    ck_assert(result->stacks[0].accepted);
    ck_assert(result->stacks[0].spacing[2] == 2.5);
    geometry_series_free(result);
    last()->frames[0].slice_thickness = 0;
    result = group_with(&one);
    ck_assert(result->stacks[0].spacing[2] == 1);
    geometry_series_free(result);
}

END_TEST

START_TEST(no_instance_at_all)
{
    struct geometry_series *result = group();
    ck_assert_int_eq(result->stack_count, 0);
    geometry_series_free(result);
    geometry_series_free(NULL);
}

END_TEST

/* ---- tolerances ---- */

/* Positions rounded to so many decimals, as senders write them, are still regular. */
START_TEST(rounded_positions_are_uniform)
{
    static const struct {
        double step;
        int decimals;
    } cases[] = {
        {0.666666686534882, 2},
        {0.666666686534882, 6},
        {1.25, 2},
        {0.3333333, 2},
        {5, 0},
        {2.9999, 3},
    };

    const double scale = pow(10, cases[_i].decimals);
    for (int32_t i = 0; i < 200; i++)
        add_slice(round((-73.4567 + i * cases[_i].step) * scale) / scale);
    ck_assert_str_eq(code_of_group(), "");
}

END_TEST

/* Oblique ones too, where the rounding of three coordinates adds up. */
START_TEST(rounded_oblique_positions_are_uniform)
{
    const double angle = 0.7,
                 orientation[6] = {cos(angle), sin(angle) * 0.6, sin(angle) * 0.8, 0, 0.8, -0.6};
    const double normal[3] = {orientation[1] * orientation[5] - orientation[2] * orientation[4],
                              orientation[2] * orientation[3] - orientation[0] * orientation[5],
                              orientation[0] * orientation[4] - orientation[1] * orientation[3]};
    for (int32_t i = 0; i < 200; i++) {
        double p[3];
        for (int k = 0; k < 3; k++)
            p[k] = round((12.345 * k + normal[k] * 0.666666 * i) * 100) / 100;
        place_frame(add_frames(1), orientation, p[0], p[1], p[2]);
    }
    ck_assert_str_eq(code_of_group(), "");
}

END_TEST

START_TEST(steps_beyond_the_tolerance_are_not)
{
    const double steps[] = {5.04, 5.06};
    for (size_t k = 0; k < 2; k++) {
        add_slices(10, 0, 5);
        add_slice(45 + steps[k]);
        ck_assert_str_eq(code_of_group(), k ? "SPACING_NOT_UNIFORM" : "");
        free_series();
    }
}

END_TEST

/* ---- the gate ---- */

static bool
names(const struct dicom_fault *fault, int32_t a, int32_t b)
{
    return strcmp(fault->file[0], series.storage[a].path) == 0 &&
           strcmp(fault->file[1], series.storage[b].path) == 0;
}

START_TEST(spacing_not_uniform)
{
    add_slices(12, 0, 2);
    add_slices(10, 25, 3);
    shuffle(1);
    const struct dicom_fault *fault = fault_of_group();
    ck_assert_str_eq(fault->code, "SPACING_NOT_UNIFORM");
    ck_assert(names(fault, 11, 12));
    ck_assert_ptr_nonnull(strstr(fault->sentence, "3 mm between 0011.dcm and 0012.dcm"));
    ck_assert_ptr_nonnull(strstr(fault->sentence, "where 2 mm are regular"));
    ck_assert_ptr_nonnull(strstr(fault->sentence, "from 2 to 3 mm"));
}

END_TEST

START_TEST(missing_slices)
{
    add_slices(10, 0, 2);
    add_slices(10, 24, 2); /* 20 and 22 are not there */
    shuffle(2);
    const struct dicom_fault *fault = fault_of_group();
    ck_assert_str_eq(fault->code, "MISSING_SLICE");
    ck_assert(names(fault, 9, 10));
    ck_assert_ptr_nonnull(strstr(fault->sentence, "2 slices are missing"));
}

END_TEST

START_TEST(a_gap_without_measure_is_no_missing_slice)
{
    add_slices(10, 0, 2);
    add_slice(500000);
    ck_assert_str_eq(code_of_group(), "SPACING_NOT_UNIFORM");
}

END_TEST

START_TEST(a_missing_slice_and_an_irregular_step)
{
    add_slices(10, 0, 2);
    add_slices(10, 22, 2);
    add_slice(41.3);
    const struct dicom_fault *fault = fault_of_group();
    ck_assert_str_eq(fault->code, "MISSING_SLICE");
    ck_assert_ptr_nonnull(strstr(fault->sentence, "1 slice is missing"));
    ck_assert_ptr_nonnull(strstr(fault->sentence, "Also SPACING_NOT_UNIFORM"));
}

END_TEST

START_TEST(duplicate_positions)
{
    add_slices(10, 0, 2);
    add_slice(8);
    shuffle(3);
    const struct dicom_fault *fault = fault_of_group();
    ck_assert_str_eq(fault->code, "DUPLICATE_POSITION");
    ck_assert(names(fault, 4, 10));
    ck_assert_ptr_nonnull(strstr(fault->sentence, "8 mm"));
}

END_TEST

START_TEST(gantry_tilt)
{
    for (int32_t i = 0; i < 10; i++)
        place_frame(add_frames(1), axial, 0, tan(18.5 / 180 * M_PI) * 4 * i, 4 * i);
    const struct dicom_fault *fault = fault_of_group();
    ck_assert_str_eq(fault->code, "GANTRY_TILT");
    ck_assert(names(fault, 0, 1));
    ck_assert_ptr_nonnull(strstr(fault->sentence, "18.5 degrees"));
    ck_assert_ptr_null(strstr(fault->sentence, "Also"));
}

END_TEST

START_TEST(no_tilt_from_rounding)
{
    /* Cosines in four decimals, positions in two: off by much less than a pixel. */
    const double angle = 0.31, orientation[6] = {1, 0, 0, 0, 0.9523, 0.3051};
    for (int32_t i = 0; i < 30; i++)
        place_frame(add_frames(1), orientation, 0, round(-sin(angle) * 300 * i) / 100,
                    round(cos(angle) * 300 * i) / 100);
    ck_assert_str_eq(code_of_group(), "");
}

END_TEST

START_TEST(no_geometry)
{
    add_slices(10, 0, 2);
    struct dicom_frame *frame = &series.storage[4].frames[0];
    frame->has_position = false;
    const struct dicom_fault *fault = fault_of_group();
    ck_assert_str_eq(fault->code, "NO_GEOMETRY");
    ck_assert_str_eq(fault->file[0], "/series/0004.dcm");
    ck_assert_ptr_nonnull(strstr(fault->sentence, "Image Position"));
    frame->has_position = true;
    frame->has_spacing = false;
    ck_assert_str_eq(code_of_group(), "NO_GEOMETRY");
    ck_assert_ptr_nonnull(strstr(fault_of_group()->sentence, "Pixel Spacing"));
}

END_TEST

/* Without any geometry the sender's numbering orders the planes of the refused stack. */
START_TEST(no_geometry_at_all)
{
    add_slices(10, 0, 2);
    for (int32_t i = 0; i < 10; i++) {
        series.storage[i].frames[0].has_position = false;
        series.storage[i].frames[0].has_orientation = false;
        series.storage[i].instance_number = 10 - i;
    }
    shuffle(4);
    struct geometry_series *result = group();
    const struct geometry_stack *s = &result->stacks[0];
    ck_assert_str_eq(s->fault.code, "NO_GEOMETRY");
    ck_assert(!s->has_geometry);
    for (int32_t i = 0; i < 10; i++)
        ck_assert_int_eq(series.instances[s->planes[i].instance]->instance_number, i + 1);
    geometry_series_free(result);
}

END_TEST

START_TEST(sizes_mixed)
{
    add_slices(10, 0, 2);
    series.storage[3].rows = 21;
    const struct dicom_fault *fault = fault_of_group();
    ck_assert_str_eq(fault->code, "SIZE_MIXED");
    ck_assert(names(fault, 0, 3));
    series.storage[3].rows = 20;
    series.storage[3].frames[0].pixel_spacing[0] = 0.5001;
    ck_assert_str_eq(code_of_group(), "");
    series.storage[3].frames[0].pixel_spacing[0] = 0.51;
    ck_assert_str_eq(code_of_group(), "SIZE_MIXED");
}

END_TEST

START_TEST(pixels_mixed)
{
    add_slices(10, 0, 2);
    series.storage[9].pixel = DICOM_INT16;
    series.storage[9].is_signed = true;
    ck_assert_str_eq(code_of_group(), "PIXELS_MIXED");
    series.storage[9].pixel = DICOM_UINT16;
    series.storage[9].is_signed = false;
    series.storage[9].bits_stored = 12; /* harmless: values are delivered alike */
    ck_assert_str_eq(code_of_group(), "");
    series.storage[9].monochrome1 = true;
    ck_assert_str_eq(code_of_group(), "PIXELS_MIXED");
}

END_TEST

START_TEST(frames_of_reference_mixed)
{
    add_slices(10, 0, 2);
    strcpy(series.storage[5].frame_of_reference_uid, "1.5");
    const struct dicom_fault *fault = fault_of_group();
    ck_assert_str_eq(fault->code, "FRAME_OF_REFERENCE_MIXED");
    ck_assert(names(fault, 0, 5));
}

END_TEST

START_TEST(rescale_invalid)
{
    static const struct {
        const char *modality;
        bool has_rescale;
        double slope, intercept;
        const char *code;
    } cases[] = {
        {"MR", false, 1, 0, ""},
        {"MR", true, 0.5, 3, ""},
        {"MR", true, 0, 3, "RESCALE_INVALID"},
        {"MR", true, NAN, 3, "RESCALE_INVALID"},
        {"MR", true, 1, INFINITY, "RESCALE_INVALID"},
        {"CT", false, 1, 0, "RESCALE_INVALID"},
        {"PT", false, 1, 0, "RESCALE_INVALID"},
        {"PT", true, 0.1, 0, ""},
        {"CT", true, -1, 0, ""},
    };

    add_slices(10, 0, 2);
    for (int32_t i = 0; i < 10; i++)
        strcpy(series.storage[i].modality, cases[_i].modality);
    struct dicom_frame *frame = &series.storage[7].frames[0];
    frame->has_rescale = cases[_i].has_rescale;
    frame->slope = cases[_i].slope;
    frame->intercept = cases[_i].intercept;
    ck_assert_str_eq(code_of_group(), cases[_i].code);
}

END_TEST

START_TEST(precedence)
{
    add_slices(3, 0, 2);
    add_slices(3, 15, 4);
    const struct geometry_limits many = {.min_planes = 10, .spacing_tolerance = 0.01};
    series.storage[1].rows = 21;
    series.storage[2].frames[0].slope = 0;
    strcpy(series.storage[1].frame_of_reference_uid, "1.5");
    struct geometry_series *result = group_with(&many);
    const struct dicom_fault *fault = &result->stacks[0].fault;
    ck_assert_str_eq(fault->code, "SIZE_MIXED");
    static const char *const also[] = {"FRAME_OF_REFERENCE_MIXED", "RESCALE_INVALID",
                                       "TOO_FEW_SLICES", "SPACING_NOT_UNIFORM"};
    const char *at = fault->sentence;
    for (size_t i = 0; i < 4 && at; i++) {
        at = strstr(at, also[i]);
        ck_assert_msg(at != NULL, "%s is not there or not in order: %s", also[i], fault->sentence);
    }
    geometry_series_free(result);
}

END_TEST

START_TEST(series_mixed)
{
    struct geometry_series *result;
    struct dicom_fault fault;
    add_slices(3, 0, 2);
    strcpy(last()->series_uid, "1.9");
    ck_assert_int_eq(geometry_group(series.instances, series.count, &limits, &result, &fault),
                     -EINVAL);
    ck_assert_ptr_null(result);
    ck_assert_str_eq(fault.code, "SERIES_MIXED");
    ck_assert(names(&fault, 0, 2));
}

END_TEST

/* ---- stacks ---- */

START_TEST(orientations_make_stacks)
{
    for (int32_t i = 0; i < 5; i++) {
        place_frame(add_frames(1), axial, 0, 0, 3 * i);
        place_frame(add_frames(1), coronal, 0, 3 * i, 0);
        place_frame(add_frames(1), sagittal, 3 * i, 0, 0);
    }
    for (uint32_t seed = 0; seed < 20; seed++) {
        shuffle(seed);
        ck_assert_str_eq(stacks_of_group(), "axial:5 | coronal:5 | sagittal:5");
    }
}

END_TEST

START_TEST(orientations_of_one_name_are_numbered)
{
    const double tilted[6] = {1, 0, 0, 0, cos(0.2), sin(0.2)};
    for (int32_t i = 0; i < 5; i++) {
        place_frame(add_frames(1), axial, 0, 0, 3 * i);
        place_frame(add_frames(1), tilted, 0, -sin(0.2) * 3 * i, cos(0.2) * 3 * i);
    }
    for (uint32_t seed = 0; seed < 20; seed++) {
        shuffle(seed);
        ck_assert_str_eq(stacks_of_group(), "axial 1:5 | axial 2:5");
    }
}

END_TEST

/* A localizer of another size does not make its series one of two stacks. */
START_TEST(sizes_do_not_make_stacks)
{
    add_slices(5, 0, 3);
    add_slice(15);
    last()->rows = last()->columns = 512;
    ck_assert_str_eq(stacks_of_group(), ":6!SIZE_MIXED");
}

END_TEST

START_TEST(echoes_at_the_same_positions)
{
    for (int32_t i = 0; i < 8; i++)
        for (int echo = 1; echo <= 3; echo++)
            sprintf(add_slice(2 * i)->echo, "%d", echo);
    shuffle(5);
    ck_assert_str_eq(stacks_of_group(), "echo 1:8 | echo 2:8 | echo 3:8");
}

END_TEST

START_TEST(stacks_are_ordered_by_number)
{
    static const int values[] = {0, 50, 800, 1000};
    for (int32_t i = 0; i < 8; i++)
        for (size_t k = 0; k < 4; k++)
            sprintf(add_slice(2 * i)->b_value, "%d", values[k]);
    shuffle(6);
    ck_assert_str_eq(stacks_of_group(), "b 0:8 | b 50:8 | b 800:8 | b 1000:8");
}

END_TEST

START_TEST(a_missing_slice_in_one_of_two_echoes)
{
    for (int32_t i = 0; i < 8; i++) {
        strcpy(add_slice(2 * i)->echo, "1");
        if (i != 3)
            strcpy(add_slice(2 * i)->echo, "2");
    }
    ck_assert_str_eq(stacks_of_group(), "echo 1:8 | echo 2:7!MISSING_SLICE");
}

END_TEST

/* Different contrasts that do not overlap are different volumes all the same. */
START_TEST(echoes_side_by_side)
{
    for (int32_t i = 0; i < 10; i++)
        strcpy(add_slice(2 * i)->echo, i < 5 ? "1" : "2");
    ck_assert_str_eq(stacks_of_group(), "echo 1:5 | echo 2:5");
}

END_TEST

/* One b-value for the first slices and none for the rest, and so on. */
START_TEST(an_absent_key_is_a_value)
{
    for (int32_t i = 0; i < 8; i++) {
        add_slice(2 * i);
        strcpy(add_slice(2 * i)->temporal, "2");
    }
    ck_assert_str_eq(stacks_of_group(), "time 2:8 | time none:8");
}

END_TEST

START_TEST(keys_that_vary_from_slice_to_slice_split_nothing)
{
    for (int32_t i = 0; i < 12; i++) {
        struct dicom_frame *frame = add_slice(2 * i);
        sprintf(frame->echo, "%g ms", 15 + 0.01 * i);
        sprintf(frame->phase, "%d ms", 12 + 7 * i);
        sprintf(frame->temporal, "%d", i + 1);
        strcpy(frame->acquisition, i % 2 ? "AXIAL" : "AXIAL/ADD");
        last()->acquisition_number = i / 3;
    }
    ck_assert_str_eq(stacks_of_group(), ":12");
}

END_TEST

/* Image types and acquisition numbers split when positions repeat, and only then. */
START_TEST(magnitude_and_phase_images)
{
    for (int32_t i = 0; i < 8; i++) {
        strcpy(add_slice(2 * i)->acquisition, "M");
        strcpy(add_slice(2 * i)->acquisition, "P");
    }
    ck_assert_str_eq(stacks_of_group(), "M:8 | P:8");
}

END_TEST

START_TEST(two_acquisitions_of_the_same_slices)
{
    for (int32_t i = 0; i < 8; i++) {
        add_slice(2 * i);
        last()->acquisition_number = 1;
        add_slice(2 * i);
        last()->acquisition_number = 2;
    }
    ck_assert_str_eq(stacks_of_group(), "acquisition 1:8 | acquisition 2:8");
}

END_TEST

START_TEST(phases_of_the_heart)
{
    for (int32_t i = 0; i < 6; i++)
        for (int phase = 0; phase < 4; phase++)
            sprintf(add_slice(8 * i)->phase, "%d %%", 25 * phase);
    ck_assert_str_eq(stacks_of_group(), "phase 0 %:6 | phase 25 %:6 | phase 50 %:6 | phase 75 %:6");
}

END_TEST

/* Trigger times that differ from image to image cannot say which volume a slice belongs to. */
START_TEST(repeated_positions_that_nothing_resolves)
{
    for (int32_t i = 0; i < 6; i++)
        for (int phase = 0; phase < 4; phase++)
            sprintf(add_slice(8 * i)->phase, "%d ms", 100 * phase + 3 * i);
    ck_assert_str_eq(stacks_of_group(), ":24!DUPLICATE_POSITION");
}

END_TEST

START_TEST(one_position_many_times)
{
    for (int phase = 0; phase < 5; phase++)
        sprintf(add_slice(8)->phase, "%d ms", 100 * phase);
    ck_assert_str_eq(stacks_of_group(),
                     "phase 0 ms:1!TOO_FEW_SLICES | phase 100 ms:1!TOO_FEW_SLICES | "
                     "phase 200 ms:1!TOO_FEW_SLICES | phase 300 ms:1!TOO_FEW_SLICES | "
                     "phase 400 ms:1!TOO_FEW_SLICES");
}

END_TEST

START_TEST(several_keys_at_once)
{
    for (int32_t i = 0; i < 4; i++)
        for (int echo = 1; echo <= 2; echo++)
            for (int time = 1; time <= 2; time++) {
                struct dicom_frame *frame = add_slice(2 * i);
                sprintf(frame->echo, "%d", echo);
                sprintf(frame->temporal, "%d", time);
            }
    for (uint32_t seed = 0; seed < 20; seed++) {
        shuffle(seed);
        ck_assert_str_eq(stacks_of_group(), "echo 1, time 1:4 | echo 1, time 2:4 | "
                                            "echo 2, time 1:4 | echo 2, time 2:4");
    }
}

END_TEST

/* Frames of two instances and of two echoes, interleaved: every plane is found once. */
START_TEST(planes_are_neither_lost_nor_doubled)
{
    uint32_t state = 11;
    for (int k = 0; k < 5; k++) {
        struct dicom_frame *frames = add_frames(40);
        for (int32_t f = 0; f < 40; f++) {
            place_frame(&frames[f], next_random(&state) % 2 ? axial : coronal, 0, f, f);
            sprintf(frames[f].echo, "%u", next_random(&state) % 3);
            sprintf(frames[f].acquisition, "%u", next_random(&state) % 3);
        }
    }
    shuffle(7);
    struct geometry_series *result = group();
    bool seen[5][40] = {0};
    int32_t total = 0;
    for (int32_t i = 0; i < result->stack_count; i++)
        for (int32_t p = 0; p < result->stacks[i].plane_count; p++) {
            const struct geometry_plane *plane = &result->stacks[i].planes[p];
            ck_assert(!seen[plane->instance][plane->frame]);
            seen[plane->instance][plane->frame] = true;
            total++;
            if (p > 0)
                ck_assert(plane[-1].position <= plane->position);
        }
    ck_assert_int_eq(total, 200);
    geometry_series_free(result);
}

END_TEST

static TCase *
new_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, free_series, free_series);
    suite_add_tcase(suite, tcase);
    return tcase;
}

int
main(void)
{
    Suite *suite = suite_create("dicom_geometry");
    TCase *order = new_case(suite, "order");
    tcase_add_test(order, slices_are_ordered_by_position_whatever_else_says);
    tcase_add_test(order, frame_of_a_stack);
    tcase_add_test(order, oblique_stacks);
    tcase_add_test(order, frames_of_one_instance_in_any_order);
    tcase_add_test(order, one_plane);
    tcase_add_test(order, no_instance_at_all);
    tcase_add_loop_test(order, rounded_positions_are_uniform, 0, 6);
    tcase_add_test(order, rounded_oblique_positions_are_uniform);
    tcase_add_test(order, steps_beyond_the_tolerance_are_not);
    TCase *gate = new_case(suite, "gate");
    tcase_add_test(gate, spacing_not_uniform);
    tcase_add_test(gate, missing_slices);
    tcase_add_test(gate, a_gap_without_measure_is_no_missing_slice);
    tcase_add_test(gate, a_missing_slice_and_an_irregular_step);
    tcase_add_test(gate, duplicate_positions);
    tcase_add_test(gate, gantry_tilt);
    tcase_add_test(gate, no_tilt_from_rounding);
    tcase_add_test(gate, no_geometry);
    tcase_add_test(gate, no_geometry_at_all);
    tcase_add_test(gate, sizes_mixed);
    tcase_add_test(gate, pixels_mixed);
    tcase_add_test(gate, frames_of_reference_mixed);
    tcase_add_loop_test(gate, rescale_invalid, 0, 9);
    tcase_add_test(gate, precedence);
    tcase_add_test(gate, series_mixed);
    TCase *stacks = new_case(suite, "stacks");
    tcase_add_test(stacks, orientations_make_stacks);
    tcase_add_test(stacks, orientations_of_one_name_are_numbered);
    tcase_add_test(stacks, sizes_do_not_make_stacks);
    tcase_add_test(stacks, echoes_at_the_same_positions);
    tcase_add_test(stacks, stacks_are_ordered_by_number);
    tcase_add_test(stacks, a_missing_slice_in_one_of_two_echoes);
    tcase_add_test(stacks, echoes_side_by_side);
    tcase_add_test(stacks, an_absent_key_is_a_value);
    tcase_add_test(stacks, keys_that_vary_from_slice_to_slice_split_nothing);
    tcase_add_test(stacks, magnitude_and_phase_images);
    tcase_add_test(stacks, two_acquisitions_of_the_same_slices);
    tcase_add_test(stacks, phases_of_the_heart);
    tcase_add_test(stacks, repeated_positions_that_nothing_resolves);
    tcase_add_test(stacks, one_position_many_times);
    tcase_add_test(stacks, several_keys_at_once);
    tcase_add_test(stacks, planes_are_neither_lost_nor_doubled);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
