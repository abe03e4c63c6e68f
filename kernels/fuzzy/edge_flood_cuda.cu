#include "kernels/fuzzy/edge_flood_cuda.cuh"

#include "kernels/cuda/cuda.cuh"

enum {
    THREADS = 128,
    LINE = 16,                      /* half rows per thread: half a tile's edge */
    PITCH = 2 * EDGE_TILE_ROWS + 2, /* slice pitch in shared memory: avoids bank conflicts */
    FACES = 6,                      /* -x, +x, -y, +y, -z, +z */
    BLOCKS_PER_PROCESSOR = 4,
    WRITE_THREADS = 256,
    WRITE_SLICES = 4, /* slices per block: those in one sector */
};

static const uint32_t NOTHING = UINT32_MAX;
static const uint32_t END = UINT32_MAX; /* marks a place of the queue: no more tiles */

/* States of a tile. */
static const uint32_t HELD = 1;    /* queued or being visited */
static const uint32_t DIRTY = 2;   /* a neighbour has settled voxels since its visit began */
static const uint32_t INITIAL = 4; /* has seeds, and was not visited since */

/* Cycles: several times the time of any flood except a maze's. */
static const int64_t BUDGET = 300000, BUDGET_PER_TILE = 1000;

/* A block's visit, in shared memory. */
struct edge_visit {
    uint32_t settled[EDGE_TILE_ROWS * PITCH]; /* [slice][row][half] */
    uint32_t tile;
    uint32_t state;            /* at the beginning of the visit */
    uint32_t neighbour[FACES]; /* NOTHING: end of the volume */
    uint32_t sends;            /* one bit per face: the neighbour must be visited */
};

/* A thread's lines: that of a slice along y, that along z at the same place and `from`, and the
 * state beyond ends that are the tile's own. */
struct edge_lines {
    uint32_t half;   /* 0: columns 0 .. 31 of the tile */
    uint32_t across; /* slice of the line along y, row of the line along z */
    uint32_t from;   /* start of the lines: 0 or 16 */
    uint32_t x[LINE], y[LINE], z[LINE];
    uint32_t before_y, before_z;           /* edges from the half before the line's first */
    uint32_t across_x;                     /* edges that leave the tile, one bit per row */
    uint32_t beyond_x, beyond_y, beyond_z; /* settled there when the visit began */
};

__device__ static __forceinline__ uint32_t
cuda_edge_flood_look(const uint32_t *word)
{
    return *(const volatile uint32_t *)word;
}

/* Takes a tile off the queue, or returns NOTHING at the end. A ticket is a place of the queue. Its
 * owner waits there for a tile from any block. */
__device__ static uint32_t
cuda_edge_flood_pop(const struct edge_flood_volume &volume, int64_t deadline)
{
    bool stopped = cuda_edge_flood_look(&volume.counts->stopped) != 0;
    uint32_t *place = &volume.queue[atomicAdd(&volume.counts->head, 1) & volume.queue_mask];

    while (!stopped && clock64() <= deadline) {
        uint32_t taken = cuda_edge_flood_look(place) ? atomicExch(place, 0) : 0;

        if (taken)
            return taken == END ? NOTHING : taken - 1;
        stopped = cuda_edge_flood_look(&volume.counts->stopped) != 0;
    }
    volume.counts->stopped = 1;
    return NOTHING;
}

/* Adds `more` to the outstanding tiles. When none are left, puts END for every block. Called by a
 * warp. */
__device__ static void
count_tiles(const struct edge_flood_volume &volume, int32_t more)
{
    uint32_t ticket = 0;
    bool last = false;

    if (threadIdx.x == 0) {
        last = atomicAdd(&volume.counts->outstanding, (uint32_t)more) + (uint32_t)more == 0;
        if (last)
            ticket = atomicAdd(&volume.counts->tail, gridDim.x);
    }
    if (!__shfl_sync(~0u, last, 0))
        return;
    ticket = __shfl_sync(~0u, ticket, 0);
    /* The queue has no tiles, so these places are empty. */
    for (uint32_t i = threadIdx.x; i < gridDim.x; i += 32)
        *(volatile uint32_t *)&volume.queue[(ticket + i) & volume.queue_mask] = END;
}

