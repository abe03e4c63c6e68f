/*
 * rescaled.h - operations on the real values of a volume whose slices have rescales of their own: filtered ranges, mean
 * values of blocks and of components, fuzzy connectedness.
 *
 * A stored value v of slice z has the value slope(z) * v + intercept(z), in double precision. Stored values of two
 * slices have no common 16-bit scale, so that the operations of lanes do not apply. Those here use CPU threads on every
 * backend, and sum in a fixed order: results are the same on all backends, and with any number of threads.
 */
#ifndef NOCTULE_KERNELS_RESCALED_RESCALED_H
#define NOCTULE_KERNELS_RESCALED_RESCALED_H

#include "kernels/coarse/coarse.h"
#include "kernels/fuzzy/fuzzy.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rescaled_values {
    const void *voxels; /* stored values */
    enum image_pixel pixel;
    struct image_extent extent;
    const struct image_rescale *rescales; /* one per slice */
    const struct image_range *limits;     /* one per slice: stored values are clipped to them first */
    struct image_range padding;           /* lo > hi: no padding */
    double padded;                        /* the value of padding */
    bool whole;                           /* all values are integers of at most 2^38 */
    int threads;                          /* max */
};

/* Writes the values of a row, z * rows + y. */
void rescaled_row(const struct rescaled_values *values, int64_t row, double *real);

struct rescaled_filter {
    double spacing[3];
    double sigma_mm;
    struct image_rescale rescale; /* of the filtered values, before they are compared */
    double range[2];              /* inclusive */
    const uint64_t *region;       /* as in struct smooth_request */
    uint64_t *bits;
};

/*
 * Finds the voxels whose Gaussian-filtered values are in range. The filter has the axes, radii and borders of
 * kernels/smooth/smooth.h. Its weights are exp(-i^2 / (2 s^2)) / sum. Each pass adds its terms from -radius to radius.
 * Integers (`whole`) are filtered by the integer weights and rounded after each pass, as in smooth.h. Returns
 * VOLUME_TOO_LARGE (-E2BIG) above SMOOTH_MAX_RADIUS, or OUT_OF_MEMORY.
 */
int rescaled_smooth(const struct rescaled_values *values, const struct rescaled_filter *filter, struct error *error);

/* Returns the bytes that rescaled_smooth() needs. */
int64_t rescaled_smooth_bytes(const struct image_extent *extent);

/*
 * Computes floor((2 * sum + n) / (2 * n)) of the n voxels of each block, clipped to 16 bits. Rows are added from the
 * lowest z and y. Returns OUT_OF_MEMORY.
 */
int rescaled_blocks(const struct rescaled_values *values, const struct coarse_grid *grid, int16_t *blocks,
                    struct error *error);

/* Returns the bytes that rescaled_blocks() needs. */
int64_t rescaled_blocks_bytes(const struct image_extent *extent);

/*
 * Finds the components of a mask whose mean is at least `least`, by the rules of KERNELS_MASK_DROP_MEAN_BELOW, without
 * limits and padding. Sums begin with the first voxel of a component, and go on to neighbours. Both masks have the min
 * words per row. Returns OUT_OF_MEMORY.
 */
int rescaled_keep_means(const struct rescaled_values *values, const uint64_t *mask, bool corners, double least,
                        uint64_t *kept, struct error *error);

/* Returns the bytes that rescaled_keep_means() needs. */
int64_t rescaled_means_bytes(const struct image_extent *extent);

/* The caller must free both, also after an error. Another run uses them again. NULL: they are allocated. */
struct rescaled_fuzzy {
    uint64_t *bits; /* of the object */
    uint16_t *map;  /* one per voxel; of values up to the threshold only if the object wants it */
};

/*
 * Computes objects by the rules of struct kernels_fuzzy_object and kernels_fuzzy_run(), without limits. Padding is that
 * of the objects. Returns COMPUTE_FAILED, VOLUME_TOO_LARGE (-E2BIG) from 2^32 - 1 voxels on, or OUT_OF_MEMORY.
 */
int rescaled_fuzzy(const struct rescaled_values *values, const struct kernels_fuzzy_object *objects, size_t count,
                   bool relative, struct rescaled_fuzzy *found, struct error *error);

/* Returns the bytes that rescaled_fuzzy() needs besides the results. */
int64_t rescaled_fuzzy_bytes(const struct image_extent *extent);

#ifdef __cplusplus
}
#endif
#endif
