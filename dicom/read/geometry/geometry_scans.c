/*
 * geometry_scans.c - splits volumes that share few positions, or none: by the values of a key of
 * SCANS, or by acquisition time. See "Stacks" in geometry.h.
 */
#include "dicom/read/geometry/geometry_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- positions ---- */

struct position_spread
geometry_find_spread(struct grouping *grouping, const struct plane *planes, int32_t count)
{
    struct position_spread spread = {0};
    double *sorted = grouping->scratch;
    for (int32_t i = 0; i < count; i++)
        sorted[i] = planes[i].position;
    geometry_sort_numbers(sorted, count);
    for (int32_t start = 0, end; start < count; start = end) {
        for (end = start; end < count && sorted[end] - sorted[start] <= POSITION_FLOOR_MM;)
            end++;
        spread.repeated += end - start > 1;
        sorted[spread.positions++] = sorted[start];
    }
    return spread;
}

bool
geometry_has_repeats(struct grouping *grouping, const struct plane *planes, int32_t count)
{
    return geometry_find_spread(grouping, planes, count).positions < count;
}

/* Extent of some planes along the normal: the first and last position, the number of positions,
 * and the number of those with several planes. */
struct scan_reach {
    double first, last;
    struct position_spread spread;
    double step; /* equal step of all neighbours; 0 if they differ */
    double grid; /* step of a grid that has all positions, with gaps; 0 if there is none */
};

/* Returns whether a distance is this number of steps. */
static bool
is_steps(double distance, double steps, double step)
{
    return fabs(distance - steps * step) <= fmax(step / 10, POSITION_FLOOR_MM);
}

static struct scan_reach
find_reach(struct grouping *grouping, const struct plane *planes, int32_t count)
{
    struct scan_reach reach = {.spread = geometry_find_spread(grouping, planes, count)};
    const double *sorted = grouping->scratch;
    const int32_t last = reach.spread.positions - 1;
    reach.first = sorted[0];
    reach.last = sorted[last];
    if (last < 2)
        return reach;
    reach.step = (reach.last - reach.first) / last;
    reach.grid = reach.step;
    for (int32_t i = 0; i < last; i++)
        reach.grid = fmin(reach.grid, sorted[i + 1] - sorted[i]);
    const double shortest = reach.grid;
    for (int32_t i = 0; i < last; i++) {
        const double step = sorted[i + 1] - sorted[i];
        if (!is_steps(sorted[i + 1] - reach.first, i + 1, reach.step))
            reach.step = 0;
        if (!is_steps(step, round(step / shortest), shortest))
            reach.grid = 0;
    }
    return reach;
}

/* ---- scans ---- */

static int32_t
end_of_scan(const struct group *group, int32_t start)
{
    int32_t end = start + 1;
    while (end < group->count && group->planes[end].scan == group->planes[start].scan)
        end++;
    return end;
}

/* Returns whether all positions may be those of one stack of slices that only touch, with or
 * without gaps. */
static bool
may_be_one_stack(const struct scan_reach *all, const struct group *group)
{
    return all->grid > 0 && !geometry_slices_overlap(all->grid, group->planes);
}

/* The scans of a group: whether each is a regular stack, whether two interleave, their number,
 * and the number of their positions. */
struct scans {
    bool regular, cross;
    int32_t count, positions;
};

static struct scans
find_scans(struct grouping *grouping, const struct group *group)
{
    struct scans scans = {.regular = true};
    double first = 0, last = 0;
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_scan(group, start);
        const struct scan_reach reach = find_reach(grouping, group->planes + start, end - start);
        scans.regular = scans.regular && reach.step > POSITION_FLOOR_MM;
        scans.cross |= start > 0 && reach.first < last && reach.last > first;
        scans.positions += reach.spread.positions;
        scans.count++;
        first = reach.first;
        last = reach.last;
    }
    return scans;
}