static __global__ void
cuda_edge_flood_settle_seeds(const __grid_constant__ struct edge_flood_volume volume, const uint32_t *seeds,
                             uint32_t count)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= count)
        return;
    const uint32_t columns = (uint32_t)volume.size[0], rows = (uint32_t)volume.size[1];
    const uint32_t x = seeds[i] % columns, y = seeds[i] / columns % rows;
    const uint32_t z = seeds[i] / columns / rows;
    const uint32_t tile =
        ((z / EDGE_TILE_ROWS) * volume.tiles[1] + y / EDGE_TILE_ROWS) * volume.tiles[0] + x / EDGE_TILE_COLUMNS;
    const uint32_t place = edge_flood_place(z % EDGE_TILE_ROWS, y % EDGE_TILE_ROWS, x % EDGE_TILE_COLUMNS / 32);

    atomicOr(&volume.settled[(size_t)tile * EDGE_TILE_HALVES + place], 1u << x % 32);
    if (atomicOr(&volume.state[tile], HELD | INITIAL) & HELD)
        return;
    atomicAdd(&volume.counts->outstanding, 1);
    volume.queue[atomicAdd(&volume.counts->tail, 1)] = tile + 1;
}

/* Voxels that neighbours settle from here on cause another visit. */
__device__ static __forceinline__ void
cuda_edge_flood_begin_visit(const struct edge_flood_volume &volume, struct edge_visit *visit)
{
    const uint32_t tile = visit->tile, face = threadIdx.x - 32;

    if (threadIdx.x == 0) {
        visit->state = atomicAnd(&volume.state[tile], HELD);
        visit->sends = 0;
        __threadfence();
    } else if (face < FACES) {
        const uint32_t *tiles = volume.tiles;
        const uint32_t axis = face / 2, step = axis == 0 ? 1 : axis == 1 ? tiles[0] : tiles[0] * tiles[1];
        const uint32_t at = tile / step % tiles[axis];

        if (face % 2 == 0)
            visit->neighbour[face] = at > 0 ? tile - step : NOTHING;
        else
            visit->neighbour[face] = at + 1 < tiles[axis] ? tile + step : NOTHING;
    }
    __syncthreads();
}

/* Returns a word of another tile, 0 if there is none. */
template <typename Word>
__device__ static __forceinline__ uint32_t
word_of(const Word *words, uint32_t tile, uint32_t words_a_tile, uint32_t place)
{
    return tile == NOTHING ? 0 : __ldcg(&words[(size_t)tile * words_a_tile + place]);
}

__device__ static __forceinline__ void
load_edges(const struct edge_flood_volume &volume, const struct edge_visit *visit, struct edge_lines *own)
{
    const size_t base = (size_t)visit->tile * EDGE_TILE_HALVES + threadIdx.x;
    const uint32_t last = edge_flood_place(own->across, LINE - 1, own->half);
    const uint32_t *neighbour = visit->neighbour;

#pragma unroll
    for (uint32_t i = 0; i < LINE; i++) {
        own->x[i] = __ldg(&volume.edge[0][base + i * THREADS]);
        own->y[i] = __ldg(&volume.edge[1][base + i * THREADS]);
        own->z[i] = __ldg(&volume.edge[2][base + i * THREADS]);
    }
    if (own->from != 0) {
        own->before_y = word_of(volume.edge[1], visit->tile, EDGE_TILE_HALVES, last);
        own->before_z = word_of(volume.edge[2], visit->tile, EDGE_TILE_HALVES, last);
    } else {
        own->before_y = word_of(volume.edge[1], neighbour[2], EDGE_TILE_HALVES, last + 32);
        own->before_z = word_of(volume.edge[2], neighbour[4], EDGE_TILE_HALVES, last + 32);
    }
    own->across_x = 0;
    if (own->half == 0 && neighbour[0] != NOTHING)
        own->across_x =
            __ldg(&volume.west[(size_t)visit->tile * EDGE_TILE_SIDE + edge_flood_side(own->across, own->from)]);
    if (own->half != 0)
#pragma unroll
        for (uint32_t i = 0; i < LINE; i++)
            own->across_x |= own->x[i] >> 31 << i;
}

