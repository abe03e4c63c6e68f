/*
 * level_set_flood.cu - stage 2 of Trapani 2018 on CUDA: the flood over tiles described in
 * level_set_cuda.cuh.
 *
 * A visit reads the tile's bits of R and of the region, which determine the settled voxels, and
 * adds arrived bits. It settles both classes as in level_set_tile.cuh, and notifies the neighbours
 * before it writes the region.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/level_set/level_set_launch.cuh"
#include "kernels/level_set/level_set_tile.cuh"

enum {
    BLOCKS_PER_PROCESSOR = 3,
    PATIENCE = 3, /* a block that has waited for this part of the budget stops the flood */
};

/* Flags in a visit's `sends`, besides the faces. */
static const uint32_t LATE = 1u << 30; /* a voxel has settled in this visit */
static const uint32_t LEFT = 1u << 31; /* not every voxel has settled */
static const uint32_t NOTHING = UINT32_MAX;
static const uint32_t END = UINT32_MAX; /* marks a place of the queue: no more tiles */

__device__ static __forceinline__ uint32_t
level_set_flood_look(const uint32_t *word)
{
    return *(const volatile uint32_t *)word;
}

/* Limits of the flood's time, and of the block's idle time. */
struct limits {
    int64_t deadline; /* on the processor's clock; 0: never */
    int64_t patience; /* remaining cycles that the block may wait */
};

/* Takes a tile off the queue, or returns NOTHING at the end. A ticket is a place of the queue,
 * which has more places than blocks can wait at. */
__device__ static uint32_t
level_set_flood_pop(const struct level_set_job &job, struct limits *limits)
{
    uint32_t *place = &job.queue[atomicAdd(&job.counts->head, 1) & job.queue_mask];
    const int64_t begun = clock64(), until = min(limits->deadline, begun + limits->patience);

    for (uint32_t looks = 1;; looks++) {
        uint32_t taken = level_set_flood_look(place);

        if (taken) {
            *(volatile uint32_t *)place = 0; /* this thread owns the ticket */
            limits->patience -= clock64() - begun;
            return taken == END ? NOTHING : taken - 1;
        }
        if (limits->deadline &&
            (clock64() > until || (looks % 16 == 0 && level_set_flood_look(&job.counts->stopped)))) {
            job.counts->stopped = 1;
            return NOTHING;
        }
    }
}

__device__ static __forceinline__ void
level_set_flood_put(const struct level_set_job &job, uint32_t ticket, uint32_t content)
{
    while (atomicCAS(&job.queue[ticket & job.queue_mask], 0, content) != 0)
        ;
}

/*
 * Subtracts one from the outstanding tiles. When none are left and the first block runs (which
 * counts as one), puts END for each block and restores the counts from before the flood. Called by
 * a warp.
 */
__device__ static void
count_tile(const struct level_set_job &job)
{
    uint32_t ticket = 0;
    bool last = false;

    if (threadIdx.x == 0) {
        last = atomicSub(&job.counts->outstanding, 1) == 0;
        if (last) {
            job.counts->outstanding = 0;
            ticket = atomicAdd(&job.counts->tail, gridDim.x);
        }
    }
    if (!__shfl_sync(~0u, last, 0))
        return;
    ticket = __shfl_sync(~0u, ticket, 0);
    /* The queue has no tiles, so these places are empty. */
    for (uint32_t i = threadIdx.x; i < gridDim.x; i += 32)
        *(volatile uint32_t *)&job.queue[(ticket + i) & job.queue_mask] = END;
}

/* Position of the thread's words of the tile in the region: a row in every eighth slice. */
struct region_rows {
    uint64_t *first;
    int64_t step;
    int32_t slices; /* number from the first one's on; 0 if the row does not exist */
};

enum { WORDS = TILE_WORDS / THREADS, SLICES_APART = THREADS / TILE_ROWS };

