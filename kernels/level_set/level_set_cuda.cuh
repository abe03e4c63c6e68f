/*
 * level_set_cuda.cuh - Trapani 2018 on CUDA: what the kernels share, and what launches them.
 *
 * With R "in range", S "in the initial region" and one bit a voxel each, states 1 and -2 are the
 * voxels with R = S. They are settled; a voxel of state -1 or 2 settles when a settled neighbour
 * has the same R, and its final side is then R; one that never settles keeps S. So both floods of
 * the paper are one: it runs on the two classes R = 0 and R = 1, which exclude each other. The
 * region is R where settled, else S, which is not R there: at any time R and the region say
 * together what has settled.
 *
 * Where S is the same all around, all neighbours of an open voxel that are settled have another R:
 * nothing begins there. So the flood starts in the tiles whose voxels, or those one further, are
 * partly in the initial region, and only goes where it arrives. A tile has 64 x 32 x 32 voxels; its
 * bits of R are 1024 words side by side, the region itself has its final layout from the
 * beginning. `range` is made by a pass over the volume, or, lazily, a tile at the first visit.
 *
 * Persistent blocks take tiles off a queue, bring one to its own fixed point in shared memory,
 * leave what crosses a face in the neighbour's inbox, and queue it. All of that only adds bits, so
 * the order does not matter. One word of state a tile holds which planes of its inbox are new and
 * whether it is queued or being visited: nobody visits it then but who took it.
 *
 * A path of one voxel's width through many tiles is the worst case: each visit adds next to
 * nothing. When the flood has taken longer than it should the blocks stop, and runs of open voxels
 * are united instead (level_set_unite.cu), in time linear in the volume.
 */
#ifndef NOCTULE_LEVEL_SET_CUDA_CUH
#define NOCTULE_LEVEL_SET_CUDA_CUH

#include "kernels/level_set/level_set.h"
#include "kernels/op.h"

#include <cuda_runtime.h>

enum {
    TILE_COLUMNS = 64,
    TILE_ROWS = 32,
    TILE_SLICES = 32,
    TILE_WORDS = TILE_ROWS * TILE_SLICES,
    FACES = 6, /* -x, +x, -y, +y, -z, +z */
    FACE_WORDS = 64,
    INBOX_WORDS = 2 * FACES * FACE_WORDS, /* [face][class][32-bit word] */
};

/* What a tile's voxels are in the initial region; 0 or 1: all the same. */
enum { TILE_MIXED = 2 };

/* A tile's state: bit 2 * face + class says that this plane of the inbox is new. */
enum {
    STATE_PENDING = (1 << 2 * FACES) - 1,
    STATE_INITIAL = 1 << 12, /* S is not the same in the tile and one voxel around */
    STATE_QUEUED = 1 << 13,  /* or being visited */
    STATE_VISITED = 1 << 14, /* the region may have changed; lazily, `range` is there */
    STATE_CLOSED = 1 << 15,  /* every voxel has settled: nothing can arrive */
    STATE_APART = 1 << 16,   /* level_set_unite: each of the tile's runs is a component */
};

/*
 * The values in range of one label in one slice: at most two intervals of 16-bit values, each as
 * two equal halves of a word, which is what the packed instructions take: low .. low + span.
 */
struct level_set_pass {
    uint32_t intervals; /* 0, 1 or 2 */
    uint32_t minus_low[2];
    uint32_t span[2];
    uint32_t minus_span[2];
};

/* What a run counts; zero at its beginning. */
struct level_set_counts {
    uint32_t head; /* tickets of the queue that were drawn; of the places that were filled */
    uint32_t tail;
    uint32_t outstanding; /* tiles queued or being visited */
    uint32_t stopped;     /* the flood took too long and is not complete */
    uint32_t runs;        /* of level_set_unite, that have an entry; and components */
    uint32_t components;
};

/*
 * One job on the device; arrays are indexed by label first. Tiles are numbered x fastest, then y,
 * z and label.
 */
struct level_set_job {
    int64_t columns, rows, slices, words_per_row;
    int64_t words; /* of one label's region: words_per_row * rows * slices */
    uint32_t tiles_x, tiles_y, tiles_z;
    uint32_t tiles; /* of one label */
    uint32_t labels;
    uint32_t queue_mask; /* places of the queue - 1 */
    enum image_pixel pixel;
    const void *voxels;
    const struct level_set_pass *passes; /* [label][slice] */
    uint64_t *range;                     /* [label][tile][slice][row] */
    uint64_t *initial;                   /* the same; of level_set_unite: what it begins with */
    uint64_t *inside;                    /* [label] of struct image_mask */
    uint32_t *inbox;                     /* [label][tile][INBOX_WORDS] */
    uint32_t *parent;     /* of level_set_unite, one a run; NULL: there are too many */
    uint32_t *first_node; /* one a word of one label */
    /* From here on zero at the beginning of a run: */
    uint32_t *state;    /* one a tile */
    uint32_t *queue;    /* number of a tile + 1; 0: empty */
    uint8_t *kind;      /* one a tile */
    uint8_t *layer;     /* one a layer of tiles: its voxels are there */
    int64_t *voxels_in; /* one a label: of the region */
    struct level_set_counts *counts;
    size_t zeros; /* bytes, from `state` on */
};

