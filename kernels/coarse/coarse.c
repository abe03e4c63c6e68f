/* coarse.c - the grid of blocks, checks of arguments, and the expansion of masks; see coarse.h. */
#include "kernels/coarse/coarse.h"
#include "kernels/cpu/bits.h"
#include "kernels/cpu/cpu_pool.h"
#include "kernels/op.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static int64_t
coarse_blocks(int64_t side, int64_t factor)
{
    return (side - 1) / factor + 1;
}

void
coarse_grid_find(struct image_extent extent, const double spacing[3], double mm, struct coarse_grid *grid)
{
    int64_t sides[3] = {extent.columns, extent.rows, extent.slices};

    for (int axis = 0; axis < 3; axis++) {
        const double factor = floor(mm / spacing[axis] + 0.5);

        grid->factor[axis] = factor < 1 ? 1 : factor < COARSE_MAX_FACTOR ? (int64_t)factor : COARSE_MAX_FACTOR;
        grid->spacing[axis] = (double)grid->factor[axis] * spacing[axis];
        sides[axis] = coarse_blocks(sides[axis], grid->factor[axis]);
    }
    grid->extent = (struct image_extent){sides[0], sides[1], sides[2]};
}

int
coarse_run(struct kernels_lane *lane, const struct coarse_request *request, struct error *error)
{
    const struct coarse_grid *grid = &request->grid;
    const int64_t sides[3] = {lane->extent.columns, lane->extent.rows, lane->extent.slices};
    const int64_t blocks[3] = {grid->extent.columns, grid->extent.rows, grid->extent.slices};
    const int64_t lo = ((int64_t)request->lo - request->offset) * request->scale;
    const int64_t hi = ((int64_t)request->hi - request->offset) * request->scale;
    bool matches = request->blocks != NULL;
    int rc = kernels_op_check(lane, KERNELS_COARSE, error);

    if (rc)
        return rc;
    for (int axis = 0; axis < 3; axis++)
        matches = matches && grid->factor[axis] >= 1 && blocks[axis] == coarse_blocks(sides[axis], grid->factor[axis]);
    if (!matches)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "the grid of blocks does not match the volume");
    if (request->scale < 1 || request->scale > COARSE_MAX_SCALE || lo < INT16_MIN || lo > hi || hi > INT16_MAX)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "mean values of %d .. %d, from %d, times %d exceed 16 bits", request->lo, request->hi,
                         request->offset, request->scale);
    return kernels_op_run(lane, KERNELS_COARSE, request, error);
}

/* ------------------------------------------------------------------------------- masks ---- */

enum { EXPANDING_THREADS = 4 }; /* more take longer to start than they save */

struct coarse_expanding {
    const struct coarse_grid *grid;
    const uint64_t *mask;
    struct image_extent extent;
    bool unite;
    uint64_t *bits;
};

/* Returns the index of the first bit from `at` on that differs from `flip`, or `count`. */
static int64_t
coarse_next(const uint64_t *row, int64_t at, int64_t count, uint64_t flip)
{
    while (at < count) {
        const uint64_t left = (row[at / 64] ^ flip) >> at % 64;

        if (left != 0)
            return at + __builtin_ctzll(left) < count ? at + __builtin_ctzll(left) : count;
        at += 64 - at % 64;
    }
    return count;
}

static void
coarse_expand_row(const struct coarse_expanding *job, const uint64_t *blocks, uint64_t *row)
{
    const int64_t count = job->grid->extent.columns, factor = job->grid->factor[0], columns = job->extent.columns;

    if (!job->unite)
        memset(row, 0, (size_t)((columns + 63) / 64) * sizeof(*row));
    for (int64_t begin = coarse_next(blocks, 0, count, 0), end; begin < count;
         begin = coarse_next(blocks, end, count, 0)) {
        end = coarse_next(blocks, begin, count, ~UINT64_C(0));
        bits_set(row, begin * factor, (end * factor < columns ? end * factor : columns) - 1);
    }
}

/* Expands a slice of blocks: the slices of voxels in it are alike. */
static void
coarse_expand_layer(void *context, int64_t layer)
{
    const struct coarse_expanding *job = context;
    const int64_t *factor = job->grid->factor, rows = job->extent.rows;
    const int64_t words = (job->extent.columns + 63) / 64, words_of_blocks = (job->grid->extent.columns + 63) / 64;
    const uint64_t *blocks = job->mask + layer * words_of_blocks * job->grid->extent.rows;
    const int64_t first = layer * factor[2];
    uint64_t *slice = job->bits + first * rows * words;

    for (int64_t z = first; z < first + factor[2] && z < job->extent.slices; z++, slice += rows * words) {
        if (!job->unite && z > first) {
            memcpy(slice, job->bits + first * rows * words, (size_t)(rows * words) * sizeof(*slice));
            continue;
        }
        for (int64_t y = 0; y < rows; y++)
            if (job->unite || y % factor[1] == 0)
                coarse_expand_row(job, blocks + y / factor[1] * words_of_blocks, slice + y * words);
            else
                memcpy(slice + y * words, slice + (y - 1) * words, (size_t)words * sizeof(*slice));
    }
}

void
coarse_expand(const struct coarse_grid *grid, const uint64_t *mask, struct image_extent extent, int threads, bool unite,
              uint64_t *bits)
{
    struct coarse_expanding job = {grid, mask, extent, unite, bits};
    struct cpu_pool *pool;

    if (cpu_pool_open(threads < EXPANDING_THREADS ? threads : EXPANDING_THREADS, &pool) == 0) {
        cpu_pool_for(pool, grid->extent.slices, coarse_expand_layer, &job);
        cpu_pool_close(pool);
        return;
    }
    for (int64_t layer = 0; layer < grid->extent.slices; layer++)
        coarse_expand_layer(&job, layer);
}
