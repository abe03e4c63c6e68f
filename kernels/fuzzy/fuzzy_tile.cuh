/*
 * fuzzy_tile.cuh - a tile in shared memory, which fuzzy_load.cuh loads, fuzzy_contract.cuh
 * contracts and fuzzy_emit.cuh writes; see fuzzy_map.cuh.
 *
 * A key is affinity << 16 | place. The place of an edge inside the tile is TILE_INSIDE | axis << 12
 * | the nearer voxel. The place of an edge that leaves the tile is axis << 9 | its place on the two
 * faces across that axis. Places increase with the position in the volume, so that both ends agree
 * which of two keys is greater. TILE_FINAL marks a component that no longer chooses.
 */
#ifndef NOCTULE_KERNELS_FUZZY_FUZZY_TILE_CUH
#define NOCTULE_KERNELS_FUZZY_FUZZY_TILE_CUH

#include "kernels/fuzzy/fuzzy_map.cuh"

#define TILE_THREADS 512
#define TILE_FACE    256
#define TILE_COLUMN  8 /* voxels per thread, every second one along z */
#define TILE_INSIDE  0x8000u
#define TILE_FINAL   0x4000u
#define TILE_SEED    0xffffffffu
#define TILE_NONE    0xffffu /* component: no edges, the map is 0 */
#define TILE_SEEDED  0xfffeu /* component: has a seed */

/* Values beyond the far faces, and the affinities of the edges that lead there. */
struct tile_faces {
    int32_t values[3][TILE_FACE];
    uint16_t affinity[3][TILE_FACE];
};

/* Components are numbered from 0. `root` leads from each to its current representative. Members
 * that share memory are never used at the same time. */
struct tile_memory {
    union {
        uint32_t table[FUZZY_SMALL_TABLE];
        uint32_t best[FUZZY_TILE_VOXELS]; /* keys of roots */
    };

    union {
        int32_t values[FUZZY_TILE_VOXELS];

        struct {
            uint16_t root[FUZZY_TILE_VOXELS];

            union {
                uint16_t cap[FUZZY_TILE_VOXELS];  /* per component, since the last numbering */
                uint16_t rank[FUZZY_TILE_VOXELS]; /* per component, as in fuzzy_map_memory */
            };
        };
    };

    uint16_t affinity[3][FUZZY_TILE_VOXELS];

    union {
        struct tile_faces faces;

        struct {
            uint16_t label[FUZZY_TILE_VOXELS];  /* a voxel's component */
            uint16_t parent[FUZZY_TILE_VOXELS]; /* of roots, for one round; or their new number */
        };
    };

    uint32_t warps[TILE_THREADS / 32];
    uint32_t base;
};

struct contract_arguments {
    const void *voxels;
    struct fuzzy_grid grid;
    struct fuzzy_lookup lookup;
    struct fuzzy_map_memory memory;
};

/* A thread's state. Its voxels and components are threadIdx.x + i * TILE_THREADS. The place of an
 * edge is threadIdx.x + its bit * TILE_THREADS. */
struct tile_thread {
    uint32_t components;            /* of the tile */
    uint32_t roots;                 /* the thread's components that are roots, one bit each */
    uint32_t alive;                 /* edges between components, bit axis * 8 + i */
    uint32_t waiting;               /* edges between final components, same bits */
    uint32_t leaving[3];            /* keys of its edges that leave the tile, one per axis; 0: no edge */
    uint32_t caps[TILE_COLUMN / 2]; /* of its voxels, two per register */
};

/* Returns the voxel inside the tile of the edge that leaves it across `axis` at `place` (0 .. 511),
 * and its side: see tile_thread. */
static __device__ __forceinline__ uint32_t
leaving_voxel(uint32_t axis, uint32_t place, uint32_t *side)
{
    if (axis == 0) { /* z, y, side */
        *side = place & 1;
        return (place >> 5) << 8 | ((place >> 1) & 15) << 4 | *side * 15;
    }
    if (axis == 1) { /* z, side, x */
        *side = (place >> 4) & 1;
        return (place >> 5) << 8 | *side * 15 << 4 | (place & 15);
    }
    *side = place >> 8; /* side, y, x */
    return *side * 15 << 8 | (place & 255);
}

/* Returns the lanes of the warp where `holds` is true. All lanes must call it. */
static __device__ __forceinline__ uint32_t
lanes_with(bool holds)
{
    return __ballot_sync(0xffffffff, holds);
}

static __device__ __forceinline__ uint32_t
lanes_before(uint32_t lanes)
{
    return __popc(lanes & ((1u << (threadIdx.x & 31)) - 1));
}

/* Returns the sum of `mine` over the threads before this one. Sets *total to the sum over all. */
static __device__ uint32_t
block_sum(struct tile_memory *tile, uint32_t mine, uint32_t *total)
{
    uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5, before = mine, other;

    for (uint32_t step = 1; step < 32; step *= 2) {
        other = __shfl_up_sync(0xffffffff, before, step);
        before += lane >= step ? other : 0;
    }
    if (lane == 31)
        tile->warps[warp] = before;
    __syncthreads();
    other = lane < TILE_THREADS / 32 ? tile->warps[lane] : 0;
    *total = __reduce_add_sync(0xffffffff, other);
    return before - mine + __reduce_add_sync(0xffffffff, lane < warp ? other : 0);
}

#endif
