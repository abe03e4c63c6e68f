/*
 * ref_volumes.h - generates volumes for tests and benchmarks from numbers only.
 *
 * A generator sets each voxel, x fastest, to in (1) or out (0). ref_paint converts these to stored values. The same
 * arguments give the same volume on every machine.
 */
#ifndef NOCTULE_REF_VOLUMES_H
#define NOCTULE_REF_VOLUMES_H

#include "kernels/fuzzy/fuzzy.h"

int64_t ref_voxels(struct image_extent extent);

/* Returns memory of zeros for a test; ends the program if memory is short. The caller must free it. */
void *ref_allocate(int64_t count, size_t size);

/* Returns the next number of a sequence (splitmix64). */
uint64_t ref_random(uint64_t *state);

/* Returns a number in 0 .. below - 1. */
int64_t ref_random_below(uint64_t *state, int64_t below);

/* Draws all voxels within `radius` of the middle voxel (size / 2 on each axis). */
void ref_sphere(struct image_extent extent, double radius, uint8_t *in);

/* Draws one path through the whole volume, with corridors along `axis`. Corridors and walls are one voxel wide. */
void ref_serpentine(struct image_extent extent, int axis, uint8_t *in);

/* Draws a spanning tree of the voxels at even coordinates, by random walks that back up when stuck. */
void ref_random_maze(struct image_extent extent, uint64_t seed, uint8_t *in);

/* Draws a square spiral in every second slice. Spirals are joined at alternate ends, so that there is one path. */
void ref_spiral(struct image_extent extent, uint8_t *in);

void ref_checkerboard(struct image_extent extent, uint8_t *in);

/* Sets each voxel to in with probability `density`, independently. */
void ref_noise(struct image_extent extent, double density, uint64_t seed, uint8_t *in);

/* Read one stored value, write one, or write all of them as in_value or out_value. */
int32_t ref_stored(enum image_pixel pixel, const void *voxels, int64_t i);
void ref_store(enum image_pixel pixel, void *voxels, int64_t i, int32_t value);
void ref_paint(enum image_pixel pixel, const uint8_t *in, int64_t count, int32_t in_value, int32_t out_value,
               void *voxels);

/*
 * The volumes below are stored values in 0 .. top. Smooth: random numbers on lattices of 16, 8 and 4 voxels, each
 * half as strong as the one before, interpolated.
 */
void ref_smooth(struct image_extent extent, enum image_pixel pixel, int32_t top, uint64_t seed, void *voxels);

/*
 * Vessels: `trees` trees of tubes that wander, branch and get thinner. They have about 3/4 of top with little noise,
 * in noise of about 1/4 of top. Sets roots[i] to each tree's root, which is inside it.
 */
void ref_vessels(struct image_extent extent, enum image_pixel pixel, int32_t top, int trees, uint64_t seed,
                 void *voxels, struct kernels_voxel *roots);

/* Plateaus: `levels` values, including 0 and top, in steps of the smooth volume; many ties. */
void ref_plateaus(struct image_extent extent, enum image_pixel pixel, int32_t top, int32_t levels, uint64_t seed,
                  void *voxels);

/* Scatter: independent values, all equally probable. */
void ref_scatter(struct image_extent extent, enum image_pixel pixel, int32_t top, uint64_t seed, void *voxels);

/* Sets `count` boxes of up to a third of each side to this value. */
void ref_islands(struct image_extent extent, enum image_pixel pixel, int count, int32_t value, uint64_t seed,
                 void *voxels);

#endif