/* Fills in the sizes. False when a number does not fit. */
bool level_set_measure(struct level_set_job *job, struct image_extent extent,
                       enum image_pixel pixel, size_t labels);

/* Whether the tables of level_set_unite have room: its nodes are numbered by 32 bits. */
bool level_set_can_unite(const struct level_set_job *job);

struct level_set_pass level_set_make_pass(enum image_pixel pixel, struct image_range range,
                                          struct image_range padding);

/*
 * All of these only queue work on the stream. The device must have room for whole 16-byte pieces at
 * the end of the volume and of `inside`.
 *
 *   begin     everything to zero; `resident`: the whole volume is there, no layer needs release
 *   draw      the initial region of a label, and what it makes of the tiles
 *   pack      the range bits of slices first .. first + count - 1
 *   bound     limits the range bits of a label, which are there, to a mask of the host
 *   cut       removes what is not in range from a label's final region
 *   release   queues what waits in the layers of tiles first .. first + count - 1, which are there
 *   flood     to the fixed point of all layers that are there. Lazily: range bits are made at the
 *             first visit. Stops after `budget` cycles of a processor (0: never), or when part of
 *             it has waited for a fraction of that. The blocks are what level_set_blocks says.
 *   unite     the same, for one label whose range bits are there, by other means: final
 */
void level_set_begin(const struct level_set_job *job, bool resident, cudaStream_t stream);
cudaError_t level_set_draw(const struct level_set_job *job, uint32_t number,
                           const struct kernels_level_set_label *label, cudaStream_t stream);
void level_set_pack(const struct level_set_job *job, int64_t first, int64_t count,
                    cudaStream_t stream);
cudaError_t level_set_bound(const struct level_set_job *job, uint32_t label, const uint64_t *mask,
                            cudaStream_t stream);
void level_set_cut(const struct level_set_job *job, uint32_t label, cudaStream_t stream);
void level_set_release(const struct level_set_job *job, uint32_t first, uint32_t count,
                       cudaStream_t stream);
cudaError_t level_set_flood(const struct level_set_job *job, bool lazy, int blocks, int64_t budget,
                            cudaStream_t stream);
cudaError_t level_set_unite(const struct level_set_job *job, uint32_t label, cudaStream_t stream);

/* Stage 3 of slices first .. first + count - 1: one int8 a voxel, from the region. */
void level_set_codes(const struct level_set_job *job, uint32_t label, int64_t first, int64_t count,
                     int8_t *codes, cudaStream_t stream);

/* Takes the arrays from `state` to `counts`. */
void level_set_place_zeros(struct level_set_job *job, struct kernels_arena *arena);

/* Blocks of the flood that the device runs at once. Comes before a flood of this kind. */
cudaError_t level_set_blocks(enum image_pixel pixel, bool lazy, int *blocks);

/* What it may take before paths are taken for a maze's: several times any other flood. */
int64_t level_set_budget(const struct level_set_job *job);

/* The device's part. */

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

/* The columns that exist in column x of tiles. */
__device__ static __forceinline__ uint64_t
level_set_columns(const struct level_set_job &job, uint32_t x)
{
    return x + 1 == job.tiles_x ? ~UINT64_C(0) >> (63 - (job.columns - 1) % 64) : ~UINT64_C(0);
}

/* Per half: 1 where the value is out of range, else 0. Both sums are of 16 bits and wrap. */
__device__ static __forceinline__ uint32_t
level_set_outside(uint32_t pair, const struct level_set_pass &pass, int interval)
{
    uint32_t excess = __viaddmax_u16x2(pair, pass.minus_low[interval], pass.span[interval]);

    return __viaddmin_u16x2(excess, pass.minus_span[interval], 0x00010001);
}

/* Eight values side by side: what one load brings. */
template <typename Value> struct level_set_eight;

template <> struct level_set_eight<uint16_t> {
    using type = uint4;

    __device__ static __forceinline__ uint32_t pair(const uint4 &eight, int i)
    {
        return i == 0 ? eight.x : i == 1 ? eight.y : i == 2 ? eight.z : eight.w;
    }
};

template <> struct level_set_eight<uint8_t> {
    using type = uint2;

    __device__ static __forceinline__ uint32_t pair(const uint2 &eight, int i)
    {
        return __byte_perm(i < 2 ? eight.x : eight.y, 0, i % 2 ? 0x4342 : 0x4140);
    }
};

/* Bit i of the result: is value i in range? */
template <typename Value>
__device__ static __forceinline__ uint32_t
level_set_in_range(const typename level_set_eight<Value>::type &eight,
                   const struct level_set_pass &pass)
{
    uint32_t outside[4], both;

    if (pass.intervals == 0)
        return 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        outside[i] = level_set_outside(level_set_eight<Value>::pair(eight, i), pass, 0);
    if (pass.intervals == 2)
#pragma unroll
        for (int i = 0; i < 4; i++)
            outside[i] &= level_set_outside(level_set_eight<Value>::pair(eight, i), pass, 1);
    both = outside[0] | outside[1] << 2 | outside[2] << 4 | outside[3] << 6;
    return ~(both | both >> 15) & 0xFF;
}

#endif
