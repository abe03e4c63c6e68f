#include "geometry.h"

#include "fault.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Positions are decimal strings, most often written to 0.01 mm or finer; over three coordinates
 * that puts a step between two of them off by up to 0.0173 mm. What differs by less than this is
 * one position, and no step is known better.
 */
#define POSITION_FLOOR_MM 0.02

/* Direction cosines are strings too; planes closer than this in every component are parallel. */
#define ORIENTATION_TOLERANCE 1e-3

/* Pixel spacings within one stack may differ by rounding alone. */
#define PIXEL_SPACING_TOLERANCE 1e-3

/* What can set stacks of one orientation apart, in the order in which they are tried. */
enum discriminator {
    BY_ECHO,
    BY_B_VALUE,
    BY_TEMPORAL,
    BY_PHASE,
    BY_ACQUISITION_TYPE,
    BY_ACQUISITION_NUMBER,
    DISCRIMINATORS
};

struct plane {
    const struct dicom_instance *instance;
    const struct dicom_frame *frame;
    int32_t instance_index, frame_index;
    double position; /* along the normal of its orientation group; the index without geometry */
    int32_t orientation;
    char acquisition_number[12];
};

/* Planes that belong together so far: a range of the planes array and what set it apart. */
struct group {
    struct plane *planes;
    int32_t count;
    char name[128];
};

struct grouping {
    const struct geometry_limits *limits;
    struct plane *planes;
    int32_t plane_count;
    double *scratch; /* plane_count positions */
    struct group *groups;
    int32_t group_count, group_room;
};

static double
dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Unit normal of a plane: row direction x column direction. */
static void
normal_of(const double orientation[6], double normal[3])
{
    const double *r = orientation, *c = orientation + 3;
    normal[0] = r[1] * c[2] - r[2] * c[1];
    normal[1] = r[2] * c[0] - r[0] * c[2];
    normal[2] = r[0] * c[1] - r[1] * c[0];
    const double length = sqrt(dot(normal, normal));
    for (int i = 0; i < 3; i++)
        normal[i] /= length;
}

static bool
plane_has_geometry(const struct plane *plane)
{
    return plane->frame->has_position && plane->frame->has_orientation && plane->frame->has_spacing;
}

static const char *
key_of(const struct plane *plane, enum discriminator discriminator)
{
    switch (discriminator) {
    case BY_ECHO:
        return plane->frame->echo;
    case BY_B_VALUE:
        return plane->frame->b_value;
    case BY_TEMPORAL:
        return plane->frame->temporal;
    case BY_PHASE:
        return plane->frame->phase;
    case BY_ACQUISITION_TYPE:
        return plane->frame->acquisition;
    case BY_ACQUISITION_NUMBER:
        return plane->acquisition_number;
    case DISCRIMINATORS:
        break;
    }
    return "";
}

/* ---- order ---- */

/* The same order whatever order the instances come in. */
static int
compare_identity(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    int order = strcmp(a->instance->sop_instance_uid, b->instance->sop_instance_uid);
    if (!order)
        order = (a->frame_index > b->frame_index) - (a->frame_index < b->frame_index);
    return order ? order : strcmp(a->instance->path, b->instance->path);
}

static int
compare_orientation(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    const int order = (a->orientation > b->orientation) - (a->orientation < b->orientation);
    return order ? order : compare_identity(left, right);
}

static int
compare_position(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    const int order = (a->position > b->position) - (a->position < b->position);
    return order ? order : compare_identity(left, right);
}

/* Without positions, the sender's own numbering is the best order there is. */
static int
compare_number(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    const int32_t p = a->instance->instance_number, q = b->instance->instance_number;
    const int order = (p > q) - (p < q);
    return order ? order : compare_identity(left, right);
}

/* "b 800" before "b 1000". */
static int
compare_key(const void *left, const void *right, void *context)
{
    const enum discriminator *discriminator = context;
    const int order = strverscmp(key_of(left, *discriminator), key_of(right, *discriminator));
    return order ? order : compare_identity(left, right);
}

