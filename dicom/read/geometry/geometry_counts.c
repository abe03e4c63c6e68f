/* geometry_counts.c - checks announced slice locations, and parts of multi-frame images: see
 * "Whole" in geometry.h. */
#include "dicom/read/geometry/geometry_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- concatenations ---- */

static int
compare_part(const void *left, const void *right)
{
    const struct dicom_instance *a = *(const struct dicom_instance *const *)left;
    const struct dicom_instance *b = *(const struct dicom_instance *const *)right;
    const int order = strcmp(a->concatenation_uid, b->concatenation_uid);
    return order ? order
                 : (a->concatenation_number > b->concatenation_number) -
                       (a->concatenation_number < b->concatenation_number);
}

int
geometry_sort_parts(struct grouping *grouping)
{
    grouping->parts = calloc((size_t)grouping->instance_count + 1, sizeof(*grouping->parts));
    if (!grouping->parts)
        return -ENOMEM;
    for (int32_t i = 0; i < grouping->instance_count; i++)
        if (grouping->instances[i]->concatenation_uid[0])
            grouping->parts[grouping->part_count++] = grouping->instances[i];
    qsort(grouping->parts, (size_t)grouping->part_count, sizeof(*grouping->parts), compare_part);
    return 0;
}

/* Returns how many parts the concatenation of an instance has. Sets the number announced: the
 * total or, without one, the largest number. */
static int32_t
count_parts(const struct grouping *grouping, const struct dicom_instance *instance, int32_t *announced)
{
    const char *uid = instance->concatenation_uid;
    int32_t count = 0, last = 0, total = 0, low = 0, high = grouping->part_count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (strcmp(grouping->parts[middle]->concatenation_uid, uid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < grouping->part_count; low++) {
        const struct dicom_instance *part = grouping->parts[low];
        if (strcmp(part->concatenation_uid, uid) != 0)
            break;
        count += count == 0 || part->concatenation_number != last;
        last = part->concatenation_number;
        total = part->concatenation_total > total ? part->concatenation_total : total;
    }
    *announced = total > 0 ? total : last;
    return count;
}

bool
geometry_check_parts(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    const struct dicom_instance *last = NULL;
    for (int32_t i = 0; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        if (!plane->instance->concatenation_uid[0] ||
            (last && strcmp(last->concatenation_uid, plane->instance->concatenation_uid) == 0))
            continue;
        last = plane->instance;
        int32_t announced;
        const int32_t parts = count_parts(grouping, last, &announced);
        if (parts >= announced)
            continue;
        geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, plane, NULL,
                        "There are %d of the %d parts of the concatenation of %s (In-concatenation "
                        "Number (0020,9162) and Total Number (0020,9163)).",
                        parts, announced, geometry_plane_name(plane));
        return true;
    }
    /* Multi-frame files numbered consecutively from above 1: those before them are missing. Does
     * not apply to mosaics, which are complete. */
    const int32_t *numbers = grouping->numbers, count = grouping->instance_count;
    if (count < 2 || numbers[0] < 2 || numbers[0] > count + 1)
        return false;
    for (int32_t i = 0; i < count; i++)
        if (numbers[i] != numbers[0] + i || grouping->instances[i]->frame_count < 2 ||
            grouping->instances[i]->tile_columns > 0)
            return false;
    geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, &group->planes[0], NULL,
                    "The %d multi-frame files have the Instance Numbers (0020,0013) %d to %d. Number 1 is missing.",
                    count, numbers[0], numbers[count - 1]);
    return true;
}

/* ---- slice locations ---- */

/* Finds the largest count of the stack's original frames, per element. */
static const struct plane *
find_counts(const struct group *group, int32_t counts[DICOM_COUNTS])
{
    const struct plane *first = NULL;
    const struct dicom_instance *last = NULL;
    memset(counts, 0, DICOM_COUNTS * sizeof(*counts));
    for (int32_t i = 0; i < group->count; i++) {
        const struct plane *plane = &group->planes[i];
        if (plane->frame->derived || plane->instance == last)
            continue;
        last = plane->instance;
        first = first ? first : plane;
        for (int c = 0; c < DICOM_COUNTS; c++)
            counts[c] = last->counts[c] > counts[c] ? last->counts[c] : counts[c];
    }
    return first;
}

bool
geometry_check_locations(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    int32_t counts[DICOM_COUNTS];
    const struct plane *plane = find_counts(group, counts);
    if (!plane)
        return false;
    for (int c = 0; c < DICOM_COUNTS; c++) {
        /* Some scanners number the frames of all volumes as positions in one stack. */
        const int32_t there = c == DICOM_COUNT_stack_positions ? grouping->image_count : grouping->location_count;
        if (counts[c] <= there)
            continue;
        geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, plane, NULL,
                        "There are %d of the %d slice locations that %s of %s announces.", grouping->location_count,
                        counts[c], dicom_count_name((enum dicom_count)c), geometry_plane_name(plane));
        return true;
    }
    /* Counts must agree. With several orientations or grids they need not: an element may count
     * those of one stack or of all. */
    int first = -1;
    for (int c = 0; c < DICOM_COUNTS && grouping->grid_count == 1; c++) {
        if (c == DICOM_COUNT_stack_positions || counts[c] == 0 || first < 0 || counts[c] == counts[first]) {
            first = counts[c] && first < 0 ? c : first;
            continue;
        }
        geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, plane, NULL,
                        "%s announces %d slice locations by %s and %d by %s; there are %d.", geometry_plane_name(plane),
                        counts[first], dicom_count_name((enum dicom_count)first), counts[c],
                        dicom_count_name((enum dicom_count)c), grouping->location_count);
        return true;
    }
    return false;
}
