/* rescaled.c - real values of rows, and the mean values of blocks; see rescaled.h. */
#include "kernels/rescaled/rescaled_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void
rescaled_row(const struct rescaled_values *values, int64_t row, double *real)
{
    const int64_t columns = values->extent.columns, z = row / values->extent.rows;
    const struct image_rescale rescale = values->rescales[z];
    const struct image_range limits = values->limits[z], padding = values->padding;

    for (int64_t x = 0; x < columns; x++) {
        const int32_t stored = image_value(values->voxels, values->pixel, row * columns + x);
        const int32_t above = stored > limits.lo ? stored : limits.lo, within = above < limits.hi ? above : limits.hi;

        real[x] =
            stored >= padding.lo && stored <= padding.hi ? values->padded : rescale.slope * within + rescale.intercept;
    }
}

void
rescaled_run(int threads, void (*body)(void *context), void *context)
{
    struct cpu_pool *pool;

    if (cpu_pool_open(threads < RESCALED_THREADS ? threads : RESCALED_THREADS, &pool) != 0) {
        body(context);
        return;
    }
    cpu_pool_run(pool, body, context);
    cpu_pool_close(pool);
}

struct blocks_job {
    const struct rescaled_values *values;
    const struct coarse_grid *grid;
    int16_t *blocks;
    double *spaces;        /* per thread: a row of values, and the sums of a row of blocks */
    int64_t claimed, next; /* memory and rows of blocks, atomic */
};

static int16_t
block_value(double sum, int64_t voxels)
{
    /* Exact for integers: the quotient of the largest sum and number is far from the next integer. */
    const double rounded = floor((2 * sum + (double)voxels) / (double)(2 * voxels));

    return (int16_t)fmin(fmax(rounded, INT16_MIN), INT16_MAX);
}

static void
blocks_row(const struct blocks_job *job, double *row, double *sums, int64_t i)
{
    const struct image_extent *extent = &job->values->extent, *blocks = &job->grid->extent;
    const int64_t *factor = job->grid->factor;
    const int64_t y = i % blocks->rows * factor[1], z = i / blocks->rows * factor[2];
    const int64_t end_y = y + factor[1] < extent->rows ? y + factor[1] : extent->rows;
    const int64_t end_z = z + factor[2] < extent->slices ? z + factor[2] : extent->slices;

    memset(sums, 0, (size_t)blocks->columns * sizeof(*sums));
    for (int64_t k = z; k < end_z; k++)
        for (int64_t j = y; j < end_y; j++) {
            rescaled_row(job->values, k * extent->rows + j, row);
            for (int64_t x = 0; x < extent->columns; x++)
                sums[x / factor[0]] += row[x];
        }
    for (int64_t b = 0; b < blocks->columns; b++) {
        const int64_t left = extent->columns - b * factor[0], wide = left < factor[0] ? left : factor[0];

        job->blocks[i * blocks->columns + b] = block_value(sums[b], wide * (end_y - y) * (end_z - z));
    }
}

static void
blocks_rows(void *context)
{
    struct blocks_job *job = context;
    const int64_t columns = job->values->extent.columns, rows = job->grid->extent.rows * job->grid->extent.slices;
    double *row = job->spaces + __atomic_fetch_add(&job->claimed, 1, __ATOMIC_RELAXED) * 2 * columns;

    for (int64_t i; (i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < rows;)
        blocks_row(job, row, row + columns, i);
}

int
rescaled_blocks(const struct rescaled_values *values, const struct coarse_grid *grid, int16_t *blocks,
                struct error *error)
{
    struct blocks_job job = {values, grid, blocks, NULL, 0, 0};

    job.spaces = calloc(RESCALED_THREADS * 2 * (size_t)values->extent.columns, sizeof(*job.spaces));
    if (!job.spaces)
        return error_set_system(error, -ENOMEM, "make the coarse grid");
    rescaled_run(values->threads, blocks_rows, &job);
    free(job.spaces);
    return 0;
}

int64_t
rescaled_blocks_bytes(const struct image_extent *extent)
{
    return RESCALED_THREADS * 2 * extent->columns * (int64_t)sizeof(double);
}
