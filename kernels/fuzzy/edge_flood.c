/*
 * edge_flood.c - see edge_flood.h.
 *
 * A run is a maximal group of voxels of one word joined by edges along x. After the first visit of
 * its word, a run is settled as a whole or not at all, as in flood.c.
 */
#include "kernels/fuzzy/edge_flood.h"

#define INLINE      TILES_INLINE
#define LAST_BIT    (UINT64_C(1) << 63)
#define WITHIN_WORD (~LAST_BIT)

/* A tile during its flood; pointers are to the tile's first word. */
struct edge_flood_visit {
    struct tiles_visit *tiles;
    const uint64_t *edge[3];
    uint64_t *settled;
};

/* Returns the runs with a bit of `hits`. `edges` are those within the word. */
INLINE uint64_t
runs_hit(uint64_t edges, uint64_t hits)
{
    uint64_t found = 0;

    do {
        uint64_t lowest = hits & -hits;
        uint64_t gaps = ~edges & (lowest - 1);
        uint64_t start = gaps ? UINT64_C(2) << (63 - __builtin_clzll(gaps)) : 1;
        uint64_t run = (edges + start) ^ edges;

        found |= run;
        hits &= ~run;
    } while (hits);
    return found;
}

/* Settles the runs of the word at `at` with a bit of `hits`, some of which is not settled yet. */
INLINE void
settle(struct edge_flood_visit *visit, uint32_t place, int64_t at, uint64_t settled, uint64_t hits)
{
    uint64_t edges = visit->edge[0][at] & WITHIN_WORD, more = settled | hits;
    uint64_t open = edges & (more ^ more >> 1); /* edges that lead from these to others */

    if (open)
        more |= runs_hit(edges, open);
    tiles_poke(&visit->settled[at], more);
    visit->tiles->growth += __builtin_popcountll(more & ~settled);
    tiles_mark(&visit->tiles->marks, place);
}

/* Returns the bits in the word beyond a face that `settled` bits of the word at `at` touch. */
INLINE uint64_t
touched_beyond(const struct edge_flood_visit *visit, int64_t at, int face, uint64_t settled)
{
    int axis = face / 2;
    const uint64_t *edge = visit->edge[axis];
    int64_t beyond = at - visit->tiles->step[axis];

    switch (face) {
    case 0:
        return settled & 1 ? edge[beyond] & LAST_BIT : 0;
    case 1:
        return (settled & edge[at]) >> 63;
    default:
        return settled & (face % 2 ? edge[at] : edge[beyond]);
    }
}

INLINE bool
is_last(const struct edge_flood_visit *visit, uint32_t place, int face)
{
    int axis = face / 2;
    uint32_t here = tiles_coordinate(visit->tiles, place, axis);

    return here == (face % 2 ? visit->tiles->last[axis] : 0);
}

/* Spreads the settled bits of a word to the word beyond a face. */
INLINE void
spread_to(struct edge_flood_visit *visit, uint32_t place, int64_t at, int face, uint64_t settled)
{
    int axis = face / 2;
    bool last = is_last(visit, place, face);
    int64_t there = face % 2 ? at + visit->tiles->step[axis] : at - visit->tiles->step[axis];
    uint32_t step = UINT32_C(1) << visit->tiles->bit[axis];
    uint64_t touched, known;

    if (last && visit->tiles->away[face] == 0)
        return;
    touched = touched_beyond(visit, at, face, settled);
    if (!touched)
        return;
    known = tiles_peek(&visit->settled[there]);
    if (!(touched & ~known))
        return;
    if (last)
        tiles_send(visit->tiles, place, face);
    else
        settle(visit, face % 2 ? place + step : place - step, there, known, touched & ~known);
}

INLINE void
spread(void *own, uint32_t place)
{
    struct edge_flood_visit *visit = own;
    int64_t at = tiles_offset(visit->tiles, place);
    uint64_t settled = tiles_peek(&visit->settled[at]);

#pragma GCC unroll 6
    for (int face = 0; face < TILES_FACES; face++)
        spread_to(visit, place, at, face, settled);
}

/* Handles a word whose neighbours have settled. */
INLINE void
gather(void *own, uint32_t place)
{
    struct edge_flood_visit *visit = own;
    int64_t at = tiles_offset(visit->tiles, place);
    uint64_t settled = tiles_peek(&visit->settled[at]), touched = 0;

#pragma GCC unroll 6
    for (int face = 0; face < TILES_FACES; face++) {
        int64_t step = visit->tiles->step[face / 2], there = face % 2 ? at + step : at - step;

        if (!is_last(visit, place, face) || visit->tiles->away[face] != 0)
            touched |= touched_beyond(visit, there, face ^ 1, tiles_peek(&visit->settled[there]));
    }
    if (touched & ~settled)
        settle(visit, place, at, settled, touched & ~settled);
}

/* Handles a word that may have initially settled voxels. */
INLINE void
settle_fresh(void *own, uint32_t place)
{
    struct edge_flood_visit *visit = own;
    int64_t at = tiles_offset(visit->tiles, place);
    uint64_t settled = visit->settled[at];

    if (settled)
        settle(visit, place, at, settled, settled);
}

INLINE void
edge_flood_tile(const struct edge_volume *volume, struct tiles_visit *tiles)
{
    struct edge_flood_visit visit = {.tiles = tiles, .settled = volume->settled + tiles->origin};

    for (int axis = 0; axis < 3; axis++)
        visit.edge[axis] = volume->edge[axis] + tiles->origin;
    tiles_flood(tiles, &visit, settle_fresh, gather, spread);
}

TILES_RUNS(edge_flood_tile)

int64_t
edge_flood_run(const struct edge_volume *volume, const struct tiles_box *box, const struct isa *isa,
               struct cpu_pool *pool)
{
    const struct tiles_work work = {volume->extent, volume->space,
                                    isa->bit_instructions ? edge_flood_tile_bit_instructions : edge_flood_tile_plain,
                                    volume};

    return tiles_run(&work, box, pool);
}
