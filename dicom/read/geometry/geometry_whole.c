/*
 * geometry_whole.c - checks for missing slices that leave no gap: see "Whole" in geometry.h.
 */
#include "base/error.h"
#include "dicom/read/geometry/geometry_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int
compare_integer(const void *left, const void *right)
{
    const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

/* Returns how many of some sorted numbers are less than `value`. */
static int32_t
numbers_below(const int32_t *sorted, int32_t count, int64_t value)
{
    int32_t low = 0, high = count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns how many of some sorted numbers equal `value`. */
static int32_t
numbers_of(const int32_t *sorted, int32_t count, int32_t value)
{
    return numbers_below(sorted, count, value + INT64_C(1)) - numbers_below(sorted, count, value);
}

/* ---- collecting ---- */

/* Returns whether the plane is a separate file. */
static bool
is_single(const struct plane *plane)
{
    return plane->instance->frame_count == 1;
}

/* Collects counts. Images of one position that are not distinguished count once. Of excluded
 * frames, the scanner may have counted a scout, but not a duplicate. */
static void
gather_counts(struct grouping *grouping, const struct group *group)
{
    const bool placed = group->excluded == CODE_NONE && geometry_is_placed(group);
    double last = -INFINITY;
    for (int32_t i = 0; i < group->count && group->excluded != CODE_DUPLICATE_POSITION; i++) {
        const struct plane *plane = &group->planes[i];
        const struct dicom_instance *instance = plane->instance;
        if (!is_single(plane) || (placed && plane->position - last <= POSITION_FLOOR_MM))
            continue;
        last = plane->position;
        if (group->excluded == CODE_NONE) {
            grouping->announced[grouping->announced_count++] = instance->images_in_acquisition;
            continue;
        }
        grouping->excluded_announced[grouping->excluded_count] = instance->images_in_acquisition;
        grouping->excluded_expected[grouping->excluded_count++] = instance->expected_instances;
    }
}

static int
gather_numbers(struct grouping *grouping)
{
    const size_t count = (size_t)grouping->instance_count, room = (size_t)grouping->plane_count + 1;
    grouping->numbers = calloc(count + 1 + 3 * room, sizeof(*grouping->numbers));
    if (!grouping->numbers)
        return -ENOMEM;
    grouping->announced = grouping->numbers + count + 1;
    grouping->excluded_announced = grouping->announced + room;
    grouping->excluded_expected = grouping->excluded_announced + room;
    for (int32_t i = 0; i < grouping->instance_count; i++)
        grouping->numbers[i] = grouping->instances[i]->instance_number;
    for (int32_t i = 0; i < grouping->group_count; i++)
        gather_counts(grouping, &grouping->groups[i]);
    const size_t images = (size_t)grouping->announced_count, excluded = (size_t)grouping->excluded_count;
    qsort(grouping->numbers, count, sizeof(int32_t), compare_integer);
    qsort(grouping->announced, images, sizeof(int32_t), compare_integer);
    qsort(grouping->excluded_announced, excluded, sizeof(int32_t), compare_integer);
    qsort(grouping->excluded_expected, excluded, sizeof(int32_t), compare_integer);
    return 0;
}

static int
compare_neighbours(const void *left, const void *right)
{
    const struct neighbour *a = left, *b = right;
    const int order = (a->orientation > b->orientation) - (a->orientation < b->orientation);
    if (order || a->position == b->position)
        return order ? order : geometry_compare_identity(a->plane, b->plane);
    return a->position > b->position ? 1 : -1;
}

/* Collects derived frames of a series with originals, with their positions along the normals. */
static int
gather_neighbours(struct grouping *grouping)
{
    const int32_t excluded = grouping->plane_count - grouping->image_count;
    grouping->neighbours = calloc((size_t)excluded + 1, sizeof(*grouping->neighbours));
    if (!grouping->neighbours)
        return -ENOMEM;
    int32_t k = -1;
    for (int32_t i = grouping->image_count; i < grouping->plane_count; i++) {
        const struct plane *plane = &grouping->planes[i];
        if (plane->frame->excluded != CODE_NONE || !plane->frame->has_position || !plane->frame->has_orientation)
            continue;
        k = geometry_find_orientation(grouping, plane->frame, k);
        if (k < 0)
            continue;
        double normal[3];
        geometry_normal(grouping->orientations[k]->orientation, normal);
        grouping->neighbours[grouping->neighbour_count++] =
            (struct neighbour){k, geometry_dot(normal, plane->frame->position), plane};
    }
    qsort(grouping->neighbours, (size_t)grouping->neighbour_count, sizeof(*grouping->neighbours), compare_neighbours);
    return 0;
}

int
geometry_gather_evidence(struct grouping *grouping)
{
    int rc = gather_numbers(grouping);
    if (!rc)
        rc = geometry_sort_parts(grouping);
    if (!rc)
        rc = gather_neighbours(grouping);
    if (!rc)
        rc = geometry_count_times(grouping);
    if (!rc)
        rc = geometry_compare_siblings(grouping);
    if (!rc)
        geometry_find_pieces(grouping);
    return rc;
}

/* ---- other stacks ---- */

/* Returns the group of a plane. */
static const struct group *
find_group(const struct grouping *grouping, const struct plane *plane)
{
    const struct group *group = grouping->groups;
    while (plane < group->planes || plane >= group->planes + group->count)
        group++;
    return group;
}

static bool
check_siblings(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    if (group->lacking == 0)
        return false;
    const struct group *other = find_group(grouping, group->lacks);
    char in_turn[80] = "";
    if (other->lacking > 0)
        snprintf(in_turn, sizeof(in_turn), " That one in turn lacks %d: it has no slice at %.4g mm.", other->lacking,
                 other->lacks->position);
    geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, group->lacks, NULL,
                    "Stack \"%s\" lacks %d of the slices that other stacks have: it has no slice at %.4g "
                    "mm along the normal, the position of %s of stack \"%s\".%s",
                    group->name, group->lacking, group->lacks->position, geometry_plane_name(group->lacks), other->name,
                    in_turn);
    return true;
}

/* Returns a derived frame within `reach` of a position and of the same size as `plane`, or NULL. */
static const struct plane *
find_neighbour(const struct grouping *grouping, const struct plane *plane, double position, double reach)
{
    int32_t low = 0, high = grouping->neighbour_count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        const struct neighbour *b = &grouping->neighbours[middle];
        if (b->orientation < plane->orientation ||
            (b->orientation == plane->orientation && b->position < position - reach))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < grouping->neighbour_count; low++) {
        const struct neighbour *b = &grouping->neighbours[low];
        if (b->orientation != plane->orientation || b->position > position + reach)
            break;
        if (b->plane->instance->rows == plane->instance->rows &&
            b->plane->instance->columns == plane->instance->columns)
            return b->plane;
    }
    return NULL;
}

