/*
 * geometry_check.c - checks which groups of planes are valid stacks, and reports why others are
 * rejected.
 */
#include "base/error.h"
#include "dicom/read/geometry/geometry_internal.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Allowed rounding of pixel spacings within one stack. */
#define PIXEL_SPACING_TOLERANCE 1e-3

/* Shift within the planes from one to the next, per step. A stack with a larger one is sheared. */
#define SHEAR_TOLERANCE 0.01

/* Limits of straightening: max shear, and max step in units of the expected step (exclusive). */
#define STRAIGHTEN_DEGREES 45
#define STRAIGHTEN_STEPS   1.5

void
geometry_refuse(struct verdict *verdict, enum code code, const struct plane *a, const struct plane *b,
                const char *format, ...)
{
    char text[384];
    const char *remedy = code == CODE_INCOMPLETE_SERIES ? GEOMETRY_REMEDY
                         : code == CODE_VOLUMES_MIXED
                             ? " Send the missing slices, or each volume as a series of its own."
                             : "";
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (!verdict->refused) {
        error_set_files(verdict->error, 0, code, a ? a->instance->path : NULL, b ? b->instance->path : NULL, "%s%s",
                        text, remedy);
        verdict->refused = true;
        return;
    }
    char *end = verdict->error->message + strlen(verdict->error->message);
    const size_t room = (size_t)(verdict->error->message + sizeof(verdict->error->message) - end);
    const int needed = snprintf(end, room, " Also %s: %s%s", code_name(code), text, remedy);
    /* Long names of files leave no room for the text. */
    if ((size_t)length >= sizeof(text) || (size_t)needed >= room)
        snprintf(end, room, " Also %s.", code_name(code));
}

static bool
check_has_geometry(struct verdict *verdict, const struct group *group)
{
    for (int32_t i = 0; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        const char *what = !plane->frame->has_position      ? "Image Position (Patient)"
                           : !plane->frame->has_orientation ? "Image Orientation (Patient)"
                           : !plane->frame->has_spacing     ? "Pixel Spacing"
                                                            : NULL;
        if (!what)
            continue;
        geometry_refuse(verdict, CODE_NO_GEOMETRY, plane, NULL, "%s, frame %d, has no valid %s.",
                        geometry_plane_name(plane), plane->frame_index + 1, what);
        return false;
    }
    return true;
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
            geometry_refuse(verdict, CODE_SIZE_MIXED, first, plane, "%s has %d x %d pixels and %s has %d x %d.",
                            geometry_plane_name(first), a->columns, a->rows, geometry_plane_name(plane), b->columns,
                            b->rows);
            return;
        }
        const double *s = first->frame->pixel_spacing, *t = plane->frame->pixel_spacing;
        if (first->frame->has_spacing && plane->frame->has_spacing &&
            !(fabs(s[0] - t[0]) <= PIXEL_SPACING_TOLERANCE * s[0] &&
              fabs(s[1] - t[1]) <= PIXEL_SPACING_TOLERANCE * s[1])) {
            geometry_refuse(verdict, CODE_SIZE_MIXED, first, plane,
                            "The pixels of %s are %.6g x %.6g mm and those of %s %.6g x %.6g mm.",
                            geometry_plane_name(first), s[1], s[0], geometry_plane_name(plane), t[1], t[0]);
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
                        "%s has %d-bit %s %s pixels and %s %d-bit %s %s ones.", geometry_plane_name(first),
                        a->bits_allocated, a->is_signed ? "signed" : "unsigned",
                        a->monochrome1 ? "MONOCHROME1" : "MONOCHROME2", geometry_plane_name(plane), b->bits_allocated,
                        b->is_signed ? "signed" : "unsigned", b->monochrome1 ? "MONOCHROME1" : "MONOCHROME2");
        break;
    }
    for (int32_t i = 1; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        const char *a = first->instance->value_unit, *b = plane->instance->value_unit;
        if (strcmp(a, b) == 0)
            continue;
        geometry_refuse(verdict, CODE_PIXELS_MIXED, first, plane, "The values of %s are in %s and those of %s in %s.",
                        geometry_plane_name(first), a[0] ? a : "an unknown unit", geometry_plane_name(plane),
                        b[0] ? b : "an unknown unit");
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
        /* Ranges for these are in HU and in activity, so stored values are meaningless. */
        const bool required = !plane->instance->flat && (strcmp(modality, "CT") == 0 || strcmp(modality, "PT") == 0);
        if (!frame->has_rescale && required) {
            geometry_refuse(verdict, CODE_RESCALE_INVALID, plane, NULL,
                            "%s, frame %d, has no Rescale Slope and Intercept, which %s images must have.",
                            geometry_plane_name(plane), plane->frame_index + 1, modality);
            break;
        }
        if (isfinite(frame->slope) && isfinite(frame->intercept) && frame->slope != 0)
            continue;
        geometry_refuse(verdict, CODE_RESCALE_INVALID, plane, NULL,
                        "%s, frame %d, has an impossible rescale: slope %g, intercept %g.", geometry_plane_name(plane),
                        plane->frame_index + 1, frame->slope, frame->intercept);
        break;
    }
    /* All slices must have equal mappings. Otherwise the stored values have different scales. */
    const struct plane *first = &group->planes[0];
    const struct dicom_frame *a = first->frame;
    for (int32_t i = 1; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        const struct dicom_frame *b = plane->frame;
        if ((!geometry_has_own_mapping(a) && !geometry_has_own_mapping(b)) ||
            (a->has_mapping == b->has_mapping && a->mapping_slope == b->mapping_slope &&
             a->mapping_intercept == b->mapping_intercept))
            continue;
        geometry_refuse(verdict, CODE_RESCALE_INVALID, first, plane,
                        "Real World Value Mapping (0040,9096) of %s and of %s differ, and mappings are not applied.",
                        geometry_plane_name(first), geometry_plane_name(plane));
        return;
    }
}