static int
compare_double(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* ---- grouping ---- */

static bool
same_orientation(const struct plane *a, const struct plane *b)
{
    if (!a->frame->has_orientation || !b->frame->has_orientation)
        return a->frame->has_orientation == b->frame->has_orientation;
    for (int i = 0; i < 6; i++)
        if (fabs(a->frame->orientation[i] - b->frame->orientation[i]) > ORIENTATION_TOLERANCE)
            return false;
    return true;
}

/* Numbers the orientations in the planes' order; -ENOMEM, or how many there are. */
static int32_t
number_orientations(struct grouping *grouping)
{
    const struct plane **seen = calloc((size_t)grouping->plane_count, sizeof(*seen));
    if (!seen)
        return -ENOMEM;
    int32_t count = 0;
    for (int32_t i = 0; i < grouping->plane_count; i++) {
        struct plane *plane = &grouping->planes[i];
        int32_t k = 0;
        while (k < count && !same_orientation(plane, seen[k]))
            k++;
        if (k == count)
            seen[count++] = plane;
        plane->orientation = k;
    }
    free(seen);
    return count;
}

/* The anatomical plane closest to an orientation, for people. */
static const char *
orientation_name(const struct plane *plane)
{
    if (!plane->frame->has_orientation)
        return "no orientation";
    double normal[3];
    normal_of(plane->frame->orientation, normal);
    if (fabs(normal[2]) >= fabs(normal[0]) && fabs(normal[2]) >= fabs(normal[1]))
        return "axial";
    return fabs(normal[1]) >= fabs(normal[0]) ? "coronal" : "sagittal";
}

static void
place(struct group *group)
{
    bool all = true;
    for (int32_t i = 0; i < group->count; i++)
        all =
            all && group->planes[i].frame->has_position && group->planes[i].frame->has_orientation;
    double normal[3] = {0, 0, 1};
    if (all)
        normal_of(group->planes[0].frame->orientation, normal);
    for (int32_t i = 0; i < group->count; i++)
        group->planes[i].position = all ? dot(normal, group->planes[i].frame->position) : (double)i;
}

/* How many different positions some planes have. */
static int32_t
count_positions(struct grouping *grouping, const struct plane *planes, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        grouping->scratch[i] = planes[i].position;
    qsort(grouping->scratch, (size_t)count, sizeof(double), compare_double);
    int32_t different = count > 0;
    double last = count > 0 ? grouping->scratch[0] : 0;
    for (int32_t i = 1; i < count; i++)
        if (grouping->scratch[i] - last > POSITION_FLOOR_MM) {
            different++;
            last = grouping->scratch[i];
        }
    return different;
}

/* First plane after `start` whose key differs; the planes are sorted by key. */
static int32_t
end_of_key(const struct group *group, int32_t start, enum discriminator discriminator)
{
    int32_t end = start + 1;
    while (end < group->count && strcmp(key_of(&group->planes[start], discriminator),
                                        key_of(&group->planes[end], discriminator)) == 0)
        end++;
    return end;
}

/* See "Stacks" in geometry.h. The planes are sorted by this discriminator's key. */
static bool
should_split(struct grouping *grouping, const struct group *group, enum discriminator discriminator)
{
    int32_t values = 0, repeats_after = 0;
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_key(group, start, discriminator);
        values++;
        repeats_after +=
            end - start - count_positions(grouping, group->planes + start, end - start);
    }
    if (values < 2)
        return false;
    const bool names_a_volume =
        discriminator == BY_ECHO || discriminator == BY_B_VALUE || discriminator == BY_TEMPORAL;
    if (names_a_volume && group->count >= 2 * (int64_t)values)
        return true;
    const int32_t positions = count_positions(grouping, group->planes, group->count);
    return repeats_after < group->count - positions &&
           (int64_t)values * positions <= 2 * (int64_t)group->count;
}

static int
add_group(struct grouping *grouping, const struct group *group)
{
    if (grouping->group_count == grouping->group_room) {
        const int32_t room = grouping->group_room ? 2 * grouping->group_room : 8;
        struct group *groups = reallocarray(grouping->groups, (size_t)room, sizeof(*groups));
        if (!groups)
            return -ENOMEM;
        grouping->groups = groups;
        grouping->group_room = room;
    }
    grouping->groups[grouping->group_count++] = *group;
    return 0;
}

