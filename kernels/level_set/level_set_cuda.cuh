/*
 * level_set_cuda.cuh - Trapani 2018 on CUDA: declarations and launchers shared by the kernels.
 *
 * R means "in range" and S "in the initial region", with one bit per voxel each. Voxels with R = S
 * have state 1 or -2 and are settled. A voxel of state -1 or 2 settles if a settled neighbour has
 * the same R. Its final side is then R. A voxel that never settles keeps S. Both floods of the
 * paper are therefore one, on the two disjoint classes R = 0 and R = 1. The region is R where
 * settled, otherwise S, which differs from R there. R and the region together always determine the
 * settled voxels.
 *
 * Where S is uniform, all settled neighbours of an open voxel have another R, so that no flood begins there. The flood
 * therefore starts in tiles that are partly in the initial region, including a margin of one voxel, and continues only
 * where bits arrive. A tile has 64 x 32 x 32 voxels. Its bits of R are 1024 consecutive words. The region has its final
 * layout from the beginning. `range` is made by one pass over the volume.
 *
 * Persistent blocks take tiles off a queue. They bring a tile to its fixed point in shared memory.
 * They write the bits that cross a face to the neighbour's inbox, and queue the neighbour. These
 * operations only add bits, so that their order does not matter. One word of state per tile records
 * new planes of its inbox and whether it is queued or being visited. Only the block that took a
 * tile may visit it.
 *
 * The worst case is a path of one voxel's width through many tiles, where each visit adds very
 * little. If the flood takes too long, the blocks stop, and runs of open voxels are united instead
 * (level_set_unite.cu), in time linear in the volume.
 */
#ifndef NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_CUDA_CUH
#define NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_CUDA_CUH

#include "kernels/level_set/level_set.h"
#include "kernels/op.h"

#include <cuda_runtime.h>
#include <type_traits>

enum {
    TILE_COLUMNS = 64,
    TILE_ROWS = 32,
    TILE_SLICES = 32,
    TILE_WORDS = TILE_ROWS * TILE_SLICES,
    FACES = 6, /* -x, +x, -y, +y, -z, +z */
    FACE_WORDS = 64,
    INBOX_WORDS = 2 * FACES * FACE_WORDS, /* [face][class][32-bit word] */
};

/* Kinds of tiles in the initial region: 0 or 1 if uniform, otherwise mixed. */
enum { TILE_MIXED = 2 };

/* State of a tile. Bit 2 * face + class: this plane of the inbox is new. */
enum {
    STATE_PENDING = (1 << 2 * FACES) - 1,
    STATE_INITIAL = 1 << 12, /* S is not uniform in the tile and one voxel around */
    STATE_QUEUED = 1 << 13,  /* queued or being visited */
    STATE_VISITED = 1 << 14, /* the region may have changed */
    STATE_CLOSED = 1 << 15,  /* every voxel has settled: arrivals have no effect */
    STATE_APART = 1 << 16,   /* level_set_unite: each run of the tile is a component */
};

/* The values in range of one label in one slice: at most two intervals low .. low + span of 16-bit
 * values. Each bound is two equal halves of a word, for packed instructions. */
struct level_set_pass {
    uint32_t intervals; /* 0, 1 or 2 */
    uint32_t minus_low[2];
    uint32_t span[2];
    uint32_t minus_span[2];
};

/* Counters of a run; zero initially. */
struct level_set_counts {
    uint32_t head; /* tickets drawn from the queue; filled places */
    uint32_t tail;
    uint32_t outstanding; /* tiles queued or being visited */
    uint32_t stopped;     /* the flood took too long and is incomplete */
    uint32_t runs;        /* level_set_unite: runs with an entry; and components */
    uint32_t components;
};

/* One job on the device. Arrays are indexed by label first. Tiles are numbered x fastest, then y, z
 * and label. */
struct level_set_job {
    int64_t columns, rows, slices, words_per_row;
    int64_t words; /* of one label's region: words_per_row * rows * slices */
    uint32_t tiles_x, tiles_y, tiles_z;
    uint32_t tiles; /* per label */
    uint32_t labels;
    uint32_t queue_mask; /* number of places in the queue - 1 */
    enum image_pixel pixel;
    const void *voxels;
    const struct level_set_pass *passes; /* [label][slice] */
    uint64_t *range;                     /* [label][tile][slice][row] */
    uint64_t *initial;                   /* as `range`; level_set_unite: its initial state */
    uint64_t *inside;                    /* [label], as in struct image_mask */
    uint32_t *inbox;                     /* [label][tile][INBOX_WORDS] */
    uint32_t *parent;                    /* level_set_unite: one per run; NULL: too many runs */
    uint32_t *first_node;                /* one per word of one label */
    /* Zero at the beginning of a run from here on: */
    uint32_t *state;    /* one per tile */
    uint32_t *queue;    /* number of a tile + 1; 0: empty */
    uint8_t *kind;      /* one per tile */
    uint8_t *layer;     /* one per layer of tiles: its voxels are ready */
    int64_t *voxels_in; /* one per label: size of the region */
    struct level_set_counts *counts;
    size_t zeros; /* bytes, from `state` on */
};

