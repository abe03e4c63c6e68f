/* geometry_gate.c - which groups of planes are stacks, and why the others are refused. */
#include "base/error.h"
#include "base/text.h"
#include "dicom/read/geometry/geometry_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Pixel spacings within one stack may differ by rounding alone. */
#define PIXEL_SPACING_TOLERANCE 1e-3

void
geometry_refuse(struct verdict *verdict, enum code code, const struct plane *a,
                const struct plane *b, const char *format, ...)
{
    char text[384];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (!verdict->refused) {
        error_set_files(verdict->error, 0, code, a ? a->instance->path : NULL,
                        b ? b->instance->path : NULL, "%s", text);
        verdict->refused = true;
        return;
    }
    char *message = verdict->error->message;
    const size_t length = strlen(message);
    snprintf(message + length, sizeof(verdict->error->message) - length, " Also %s: %s",
             code_name(code), text);
}

static bool
plane_has_geometry(const struct plane *plane)
{
    return plane->frame->has_position && plane->frame->has_orientation && plane->frame->has_spacing;
}

static bool
check_geometry_is_there(struct verdict *verdict, const struct group *group)
{
    for (int32_t i = 0; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        if (plane_has_geometry(plane))
            continue;
        const char *what = !plane->frame->has_position      ? "Image Position (Patient)"
                           : !plane->frame->has_orientation ? "Image Orientation (Patient)"
                                                            : "Pixel Spacing";
        geometry_refuse(verdict, CODE_NO_GEOMETRY, plane, NULL, "%s, frame %d, has no valid %s.",
                        geometry_plane_name(plane), plane->frame_index + 1, what);
        return false;
    }
    return true;
}

static bool
same_spacing(const double a[2], const double b[2])
{
    return fabs(a[0] - b[0]) <= PIXEL_SPACING_TOLERANCE * a[0] &&
           fabs(a[1] - b[1]) <= PIXEL_SPACING_TOLERANCE * a[1];
}

static void
check_sizes(struct verdict *verdict, const struct group *group)
{
    const struct plane *first = &group->planes[0];
    const struct dicom_instance *a = first->instance;
    for (int32_t i = 1; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        const struct dicom_instance *b = plane->instance;
        if (a->rows != b->rows || a->columns != b->columns) {
            geometry_refuse(verdict, CODE_SIZE_MIXED, first, plane,
                            "%s has %d x %d pixels and %s has %d x %d.", geometry_plane_name(first),
                            a->columns, a->rows, geometry_plane_name(plane), b->columns, b->rows);
            return;
        }
        const double *s = first->frame->pixel_spacing, *t = plane->frame->pixel_spacing;
        if (first->frame->has_spacing && plane->frame->has_spacing && !same_spacing(s, t)) {
            geometry_refuse(verdict, CODE_SIZE_MIXED, first, plane,
                            "The pixels of %s are %.6g x %.6g mm and those of %s %.6g x %.6g mm.",
                            geometry_plane_name(first), s[1], s[0], geometry_plane_name(plane),
                            t[1], t[0]);
            return;
        }
    }
}

static void
check_pixels(struct verdict *verdict, const struct group *group)
{
    const struct plane *first = &group->planes[0];
    for (int32_t i = 1; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        const struct dicom_instance *a = first->instance, *b = plane->instance;
        if (a->pixel == b->pixel && a->monochrome1 == b->monochrome1)
            continue;
        geometry_refuse(verdict, CODE_PIXELS_MIXED, first, plane,
                        "%s has %d-bit %s %s pixels and %s %d-bit %s %s ones.",
                        geometry_plane_name(first), a->bits_allocated,
                        a->is_signed ? "signed" : "unsigned",
                        a->monochrome1 ? "MONOCHROME1" : "MONOCHROME2", geometry_plane_name(plane),
                        b->bits_allocated, b->is_signed ? "signed" : "unsigned",
                        b->monochrome1 ? "MONOCHROME1" : "MONOCHROME2");
        return;
    }
}

static void
check_rescale(struct verdict *verdict, const struct group *group)
{
    for (int32_t i = 0; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        const struct dicom_frame *frame = plane->frame;
        const char *modality = plane->instance->modality;
        /* Their ranges are in HU and in activity; stored values mean nothing by themselves. */
        const bool required = strcmp(modality, "CT") == 0 || strcmp(modality, "PT") == 0;
        if (!frame->has_rescale && required) {
            geometry_refuse(verdict, CODE_RESCALE_INVALID, plane, NULL,
                            "%s, frame %d, has no Rescale Slope and Intercept, which %s needs.",
                            geometry_plane_name(plane), plane->frame_index + 1, modality);
            return;
        }
        if (isfinite(frame->slope) && isfinite(frame->intercept) && frame->slope != 0)
            continue;
        geometry_refuse(verdict, CODE_RESCALE_INVALID, plane, NULL,
                        "%s, frame %d, has an impossible rescale: slope %g, intercept %g.",
                        geometry_plane_name(plane), plane->frame_index + 1, frame->slope,
                        frame->intercept);
        return;
    }
}

static void
check_count(struct verdict *verdict, const struct group *group, int32_t min_planes)
{
    if (group->count < min_planes)
        geometry_refuse(verdict, CODE_TOO_FEW_SLICES, &group->planes[0], NULL,
                        "The stack has %d of at least %d slices.", group->count, min_planes);
}

static double
step_after(const struct group *group, int32_t i)
{
    return group->planes[i + 1].position - group->planes[i].position;
}