/* Checks for a derived frame where the stack's next plane would be. */
static bool
check_derived_neighbours(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    const struct plane *first = &group->planes[0], *last = &group->planes[group->count - 1];
    if (group->count < 2 || grouping->neighbour_count == 0)
        return false;
    const double step = (last->position - first->position) / (group->count - 1);
    const double reach = fmax(step / 10, POSITION_FLOOR_MM);
    const struct plane *found = find_neighbour(grouping, first, first->position - step, reach);
    if (!found)
        found = find_neighbour(grouping, first, last->position + step, reach);
    if (!found)
        return false;
    geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, found, NULL,
                    "%s is at the position of the next slice. It is derived, and the original is missing.",
                    geometry_plane_name(found));
    return true;
}

/* ---- instance numbers ---- */

static int64_t
number_step(const struct group *group, int32_t i)
{
    return (int64_t)group->planes[i + 1].instance->instance_number - group->planes[i].instance->instance_number;
}

/* Returns whether the numbers follow the positions in equal steps. */
static bool
is_numbered_evenly(const struct group *group)
{
    const int64_t step = group->count > 1 ? number_step(group, 0) : 0;
    if (step == 0)
        return false;
    for (int32_t i = 1; i + 1 < group->count; i++)
        if (number_step(group, i) != step)
            return false;
    return true;
}

/* ---- announced numbers ---- */

/* Returns whether all announced images are present. Only some scanners count a scout, so
 * excluded frames count only if they make up the exact number. */
static bool
are_all(int32_t images, int32_t excluded, int32_t announced)
{
    return images >= announced || images + excluded == announced;
}

static int32_t
count_excluded(const struct grouping *grouping, int32_t announced)
{
    return numbers_of(grouping->excluded_announced, grouping->excluded_count, announced);
}

