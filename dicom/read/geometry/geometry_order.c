/*
 * geometry_order.c - splits planes that no key distinguishes and whose positions repeat: by the
 * general rule, and by the newest of duplicates. See "Stacks" in geometry.h.
 */
#include "dicom/read/geometry/geometry_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Max number of frames in a file (dicom_peek). */
#define ORDER_FRAMES (1 << 18)

/* ---- attributes that may sort frames into volumes ---- */

static double
order_by_acquisition(const struct plane *plane)
{
    char *end;
    const double number = strtod(plane->frame->acquisition, &end);
    return end == plane->frame->acquisition || *end ? NAN : number;
}

static double
two_digits(const char *text, size_t at, size_t length)
{
    return at + 1 < length ? 10 * (text[at] - '0') + (text[at + 1] - '0') : 0;
}

double
geometry_seconds(const char *text)
{
    const size_t length = strspn(text, "0123456789"), date = length >= 8 ? 8 : 0;
    if (length < 2)
        return NAN;
    double seconds = 0;
    if (date)
        seconds =
            (((two_digits(text, 0, date) * 100 + two_digits(text, 2, date)) * 12 + two_digits(text, 4, date)) * 31 +
             two_digits(text, 6, date)) *
            86400;
    seconds += two_digits(text, date, length) * 3600 + two_digits(text, date + 2, length) * 60 +
               two_digits(text, date + 4, length);
    return seconds + (text[length] == '.' ? strtod(text + length, NULL) : 0);
}

static double
order_by_acquired(const struct plane *plane)
{
    return geometry_seconds(plane->frame->acquired);
}

static double
order_by_number(const struct plane *plane)
{
    return (double)plane->instance->instance_number * ORDER_FRAMES + plane->frame_index;
}

static double
order_by_content(const struct plane *plane)
{
    return geometry_seconds(plane->instance->content);
}

/* In the order in which they are tried. */
static const struct order_row {
    double (*of)(const struct plane *plane);
    bool counts; /* also slice by slice, each through all volumes */
    const char *what;
} orders[] = {
    {order_by_acquisition, false, "Acquisition Number (0020,0012)"},
    {order_by_acquired, false, "Acquisition Date and Time (0008,002A)"},
    {order_by_number, true, "Instance Number (0020,0013) or the order of the frames"},
    {order_by_content, false, "Content Date and Time (0008,0023)"},
};

int
geometry_compare_order(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    const int order = (a->order > b->order) - (a->order < b->order);
    return order ? order : geometry_compare_position(left, right);
}

/* ---- volume by volume ---- */

/* Runs of `size` consecutive planes. */
struct runs {
    const struct plane *planes;
    int32_t size, count;
};

static double
runs_first(const struct runs *runs, int32_t r)
{
    return runs->planes[(int64_t)r * runs->size].order;
}

static bool
is_volume_by_volume(const struct grouping *grouping, const struct group *group, int32_t places)
{
    const struct runs runs = {group->planes, places, group->count / places};
    /* Each run has every place once. */
    int32_t *marks = grouping->marks;
    memset(marks, 0, (size_t)places * sizeof(*marks));
    for (int32_t i = 0; i < places * runs.count; i++) {
        const int32_t run = i / places + 1, place = group->planes[i].place;
        if (marks[place] == run)
            return false;
        marks[place] = run;
    }
    /* Each run ends before the next begins, and no step within a run is long compared with those
     * between runs. Otherwise the remains of two volumes would pass as one. */
    double within = 0, between = INFINITY, shortest = INFINITY;
    for (int32_t i = 1; i < places * runs.count; i++) {
        const double step = group->planes[i].order - group->planes[i - 1].order;
        if (i % places == 0)
            between = fmin(between, step);
        else
            within = fmax(within, step);
    }
    if (!(between > 0 && within <= 2 * between))
        return false;
    /* Each place comes equally late in every run, to a quarter of a run. */
    for (int32_t r = 0; r < runs.count; r++) {
        const double last = group->planes[(int64_t)(r + 1) * places - 1].order;
        shortest = fmin(shortest, last - runs_first(&runs, r));
    }
    for (int32_t i = 0; i < places * runs.count; i++) {
        const struct plane *plane = &group->planes[i];
        const double late = plane->order - runs_first(&runs, i / places);
        if (i < places)
            grouping->scratch[plane->place] = late;
        else if (fabs(late - grouping->scratch[plane->place]) > shortest / 4 + ORDER_EPSILON)
            return false;
    }
    return true;
}

