/*
 * texture_cuda.cuh - what texture on the GPU takes of a lane's memory, shared by glcm_cuda.cu and
 * patterns_cuda.cu.
 *
 * Results of any size come back through buffers of a fixed one: matrices, tables and maps are
 * worked on in batches that fit.
 */
#ifndef NOCTULE_TEXTURE_CUDA_CUH
#define NOCTULE_TEXTURE_CUDA_CUH

#include "cuda.cuh"
#include "texture.h"

enum {
    TEXTURE_TABLES = 16,          /* tables of levels at a time */
    TEXTURE_COUNTERS = 2 << 20,   /* counters at a time */
    TEXTURE_MATRICES = 65535,     /* matrices at a time: a grid's most in y */
    TEXTURE_MAP_BYTES = 16 << 20, /* codes of one map at a time, or a row of them */
    TEXTURE_MAP_BATCHES = 2,      /* one comes back while the next is made */
};

/* How a matrix is counted. */
enum glcm_way {
    GLCM_PAIRS,     /* a counter for each pair of levels */
    GLCM_ROW,       /* for three voxels on a row, of which the first is at an even x */
    GLCM_DOWN_LEFT, /* for three voxels, one step in y apart, and in x -1, 0, 1 */
    GLCM_DOWN,
    GLCM_DOWN_RIGHT,
};

/* Division of numbers below 2^31 by one that is not known before (Granlund and Montgomery). */
struct divider {
    uint32_t by, factor, shift;
};

/* One matrix to be counted. A span is what a warp takes of a row at a time. */
struct glcm_matrix {
    int32_t x, y, z;  /* the offset */
    int32_t way;      /* of enum glcm_way */
    int32_t reversed; /* counted by the opposite offset: [neighbour][voxel] */
    int32_t first_slice, slice_count;
    uint32_t spans;        /* in all */
    struct divider across; /* spans of a row */
    struct divider rows;   /* GLCM_DOWN*: rows of first voxels in a slice */
    struct divider step;   /* GLCM_DOWN*: y */
};

struct cuda_texture {
    size_t code_pitch; /* bytes of a row of codes, a multiple of 16 */
    size_t map_pitch;  /* bytes of a row of a map, a multiple of 4 */
    size_t map_rows;   /* rows of a map that a batch has room for */
    size_t words;      /* of a region */
    uint8_t *codes;
    uint64_t *region;
    uint16_t *tables; /* of levels */
    struct glcm_matrix *matrices, *host_matrices;
    unsigned long long *counts, *host_counts;
    uint8_t *maps[TEXTURE_MAP_BATCHES], *host_maps[TEXTURE_MAP_BATCHES];
    cudaEvent_t made[TEXTURE_MAP_BATCHES], fetched[TEXTURE_MAP_BATCHES];
};

/* Sends a region to the lane's memory, on `work`; NULL stays NULL. */
int cuda_texture_region(struct cuda_lane *lane, const uint64_t *region, const uint64_t **on_device,
                        char *reason, size_t reason_size);

/* Whether voxel x of a row is in the region; every one is in NULL. */
static __device__ __forceinline__ bool
texture_in_region(const uint64_t *region, size_t row, uint32_t words_per_row, uint32_t x)
{
    return region == NULL || (region[row * words_per_row + x / 64] >> x % 64 & 1) != 0;
}

#endif