/* ---- steps ---- */

static double
step_after(const struct group *group, int32_t i)
{
    return group->planes[i + 1].position - group->planes[i].position;
}

/* Expected steps of a stack: see "Tolerances" in geometry.h. */
struct ruler {
    double digit[3];  /* mm of the last digit of each coordinate; 0 if unknown: exact */
    double regular;   /* mm; 0 with a single position */
    double median;    /* step */
    double even;      /* max deviation of a step of an even stack */
    double tolerance; /* of positions that repeat and of gaps: `even`, or the digits if they are coarser */
};

/* Returns the number of decimals of a coordinate: 2 for 1.25, also if it is written as 1.2500 or, after single
 * precision, as 1.25000000001. */
static int
decimals_of(double coordinate)
{
    char text[32];
    snprintf(text, sizeof(text), "%.7g", coordinate);
    const char *dot = strchr(text, '.');
    const size_t fraction = dot ? strspn(dot + 1, "0123456789") : 0;
    const char *exponent = strpbrk(text, "eE");
    return (int)fraction - (exponent ? (int)strtol(exponent + 1, NULL, 10) : 0);
}

/* Returns the max error of a step between two planes from the rounding of coordinates. */
static double
rounding_of_step(const struct ruler *ruler, const double normal[3])
{
    double sum = 0;
    for (int c = 0; c < 3; c++)
        sum += fabs(normal[c]) * ruler->digit[c];
    return sum;
}

/* Returns the median step between different positions, or 0. */
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

static double
tolerance_for(double step, double fraction)
{
    return fmin(fmax(fraction * step, POSITION_FLOOR_MM), step / 4);
}

static struct ruler
find_ruler(const struct grouping *grouping, const struct group *group)
{
    const double middle = median_step(group, grouping->scratch);
    struct ruler ruler = {.regular = middle, .median = middle};
    double normal[3];
    for (int c = 0; c < 3; c++) {
        int most = INT_MIN;
        bool known = true;
        for (int32_t i = 0; i < group->count; i++) {
            const struct dicom_frame *frame = group->planes[i].frame;
            const int decimals = decimals_of(frame->position[c]);
            most = decimals > most ? decimals : most;
            known = known && frame->position_text[c][0];
        }
        ruler.digit[c] = known ? pow(10, -most) : 0;
    }
    geometry_normal(group->planes[0].frame->orientation, normal);
    const double rounding = rounding_of_step(&ruler, normal);
    ruler.even = ruler.tolerance = tolerance_for(middle, grouping->limits->spacing_tolerance);
    if (rounding <= ruler.tolerance || middle == 0)
        return ruler;
    /* The digits are coarser than the tolerance: use the mean of the steps that they allow. */
    double sum = 0;
    int32_t count = 0;
    for (int32_t i = 0; i + 1 < group->count; i++)
        if (fabs(step_after(group, i) - middle) <= fmin(2 * rounding, middle / 4)) {
            sum += step_after(group, i);
            count++;
        }
    ruler.regular = sum / count;
    ruler.tolerance = fmin(rounding, ruler.regular / 4);
    return ruler;
}

