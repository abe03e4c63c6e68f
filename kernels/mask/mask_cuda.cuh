/* mask_cuda.cuh - declarations shared by the mask files of the GPU: the volume's shape, device
 * memory, and the functions that queue work on a stream. */
#ifndef NOCTULE_KERNELS_MASK_MASK_CUDA_CUH
#define NOCTULE_KERNELS_MASK_MASK_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/mask/ball.h"
#include "kernels/mask/mask.h"

enum {
    MASK_THREADS = 256,
    MASK_PARTIALS = 1024,    /* max blocks that search for the largest component */
    MASK_HALO = 15,          /* max words that a warp reads beyond those that it makes */
    MASK_RUNS_PER_WORD = 32, /* at most */
    MASK_NEAR = 16,          /* max voxels along each axis in the reach of mask_walk.cu's balls */
};

struct mask_grid {
    int64_t columns, rows, slices;
    int64_t words_per_row, words;
    uint64_t tail;   /* valid bits in the last word of a row */
    uint32_t blocks; /* blocks that process all words, several per thread */
};

/* Keeps components above this size, and those of this size up to this node. */
struct mask_bound {
    long long size;
    unsigned long long last;
};

/* Results on the device. `voxels` and the box are from the last mask_measure. */
struct mask_facts {
    unsigned long long voxels;
    long long first[3], last[3];
    unsigned long long found, kept;
    unsigned long long highest; /* rank of the largest component: mask_runs.cuh */
    struct mask_bound bound;
    uint32_t ticket; /* 0 between searches for the largest */
};

/* Loop of a kernel over the words of a grid. */
#define MASK_EACH_WORD(grid, word)                                                                                     \
    for (int64_t word = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; (word) < (grid).words;                         \
         (word) += (int64_t)gridDim.x * blockDim.x)

/* Coordinates of a word. */
struct mask_place {
    int64_t x, y, z; /* x in words */
};

static __device__ __forceinline__ struct mask_place
mask_place_of(const struct mask_grid &grid, int64_t word)
{
    const uint32_t per_row = (uint32_t)grid.words_per_row, rows = (uint32_t)grid.rows; /* 32-bit, for fast division */
    const uint32_t row = (uint32_t)word / per_row;

    return {(uint32_t)word - row * per_row, row % rows, row / rows};
}

/* mask_cuda.cu: queues steps from mask `from` of the lane to mask `to`, on the device only. For
 * benchmarks. */
int cuda_mask_queue(struct kernels_lane *lane, size_t from, size_t to, const struct kernels_mask_step *steps,
                    size_t count, struct error *error);

/* mask_range.cu */

/* The values in range of a slice, modulo the range of the pixel type. */
struct mask_pass {
    uint32_t intervals; /* 0, 1 or 2 */
    uint16_t low[2], span[2];
};

/* `passes` are on the device: one per slice or, if `alike`, one for all. */
void mask_range_queue(const struct mask_grid *grid, enum image_pixel pixel, const void *voxels,
                      const struct mask_pass *passes, bool alike, uint64_t *bits, cudaStream_t stream);

/* mask_runs.cu: components (mask_runs.cuh) */

/* A tile's part of a component. */
struct alignas(8) mask_node {
    uint32_t parent, count;
};

struct mask_search {
    struct mask_grid grid;
    uint64_t *bits;
    uint64_t flip;              /* 0 or all ones */
    bool corners, flat, border; /* as struct mask_labels of the CPU */
    uint16_t *labels;           /* one per run */
    struct mask_node *nodes;    /* one per first run of a component */
    uint8_t *firsts;            /* nodes per word */
    uint64_t *hung;             /* one bit per node */
    struct mask_facts *facts;
    struct mask_bound *partials;
};

/* Returns the max number of runs in the volume. */
size_t mask_runs(const struct mask_grid *grid);

/* Returns whether components of such a volume can be labelled. */
bool mask_runs_can(const struct mask_grid *grid);

/* Each function queues its kernels. The caller must check cudaGetLastError for failed launches. */
void mask_search_begin(const struct mask_search *search, struct mask_bound bound, cudaStream_t stream);