static void
extend_name(struct group *group, enum discriminator discriminator)
{
    static const char *const prefixes[DISCRIMINATORS] = {"echo ",  "b ", "time ",
                                                         "phase ", "",   "acquisition "};
    const char *key = key_of(&group->planes[0], discriminator);
    const size_t length = strlen(group->name);
    snprintf(group->name + length, sizeof(group->name) - length, "%s%s%s", length ? ", " : "",
             prefixes[discriminator], key[0] ? key : "none");
}

/* Splits by this discriminator if need be, and each part by the ones after it. Recursion is as deep
 * as there are discriminators. */
static int
split(struct grouping *grouping, const struct group *group, enum discriminator discriminator)
{
    if (discriminator == DISCRIMINATORS)
        return add_group(grouping, group);
    qsort_r(group->planes, (size_t)group->count, sizeof(*group->planes), compare_key,
            &discriminator);
    if (!should_split(grouping, group, discriminator))
        return split(grouping, group, discriminator + 1);
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_key(group, start, discriminator);
        struct group part = {group->planes + start, end - start, ""};
        memcpy(part.name, group->name, sizeof(part.name));
        extend_name(&part, discriminator);
        int error = split(grouping, &part, discriminator + 1);
        if (error)
            return error;
    }
    return 0;
}

/* How many of the orientations share a name, and the rank of one among them (from 1). */
static int
rank_of_name(const struct grouping *grouping, const struct plane *plane, int *rank)
{
    int32_t last = -1;
    int same = 0;
    *rank = 0;
    for (int32_t i = 0; i < grouping->plane_count; i++) {
        const struct plane *other = &grouping->planes[i];
        if (other->orientation == last)
            continue;
        last = other->orientation;
        if (strcmp(orientation_name(other), orientation_name(plane)) == 0) {
            same++;
            if (other->orientation <= plane->orientation)
                *rank = same;
        }
    }
    return same;
}

static void
name_orientation(const struct grouping *grouping, struct group *group)
{
    int rank;
    if (rank_of_name(grouping, &group->planes[0], &rank) > 1)
        snprintf(group->name, sizeof(group->name), "%s %d", orientation_name(&group->planes[0]),
                 rank);
    else
        snprintf(group->name, sizeof(group->name), "%s", orientation_name(&group->planes[0]));
}

static int
make_groups(struct grouping *grouping)
{
    const int32_t orientations = number_orientations(grouping);
    if (orientations < 0)
        return orientations;
    qsort(grouping->planes, (size_t)grouping->plane_count, sizeof(*grouping->planes),
          compare_orientation);
    struct group *ranges = calloc((size_t)orientations, sizeof(*ranges));
    if (!ranges)
        return -ENOMEM;
    int32_t start = 0;
    /* Named before any is split: splitting reorders the planes within their range. */
    for (int32_t k = 0; k < orientations; k++) {
        ranges[k].planes = grouping->planes + start;
        while (start < grouping->plane_count && grouping->planes[start].orientation == k)
            start++;
        ranges[k].count = (int32_t)(grouping->planes + start - ranges[k].planes);
        place(&ranges[k]);
        if (orientations > 1)
            name_orientation(grouping, &ranges[k]);
    }
    int error = 0;
    for (int32_t k = 0; k < orientations && !error; k++)
        error = split(grouping, &ranges[k], BY_ECHO);
    free(ranges);
    return error;
}

/* ---- the gate ---- */

/* Findings about one stack, in order of precedence; the first gives the code and the files. */
struct verdict {
    struct dicom_fault *fault;
    bool refused;
};