bool
geometry_are_scans(struct grouping *grouping, struct group *group)
{
    const struct scans scans = find_scans(grouping, group);
    if (!scans.cross)
        return false;
    const struct scan_reach all = find_reach(grouping, group->planes, group->count);
    const bool mixed = !may_be_one_stack(&all, group);
    if (scans.regular && (mixed || scans.positions > all.spread.positions))
        return true;
    group->mixes_runs = (mixed || all.step <= 0) && group->count >= 2 * scans.count;
    return false;
}

/* Returns the first plane of a scan that has a plane at most positions, and never two, or -1. */
static int32_t
find_main_scan(struct grouping *grouping, const struct group *group, int32_t positions)
{
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_scan(group, start);
        if (2 * (end - start) > positions && end - start > 2 &&
            !geometry_has_repeats(grouping, group->planes + start, end - start))
            return start;
    }
    return -1;
}

bool
geometry_has_main_scan(struct grouping *grouping, const struct group *group)
{
    const int32_t positions = geometry_find_spread(grouping, group->planes, group->count).positions;
    return positions < group->count && find_main_scan(grouping, group, positions) >= 0;
}

/* ---- by time ---- */

/* Numbers the runs of planes between pauses longer than half of the longest pause. Returns their
 * number, or 0 if a plane has no acquisition time. */
static int32_t
number_runs(struct group *group)
{
    struct plane *planes = group->planes;
    for (int32_t i = 0; i < group->count; i++) {
        planes[i].order = geometry_seconds(planes[i].frame->acquired);
        if (!isfinite(planes[i].order))
            return 0;
    }
    qsort(planes, (size_t)group->count, sizeof(*planes), geometry_compare_order);
    double longest = ORDER_EPSILON;
    for (int32_t i = 1; i < group->count; i++)
        longest = fmax(longest, planes[i].order - planes[i - 1].order);
    planes[0].scan = 0;
    for (int32_t i = 1; i < group->count; i++)
        planes[i].scan = planes[i - 1].scan + (planes[i].order - planes[i - 1].order > longest / 2);
    return planes[group->count - 1].scan + 1;
}

/* Returns whether one run has most positions, once each, and every other run is at one position
 * (bolus tracking). */
static bool
has_monitors(struct grouping *grouping, const struct group *group, int32_t positions)
{
    const int32_t main = find_main_scan(grouping, group, positions);
    for (int32_t start = 0, end; start < group->count && main >= 0; start = end) {
        end = end_of_scan(group, start);
        if (start != main && geometry_find_spread(grouping, group->planes + start, end - start).positions > 1)
            return false;
    }
    return main >= 0;
}

static int
add_each_scan(struct grouping *grouping, const struct group *group)
{
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_scan(group, start);
        struct group part = *group;
        char number[16];
        snprintf(number, sizeof(number), "%d", group->planes[start].scan + 1);
        part.planes += start;
        part.count = end - start;
        geometry_extend_name(&part, "pass ", number, "Acquisition Date and Time (0008,002A)");
        int rc = geometry_add_volumes(grouping, &part);
        if (rc)
            return rc;
    }
    return 0;
}

int
geometry_add_scans(struct grouping *grouping, struct group *group)
{
    if (!geometry_is_placed(group) || group->mixes_runs)
        return geometry_add_volumes(grouping, group);
    const struct scan_reach all = find_reach(grouping, group->planes, group->count);
    const int32_t positions = all.spread.positions, repeated = all.spread.repeated;
    const bool monitored = repeated > 0 && 2 * repeated < positions;
    const bool mixed = positions > 2 && !may_be_one_stack(&all, group);
    const bool uneven = positions > 2 && all.step <= 0;
    if ((!monitored && !mixed && !uneven) || number_runs(group) < 2)
        return geometry_add_volumes(grouping, group);
    if (monitored && has_monitors(grouping, group, positions))
        return add_each_scan(grouping, group);
    const struct scans scans = find_scans(grouping, group);
    if (mixed && scans.cross && scans.regular)
        return add_each_scan(grouping, group);
    group->mixes_runs = (mixed || uneven) && scans.cross;
    return geometry_add_volumes(grouping, group);
}