/* mask_keep.cu: selects components. Each must follow mask_search_begin. */

/* Sets the bound to the largest component or, if `share` is not negative, to all with at least this share of its size.
 * Then sets it, `places` - 1 times, to the first component behind it. If there is none, the bound stays. */
void mask_search_largest(const struct mask_search *search, int64_t places, double share, cudaStream_t stream);
/* Flips components that do not stay. Counts the found and kept ones, except for holes. */
void mask_search_drop(const struct mask_search *search, cudaStream_t stream);
/* Replaces the components' sizes by numbers, and counts them. */
void mask_search_number(const struct mask_search *search, cudaStream_t stream);
void mask_search_part(const struct mask_search *search, int bit, uint64_t *part, cudaStream_t stream);

/* mask_means.cu */

enum { MASK_MEANS = 65536 }; /* components whose means are found at once */

enum : uint32_t { MASK_MEAN_STAYS = ~0u }; /* the size of a numbered component that stays; others get one less */

/* Sum and number of a component's inner values. */
struct mask_sums {
    unsigned long long sum, count;
};

/* Decides by their means which of the MASK_MEANS components from number `first` on stay. The means must be zeros. */
void mask_means_queue(const struct mask_search *search, enum image_pixel pixel, const void *voxels, uint32_t first,
                      double least, struct mask_sums *means, cudaStream_t stream);

/* mask_grow.cu: balls of any reach. */

/* A ball's rows per group for warps: four at a time, filled up with the last one. */
struct mask_grow_group {
    int32_t end;   /* in units of four */
    int32_t widen; /* as in struct mask_ball */
};

struct mask_grow_ball {
    struct mask_reach reach;
    int32_t groups;
    struct mask_row *rows;
    int32_t *offsets; /* word offset of each row */
    struct mask_grow_group *group;
};

/* Returns the max rows of a ball with this reach. */
size_t mask_grow_rows(const struct mask_reach *most);

/* Makes the ball on the host. */
void mask_grow_ball_make(const struct mask_grid *grid, const struct mask_ball *ball, struct mask_grow_ball *made);

/* The box of the last mask_measure, of the source, limits the target's voxels. */
void mask_grow_queue(const struct mask_grid *grid, const struct mask_grow_ball *ball, const struct mask_facts *facts,
                     const uint64_t *source, bool shrink, uint64_t *target, cudaStream_t stream);

/* Returns whether balls of this reach can be made with rows of this length. */
bool mask_grow_can(const struct mask_grid *grid, const struct mask_reach *most);

/* Sets cut |= voxels where both masks, or their neighbours, meet. */
void mask_cut_queue(const struct mask_grid *grid, const uint64_t *one, const uint64_t *other, bool corners,
                    uint64_t *cut, cudaStream_t stream);

/* mask_walk.cu: balls with a small reach. */

/*
 * A small ball, by span from the longest on, and the distribution of rows to warps. The rows of a
 * span end at rows[ends[span]]. Each entry has two pairs of rows, filled up with the last pair, as
 * offsets from a lane's word in the block's shared memory.
 */
struct mask_walk {
    int32_t span, reach, depth; /* along x, y and z */
    /* of a row in a warp: all, only read at either end, and the others */
    int32_t words, halo, made;
    int32_t warp_rows, rows_made; /* rows of that length per warp; rows per block */
    int32_t pitch;                /* words of a slice that a block reads */
    int32_t widest;               /* offset of the widest window, in rows */
    int32_t ends[MASK_NEAR + 1];
    int4 rows[(MASK_NEAR + 1) * (MASK_NEAR + 2) / 2];
};

/* The reach must be at most MASK_NEAR along each axis. */
void mask_walk_make(const struct mask_grid *grid, const struct mask_ball *ball, struct mask_walk *made);

int mask_walk_queue(struct cuda_lane *lane, const struct mask_grid *grid, const struct mask_walk *ball,
                    const uint64_t *source, bool shrink, uint64_t *target, struct error *error);

#endif
