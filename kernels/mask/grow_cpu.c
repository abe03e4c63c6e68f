/*
 * grow_cpu.c - balls on the CPU: a row of the result is the union of rows of the source, each
 * widened by its span (ball.h). Shrinking is growing the complement, but for what lies nearer to
 * the volume's end than the ball reaches, where it finds nothing.
 *
 * Only the source's box, and what the ball reaches beyond it, is looked at. Rows of the ball that
 * leave the box are left out; where none does, rows of the result are made several at a time.
 */
#include "kernels/mask/mask_cpu.h"

#include <string.h>

enum {
    TOGETHER = 8,   /* rows of the result, whose work hides each other's latencies */
    TILE_ROWS = 64, /* of a slice, that are dealt out together */
};

/* One thread's: rows of the ball that are left, and isa.unite's. */
struct grow_thread {
    int64_t *offsets;
    int64_t *ends;
    uint64_t *unite;
};

struct grow_job {
    const struct mask_volume *volume;
    const struct mask_ball *ball;
    const struct mask_grow_space *space;
    const uint64_t *source;
    uint64_t *target;
    bool shrink;
    struct mask_box from;     /* where the source may have voxels, or its complement counts */
    struct mask_box to;       /* where the target may have some */
    int64_t word, last_word;  /* of a row, that are worked on */
    int64_t tiles, next_tile; /* next_tile and next_thread: atomic */
    int64_t next_thread;
};

static size_t
grow_unite_words(const struct mask_volume *volume)
{
    const struct isa_rows rows = {.count = TOGETHER, .words = volume->extent.words_per_row};

    return (size_t)ISA_UNITE_SPACE(&rows);
}

/* A thread's pieces, which are counted where there is no memory. */
static size_t
grow_thread_place(struct grow_thread *thread, const struct mask_volume *volume,
                  const struct mask_reach *most, unsigned char *memory)
{
    struct kernels_arena arena = {.memory = memory};

    thread->offsets = kernels_take(&arena, mask_ball_rows(most), sizeof(*thread->offsets));
    thread->ends = kernels_take(&arena, mask_ball_groups(most), sizeof(*thread->ends));
    thread->unite = kernels_take(&arena, grow_unite_words(volume), sizeof(*thread->unite));
    return arena.used;
}

void
mask_grow_place(struct mask_grow_space *space, const struct mask_volume *volume,
                const struct mask_reach *most, struct kernels_arena *arena)
{
    struct grow_thread thread;

    space->most = *most;
    space->bytes = grow_thread_place(&thread, volume, most, NULL);
    space->offsets = kernels_take(arena, mask_ball_rows(most), sizeof(*space->offsets));
    space->threads = kernels_take(arena, (size_t)volume->threads, space->bytes);
}

static int64_t
row_offset(const struct bits_extent *extent, struct mask_row row)
{
    return row.j * extent->words_per_row + row.k * extent->words_per_slice;
}

static int64_t
unite_rows_of(const struct grow_job *job, const struct isa_rows *rows, struct grow_thread *thread,
              int64_t y, int64_t z)
{
    const struct bits_extent *extent = &job->volume->extent;
    const uint64_t tail = mask_tail(extent), *found = job->volume->isa->unite(rows, thread->unite);
    const int64_t pitch = rows->words + 2;

    for (int64_t r = 0; r < rows->count; r++) {
        uint64_t *row = job->target + z * extent->words_per_slice + (y + r) * extent->words_per_row;

        for (int64_t i = 0; i < rows->words; i++)
            row[job->word + i] = found[r * pitch + i] ^ rows->flip;
        row[extent->words_per_row - 1] &= tail;
    }
    return rows->count;
}

/* The rows of the ball around row (y, z) that lie in the box. */
static void
choose_rows(const struct grow_job *job, struct grow_thread *thread, int64_t y, int64_t z)
{
    const struct mask_ball *ball = job->ball;
    const struct mask_box *box = &job->from;
    int64_t chosen = 0, i = 0;

    for (int64_t group = 0; group < ball->groups; group++) {
        for (; i < ball->ends[group]; i++) {
            int64_t at_y = y + ball->rows[i].j, at_z = z + ball->rows[i].k;

            if (at_y >= box->first[1] && at_y <= box->last[1] && at_z >= box->first[2] &&
                at_z <= box->last[2])
                thread->offsets[chosen++] = job->space->offsets[i];
        }
        thread->ends[group] = chosen;
    }
}

/* Makes row (y, z), and some of those behind it up to `last`; returns how many. */
static int64_t
grow_rows(const struct grow_job *job, struct grow_thread *thread, int64_t y, int64_t last,
          int64_t z)
{
    const struct bits_extent *extent = &job->volume->extent;
    const int64_t *reach = job->ball->reach.size;
    const struct mask_box *box = &job->from;
    const int64_t end = box->last[1] - reach[1] < last ? box->last[1] - reach[1] : last;
    struct isa_rows rows = {
        .first = job->source + z * extent->words_per_slice + y * extent->words_per_row + job->word,
        .count = 1,
        .stride = extent->words_per_row,
        .words = job->last_word - job->word + 1,
        .flip = job->shrink ? ~UINT64_C(0) : 0,
        .groups = job->ball->groups,
        .offsets = thread->offsets,
        .ends = thread->ends,
        .widen = job->ball->widen,
    };

    if (z - reach[2] >= box->first[2] && z + reach[2] <= box->last[2] &&
        y - reach[1] >= box->first[1] && y <= end) {
        rows.count = end - y + 1 < TOGETHER ? end - y + 1 : TOGETHER;
        rows.offsets = job->space->offsets;
        rows.ends = job->ball->ends;
    } else {
        choose_rows(job, thread, y, z);
    }
    return unite_rows_of(job, &rows, thread, y, z);
}

