/*
 * geometry_siblings.c - compares stacks of one orientation, and finds positions that some have and
 * others lack: see "Whole" in geometry.h.
 *
 * Stacks that share a position, directly or through other stacks, form a grid. A stack must have
 * every place of its grid.
 */
#include "dicom/read/geometry/geometry_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A stack has a plane at a place. */
struct sibling_plane {
    int32_t place, group;
    const struct plane *plane;
};

struct siblings {
    struct group *groups;
    int32_t group_count;
    struct sibling_plane *cells; /* by place, then by group, each once */
    int32_t cell_count;
    int32_t *grid;    /* by group: another group of its grid, finally the grid's own number */
    int32_t *own;     /* by group: its number of places */
    int32_t *leading; /* by group: number of its grid's places before the first that it lacks */
    int32_t *stacks;  /* by grid: number of its stacks */
    int32_t *total;   /* by grid: number of its places */
    int32_t *lost;    /* by grid: number of planes that its stacks lack */
    int32_t *seen;    /* by grid: number of places visited */
    int32_t *first;   /* by grid: index of its first place in `places` */
    int32_t *largest; /* by grid: its stack with the most planes */
    int32_t *places;  /* the first cell of every place, grid by grid */
    int32_t start;    /* index of the first group in the series */
};

static int
compare_plane_position(const void *left, const void *right)
{
    const struct sibling_plane *a = left, *b = right;
    return geometry_compare_position(a->plane, b->plane);
}

static int
compare_cell(const void *left, const void *right)
{
    const struct sibling_plane *a = left, *b = right;
    const int order = (a->place > b->place) - (a->place < b->place);
    return order ? order : (a->group > b->group) - (a->group < b->group);
}

static bool
is_sibling(const struct group *group)
{
    return group->excluded == CODE_NONE && geometry_is_placed(group);
}

static int32_t
siblings_grid(struct siblings *s, int32_t group)
{
    while (s->grid[group] != group)
        group = s->grid[group] = s->grid[s->grid[group]];
    return group;
}

static int32_t
end_of_cells(const struct siblings *s, int32_t start)
{
    int32_t end = start + 1;
    while (end < s->cell_count && s->cells[end].place == s->cells[start].place)
        end++;
    return end;
}

/* Numbers the places of all planes, and keeps one cell per stack and place. Finds the grids. */
static void
siblings_number_places(struct siblings *s)
{
    struct sibling_plane *cells = s->cells;
    qsort(cells, (size_t)s->cell_count, sizeof(*cells), compare_plane_position);
    double first = cells[0].plane->position;
    for (int32_t i = 0, place = 0; i < s->cell_count; i++) {
        if (cells[i].plane->position - first > POSITION_FLOOR_MM) {
            place++;
            first = cells[i].plane->position;
        }
        cells[i].place = place;
    }
    qsort(cells, (size_t)s->cell_count, sizeof(*cells), compare_cell);
    int32_t kept = 1;
    for (int32_t i = 1; i < s->cell_count; i++)
        if (compare_cell(&cells[kept - 1], &cells[i]) != 0)
            cells[kept++] = cells[i];
    s->cell_count = kept;
    for (int32_t g = 0; g < s->group_count; g++)
        s->grid[g] = g;
    for (int32_t start = 0, end; start < s->cell_count; start = end) {
        end = end_of_cells(s, start);
        for (int32_t i = start; i < end; i++) {
            s->own[s->cells[i].group]++;
            s->grid[siblings_grid(s, s->cells[i].group)] = siblings_grid(s, s->cells[start].group);
        }
    }
}

/* Lists the places of each grid, and counts each stack's places up to the first that it lacks. */
static void
siblings_list_places(struct siblings *s)
{
    for (int32_t start = 0; start < s->cell_count; start = end_of_cells(s, start))
        s->total[siblings_grid(s, s->cells[start].group)]++;
    for (int32_t g = 1; g < s->group_count; g++)
        s->first[g] = s->first[g - 1] + s->total[g - 1];
    for (int32_t start = 0, end; start < s->cell_count; start = end) {
        const int32_t grid = siblings_grid(s, s->cells[start].group);
        end = end_of_cells(s, start);
        for (int32_t i = start; i < end; i++)
            if (s->leading[s->cells[i].group] == s->seen[grid])
                s->leading[s->cells[i].group]++;
        s->places[s->first[grid] + s->seen[grid]++] = start;
    }
}

