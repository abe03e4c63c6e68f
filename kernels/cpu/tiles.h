/*
 * tiles.h - a volume of packed bits in tiles, one of them at a time on a thread until nothing
 * changes in it: what the floods on bits share.
 *
 * A tile has at most 4096 words; words yet to be looked at are marked in a two-level bitmap. A tile
 * writes only its own words. Where it could change a neighbour it marks that word as arrived there,
 * and the neighbour is queued. Threads read each other's words (tiles_peek) while these change
 * (tiles_poke); in a flood voxels only ever settle, so that an old value costs a look and never a
 * mistake: the mark is set after the word that caused it was written, and taken before that word is
 * read again.
 */
#ifndef NOCTULE_TILES_H
#define NOCTULE_TILES_H

#include "kernels/cpu/bits.h"
#include "kernels/cpu/pool.h"

#include <stddef.h>

enum {
    TILES_GROUPS = 64, /* 64 groups of 64 words */
    TILES_FACES = 6,   /* -x +x -y +y -z +z */
};

enum tile_state {
    TILE_QUIET,
    TILE_QUEUED,
    TILE_RUNNING,
    TILE_RUNNING_AGAIN, /* something arrived while it ran */
};

/* Words of a tile, one bit each; bit g of groups is set when words[g] may have a bit. */
struct tiles_marks {
    uint64_t words[TILES_GROUPS];
    uint64_t groups;
};

struct tile {
    struct tiles_marks arrived; /* set by neighbours, atomically */
    enum tile_state state;
    bool fresh; /* meets the box that the run began with, and has not run */
};

/* One tile while it runs. A word's place is x | y << bit[1] | z << bit[2]. */
struct tiles_visit {
    struct tile *tile;
    struct tiles_marks marks;
    int64_t origin;            /* the tile's first word */
    int64_t step[3];           /* words from a word to its neighbour along each axis */
    int bit[3];                /* where a coordinate begins in a place */
    uint32_t mask[3];          /* of a full tile, not shifted */
    uint32_t last[3];          /* last coordinate within this tile */
    int64_t away[TILES_FACES]; /* tiles to the neighbour beyond a face; 0: the volume ends there */
    unsigned reached;          /* faces beyond which something arrived */
    uint64_t tail;  /* the voxels of the last word of a row if this tile has it, else all */
    int64_t growth; /* the flood's count */
};

#define TILES_INLINE static inline __attribute__((always_inline))