__device__ static __forceinline__ struct region_rows
region_rows_of(const struct level_set_job &job, const struct level_set_place &place)
{
    const int64_t y = (int64_t)place.y * TILE_ROWS + threadIdx.x % TILE_ROWS;
    const int64_t z = (int64_t)place.z * TILE_SLICES + threadIdx.x / TILE_ROWS;

    return {job.inside + place.label * job.words + (z * job.rows + y) * job.words_per_row + place.x,
            SLICES_APART * job.rows * job.words_per_row,
            y < job.rows ? (int32_t)min(job.slices - z, (int64_t)TILE_SLICES) : 0};
}

/* Returns the place of the thread's word i in shared memory. */
__device__ static __forceinline__ uint32_t
word_at(uint32_t i)
{
    return half_at(threadIdx.x / TILE_ROWS + i * SLICES_APART, threadIdx.x % TILE_ROWS, 0);
}

/* Loads the region to the place of settled voxels. Other blocks write it, so that reads bypass the
 * L1 cache. */
__device__ static __forceinline__ void
load_region(const struct region_rows &rows, struct visit *visit)
{
    uint64_t words[WORDS];

#pragma unroll
    for (int i = 0; i < WORDS; i++)
        words[i] = i * SLICES_APART < rows.slices ? __ldcg(&rows.first[i * rows.step]) : 0;
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        *(uint64_t *)&visit->settled[word_at((uint32_t)i)] = words[i];
}

/* Writes R where settled, otherwise not R. */
__device__ static __forceinline__ void
write_region(const struct region_rows &rows, uint64_t exist, const struct visit *visit)
{
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        const uint64_t range = *(const uint64_t *)&visit->range[word_at((uint32_t)i)];
        const uint64_t settled = *(const uint64_t *)&visit->settled[word_at((uint32_t)i)];

        if (i * SLICES_APART < rows.slices)
            rows.first[i * rows.step] = ~(range ^ settled) & exist;
    }
}

/* Bits of one class that arrived across the faces, for the thread's line along y. */
struct arrival {
    uint32_t x, y;
    uint32_t z[LINE];
};

__device__ static __forceinline__ struct arrival
load_inbox(const struct level_set_job &job, const struct visitor &own, const struct visit *visit, uint32_t value)
{
    const uint32_t pending = visit->state >> value;
    const uint32_t *inbox = job.inbox + (size_t)visit->tile * INBOX_WORDS + value * FACE_WORDS;
    const uint32_t y_face = own.part == 0 ? 2 : 3, z_face = own.across == 0 ? 4 : 5;
    const bool y_end = own.part == 0 || own.part == PARTS - 1;
    const bool z_end = own.across == 0 || own.across == TILE_SLICES - 1;
    struct arrival arrival = {};

    if (pending >> 2 * own.half & 1)
        arrival.x = __ldcg((const uint8_t *)(inbox + own.half * 2 * FACE_WORDS) + own.across * PARTS + own.part);
    if (y_end && pending >> 2 * y_face & 1)
        arrival.y = __ldcg(&inbox[y_face * 2 * FACE_WORDS + own.across * 2 + own.half]);
    if (z_end && pending >> 2 * z_face & 1)
#pragma unroll
        for (uint32_t i = 0; i < LINE; i++)
            arrival.z[i] = __ldcg(&inbox[z_face * 2 * FACE_WORDS + (own.part * LINE + i) * 2 + own.half]);
    return arrival;
}

/* Returns its part in half i. */
__device__ static __forceinline__ uint32_t
arrived_at(const struct visitor &own, const struct arrival &arrival, int i)
{
    uint32_t come = (arrival.x >> i & 1) << (own.half ? 31 : 0) | arrival.z[i];

    if ((i == 0 && own.part == 0) || (i == LINE - 1 && own.part == PARTS - 1))
        come |= arrival.y;
    return come;
}

/* Returns the settled bits of the thread's line at the beginning of the visit, without and with
 * arrived bits, and adds to the thread's traits. */