static void
siblings_fill_groups(struct siblings *s)
{
    for (int32_t g = 0; g < s->group_count; g++) {
        const int32_t grid = siblings_grid(s, g);
        s->stacks[grid]++;
        /* A slice that monitors one position is not an incomplete volume. */
        s->lost[grid] += s->own[g] > 1 ? s->total[grid] - s->own[g] : 0;
        if (s->groups[g].count > s->groups[s->largest[grid]].count)
            s->largest[grid] = g;
    }
    for (int32_t g = 0; g < s->group_count; g++) {
        const int32_t grid = siblings_grid(s, g);
        struct group *group = &s->groups[g];
        group->stacks_of_grid = s->stacks[grid];
        group->grid = s->start + s->largest[grid];
        group->lost_of_grid = s->lost[grid];
        group->lacking = is_sibling(group) ? s->total[grid] - s->own[g] : 0;
        if (group->lacking > 0)
            group->lacks = s->cells[s->places[s->first[grid] + s->leading[g]]].plane;
    }
}

static int
siblings_compare(struct grouping *grouping, struct siblings *s)
{
    const size_t groups = (size_t)s->group_count, cells = (size_t)s->cell_count;
    int32_t *numbers = calloc(9 * groups + cells, sizeof(*numbers));
    if (!numbers)
        return -ENOMEM;
    int32_t **const arrays[] = {&s->grid, &s->own,  &s->leading, &s->stacks, &s->total,
                                &s->lost, &s->seen, &s->first,   &s->largest};
    for (size_t i = 0; i < 9; i++)
        *arrays[i] = numbers + i * groups;
    s->places = numbers + 9 * groups;
    siblings_number_places(s);
    for (int32_t g = 0; g < s->group_count; g++)
        s->largest[g] = g;
    siblings_list_places(s);
    siblings_fill_groups(s);
    for (int32_t g = 0; g < s->group_count; g++) {
        grouping->location_count += s->total[g];
        grouping->grid_count += s->total[g] > 0;
    }
    free(numbers);
    return 0;
}

/* Counts the positions of the only stack of its orientation, which is a grid. */
static void
count_single(struct grouping *grouping, const struct group *group)
{
    double first = -INFINITY;
    for (int32_t i = 0; i < group->count; i++)
        if (group->planes[i].position - first > POSITION_FLOOR_MM) {
            grouping->location_count++;
            first = group->planes[i].position;
        }
    grouping->grid_count += group->count > 0;
}

int
geometry_compare_siblings(struct grouping *grouping)
{
    struct sibling_plane *cells = calloc((size_t)grouping->plane_count, sizeof(*cells));
    int rc = cells ? 0 : -ENOMEM;
    for (int32_t start = 0, end; start < grouping->group_count && !rc; start = end) {
        struct siblings s = {.groups = grouping->groups + start, .cells = cells, .start = start};
        const int32_t orientation = s.groups[0].planes[0].orientation;
        int32_t stacks = 0;
        for (end = start; end < grouping->group_count && grouping->groups[end].planes[0].orientation == orientation;
             end++) {
            const struct group *group = &grouping->groups[end];
            if (!is_sibling(group))
                continue;
            stacks++;
            for (int32_t i = 0; i < group->count; i++)
                cells[s.cell_count++] = (struct sibling_plane){.group = end - start, .plane = &group->planes[i]};
        }
        s.group_count = end - start;
        for (int32_t g = 0; g < s.group_count; g++) {
            s.groups[g].alone = stacks == 1;
            s.groups[g].grid = start + g;
            if (stacks == 1 && is_sibling(&s.groups[g]))
                count_single(grouping, &s.groups[g]);
        }
        if (stacks > 1)
            rc = siblings_compare(grouping, &s);
    }
    free(cells);
    return rc;
}