__device__ static __forceinline__ void
cuda_edge_flood_sweep_up(uint32_t settled[LINE], const uint32_t edges[LINE], uint32_t before)
{
    settled[0] |= before;
#pragma unroll
    for (int i = 1; i < LINE; i++)
        settled[i] |= edges[i - 1] & settled[i - 1];
}

__device__ static __forceinline__ void
cuda_edge_flood_sweep_down(uint32_t settled[LINE], const uint32_t edges[LINE], uint32_t after)
{
    settled[LINE - 1] |= edges[LINE - 1] & after;
#pragma unroll
    for (int i = LINE - 2; i >= 0; i--)
        settled[i] |= edges[i] & settled[i + 1];
}

/* Sweeps once along x and y, in both directions. Fills runs along x within 32 voxels: adding settled bits to a run of
 * edges carries from the lowest of them to the run's end, where there is no edge. */
__device__ static __forceinline__ void
sweep_rows(const struct edge_lines &own, uint32_t settled[LINE], uint32_t before, uint32_t after)
{
    cuda_edge_flood_sweep_up(settled, own.y, before);
#pragma unroll
    for (int i = 0; i < LINE; i++) {
        uint32_t crosses = settled[i] & (own.half ? ~0u : own.x[i]);
        uint32_t other = __shfl_xor_sync(~0u, crosses, 1);

        const uint32_t edges = own.x[i] & ~(1u << 31);

        settled[i] |= own.half ? other >> 31 : other << 31 & own.x[i];
        settled[i] |= edges ^ (edges + (settled[i] & edges));
        if (edges & ~settled[i] & settled[i] >> 1) {
            const uint32_t turned = __brev(settled[i]), back = __brev(edges) >> 1;

            settled[i] = __brev(turned | (back ^ (back + (turned & back))));
        }
    }
    cuda_edge_flood_sweep_down(settled, own.y, after);
}

/* Writes the changed words of a line, `step` words apart. Returns whether there were any. */
__device__ static __forceinline__ bool
cuda_edge_flood_put_line(uint32_t *line, int step, const uint32_t now[LINE])
{
    bool changed = false;

#pragma unroll
    for (int i = 0; i < LINE; i++)
        if (now[i] != line[i * step]) {
            line[i * step] = now[i];
            changed = true;
        }
    return changed;
}

/* Settles the tile to its fixed point. `settled` is this thread's line along y, also in shared
 * memory; both are final on return. Returns whether any voxel changed. */
__device__ static bool
cuda_edge_flood_settle(const struct edge_lines &own, struct edge_visit *visit, uint32_t settled[LINE])
{
    uint32_t *along_y = &visit->settled[own.across * PITCH + own.from * 2 + own.half];
    uint32_t *along_z = &visit->settled[own.from * PITCH + own.across * 2 + own.half];

    for (bool grown = false;; grown = true) {
        uint32_t beyond = own.from != 0 ? along_y[-2] : along_y[LINE * 2];

        __syncthreads();
        sweep_rows(own, settled, own.before_y & (own.from != 0 ? beyond : own.beyond_y),
                   own.from != 0 ? own.beyond_y : beyond);
        bool changed = cuda_edge_flood_put_line(along_y, 2, settled);
        __syncthreads();

        uint32_t line[LINE];
#pragma unroll
        for (int i = 0; i < LINE; i++)
            line[i] = along_z[i * PITCH];
        beyond = own.from != 0 ? along_z[-PITCH] : along_z[LINE * PITCH];
        __syncthreads();
        cuda_edge_flood_sweep_up(line, own.z, own.before_z & (own.from != 0 ? beyond : own.beyond_z));
        cuda_edge_flood_sweep_down(line, own.z, own.from != 0 ? own.beyond_z : beyond);
        changed |= cuda_edge_flood_put_line(along_z, PITCH, line);
        if (!__syncthreads_or(changed))
            return grown;
#pragma unroll
        for (int i = 0; i < LINE; i++)
            settled[i] = along_y[i * 2];
    }
}