static void __attribute__((format(printf, 5, 6)))
refuse(struct verdict *verdict, const char *code, const struct plane *a, const struct plane *b,
       const char *format, ...)
{
    char text[384];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (!verdict->refused) {
        fault_set(verdict->fault, 0, code, a ? a->instance->path : NULL,
                  b ? b->instance->path : NULL, "%s", text);
        verdict->refused = true;
        return;
    }
    char *sentence = verdict->fault->sentence;
    const size_t length = strlen(sentence);
    snprintf(sentence + length, sizeof(verdict->fault->sentence) - length, " Also %s: %s", code,
             text);
}

static const char *
name_of(const struct plane *plane)
{
    return fault_base_name(plane->instance->path);
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
        refuse(verdict, "NO_GEOMETRY", plane, NULL, "%s, frame %d, has no valid %s.",
               name_of(plane), plane->frame_index + 1, what);
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
            refuse(verdict, "SIZE_MIXED", first, plane, "%s has %d x %d pixels and %s has %d x %d.",
                   name_of(first), a->columns, a->rows, name_of(plane), b->columns, b->rows);
            return;
        }
        const double *s = first->frame->pixel_spacing, *t = plane->frame->pixel_spacing;
        if (first->frame->has_spacing && plane->frame->has_spacing && !same_spacing(s, t)) {
            refuse(verdict, "SIZE_MIXED", first, plane,
                   "The pixels of %s are %.6g x %.6g mm and those of %s %.6g x %.6g mm.",
                   name_of(first), s[1], s[0], name_of(plane), t[1], t[0]);
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
        refuse(verdict, "PIXELS_MIXED", first, plane,
               "%s has %d-bit %s %s pixels and %s %d-bit %s %s ones.", name_of(first),
               a->bits_allocated, a->is_signed ? "signed" : "unsigned",
               a->monochrome1 ? "MONOCHROME1" : "MONOCHROME2", name_of(plane), b->bits_allocated,
               b->is_signed ? "signed" : "unsigned",
               b->monochrome1 ? "MONOCHROME1" : "MONOCHROME2");
        return;
    }
}

static void
check_frame_of_reference(struct verdict *verdict, const struct group *group)
{
    const struct plane *first = &group->planes[0];
    for (int32_t i = 1; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        if (strcmp(first->instance->frame_of_reference_uid,
                   plane->instance->frame_of_reference_uid) == 0)
            continue;
        refuse(verdict, "FRAME_OF_REFERENCE_MIXED", first, plane,
               "%s and %s have different Frames of Reference, so their positions cannot be "
               "compared.",
               name_of(first), name_of(plane));
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
            refuse(verdict, "RESCALE_INVALID", plane, NULL,
                   "%s, frame %d, has no Rescale Slope and Intercept, which %s needs.",
                   name_of(plane), plane->frame_index + 1, modality);
            return;
        }
        if (isfinite(frame->slope) && isfinite(frame->intercept) && frame->slope != 0)
            continue;
        refuse(verdict, "RESCALE_INVALID", plane, NULL,
               "%s, frame %d, has an impossible rescale: slope %g, intercept %g.", name_of(plane),
               plane->frame_index + 1, frame->slope, frame->intercept);
        return;
    }
}

