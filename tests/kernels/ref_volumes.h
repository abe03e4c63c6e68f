/*
 * ref_volumes.h - volumes for tests and benchmarks, made of numbers only.
 *
 * A generator says for each voxel, x fastest, whether it is in (1) or out (0); ref_paint makes
 * stored values of that. The same arguments give the same volume everywhere.
 */
#ifndef NOCTULE_REF_VOLUMES_H
#define NOCTULE_REF_VOLUMES_H

#include "kernels.h"

int64_t ref_voxels(struct kernels_extent extent);

/* splitmix64: the next number of a sequence. */
uint64_t ref_random(uint64_t *state);

/* A number in 0 .. below - 1. */
int64_t ref_random_below(uint64_t *state, int64_t below);

/* All voxels within `radius` of the middle voxel (size / 2 on each axis). */
void ref_sphere(struct kernels_extent extent, double radius, uint8_t *in);

/* One path, corridors and walls one voxel wide, corridors along `axis`, through the whole volume.
 */
void ref_serpentine(struct kernels_extent extent, int axis, uint8_t *in);

/* A spanning tree of the voxels at even coordinates, by random walks that back up when stuck. */
void ref_random_maze(struct kernels_extent extent, uint64_t seed, uint8_t *in);

/* In every second slice a square spiral; spirals are joined at alternate ends: one path. */
void ref_spiral(struct kernels_extent extent, uint8_t *in);

void ref_checkerboard(struct kernels_extent extent, uint8_t *in);

/* Each voxel is in with probability `density`, independently. */
void ref_noise(struct kernels_extent extent, double density, uint64_t seed, uint8_t *in);

/* Stored values: in_value or out_value. */
void ref_paint(enum kernels_pixel pixel, const uint8_t *in, int64_t count, int32_t in_value,
               int32_t out_value, void *voxels);

#endif