TILES_INLINE uint64_t
tiles_peek(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

TILES_INLINE void
tiles_poke(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

TILES_INLINE void
tiles_mark(struct tiles_marks *marks, uint32_t place)
{
    marks->words[place / 64] |= UINT64_C(1) << place % 64;
    marks->groups |= UINT64_C(1) << place / 64;
}

/* Takes the first marked place; there is one. */
TILES_INLINE uint32_t
tiles_take(struct tiles_marks *marks)
{
    uint32_t group = (uint32_t)__builtin_ctzll(marks->groups);
    uint32_t place = group * 64 + (uint32_t)__builtin_ctzll(marks->words[group]);

    marks->words[group] &= marks->words[group] - 1;
    if (!marks->words[group])
        marks->groups &= marks->groups - 1;
    return place;
}

TILES_INLINE uint32_t
tiles_coordinate(const struct tiles_visit *visit, uint32_t place, int axis)
{
    return place >> visit->bit[axis] & visit->mask[axis];
}

/* From the tile's first word to this one. */
TILES_INLINE int64_t
tiles_offset(const struct tiles_visit *visit, uint32_t place)
{
    return tiles_coordinate(visit, place, 0) + tiles_coordinate(visit, place, 1) * visit->step[1] +
           tiles_coordinate(visit, place, 2) * visit->step[2];
}

/* Marks the word opposite `place` beyond a face that it lies at; there is a tile. */
TILES_INLINE void
tiles_send(struct tiles_visit *visit, uint32_t place, int face)
{
    int axis = face / 2;
    struct tiles_marks *arrived = &visit->tile[visit->away[face]].arrived;
    uint32_t there = place & ~(visit->mask[axis] << visit->bit[axis]);

    if (face % 2 == 0)
        there |= visit->mask[axis] << visit->bit[axis];
    __atomic_fetch_or(&arrived->words[there / 64], UINT64_C(1) << there % 64, __ATOMIC_RELEASE);
    __atomic_fetch_or(&arrived->groups, UINT64_C(1) << there / 64, __ATOMIC_RELEASE);
    visit->reached |= 1U << face;
}

/* What a flood does with a word of its tile: `visit` is the flood's own. */
typedef void tiles_word(void *visit, uint32_t place);

/*
 * Runs a flood on a tile until it is quiet: `fresh` looks at each word that the tile begins with,
 * `gather` at one that has been reached from beyond, `spread` at one that has changed. All are
 * TILES_INLINE, so that they are compiled for the instructions of the caller.
 */
TILES_INLINE void
tiles_flood(struct tiles_visit *tiles, void *visit, tiles_word *fresh, tiles_word *gather,
            tiles_word *spread)
{
    struct tiles_marks *arrived = &tiles->tile->arrived;
    uint64_t groups;

    if (tiles->tile->fresh)
        for (uint32_t z = 0; z <= tiles->last[2]; z++)
            for (uint32_t y = 0; y <= tiles->last[1]; y++)
                for (uint32_t x = 0; x <= tiles->last[0]; x++)
                    fresh(visit, x | y << tiles->bit[1] | z << tiles->bit[2]);
    tiles->tile->fresh = false;
    groups = __atomic_exchange_n(&arrived->groups, 0, __ATOMIC_ACQUIRE);
    for (; groups; groups &= groups - 1) {
        uint32_t group = (uint32_t)__builtin_ctzll(groups);
        uint64_t words = __atomic_exchange_n(&arrived->words[group], 0, __ATOMIC_ACQUIRE);

        for (; words; words &= words - 1)
            gather(visit, group * 64 + (uint32_t)__builtin_ctzll(words));
    }
    while (tiles->marks.groups)
        spread(visit, tiles_take(&tiles->marks));
}

/* The flood FLOOD(volume, tiles) twice, as tiles_work.run: for any processor, and for those with
 * bit instructions. */
#ifdef __x86_64__
#define TILES_BIT_INSTRUCTIONS __attribute__((target("bmi,bmi2,lzcnt,popcnt")))
#else
#define TILES_BIT_INSTRUCTIONS
#endif
#define TILES_RUNS(FLOOD)                                                                          \
    static void FLOOD##_plain(const void *volume, struct tiles_visit *tiles)                       \
    {                                                                                              \
        FLOOD(volume, tiles);                                                                      \
    }                                                                                              \
    TILES_BIT_INSTRUCTIONS static void FLOOD##_bit_instructions(const void *volume,                \
                                                                struct tiles_visit *tiles)         \
    {                                                                                              \
        FLOOD(volume, tiles);                                                                      \
    }

/* Voxels first[axis] .. last[axis], inclusive, inside the volume. */
struct tiles_box {
    int64_t first[3];
    int64_t last[3];
};

/* Bytes of work space for a volume of this extent; about 1.6 % of one bit a voxel. */
size_t tiles_space(const struct bits_extent *extent);

struct tiles_work {
    struct bits_extent extent;
    void *space; /* tiles_space bytes, 64-byte aligned, contents ignored */
    /* Runs a tile until it is quiet: looks at what is fresh and at what has arrived. */
    void (*run)(const void *context, struct tiles_visit *visit);
    const void *context;
};

/* Runs the tiles that meet the box and all those that are reached, until all are quiet. Returns the
 * sum of their growth. */
int64_t tiles_run(const struct tiles_work *work, const struct tiles_box *box,
                  struct cpu_pool *pool);

#endif
