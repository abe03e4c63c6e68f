/* edge_flood.h - finds the voxels joined to settled ones along edges between 6-neighbours, on
 * packed bits. */
#ifndef NOCTULE_KERNELS_FUZZY_EDGE_FLOOD_H
#define NOCTULE_KERNELS_FUZZY_EDGE_FLOOD_H

#include "kernels/cpu/tiles.h"

struct edge_volume {
    struct bits_extent extent;
    /* A bit of edge[axis] joins its voxel and the next one along the axis. It must be 0 at the
     * end. */
    uint64_t *edge[3];
    uint64_t *settled; /* updated; padding bits must be 0 */
    void *space;       /* tiles_space bytes, 64-byte aligned; contents are ignored */
};

/*
 * Settles every voxel that edges join to a settled one. Initially settled voxels must lie in the
 * box. Returns the number of voxels added. The time is linear in the volume for all edges, since a
 * word is visited again only if more of its voxels have settled.
 */
int64_t edge_flood_run(const struct edge_volume *volume, const struct tiles_box *box, const struct isa *isa,
                       struct cpu_pool *pool);

#endif
