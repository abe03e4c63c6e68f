/*
 * hull.c - see hull.h.
 *
 * A side is the hull of its points and one point at infinity behind them. The facets of that point
 * are the walls, which are kept until the end and then removed.
 *
 * Each facet has a list of points strictly outside it, and each such point is in one list. The
 * farthest point of a list is a corner of the hull: the facets that it sees are removed, and it is
 * joined to their rim. A point in a facet's plane does not see it, so that no triangle is
 * degenerate. A point outside a removed facet is inside the hull or outside a new facet.
 */
#include "kernels/features/shape/hull.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { HULL_NONE = -1 };

/* Fits in one cache line. */
struct hull_facet {
    int64_t normal[3];
    uint64_t along; /* position of its plane along the normal */
    int32_t corner[3];
    int32_t beside[3]; /* the facet across the edge from each corner to the next */
    int32_t outside;   /* head of a list of points, the last one first */
    bool gone;
};

struct hull_work {
    const struct hull_point *points;
    int32_t count; /* also the number of the corner at infinity */
    int32_t ahead; /* direction of that corner along the first axis: 1 or -1 */
    struct hull_facet *facets;
    int32_t facet_count, facet_room;
    int32_t *next;   /* next in the point's list */
    int32_t *rim_of; /* the new facet whose rim edge begins at the point */
    int32_t *seen;   /* facets, as a stack and a list */
    int32_t seen_count, seen_room;
    int32_t *added; /* facets for the current corner */
    int32_t added_count, added_room;
    int32_t *unused; /* removed facets to reuse */
    int32_t unused_count, unused_room;
    int32_t *todo; /* facets that may have points outside */
    int32_t todo_count, todo_room;
};

/* ------------------------------------------------------------------------------- geometry ---- */

static void
points_normal(const struct hull_point *a, const struct hull_point *b, const struct hull_point *c, int64_t normal[3])
{
    int64_t first[3], second[3];

    for (int i = 0; i < 3; i++) {
        first[i] = (int64_t)b->at[i] - a->at[i];
        second[i] = (int64_t)c->at[i] - a->at[i];
    }
    for (int i = 0; i < 3; i++) {
        const int next = (i + 1) % 3, last = (i + 2) % 3;

        normal[i] = first[next] * second[last] - first[last] * second[next];
    }
}

/* Returns the position along the facet's normal, times twice its area, modulo 2^64. */
static uint64_t
facet_along(const struct hull_facet *facet, const struct hull_point *point)
{
    uint64_t along = 0;

    for (int i = 0; i < 3; i++)
        along += (uint64_t)facet->normal[i] * (uint64_t)point->at[i];
    return along;
}

/* Returns the distance times twice the facet's area: above 0 outside. Below 2^61. */
static int64_t
facet_distance(const struct hull_work *work, const struct hull_facet *facet, int32_t point)
{
    return (int64_t)(facet_along(facet, &work->points[point]) - facet->along);
}

/* Returns the facet's corner. For the corner at infinity, returns a point in its direction from
 * another corner. */
static struct hull_point
facet_corner(const struct hull_work *work, const struct hull_facet *facet, int corner)
{
    const bool far = facet->corner[corner] == work->count;
    struct hull_point point = work->points[facet->corner[far ? (corner + 1) % 3 : corner]];

    if (far)
        point.at[0] += work->ahead;
    return point;
}

/* Must begin at a finite corner followed by another. */
static void
facet_place(const struct hull_work *work, struct hull_facet *facet)
{
    const int from = facet->corner[0] == work->count ? 1 : facet->corner[1] == work->count ? 2 : 0;
    const struct hull_point a = facet_corner(work, facet, from);
    const struct hull_point b = facet_corner(work, facet, (from + 1) % 3);
    const struct hull_point c = facet_corner(work, facet, (from + 2) % 3);

    points_normal(&a, &b, &c, facet->normal);
    facet->along = facet_along(facet, &a);
}

/* -------------------------------------------------------------------------------- memory ---- */

/* Makes room for one more item. */
static int
hull_grow(void *items, int32_t count, int32_t *room, size_t size)
{
    void **array = items;

    if (count < *room)
        return 0;
    const int32_t wanted = *room ? 2 * *room : 1024;
    void *grown = *room > INT32_MAX / 2 ? NULL : realloc(*array, (size_t)wanted * size);
    if (!grown)
        return -ENOMEM;
    *array = grown;
    *room = wanted;
    return 0;
}

static int
hull_push(int32_t **facets, int32_t *count, int32_t *room, int32_t facet)
{
    if (hull_grow(facets, *count, room, sizeof(**facets)))
        return -ENOMEM;
    (*facets)[(*count)++] = facet;
    return 0;
}