static double
tolerance_for(double step, const struct geometry_limits *limits)
{
    return fmax(limits->spacing_tolerance * step, POSITION_FLOOR_MM);
}

/* Median of the steps between different positions; 0 when there is none. */
static double
median_step(const struct group *group, double *scratch)
{
    int32_t count = 0;
    for (int32_t i = 0; i + 1 < group->count; i++)
        if (step_after(group, i) > POSITION_FLOOR_MM)
            scratch[count++] = step_after(group, i);
    if (count == 0)
        return 0;
    geometry_sort_numbers(scratch, count);
    return scratch[(count - 1) / 2];
}

static bool
check_duplicates(struct verdict *verdict, const struct group *group, double tolerance)
{
    for (int32_t i = 0; i + 1 < group->count; i++) {
        if (step_after(group, i) > tolerance)
            continue;
        const struct plane *a = &group->planes[i], *b = &group->planes[i + 1];
        geometry_refuse(
            verdict, CODE_DUPLICATE_POSITION, a, b,
            "%s, frame %d, and %s, frame %d, lie at the same position (%.4g mm along the "
            "normal) and nothing that is known tells them apart.",
            geometry_plane_name(a), a->frame_index + 1, geometry_plane_name(b), b->frame_index + 1,
            a->position);
        return false;
    }
    return true;
}

/* Length of the part of b - a that lies within the planes. */
static double
shift_between(const struct plane *a, const struct plane *b)
{
    double normal[3], in_plane[3];
    geometry_normal(a->frame->orientation, normal);
    for (int i = 0; i < 3; i++)
        in_plane[i] = b->frame->position[i] - a->frame->position[i];
    const double along = dot(in_plane, normal);
    for (int i = 0; i < 3; i++)
        in_plane[i] -= along * normal[i];
    return sqrt(dot(in_plane, in_plane));
}

static void
check_tilt(struct verdict *verdict, const struct group *group, const struct geometry_limits *limits)
{
    for (int32_t i = 0; i + 1 < group->count; i++) {
        const struct plane *a = &group->planes[i], *b = &group->planes[i + 1];
        const double step = step_after(group, i), shift = shift_between(a, b);
        if (shift <= tolerance_for(step, limits))
            continue;
        geometry_refuse(
            verdict, CODE_GANTRY_TILT, a, b,
            "The stack is sheared by %.1f degrees: from %s to %s, %.4g mm along the normal, "
            "the image shifts by %.4g mm.",
            atan2(shift, step) * 180 / M_PI, geometry_plane_name(a), geometry_plane_name(b), step,
            shift);
        return;
    }
}

/* Whether a step is a whole number of two or more regular ones. More than a thousand slices are not
 * missing: that is another scan. */
static bool
is_gap(double step, double regular, double tolerance)
{
    const double slices = round(step / regular);
    return slices >= 2 && slices <= 1000 && fabs(step - slices * regular) <= slices * tolerance;
}

static void
check_steps(struct verdict *verdict, const struct group *group, double regular, double tolerance)
{
    int32_t gap = -1, irregular = -1;
    int64_t missing = 0; /* at most a thousand for each of 2^31 steps */
    double shortest = regular, longest = regular;
    for (int32_t i = 0; i + 1 < group->count; i++) {
        const double step = step_after(group, i);
        shortest = fmin(shortest, step);
        longest = fmax(longest, step);
        if (fabs(step - regular) <= tolerance)
            continue;
        if (is_gap(step, regular, tolerance)) {
            missing += (int64_t)round(step / regular) - 1;
            if (gap < 0)
                gap = i;
        } else if (irregular < 0) {
            irregular = i;
        }
    }
    if (gap >= 0)
        geometry_refuse(
            verdict, CODE_MISSING_SLICE, &group->planes[gap], &group->planes[gap + 1],
            "%lld %s missing; the first gap is %.4g mm, between %s and %s, where %.4g mm are "
            "regular.",
            (long long)missing, missing == 1 ? "slice is" : "slices are", step_after(group, gap),
            geometry_plane_name(&group->planes[gap]), geometry_plane_name(&group->planes[gap + 1]),
            regular);
    if (irregular >= 0)
        geometry_refuse(
            verdict, CODE_SPACING_NOT_UNIFORM, &group->planes[irregular],
            &group->planes[irregular + 1],
            "The spacing changes: %.4g mm between %s and %s where %.4g mm are regular; all "
            "steps are from %.4g to %.4g mm.",
            step_after(group, irregular), geometry_plane_name(&group->planes[irregular]),
            geometry_plane_name(&group->planes[irregular + 1]), regular, shortest, longest);
}

/* In the order of docs/codes.md. */
void
geometry_judge(struct grouping *grouping, const struct group *group, struct geometry_stack *stack)
{
    const struct geometry_limits *limits = grouping->limits;
    struct verdict verdict = {&stack->error, false};
    stack->has_geometry = check_geometry_is_there(&verdict, group);
    check_sizes(&verdict, group);
    check_pixels(&verdict, group);
    check_rescale(&verdict, group);
    check_count(&verdict, group, limits->min_planes);
    if (stack->has_geometry && group->count > 1) {
        const double regular = median_step(group, grouping->scratch);
        const double tolerance = tolerance_for(regular, limits);
        if (check_duplicates(&verdict, group, tolerance)) {
            check_tilt(&verdict, group, limits);
            check_steps(&verdict, group, regular, tolerance);
        }
    }
    stack->accepted = !verdict.refused;
}
