/*
 * peaks.h - mean values of balls around voxels of a region (IBSI 3.2, local intensity): the largest
 * of all, and the largest of those around voxels with the region's largest value.
 *
 * A ball has 1 cm3: the voxels of the volume with a value whose centres are at most PEAKS_RADIUS_MM
 * away, inside or outside the region. Its mean is in real-world units. The sum of stored values is
 * exact. With one rescale per slice, slices are added in order, in double precision without fused
 * operations. All backends and the reference in tests/kernels therefore agree bit for bit. Shapes,
 * errors, threads: as in texture.h. The demand is kernels_asked.
 */
#ifndef NOCTULE_KERNELS_PEAKS_PEAKS_H
#define NOCTULE_KERNELS_PEAKS_PEAKS_H

#include "base/image.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PEAKS_RADIUS_MM 6.203504908994 /* 10 (3 / (4 pi))^(1/3) */

struct peaks {
    const uint64_t *region;               /* bits as in struct image_mask; NULL: every voxel */
    const struct image_rescale *rescales; /* one, or one per slice */
    /* stored values to ignore, one per slice or one; may be empty */
    const struct image_range *paddings;
    size_t table_count;
    double kept[2]; /* balls surround voxels with these real-world values, inclusive */
    double largest; /* largest such value in the region */
    double spacing[3];
};

struct peaks_found {
    double local, global;
    uint64_t balls; /* 0: local and global are undefined */
};

/* Returns whether a ball of such voxels is too large to sum. */
bool peaks_too_fine(const double spacing[3]);

/* Finds the peaks. Returns -E2BIG with VOLUME_TOO_LARGE if voxels are too fine; -EINVAL, -EBUSY,
 * -ENOMEM. */
int peaks_run(struct kernels_lane *lane, const struct peaks *request, struct peaks_found *found, struct error *error);

/*
 * As peaks_run() for a volume of real-world values on the host; NAN: padding. Rescales and paddings are not used. Values
 * are multiples of 2^-39 of the power of two above the largest one, so that sums are exact. Returns 0 or -ENOMEM.
 */
int peaks_of_reals(const struct peaks *request, const double *reals, const struct image_extent *extent,
                   struct peaks_found *found);

/* ---- within kernels/ ---- */

/* A row of a ball: its offset from the centre in rows and slices, and its voxels to either side. */
struct peaks_row {
    int32_t y, z, reach;
};

struct peaks_ball {
    int64_t reach[3];
    size_t row_count;
    struct peaks_row *rows; /* ordered by slice */
};

/* Max rows and voxels of a ball. */
#define PEAKS_MAX_ROWS   (1 << 16)
#define PEAKS_MAX_VOXELS ((1 << 24) - 1)

struct peaks_request {
    const struct peaks *peaks;
    const struct peaks_ball *ball;
    struct peaks_found *found; /* initially empty */
};

/* A voxel with a value as a number to sum: 1 above its value relative to the pixel type's smallest.
 * The sum of a ball cannot overflow. */
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

/* For stored values. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline double
    peaks_stored(uint64_t sum, int32_t smallest)
{
    return (double)((int64_t)(sum & ((UINT64_C(1) << PEAKS_VALUE_BITS) - 1)) + (int64_t)peaks_voxels(sum) * smallest);
}

#ifdef __cplusplus
}
#endif
#endif
