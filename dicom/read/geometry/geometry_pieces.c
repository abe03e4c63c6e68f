/*
 * geometry_pieces.c - finds stacks that share no position and together are one regular stack:
 * pieces of one volume whose header varies, or parts of several volumes. See "Pieces" in
 * geometry.h.
 */
#include "dicom/read/geometry/geometry_internal.h"

#include <math.h>

/* Max difference of direction cosines in one volume: 1.1 degrees. */
#define SAME_VOLUME_TOLERANCE 2e-2

/* Max number of grids that are compared pairwise. */
#define PAIRS_MAX 32

/* Returns whether two stacks have parallel slices of the same size. */
static bool
is_like(const struct group *a, const struct group *b)
{
    const struct plane *p = &a->planes[0], *q = &b->planes[0];
    for (int i = 0; i < 6; i++)
        if (fabs(p->frame->orientation[i] - q->frame->orientation[i]) > SAME_VOLUME_TOLERANCE)
            return false;
    return p->instance->rows == q->instance->rows && p->instance->columns == q->instance->columns;
}

/* Returns whether several groups together are one regular stack of slices that do not overlap. */
static bool
is_one_stack(const struct grouping *grouping, struct group *const *groups, int32_t group_count)
{
    double normal[3], *positions = grouping->scratch;
    int32_t count = 0;
    geometry_normal(groups[0]->planes[0].frame->orientation, normal);
    for (int32_t i = 0; i < group_count; i++)
        for (int32_t p = 0; p < groups[i]->count; p++)
            positions[count++] = geometry_dot(normal, groups[i]->planes[p].frame->position);
    geometry_sort_numbers(positions, count);
    const double step = (positions[count - 1] - positions[0]) / (count - 1);
    if (count < 3 || geometry_slices_overlap(step, &groups[0]->planes[0]) || step <= POSITION_FLOOR_MM)
        return false;
    for (int32_t i = 1; i < count; i++)
        if (fabs(positions[i] - positions[i - 1] - step) > fmax(step / 10, POSITION_FLOOR_MM))
            return false;
    return true;
}

static void
mark_pieces(struct group *const *groups, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        groups[i]->piece_of = &groups[(i + 1) % count]->planes[0];
}

/* Collects the largest stacks of the grids from `first` on that may be of one volume with that
 * one. */
static int32_t
collect_like(struct grouping *grouping, int32_t first, struct group **like)
{
    int32_t count = 0;
    for (int32_t i = first; i < grouping->group_count && count < PAIRS_MAX; i++) {
        struct group *group = &grouping->groups[i];
        if (group->grid == i && group->excluded == CODE_NONE && geometry_is_placed(group) &&
            is_like(&grouping->groups[first], group))
            like[count++] = group;
    }
    return count;
}

void
geometry_find_pieces(struct grouping *grouping)
{
    struct group *like[PAIRS_MAX];
    int32_t grids = 0;
    for (int32_t i = 0; i < grouping->group_count && grids < PAIRS_MAX; i++) {
        struct group *group = &grouping->groups[i];
        if (group->piece_of || group->grid != i || group->excluded != CODE_NONE || !geometry_is_placed(group))
            continue;
        grids++;
        const int32_t count = collect_like(grouping, i, like);
        if (count > 1 && is_one_stack(grouping, like, count))
            mark_pieces(like, count);
        for (int32_t k = 1; k < count && !group->piece_of; k++) {
            struct group *const pair[2] = {group, like[k]};
            if (is_one_stack(grouping, pair, 2))
                mark_pieces(pair, 2);
        }
    }
    /* Copy from the largest stack of each grid to its other stacks. */
    for (int32_t i = 0; i < grouping->group_count; i++) {
        struct group *group = &grouping->groups[i];
        if (group->grid != i && !group->piece_of)
            group->piece_of = grouping->groups[group->grid].piece_of;
    }
}