__device__ static __forceinline__ uint32_t
begin_line(struct visitor *own, const struct visit *visit, bool has_region, const struct arrival &out,
           const struct arrival &in, uint32_t before[LINE], uint32_t settled[LINE])
{
    const uint32_t at = along_y_at(*own), all = visit->kind ? ~0u : 0;
    uint32_t traits = 0;

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        const uint32_t exist = existing(*own, i);
        const uint32_t range = visit->range[at + 2 * (uint32_t)i] & exist;
        const uint32_t region = has_region ? visit->settled[at + 2 * (uint32_t)i] : all;
        const uint32_t come = ((range & arrived_at(*own, in, i)) | (~range & arrived_at(*own, out, i))) & exist;

        own->range[i] = range;
        before[i] = ~(range ^ region) & exist;
        settled[i] = before[i] | come;
        traits |= (range ? TRAIT_IN : 0) | (exist & ~range ? TRAIT_OUT : 0) | (settled[i] ? TRAIT_SETTLED : 0) |
                  (exist & ~settled[i] ? TRAIT_OPEN : 0) | (come & ~before[i] ? TRAIT_ARRIVED : 0);
    }
    return traits;
}

__device__ static __forceinline__ void
level_set_flood_put_line(const struct visitor &own, struct visit *visit, const uint32_t settled[LINE])
{
    const uint32_t at = along_y_at(own);

#pragma unroll
    for (int i = 0; i < LINE; i++)
        visit->settled[at + 2 * (uint32_t)i] = settled[i];
}

/* Returns the neighbour's plane for bits across this face. */
__device__ static __forceinline__ uint32_t *
inbox_beyond(const struct level_set_job &job, const struct visit *visit, uint32_t face, uint32_t value)
{
    return job.inbox + (size_t)visit->neighbour[face] * INBOX_WORDS + ((face ^ 1) * 2 + value) * FACE_WORDS;
}

/* Writes a word of each plane along y and z: all settled voxels of the class. */
__device__ static __forceinline__ void
fill_inboxes(const struct level_set_job &job, const struct visit *visit)
{
    const uint32_t word = threadIdx.x % FACE_WORDS, value = threadIdx.x / FACE_WORDS % 2;
    const uint32_t end = threadIdx.x / (2 * FACE_WORDS), far = end * (TILE_ROWS - 1);

#pragma unroll
    for (uint32_t axis = 1; axis < 3; axis++) {
        const uint32_t face = 2 * axis + end;
        const uint32_t at = axis == 1 ? half_at(word / 2, far, word % 2) : half_at(far, word / 2, word % 2);

        if (visit->wanted >> (2 * face + value) & 1)
            inbox_beyond(job, visit, face, value)[word] =
                visit->settled[at] & (value ? visit->range[at] : ~visit->range[at]);
    }
}

/* Returns two bits: whether any of these voxels is out of range, and in range. */
__device__ static __forceinline__ uint32_t
classes_of(uint32_t voxels, uint32_t range)
{
    return (uint32_t)((voxels & ~range) != 0) | (uint32_t)((voxels & range) != 0) << 1;
}

/* After a thread's line has settled: collects the bits that cross faces, and the traits at the
 * visit's end. */
__device__ static __forceinline__ uint32_t
end_line(const struct level_set_job &job, struct visitor *own, const struct visit *visit, bool begins,
         const uint32_t before[LINE], const uint32_t settled[LINE])
{
    const uint32_t side = inner_edge(settled, !own->half), side_range = inner_edge(own->range, !own->half);
    const uint32_t at = own->across * PARTS + own->part;
    uint32_t fresh[LINE], any = 0, any_out = 0, any_in = 0, sends = 0;

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        fresh[i] = settled[i] & ~before[i];
        own->grown += 2 * __popc(fresh[i] & own->range[i]) - __popc(fresh[i]);
        any |= fresh[i];
        if (begins)
            fresh[i] = settled[i];
        any_out |= fresh[i] & ~own->range[i];
        any_in |= fresh[i] & own->range[i];
    }
    /* Fill the inboxes along x, where each thread has eight bits. */
    if (visit->wanted >> 2 * own->half & 1)
        ((uint8_t *)inbox_beyond(job, visit, own->half, 0))[at] = (uint8_t)(side & ~side_range);
    if (visit->wanted >> 2 * own->half & 2)
        ((uint8_t *)inbox_beyond(job, visit, own->half, 1))[at] = (uint8_t)(side & side_range);
    sends |= classes_of(inner_edge(fresh, !own->half), side_range) << 2 * own->half;
    if (own->part == 0)
        sends |= classes_of(fresh[0], own->range[0]) << 4;
    if (own->part == PARTS - 1)
        sends |= classes_of(fresh[LINE - 1], own->range[LINE - 1]) << 6;
    if (own->across == 0 || own->across == TILE_SLICES - 1)
        sends |= ((uint32_t)(any_out != 0) | (uint32_t)(any_in != 0) << 1) << (own->across ? 10 : 8);
    return (any ? LATE : 0) | (all_exist(*own, settled) ? 0 : LEFT) | (sends & visit->wanted);
}

