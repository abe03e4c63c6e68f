/*
 * geometry_groups.c - splits planes into groups by the attributes that distinguish them.
 */
#include "dicom/read/geometry/geometry_internal.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Planes closer than this in each direction cosine are parallel. Cosines are decimal strings,
 * and some scanners write an orientation per slice that drifts. */
#define ORIENTATION_TOLERANCE 4e-3

/* Keys that can split stacks of one orientation, in the order in which they are tried. */
enum discriminator {

#define KEY(id, ...) BY_##id,
#include "dicom/read/image/keys.def"
#undef KEY
    DISCRIMINATORS
};

/* Member, rule and messages of a discriminator. */
static const struct discriminator_row {
    size_t offset; /* of its text in struct dicom_frame */

    enum { VOLUMES, REPEATS, SCANS } rule;

    double tolerance; /* relative */
    const char *prefix, *what;
} discriminators[DISCRIMINATORS] = {

#define KEY(id, rule, tolerance, prefix, what) {offsetof(struct dicom_frame, id), rule, tolerance, prefix, what},
#include "dicom/read/image/keys.def"
#undef KEY
};

static const char *
key_of(const struct plane *plane, enum discriminator discriminator)
{
    return (const char *)plane->frame + discriminators[discriminator].offset;
}

const char *
geometry_difference(const struct plane *a, const struct plane *b)
{
    for (int d = 0; d < DISCRIMINATORS; d++)
        if (strcmp(key_of(a, (enum discriminator)d), key_of(b, (enum discriminator)d)) != 0)
            return discriminators[d].what;
    return NULL;
}

static int
compare_orientation(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    const int order = (a->orientation > b->orientation) - (a->orientation < b->orientation);
    return order ? order : geometry_compare_identity(left, right);
}

/* Sorts "b 800" before "b 1000". */
static int
compare_key(const void *left, const void *right, void *context)
{
    const enum discriminator *discriminator = context;
    const int order = strverscmp(key_of(left, *discriminator), key_of(right, *discriminator));
    return order ? order : geometry_compare_identity(left, right);
}

static bool
same_orientation(const struct dicom_frame *a, const struct dicom_frame *b)
{
    if (!a->has_orientation || !b->has_orientation)
        return a->has_orientation == b->has_orientation;
    for (int i = 0; i < 6; i++)
        if (fabs(a->orientation[i] - b->orientation[i]) > ORIENTATION_TOLERANCE)
            return false;
    return true;
}

int32_t
geometry_find_orientation(const struct grouping *grouping, const struct dicom_frame *frame, int32_t hint)
{
    if (hint >= 0 && same_orientation(frame, grouping->orientations[hint]))
        return hint;
    for (int32_t k = 0; k < grouping->orientation_count; k++)
        if (same_orientation(frame, grouping->orientations[k]))
            return k;
    return -1;
}

/* Numbers the orientations, in the planes' order. Returns 0, -ENOMEM or -E2BIG. */
static int
number_orientations(struct grouping *grouping)
{
    grouping->orientations = calloc(LIMIT_STACKS, sizeof(*grouping->orientations));
    if (!grouping->orientations)
        return -ENOMEM;
    int32_t k = -1;
    for (int32_t i = 0; i < grouping->image_count; i++) {
        struct plane *plane = &grouping->planes[i];
        k = geometry_find_orientation(grouping, plane->frame, k);
        if (k < 0) {
            if (grouping->orientation_count == LIMIT_STACKS)
                return -E2BIG;
            k = grouping->orientation_count++;
            grouping->orientations[k] = plane->frame;
        }
        plane->orientation = k;
    }
    return 0;
}

/* Anatomical plane closest to an orientation, for messages. */
enum plane_name { NO_PLANE, AXIAL, CORONAL, SAGITTAL, PLANE_NAMES };

static const char *const plane_names[PLANE_NAMES] = {"no orientation", "axial", "coronal", "sagittal"};

static enum plane_name
plane_name_of(const struct dicom_frame *frame)
{
    if (!frame->has_orientation)
        return NO_PLANE;
    double normal[3];
    geometry_normal(frame->orientation, normal);
    if (fabs(normal[2]) >= fabs(normal[0]) && fabs(normal[2]) >= fabs(normal[1]))
        return AXIAL;
    return fabs(normal[1]) >= fabs(normal[0]) ? CORONAL : SAGITTAL;
}

/* Returns whether two keys are texts that differ only in their last number, within the
 * tolerance. */
static bool
is_near(const char *a, const char *b, double tolerance)
{
    size_t same = 0, number;
    while (a[same] && a[same] == b[same])
        same++;
    for (number = same; number > 0 && strchr("0123456789.-", a[number - 1]);)
        number--;
    char *rest_a, *rest_b;
    const double x = strtod(a + number, &rest_a), y = strtod(b + number, &rest_b);
    return rest_a > a + number && rest_b > b + number && strcmp(rest_a, rest_b) == 0 &&
           fabs(x - y) <= tolerance * fmax(fabs(x), fabs(y));
}

