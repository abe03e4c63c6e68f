/* geometry_groups.c - which planes belong together, by what tells them apart. */
#include "dicom/read/geometry/geometry_internal.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Direction cosines are strings too; planes closer than this in every component are parallel. */
#define ORIENTATION_TOLERANCE 1e-3

/* What can set stacks of one orientation apart, in the order in which they are tried. */
enum discriminator {

#define KEY(id, ...) BY_##id,
#include "dicom/read/keys.def"
#undef KEY
    DISCRIMINATORS
};

/* How a discriminator is read, when it splits, and how people are told. */
static const struct discriminator_row {
    size_t offset; /* of its text in struct dicom_frame */

    enum { VOLUMES, REPEATS } rule;

    const char *prefix, *what;
} discriminators[DISCRIMINATORS] = {

#define KEY(id, rule, prefix, what) {offsetof(struct dicom_frame, id), rule, prefix, what},
#include "dicom/read/keys.def"
#undef KEY
};

static const char *
key_of(const struct plane *plane, enum discriminator discriminator)
{
    return (const char *)plane->frame + discriminators[discriminator].offset;
}

static int
compare_orientation(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    const int order = (a->orientation > b->orientation) - (a->orientation < b->orientation);
    return order ? order : geometry_compare_identity(left, right);
}

/* "b 800" before "b 1000". */
static int
compare_key(const void *left, const void *right, void *context)
{
    const enum discriminator *discriminator = context;
    const int order = strverscmp(key_of(left, *discriminator), key_of(right, *discriminator));
    return order ? order : geometry_compare_identity(left, right);
}

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
    geometry_normal(plane->frame->orientation, normal);
    if (fabs(normal[2]) >= fabs(normal[0]) && fabs(normal[2]) >= fabs(normal[1]))
        return "axial";
    return fabs(normal[1]) >= fabs(normal[0]) ? "coronal" : "sagittal";
}

static void
group_place(struct group *group)
{
    const bool placed = geometry_is_placed(group);
    double normal[3] = {0, 0, 1};
    if (placed)
        geometry_normal(group->planes[0].frame->orientation, normal);
    for (int32_t i = 0; i < group->count; i++)
        group->planes[i].position =
            placed ? dot(normal, group->planes[i].frame->position) : (double)i;
}

/* How many different positions some planes have. */
static int32_t
count_positions(struct grouping *grouping, const struct plane *planes, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        grouping->scratch[i] = planes[i].position;
    geometry_sort_numbers(grouping->scratch, count);
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
    if (discriminators[discriminator].rule == VOLUMES && group->count >= 2 * (int64_t)values)
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
    const char *key = key_of(&group->planes[0], discriminator);
    const size_t length = strlen(group->name);
    snprintf(group->name + length, sizeof(group->name) - length, "%s%s%s", length ? ", " : "",
             discriminators[discriminator].prefix, key[0] ? key : "none");
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

int
geometry_make_groups(struct grouping *grouping)
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
        group_place(&ranges[k]);
        if (orientations > 1)
            name_orientation(grouping, &ranges[k]);
    }
    int error = 0;
    for (int32_t k = 0; k < orientations && !error; k++)
        error = split(grouping, &ranges[k], BY_echo);
    free(ranges);
    return error;
}
