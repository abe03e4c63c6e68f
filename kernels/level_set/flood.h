/*
 * flood.h - the two floods of the level set on packed bits, to convergence.
 *
 * A voxel has two bits: `range` (in range, constant) and `inside` (states 1 and 2). It is open (-1
 * or 2: may still change) when the two differ and settled (1 or -2) when they agree. An open voxel
 * settles, its inside bit turning over, next to a settled voxel of equal range. Both floods of
 * Trapani 2018 are this one rule, and its fixpoint does not depend on the order of work.
 */
#ifndef NOCTULE_FLOOD_H
#define NOCTULE_FLOOD_H

#include "kernels/cpu/tiles.h"

struct flood_volume {
    struct bits_extent extent;
    const uint64_t *range;
    uint64_t *inside;
    void *space; /* tiles_space bytes, 64-byte aligned, contents ignored */
};

/*
 * Turns `inside` from the initial region into the final one; every voxel of the initial region lies
 * in the box. Returns by how many voxels the region has grown (negative: shrunk).
 */
int64_t flood_run(const struct flood_volume *volume, const struct tiles_box *box,
                  const struct isa *isa, struct cpu_pool *pool);

#endif