/* Returns whether a coordinate has equal steps from plane to plane, each plane within `tolerance` of its place. The
 * spread of the planes about a line is a convex function of its slope, so bisection finds its minimum. */
static bool
has_equal_steps(const struct group *group, int coordinate, double tolerance)
{
    const int32_t last = group->count - 1;
    const double first = group->planes[0].frame->position[coordinate];
    const double mean = (group->planes[last].frame->position[coordinate] - first) / last;
    double low = mean - 2 * tolerance / last, high = mean + 2 * tolerance / last;
    for (int turn = 0; turn < 60; turn++) {
        const double step = (low + high) / 2;
        double least = 0, greatest = 0;
        int32_t at_least = 0, at_greatest = 0;
        for (int32_t i = 1; i <= last; i++) {
            const double off = group->planes[i].frame->position[coordinate] - first - i * step;
            if (off < least) {
                least = off;
                at_least = i;
            } else if (off > greatest) {
                greatest = off;
                at_greatest = i;
            }
        }
        if (greatest - least <= 2 * tolerance)
            return true;
        if (at_greatest > at_least)
            low = step;
        else
            high = step;
    }
    return false;
}

/* Returns whether only the rounding of their coordinates keeps the planes from equal steps: see "Tolerances" in
 * geometry.h. */
static bool
is_rounded(const struct group *group, const struct ruler *ruler)
{
    const int32_t last = group->count - 1;
    const double mean = (group->planes[last].position - group->planes[0].position) / last;
    double normal[3];
    int32_t odd = 0;
    geometry_normal(group->planes[0].frame->orientation, normal);
    for (int32_t i = 0; i < last; i++)
        odd += fabs(step_after(group, i) - ruler->median) > ruler->even;
    const double unit = rounding_of_step(ruler, normal);
    const double slack = unit > ruler->even ? ruler->even : 0;
    if (unit > mean / 2 || (unit > mean / 4 && odd == 1))
        return false;
    for (int c = 0; c < 3; c++) /* a part in 1e6 and 1 nm: the digits are decimal, the numbers binary */
        if (!has_equal_steps(group, c, (ruler->digit[c] + fabs(normal[c]) * slack) / 2 * (1 + 1e-6) + 1e-6))
            return false;
    return true;
}

/* ---- positions that repeat ---- */

/* Returns the first plane after `start` that is further than the tolerance from the previous
 * one. */
static int32_t
end_of_repeats(const struct group *group, int32_t start, double tolerance)
{
    int32_t end = start + 1;
    while (end < group->count && step_after(group, end - 1) <= tolerance)
        end++;
    return end;
}

/* Max number of planes at one position, and number of positions with as many. */
struct repeats {
    int32_t positions, most, full;
    int32_t first_full, first_short; /* first plane of such a position */
    int32_t planes_of_short;
};

static struct repeats
count_repeats(const struct group *group, double tolerance)
{
    struct repeats r = {0};
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_repeats(group, start, tolerance);
        r.most = end - start > r.most ? end - start : r.most;
    }
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_repeats(group, start, tolerance);
        r.positions++;
        if (end - start == r.most) {
            r.first_full = r.full++ ? r.first_full : start;
        } else if (r.positions - r.full == 1) {
            r.first_short = start;
            r.planes_of_short = end - start;
        }
    }
    return r;
}