static bool
check_acquisition(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    int32_t last = 0;
    for (int32_t i = 0; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        const int32_t announced = plane->instance->images_in_acquisition;
        if (!is_single(plane) || announced <= 1 || announced == last)
            continue;
        last = announced;
        const int32_t there = numbers_of(grouping->announced, grouping->announced_count, announced);
        if (are_all(there, count_excluded(grouping, announced), announced))
            continue;
        geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, plane, NULL,
                        "There are %d of the %d images that Images in Acquisition (0020,1002) of %s announces.", there,
                        announced, geometry_plane_name(plane));
        return true;
    }
    return false;
}

/* Returns whether Images in Acquisition explains the number of images. It may count the images
 * of one time, which are then in the stack. Or it counts those of all times, which are then in
 * this stack and its siblings. */
static bool
has_all_announced(const struct grouping *grouping, const struct group *group, int32_t announced, int32_t expected)
{
    if (announced <= 1)
        return announced == 1;
    const int32_t there = grouping->announced_count, excluded = count_excluded(grouping, announced);
    if ((there == announced || there + excluded == announced) && group->stacks_of_grid >= expected / announced)
        return (int64_t)group->stacks_of_grid * group->count == there;
    return (group->count == announced || group->count + excluded == announced) && !group->varies &&
           is_numbered_evenly(group);
}

static bool
check_series_count(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    const struct plane *plane = &group->planes[0];
    const int32_t expected = plane->instance->expected_instances;
    const int32_t there = grouping->announced_count;
    const int32_t excluded = numbers_of(grouping->excluded_expected, grouping->excluded_count, expected);
    if (!is_single(plane) || are_all(there, excluded, expected) ||
        has_all_announced(grouping, group, plane->instance->images_in_acquisition, expected))
        return false;
    geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, plane, NULL, "There are %d of the %d images that %s announces.",
                    there, expected, geometry_plane_name(plane));
    return true;
}

/* ---- numbers of other volumes, and of no file ---- */

/* Returns the step of at least half of the numbers along the stack, or 0. */
static int64_t
usual_step(const struct grouping *grouping, const struct group *group)
{
    const int32_t steps = group->count - 1;
    for (int32_t i = 0; i < steps; i++)
        grouping->scratch[i] = (double)number_step(group, i);
    geometry_sort_numbers(grouping->scratch, steps);
    const int64_t usual = (int64_t)grouping->scratch[steps / 2];
    int32_t count = 0;
    for (int32_t i = 0; i < steps; i++)
        count += number_step(group, i) == usual;
    return 2 * count >= steps ? usual : 0;
}

/* Returns whether numbers with the usual step `usual` continue in another volume. Numbers run
 * slice by slice through all volumes, or volume by volume. */
static bool
changes_volume(int64_t step, int64_t usual, int32_t planes)
{
    if (step == usual || usual == 0)
        return false;
    if (usual == 1 || usual == -1)
        return (step - usual) % planes == 0;
    return (step > 0) == (usual > 0) && step % usual != 0;
}

/* Returns whether the numbers, minus those of one volume in this direction, are all a whole
 * number of volumes apart. */
static bool
are_of_volumes(const struct group *group, int64_t direction)
{
    bool several = false;
    for (int32_t i = 0; i + 1 < group->count; i++) {
        const int64_t jump = number_step(group, i) - direction;
        if (jump % group->count != 0)
            return false;
        several |= jump != 0;
    }
    return several;
}

/* Returns whether the numbers are those of several volumes, alternating or at random. */
static bool
mixes_volumes(const struct group *group)
{
    const int32_t steps = group->count - 1;
    const int64_t range =
        (int64_t)group->planes[steps].instance->instance_number - group->planes[0].instance->instance_number;
    if (steps < 2 || is_numbered_evenly(group))
        return false;
    if (are_of_volumes(group, 1) || are_of_volumes(group, -1))
        return true;
    /* For some number of volumes, each number is among those of its slice, and not always at the
     * same place. */
    for (int64_t volumes = range / steps - 1; volumes <= range / steps + 1; volumes++) {
        int64_t place = 0, low = 0, high = 0;
        for (int32_t i = 0; i < steps; i++) {
            place += number_step(group, i) - volumes;
            low = place < low ? place : low;
            high = place > high ? place : high;
        }
        const int64_t size = volumes < 0 ? -volumes : volumes;
        if (size >= 2 && high > low && high - low < size)
            return true;
    }
    return false;
}

static bool
refuse_numbers(struct verdict *verdict, const struct plane *plane, const char *side, int64_t lost)
{
    geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, plane, NULL,
                    "Instance Number (0020,0013) follows the slices, and no file of the series has "
                    "the %lld %s the %d of %s.",
                    (long long)lost, side, plane->instance->instance_number, geometry_plane_name(plane));
    return true;
}