/* Sets the sizes. Returns false if a number overflows. */
bool level_set_measure(struct level_set_job *job, struct image_extent extent, enum image_pixel pixel, size_t labels);

/* Returns whether the tables of level_set_unite fit: its nodes have 32-bit numbers. */
bool level_set_can_unite(const struct level_set_job *job);

struct level_set_pass level_set_make_pass(enum image_pixel pixel, struct image_range range, struct image_range padding);

/*
 * All of these only queue work on the stream. The device must have room for whole 16-byte pieces at
 * the end of the volume and of `inside`.
 *
 *   begin     Clears all state. `resident`: the whole volume is ready, no layer needs release.
 *   draw      Draws the initial region of a label, and classifies its tiles.
 *   pack      Makes the range bits of slices first .. first + count - 1.
 *   bound     Limits the range bits of a label, which must be ready, to a mask of the host.
 *   cut       Removes voxels not in range from a label's final region.
 *   release   Queues waiting tiles in layers first .. first + count - 1, which must be ready.
 *   flood     Runs to the fixed point of all ready layers. Stops after `budget` cycles of a processor (0: never), or if
 *             some blocks have waited for a fraction of that. The blocks must be those of level_set_blocks.
 *   unite     As flood, for one label whose range bits are ready, by uniting runs: final.
 */
void level_set_begin(const struct level_set_job *job, bool resident, cudaStream_t stream);
cudaError_t level_set_draw(const struct level_set_job *job, uint32_t number,
                           const struct kernels_level_set_label *label, cudaStream_t stream);
void level_set_pack(const struct level_set_job *job, int64_t first, int64_t count, cudaStream_t stream);
cudaError_t level_set_bound(const struct level_set_job *job, uint32_t label, const uint64_t *mask, cudaStream_t stream);
void level_set_cut(const struct level_set_job *job, uint32_t label, cudaStream_t stream);
void level_set_release(const struct level_set_job *job, uint32_t first, uint32_t count, cudaStream_t stream);
cudaError_t level_set_flood(const struct level_set_job *job, int blocks, int64_t budget, cudaStream_t stream);
cudaError_t level_set_unite(const struct level_set_job *job, uint32_t label, cudaStream_t stream);

/* Takes the arrays from `state` to `counts`. */
void level_set_place_zeros(struct level_set_job *job, struct kernels_arena *arena);

/* Returns the flood's blocks that run at once. Must precede a flood. */
cudaError_t level_set_blocks(int *blocks);

/* Returns the cycles after which the flood counts as a maze: several times any other flood. */
int64_t level_set_budget(const struct level_set_job *job);

/* Device code */

struct level_set_place {
    uint32_t label, x, y, z; /* in tiles */
};

__device__ static __forceinline__ struct level_set_place
level_set_place_of(const struct level_set_job &job, uint32_t tile)
{
    struct level_set_place place;

    place.label = job.labels == 1 ? 0 : tile / job.tiles;
    tile -= place.label * job.tiles;
    place.x = tile % job.tiles_x;
    tile /= job.tiles_x;
    place.y = tile % job.tiles_y;
    place.z = tile / job.tiles_y;
    return place;
}

/* Returns the existing columns of column x of tiles. */
__device__ static __forceinline__ uint64_t
level_set_columns(const struct level_set_job &job, uint32_t x)
{
    return x + 1 == job.tiles_x ? ~UINT64_C(0) >> (63 - (job.columns - 1) % 64) : ~UINT64_C(0);
}

/* Per half: 1 if the value is out of range, otherwise 0. Both sums have 16 bits and wrap. */
__device__ static __forceinline__ uint32_t
level_set_outside(uint32_t pair, const struct level_set_pass &pass, int interval)
{
    uint32_t excess = __viaddmax_u16x2(pair, pass.minus_low[interval], pass.span[interval]);

    return __viaddmin_u16x2(excess, pass.minus_span[interval], 0x00010001);
}

/* Eight adjacent values, one load. */
template <typename Value> using level_set_eight = typename std::conditional<sizeof(Value) == 1, uint2, uint4>::type;

/* Returns one bit per value: in range. */
template <typename Value>
__device__ static __forceinline__ uint32_t
level_set_in_range(const level_set_eight<Value> &eight, const struct level_set_pass &pass)
{
    uint32_t pairs[4], outside[4], both; /* pairs: two values each, of 16 bits */

    if (pass.intervals == 0)
        return 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if constexpr (sizeof(Value) == 1)
            pairs[i] = __byte_perm(i < 2 ? eight.x : eight.y, 0, i % 2 ? 0x4342 : 0x4140);
        else
            pairs[i] = i == 0 ? eight.x : i == 1 ? eight.y : i == 2 ? eight.z : eight.w;
#pragma unroll
    for (int i = 0; i < 4; i++)
        outside[i] = level_set_outside(pairs[i], pass, 0);
    if (pass.intervals == 2)
#pragma unroll
        for (int i = 0; i < 4; i++)
            outside[i] &= level_set_outside(pairs[i], pass, 1);
    both = outside[0] | outside[1] << 2 | outside[2] << 4 | outside[3] << 6;
    return ~(both | both >> 15) & 0xFF;
}

#endif