static bool
check_repeats(struct verdict *verdict, const struct grouping *grouping, const struct group *group, double tolerance)
{
    const struct repeats r = count_repeats(group, tolerance);
    if (r.most <= 1)
        return true;
    if (r.positions == 1) {
        geometry_refuse(verdict, CODE_DUPLICATE_POSITION, &group->planes[0], &group->planes[group->count - 1],
                        "All %d images of the stack lie at one position, %.4g mm along the normal: a series over time, "
                        "or slices without their own position.",
                        group->count, group->planes[0].position);
        return false;
    }
    if (2 * r.full > r.positions && r.full < r.positions && !grouping->limits->allow_missing) {
        const struct plane *plane = &group->planes[r.first_short];
        geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, plane, NULL,
                        "%d of %d positions have %d slices, and the others fewer: %d at %.4g mm "
                        "along the normal, the position of %s.",
                        r.full, r.positions, r.most, r.planes_of_short, plane->position, geometry_plane_name(plane));
        return false;
    }
    /* Report a pair of one Instance Number if possible. */
    const struct plane *a = &group->planes[r.first_full];
    for (int32_t i = 0; i + 1 < r.most; i++)
        if (a[i].instance->instance_number == a[i + 1].instance->instance_number) {
            a += i;
            break;
        }
    const struct plane *b = a + 1;
    const char *difference = geometry_copy_difference(a, b);
    if (difference) {
        geometry_refuse(verdict, CODE_DUPLICATE_POSITION, a, b,
                        "%s, frame %d, and %s, frame %d, lie at the same position (%.4g mm along "
                        "the normal) and differ in %s, which does not sort the slices into "
                        "complete volumes. Separate them into series.",
                        geometry_plane_name(a), a->frame_index + 1, geometry_plane_name(b), b->frame_index + 1,
                        a->position, difference);
        return false;
    }
    geometry_refuse(verdict, CODE_DUPLICATE_POSITION, a, b,
                    "%s, frame %d, and %s, frame %d, lie at the same position (%.4g mm along the normal) and "
                    "no known attribute distinguishes them. Remove the wrong one%s.",
                    geometry_plane_name(a), a->frame_index + 1, geometry_plane_name(b), b->frame_index + 1, a->position,
                    group->has_newest ? ", or make the pipeline use the newer: duplicates = \"newest\"" : "");
    return false;
}

/* ---- shear ---- */

/* Computes the part of b - a within the planes. Returns its length. */
static double
shift_between(const struct plane *a, const struct plane *b, double normal[3], double shift[3])
{
    geometry_normal(a->frame->orientation, normal);
    for (int i = 0; i < 3; i++)
        shift[i] = b->frame->position[i] - a->frame->position[i];
    const double along = geometry_dot(shift, normal);
    for (int i = 0; i < 3; i++)
        shift[i] -= along * normal[i];
    return sqrt(geometry_dot(shift, shift));
}

/* Returns whether b lies above a, with `steps` steps between them. */
static bool
is_upright(const struct ruler *ruler, const struct plane *a, const struct plane *b, int32_t steps,
           const struct geometry_limits *limits)
{
    double normal[3], shift[3], beyond[3]; /* the part of the shift that rounding cannot explain */
    const double step = (b->position - a->position) / steps;
    const double length = shift_between(a, b, normal, shift);
    const double along = rounding_of_step(ruler, normal);
    for (int c = 0; c < 3; c++)
        beyond[c] = fmax(fabs(shift[c]) - ruler->digit[c] - fabs(normal[c]) * along, 0);
    const double tolerance = tolerance_for(step, fmin(limits->spacing_tolerance, SHEAR_TOLERANCE));
    return length <= steps * tolerance ||
           (length <= steps * step / 4 && sqrt(geometry_dot(beyond, beyond)) <= steps * tolerance);
}

/* ---- what can be straightened ---- */

/* Returns the reason against resampling the planes, NULL without any, or "" if straightening is
 * off. */
static const char *
straighten_obstacle(const struct group *group, const struct geometry_limits *limits)
{
    const struct dicom_frame *first = group->planes[0].frame;
    const struct dicom_instance *a = group->planes[0].instance;
    if (!limits->straighten)
        return "";
    for (int32_t i = 1; i < group->count; i++) {
        const struct dicom_frame *frame = group->planes[i].frame;
        const struct dicom_instance *b = group->planes[i].instance;
        if (first->slope != frame->slope || first->intercept != frame->intercept)
            return " It is not straightened, because its slices differ in their rescale.";
        if (a->has_padding != b->has_padding ||
            (a->has_padding && (a->padding_lo != b->padding_lo || a->padding_hi != b->padding_hi)))
            return " It is not straightened, because its slices differ in their padding.";
    }
    return NULL;
}

