/*
 * flood.c - see flood.h.
 *
 * The unit of work is a word, not a voxel. A run is a maximal group of neighbouring bits of one
 * word with equal `range`. After the first visit of its word, a run is settled or open as a whole.
 * A word is updated only if at least one of its runs settles. There are never more updates than
 * runs, for every shape and order, so that the time is linear in the volume.
 */
#include "kernels/level_set/flood.h"

/* A tile during its flood. */
struct flood_visit {
    struct tiles_visit *tiles;
    const uint64_t *range; /* at the tile's first word */
    uint64_t *inside;
};

#define INLINE TILES_INLINE

/* Returns the runs of open bits, equal in range, with a bit of `hits`, which must be open. */
INLINE uint64_t
runs_hit(uint64_t range, uint64_t open, uint64_t hits)
{
    uint64_t found = 0;

    do {
        uint64_t lowest = hits & -hits;
        uint64_t mask = open & (range & lowest ? range : ~range);
        uint64_t gaps = ~mask & (lowest - 1);
        uint64_t start = gaps ? UINT64_C(2) << (63 - __builtin_clzll(gaps)) : 1;
        uint64_t run = mask & ~(mask + start);

        found |= run;
        hits &= ~run;
    } while (hits);
    return found;
}

/* Settles the runs of the word at `at` with a bit of `hits`, which must be open. */
INLINE void
settle(struct flood_visit *visit, int64_t at, uint64_t range, uint64_t inside, uint64_t hits)
{
    uint64_t runs = runs_hit(range, range ^ inside, hits);

    tiles_poke(&visit->inside[at], inside ^ runs);
    visit->tiles->growth += __builtin_popcountll(runs & range) - __builtin_popcountll(runs & ~range);
}

/* Returns the bits of the neighbour at `at` that settle, given a word's settled and range bits,
 * shifted to lie over the neighbour. */
INLINE uint64_t
hits_on(const struct flood_visit *visit, int64_t at, uint64_t settled, uint64_t range)
{
    uint64_t candidates = settled & ~(range ^ visit->range[at]);

    return candidates ? candidates & (visit->range[at] ^ tiles_peek(&visit->inside[at])) : 0;
}

INLINE void
spread_to(struct flood_visit *visit, uint32_t place, int face, int64_t at, uint64_t settled, uint64_t range)
{
    int axis = face / 2;
    uint32_t here = tiles_coordinate(visit->tiles, place, axis);

    if (here == (face % 2 ? visit->tiles->last[axis] : 0)) {
        if (visit->tiles->away[face] != 0 && hits_on(visit, at, settled, range))
            tiles_send(visit->tiles, place, face);
        return;
    }
    uint64_t hits = hits_on(visit, at, settled, range);
    if (hits) {
        settle(visit, at, visit->range[at], tiles_peek(&visit->inside[at]), hits);
        tiles_mark(&visit->tiles->marks,
                   face % 2 ? place + (1U << visit->tiles->bit[axis]) : place - (1U << visit->tiles->bit[axis]));
    }
}

/* Settles the bits that a word's settled bits touch in the six words around it. */
INLINE void
spread(void *own, uint32_t place)
{
    struct flood_visit *visit = own;
    int64_t at = tiles_offset(visit->tiles, place);
    uint64_t range = visit->range[at];
    uint64_t settled = ~(range ^ tiles_peek(&visit->inside[at]));

    spread_to(visit, place, 0, at - 1, settled << 63, range << 63);
    spread_to(visit, place, 1, at + 1, settled >> 63, range >> 63);
    spread_to(visit, place, 2, at - visit->tiles->step[1], settled, range);
    spread_to(visit, place, 3, at + visit->tiles->step[1], settled, range);
    spread_to(visit, place, 4, at - visit->tiles->step[2], settled, range);
    spread_to(visit, place, 5, at + visit->tiles->step[2], settled, range);
}

/* Returns the bits of a word that touch a settled bit of equal range in the word beyond a face. */
INLINE uint64_t
touched_from(const struct flood_visit *visit, uint32_t place, int face, int64_t at, uint64_t range)
{
    int axis = face / 2;
    uint32_t here = tiles_coordinate(visit->tiles, place, axis);
    uint64_t their_range, settled;

    if (here == (face % 2 ? visit->tiles->last[axis] : 0) && visit->tiles->away[face] == 0)
        return 0;
    their_range = visit->range[at];
    settled = ~(their_range ^ tiles_peek(&visit->inside[at]));
    if (face == 0)
        return (settled >> 63 & ~(their_range >> 63 ^ range)) & 1;
    if (face == 1)
        return settled << 63 & ~(their_range << 63 ^ range);
    return settled & ~(their_range ^ range);
}

/* Settles the bits of a word that its own and neighbouring settled bits touch. */
INLINE void
gather(void *own, uint32_t place)
{
    struct flood_visit *visit = own;
    int64_t at = tiles_offset(visit->tiles, place);
    uint64_t range = visit->range[at];
    uint64_t inside = tiles_peek(&visit->inside[at]);
    /* The last word of a row may have padding. */
    bool at_end = visit->tiles->away[1] == 0 && tiles_coordinate(visit->tiles, place, 0) == visit->tiles->last[0];
    uint64_t settled = ~(range ^ inside) & (at_end ? visit->tiles->tail : ~UINT64_C(0));
    uint64_t touched = (settled << 1 & ~(range << 1 ^ range)) | (settled >> 1 & ~(range >> 1 ^ range));

    touched |= touched_from(visit, place, 0, at - 1, range);
    touched |= touched_from(visit, place, 1, at + 1, range);
    touched |= touched_from(visit, place, 2, at - visit->tiles->step[1], range);
    touched |= touched_from(visit, place, 3, at + visit->tiles->step[1], range);
    touched |= touched_from(visit, place, 4, at - visit->tiles->step[2], range);
    touched |= touched_from(visit, place, 5, at + visit->tiles->step[2], range);
    touched &= range ^ inside;
    if (touched)
        settle(visit, at, range, inside, touched);
    tiles_mark(&visit->tiles->marks, place);
}

/* Handles a word that may have a part of the initial region. */
INLINE void
gather_fresh(void *own, uint32_t place)
{
    struct flood_visit *visit = own;

    if (visit->inside[tiles_offset(visit->tiles, place)])
        gather(visit, place);
}

INLINE void
flood_tile(const struct flood_volume *volume, struct tiles_visit *tiles)
{
    struct flood_visit visit = {tiles, volume->range + tiles->origin, volume->inside + tiles->origin};

    tiles_flood(tiles, &visit, gather_fresh, gather, spread);
}

TILES_RUNS(flood_tile)

int64_t
flood_run(const struct flood_volume *volume, const struct tiles_box *box, const struct isa *isa, struct cpu_pool *pool)
{
    const struct tiles_work work = {volume->extent, volume->space,
                                    isa->bit_instructions ? flood_tile_bit_instructions : flood_tile_plain, volume};

    return tiles_run(&work, box, pool);
}
