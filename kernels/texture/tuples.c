/*
 * tuples.c - see tuples.h.
 *
 * Greedy: a tuple begins with the first remaining offset. It takes the point that makes the most
 * pairs of remaining offsets, until no point makes any.
 */
#include "kernels/texture/tuples.h"

#include <stdlib.h>

struct tuple_gathering {
    const struct texture_offset *offsets;
    size_t count;
    bool taken[TUPLES_TOGETHER];
};

static struct texture_offset
plus(struct texture_offset a, struct texture_offset b)
{
    return (struct texture_offset){a.x + b.x, a.y + b.y, a.z + b.z};
}

static struct texture_offset
minus(struct texture_offset a, struct texture_offset b)
{
    return (struct texture_offset){a.x - b.x, a.y - b.y, a.z - b.z};
}

/* Takes the first remaining offset that leads between two points, if any. */
static void
tuples_take(struct tuple_gathering *gathering, struct tuple *tuple, int from, int to)
{
    const struct texture_offset way = minus(tuple->at[to], tuple->at[from]);

    for (size_t i = 0; i < gathering->count; i++) {
        const struct texture_offset *offset = &gathering->offsets[i];

        if (gathering->taken[i] || offset->x != way.x || offset->y != way.y || offset->z != way.z)
            continue;
        gathering->taken[i] = true;
        tuple->pair[tuple->pairs++] = (struct tuple_pair){from, to, i};
        return;
    }
}

/* Takes the last point's pairs with earlier points. Of two opposite offsets, it takes one. */
static void
take_pairs(struct tuple_gathering *gathering, struct tuple *tuple)
{
    int last = tuple->points - 1;

    for (int i = 0; i < last; i++) {
        int before = tuple->pairs;

        tuples_take(gathering, tuple, i, last);
        if (tuple->pairs == before)
            tuples_take(gathering, tuple, last, i);
    }
}

/* Returns the number of pairs that take_pairs would find, or 0 if the tuple would be too wide. */
static int
pairs_of(struct tuple_gathering gathering, struct tuple tuple, struct texture_offset point)
{
    int before = tuple.pairs;

    tuple.at[tuple.points++] = point;
    for (int i = 0; i < tuple.points; i++)
        for (int j = 0; j < i; j++)
            if (abs(tuple.at[i].x - tuple.at[j].x) > TUPLE_WIDTH)
                return 0;
    take_pairs(&gathering, &tuple);
    return tuple.pairs - before;
}

static bool
add_point(struct tuple_gathering *gathering, struct tuple *tuple)
{
    struct texture_offset best = {0, 0, 0};
    int most = 0;

    for (size_t i = 0; i < gathering->count; i++)
        for (int k = 0; k < tuple->points && !gathering->taken[i]; k++) {
            const struct texture_offset points[2] = {plus(tuple->at[k], gathering->offsets[i]),
                                                     minus(tuple->at[k], gathering->offsets[i])};

            for (int p = 0; p < 2; p++) {
                const int pairs = pairs_of(*gathering, *tuple, points[p]);

                best = pairs > most ? points[p] : best;
                most = pairs > most ? pairs : most;
            }
        }
    if (most == 0)
        return false;
    tuple->at[tuple->points++] = best;
    take_pairs(gathering, tuple);
    return true;
}

/* Extends a tuple of one pair to a chain, if it leads to other rows or slices. */
static void
make_chain(struct tuple *tuple, struct texture_offset way, int points)
{
    if ((way.y == 0 && way.z == 0) || points < 3 || abs(way.x) * (points - 1) > TUPLE_WIDTH)
        return;
    while (tuple->points < points) {
        int last = tuple->points++;

        tuple->at[last] = plus(tuple->at[last - 1], way);
        tuple->pair[tuple->pairs] = tuple->pair[0];
        tuple->pair[tuple->pairs].from = last - 1;
        tuple->pair[tuple->pairs++].to = last;
    }
    tuple->rows = abs(way.y);
    tuple->slices = way.y == 0 ? abs(way.z) : 0;
}

size_t
tuples_gather(const struct texture_offset *offsets, size_t count, int points, struct tuple tuples[TUPLES_TOGETHER])
{
    struct tuple_gathering gathering = {.offsets = offsets, .count = count};
    size_t made = 0;

    for (size_t i = 0; i < count; i++) {
        if (gathering.taken[i])
            continue;
        struct tuple *tuple = &tuples[made++];
        *tuple = (struct tuple){.points = 2, .at = {{0, 0, 0}, offsets[i]}};
        take_pairs(&gathering, tuple);
        while (tuple->points < points && add_point(&gathering, tuple))
            continue;
        if (tuple->points == 2)
            make_chain(tuple, offsets[i], points);
        struct texture_offset low = tuple->at[0];

        for (int k = 1; k < tuple->points; k++) {
            low.x = tuple->at[k].x < low.x ? tuple->at[k].x : low.x;
            low.y = tuple->at[k].y < low.y ? tuple->at[k].y : low.y;
            low.z = tuple->at[k].z < low.z ? tuple->at[k].z : low.z;
        }
        for (int k = 0; k < tuple->points; k++)
            tuple->at[k] = minus(tuple->at[k], low);
    }
    return made;
}
