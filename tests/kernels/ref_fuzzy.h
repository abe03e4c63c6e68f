/*
 * ref_fuzzy.h - Wang 2016 by the definition of struct kernels_fuzzy_object. Every backend must give the same result.
 *
 * A bucket (Dial) Dijkstra over the whole volume: one bucket per strength, emptied from the strongest down. A voxel
 * is complete when it first leaves a bucket. It shares no code with kernels/.
 */
#ifndef NOCTULE_REF_FUZZY_H
#define NOCTULE_REF_FUZZY_H

#include "kernels/fuzzy/fuzzy.h"

/* Returns the affinity of two neighbours with these stored values. */
uint16_t ref_fuzzy_affinity(const struct kernels_fuzzy_object *object, int32_t a, int32_t b);

/* Computes the map of one object, one value per voxel, x fastest, in time linear in the volume. */
void ref_fuzzy_map(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                   const struct kernels_fuzzy_object *object, uint16_t *map);

/*
 * Sets each voxel to 1 if it belongs to the object `which` of `count`, else to 0. maps[i] is the map of object i.
 * Maps of other objects are read only with `relative`.
 */
void ref_fuzzy_object(int64_t voxels, const struct kernels_fuzzy_object *objects, uint16_t *const *maps, size_t count,
                      size_t which, bool relative, uint8_t *in);

#endif