/* Returns whether the first number shows that the first slices of the volume are missing. Then the numbers follow the
 * positions, from one end to the other with one jump back, and do not begin at 0 or 1. */
static bool
begins_within_volume(const struct group *group, int32_t places)
{
    int32_t jumps = 0;
    if (group->planes[0].instance->instance_number <= 1 || places < 3)
        return false;
    for (int32_t i = 0; i + 1 < places; i++) {
        const int32_t step = abs(group->planes[i + 1].place - group->planes[i].place);
        jumps += step == places - 1;
        if (step != places - 1 && step != 1)
            return false;
    }
    return jumps == 1;
}

/* ---- slice by slice ---- */

/* Returns whether the planes come place by place, equally numbered and equally far apart. */
static bool
is_place_by_place(const struct group *group, int32_t places)
{
    const struct runs runs = {group->planes, group->count / places, places};
    const double apart = runs_first(&runs, 1) - runs_first(&runs, 0);
    for (int32_t i = 0; i < group->count; i++) {
        const struct plane *plane = &group->planes[i], *head = plane - i % runs.size;
        const double late = plane->order - head->order;
        if (plane->place != head->place || (i > 0 && plane->order <= plane[-1].order) ||
            fabs(late - (group->planes[i % runs.size].order - group->planes[0].order)) > 0.5)
            return false;
    }
    for (int32_t p = 1; p < places; p++)
        if (fabs(runs_first(&runs, p) - runs_first(&runs, p - 1) - apart) > 0.5)
            return false;
    return true;
}

/* ---- the general rule ---- */

/* Sorts the planes into complete volumes, one after the other. Returns the attribute that does
 * so, or NULL. */
static const struct order_row *
find_order(struct grouping *grouping, struct group *group, int32_t places)
{
    struct plane *planes = group->planes;
    const int32_t volumes = group->count / places;
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        bool known = true;
        for (int32_t p = 0; p < group->count && known; p++) {
            planes[p].order = orders[i].of(&planes[p]);
            known = isfinite(planes[p].order);
        }
        if (!known)
            continue;
        qsort(planes, (size_t)group->count, sizeof(*planes), geometry_compare_order);
        if (is_volume_by_volume(grouping, group, places) && !(orders[i].counts && begins_within_volume(group, places)))
            return &orders[i];
        if (!orders[i].counts || places <= 1 || !is_place_by_place(group, places))
            continue;
        /* The j-th plane of each place is in volume j. */
        for (int32_t p = 0; p < group->count; p++)
            planes[p].order = p % volumes;
        qsort(planes, (size_t)group->count, sizeof(*planes), geometry_compare_order);
        return &orders[i];
    }
    return NULL;
}

/* ---- the newest of duplicates ---- */

/* Compares the ages of two copies of a slice. Returns 1, -1, or 0 if no time differs. */
static int
compare_age(const struct plane *a, const struct plane *b)
{
    const char *const times[][2] = {
        {a->instance->created, b->instance->created},
        {a->instance->content, b->instance->content},
    };

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        const int order = strcmp(times[i][0], times[i][1]);
        if (times[i][0][0] && times[i][1][0] && order)
            return order > 0 ? 1 : -1;
    }
    return 0;
}

const char *
geometry_copy_difference(const struct plane *a, const struct plane *b)
{
    const char *difference = geometry_difference(a, b);
    const char *acquired = a->frame->acquired, *other = b->frame->acquired;
    if (difference)
        return difference;
    if (acquired[0] && other[0] && strcmp(acquired, other) != 0)
        return "Acquisition Date and Time (0008,002A)";
    if (a->instance->instance_number != b->instance->instance_number)
        return "Instance Number (0020,0013)";
    return a->frame_index != b->frame_index ? "the order of the frames" : NULL;
}

