/* fuzzy_grow_cpu.h - computes the connectedness map of a thin or small object voxel by voxel, the
 * strongest first. */
#ifndef NOCTULE_KERNELS_FUZZY_FUZZY_GROW_CPU_H
#define NOCTULE_KERNELS_FUZZY_FUZZY_GROW_CPU_H

#include "kernels/fuzzy/affinity.h"

#include <stddef.h>

enum {
    FUZZY_STRENGTHS = 65536,
};

struct fuzzy_growth {
    struct image_extent extent;
    enum image_pixel pixel;
    const void *voxels;
    const struct kernels_fuzzy_object *object;
    struct fuzzy_tables tables;
    uint16_t *map;     /* one per voxel; must be 0 */
    uint32_t *buckets; /* FUZZY_STRENGTHS; contents are ignored */
    void *space;       /* 64-byte aligned; contents are ignored */
    size_t space_size; /* in bytes; more space allows more waiting voxels */
};

/* Computes the map on the calling thread. Returns false if the object is neither thin nor small, or
 * the space is too small, usually early. The map is then undefined. */
bool fuzzy_grow(const struct fuzzy_growth *given);

#endif