/* Checks for a few numbers, before or after those of the stack, that belong to no file. The
 * stack's numbers must be consecutive. */
static bool
check_numbers_around(struct verdict *verdict, const struct grouping *grouping, const struct group *group,
                     bool descending)
{
    const struct plane *ends[2] = {&group->planes[0], &group->planes[group->count - 1]};
    const struct plane *first = ends[descending], *last = ends[!descending];
    const int64_t low = first->instance->instance_number, high = last->instance->instance_number;
    const int32_t below = numbers_below(grouping->numbers, grouping->instance_count, low);
    const int32_t above = numbers_below(grouping->numbers, grouping->instance_count, high + 1);
    const int64_t before = below > 0 && grouping->numbers[below - 1] > 0 ? grouping->numbers[below - 1] : 0;
    const int64_t after = above < grouping->instance_count ? grouping->numbers[above] : high + 1;
    const int64_t few = group->count >= 20 ? group->count / 10 : 1;
    /* Slices that other stacks lack are reported there. */
    const int64_t others = group->lost_of_grid;
    if (low - before - 1 > others && low - before - 1 <= few)
        return refuse_numbers(verdict, first, "before", low - before - 1);
    if (after - high - 1 > others && after - high - 1 <= few)
        return refuse_numbers(verdict, last, "after", after - high - 1);
    return false;
}

/* Returns whether the slices of an uneven stack are where their numbers put them, in equal
 * steps, and some numbers are missing. */
static bool
is_uneven_by_numbers(const struct group *group)
{
    const int32_t last = group->count - 1;
    const double range =
        (double)group->planes[last].instance->instance_number - group->planes[0].instance->instance_number;
    const double step = (group->planes[last].position - group->planes[0].position) / range;
    bool lacks = false;
    if (range == 0 || is_numbered_evenly(group))
        return false;
    for (int32_t i = 0; i < last; i++) {
        const double distance = group->planes[i + 1].position - group->planes[i].position;
        const double expected = step * (double)number_step(group, i);
        if (fabs(distance - expected) > fmax(fabs(step) / 10, POSITION_FLOOR_MM))
            return false;
        lacks |= llabs(number_step(group, i)) > 1;
    }
    return lacks;
}

/* Returns whether the stack consists of files that the series does not number completely. If it
 * has each Instance Number from 1, or 0, to the largest once, then no file is missing. */
static bool
has_gaps_in_numbers(const struct grouping *grouping, const struct group *group)
{
    const int32_t *numbers = grouping->numbers, count = grouping->instance_count;
    for (int32_t i = 0; i < group->count; i++)
        if (!is_single(&group->planes[i]))
            return false;
    bool complete = count > 1 && (numbers[0] == 0 || numbers[0] == 1);
    for (int32_t i = 1; i < count && complete; i++)
        complete = numbers[i] == numbers[i - 1] + 1;
    return group->count > 1 && !complete;
}

/* Checks for the remains of several volumes, which look like one except for their numbers. */
static bool
check_mixed_numbers(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    if (!group->alone || !has_gaps_in_numbers(grouping, group) || is_uneven_by_numbers(group))
        return false;
    const int64_t usual = usual_step(grouping, group);
    for (int32_t i = 0; i + 1 < group->count; i++) {
        if (!changes_volume(number_step(group, i), usual, group->count))
            continue;
        const struct plane *a = &group->planes[i], *b = a + 1;
        geometry_refuse(verdict, CODE_VOLUMES_MIXED, a, b,
                        "From %s to %s Instance Number (0020,0013) changes from %d to %d, as from "
                        "one volume to another, and both lack slices.",
                        geometry_plane_name(a), geometry_plane_name(b), a->instance->instance_number,
                        b->instance->instance_number);
        return true;
    }
    if (!mixes_volumes(group))
        return false;
    geometry_refuse(verdict, CODE_VOLUMES_MIXED, &group->planes[0], &group->planes[1],
                    "The Instance Numbers (0020,0013) along the stack are those of several "
                    "volumes, and all lack slices.");
    return true;
}