static double
shear_degrees(const struct plane *a, const struct plane *b)
{
    double normal[3], shift[3];
    return atan2(shift_between(a, b, normal, shift), b->position - a->position) * 180 / M_PI;
}

static void
refuse_shear(struct verdict *verdict, const struct plane *a, const struct plane *b, const char *why)
{
    double normal[3], shift[3];
    geometry_refuse(verdict, CODE_GANTRY_TILT, a, b,
                    "The stack is sheared by %.1f degrees: from %s to %s, %.4g mm along the "
                    "normal, the image shifts by %.4g mm.%s",
                    shear_degrees(a, b), geometry_plane_name(a), geometry_plane_name(b), b->position - a->position,
                    shift_between(a, b, normal, shift), why);
}

static void
check_tilt(struct verdict *verdict, const struct group *group, const struct ruler *ruler,
           const struct geometry_limits *limits, bool rounded, struct geometry_stack *stack)
{
    const struct plane *first = group->planes, *last = first + group->count - 1;
    const bool leans = !is_upright(ruler, first, last, group->count - 1, limits);
    if (rounded && !leans)
        return;
    /* The first pair of neighbours that is not upright or, for a shear hidden by rounding, the
     * first and last plane. */
    const struct plane *a = first, *b = last, *steepest = first;
    for (const struct plane *plane = first; plane < last; plane++)
        if (!is_upright(ruler, plane, plane + 1, 1, limits)) {
            a = plane;
            b = plane + 1;
            break;
        }
    if (b == last && a == first && !leans)
        return;
    for (const struct plane *plane = first + 1; plane < last; plane++)
        if (shear_degrees(plane, plane + 1) > shear_degrees(steepest, steepest + 1))
            steepest = plane;
    const char *obstacle = straighten_obstacle(group, limits);
    if (obstacle) {
        refuse_shear(verdict, a, b, obstacle);
    } else if (shear_degrees(steepest, steepest + 1) > STRAIGHTEN_DEGREES) {
        refuse_shear(verdict, steepest, steepest + 1, " That is too much to straighten.");
    } else {
        stack->tilted = true;
        stack->tilt_degrees = leans ? shear_degrees(first, last) : shear_degrees(a, b);
    }
}

/* ---- gaps ---- */

/* Returns whether a step is a whole number of regular steps, two or more. More than a thousand
 * slices cannot be missing: that is another scan. */
static bool
is_gap(double step, double regular, double tolerance)
{
    const double slices = round(step / regular);
    return slices >= 2 && slices <= 1000 && fabs(step - slices * regular) <= fmin(slices * tolerance, regular / 4);
}

/* Returns the mean thickness of two neighbours, or 0 if either is unknown. */
static double
mean_thickness(const struct group *group, int32_t i)
{
    const double a = group->planes[i].frame->slice_thickness;
    const double b = group->planes[i + 1].frame->slice_thickness;
    return a > 0 && b > 0 ? (a + b) / 2 : 0;
}

/* Returns whether a slice may be missing within a step: see "Straightening" in geometry.h. */
static bool
has_long_step(const struct group *group, double regular, double *scratch)
{
    /* The median ratio of steps to their planes' thickness, if all are known. */
    bool known = true;
    for (int32_t i = 0; i + 1 < group->count && known; i++) {
        known = mean_thickness(group, i) > 0;
        scratch[i] = known ? step_after(group, i) / mean_thickness(group, i) : 0;
    }
    if (known)
        geometry_sort_numbers(scratch, group->count - 1);
    const double share = known ? scratch[(group->count - 2) / 2] : 0;
    for (int32_t i = 0; i + 1 < group->count; i++) {
        const double step = step_after(group, i);
        const double before = i > 0 ? step_after(group, i - 1) : 0;
        const double after = i + 2 < group->count ? step_after(group, i + 1) : 0;
        const double expected = share > 0 ? share * mean_thickness(group, i) : regular;
        if (step >= STRAIGHTEN_STEPS * fmin(expected, fmax(before, after)))
            return true;
    }
    return false;
}

