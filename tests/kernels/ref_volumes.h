/*
 * ref_volumes.h - volumes for tests and benchmarks, made of numbers only.
 *
 * A generator says for each voxel, x fastest, whether it is in (1) or out (0); ref_paint makes
 * stored values of that. The same arguments give the same volume everywhere.
 */
#ifndef NOCTULE_REF_VOLUMES_H
#define NOCTULE_REF_VOLUMES_H

#include "kernels/fuzzy/fuzzy.h"

int64_t ref_voxels(struct image_extent extent);

/* splitmix64: the next number of a sequence. */
uint64_t ref_random(uint64_t *state);

/* A number in 0 .. below - 1. */
int64_t ref_random_below(uint64_t *state, int64_t below);

/* All voxels within `radius` of the middle voxel (size / 2 on each axis). */
void ref_sphere(struct image_extent extent, double radius, uint8_t *in);

/* One path, corridors and walls one voxel wide, corridors along `axis`, through the whole volume.
 */
void ref_serpentine(struct image_extent extent, int axis, uint8_t *in);

/* A spanning tree of the voxels at even coordinates, by random walks that back up when stuck. */
void ref_random_maze(struct image_extent extent, uint64_t seed, uint8_t *in);

/* In every second slice a square spiral; spirals are joined at alternate ends: one path. */
void ref_spiral(struct image_extent extent, uint8_t *in);

void ref_checkerboard(struct image_extent extent, uint8_t *in);

/* Each voxel is in with probability `density`, independently. */
void ref_noise(struct image_extent extent, double density, uint64_t seed, uint8_t *in);

/* One stored value, and all of them: in_value or out_value. */
int32_t ref_stored(enum image_pixel pixel, const void *voxels, int64_t i);
void ref_store(enum image_pixel pixel, void *voxels, int64_t i, int32_t value);
void ref_paint(enum image_pixel pixel, const uint8_t *in, int64_t count, int32_t in_value,
               int32_t out_value, void *voxels);

/*
 * The volumes below are stored values in 0 .. top. Smooth: random numbers on lattices of 16, 8 and
 * 4 voxels, each half as strong as the one before, interpolated.
 */
void ref_smooth(struct image_extent extent, enum image_pixel pixel, int32_t top, uint64_t seed,
                void *voxels);

/*
 * Vessels: `trees` trees of tubes that wander, branch and thin out, about 3/4 of top with little
 * noise, in noise of about 1/4 of top. Each tree's root, which is inside it, becomes roots[i].
 */
void ref_vessels(struct image_extent extent, enum image_pixel pixel, int32_t top, int trees,
                 uint64_t seed, void *voxels, struct kernels_voxel *roots);

/* Plateaus: `levels` values, 0 among them and top, in steps of the smooth volume; many ties. */
void ref_plateaus(struct image_extent extent, enum image_pixel pixel, int32_t top, int32_t levels,
                  uint64_t seed, void *voxels);

/* Every value anew and alike probable. */
void ref_scatter(struct image_extent extent, enum image_pixel pixel, int32_t top, uint64_t seed,
                 void *voxels);

/* Sets boxes of up to a third of each side, `count` of them, to this value. */
void ref_islands(struct image_extent extent, enum image_pixel pixel, int count, int32_t value,
                 uint64_t seed, void *voxels);

#endif