/* Returns the facet's number, or -ENOMEM. */
static int32_t
hull_add_facet(struct hull_work *work, int32_t a, int32_t b, int32_t c)
{
    const int32_t number = work->unused_count > 0 ? work->unused[--work->unused_count] : work->facet_count;
    struct hull_facet *facet;

    if (hull_grow(&work->facets, number, &work->facet_room, sizeof(*work->facets)) ||
        hull_push(&work->todo, &work->todo_count, &work->todo_room, number) ||
        hull_push(&work->added, &work->added_count, &work->added_room, number))
        return -ENOMEM;
    work->facet_count += number == work->facet_count;
    facet = &work->facets[number];
    *facet =
        (struct hull_facet){.corner = {a, b, c}, .beside = {HULL_NONE, HULL_NONE, HULL_NONE}, .outside = HULL_NONE};
    facet_place(work, facet);
    return number;
}

/* --------------------------------------------------------------------------- the first four ---- */

/* Returns the point farthest from another, or from the line through two, as seen along the first axis. Distances are
 * exact enough to detect 0. Returns HULL_NONE if all are 0. */
static int32_t
hull_farthest(const struct hull_work *work, const int32_t *of, bool line)
{
    int32_t found = HULL_NONE;
    double most = 0;

    for (int32_t point = 0; point < work->count; point++) {
        const struct hull_point *a = &work->points[of[0]], *b = &work->points[point];
        const int64_t y = (int64_t)b->at[1] - a->at[1], z = (int64_t)b->at[2] - a->at[2];
        int64_t normal[3] = {0};

        if (line)
            points_normal(a, &work->points[of[1]], b, normal);
        const double own = line ? fabs((double)normal[0]) : (double)(y * y + z * z);

        if (own > most) {
            most = own;
            found = point;
        }
    }
    return found;
}

/* Chooses three points whose projections along the first axis are not collinear, and the corner at
 * infinity, from which they appear clockwise. Returns -EDOM if there are none. */
static int
hull_choose_four(const struct hull_work *work, int32_t four[4])
{
    struct hull_facet facet;

    four[0] = 0;
    four[1] = work->count > 0 ? hull_farthest(work, four, false) : HULL_NONE;
    four[2] = four[1] >= 0 ? hull_farthest(work, four, true) : HULL_NONE;
    four[3] = work->count;
    if (four[2] < 0)
        return -EDOM;
    memcpy(facet.corner, four, sizeof(facet.corner));
    facet_place(work, &facet);
    if (facet.normal[0] * work->ahead > 0) {
        const int32_t second = four[1];

        four[1] = four[2];
        four[2] = second;
    }
    return 0;
}

/* Puts a point into the list of a new facet that it lies outside of, if any. */
static void
hull_assign(struct hull_work *work, int32_t point)
{
    for (int32_t i = 0; i < work->added_count; i++) {
        struct hull_facet *facet = &work->facets[work->added[i]];

        if (facet_distance(work, facet, point) <= 0)
            continue;
        work->next[point] = facet->outside;
        facet->outside = point;
        return;
    }
}

static int
hull_begin(struct hull_work *work)
{
    /* Neighbours across the edges of the facets 0 1 2, 0 3 1, 1 3 2 and 2 3 0. */
    static const uint8_t corners[4][3] = {{0, 1, 2}, {0, 3, 1}, {1, 3, 2}, {2, 3, 0}};
    static const uint8_t across[4][3] = {{1, 2, 3}, {3, 2, 0}, {1, 3, 0}, {2, 1, 0}};
    int32_t four[4];
    int rc = hull_choose_four(work, four);

    if (rc)
        return rc;
    for (int f = 0; f < 4; f++) {
        if (hull_add_facet(work, four[corners[f][0]], four[corners[f][1]], four[corners[f][2]]) < 0)
            return -ENOMEM;
        for (int edge = 0; edge < 3; edge++)
            work->facets[f].beside[edge] = across[f][edge];
    }
    for (int32_t point = 0; point < work->count; point++)
        hull_assign(work, point);
    return 0;
}

/* -------------------------------------------------------------------------- the next corner ---- */

static int
hull_see(struct hull_work *work, int32_t facet)
{
    work->facets[facet].gone = true;
    return hull_push(&work->seen, &work->seen_count, &work->seen_room, facet);
}

/* The facets that the point sees are connected, so that a search from one of them finds all. */
static int
hull_look_around(struct hull_work *work, int32_t facet, int32_t point)
{
    int rc;

    work->seen_count = 0;
    rc = hull_see(work, facet);
    for (int32_t i = 0; i < work->seen_count && rc == 0; i++)
        for (int edge = 0; edge < 3 && rc == 0; edge++) {
            const int32_t beside = work->facets[work->seen[i]].beside[edge];

            if (!work->facets[beside].gone && facet_distance(work, &work->facets[beside], point) > 0)
                rc = hull_see(work, beside);
        }
    return rc;
}

/* Joins the point to an edge of the rim, between a facet that it sees and one that it does not. */
static int
hull_join(struct hull_work *work, int32_t point, int32_t a, int32_t b, int32_t behind)
{
    const int32_t added = hull_add_facet(work, a, b, point);
    struct hull_facet *facet = &work->facets[behind];

    if (added < 0)
        return -ENOMEM;
    work->facets[added].beside[0] = behind;
    work->rim_of[a] = added;
    for (int edge = 0; edge < 3; edge++)
        if (facet->corner[edge] == b && facet->corner[(edge + 1) % 3] == a)
            facet->beside[edge] = added;
    return 0;
}

