/* tiles.c - see tiles.h. */
#include "kernels/cpu/tiles.h"

#include <pthread.h>
#include <string.h>

enum { TILE_BITS = 12 /* log2 of a tile's words */ };

/* The mutex guards the queue fields and the tiles' states. */
struct tiles {
    struct tiles_work work;
    int shift[3];     /* log2 of a tile's size in words, rows, slices */
    int64_t count[3]; /* number of tiles along each axis */
    int64_t step[3];  /* words from a word to its neighbour per axis */
    uint64_t tail;    /* voxels in the last word of a row */
    struct tile *tile;

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a tile was queued, or all are quiet */
    uint32_t *queue;        /* ring of tile numbers, one slot per tile */
    int64_t queue_first;
    int64_t queue_count;
    int running;
    int waiting;
    int64_t growth;
};

static void
visit_begin(const struct tiles *tiles, uint32_t number, struct tiles_visit *visit)
{
    const struct bits_extent *extent = &tiles->work.extent;
    int64_t words[3] = {extent->words_per_row, extent->size[1], extent->size[2]};
    int64_t where[3] = {number % tiles->count[0], number / tiles->count[0] % tiles->count[1],
                        number / tiles->count[0] / tiles->count[1]};
    int64_t next[3] = {1, tiles->count[0], tiles->count[0] * tiles->count[1]};
    int64_t origin = 0;
    int bit = 0;

    memset(&visit->marks, 0, sizeof(visit->marks));
    for (int axis = 0; axis < 3; axis++) {
        int64_t first = where[axis] << tiles->shift[axis];
        int64_t rest = words[axis] - first;
        int64_t full = INT64_C(1) << tiles->shift[axis];

        origin += first * tiles->step[axis];
        visit->step[axis] = tiles->step[axis];
        visit->bit[axis] = bit;
        visit->mask[axis] = (uint32_t)(full - 1);
        visit->last[axis] = (uint32_t)((rest < full ? rest : full) - 1);
        visit->away[2 * axis] = where[axis] > 0 ? -next[axis] : 0;
        visit->away[2 * axis + 1] = where[axis] + 1 < tiles->count[axis] ? next[axis] : 0;
        bit += tiles->shift[axis];
    }
    visit->origin = origin;
    visit->tile = &tiles->tile[number];
    visit->tail = tiles->tail;
    visit->reached = 0;
    visit->growth = 0;
}

/* The caller must hold the mutex. */
static void
enqueue(struct tiles *tiles, uint32_t number)
{
    int64_t count = tiles->count[0] * tiles->count[1] * tiles->count[2];
    int64_t place = tiles->queue_first + tiles->queue_count++;

    tiles->queue[place < count ? place : place - count] = number;
    tiles->tile[number].state = TILE_QUEUED;
}

/* Handles a mark in a tile. The caller must hold the mutex. */
static void
wake(struct tiles *tiles, uint32_t number)
{
    switch (tiles->tile[number].state) {
    case TILE_QUIET:
        enqueue(tiles, number);
        break;
    case TILE_RUNNING:
        tiles->tile[number].state = TILE_RUNNING_AGAIN;
        break;
    case TILE_QUEUED:
    case TILE_RUNNING_AGAIN:
        break;
    }
}

/* Handles a tile that has become quiet. The caller must hold the mutex. */
static void
visit_end(struct tiles *tiles, uint32_t number, const struct tiles_visit *visit)
{
    struct tile *tile = &tiles->tile[number];
    bool again = tile->state == TILE_RUNNING_AGAIN;

    tile->state = TILE_QUIET;
    if (again)
        enqueue(tiles, number);
    for (int face = 0; face < TILES_FACES; face++)
        if (visit->reached & 1U << face)
            wake(tiles, (uint32_t)(number + visit->away[face]));
    tiles->growth += visit->growth;
    tiles->running--;
    /* This thread takes one tile itself, so that a flood of one tile at a time wakes no threads. */
    if (tiles->waiting > 0 && (tiles->queue_count > 1 || (tiles->queue_count == 0 && tiles->running == 0)))
        pthread_cond_broadcast(&tiles->changed);
}

