/*
 * edge_flood.h - which voxels are joined to the settled ones, along edges between 6-neighbours, on
 * packed bits.
 */
#ifndef NOCTULE_EDGE_FLOOD_H
#define NOCTULE_EDGE_FLOOD_H

#include "kernels/cpu/tiles.h"

struct edge_volume {
    struct bits_extent extent;
    /* A bit of edge[axis] joins its voxel and the next one along the axis; it is 0 where there is
     * none. */
    uint64_t *edge[3];
    uint64_t *settled; /* grows; padding bits are 0 */
    void *space;       /* tiles_space bytes, 64-byte aligned, contents ignored */
};

/*
 * Settles every voxel that edges join to a settled one; those that are settled already lie in the
 * box. Returns how many more were settled. The time is linear in the volume, whatever the edges:
 * a word is looked at again only when more of its voxels have settled.
 */
int64_t edge_flood_run(const struct edge_volume *volume, const struct tiles_box *box,
                       const struct isa *isa, struct cpu_pool *pool);

#endif