/* Each point of the rim begins one edge and ends one. */
static int
hull_close(struct hull_work *work, int32_t point)
{
    work->added_count = 0;
    for (int32_t i = 0; i < work->seen_count; i++) {
        const struct hull_facet seen = work->facets[work->seen[i]];

        for (int edge = 0; edge < 3; edge++)
            if (!work->facets[seen.beside[edge]].gone &&
                hull_join(work, point, seen.corner[edge], seen.corner[(edge + 1) % 3], seen.beside[edge]))
                return -ENOMEM;
    }
    for (int32_t i = 0; i < work->added_count; i++) {
        const int32_t facet = work->added[i];
        const int32_t next = work->rim_of[work->facets[facet].corner[1]];

        work->facets[facet].beside[1] = next;
        work->facets[next].beside[2] = facet;
    }
    return 0;
}

/* Returns the farthest point of a facet's list. Of equal ones, returns the first added. */
static int32_t
facet_farthest(const struct hull_work *work, const struct hull_facet *facet)
{
    int32_t farthest = facet->outside;
    int64_t most = 0;

    for (int32_t point = facet->outside; point >= 0; point = work->next[point]) {
        const int64_t distance = facet_distance(work, facet, point);

        farthest = distance >= most ? point : farthest;
        most = distance >= most ? distance : most;
    }
    return farthest;
}

/* ------------------------------------------------------------------------------- the whole ---- */

/* Returns a corner's new number. */
static int32_t
hull_number(struct hull_work *work, struct hull *hull, int32_t corner)
{
    int32_t *number = &work->rim_of[corner];

    if (*number == HULL_NONE) {
        *number = (int32_t)hull->point_count;
        hull->points[hull->point_count++] = work->points[corner];
    }
    return *number;
}

/* Keeps the remaining facets. Those of the corner at infinity yield the rim. */
static int
hull_keep(struct hull_work *work, struct hull *hull)
{
    hull->facets = malloc((size_t)work->facet_count * sizeof(*hull->facets));
    hull->rim = malloc((size_t)work->facet_count * sizeof(*hull->rim));
    hull->points = malloc((size_t)work->count * sizeof(*hull->points));
    if (!hull->facets || !hull->rim || !hull->points)
        return -ENOMEM;
    memset(work->rim_of, 0xFF, (size_t)work->count * sizeof(*work->rim_of));
    for (int32_t f = 0; f < work->facet_count; f++) {
        const struct hull_facet *facet = &work->facets[f];
        int far = 0; /* the corner at infinity; 3: no corner */

        if (facet->gone)
            continue;
        while (far < 3 && facet->corner[far] != work->count)
            far++;
        for (int i = 0; i < 3 && far == 3; i++)
            hull->facets[hull->facet_count][i] = hull_number(work, hull, facet->corner[i]);
        for (int i = 0; i < 2 && far < 3; i++)
            hull->rim[hull->rim_count][i] = hull_number(work, hull, facet->corner[(far + 2 - i) % 3]);
        hull->facet_count += far == 3;
        hull->rim_count += far < 3;
    }
    return 0;
}

int
hull_make(const struct hull_point *points, size_t count, enum hull_side side, struct hull *hull)
{
    struct hull_work work = {.points = points, .count = (int32_t)count, .ahead = side == HULL_LOWER ? 1 : -1};
    int rc;

    *hull = (struct hull){0};
    work.next = malloc((count + 1) * sizeof(*work.next));
    work.rim_of = malloc((count + 1) * sizeof(*work.rim_of));
    rc = work.next && work.rim_of ? hull_begin(&work) : -ENOMEM;
    while (rc == 0 && work.todo_count > 0) {
        const int32_t facet = work.todo[--work.todo_count];

        if (!work.facets[facet].gone && work.facets[facet].outside >= 0) {
            const int32_t point = facet_farthest(&work, &work.facets[facet]);
            rc = hull_look_around(&work, facet, point);

            if (rc == 0)
                rc = hull_close(&work, point);
            for (int32_t i = 0; i < work.seen_count && rc == 0; i++) {
                for (int32_t other = work.facets[work.seen[i]].outside, next; other >= 0; other = next) {
                    next = work.next[other];
                    hull_assign(&work, other);
                }
                rc = hull_push(&work.unused, &work.unused_count, &work.unused_room, work.seen[i]);
            }
        }
    }
    if (rc == 0)
        rc = hull_keep(&work, hull);
    free(work.facets);
    free(work.next);
    free(work.rim_of);
    free(work.seen);
    free(work.added);
    free(work.unused);
    free(work.todo);
    return rc;
}

void
hull_clear(struct hull *hull)
{
    free(hull->points);
    free(hull->facets);
    free(hull->rim);
    *hull = (struct hull){0};
}
