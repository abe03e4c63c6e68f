/*
 * peaks.h - mean values of balls around voxels of a region (IBSI 3.2, local intensity): the largest of
 * all, and the largest of those around voxels of the region's largest value.
 *
 * A ball has 1 cm3: the voxels whose centres are at most PEAKS_RADIUS_MM away and which are of the
 * volume and have a value, whether or not they are of the region. Its mean is in real-world units: the sum
 * of its stored values is exact; with a rescale of its own for each slice, slices are added up in their
 * order, in double precision without fused operations. So the backends agree bit for bit, and with the
 * reference in tests/kernels. Conventions are those of texture.h; the demand is kernels_asked.
 */
#ifndef NOCTULE_PEAKS_H
#define NOCTULE_PEAKS_H

#include "base/image.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PEAKS_RADIUS_MM 6.203504908994 /* 10 (3 / (4 pi))^(1/3) */

struct peaks {
    const uint64_t *region;               /* bits as of struct image_mask; NULL: every voxel */
    const struct image_rescale *rescales; /* one, or one per slice */
    const struct image_range *paddings; /* the same: stored values that are none; empty: all are */
    size_t table_count;
    double kept[2]; /* the real-world values, inclusive, that balls are around */
    double largest; /* of these in the region */
    double spacing[3];
};

struct peaks_found {
    double local, global;
    uint64_t balls; /* 0: the two are not defined */
};

/* Is a ball of such voxels more than can be summed up? */
bool peaks_too_fine(const double spacing[3]);

/* -E2BIG with VOLUME_TOO_LARGE where voxels are too fine; -EINVAL, -EBUSY, -ENOMEM. */
int peaks_run(struct kernels_lane *lane, const struct peaks *request, struct peaks_found *found,
              struct error *error);

/* ---- within kernels/ ---- */

/* A row of a ball: from the centre so many rows and slices away, so many voxels to either side. */
struct peaks_row {
    int32_t y, z, reach;
};

struct peaks_ball {
    int64_t reach[3];
    size_t row_count;
    struct peaks_row *rows; /* slice by slice */
};

/* Rows and voxels that a ball may have. */
#define PEAKS_MAX_ROWS   (1 << 16)
#define PEAKS_MAX_VOXELS ((1 << 24) - 1)

struct peaks_request {
    const struct peaks *peaks;
    const struct peaks_ball *ball;
    struct peaks_found *found; /* none at first */
};

/* A voxel that has a value as a number to add up: that it is one, over its value counted from the
 * pixel type's smallest. No sum of a ball overflows. */
#define PEAKS_VALUE_BITS 40

#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint64_t
    peaks_item(uint32_t value)
{
    return UINT64_C(1) << PEAKS_VALUE_BITS | value;
}

#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint64_t
    peaks_voxels(uint64_t sum)
{
    return sum >> PEAKS_VALUE_BITS;
}

/* Of the stored values. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline double
    peaks_stored(uint64_t sum, int32_t smallest)
{
    return (double)((int64_t)(sum & ((UINT64_C(1) << PEAKS_VALUE_BITS) - 1)) +
                    (int64_t)peaks_voxels(sum) * smallest);
}

#ifdef __cplusplus
}
#endif
#endif
