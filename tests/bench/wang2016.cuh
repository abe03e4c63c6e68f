/*
 * wang2016.cuh - the method of Wang 2016 (after Zhuge et al. 2011), as a
 * baseline: one thread a voxel, affinities from look-up tables, maps updated by atomics.
 */
#ifndef NOCTULE_WANG2016_CUH
#define NOCTULE_WANG2016_CUH

#include "kernels/fuzzy/fuzzy_map.cuh"

/* Device memory, one element a voxel. */
struct wang2016_memory {
    uint32_t *map;
    unsigned char *front;      /* C1: voxels whose neighbours are updated in this iteration */
    unsigned char *next_front; /* C2 */
    int *changed;
};

/* All is 0 but the seed, whose map is 65535 and which is the front. */
void wang2016_begin(const struct wang2016_memory *memory, const struct image_extent *extent,
                    const struct kernels_voxel *seed, cudaStream_t stream);

/*
 * The two-kernel iteration, run until nothing changes: one kernel updates the neighbours of the
 * front, the other makes those that changed the next front. The host asks only every so many
 * iterations whether it is over. Returns the number of iterations. int16 volumes.
 */
int wang2016_converge(const struct wang2016_memory *memory, const struct fuzzy_volume *volume,
                      cudaStream_t stream);

/*
 * The correction by iterations of whole blocks: each block of 8^3 threads updates its voxels until
 * they are right as far as the block knows, and what blocks do not tell each other in time is left
 * to the next iteration, of which the paper runs two (or three).
 */
void wang2016_correct(const struct wang2016_memory *memory, const struct fuzzy_volume *volume,
                      int iterations, cudaStream_t stream);

#endif