static void
tiles_thread(void *context)
{
    struct tiles *tiles = context;
    struct tiles_visit visit;

    pthread_mutex_lock(&tiles->mutex);
    for (;;) {
        while (tiles->queue_count == 0 && tiles->running > 0) {
            tiles->waiting++;
            pthread_cond_wait(&tiles->changed, &tiles->mutex);
            tiles->waiting--;
        }
        if (tiles->queue_count == 0)
            break;
        uint32_t number = tiles->queue[tiles->queue_first++];

        if (tiles->queue_first == tiles->count[0] * tiles->count[1] * tiles->count[2])
            tiles->queue_first = 0;
        tiles->queue_count--;
        tiles->tile[number].state = TILE_RUNNING;

        tiles->running++;
        pthread_mutex_unlock(&tiles->mutex);
        visit_begin(tiles, number, &visit);
        tiles->work.run(tiles->work.context, &visit);
        pthread_mutex_lock(&tiles->mutex);
        visit_end(tiles, number, &visit);
    }
    pthread_mutex_unlock(&tiles->mutex);
}

static int
tiles_least(int a, int b)
{
    return a < b ? a : b;
}

/* Returns log2 of the smallest power of two that is at least size. */
static int
log2_above(int64_t size)
{
    return size <= 1 ? 0 : 64 - __builtin_clzll((uint64_t)size - 1);
}

/* Chooses tiles of up to 8 words (a cache line) x 32 rows x 16 slices. A thin volume gives the
 * unused size of one axis to the others. */
static void
tile_shifts(const struct bits_extent *extent, int shift[3])
{
    int x = log2_above(extent->words_per_row), y = log2_above(extent->size[1]);
    int z = log2_above(extent->size[2]);

    shift[0] = tiles_least(x, 3);
    shift[2] = tiles_least(z, 4);
    shift[1] = tiles_least(y, TILE_BITS - shift[0] - shift[2]);
    shift[2] = tiles_least(z, TILE_BITS - shift[0] - shift[1]);
    shift[0] = tiles_least(x, TILE_BITS - shift[1] - shift[2]);
}

static int64_t
tile_counts(const struct bits_extent *extent, const int shift[3], int64_t count[3])
{
    int64_t words[3] = {extent->words_per_row, extent->size[1], extent->size[2]};

    for (int axis = 0; axis < 3; axis++)
        count[axis] = ((words[axis] - 1) >> shift[axis]) + 1;
    return count[0] * count[1] * count[2];
}

size_t
tiles_space(const struct bits_extent *extent)
{
    int shift[3];
    int64_t count[3];

    tile_shifts(extent, shift);
    return (size_t)tile_counts(extent, shift, count) * (sizeof(struct tile) + sizeof(uint32_t));
}

/* Queues the tiles that the box meets. */
static void
seed_box(struct tiles *tiles, const struct tiles_box *box)
{
    int64_t first[3], last[3];

    for (int axis = 0; axis < 3; axis++) {
        int shift = tiles->shift[axis] + (axis == 0 ? 6 : 0);
        first[axis] = box->first[axis] >> shift;
        last[axis] = box->last[axis] >> shift;
    }
    for (int64_t z = first[2]; z <= last[2]; z++)
        for (int64_t y = first[1]; y <= last[1]; y++)
            for (int64_t x = first[0]; x <= last[0]; x++) {
                int64_t number = (z * tiles->count[1] + y) * tiles->count[0] + x;
                tiles->tile[number].fresh = true;
                enqueue(tiles, (uint32_t)number);
            }
}

static void
tiles_begin(struct tiles *tiles)
{
    const struct bits_extent *extent = &tiles->work.extent;
    int64_t count;

    tile_shifts(extent, tiles->shift);
    count = tile_counts(extent, tiles->shift, tiles->count);
    tiles->step[0] = 1;
    tiles->step[1] = extent->words_per_row;
    tiles->step[2] = extent->words_per_slice;
    tiles->tail = ~UINT64_C(0) >> (63 - (extent->size[0] - 1) % 64);
    tiles->tile = tiles->work.space;
    tiles->queue = (uint32_t *)(tiles->tile + count);
    memset(tiles->tile, 0, (size_t)count * sizeof(*tiles->tile));
}

int64_t
tiles_run(const struct tiles_work *work, const struct tiles_box *box, struct cpu_pool *pool)
{
    struct tiles tiles = {.work = *work};

    pthread_mutex_init(&tiles.mutex, NULL);
    pthread_cond_init(&tiles.changed, NULL);
    tiles_begin(&tiles);
    seed_box(&tiles, box);
    cpu_pool_run(pool, tiles_thread, &tiles);
    pthread_cond_destroy(&tiles.changed);
    pthread_mutex_destroy(&tiles.mutex);
    return tiles.growth;
}
