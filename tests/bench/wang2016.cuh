/*
 * wang2016.cuh - the method of Wang 2016 (after Zhuge et al. 2011), as a baseline: one thread per voxel, affinities
 * from look-up tables, maps updated by atomics.
 */
#ifndef NOCTULE_WANG2016_CUH
#define NOCTULE_WANG2016_CUH

#include "kernels/fuzzy/fuzzy_map.cuh"

/* Device memory, one element per voxel. */
struct wang2016_memory {
    uint32_t *map;
    unsigned char *front;      /* C1: voxels whose neighbours are updated in this iteration */
    unsigned char *next_front; /* C2 */
    int *changed;
};

/* Sets the map to 0. The seed has 65535 and is the front. */
void wang2016_begin(const struct wang2016_memory *memory, const struct image_extent *extent,
                    const struct kernels_voxel *seed, cudaStream_t stream);

/*
 * Iterates two kernels until the map is stable: one updates the neighbours of the front, the other makes the changed
 * ones the next front. The host checks for the end only every few iterations. Returns the number of iterations.
 * Volumes must be int16.
 */
int wang2016_converge(const struct wang2016_memory *memory, const struct fuzzy_volume *volume, cudaStream_t stream);

/*
 * Corrects the map by iterations of whole blocks. Each block of 8^3 threads updates its voxels until they are
 * consistent within the block. Changes that cross blocks too late need another iteration; the paper runs two (or
 * three).
 */
void wang2016_correct(const struct wang2016_memory *memory, const struct fuzzy_volume *volume, int iterations,
                      cudaStream_t stream);

#endif
