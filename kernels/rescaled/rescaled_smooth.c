/* rescaled_smooth.c - ranges of Gaussian-filtered real values. Slices are filtered along x and y, and then along z. */
#include "kernels/rescaled/rescaled_private.h"
#include "kernels/smooth/smooth_plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { FILTER_TAPS = 2 * SMOOTH_MAX_RADIUS + 1 };

struct filter_job {
    const struct rescaled_values *values;
    const struct rescaled_filter *filter;
    int radius[3];
    double weights[3][SMOOTH_MAX_RADIUS + 1];
    double *between; /* the volume, filtered along x and y */
    double *spaces;
    int64_t space;         /* values per thread */
    int64_t claimed, next; /* memory and slices, atomic */
};

static int64_t
filter_within(int64_t i, int64_t side)
{
    return i < 0 ? 0 : i < side ? i : side - 1;
}

static void
filter_taps(const struct filter_job *job, int axis, const double *const *taps, double *filtered)
{
    const int radius = job->radius[axis];
    const int64_t columns = job->values->extent.columns;

    for (int k = -radius; k <= radius; k++) {
        const double weight = job->weights[axis][abs(k)], *tap = taps[radius + k];

        if (k == -radius)
            for (int64_t x = 0; x < columns; x++)
                filtered[x] = weight * tap[x];
        else
            for (int64_t x = 0; x < columns; x++)
                filtered[x] += weight * tap[x];
    }
    if (job->values->whole)
        for (int64_t x = 0; x < columns; x++)
            filtered[x] = floor(filtered[x] + 0.5);
}

/* Filters a slice along x and y. `space`: a row with its borders, and a slice. */
static void
filter_slice(const struct filter_job *job, double *space, int64_t z)
{
    const struct image_extent *extent = &job->values->extent;
    const int64_t columns = extent->columns, rows = extent->rows;
    double *line = space + job->radius[0], *slice = space + columns + 2 * (int64_t)job->radius[0];
    const double *taps[FILTER_TAPS];

    for (int64_t y = 0; y < rows; y++) {
        rescaled_row(job->values, z * rows + y, line);
        for (int k = 1; k <= job->radius[0]; k++) {
            line[-k] = line[0];
            line[columns - 1 + k] = line[columns - 1];
        }
        for (int k = 0; k <= 2 * job->radius[0]; k++)
            taps[k] = space + k;
        filter_taps(job, 0, taps, slice + y * columns);
    }
    for (int64_t y = 0; y < rows; y++) {
        for (int k = -job->radius[1]; k <= job->radius[1]; k++)
            taps[job->radius[1] + k] = slice + filter_within(y + k, rows) * columns;
        filter_taps(job, 1, taps, job->between + (z * rows + y) * columns);
    }
}

/* Filters a slice along z, and compares its values. */
static void
filter_compare(const struct filter_job *job, double *line, int64_t z)
{
    const struct image_extent *extent = &job->values->extent;
    const struct rescaled_filter *filter = job->filter;
    const int64_t columns = extent->columns, rows = extent->rows, words = (columns + 63) / 64;
    const double *taps[FILTER_TAPS];

    for (int64_t y = 0; y < rows; y++) {
        uint64_t *bits = filter->bits + (z * rows + y) * words;

        for (int k = -job->radius[2]; k <= job->radius[2]; k++)
            taps[job->radius[2] + k] = job->between + (filter_within(z + k, extent->slices) * rows + y) * columns;
        filter_taps(job, 2, taps, line);
        for (int64_t w = 0; w < words; w++) {
            uint64_t passed = 0;

            for (int64_t x = 64 * w; x < columns && x < 64 * (w + 1); x++) {
                const double value = filter->rescale.slope * line[x] + filter->rescale.intercept;

                passed |= (uint64_t)(value >= filter->range[0] && value <= filter->range[1]) << x % 64;
            }
            bits[w] = filter->region ? passed & filter->region[(z * rows + y) * words + w] : passed;
        }
    }
}

static void
filter_slices(void *context)
{
    struct filter_job *job = context;
    double *space = job->spaces + __atomic_fetch_add(&job->claimed, 1, __ATOMIC_RELAXED) * job->space;

    for (int64_t z; (z = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->values->extent.slices;)
        filter_slice(job, space, z);
}

static void
filter_compare_all(void *context)
{
    struct filter_job *job = context;
    double *space = job->spaces + __atomic_fetch_add(&job->claimed, 1, __ATOMIC_RELAXED) * job->space;

    for (int64_t z; (z = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->values->extent.slices;)
        filter_compare(job, space, z);
}

static int
filter_weigh(struct filter_job *job, int axis)
{
    const double sigma = job->filter->sigma_mm / job->filter->spacing[axis];
    int32_t integers[SMOOTH_MAX_RADIUS + 1];

    job->radius[axis] =
        job->values->whole ? smooth_weights(sigma, integers) : smooth_gaussian(sigma, job->weights[axis]);
    for (int i = 0; job->values->whole && i <= job->radius[axis]; i++)
        job->weights[axis][i] = (double)integers[i] / SMOOTH_UNIT;
    return job->radius[axis] < 0 ? -E2BIG : 0;
}

int
rescaled_smooth(const struct rescaled_values *values, const struct rescaled_filter *filter, struct error *error)
{
    const struct image_extent *extent = &values->extent;
    struct filter_job job = {.values = values, .filter = filter};
    int rc = 0;

    for (int axis = 0; axis < 3; axis++)
        if (filter_weigh(&job, axis) != 0)
            return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE,
                             "a filter of %g mm has more than %d voxels to each side", filter->sigma_mm,
                             SMOOTH_MAX_RADIUS);
    job.space = image_slice_voxels(extent) + extent->columns + 2 * (int64_t)job.radius[0];
    job.between = calloc((size_t)image_voxels(extent), sizeof(*job.between));
    job.spaces = calloc((size_t)RESCALED_THREADS * (size_t)job.space, sizeof(*job.spaces));
    if (!job.between || !job.spaces) {
        rc = error_set_system(error, -ENOMEM, "filter the volume");
        goto out;
    }
    rescaled_run(values->threads, filter_slices, &job);
    job.claimed = job.next = 0;
    rescaled_run(values->threads, filter_compare_all, &job);
out:
    free(job.between);
    free(job.spaces);
    return rc;
}

int64_t
rescaled_smooth_bytes(const struct image_extent *extent)
{
    const int64_t line = extent->columns + 2 * (int64_t)SMOOTH_MAX_RADIUS;
    return (image_voxels(extent) + RESCALED_THREADS * (image_slice_voxels(extent) + line)) * (int64_t)sizeof(double);
}
