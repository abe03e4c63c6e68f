/*
 * fuzzy_grow_cpu.h - an object's connectedness map voxel by voxel, the strongest first: for objects
 * that are thin or small.
 */
#ifndef NOCTULE_FUZZY_GROW_CPU_H
#define NOCTULE_FUZZY_GROW_CPU_H

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
    uint16_t *map;     /* one a voxel, all 0 */
    uint32_t *buckets; /* FUZZY_STRENGTHS, contents ignored */
    void *space;       /* 64-byte aligned, contents ignored */
    size_t space_size; /* in bytes; the more, the more voxels can wait */
};

/*
 * Finds the map on the calling thread, unless the object turns out to be neither thin nor small,
 * or the space is too small: then returns false, soon as a rule, and the map is undefined.
 */
bool fuzzy_grow(const struct fuzzy_growth *given);

#endif