/*
 * Notifies the neighbours and queues those to visit. Returns one of these tiles for this block, or NOTHING; the same in
 * all lanes. If it returns one, the current tile is no longer outstanding. Called by the first warp.
 */
__device__ static uint32_t
tell_neighbours(const struct level_set_job &job, const struct visit *visit)
{
    const uint32_t lane = threadIdx.x;
    uint32_t wakes = NOTHING, ticket = 0;

    if (!(visit->sends & STATE_PENDING))
        return NOTHING;
    ptx_fence();
    if (lane < FACES && visit->sends >> 2 * lane & 3) {
        uint32_t tile = visit->neighbour[lane], z = tile / (job.tiles_x * job.tiles_y) % job.tiles_z;
        uint32_t bits = (visit->sends >> 2 * lane & 3) << 2 * (lane ^ 1);

        if (job.layer[z])
            bits |= STATE_QUEUED;
        uint32_t old = atomicOr(&job.state[tile], bits);

        if (!(old & (STATE_QUEUED | STATE_CLOSED)) && bits & STATE_QUEUED)
            wakes = tile;
    }
    const uint32_t awake = __ballot_sync(~0u, wakes != NOTHING);
    const uint32_t count = (uint32_t)__popc(awake);
    const uint32_t rank = (uint32_t)__popc(awake & ((1u << lane) - 1));

    if (count > 1) {
        /* Tiles must be counted before another block can take them. */
        if (lane < 2) {
            ticket = atomicAdd(lane ? &job.counts->tail : &job.counts->outstanding, count - 1);
            ptx_fence();
        }
        ticket = __shfl_sync(~0u, ticket, 1);
        if (wakes != NOTHING && rank + 1 < count)
            level_set_flood_put(job, ticket + rank, wakes + 1);
    }
    return __shfl_sync(~0u, wakes, count ? 31 - __clz((int)awake) : 0);
}

/* Releases the tile. Bits that arrived meanwhile cause another visit. Returns the block's next
 * tile, `next` if there is one. Called by the first warp. */
__device__ static uint32_t
let_go(const struct level_set_job &job, const struct visit *visit, uint32_t next)
{
    const uint32_t held = visit->state & ~(uint32_t)(STATE_PENDING | STATE_INITIAL);
    const uint32_t gains = STATE_VISITED | (visit->sends & LEFT ? 0 : STATE_CLOSED);
    uint32_t *state = &job.state[visit->tile];
    bool again = false;

    if (threadIdx.x == 0) {
        ptx_fence();
        if (atomicCAS(state, held, (held | gains) & ~(uint32_t)STATE_QUEUED) != held) {
            atomicOr(state, gains);
            again = !(gains & STATE_CLOSED);
        }
        if (again && next != NOTHING) {
            atomicAdd(&job.counts->outstanding, 1);
            uint32_t ticket = atomicAdd(&job.counts->tail, 1);
            ptx_fence();
            level_set_flood_put(job, ticket, visit->tile + 1);
        }
    }
    again = __shfl_sync(~0u, again, 0);
    if (next == NOTHING && again)
        return visit->tile;
    if (next == NOTHING)
        count_tile(job);
    return next;
}

