/*
 * flood.h - the two floods of the level set on packed bits, to convergence.
 *
 * A voxel has two bits: `range` (in range, constant) and `inside` (states 1 and 2). It is open (-1
 * or 2: may still change) if they differ, and settled (1 or -2) if they agree. An open voxel next
 * to a settled voxel of equal range settles: its inside bit flips. Both floods of Trapani 2018
 * follow this rule, whose fixed point does not depend on the order of work.
 */
#ifndef NOCTULE_KERNELS_LEVEL_SET_FLOOD_H
#define NOCTULE_KERNELS_LEVEL_SET_FLOOD_H

#include "kernels/cpu/tiles.h"

struct flood_volume {
    struct bits_extent extent;
    const uint64_t *range;
    uint64_t *inside;
    void *space; /* tiles_space bytes, 64-byte aligned; contents are ignored */
};

/* Turns `inside` from the initial region into the final one. The box must contain the initial
 * region. Returns the change of the region in voxels (negative: shrunk). */
int64_t flood_run(const struct flood_volume *volume, const struct tiles_box *box, const struct isa *isa,
                  struct cpu_pool *pool);

#endif