/* Returns the first plane after `start` whose key differs. The planes must be sorted by key. */
static int32_t
end_of_exact_key(const struct group *group, int32_t start, enum discriminator discriminator)
{
    int32_t end = start + 1;
    while (end < group->count &&
           strcmp(key_of(&group->planes[start], discriminator), key_of(&group->planes[end], discriminator)) == 0)
        end++;
    return end;
}

/* Returns the same, but merges keys within the tolerance if no position of their planes repeats. */
static int32_t
end_of_key(struct grouping *grouping, const struct group *group, int32_t start, enum discriminator discriminator)
{
    const double tolerance = discriminators[discriminator].tolerance;
    const char *key = key_of(&group->planes[start], discriminator);
    int32_t end = end_of_exact_key(group, start, discriminator);
    while (tolerance > 0 && end < group->count && is_near(key, key_of(&group->planes[end], discriminator), tolerance)) {
        const int32_t next = end_of_exact_key(group, end, discriminator);
        if (geometry_has_repeats(grouping, group->planes + start, next - start))
            break;
        end = next;
    }
    return end;
}

static bool
is_one_key(const struct group *group, enum discriminator discriminator)
{
    for (int32_t i = 1; i < group->count; i++)
        if (strcmp(key_of(&group->planes[0], discriminator), key_of(&group->planes[i], discriminator)) != 0)
            return false;
    return true;
}

/* Returns whether a key splits: see "Stacks" in geometry.h. The planes must be sorted by this
 * discriminator's key, of at least two values. */
static bool
should_split(struct grouping *grouping, struct group *group, enum discriminator discriminator)
{
    const int rule = discriminators[discriminator].rule;
    int32_t values = 0, exact_values = 0, repeats_after = 0;
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_key(grouping, group, start, discriminator);
        for (int32_t i = start; i < end && rule == SCANS; i++)
            group->planes[i].scan = values;
        values++;
        repeats_after += end - start - geometry_find_spread(grouping, group->planes + start, end - start).positions;
    }
    for (int32_t start = 0; start < group->count; start = end_of_exact_key(group, start, discriminator))
        exact_values++;
    if (rule == VOLUMES && group->count >= 2 * (int64_t)exact_values)
        return true;
    if (rule == SCANS && (geometry_has_main_scan(grouping, group) || geometry_are_scans(grouping, group)))
        return true;
    const struct position_spread spread = geometry_find_spread(grouping, group->planes, group->count);
    return repeats_after < group->count - spread.positions && 2 * spread.repeated >= spread.positions &&
           (int64_t)values * spread.positions <= 2 * (int64_t)group->count;
}

/* Splits by this discriminator if necessary, and each part by the following ones. The depth of
 * recursion is at most the number of discriminators. */
static int
split(struct grouping *grouping, struct group *group, enum discriminator discriminator)
{
    while (discriminator < DISCRIMINATORS && is_one_key(group, discriminator))
        discriminator++;
    if (discriminator == DISCRIMINATORS)
        return geometry_add_scans(grouping, group);
    qsort_r(group->planes, (size_t)group->count, sizeof(*group->planes), compare_key, &discriminator);
    if (end_of_key(grouping, group, 0, discriminator) == group->count)
        return split(grouping, group, discriminator + 1);
    if (!should_split(grouping, group, discriminator)) {
        group->varies |= discriminator < BY_phase;
        return split(grouping, group, discriminator + 1);
    }
    const struct discriminator_row *row = &discriminators[discriminator];
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_key(grouping, group, start, discriminator);
        struct group part = *group;
        part.planes += start;
        part.count = end - start;
        geometry_extend_name(&part, row->prefix, key_of(&part.planes[0], discriminator), row->what);
        int rc = split(grouping, &part, discriminator + 1);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- orientations ---- */

int
geometry_make_groups(struct grouping *grouping)
{
    int rc = number_orientations(grouping);
    if (rc)
        return rc;
    struct plane *planes = grouping->planes, *end = planes + grouping->image_count;
    qsort(planes, (size_t)grouping->image_count, sizeof(*planes), compare_orientation);
    int32_t totals[PLANE_NAMES] = {0}, ranks[PLANE_NAMES] = {0};
    for (int32_t k = 0; k < grouping->orientation_count; k++)
        totals[plane_name_of(grouping->orientations[k])]++;
    while (planes < end && !rc) {
        struct group group = {.planes = planes};
        while (planes < end && planes->orientation == group.planes->orientation)
            planes++;
        group.count = (int32_t)(planes - group.planes);
        const struct dicom_frame *first = group.planes[0].frame;
        const bool placed = geometry_is_placed(&group);
        double normal[3] = {0, 0, 1};
        if (placed)
            geometry_normal(first->orientation, normal);
        for (int32_t i = 0; i < group.count; i++)
            group.planes[i].position = placed ? geometry_dot(normal, group.planes[i].frame->position) : (double)i;
        /* "axial", or "axial 2" if there are several */
        const enum plane_name name = plane_name_of(first);
        char text[64];
        snprintf(text, sizeof(text), totals[name] > 1 ? "%s %d" : "%s", plane_names[name], ++ranks[name]);
        if (grouping->orientation_count > 1)
            geometry_extend_name(&group, "", text, "Image Orientation (Patient) (0020,0037)");
        rc = split(grouping, &group, BY_echo);
    }
    return rc;
}
