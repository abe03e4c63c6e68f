/*
 * tiles.h - floods on a volume of packed bits in tiles. A thread processes one tile at a time until
 * it no longer changes.
 *
 * A tile has at most 4096 words. A two-level bitmap marks the words to process. A tile writes only its own words. If it
 * could change a neighbouring tile, it marks the word there as arrived, and the neighbour is queued. Threads read each
 * other's words (tiles_peek) while these change (tiles_poke). A flood only adds voxels, so a stale value costs another
 * visit, but is no error. The mark is set after the word that caused it is written, and cleared before that word is
 * read again.
 */
#ifndef NOCTULE_KERNELS_CPU_TILES_H
#define NOCTULE_KERNELS_CPU_TILES_H

#include "kernels/cpu/bits.h"
#include "kernels/cpu/cpu_pool.h"

#include <stddef.h>

enum {
    TILES_GROUPS = 64, /* 64 groups of 64 words */
    TILES_FACES = 6,   /* -x +x -y +y -z +z */
};

enum tile_state {
    TILE_QUIET,
    TILE_QUEUED,
    TILE_RUNNING,
    TILE_RUNNING_AGAIN, /* a word arrived while the tile ran */
};

/* One bit per word of a tile. Bit g of groups is set if words[g] may have a bit. */
struct tiles_marks {
    uint64_t words[TILES_GROUPS];
    uint64_t groups;
};

struct tile {
    struct tiles_marks arrived; /* set atomically by neighbours */
    enum tile_state state;
    bool fresh; /* meets the initial box and has not run */
};

/* A running tile. A word's place is x | y << bit[1] | z << bit[2]. */
struct tiles_visit {
    struct tile *tile;
    struct tiles_marks marks;
    int64_t origin;            /* first word of the tile */
    int64_t step[3];           /* words from a word to its neighbour per axis */
    int bit[3];                /* first bit of a coordinate in a place */
    uint32_t mask[3];          /* coordinates of a full tile, not shifted */
    uint32_t last[3];          /* last coordinate in this tile */
    int64_t away[TILES_FACES]; /* tiles to the neighbour beyond a face; 0: end of the volume */
    unsigned reached;          /* faces beyond which a word was marked */
    uint64_t tail;             /* voxels in the last word of a row if this tile has it, otherwise all */
    int64_t growth;            /* voxels added by the flood */
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

TILES_INLINE uint32_t
tiles_coordinate(const struct tiles_visit *visit, uint32_t place, int axis)
{
    return place >> visit->bit[axis] & visit->mask[axis];
}

/* Returns the offset of a word from the tile's first word. */
TILES_INLINE int64_t
tiles_offset(const struct tiles_visit *visit, uint32_t place)
{
    return tiles_coordinate(visit, place, 0) + tiles_coordinate(visit, place, 1) * visit->step[1] +
           tiles_coordinate(visit, place, 2) * visit->step[2];
}

/* Marks the word opposite `place` beyond a face that the place touches. The neighbour must
 * exist. */
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

/* A flood's action on a word of its tile. `visit` belongs to the flood. */
typedef void tiles_word(void *visit, uint32_t place);

/*
 * Runs a flood on a tile until it is quiet. `fresh` visits each word of a fresh tile, `gather` each
 * word that was reached from beyond, and `spread` each word that changed. All must be TILES_INLINE,
 * so that they are compiled for the caller's instruction set.
 */
TILES_INLINE void
tiles_flood(struct tiles_visit *tiles, void *visit, tiles_word *fresh, tiles_word *gather, tiles_word *spread)
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
    while (tiles->marks.groups) { /* take the first marked word */
        uint32_t group = (uint32_t)__builtin_ctzll(tiles->marks.groups);
        uint32_t place = group * 64 + (uint32_t)__builtin_ctzll(tiles->marks.words[group]);

        tiles->marks.words[group] &= tiles->marks.words[group] - 1;
        if (!tiles->marks.words[group])
            tiles->marks.groups &= tiles->marks.groups - 1;
        spread(visit, place);
    }
}

/* Defines FLOOD(volume, tiles) twice, as tiles_work.run: for any processor, and for bit
 * instructions. */
#ifdef __x86_64__
#define TILES_BIT_INSTRUCTIONS __attribute__((target("bmi,bmi2,lzcnt,popcnt")))
#else
#define TILES_BIT_INSTRUCTIONS
#endif
#define TILES_RUNS(FLOOD)                                                                                              \
    static void FLOOD##_plain(const void *volume, struct tiles_visit *tiles)                                           \
    {                                                                                                                  \
        FLOOD(volume, tiles);                                                                                          \
    }                                                                                                                  \
    TILES_BIT_INSTRUCTIONS static void FLOOD##_bit_instructions(const void *volume, struct tiles_visit *tiles)         \
    {                                                                                                                  \
        FLOOD(volume, tiles);                                                                                          \
    }

/* Voxels first[axis] .. last[axis], inclusive. They must lie inside the volume. */
struct tiles_box {
    int64_t first[3];
    int64_t last[3];
};

/* Returns the bytes of work space for a volume of this extent, about 1.6 % of one bit per voxel. */
size_t tiles_space(const struct bits_extent *extent);

struct tiles_work {
    struct bits_extent extent;
    void *space; /* tiles_space bytes, 64-byte aligned; contents are ignored */
    /* Runs a fresh or reached tile until it is quiet. */
    void (*run)(const void *context, struct tiles_visit *visit);
    const void *context;
};

/* Runs the tiles that meet the box and all tiles that are reached, until all are quiet. Returns the
 * sum of their growth. */
int64_t tiles_run(const struct tiles_work *work, const struct tiles_box *box, struct cpu_pool *pool);

#endif
