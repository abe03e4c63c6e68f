/*
 * ref_level_set.h - Trapani 2018 as written. Every backend must give the same result.
 *
 * Plain loops over voxels, for small volumes. It shares no code with kernels/.
 */
#ifndef NOCTULE_REF_LEVEL_SET_H
#define NOCTULE_REF_LEVEL_SET_H

#include "kernels/level_set/level_set.h"

/* Returns whether voxel (x, y, z) lies in the shape, by the tests of kernels.h. */
bool ref_in_shape(const struct kernels_shape *shape, int64_t x, int64_t y, int64_t z);

/* Stage 1: sets the states 1, -1, 2, -2, one per voxel. */
void ref_level_set_start(struct image_extent extent, enum image_pixel pixel, const void *voxels,
                         const struct kernels_level_set_label *label, int8_t *states);

/* Stage 2, the automaton: passes over all voxels until the states are stable. */
void ref_level_set_iterate(struct image_extent extent, int8_t *states);

/* Stage 2 by two breadth-first searches: the same states, in time linear in the volume. */
void ref_level_set_search(struct image_extent extent, int8_t *states);

/* Stage 3, resolution 2f(1). */
void ref_level_set_codes(struct image_extent extent, const int8_t *states, int8_t *codes);

/* Draw a shape that may leave the volume, a range of 0 .. 7 that is sometimes empty, all, or beyond the pixel type, and a
 * padding. */
struct kernels_shape ref_random_shape(uint64_t *random, struct image_extent extent);
struct image_range ref_random_range(uint64_t *random);
struct image_range ref_random_padding(uint64_t *random);

#endif