static void
check_steps(struct verdict *verdict, const struct group *group, double regular, double tolerance, const char *why)
{
    int32_t gap = -1, last_gap = -1, irregular = -1;
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
            last_gap = i;
            if (gap < 0)
                gap = i;
        } else if (irregular < 0) {
            irregular = i;
        }
    }
    const struct plane *before = &group->planes[gap < 0 ? 0 : gap];
    if (gap >= 0 && gap == last_gap && missing > 2 && gap > 0 && gap + 2 < group->count)
        geometry_refuse(verdict, CODE_MISSING_SLICE, before, before + 1,
                        "Two slabs of %d and %d slices are %.4g mm apart, between %s and %s, and "
                        "the regular step is %.4g mm; or %lld slices are missing.",
                        gap + 1, group->count - gap - 1, step_after(group, gap), geometry_plane_name(before),
                        geometry_plane_name(before + 1), regular, (long long)missing);
    else if (gap >= 0)
        geometry_refuse(verdict, CODE_MISSING_SLICE, before, before + 1,
                        "%lld %s missing; the first gap is %.4g mm, between %s and %s, and the "
                        "regular step is %.4g mm.",
                        (long long)missing, missing == 1 ? "slice is" : "slices are", step_after(group, gap),
                        geometry_plane_name(before), geometry_plane_name(before + 1), regular);
    if (irregular >= 0)
        geometry_refuse(verdict, CODE_SPACING_NOT_UNIFORM, &group->planes[irregular], &group->planes[irregular + 1],
                        "The spacing changes: %.4g mm between %s and %s, and the regular step is %.4g mm; all "
                        "steps are from %.4g to %.4g mm.%s",
                        step_after(group, irregular), geometry_plane_name(&group->planes[irregular]),
                        geometry_plane_name(&group->planes[irregular + 1]), regular, shortest, longest, why);
    if (gap < 0 && irregular < 0)
        geometry_refuse(verdict, CODE_SPACING_NOT_UNIFORM, &group->planes[0], &group->planes[group->count - 1],
                        "The spacing drifts: all steps are from %.4g to %.4g mm, and slices are "
                        "more than a quarter of a step off a regular grid.%s",
                        shortest, longest, why);
}

static void
check_positions(struct verdict *verdict, struct grouping *grouping, const struct group *group,
                struct geometry_stack *stack)
{
    const struct ruler ruler = find_ruler(grouping, group);
    if (!check_repeats(verdict, grouping, group, ruler.tolerance))
        return;
    const bool rounded = is_rounded(group, &ruler);
    check_tilt(verdict, group, &ruler, grouping->limits, rounded, stack);
    if (rounded)
        return;
    /* Each step must be regular, and each plane within a quarter of a step of the grid with the
     * stack's mean step. */
    const int32_t last = group->count - 1;
    const double start = group->planes[0].position;
    const double mean = (group->planes[last].position - start) / last;
    bool even = true;
    for (int32_t i = 0; i < last && even; i++)
        even = !(fabs(step_after(group, i) - ruler.regular) > ruler.even ||
                 fabs(group->planes[i].position - start - i * mean) > mean / 4);
    if (even)
        return;
    const char *obstacle = straighten_obstacle(group, grouping->limits);
    if (!obstacle && !grouping->limits->allow_missing && has_long_step(group, ruler.regular, grouping->scratch))
        obstacle = " It is not straightened, because a slice may be missing: a step is much longer "
                   "than its neighbours or than its slices are thick.";
    if (obstacle)
        check_steps(verdict, group, ruler.regular, ruler.tolerance, obstacle);
    else
        stack->uneven = true;
}

/* Makes all checks, in the order of docs/codes.md. */
void
geometry_check(struct grouping *grouping, const struct group *group, struct geometry_stack *stack)
{
    struct verdict verdict = {&stack->error, false};
    if (group->planes[0].instance->flat) {
        check_rescale(&verdict, group);
        stack->accepted = !verdict.refused;
        return;
    }
    stack->has_geometry = check_has_geometry(&verdict, group);
    check_sizes(&verdict, group);
    check_pixels(&verdict, group);
    check_rescale(&verdict, group);
    if (group->count < grouping->limits->min_planes)
        geometry_refuse(&verdict, CODE_TOO_FEW_SLICES, &group->planes[0], NULL,
                        "The stack has %d of at least %d slices.", group->count, grouping->limits->min_planes);
    if (stack->has_geometry && group->count > 1)
        check_positions(&verdict, grouping, group, stack);
    if (stack->has_geometry)
        geometry_check_whole(&verdict, grouping, group);
    stack->accepted = !verdict.refused;
}
