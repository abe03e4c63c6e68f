/*
 * mask_cuda.cuh - what the files of the GPU's masks share: the volume's shape, what lies on the
 * device, and the work that they queue on a stream.
 */
#ifndef NOCTULE_MASK_CUDA_CUH
#define NOCTULE_MASK_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/mask/ball.h"
#include "kernels/mask/mask.h"

enum {
    MASK_THREADS = 256,
    MASK_PARTIALS = 1024,    /* blocks that look for the largest component, at most */
    MASK_HALO = 15,          /* words that a warp may see beyond those that it makes */
    MASK_RUNS_PER_WORD = 32, /* at most */
    MASK_NEAR = 16,          /* voxels along each axis that mask_walk.cu's balls reach, at most */
};

struct mask_grid {
    int64_t columns, rows, slices;
    int64_t words_per_row, words;
    uint64_t tail;   /* of the last word of a row */
    uint32_t blocks; /* that go over all words, each thread over several */
};

/* What stays: components above this size, and of this size those up to this node. */
struct mask_bound {
    long long size;
    unsigned long long last;
};

/* On the device; `voxels` and the box are of the last mask_measure. */
struct mask_facts {
    unsigned long long voxels;
    long long first[3], last[3];
    unsigned long long found, kept;
    unsigned long long highest; /* what the largest component is by: mask_runs.cuh */
    struct mask_bound bound;
    uint32_t ticket; /* 0 between the searches for the largest */
};

/* Kernels' loops over the words of a grid. */
#define MASK_EACH_WORD(grid, word)                                                                 \
    for (int64_t word = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; (word) < (grid).words;     \
         (word) += (int64_t)gridDim.x * blockDim.x)

/* The place of a word. */
struct mask_place {
    int64_t x, y, z; /* x in words */
};

static __device__ __forceinline__ struct mask_place
mask_place_of(const struct mask_grid &grid, int64_t word)
{
    const uint32_t per_row = (uint32_t)grid.words_per_row,
                   rows = (uint32_t)grid.rows; /* quick to divide by */
    const uint32_t row = (uint32_t)word / per_row;

    return {(uint32_t)word - row * per_row, row % rows, row / rows};
}

/* mask_cuda.cu: mask `to` of the lane becomes `from` through the steps, on the device alone; only
 * queued on the lane's work. For benchmarks. */
int cuda_mask_queue(struct kernels_lane *lane, size_t from, size_t to,
                    const struct kernels_mask_step *steps, size_t count, struct error *error);

/* mask_range.cu */

/* The values in range of a slice, counted modulo what the pixel type holds. */
struct mask_pass {
    uint32_t intervals; /* 0, 1 or 2 */
    uint16_t low[2], span[2];
};

/* `passes`, on the device: of all slices alike, or of each. */
void mask_range_queue(const struct mask_grid *grid, enum image_pixel pixel, const void *voxels,
                      const struct mask_pass *passes, bool alike, uint64_t *bits,
                      cudaStream_t stream);

/* mask_runs.cu: components (mask_runs.cuh) */

/* A component as far as a tile sees it. */
struct alignas(8) mask_node {
    uint32_t parent, count;
};

struct mask_search {
    struct mask_grid grid;
    uint64_t *bits;
    uint64_t flip;              /* 0 or all ones */
    bool corners, flat, border; /* as struct mask_labels of the CPU */
    uint16_t *labels;           /* of each run */
    struct mask_node *nodes;    /* of each run that is a first one */
    uint8_t *firsts;            /* how many each word has */
    uint64_t *hung;             /* a bit for each node */
    struct mask_facts *facts;
    struct mask_bound *partials;
};

/* That the volume may have. */
size_t mask_runs(const struct mask_grid *grid);

/* Whether components of such a volume can be told. */
bool mask_runs_can(const struct mask_grid *grid);

/* Each queues its kernels; a failed launch is cudaGetLastError's. */
void mask_search_begin(const struct mask_search *search, struct mask_bound bound,
                       cudaStream_t stream);

/* mask_keep.cu: which of them stay, each after mask_search_begin. */

/* The bound becomes the largest component, or the first one behind it; if there is none, it stays. */
void mask_search_largest(const struct mask_search *search, cudaStream_t stream);
void mask_search_next(const struct mask_search *search, cudaStream_t stream);
void mask_search_share(const struct mask_search *search, double share, cudaStream_t stream);
/* Turns over what does not stay; counts what there is and what stays, but not of holes. */
void mask_search_drop(const struct mask_search *search, cudaStream_t stream);
/* Numbers the components in place of their sizes, and counts them. */
void mask_search_number(const struct mask_search *search, cudaStream_t stream);
void mask_search_part(const struct mask_search *search, int bit, uint64_t *part,
                      cudaStream_t stream);

/* mask_grow.cu: balls of any reach. */

/* A ball as warps walk it: the rows of each group four at a time, the last one repeated to fill up. */
struct mask_grow_group {
    int32_t end;   /* in fours */
    int32_t widen; /* as struct mask_ball */
};

struct mask_grow_ball {
    struct mask_reach reach;
    int32_t groups;
    struct mask_row *rows;
    int32_t *offsets; /* of each row, in words */
    struct mask_grow_group *group;
};

/* Rows of a ball of this reach, at most. */
size_t mask_grow_rows(const struct mask_reach *most);

/* On the host. */
void mask_grow_ball_make(const struct mask_grid *grid, const struct mask_ball *ball,
                         struct mask_grow_ball *made);

/* The box of the source, as of the last mask_measure, is where the target may have voxels. */
void mask_grow_queue(const struct mask_grid *grid, const struct mask_grow_ball *ball,
                     const struct mask_facts *facts, const uint64_t *source, bool shrink,
                     uint64_t *target, cudaStream_t stream);

/* Whether balls of this reach can be made in rows of these words. */
bool mask_grow_can(const struct mask_grid *grid, const struct mask_reach *most);

/* cut |= what one and the other, or their neighbours, have in common. */
void mask_cut_queue(const struct mask_grid *grid, const uint64_t *one, const uint64_t *other,
                    bool corners, uint64_t *cut, cudaStream_t stream);

/* mask_walk.cu: balls that reach few voxels. */

/*
 * Such a ball, span by span from the longest on, and how rows of the volume are dealt out to warps. Its rows of a span
 * end at rows[ends[span]]: two pairs each, the last one repeated to fill up, as where they lie from a lane's word on in
 * the block's shared memory.
 */
struct mask_walk {
    int32_t span, reach, depth;   /* along x, y and z */
    int32_t words, halo, made;    /* of a row in a warp: all, at either end only seen, the others */
    int32_t warp_rows, rows_made; /* of so many words; by all warps of a block */
    int32_t pitch;                /* words that a block sees of a slice */
    int32_t widest;               /* where the widest window lies, as rows */
    int32_t ends[MASK_NEAR + 1];
    int4 rows[(MASK_NEAR + 1) * (MASK_NEAR + 2) / 2];
};

bool mask_walk_can(const struct mask_reach *reach);
void mask_walk_make(const struct mask_grid *grid, const struct mask_ball *ball,
                    struct mask_walk *made);

int mask_walk_queue(struct cuda_lane *lane, const struct mask_grid *grid,
                    const struct mask_walk *ball, const uint64_t *source, bool shrink,
                    uint64_t *target, struct error *error);

#endif