/* Returns the newest of some planes. Returns NULL if no time decides, or if two are not copies. */
static const struct plane *
find_newest(const struct plane *planes, int32_t count)
{
    const struct plane *newest = &planes[0];
    for (int32_t i = 1; i < count; i++)
        if (compare_age(&planes[i], newest) > 0)
            newest = &planes[i];
    for (int32_t i = 0; i < count; i++)
        if (&planes[i] != newest &&
            (compare_age(newest, &planes[i]) <= 0 || geometry_copy_difference(newest, &planes[i])))
            return NULL;
    return newest;
}

static int
compare_kept(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    const int order = (a->excluded != CODE_NONE) - (b->excluded != CODE_NONE);
    return order ? order : geometry_compare_position(left, right);
}

static int32_t
end_of_place(const struct group *group, int32_t start)
{
    int32_t end = start + 1;
    while (end < group->count && group->planes[end].place == group->planes[start].place)
        end++;
    return end;
}

/* Returns whether each place has a newest plane. The planes are sorted by place. */
static bool
has_newest(const struct group *group)
{
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_place(group, start);
        if (!find_newest(group->planes + start, end - start))
            return false;
    }
    return true;
}

/* Adds the newest of each place, and the older ones as an excluded group. Each place must have a
 * newest. */
static int
add_newest(struct grouping *grouping, struct group *group, int32_t places)
{
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_place(group, start);
        const struct plane *newest = find_newest(group->planes + start, end - start);
        for (int32_t i = start; i < end; i++)
            if (&group->planes[i] != newest)
                group->planes[i].excluded = CODE_DUPLICATE_POSITION;
    }
    qsort(group->planes, (size_t)group->count, sizeof(*group->planes), compare_kept);
    struct group kept = *group, older = *group;
    kept.count = places;
    older.planes += places;
    older.count -= places;
    older.excluded = CODE_DUPLICATE_POSITION;
    geometry_extend_name(&older, "", "older slices", "Instance Creation Date and Time (0008,0012)");
    int rc = geometry_add_group(grouping, &kept);
    return rc ? rc : geometry_add_group(grouping, &older);
}

/* ---- places ---- */

/* Returns how many places have more than one plane. Sets *equal if all have as many. */
static int32_t
count_repeated(const struct group *group, bool *equal)
{
    int32_t repeated = 0;
    *equal = true;
    const int32_t size = end_of_place(group, 0);
    for (int32_t start = 0, end; start < group->count; start = end) {
        end = end_of_place(group, start);
        repeated += end - start > 1;
        *equal = *equal && end - start == size;
    }
    return repeated;
}

int
geometry_add_volumes(struct grouping *grouping, struct group *group)
{
    if (!geometry_is_placed(group))
        return geometry_add_group(grouping, group);
    qsort(group->planes, (size_t)group->count, sizeof(*group->planes), geometry_compare_position);
    double first = group->planes[0].position;
    int32_t places = 1;
    for (int32_t i = 0; i < group->count; i++) {
        if (group->planes[i].position - first > POSITION_FLOOR_MM) {
            places++;
            first = group->planes[i].position;
        }
        group->planes[i].place = places - 1;
    }
    bool equal;
    const int32_t repeated = count_repeated(group, &equal);
    if (repeated > 0 && equal && places > 1) {
        const struct order_row *order = find_order(grouping, group, places);
        int rc = 0;
        for (int32_t v = 0; order && v < group->count / places && !rc; v++) {
            struct group volume = *group;
            char number[16];
            snprintf(number, sizeof(number), "%d", v + 1);
            volume.planes += (int64_t)v * places;
            volume.count = places;
            geometry_extend_name(&volume, "volume ", number, order->what);
            rc = geometry_add_group(grouping, &volume);
        }
        if (order)
            return rc;
    } else if (repeated > 0 && 2 * repeated < places && has_newest(group)) {
        if (grouping->limits->newest_of_duplicates)
            return add_newest(grouping, group, places);
        group->has_newest = true;
    }
    return geometry_add_group(grouping, group);
}
