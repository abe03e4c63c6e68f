/*
 * flood.c - see flood.h.
 *
 * Work per word, not per voxel: a run is a maximal group of neighbouring bits of one word that
 * agree in `range`, and once its word was first looked at a run is settled as a whole or open as a
 * whole. A word is updated only when at least one of its runs settles, so there are never more
 * updates than runs, whatever the shape and the order: the time is linear in the volume.
 *
 * The volume is cut into tiles of at most 4096 words. One thread at a time floods a tile until
 * nothing changes in it; words yet to be looked at are marked in a two-level bitmap. A tile writes
 * only its own words. Where it could settle a voxel of a neighbour it marks that word as arrived
 * there, and the neighbour is queued. Threads read each other's words while these change; since
 * voxels only ever settle, an old value costs a look and never a mistake: the mark is set after the
 * word that caused it was written, and taken before that word is read again.
 */
#include "flood.h"

#include <pthread.h>
#include <string.h>

enum {
    TILE_BITS = 12, /* log2 of the words of a tile */
    GROUPS = 64,    /* 64 groups of 64 words */
    FACES = 6,      /* -x +x -y +y -z +z */
};

enum tile_state {
    TILE_QUIET,
    TILE_QUEUED,
    TILE_RUNNING,
    TILE_RUNNING_AGAIN, /* something arrived while it ran */
};

/* Words of a tile, one bit each; bit g of groups is set when words[g] may have a bit. */
struct marks {
    uint64_t words[GROUPS];
    uint64_t groups;
};

struct tile {
    struct marks arrived; /* set by neighbours, atomically */
    enum tile_state state;
    bool fresh; /* holds parts of the initial region, and has not run */
};

/* The queue fields and the tiles' states are guarded by the mutex. */
struct flood {
    struct flood_volume volume;
    bool bit_instructions;
    int shift[3];     /* log2 of a tile's size in words, rows, slices */
    int64_t tiles[3]; /* number of tiles along each axis */
    int64_t step[3];  /* words from a word to its neighbour along each axis */
    uint64_t tail;    /* the voxels of the last word of a row */
    struct tile *tile;

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* more was queued, or all is quiet */
    uint32_t *queue;        /* ring of tile numbers, as long as there are tiles */
    int64_t queue_first;
    int64_t queue_count;
    int running;
    int waiting;
    int64_t growth;
};

/* One tile while it is flooded. A word's place is x | y << shift[0] | z << (shift[0] + shift[1]).
 */
