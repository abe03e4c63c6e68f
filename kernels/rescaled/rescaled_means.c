/* rescaled_means.c - keeps components of a mask by the mean real value of their inner voxels. */
#include "kernels/mask/mask.h"
#include "kernels/rescaled/rescaled_private.h"

#include <errno.h>
#include <stdlib.h>

struct means_job {
    const struct rescaled_values *values;
    const uint64_t *mask;
    uint64_t *left; /* voxels of no component yet */
    int64_t *found; /* voxels of the component, in the order in which they were found */
    int64_t count;
};

static bool
means_has(const struct image_extent *extent, const uint64_t *bits, int64_t x, int64_t y, int64_t z)
{
    return bits[(z * extent->rows + y) * ((extent->columns + 63) / 64) + x / 64] >> x % 64 & 1;
}

static bool
means_is_beyond(const struct image_extent *extent, int64_t x, int64_t y, int64_t z)
{
    return x < 0 || y < 0 || z < 0 || x >= extent->columns || y >= extent->rows || z >= extent->slices;
}

/* Takes a voxel if it is of no component yet. */
static void
means_take(struct means_job *job, int64_t x, int64_t y, int64_t z)
{
    const struct image_extent *extent = &job->values->extent;

    if (means_is_beyond(extent, x, y, z) || !means_has(extent, job->left, x, y, z))
        return;
    job->left[(z * extent->rows + y) * ((extent->columns + 63) / 64) + x / 64] &= ~(UINT64_C(1) << x % 64);
    job->found[job->count++] = (z * extent->rows + y) * extent->columns + x;
}

/* Takes the neighbours of a voxel. Returns whether those that share a face are in the mask, as far as they exist. */
static bool
means_visit(struct means_job *job, bool corners, int64_t voxel)
{
    const struct image_extent *extent = &job->values->extent;
    const int64_t x = voxel % extent->columns, y = voxel / extent->columns % extent->rows;
    const int64_t z = voxel / image_slice_voxels(extent);
    bool is_inner = true;

    for (int k = -1; k <= 1; k++)
        for (int j = -1; j <= 1; j++)
            for (int i = -1; i <= 1; i++) {
                const bool shares_face = i * i + j * j + k * k == 1;

                if (shares_face || corners)
                    means_take(job, x + i, y + j, z + k);
                if (shares_face && !means_is_beyond(extent, x + i, y + j, z + k))
                    is_inner &= means_has(extent, job->mask, x + i, y + j, z + k);
            }
    return is_inner;
}

/* Takes the component of the first voxel that was found. Returns whether its mean is at least `least`. */
static bool
means_measure(struct means_job *job, bool corners, double least)
{
    const struct rescaled_values *values = job->values;
    int64_t counted = 0;
    double sum = 0;

    for (int64_t i = 0; i < job->count; i++) {
        const int64_t voxel = job->found[i];

        if (!means_visit(job, corners, voxel))
            continue;
        sum += rescaled_value(values, voxel);
        counted++;
    }
    return counted > 0 && sum / (double)counted >= least;
}

int
rescaled_keep_means(const struct rescaled_values *values, const uint64_t *mask, bool corners, double least,
                    uint64_t *kept, struct error *error)
{
    const struct image_extent *extent = &values->extent;
    const int64_t row_words = (extent->columns + 63) / 64, words = row_words * extent->rows * extent->slices;
    struct means_job job = {.values = values, .mask = mask};

    job.left = calloc((size_t)words, sizeof(*job.left));
    job.found = calloc((size_t)mask_count(mask, words) + 1, sizeof(*job.found));
    for (int64_t i = 0; job.left && job.found && i < words; i++) {
        job.left[i] = mask[i];
        kept[i] = 0;
    }
    for (int64_t i = 0; job.left && job.found && i < words; i++)
        while (job.left[i]) {
            job.count = 0;
            means_take(&job, i % row_words * 64 + __builtin_ctzll(job.left[i]), i / row_words % extent->rows,
                       i / row_words / extent->rows);
            if (!means_measure(&job, corners, least))
                continue;
            for (int64_t k = 0; k < job.count; k++) {
                const int64_t x = job.found[k] % extent->columns, row = job.found[k] / extent->columns;

                kept[row * row_words + x / 64] |= UINT64_C(1) << x % 64;
            }
        }
    const int rc = job.left && job.found ? 0 : error_set_system(error, -ENOMEM, "measure the components of a mask");
    free(job.left);
    free(job.found);
    return rc;
}

int64_t
rescaled_means_bytes(const struct image_extent *extent)
{
    return image_voxels(extent) * (int64_t)sizeof(int64_t) +
           2 * (extent->columns + 63) / 64 * extent->rows * extent->slices * (int64_t)sizeof(uint64_t);
}