__device__ static __forceinline__ uint32_t
level_set_flood_neighbour_of(const struct level_set_job &job, const struct level_set_place &place, uint32_t tile,
                             uint32_t face)
{
    const uint32_t axis = face / 2;
    const uint32_t step = axis == 0 ? 1 : axis == 1 ? job.tiles_x : job.tiles_x * job.tiles_y;
    const uint32_t at = axis == 0 ? place.x : axis == 1 ? place.y : place.z;
    const uint32_t size = axis == 0 ? job.tiles_x : axis == 1 ? job.tiles_y : job.tiles_z;

    if (face % 2 == 0)
        return at > 0 ? tile - step : NOTHING;
    return at + 1 < size ? tile + step : NOTHING;
}

/* Reads and clears new arrivals. Later ones cause another visit. */
__device__ static __forceinline__ void
level_set_flood_begin_visit(const struct level_set_job &job, struct visit *visit, const struct level_set_place &place)
{
    const uint32_t tile = visit->tile, face = threadIdx.x - 32;
    uint32_t wanted = 0;

    if (threadIdx.x == 0) {
        visit->state = ptx_and_acquire(&job.state[tile], ~(uint32_t)(STATE_PENDING | STATE_INITIAL));
        visit->sends = 0;
        visit->traits = 0;
    } else if (face < FACES) {
        const uint32_t other = level_set_flood_neighbour_of(job, place, tile, face);

        visit->neighbour[face] = other;
        if (other != NOTHING) {
            /* If a neighbour is uniformly of a class, it has settled there from the beginning. */
            const uint32_t kind = job.kind[other];

            wanted = level_set_flood_look(&job.state[other]) & STATE_CLOSED ? 0 : 3 & ~(kind < 2 ? 1u << kind : 0);
        }
    } else if (threadIdx.x == 64) {
        visit->kind = job.kind[tile];
    } else if (threadIdx.x == 96) {
        visit->stopped = level_set_flood_look(&job.counts->stopped);
    }
    if (threadIdx.x / 32 == 1) {
        wanted = __reduce_or_sync(~0u, wanted << 2 * (face % 8));
        if (face == 0)
            visit->wanted = wanted;
    }
    __syncthreads();
}

/* Begins to copy the range bits of the tile to the visit's mask. */
__device__ static __forceinline__ void
send_for_range(const struct level_set_job &job, struct visit *visit)
{
    const uint64_t *range = job.range + (size_t)visit->tile * TILE_WORDS;

#pragma unroll
    for (uint32_t i = 0; i < TILE_WORDS / THREADS; i++) {
        uint32_t word = threadIdx.x + i * THREADS;

        ptx_copy<8>(&visit->range[half_at(word / TILE_ROWS, word % TILE_ROWS, 0)], &range[word], true);
    }
    ptx_copies_end_group();
}

__device__ static void
level_set_flood_visit_tile(const struct level_set_job &job, struct visit *visit, const struct level_set_place &place)
{
    uint32_t before[LINE], settled[LINE];

    send_for_range(job, visit);
    struct visitor own = visitor_of(job, place);
    level_set_flood_begin_visit(job, visit, place);
    const bool first = !(visit->state & STATE_VISITED);
    const bool mixed = visit->kind == TILE_MIXED, has_region = mixed || !first;
    const struct arrival out = load_inbox(job, own, visit, 0);
    const struct arrival in = load_inbox(job, own, visit, 1);
    if (has_region)
        load_region(region_rows_of(job, place), visit);
    ptx_copies_wait<0>();
    __syncthreads();
    uint32_t traits = begin_line(&own, visit, has_region, out, in, before, settled);
    level_set_flood_put_line(own, visit, settled);
    traits = __reduce_or_sync(~0u, traits);
    if (threadIdx.x % 32 == 0)
        atomicOr(&visit->traits, traits);
    __syncthreads();
    traits = visit->traits;
    if (traits & TRAIT_OPEN && (traits & TRAIT_ARRIVED || (first && mixed))) {
        const uint32_t classes = traits & (TRAIT_IN | TRAIT_OUT);

        if (classes == (TRAIT_IN | TRAIT_OUT)) {
            settle(own, visit, settled);
        } else if (traits & TRAIT_SETTLED) {
#pragma unroll
            for (int i = 0; i < LINE; i++)
                settled[i] = existing(own, i);
            level_set_flood_put_line(own, visit, settled);
            __syncthreads();
        }
    }
    fill_inboxes(job, visit);
    uint32_t sends = end_line(job, &own, visit, first && visit->state & STATE_INITIAL, before, settled);
    sends = __reduce_or_sync(~0u, sends);
    const int32_t voxels = __reduce_add_sync(~0u, own.grown);
    if (threadIdx.x % 32 == 0 && sends)
        atomicOr(&visit->sends, sends);
    if (threadIdx.x % 32 == 0 && voxels)
        atomicAdd((unsigned long long *)&job.voxels_in[own.place.label], (unsigned long long)(long long)voxels);
}

