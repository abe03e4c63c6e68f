/*
 * image.h - types of a volume that all folders share: pixel type, extent, range of values, mask, rescale.
 *
 * Voxel (x, y, z) is (column, row, slice), x fastest; indices are 64-bit.
 */
#ifndef NOCTULE_BASE_IMAGE_H
#define NOCTULE_BASE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Type of a stored pixel. */
enum image_pixel {
    IMAGE_UINT8,
    IMAGE_INT16,
    IMAGE_UINT16,
};

/* Columns are x, rows are y, slices are z. Each must be at least 1. */
struct image_extent {
    int64_t columns;
    int64_t rows;
    int64_t slices;
};

static inline int64_t
image_slice_voxels(const struct image_extent *extent)
{
    return extent->columns * extent->rows;
}

static inline int64_t
image_voxels(const struct image_extent *extent)
{
    return image_slice_voxels(extent) * extent->slices;
}

/* Stored values lo..hi, both inclusive. Empty if lo > hi. */
struct image_range {
    int32_t lo;
    int32_t hi;
};

/*
 * A set of voxels. Voxel (x, y, z) is bit x % 64 of bits[(z * rows + y) * words_per_row + x / 64]. Rows are padded to
 * whole words; the padding bits must be 0.
 */
struct image_mask {
    const uint64_t *bits;
    int64_t words_per_row;
    int64_t voxels; /* number of bits set */
};

/* Real-world value = slope * stored value + intercept. */
struct image_rescale {
    double slope;
    double intercept;
};

/* Returns the bytes per stored value, 1 or 2, or 0 for an unknown type. */
static inline size_t
image_pixel_size(enum image_pixel pixel)
{
    switch (pixel) {
    case IMAGE_UINT8:
        return 1;
    case IMAGE_INT16:
    case IMAGE_UINT16:
        return 2;
    }
    return 0;
}

/* Returns the stored value at index `i`. */
static inline int32_t
image_value(const void *voxels, enum image_pixel pixel, int64_t i)
{
    if (pixel == IMAGE_UINT8)
        return ((const uint8_t *)voxels)[i];
    return pixel == IMAGE_INT16 ? ((const int16_t *)voxels)[i] : ((const uint16_t *)voxels)[i];
}

/* Returns whether a voxel is in a region. Its rows of `columns` bits must begin at whole words. NULL: all voxels are. */
static inline bool
image_has(const uint64_t *region, int64_t columns, int64_t row, int64_t x)
{
    return !region || region[row * ((columns + 63) / 64) + x / 64] >> x % 64 & 1;
}

/* Returns word `word` of a region's row of `columns` voxels; bits beyond the row are 0. NULL: all voxels are in it. */
static inline uint64_t
image_word(const uint64_t *region, int64_t columns, int64_t row, int64_t word)
{
    const int64_t left = columns - 64 * word;
    const uint64_t all = left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX;

    return region ? region[row * ((columns + 63) / 64) + word] & all : all;
}

/* Returns the smallest and the largest value of a pixel type. */
static inline struct image_range
image_pixel_range(enum image_pixel pixel)
{
    struct image_range range = {0, UINT16_MAX};

    if (pixel == IMAGE_UINT8)
        range.hi = UINT8_MAX;
    if (pixel == IMAGE_INT16) {
        range.lo = INT16_MIN;
        range.hi = INT16_MAX;
    }
    return range;
}

#endif
