#include "kernels/cpu/tiles.h"

#include <pthread.h>
#include <string.h>

enum { TILE_BITS = 12 /* log2 of a tile's words */ };

/* The mutex guards the queue fields and the tiles' states. */
struct tiles {
    struct tiles_work work;
    int64_t shift[3]; /* log2 of a tile's size in words, rows, slices */
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
        bit += (int)tiles->shift[axis];
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

/* Handles a tile that has become quiet. The caller must hold the mutex. */
static void
visit_end(struct tiles *tiles, uint32_t number, const struct tiles_visit *visit)
{
    struct tile *tile = &tiles->tile[number];
    bool again = tile->state == TILE_RUNNING_AGAIN;

    tile->state = TILE_QUIET;
    if (again)
        enqueue(tiles, number);
    for (int face = 0; face < TILES_FACES; face++) {
        const uint32_t marked = (uint32_t)(number + visit->away[face]);

        if (!(visit->reached & 1U << face))
            continue;
        if (tiles->tile[marked].state == TILE_QUIET)
            enqueue(tiles, marked);
        else if (tiles->tile[marked].state == TILE_RUNNING)
            tiles->tile[marked].state = TILE_RUNNING_AGAIN;
    }
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

/* Chooses tiles of up to 8 words (a cache line) x 32 rows x 16 slices. A thin volume gives the unused size of one axis
 * to the others. Returns the number of tiles. */
static int64_t
tiles_choose(const struct bits_extent *extent, int64_t shift[3], int64_t count[3])
{
    const int64_t words[3] = {extent->words_per_row, extent->size[1], extent->size[2]};
    int64_t most[3]; /* log2 of the smallest power of two that holds the axis */

    for (int axis = 0; axis < 3; axis++)
        most[axis] = words[axis] <= 1 ? 0 : 64 - __builtin_clzll((uint64_t)words[axis] - 1);
    shift[0] = bits_least(most[0], 3);
    shift[2] = bits_least(most[2], 4);
    shift[1] = bits_least(most[1], TILE_BITS - shift[0] - shift[2]);
    shift[2] = bits_least(most[2], TILE_BITS - shift[0] - shift[1]);
    shift[0] = bits_least(most[0], TILE_BITS - shift[1] - shift[2]);
    for (int axis = 0; axis < 3; axis++)
        count[axis] = ((words[axis] - 1) >> shift[axis]) + 1;
    return count[0] * count[1] * count[2];
}

size_t
tiles_space(const struct bits_extent *extent)
{
    int64_t shift[3], count[3];

    return (size_t)tiles_choose(extent, shift, count) * (sizeof(struct tile) + sizeof(uint32_t));
}

/* Queues the tiles that the box meets. */
static void
seed_box(struct tiles *tiles, const struct tiles_box *box)
{
    int64_t first[3], last[3];

    for (int axis = 0; axis < 3; axis++) {
        int64_t shift = tiles->shift[axis] + (axis == 0 ? 6 : 0);
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

int64_t
tiles_run(const struct tiles_work *work, const struct tiles_box *box, struct cpu_pool *pool)
{
    const struct bits_extent *extent = &work->extent;
    struct tiles tiles = {.work = *work,
                          .step = {1, extent->words_per_row, extent->words_per_slice},
                          .tail = ~UINT64_C(0) >> (63 - (extent->size[0] - 1) % 64),
                          .tile = work->space};
    const int64_t count = tiles_choose(extent, tiles.shift, tiles.count);

    tiles.queue = (uint32_t *)(tiles.tile + count);
    memset(tiles.tile, 0, (size_t)count * sizeof(*tiles.tile));
    pthread_mutex_init(&tiles.mutex, NULL);
    pthread_cond_init(&tiles.changed, NULL);
    seed_box(&tiles, box);
    cpu_pool_run(pool, tiles_thread, &tiles);
    pthread_cond_destroy(&tiles.changed);
    pthread_mutex_destroy(&tiles.mutex);
    return tiles.growth;
}