static void
check_count(struct verdict *verdict, const struct group *group, int32_t min_planes)
{
    if (group->count < min_planes)
        refuse(verdict, "TOO_FEW_SLICES", &group->planes[0], NULL,
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
    qsort(scratch, (size_t)count, sizeof(double), compare_double);
    return scratch[(count - 1) / 2];
}

static bool
check_duplicates(struct verdict *verdict, const struct group *group, double tolerance)
{
    for (int32_t i = 0; i + 1 < group->count; i++) {
        if (step_after(group, i) > tolerance)
            continue;
        const struct plane *a = &group->planes[i], *b = &group->planes[i + 1];
        refuse(verdict, "DUPLICATE_POSITION", a, b,
               "%s, frame %d, and %s, frame %d, lie at the same position (%.4g mm along the "
               "normal) and nothing that is known tells them apart.",
               name_of(a), a->frame_index + 1, name_of(b), b->frame_index + 1, a->position);
        return false;
    }
    return true;
}

/* Length of the part of b - a that lies within the planes. */
static double
shift_between(const struct plane *a, const struct plane *b)
{
    double normal[3], in_plane[3];
    normal_of(a->frame->orientation, normal);
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
        refuse(verdict, "GANTRY_TILT", a, b,
               "The stack is sheared by %.1f degrees: from %s to %s, %.4g mm along the normal, "
               "the image shifts by %.4g mm.",
               atan2(shift, step) * 180 / M_PI, name_of(a), name_of(b), step, shift);
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
        refuse(verdict, "MISSING_SLICE", &group->planes[gap], &group->planes[gap + 1],
               "%lld %s missing; the first gap is %.4g mm, between %s and %s, where %.4g mm are "
               "regular.",
               (long long)missing, missing == 1 ? "slice is" : "slices are", step_after(group, gap),
               name_of(&group->planes[gap]), name_of(&group->planes[gap + 1]), regular);
    if (irregular >= 0)
        refuse(verdict, "SPACING_NOT_UNIFORM", &group->planes[irregular],
               &group->planes[irregular + 1],
               "The spacing changes: %.4g mm between %s and %s where %.4g mm are regular; all "
               "steps are from %.4g to %.4g mm.",
               step_after(group, irregular), name_of(&group->planes[irregular]),
               name_of(&group->planes[irregular + 1]), regular, shortest, longest);
}

/* In the order of docs/codes.md. Planes are in ascending position. */
static void
judge(struct grouping *grouping, const struct group *group, struct geometry_stack *stack)
{
    const struct geometry_limits *limits = grouping->limits;
    struct verdict verdict = {&stack->fault, false};
    stack->has_geometry = check_geometry_is_there(&verdict, group);
    check_sizes(&verdict, group);
    check_pixels(&verdict, group);
    check_frame_of_reference(&verdict, group);
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

/* ---- stacks ---- */

static int
copy_planes(const struct group *group, struct geometry_stack *stack)
{
    stack->planes = calloc((size_t)group->count, sizeof(*stack->planes));
    if (!stack->planes)
        return -ENOMEM;
    stack->plane_count = group->count;
    for (int32_t i = 0; i < group->count; i++)
        stack->planes[i] =
            (struct geometry_plane){group->planes[i].instance_index, group->planes[i].frame_index,
                                    group->planes[i].position};
    return 0;
}

static double
plane_spacing(const struct group *group)
{
    const int32_t last = group->count - 1;
    const double extent = group->planes[last].position - group->planes[0].position;
    if (extent > 0)
        return extent / last;
    const double thickness = group->planes[0].frame->slice_thickness;
    return thickness > 0 ? thickness : 1;
}

static void
describe(const struct group *group, struct geometry_stack *stack)
{
    static const double no_orientation[6] = {1, 0, 0, 0, 1, 0};
    const struct plane *first = &group->planes[0];
    const struct dicom_frame *frame = first->frame;
    memcpy(stack->name, group->name, sizeof(stack->name));
    stack->columns = first->instance->columns;
    stack->rows = first->instance->rows;
    stack->pixel = first->instance->pixel;
    const double *orientation = stack->has_geometry ? frame->orientation : no_orientation;
    normal_of(orientation, stack->normal);
    memcpy(stack->axes, orientation, 6 * sizeof(double));
    memcpy(stack->axes + 6, stack->normal, 3 * sizeof(double));
    stack->spacing[0] = frame->has_spacing ? frame->pixel_spacing[1] : 1;
    stack->spacing[1] = frame->has_spacing ? frame->pixel_spacing[0] : 1;
    stack->spacing[2] = stack->has_geometry ? plane_spacing(group) : 1;
    if (stack->has_geometry)
        memcpy(stack->origin, frame->position, sizeof(stack->origin));
}

static int
make_stack(struct grouping *grouping, struct group *group, struct geometry_stack *stack)
{
    bool placed = true;
    for (int32_t i = 0; i < group->count; i++)
        placed = placed && group->planes[i].frame->has_position &&
                 group->planes[i].frame->has_orientation;
    qsort(group->planes, (size_t)group->count, sizeof(*group->planes),
          placed ? compare_position : compare_number);
    judge(grouping, group, stack);
    describe(group, stack);
    return copy_planes(group, stack);
}

static int
compare_group(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    const int order = strverscmp(a->name, b->name);
    return order ? order : compare_identity(&a->planes[0], &b->planes[0]);
}

static int
make_stacks(struct grouping *grouping, struct geometry_series *series)
{
    qsort(grouping->groups, (size_t)grouping->group_count, sizeof(*grouping->groups),
          compare_group);
    series->stacks = calloc((size_t)grouping->group_count, sizeof(*series->stacks));
    if (!series->stacks)
        return -ENOMEM;
    for (int32_t i = 0; i < grouping->group_count; i++) {
        int error = make_stack(grouping, &grouping->groups[i], &series->stacks[i]);
        if (error)
            return error;
        series->stack_count++;
    }
    return 0;
}

/* ---- entry ---- */

static int
check_one_series(struct dicom_instance *const *instances, int32_t count, struct dicom_fault *fault)
{
    for (int32_t i = 1; i < count; i++)
        if (strcmp(instances[0]->series_uid, instances[i]->series_uid) != 0)
            return fault_set(fault, -EINVAL, "SERIES_MIXED", instances[0]->path, instances[i]->path,
                             "%s and %s belong to different series.",
                             fault_base_name(instances[0]->path),
                             fault_base_name(instances[i]->path));
    return 0;
}

static int
collect_planes(struct dicom_instance *const *instances, int32_t count, struct grouping *grouping)
{
    int64_t total = 0;
    for (int32_t i = 0; i < count; i++)
        total += instances[i]->frame_count;
    if (total > INT32_MAX)
        return -ENOMEM;
    grouping->planes = calloc((size_t)total + 1, sizeof(*grouping->planes));
    grouping->scratch = calloc((size_t)total + 1, sizeof(*grouping->scratch));
    if (!grouping->planes || !grouping->scratch)
        return -ENOMEM;
    for (int32_t i = 0; i < count; i++)
        for (int32_t f = 0; f < instances[i]->frame_count; f++) {
            struct plane *plane = &grouping->planes[grouping->plane_count++];
            plane->instance = instances[i];
            plane->frame = &instances[i]->frames[f];
            plane->instance_index = i;
            plane->frame_index = f;
            snprintf(plane->acquisition_number, sizeof(plane->acquisition_number), "%d",
                     instances[i]->acquisition_number);
        }
    qsort(grouping->planes, (size_t)total, sizeof(*grouping->planes), compare_identity);
    return 0;
}

int
geometry_group(struct dicom_instance *const *instances, int32_t count,
               const struct geometry_limits *limits, struct geometry_series **series,
               struct dicom_fault *fault)
{
    *series = NULL;
    int error = check_one_series(instances, count, fault);
    if (error)
        return error;
    struct grouping grouping = {.limits = limits};
    struct geometry_series *result = calloc(1, sizeof(*result));
    error = result ? collect_planes(instances, count, &grouping) : -ENOMEM;
    if (!error && grouping.plane_count > 0)
        error = make_groups(&grouping);
    if (!error && grouping.group_count > 0)
        error = make_stacks(&grouping, result);
    free(grouping.groups);
    free(grouping.scratch);
    free(grouping.planes);
    if (error) {
        geometry_series_free(result);
        return fault_set(fault, error, "OUT_OF_MEMORY", NULL, NULL,
                         "There is not enough memory to order the series.");
    }
    *series = result;
    return 0;
}

void
geometry_series_free(struct geometry_series *series)
{
    if (!series)
        return;
    for (int32_t i = 0; i < series->stack_count; i++)
        free(series->stacks[i].planes);
    free(series->stacks);
    free(series);
}

void
geometry_voxel_from_mm(const struct geometry_stack *stack, const double mm[3], double voxel[3])
{
    double offset[3];
    for (int i = 0; i < 3; i++)
        offset[i] = mm[i] - stack->origin[i];
    for (int i = 0; i < 3; i++)
        voxel[i] = dot(offset, stack->axes + 3 * i) / stack->spacing[i];
}