struct visit {
    const uint64_t *range; /* of the tile's first word */
    uint64_t *inside;
    struct tile *tile;
    struct marks marks;
    int64_t step[3];
    int bit[3];          /* where a coordinate begins in a place */
    uint32_t mask[3];    /* of a full tile, not shifted */
    uint32_t last[3];    /* last coordinate within this tile */
    int64_t away[FACES]; /* tiles to the neighbour beyond a face; 0: the volume ends there */
    unsigned reached;    /* faces beyond which something arrived */
    uint64_t tail;       /* the voxels of the last word of a row if this tile has it, else all */
    int64_t growth;
};

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t
peek(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

INLINE void
poke(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

INLINE void
mark(struct marks *marks, uint32_t place)
{
    marks->words[place / 64] |= UINT64_C(1) << place % 64;
    marks->groups |= UINT64_C(1) << place / 64;
}

/* Takes the first marked place; there is one. */
INLINE uint32_t
take(struct marks *marks)
{
    uint32_t group = (uint32_t)__builtin_ctzll(marks->groups);
    uint32_t place = group * 64 + (uint32_t)__builtin_ctzll(marks->words[group]);

    marks->words[group] &= marks->words[group] - 1;
    if (!marks->words[group])
        marks->groups &= marks->groups - 1;
    return place;
}

INLINE uint32_t
coordinate(const struct visit *visit, uint32_t place, int axis)
{
    return place >> visit->bit[axis] & visit->mask[axis];
}

INLINE int64_t
offset(const struct visit *visit, uint32_t place)
{
    return coordinate(visit, place, 0) + coordinate(visit, place, 1) * visit->step[1] +
           coordinate(visit, place, 2) * visit->step[2];
}

/* The runs of open bits, equal in range, that hold a bit of `hits`; hits are open. */
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

/* Settles the runs of the word at `at` that hold a bit of hits, which are open. */
INLINE void
settle(struct visit *visit, int64_t at, uint64_t range, uint64_t inside, uint64_t hits)
{
    uint64_t runs = runs_hit(range, range ^ inside, hits);

    poke(&visit->inside[at], inside ^ runs);
    visit->growth += __builtin_popcountll(runs & range) - __builtin_popcountll(runs & ~range);
}

/*
 * A word with these settled bits and this range, shifted so that they lie over the neighbour they
 * touch: the bits of the neighbour at `at` that settle.
 */
INLINE uint64_t
hits_on(const struct visit *visit, int64_t at, uint64_t settled, uint64_t range)
{
    uint64_t candidates = settled & ~(range ^ visit->range[at]);

    return candidates ? candidates & (visit->range[at] ^ peek(&visit->inside[at])) : 0;
}

/* Carries settled bits to the neighbour beyond one of this tile's faces. */
static void
send(struct visit *visit, uint32_t place, int face, int64_t at, uint64_t settled, uint64_t range)
{
    int axis = face / 2;
    struct marks *arrived;
    uint32_t there;

    if (visit->away[face] == 0 || !hits_on(visit, at, settled, range))
        return;
    there = place & ~(visit->mask[axis] << visit->bit[axis]);
    if (face % 2 == 0)
        there |= visit->mask[axis] << visit->bit[axis];
    arrived = &visit->tile[visit->away[face]].arrived;
    __atomic_fetch_or(&arrived->words[there / 64], UINT64_C(1) << there % 64, __ATOMIC_RELEASE);
    __atomic_fetch_or(&arrived->groups, UINT64_C(1) << there / 64, __ATOMIC_RELEASE);
    visit->reached |= 1U << face;
}

INLINE void
spread_to(struct visit *visit, uint32_t place, int face, int64_t at, uint64_t settled,
          uint64_t range)
{
    int axis = face / 2;
    uint32_t here = coordinate(visit, place, axis);

    if (here == (face % 2 ? visit->last[axis] : 0)) {
        send(visit, place, face, at, settled, range);
        return;
    }
    uint64_t hits = hits_on(visit, at, settled, range);
    if (hits) {
        settle(visit, at, visit->range[at], peek(&visit->inside[at]), hits);
        mark(&visit->marks,
             face % 2 ? place + (1U << visit->bit[axis]) : place - (1U << visit->bit[axis]));
    }
}

/* Settles what a word's settled bits touch in the six words around it. */
INLINE void
spread(struct visit *visit, uint32_t place)
{
    int64_t at = offset(visit, place);
    uint64_t range = visit->range[at];
    uint64_t settled = ~(range ^ peek(&visit->inside[at]));

    spread_to(visit, place, 0, at - 1, settled << 63, range << 63);
    spread_to(visit, place, 1, at + 1, settled >> 63, range >> 63);
    spread_to(visit, place, 2, at - visit->step[1], settled, range);
    spread_to(visit, place, 3, at + visit->step[1], settled, range);
    spread_to(visit, place, 4, at - visit->step[2], settled, range);
    spread_to(visit, place, 5, at + visit->step[2], settled, range);
}

/* The bits of a word that touch a settled bit of equal range in the word beyond a face. */
INLINE uint64_t
touched_from(const struct visit *visit, uint32_t place, int face, int64_t at, uint64_t range)
{
    int axis = face / 2;
    uint32_t here = coordinate(visit, place, axis);
    uint64_t their_range, settled;

    if (here == (face % 2 ? visit->last[axis] : 0) && visit->away[face] == 0)
        return 0;
    their_range = visit->range[at];
    settled = ~(their_range ^ peek(&visit->inside[at]));
    if (face == 0)
        return (settled >> 63 & ~(their_range >> 63 ^ range)) & 1;
    if (face == 1)
        return settled << 63 & ~(their_range << 63 ^ range);
    return settled & ~(their_range ^ range);
}

/* The voxels of the word at `place`: the last word of a row may be padded. */
INLINE uint64_t
present(const struct visit *visit, uint32_t place)
{
    bool at_end = visit->away[1] == 0 && coordinate(visit, place, 0) == visit->last[0];

    return at_end ? visit->tail : ~UINT64_C(0);
}

/* Settles what its own and the neighbouring settled bits touch in a word. */
INLINE void
gather(struct visit *visit, uint32_t place)
{
    int64_t at = offset(visit, place);
    uint64_t range = visit->range[at];
    uint64_t inside = peek(&visit->inside[at]);
    uint64_t settled = ~(range ^ inside) & present(visit, place);
    uint64_t touched =
        (settled << 1 & ~(range << 1 ^ range)) | (settled >> 1 & ~(range >> 1 ^ range));

    touched |= touched_from(visit, place, 0, at - 1, range);
    touched |= touched_from(visit, place, 1, at + 1, range);
    touched |= touched_from(visit, place, 2, at - visit->step[1], range);
    touched |= touched_from(visit, place, 3, at + visit->step[1], range);
    touched |= touched_from(visit, place, 4, at - visit->step[2], range);
    touched |= touched_from(visit, place, 5, at + visit->step[2], range);
    touched &= range ^ inside;
    if (touched)
        settle(visit, at, range, inside, touched);
    mark(&visit->marks, place);
}

/* Every word that holds a part of the initial region. */
INLINE void
gather_fresh(struct visit *visit)
{
    for (uint32_t z = 0; z <= visit->last[2]; z++)
        for (uint32_t y = 0; y <= visit->last[1]; y++)
            for (uint32_t x = 0; x <= visit->last[0]; x++) {
                uint32_t place = x | y << visit->bit[1] | z << visit->bit[2];
                if (visit->inside[offset(visit, place)])
                    gather(visit, place);
            }
}

INLINE void
gather_arrived(struct visit *visit)
{
    struct marks *arrived = &visit->tile->arrived;
    uint64_t groups = __atomic_exchange_n(&arrived->groups, 0, __ATOMIC_ACQUIRE);

    for (; groups; groups &= groups - 1) {
        uint32_t group = (uint32_t)__builtin_ctzll(groups);
        uint64_t words = __atomic_exchange_n(&arrived->words[group], 0, __ATOMIC_ACQUIRE);

        for (; words; words &= words - 1)
            gather(visit, group * 64 + (uint32_t)__builtin_ctzll(words));
    }
}

INLINE void
flood_tile_body(struct visit *visit)
{
    if (visit->tile->fresh)
        gather_fresh(visit);
    visit->tile->fresh = false;
    gather_arrived(visit);
    while (visit->marks.groups)
        spread(visit, take(&visit->marks));
}

static void
flood_tile_plain(struct visit *visit)
{
    flood_tile_body(visit);
}

#ifdef __x86_64__
__attribute__((target("bmi,bmi2,lzcnt,popcnt"))) static void
flood_tile_bit_instructions(struct visit *visit)
{
    flood_tile_body(visit);
}
#else
static void
flood_tile_bit_instructions(struct visit *visit)
{
    flood_tile_body(visit);
}
#endif

static void
visit_begin(const struct flood *flood, uint32_t number, struct visit *visit)
{
    const struct bits_extent *extent = &flood->volume.extent;
    int64_t words[3] = {extent->words_per_row, extent->size[1], extent->size[2]};
    int64_t where[3] = {number % flood->tiles[0], number / flood->tiles[0] % flood->tiles[1],
                        number / flood->tiles[0] / flood->tiles[1]};
    int64_t next[3] = {1, flood->tiles[0], flood->tiles[0] * flood->tiles[1]};
    int64_t origin = 0;
    int bit = 0;

    memset(&visit->marks, 0, sizeof(visit->marks));
    for (int axis = 0; axis < 3; axis++) {
        int64_t first = where[axis] << flood->shift[axis];
        int64_t rest = words[axis] - first;
        int64_t full = INT64_C(1) << flood->shift[axis];

        origin += first * flood->step[axis];
        visit->step[axis] = flood->step[axis];
        visit->bit[axis] = bit;
        visit->mask[axis] = (uint32_t)(full - 1);
        visit->last[axis] = (uint32_t)((rest < full ? rest : full) - 1);
        visit->away[2 * axis] = where[axis] > 0 ? -next[axis] : 0;
        visit->away[2 * axis + 1] = where[axis] + 1 < flood->tiles[axis] ? next[axis] : 0;
        bit += flood->shift[axis];
    }
    visit->range = flood->volume.range + origin;
    visit->inside = flood->volume.inside + origin;
    visit->tile = &flood->tile[number];
    visit->tail = flood->tail;
    visit->reached = 0;
    visit->growth = 0;
}

/* With the mutex. */
static void
enqueue(struct flood *flood, uint32_t number)
{
    int64_t count = flood->tiles[0] * flood->tiles[1] * flood->tiles[2];
    int64_t place = flood->queue_first + flood->queue_count++;

    flood->queue[place < count ? place : place - count] = number;
    flood->tile[number].state = TILE_QUEUED;
}

/* With the mutex. */
static uint32_t
dequeue(struct flood *flood)
{
    uint32_t number = flood->queue[flood->queue_first++];

    if (flood->queue_first == flood->tiles[0] * flood->tiles[1] * flood->tiles[2])
        flood->queue_first = 0;
    flood->queue_count--;
    flood->tile[number].state = TILE_RUNNING;
    return number;
}

/* With the mutex: something arrived in a tile. */
static void
wake(struct flood *flood, uint32_t number)
{
    switch (flood->tile[number].state) {
    case TILE_QUIET:
        enqueue(flood, number);
        break;
    case TILE_RUNNING:
        flood->tile[number].state = TILE_RUNNING_AGAIN;
        break;
    case TILE_QUEUED:
    case TILE_RUNNING_AGAIN:
        break;
    }
}

/* With the mutex: a tile has come to rest. */
static void
visit_end(struct flood *flood, uint32_t number, const struct visit *visit)
{
    struct tile *tile = &flood->tile[number];
    bool again = tile->state == TILE_RUNNING_AGAIN;

    tile->state = TILE_QUIET;
    if (again)
        enqueue(flood, number);
    for (int face = 0; face < FACES; face++)
        if (visit->reached & 1U << face)
            wake(flood, (uint32_t)(number + visit->away[face]));
    flood->growth += visit->growth;
    flood->running--;
    /* This thread takes one tile itself; the front of a maze moves without waking anybody. */
    if (flood->waiting > 0 &&
        (flood->queue_count > 1 || (flood->queue_count == 0 && flood->running == 0)))
        pthread_cond_broadcast(&flood->changed);
}

static void
flood_thread(void *context)
{
    struct flood *flood = context;
    struct visit visit;

    pthread_mutex_lock(&flood->mutex);
    for (;;) {
        while (flood->queue_count == 0 && flood->running > 0) {
            flood->waiting++;
            pthread_cond_wait(&flood->changed, &flood->mutex);
            flood->waiting--;
        }
        if (flood->queue_count == 0)
            break;
        uint32_t number = dequeue(flood);
        flood->running++;
        pthread_mutex_unlock(&flood->mutex);
        visit_begin(flood, number, &visit);
        if (flood->bit_instructions)
            flood_tile_bit_instructions(&visit);
        else
            flood_tile_plain(&visit);
        pthread_mutex_lock(&flood->mutex);
        visit_end(flood, number, &visit);
    }
    pthread_mutex_unlock(&flood->mutex);
}

static int
least(int a, int b)
{
    return a < b ? a : b;
}

/* log2 of the smallest power of two that is not below size. */
static int
log2_above(int64_t size)
{
    return size <= 1 ? 0 : 64 - __builtin_clzll((uint64_t)size - 1);
}

/*
 * Tiles of up to 8 words (a cache line) x 32 rows x 16 slices; what a thin volume does not use of
 * one axis goes to the others.
 */
static void
tile_shifts(const struct bits_extent *extent, int shift[3])
{
    int x = log2_above(extent->words_per_row), y = log2_above(extent->size[1]);
    int z = log2_above(extent->size[2]);

    shift[0] = least(x, 3);
    shift[2] = least(z, 4);
    shift[1] = least(y, TILE_BITS - shift[0] - shift[2]);
    shift[2] = least(z, TILE_BITS - shift[0] - shift[1]);
    shift[0] = least(x, TILE_BITS - shift[1] - shift[2]);
}

static int64_t
tile_counts(const struct bits_extent *extent, const int shift[3], int64_t tiles[3])
{
    int64_t words[3] = {extent->words_per_row, extent->size[1], extent->size[2]};

    for (int axis = 0; axis < 3; axis++)
        tiles[axis] = ((words[axis] - 1) >> shift[axis]) + 1;
    return tiles[0] * tiles[1] * tiles[2];
}

size_t
flood_space(const struct bits_extent *extent)
{
    int shift[3];
    int64_t tiles[3];

    tile_shifts(extent, shift);
    return (size_t)tile_counts(extent, shift, tiles) * (sizeof(struct tile) + sizeof(uint32_t));
}

/* Queues the tiles that the box meets. */
static void
seed_box(struct flood *flood, const struct flood_box *box)
{
    int64_t first[3], last[3];

    for (int axis = 0; axis < 3; axis++) {
        int shift = flood->shift[axis] + (axis == 0 ? 6 : 0);
        first[axis] = box->first[axis] >> shift;
        last[axis] = box->last[axis] >> shift;
    }
    for (int64_t z = first[2]; z <= last[2]; z++)
        for (int64_t y = first[1]; y <= last[1]; y++)
            for (int64_t x = first[0]; x <= last[0]; x++) {
                int64_t number = (z * flood->tiles[1] + y) * flood->tiles[0] + x;
                flood->tile[number].fresh = true;
                enqueue(flood, (uint32_t)number);
            }
}

static void
flood_begin(struct flood *flood)
{
    const struct bits_extent *extent = &flood->volume.extent;
    int64_t count;

    tile_shifts(extent, flood->shift);
    count = tile_counts(extent, flood->shift, flood->tiles);
    flood->step[0] = 1;
    flood->step[1] = extent->words_per_row;
    flood->step[2] = extent->words_per_slice;
    flood->tail = ~UINT64_C(0) >> (63 - (extent->size[0] - 1) % 64);
    flood->tile = flood->volume.space;
    flood->queue = (uint32_t *)(flood->tile + count);
    memset(flood->tile, 0, (size_t)count * sizeof(*flood->tile));
}

int64_t
flood_run(const struct flood_volume *volume, const struct flood_box *box, const struct isa *isa,
          struct cpu_pool *pool)
{
    struct flood flood = {.volume = *volume, .bit_instructions = isa->bit_instructions};

    pthread_mutex_init(&flood.mutex, NULL);
    pthread_cond_init(&flood.changed, NULL);
    flood_begin(&flood);
    seed_box(&flood, box);
    cpu_pool_run(pool, flood_thread, &flood);
    pthread_cond_destroy(&flood.changed);
    pthread_mutex_destroy(&flood.mutex);
    return flood.growth;
}