/* Clears what lies nearer than the ball's reach to the ends of rows first .. last of slice z. */
static void
clear_ends(const struct grow_job *job, int64_t first, int64_t last, int64_t z)
{
    const struct bits_extent *extent = &job->volume->extent;

    for (int64_t y = first; y <= last; y++) {
        uint64_t *row = job->target + z * extent->words_per_slice + y * extent->words_per_row;

        for (int64_t word = 0; word < extent->words_per_row; word++) {
            int64_t low = job->to.first[0] - 64 * word, high = job->to.last[0] - 64 * word;

            if (low > 63 || high < 0) {
                row[word] = 0;
                continue;
            }
            row[word] &= low > 0 ? ~UINT64_C(0) << low : ~UINT64_C(0);
            row[word] &= high < 63 ? ~UINT64_C(0) >> (63 - high) : ~UINT64_C(0);
        }
    }
}

/* A tile is TILE_ROWS rows of a slice. */
static void
grow_tile(const struct grow_job *job, struct grow_thread *thread, int64_t tile)
{
    const struct bits_extent *extent = &job->volume->extent;
    const int64_t tiles = (extent->size[1] + TILE_ROWS - 1) / TILE_ROWS, z = tile / tiles;
    const int64_t begin = tile % tiles * TILE_ROWS;
    const int64_t end = begin + TILE_ROWS < extent->size[1] ? begin + TILE_ROWS : extent->size[1];
    const int64_t first = job->to.first[1] > begin ? job->to.first[1] : begin;
    const int64_t last = job->to.last[1] < end - 1 ? job->to.last[1] : end - 1;
    uint64_t *words = job->target + z * extent->words_per_slice + begin * extent->words_per_row;

    memset(words, 0, (size_t)((end - begin) * extent->words_per_row) * sizeof(*words));
    if (z < job->to.first[2] || z > job->to.last[2] || mask_box_is_empty(&job->to))
        return;
    for (int64_t y = first; y <= last;)
        y += grow_rows(job, thread, y, last, z);
    if (job->shrink)
        clear_ends(job, first, last, z);
}

static void
grow_on_thread(void *context)
{
    struct grow_job *job = context;
    int64_t number = __atomic_fetch_add(&job->next_thread, 1, __ATOMIC_RELAXED), tile;
    struct grow_thread thread;

    grow_thread_place(&thread, job->volume, &job->space->most,
                      job->space->threads + (size_t)number * job->space->bytes);
    while ((tile = __atomic_fetch_add(&job->next_tile, 1, __ATOMIC_RELAXED)) < job->tiles)
        grow_tile(job, &thread, tile);
}

static int64_t
grow_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
grow_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Where the source matters, where the target may have voxels, and the words that decide on them. */
static void
find_boxes(struct grow_job *job, const struct mask_box *box)
{
    const struct bits_extent *extent = &job->volume->extent;
    const int64_t *reach = job->ball->reach.size;

    for (int axis = 0; axis < 3; axis++) {
        int64_t last = extent->size[axis] - 1;

        job->from.first[axis] = job->shrink ? 0 : box->first[axis];
        job->from.last[axis] = job->shrink ? last : box->last[axis];
        job->to.first[axis] = job->shrink ? grow_most(box->first[axis], reach[axis])
                                          : grow_most(box->first[axis] - reach[axis], 0);
        job->to.last[axis] = job->shrink ? grow_least(box->last[axis], last - reach[axis])
                                         : grow_least(box->last[axis] + reach[axis], last);
    }
    job->word = job->to.first[0] / 64;
    job->last_word = job->to.last[0] / 64;
    if (job->shrink) {
        job->word = grow_most(job->to.first[0] - reach[0], 0) / 64;
        job->last_word = grow_least(job->to.last[0] + reach[0], extent->size[0] - 1) / 64;
    }
}

void
mask_grow(const struct mask_volume *volume, const struct mask_ball *ball,
          const struct mask_grow_space *space, const uint64_t *source, bool shrink,
          uint64_t *target)
{
    const struct bits_extent *extent = &volume->extent;
    int64_t voxels;
    const struct mask_box box = mask_measure(volume, source, &voxels);
    struct grow_job job = {.volume = volume,
                           .ball = ball,
                           .space = space,
                           .source = source,
                           .target = target,
                           .shrink = shrink,
                           .tiles =
                               (extent->size[1] + TILE_ROWS - 1) / TILE_ROWS * extent->size[2]};

    if (mask_box_is_empty(&box)) {
        memset(target, 0, (size_t)bits_words(extent) * sizeof(*target));
        return;
    }
    find_boxes(&job, &box);
    for (int64_t i = 0; i < ball->ends[ball->groups - 1]; i++)
        space->offsets[i] = row_offset(extent, ball->rows[i]);
    cpu_pool_run(volume->pool, grow_on_thread, &job);
}