/* Returns the settled voxels of the tile's first or last column. */
__device__ static __forceinline__ uint32_t
end_column(const struct edge_lines &own, const uint32_t settled[LINE])
{
    const uint32_t end = own.half ? 31 : 0;
    uint32_t bits = 0;

#pragma unroll
    for (uint32_t i = 0; i < LINE; i++)
        bits |= (settled[i] >> end & 1) << i;
    return bits;
}

/* Returns one bit per face: an edge leads to a voxel that was not settled. */
__device__ static __forceinline__ uint32_t
faces_crossed(const struct edge_visit *visit, const struct edge_lines &own, const uint32_t settled[LINE])
{
    const uint32_t end = own.from != 0 ? LINE - 1 : 0;
    const uint32_t *along_z = &visit->settled[own.from * PITCH + own.across * 2 + own.half];
    uint32_t x = end_column(own, settled) & own.across_x & ~own.beyond_x;
    uint32_t y = own.from != 0 ? settled[LINE - 1] & own.y[LINE - 1] : settled[0] & own.before_y;
    uint32_t z = along_z[end * PITCH] & (own.from != 0 ? own.z[LINE - 1] : own.before_z);

    return (x != 0 ? 1u : 0u) << own.half | ((y & ~own.beyond_y) != 0 ? 4u : 0u) << own.from / LINE |
           ((z & ~own.beyond_z) != 0 ? 16u : 0u) << own.from / LINE;
}

__device__ static void
cuda_edge_flood_visit_tile(const struct edge_flood_volume &volume, struct edge_visit *visit)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t settled[LINE], arrived, sends;
    struct edge_lines own;

    cuda_edge_flood_begin_visit(volume, visit);
    own.half = lane % 2;
    own.across = lane / 2 + 16 * (warp / 2);
    own.from = warp % 2 * LINE;
    uint32_t *along_y = &visit->settled[own.across * PITCH + own.from * 2 + own.half];
#pragma unroll
    for (uint32_t i = 0; i < LINE; i++)
        settled[i] = __ldcg(&volume.settled[(size_t)visit->tile * EDGE_TILE_HALVES + threadIdx.x + i * THREADS]);
    /* Read the settled bits beyond the ends of the lines. */
    const uint32_t *neighbour = visit->neighbour, far = own.from != 0 ? 0 : EDGE_TILE_ROWS - 1;

    own.beyond_x = word_of(volume.border, neighbour[own.half], 2 * EDGE_TILE_SIDE,
                           (own.half ^ 1) * EDGE_TILE_SIDE + edge_flood_side(own.across, own.from));
    own.beyond_y = word_of(volume.settled, neighbour[own.from != 0 ? 3 : 2], EDGE_TILE_HALVES,
                           edge_flood_place(own.across, far, own.half));
    own.beyond_z = word_of(volume.settled, neighbour[own.from != 0 ? 5 : 4], EDGE_TILE_HALVES,
                           edge_flood_place(far, own.across, own.half));
    load_edges(volume, visit, &own);
    arrived = own.beyond_x & own.across_x;
#pragma unroll
    for (uint32_t i = 0; i < LINE; i++) {
        uint32_t now = settled[i] | (arrived >> i & 1) << (own.half ? 31 : 0);

        along_y[i * 2] = settled[i];
        settled[i] = now;
    }
    /* The first sweep writes voxels settled across x, which count as a change. */
    __syncthreads();
    if (!cuda_edge_flood_settle(own, visit, settled) && !(visit->state & INITIAL))
        return;
    const size_t base = (size_t)visit->tile * EDGE_TILE_HALVES + threadIdx.x;

