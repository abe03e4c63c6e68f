/*
 * morphology.h - counts of a region's shape on a lane's announced volume: how often each
 * configuration of 2x2x2 voxels occurs, which surface and volume of its mesh are linear in (Lorensen
 * 1987), and sums of places and values by slice, which its centres of mass are made of (IBSI 3.1).
 *
 * Everything here is integers, bit-identical on every backend and equal to the references in
 * tests/kernels. Conventions (shapes, errors, threads) are those of texture.h.
 */
#ifndef NOCTULE_MORPHOLOGY_H
#define NOCTULE_MORPHOLOGY_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A region by IBSI's two masks: its bits (NULL: every voxel), and of these the voxels whose value v
 * has bit v - smallest of the pixel type in `kept`: one table, or one per slice, of 4 or 1024 words.
 */
struct morphology_region {
    const uint64_t *bits;
    const uint64_t *kept;
    size_t table_count; /* 1, or one per slice */
};

/*
 * Configurations: of all cells of 2x2x2 voxels, those that reach beyond the volume included, that
 * have bit x + 2 y + 4 z where the voxel so far from the cell's first is of the bits. Those of none are
 * not counted.
 */
enum { MORPHOLOGY_CONFIGURATIONS = 256 };

/* Of the voxels of a slice that are kept; values are counted from the smallest of the pixel type. */
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

/* counts[configuration], then counts[MORPHOLOGY_CONFIGURATIONS + z * MORPHOLOGY_SUMS + sum], are
 * overwritten. */
int morphology_run(struct kernels_lane *lane, const struct morphology_region *region,
                   uint64_t *counts, struct error *error);

/* Within kernels/: what the operation is given. */
struct morphology_request {
    const struct morphology_region *region;
    uint64_t *counts;
};

#ifdef __cplusplus
}
#endif
#endif