static bool
check_numbers(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    if (!has_gaps_in_numbers(grouping, group))
        return false;
    if (is_uneven_by_numbers(group)) {
        const struct plane *a = &group->planes[0], *b = &group->planes[group->count - 1];
        geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, a, b,
                        "The distances of the slices follow their Instance Numbers (0020,0013), "
                        "and no slice has some numbers between the %d of %s and the %d of %s.",
                        a->instance->instance_number, geometry_plane_name(a), b->instance->instance_number,
                        geometry_plane_name(b));
        return true;
    }
    const int64_t usual = usual_step(grouping, group);
    return (usual == 1 || usual == -1) && is_numbered_evenly(group) &&
           check_numbers_around(verdict, grouping, group, usual < 0);
}

/* ---- every second slice ---- */

/* Returns whether the numbers follow the slices evenly, and the series lacks most of the numbers
 * between them. */
static bool
lacks_numbers_between(const struct grouping *grouping, const struct group *group)
{
    if (!is_numbered_evenly(group))
        return false;
    const int64_t a = group->planes[0].instance->instance_number;
    const int64_t b = group->planes[group->count - 1].instance->instance_number;
    const int64_t low = a < b ? a : b, high = a < b ? b : a;
    const int32_t there = numbers_below(grouping->numbers, grouping->instance_count, high + 1) -
                          numbers_below(grouping->numbers, grouping->instance_count, low);
    return 10 * (int64_t)there <= 6 * (high - low + 1);
}

/* Checks for a stack whose slices are regularly further apart than they were acquired. */
static bool
check_thinned(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    const struct plane *first = &group->planes[0], *last = &group->planes[group->count - 1];
    if (group->count < 3)
        return false;
    const double step = (last->position - first->position) / (group->count - 1);
    const double thickness = first->frame->slice_thickness;
    const double distance = first->frame->spacing_between_slices;
    const double ratio = distance > 0 ? step / distance : 0;
    /* Reformats keep the distance of their source. */
    if (!first->frame->derived && ratio >= 1.5 && distance >= thickness / 2 && fabs(ratio - round(ratio)) <= 0.02) {
        geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, first, NULL,
                        "The slices are %.4g mm apart, %d times Spacing Between Slices (0018,0088) of %s, %.4g mm.",
                        step, (int)fmin(round(ratio), 1000), geometry_plane_name(first), distance);
        return true;
    }
    if (thickness <= 0 || step < 1.5 * thickness || !lacks_numbers_between(grouping, group))
        return false;
    geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, first, last,
                    "The slices are %.4g mm apart and %.4g mm thick, and the series lacks most Instance Numbers "
                    "(0020,0013) between the %d of %s and the %d of %s.",
                    step, thickness, first->instance->instance_number, geometry_plane_name(first),
                    last->instance->instance_number, geometry_plane_name(last));
    return true;
}

/* Checks for slices of several runs in time that are not a regular stack, neither together nor
 * each. */
static bool
check_passes(struct verdict *verdict, const struct group *group)
{
    for (int32_t i = 0; group->mixes_runs && i + 1 < group->count; i++) {
        const struct plane *a = &group->planes[i], *b = a + 1;
        if (a->scan == b->scan)
            continue;
        geometry_refuse(verdict, CODE_VOLUMES_MIXED, a, b,
                        "The slices overlap or are unevenly spaced, and %s and %s were acquired in two "
                        "passes that cover the same region: parts of several volumes.",
                        geometry_plane_name(a), geometry_plane_name(b));
        return true;
    }
    return false;
}

/* Reports the first finding. A mixture, which cannot be accepted, precedes missing slices. */
void
geometry_check_whole(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    if (group->piece_of) {
        geometry_refuse(verdict, CODE_VOLUMES_MIXED, &group->planes[0], group->piece_of,
                        "Stacks \"%s\" and \"%s\" share no position and together are one regular "
                        "stack: parts of two volumes, or one volume whose headers differ in %s.",
                        group->name, find_group(grouping, group->piece_of)->name, group->split_by);
        return;
    }
    if (check_passes(verdict, group) || check_mixed_numbers(verdict, grouping, group) ||
        grouping->limits->allow_missing)
        return;
    (void)(geometry_check_parts(verdict, grouping, group) || geometry_check_locations(verdict, grouping, group) ||
           check_siblings(verdict, grouping, group) || geometry_check_times(verdict, grouping, group) ||
           check_derived_neighbours(verdict, grouping, group) || check_acquisition(verdict, grouping, group) ||
           check_series_count(verdict, grouping, group) || check_numbers(verdict, grouping, group) ||
           check_thinned(verdict, grouping, group));
}