static __global__ void
__launch_bounds__(THREADS, BLOCKS_PER_PROCESSOR) flood(const __grid_constant__ struct level_set_job job, int64_t budget)
{
    __shared__ struct visit visit;
    struct limits limits = {budget ? clock64() + budget : 0, budget / PATIENCE};
    uint32_t next = NOTHING;

    ptx_wait_for_last();
    if (level_set_flood_look(&job.counts->stopped))
        return;
    if (blockIdx.x == 0 && threadIdx.x < 32)
        count_tile(job);
    for (;;) {
        if (threadIdx.x == 0)
            visit.tile = next != NOTHING ? next : level_set_flood_pop(job, &limits);
        __syncthreads();
        if (visit.tile == NOTHING)
            return;
        const struct level_set_place place = level_set_place_of(job, visit.tile);
        level_set_flood_visit_tile(job, &visit, place);
        __syncthreads();
        /* Neighbours may begin while the region is written. */
        if (threadIdx.x < 32)
            next = tell_neighbours(job, &visit);
        if (visit.sends & LATE)
            write_region(region_rows_of(job, place), level_set_columns(job, place.x), &visit);
        __syncthreads();
        if (threadIdx.x >= 32)
            continue;
        next = let_go(job, &visit, next);
        if (limits.deadline && (visit.stopped || clock64() > limits.deadline)) {
            next = NOTHING;
            limits.patience = 0;
        }
    }
}

/*
 * With few tiles, a multiprocessor runs one block: a second one would only compete with it while other multiprocessors
 * are idle. Dynamic shared memory that the block does not use enforces this.
 */
enum { FEW_TILES = 8 /* per multiprocessor */, ALONE = 144 << 10 /* bytes */ };

cudaError_t
level_set_blocks(int *blocks)
{
    int device, processors, most, each;
    cudaError_t error = cudaGetDevice(&device);

    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess && ALONE + sizeof(struct visit) <= (size_t)most)
        error = CUDA_OF(cudaFuncSetAttribute(flood, cudaFuncAttributeMaxDynamicSharedMemorySize, ALONE));
    if (error == cudaSuccess)
        error = CUDA_OF(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, flood, THREADS, 0));
    if (error == cudaSuccess)
        *blocks = processors * each;
    return error;
}

cudaError_t
level_set_flood(const struct level_set_job *job, int blocks, int64_t budget, cudaStream_t stream)
{
    const int processors = blocks / BLOCKS_PER_PROCESSOR;
    struct cudaFuncAttributes attributes;
    cudaError_t error = CUDA_OF(cudaFuncGetAttributes(&attributes, flood));

    if (error != cudaSuccess)
        return error;
    if (attributes.maxDynamicSharedSizeBytes >= ALONE &&
        (int64_t)job->tiles * job->labels <= (int64_t)processors * FEW_TILES)
        launch_early(flood, (unsigned)processors, THREADS, ALONE, stream, *job, budget);
    else
        launch_early(flood, (unsigned)blocks, THREADS, 0, stream, *job, budget);
    return cudaSuccess;
}