#pragma unroll
    for (uint32_t i = 0; i < LINE; i++)
        volume.settled[base + i * THREADS] = settled[i];
    volume.border[((size_t)visit->tile * 2 + own.half) * EDGE_TILE_SIDE + edge_flood_side(own.across, own.from)] =
        (uint16_t)end_column(own, settled);
    sends = __reduce_or_sync(~0u, faces_crossed(visit, own, settled));
    if (lane == 0 && sends != 0)
        atomicOr(&visit->sends, sends);
}

/* Queues the neighbours that must be visited, and releases the tile. Returns the block's next tile
 * or NOTHING, the same in all lanes. Called by the first warp. */
__device__ static uint32_t
end_visit(const struct edge_flood_volume &volume, const struct edge_visit *visit)
{
    const uint32_t lane = threadIdx.x;
    uint32_t wakes = NOTHING, ticket = 0;

    __threadfence();
    if (lane < FACES && visit->sends >> lane & 1) {
        uint32_t tile = visit->neighbour[lane];

        if (!(atomicOr(&volume.state[tile], HELD | DIRTY) & HELD))
            wakes = tile;
    } else if (lane == FACES) {
        if (atomicCAS(&volume.state[visit->tile], HELD, 0) != HELD)
            wakes = visit->tile;
    }
    /* This block continues with the last one, or with the tile itself if it must be visited again. */
    const uint32_t awake = __ballot_sync(~0u, wakes != NOTHING);
    const uint32_t count = (uint32_t)__popc(awake);
    const uint32_t rank = (uint32_t)__popc(awake & ((1u << lane) - 1));
    const uint32_t next = __shfl_sync(~0u, wakes, count ? 31 - __clz((int)awake) : 0);

    /* Tiles must be counted before another block can take them. */
    if (count != 1)
        count_tiles(volume, (int32_t)count - 1);
    if (count > 1) {
        if (lane == 0) {
            ticket = atomicAdd(&volume.counts->tail, count - 1);
            __threadfence();
        }
        ticket = __shfl_sync(~0u, ticket, 0);
        uint32_t *place = &volume.queue[(ticket + rank) & volume.queue_mask];

        /* If the flood was stopped, the owner of the place may have left. */
        if (wakes != NOTHING && rank + 1 < count)
            while (atomicCAS(place, 0, wakes + 1) != 0 && !cuda_edge_flood_look(&volume.counts->stopped))
                ;
    }
    return next;
}

static __global__ void
__launch_bounds__(THREADS, BLOCKS_PER_PROCESSOR)
    cuda_edge_flood_flood(const __grid_constant__ struct edge_flood_volume volume, int64_t budget)
{
    __shared__ struct edge_visit visit;
    const int64_t deadline = clock64() + budget;
    uint32_t next = NOTHING;

    for (;;) {
        if (threadIdx.x == 0)
            visit.tile = next != NOTHING ? next : cuda_edge_flood_pop(volume, deadline);
        __syncthreads();
        if (visit.tile == NOTHING)
            return;
        cuda_edge_flood_visit_tile(volume, &visit);
        __syncthreads();
        if (threadIdx.x >= 32)
            continue;
        next = end_visit(volume, &visit);
        if (clock64() > deadline)
            next = NOTHING; /* as pop returns, too */
    }
}

