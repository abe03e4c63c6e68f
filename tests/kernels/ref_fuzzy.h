/*
 * ref_fuzzy.h - Wang 2016 by the definition of struct kernels_fuzzy_object: what every backend must
 * equal.
 *
 * A bucket (Dial) Dijkstra over the whole volume: one bucket for each strength, emptied from the
 * strongest down, each voxel done when it first leaves one. No code is shared with kernels/.
 */
#ifndef NOCTULE_REF_FUZZY_H
#define NOCTULE_REF_FUZZY_H

#include "kernels/fuzzy/fuzzy.h"

/* Of two neighbours of these stored values. */
uint16_t ref_fuzzy_affinity(const struct kernels_fuzzy_object *object, int32_t a, int32_t b);

/* The map of one object, one value a voxel, x fastest; time is linear in the volume. */
void ref_fuzzy_map(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                   const struct kernels_fuzzy_object *object, uint16_t *map);

/*
 * Whether each voxel belongs to the object `which` of `count` (1 or 0). maps[i] is the map of
 * object i; maps of other objects are looked at only with `relative`.
 */
void ref_fuzzy_object(int64_t voxels, const struct kernels_fuzzy_object *objects,
                      uint16_t *const *maps, size_t count, size_t which, bool relative,
                      uint8_t *in);

#endif
