/*
 * image.h - a volume of pixels in the words of all rooms: how a value is stored, how large the
 * volume is, which values and which voxels are meant, and what a stored value stands for.
 *
 * Voxel (x, y, z) is (column, row, slice), x fastest; indices are 64-bit.
 */
#ifndef NOCTULE_IMAGE_H
#define NOCTULE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* How a pixel is stored. */
enum image_pixel {
    IMAGE_UINT8,
    IMAGE_INT16,
    IMAGE_UINT16,
};

/* Columns are x, rows are y, slices are z; every one at least 1. */
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

/* Stored values lo..hi, both inclusive; empty when lo > hi. */
struct image_range {
    int32_t lo;
    int32_t hi;
};

/*
 * Some of a volume's voxels. Rows are padded to whole words; voxel (x, y, z) is bit x % 64 of
 * bits[(z * rows + y) * words_per_row + x / 64]; the padding bits are 0.
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

/* Bytes of a stored value: 1 or 2; 0 for what is no pixel type. */
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

/* The stored value at `i`. */
static inline int32_t
image_value(const void *voxels, enum image_pixel pixel, int64_t i)
{
    if (pixel == IMAGE_UINT8)
        return ((const uint8_t *)voxels)[i];
    return pixel == IMAGE_INT16 ? ((const int16_t *)voxels)[i] : ((const uint16_t *)voxels)[i];
}

/* The least and the greatest value that a pixel type can hold. */
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