/* Each block handles the slices of one sector, in a row of tiles. */
static __global__ void
__launch_bounds__(WRITE_THREADS) write_bits(const __grid_constant__ struct edge_flood_volume volume,
                                            unsigned long long *bits, unsigned long long *count)
{
    const uint32_t parts = EDGE_TILE_ROWS / WRITE_SLICES;
    const uint32_t column = blockIdx.x / parts, words = volume.tiles[0];
    const uint32_t first_slice = blockIdx.x % parts * WRITE_SLICES;
    const int64_t y0 = (int64_t)(column % volume.tiles[1]) * EDGE_TILE_ROWS;
    const int64_t z0 = (int64_t)(column / volume.tiles[1]) * EDGE_TILE_ROWS;
    uint32_t voxels = 0;

    if (cuda_edge_flood_look(&volume.counts->stopped))
        return;
    for (uint32_t i = threadIdx.x; i < words * EDGE_TILE_ROWS * WRITE_SLICES; i += WRITE_THREADS) {
        uint32_t row = i / words % EDGE_TILE_ROWS;
        uint32_t slice = first_slice + i / words / EDGE_TILE_ROWS;
        size_t tile = (size_t)column * words + i % words;

        if (y0 + row >= volume.size[1] || z0 + slice >= volume.size[2])
            continue;
        uint2 word = *(const uint2 *)&volume.settled[tile * EDGE_TILE_HALVES + edge_flood_place(slice, row, 0)];
        bits[((z0 + slice) * volume.size[1] + y0 + row) * words + i % words] =
            (unsigned long long)word.y << 32 | word.x;
        voxels += (uint32_t)(__popc(word.x) + __popc(word.y));
    }
    voxels = __reduce_add_sync(~0u, voxels);
    if (threadIdx.x % 32 == 0 && voxels != 0)
        atomicAdd(count, (unsigned long long)voxels);
}

bool
edge_flood_measure(struct image_extent extent, struct edge_flood_volume *volume)
{
    const int64_t side[3] = {EDGE_TILE_COLUMNS, EDGE_TILE_ROWS, EDGE_TILE_ROWS};
    const int64_t size[3] = {extent.columns, extent.rows, extent.slices};
    uint64_t tiles = 1, places = 1;

    for (int axis = 0; axis < 3; axis++) {
        volume->size[axis] = size[axis];
        volume->tiles[axis] = (uint32_t)((size[axis] + side[axis] - 1) / side[axis]);
        tiles *= volume->tiles[axis];
    }
    /* Seeds are 32-bit numbers. */
    if (tiles * EDGE_TILE_HALVES * 32 > UINT32_MAX)
        return false;
    volume->tile_count = (uint32_t)tiles;
    /* Room for all tiles, and for one END per block running at once on any GPU. */
    while (places < tiles + 4096)
        places *= 2;
    volume->queue_mask = (uint32_t)places - 1;
    return true;
}

void
edge_flood_place_volume(struct edge_flood_volume *volume, struct kernels_arena *arena)
{
    const size_t tiles = volume->tile_count;
    size_t zeros;

    for (uint32_t *&edge : volume->edge)
        cuda_take(arena, &edge, tiles * EDGE_TILE_HALVES);
    cuda_take(arena, &volume->settled, tiles * EDGE_TILE_HALVES);
    cuda_take(arena, &volume->west, tiles * EDGE_TILE_SIDE);
    zeros = arena->used;
    cuda_take(arena, &volume->border, tiles * EDGE_TILE_SIDE * 2);
    cuda_take(arena, &volume->state, tiles);
    cuda_take(arena, &volume->queue, (size_t)volume->queue_mask + 1);
    cuda_take(arena, &volume->counts, 1);
    volume->zeros = arena->used - zeros;
}

cudaError_t
edge_flood_seed(const struct edge_flood_volume *volume, const uint32_t *seeds, uint32_t count, cudaStream_t stream)
{
    cuda_edge_flood_settle_seeds<<<(count + 255) / 256, 256, 0, stream>>>(*volume, seeds, count);
    return CUDA_OF(cudaGetLastError());
}

cudaError_t
edge_flood_run(const struct edge_flood_volume *volume, int multiprocessors, cudaStream_t stream)
{
    cuda_edge_flood_flood<<<(unsigned)multiprocessors * BLOCKS_PER_PROCESSOR, THREADS, 0, stream>>>(
        *volume, BUDGET + BUDGET_PER_TILE * volume->tile_count);
    return CUDA_OF(cudaGetLastError());
}

cudaError_t
edge_flood_write(const struct edge_flood_volume *volume, unsigned long long *bits, unsigned long long *count,
                 cudaStream_t stream)
{
    const unsigned parts = EDGE_TILE_ROWS / WRITE_SLICES;

    write_bits<<<volume->tiles[1] * volume->tiles[2] * parts, WRITE_THREADS, 0, stream>>>(*volume, bits, count);
    return CUDA_OF(cudaGetLastError());
}
