/*
 * morphology.h - integer counts of a region's shape in a lane's volume. The frequencies of
 * configurations of 2x2x2 voxels determine the surface and volume of its mesh (Lorensen 1987). Sums
 * of coordinates and values per slice determine its centres of mass (IBSI 3.1).
 *
 * Results are bit-identical on every backend and equal to the references in tests/kernels. Shapes,
 * errors, threads: as in texture.h.
 */
#ifndef NOCTULE_KERNELS_MORPHOLOGY_MORPHOLOGY_H
#define NOCTULE_KERNELS_MORPHOLOGY_MORPHOLOGY_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A region by IBSI's two masks: the bits (NULL: every voxel), and of these the voxels with bit v -
 * smallest of the pixel type set in `kept`, for their value v. There may be one table, or one per
 * slice, of 4 or 1024 words.
 */
struct morphology_region {
    const uint64_t *bits;
    const uint64_t *kept;
    size_t table_count; /* 1, or the number of slices */
};

/*
 * Configurations of cells of 2x2x2 voxels, including cells that extend beyond the volume. Bit x + 2
 * y + 4 z is set if the voxel at that offset from the cell's first is in the bits. Empty cells are
 * not counted.
 */
enum { MORPHOLOGY_CONFIGURATIONS = 256 };

/* Sums over the kept voxels of a slice. Values are relative to the smallest of the pixel type. */
enum morphology_sum {
    MORPHOLOGY_VOXELS,
    MORPHOLOGY_X,
    MORPHOLOGY_Y,
    MORPHOLOGY_VALUE,
    MORPHOLOGY_VALUE_X,
    MORPHOLOGY_VALUE_Y,
    MORPHOLOGY_SUMS,
};

static inline size_t
morphology_size(int64_t slices)
{
    return MORPHOLOGY_CONFIGURATIONS + (size_t)slices * MORPHOLOGY_SUMS;
}

/* Returns the words of a table of kept values. */
static inline size_t
morphology_table(enum image_pixel pixel)
{
    return (pixel == IMAGE_UINT8 ? 256 : 65536) / 64;
}

/* Overwrites counts[configuration], and counts[MORPHOLOGY_CONFIGURATIONS + z * MORPHOLOGY_SUMS +
 * sum]. */
int morphology_run(struct kernels_lane *lane, const struct morphology_region *region, uint64_t *counts,
                   struct error *error);

/* Private to kernels/: the request of the operation. */
struct morphology_request {
    const struct morphology_region *region;
    uint64_t *counts;
};

#ifdef __cplusplus
}
#endif
#endif
