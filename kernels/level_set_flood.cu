/*
 * level_set_flood.cu - stage 2 of paper 001 on CUDA: the flood over tiles. What it is stands in
 * level_set_cuda.cuh.
 *
 * A visit takes one class of R at a time (both only where the tile is partly in the initial
 * region), and lets it settle as level_set_tile.cuh says.
 */
#include "cuda.cuh"
#include "level_set_launch.cuh"
#include "level_set_threshold.cuh"
#include "level_set_tile.cuh"

enum {
    BLOCKS_A_PROCESSOR = 3,
    BLOCKS_LAZILY = 2,
    PATIENCE = 3, /* a block that has waited for this part of the budget stops the flood */
};

static const uint32_t OPEN = 1u << 31; /* not every voxel is known to have settled */
static const uint32_t NOTHING = UINT32_MAX;
static const uint32_t END = UINT32_MAX; /* in a place of the queue: there will be no more */

__device__ static __forceinline__ uint32_t
look(const uint32_t *word)
{
    return *(const volatile uint32_t *)word;
}

/* When the flood is given up: all of it takes too long, or the block has next to nothing to do. */
struct limits {
    int64_t deadline; /* of the processor's clock; 0: never */
    int64_t patience; /* cycles that the block may wait yet */
};

/*
 * A tile off the queue, or NOTHING when there will be none. A ticket names a place, and there are
 * more places than blocks can wait at.
 */
__device__ static uint32_t
pop(const struct level_set_job &job, struct limits *limits)
{
    uint32_t *place = &job.queue[atomicAdd(&job.counts->head, 1) & job.queue_mask];
    const int64_t begun = clock64(), until = min(limits->deadline, begun + limits->patience);

    for (uint32_t looks = 1;; looks++) {
        uint32_t taken = look(place);

        if (taken) {
            *(volatile uint32_t *)place = 0; /* nobody else has this ticket */
            limits->patience -= clock64() - begun;
            return taken == END ? NOTHING : taken - 1;
        }
        if (limits->deadline &&
            (clock64() > until || (looks % 16 == 0 && look(&job.counts->stopped)))) {
            job.counts->stopped = 1;
            return NOTHING;
        }
    }
}

__device__ static __forceinline__ void
put(const struct level_set_job &job, uint32_t ticket, uint32_t content)
{
    while (atomicCAS(&job.queue[ticket & job.queue_mask], 0, content) != 0)
        ;
}

/*
 * A warp: one tile less is outstanding. When none is left, and the first block has said that it
 * runs (which counts as one), each block is sent home, and the counts are as before the flood.
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
    /* There is no tile in the queue, so these places are empty. */
    for (uint32_t i = threadIdx.x; i < gridDim.x; i += 32)
        *(volatile uint32_t *)&job.queue[(ticket + i) & job.queue_mask] = END;
}

/* The place of the thread's line along y in the region, in halves of words, and the step. */
__device__ static __forceinline__ uint32_t *
region_line(const struct level_set_job &job, const struct visitor &own, int64_t *step)
{
    int64_t y = (int64_t)own.place.y * TILE_ROWS + own.part * LINE;
    int64_t z = (int64_t)own.place.z * TILE_SLICES + own.across;

    *step = 2 * job.words_per_row;
    return (uint32_t *)job.inside + own.half +
           2 * (own.place.label * job.words + (z * job.rows + y) * job.words_per_row + own.place.x);
}

/* The same in `grown`; the step is 2. */
__device__ static __forceinline__ uint32_t *
grown_line(const struct level_set_job &job, const struct visitor &own, uint32_t tile)
{
    return (uint32_t *)(job.grown + (size_t)tile * TILE_WORDS) +
           (own.across * TILE_ROWS + own.part * LINE) * 2 + own.half;
}

/* What was in the region at first, and what has settled since. All loads are in flight at once. */
__device__ static __forceinline__ void
load_past(const struct level_set_job &job, struct visitor *own, uint32_t tile)
{
    const uint32_t *grown = grown_line(job, *own, tile);
    int64_t step;
    const uint32_t *region = region_line(job, *own, &step);
    uint32_t now[LINE];

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        own->late[i] = own->first ? 0 : __ldcg(&grown[i * 2]);
        now[i] = own->kind == TILE_MIXED && existing(*own, i) ? __ldcg(&region[i * step]) : 0;
    }
#pragma unroll
    for (int i = 0; i < LINE; i++)
        own->initial[i] = own->kind == TILE_MIXED ? now[i] ^ own->late[i] : own->kind ? ~0u : 0;
}

/* What has arrived across the faces, for the thread's line along y. */
struct arrival {
    uint32_t x, y;
    uint32_t z[LINE];
};

__device__ static __forceinline__ struct arrival
load_inbox(const struct level_set_job &job, const struct visitor &own, const struct visit *visit,
           uint32_t value)
{
    const uint32_t pending = visit->state >> value;
    const uint32_t *inbox = job.inbox + (size_t)visit->tile * INBOX_WORDS + value * FACE_WORDS;
    const uint32_t y_face = own.part == 0 ? 2 : 3, z_face = own.across == 0 ? 4 : 5;
    const bool y_end = own.part == 0 || own.part == PARTS - 1;
    const bool z_end = own.across == 0 || own.across == TILE_SLICES - 1;
    struct arrival arrival = {};

    if (pending >> 2 * own.half & 1)
        arrival.x = __ldcg((const uint8_t *)(inbox + own.half * 2 * FACE_WORDS) +
                           own.across * PARTS + own.part);
    if (y_end && pending >> 2 * y_face & 1)
        arrival.y = __ldcg(&inbox[y_face * 2 * FACE_WORDS + own.across * 2 + own.half]);
    if (z_end && pending >> 2 * z_face & 1)
#pragma unroll
        for (uint32_t i = 0; i < LINE; i++)
            arrival.z[i] =
                __ldcg(&inbox[z_face * 2 * FACE_WORDS + (own.part * LINE + i) * 2 + own.half]);
    return arrival;
}

/* Returns whether anything new came in. */
__device__ static __forceinline__ bool
take_arrival(const struct visitor &own, const struct arrival &arrival, const uint32_t mask[LINE],
             uint32_t settled[LINE])
{
    uint32_t any = 0;

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        uint32_t come = (arrival.x >> i & 1) << (own.half ? 31 : 0) | arrival.z[i];

        if ((i == 0 && own.part == 0) || (i == LINE - 1 && own.part == PARTS - 1))
            come |= arrival.y;
        come &= mask[i] & ~settled[i];
        settled[i] |= come;
        any |= come;
    }
    return any != 0;
}

/* The region's words that have changed of a tile that is not mixed, and `grown` if it is needed. */
__device__ static __forceinline__ void
write_tile(const struct level_set_job &job, const struct visitor &own, const struct visit *visit,
           const uint32_t settled[LINE], const uint32_t fresh[LINE], bool keep)
{
    uint4 *grown = (uint4 *)(job.grown + (size_t)visit->tile * TILE_WORDS);
    int64_t step;
    uint32_t *region = region_line(job, own, &step);

#pragma unroll
    for (int i = 0; i < LINE; i++)
        if (fresh[i])
            region[i * step] = own.kind == 0 ? settled[i] : ~settled[i] & existing(own, i);
    for (uint32_t piece = threadIdx.x; keep && piece < PIECES; piece += THREADS) {
        const uint32_t *two = &visit->settled[piece_at(piece)];

        grown[piece] = make_uint4(two[0], two[1], two[2], two[3]);
    }
}

/* The same of a mixed tile, after both classes. */
__device__ static __forceinline__ void
write_mixed(const struct level_set_job &job, const struct visitor &own, uint32_t tile,
            uint32_t changed)
{
    uint32_t *grown = grown_line(job, own, tile);
    int64_t step;
    uint32_t *region = region_line(job, own, &step);

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        if (changed >> i & 1)
            region[i * step] = own.initial[i] ^ own.late[i];
        if (own.first || changed >> i & 1)
            grown[i * 2] = own.late[i];
    }
}

/* The plane of the neighbour's inbox, or NULL when nothing in it can concern the neighbour. */
__device__ static __forceinline__ uint32_t *
inbox_beyond(const struct level_set_job &job, const struct visit *visit, uint32_t face,
             uint32_t value)
{
    uint32_t tile = visit->neighbour[face], kind = visit->kinds[face];

    if (tile == NOTHING || kind == value)
        return NULL;
    return job.inbox + (size_t)tile * INBOX_WORDS + ((face ^ 1) * 2 + value) * FACE_WORDS;
}

/* Bit `face` of the result: something of `fresh` crosses it. Planes are written whole. */
__device__ static __forceinline__ uint32_t
fill_inboxes(const struct level_set_job &job, const struct visitor &own, const struct visit *visit,
             uint32_t value, const uint32_t settled[LINE], const uint32_t fresh[LINE])
{
    const uint32_t edge = own.half ? 31 : 0;
    uint32_t any = 0, bits = 0, crosses = 0, sends = 0;
    uint32_t *plane = inbox_beyond(job, visit, own.half, value);

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        any |= fresh[i];
        bits |= (settled[i] >> edge & 1) << i;
        crosses |= fresh[i] >> edge & 1;
    }
    if (plane) {
        ((uint8_t *)plane)[own.across * PARTS + own.part] = (uint8_t)bits;
        sends |= crosses << own.half;
    }
    if (own.part == 0 || own.part == PARTS - 1) {
        const uint32_t face = own.part ? 3 : 2;

        plane = inbox_beyond(job, visit, face, value);
        if (plane) {
            plane[own.across * 2 + own.half] = own.part ? settled[LINE - 1] : settled[0];
            sends |= (uint32_t)((own.part ? fresh[LINE - 1] : fresh[0]) != 0) << face;
        }
    }
    if (own.across == 0 || own.across == TILE_SLICES - 1) {
        const uint32_t face = own.across ? 5 : 4;

        plane = inbox_beyond(job, visit, face, value);
        if (plane) {
#pragma unroll
            for (uint32_t i = 0; i < LINE; i++)
                plane[(own.part * LINE + i) * 2 + own.half] = settled[i];
            sends |= (uint32_t)(any != 0) << face;
        }
    }
    return sends;
}

/* A class's mask and what of it has settled, along y, in shared memory too. `turn`: what makes the
 * mask of what is there. Returns what goes through the thread's part. */
__device__ static __forceinline__ uint32_t
load_class(const struct visitor &own, struct visit *visit, uint32_t value, uint32_t turn,
           uint32_t mask[LINE], uint32_t settled[LINE])
{
    const uint32_t at = along_y_at(own), flip = value ? 0 : ~0u;

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        mask[i] = (visit->mask[at + 2 * (uint32_t)i] ^ turn) & existing(own, i);
        settled[i] = mask[i] & ((own.initial[i] ^ flip) | own.late[i]);
        visit->mask[at + 2 * (uint32_t)i] = mask[i];
    }
    return all_of(mask);
}

/* One class of one tile. Returns which halves of the thread's line have changed. */
__device__ static uint32_t
visit_class(const struct level_set_job &job, struct visitor *own, struct visit *visit,
            uint32_t value, uint32_t turn)
{
    const uint32_t at = along_y_at(*own), flip = value ? 0 : ~0u;
    const bool began = own->kind == value; /* the whole tile, which has settled by that */
    uint32_t mask[LINE], settled[LINE], fresh[LINE], changed = 0;
    struct arrival arrival = {};
    bool open = false;

    if (!began)
        arrival = load_inbox(job, *own, visit, value);
    bool full = load_class(*own, visit, value, turn, mask, settled) == ~0u;
    bool arrived = take_arrival(*own, arrival, mask, settled);
#pragma unroll
    for (int i = 0; i < LINE; i++)
        visit->settled[at + 2 * (uint32_t)i] = settled[i];
    full = __syncthreads_and(full) != 0;
    arrived = __syncthreads_or(arrived) != 0;
    if (full && arrived) {
#pragma unroll
        for (int i = 0; i < LINE; i++)
            settled[i] = ~0u;
    } else if (!began && (arrived || (own->kind == TILE_MIXED && own->first))) {
        settle(*own, visit, mask, settled);
    }
#pragma unroll
    for (int i = 0; i < LINE; i++) {
        fresh[i] = settled[i] & ~(mask[i] & ((own->initial[i] ^ flip) | own->late[i]));
        changed |= (uint32_t)(fresh[i] != 0) << i;
        own->grown += value ? __popc(fresh[i]) : -__popc(fresh[i]);
        open |= settled[i] != mask[i];
    }
    const bool late = __syncthreads_or(changed != 0) != 0;
    if (!late && !own->first) {
        if (threadIdx.x == 0)
            atomicOr(&visit->sends, OPEN);
        return 0;
    }
    if (own->kind == TILE_MIXED) {
#pragma unroll
        for (int i = 0; i < LINE; i++)
            own->late[i] |= fresh[i];
    } else if (!began) {
        /* Nobody comes back to a tile that has settled as a whole. */
        write_tile(job, *own, visit, settled, fresh, !(full && arrived));
    }
    if (own->first) {
#pragma unroll
        for (int i = 0; i < LINE; i++)
            fresh[i] = settled[i];
    }
    uint32_t sends = fill_inboxes(job, *own, visit, value, settled, fresh);
    sends = __reduce_or_sync(~0u, sends | (open ? OPEN : 0));
    if (threadIdx.x % 32 == 0 && sends) {
        uint32_t spread = sends & OPEN;

        for (uint32_t face = 0; face < FACES; face++)
            spread |= (sends >> face & 1) << (2 * face + value);
        atomicOr(&visit->sends, spread);
    }
    return changed;
}

/*
 * The first warp: tells the neighbours, lets the tile go, and queues who has to be visited. Returns
 * a tile for this block to go on with, or NOTHING, the same in all lanes.
 */
__device__ static uint32_t
end_visit(const struct level_set_job &job, const struct visit *visit)
{
    const uint32_t lane = threadIdx.x;
    const uint32_t held = visit->state & ~(uint32_t)(STATE_PENDING | STATE_INITIAL);
    const uint32_t gains = STATE_VISITED | (visit->sends & OPEN ? 0 : STATE_CLOSED);
    uint32_t wakes = NOTHING, ticket = 0;

    __threadfence();
    if (lane < FACES && visit->sends >> 2 * lane & 3) {
        uint32_t tile = visit->neighbour[lane],
                 z = tile / (job.tiles_x * job.tiles_y) % job.tiles_z;
        uint32_t bits = (visit->sends >> 2 * lane & 3) << 2 * (lane ^ 1);

        if (job.layer[z])
            bits |= STATE_QUEUED;
        uint32_t old = atomicOr(&job.state[tile], bits);

        if (!(old & (STATE_QUEUED | STATE_CLOSED)) && bits & STATE_QUEUED)
            wakes = tile;
    } else if (lane == FACES) {
        uint32_t *state = &job.state[visit->tile];

        /* What has arrived meanwhile is the next thing to do. */
        if (atomicCAS(state, held, (held | gains) & ~(uint32_t)STATE_QUEUED) != held) {
            atomicOr(state, gains);
            if (!(gains & STATE_CLOSED))
                wakes = visit->tile;
        }
    }
    /* This block goes on with the last of them: the tile itself where that is to be visited. */
    const uint32_t awake = __ballot_sync(~0u, wakes != NOTHING);
    const uint32_t count = (uint32_t)__popc(awake);
    const uint32_t rank = (uint32_t)__popc(awake & ((1u << lane) - 1));
    const uint32_t next = __shfl_sync(~0u, wakes, count ? 31 - __clz((int)awake) : 0);

    if (count == 0)
        count_tile(job);
    if (count > 1) {
        if (lane == 0) {
            /* Tiles are counted before anybody can take them. */
            atomicAdd(&job.counts->outstanding, count - 1);
            ticket = atomicAdd(&job.counts->tail, count - 1);
            __threadfence();
        }
        ticket = __shfl_sync(~0u, ticket, 0);
        if (wakes != NOTHING && rank + 1 < count)
            put(job, ticket + rank, wakes + 1);
    }
    return next;
}

__device__ static __forceinline__ uint32_t
neighbour_of(const struct level_set_job &job, const struct level_set_place &place, uint32_t tile,
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

/* Takes note of what is new; what arrives from here on makes another visit. */
__device__ static __forceinline__ void
begin_visit(const struct level_set_job &job, struct visit *visit)
{
    const uint32_t tile = visit->tile, face = threadIdx.x - 32;

    if (threadIdx.x == 0) {
        visit->state = atomicAnd(&job.state[tile], ~(uint32_t)(STATE_PENDING | STATE_INITIAL));
        visit->sends = 0;
        __threadfence();
    } else if (face < FACES) {
        uint32_t other = neighbour_of(job, level_set_place_of(job, tile), tile, face);

        visit->neighbour[face] = other;
        visit->kinds[face] = other == NOTHING ? 0 : job.kind[other];
        if (other != NOTHING && look(&job.state[other]) & STATE_CLOSED)
            visit->neighbour[face] = NOTHING;
    } else if (threadIdx.x == 64) {
        visit->kind = job.kind[tile];
    } else if (threadIdx.x == 96) {
        visit->stopped = look(&job.counts->stopped);
    }
    __syncthreads();
}

template <typename Value, bool LAZY>
__device__ static void
visit_tile(const struct level_set_job &job, struct visit *visit, struct pieces<Value> *pieces)
{
    uint32_t changed = 0, turn;
    bool loaded = false;

    if (!LAZY)
        send_for_range(job, visit);
    begin_visit(job, visit);
    struct visitor own = visitor_of(job, visit);
    load_past(job, &own, visit->tile);
    if (LAZY && own.first)
        threshold<Value>(job, own, visit, pieces);
    else if (LAZY)
        send_for_range(job, visit);
    wait_for_groups<0>();
    __syncthreads();
    for (uint32_t value = 0; value < 2; value++) {
        if (own.kind == value && !(visit->state & STATE_INITIAL && own.first))
            continue;
        turn = value && !loaded ? 0 : ~0u;
        loaded = true;
        changed |= visit_class(job, &own, visit, value, turn);
        __syncthreads();
    }
    if (own.kind == TILE_MIXED)
        write_mixed(job, own, visit->tile, changed);
    int32_t voxels = __reduce_add_sync(~0u, own.grown);
    if (threadIdx.x % 32 == 0 && voxels)
        atomicAdd((unsigned long long *)&job.voxels_in[own.place.label],
                  (unsigned long long)(long long)voxels);
}

template <typename Value, bool LAZY>
__global__ void
__launch_bounds__(THREADS, LAZY ? BLOCKS_LAZILY : BLOCKS_A_PROCESSOR)
    flood(const __grid_constant__ struct level_set_job job, int64_t budget)
{
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ struct visit visit;
    struct limits limits = {budget ? clock64() + budget : 0, budget / PATIENCE};
    uint32_t next = NOTHING;

    wait_for_last();
    if (look(&job.counts->stopped))
        return;
    if (blockIdx.x == 0 && threadIdx.x < 32)
        count_tile(job);
    for (;;) {
        if (threadIdx.x == 0)
            visit.tile = next != NOTHING ? next : pop(job, &limits);
        __syncthreads();
        if (visit.tile == NOTHING)
            return;
        visit_tile<Value, LAZY>(job, &visit, (struct pieces<Value> *)memory);
        __syncthreads();
        if (threadIdx.x >= 32)
            continue;
        next = end_visit(job, &visit);
        if (limits.deadline && (visit.stopped || clock64() > limits.deadline)) {
            next = NOTHING;
            limits.patience = 0;
        }
    }
}

template <typename Value, bool LAZY>
static cudaError_t
blocks_each(int *each)
{
    const int memory = LAZY ? (int)sizeof(struct pieces<Value>) : 0;
    cudaError_t error = CUDA_OF(cudaFuncSetAttribute(
        flood<Value, LAZY>, cudaFuncAttributeMaxDynamicSharedMemorySize, memory));

    if (error == cudaSuccess)
        error = CUDA_OF(cudaOccupancyMaxActiveBlocksPerMultiprocessor(each, flood<Value, LAZY>,
                                                                      THREADS, (size_t)memory));
    return error;
}

cudaError_t
level_set_blocks(enum kernels_pixel pixel, bool lazy, int *blocks)
{
    int device, processors, each;
    cudaError_t error = cudaGetDevice(&device);

    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess && pixel == KERNELS_UINT8)
        error = lazy ? blocks_each<uint8_t, true>(&each) : blocks_each<uint16_t, false>(&each);
    else if (error == cudaSuccess)
        error = lazy ? blocks_each<uint16_t, true>(&each) : blocks_each<uint16_t, false>(&each);
    if (error == cudaSuccess)
        *blocks = processors * each;
    return error;
}

void
level_set_flood(const struct level_set_job *job, bool lazy, int blocks, int64_t budget,
                cudaStream_t stream)
{
    const unsigned grid = (unsigned)blocks;

    if (!lazy)
        launch_early(flood<uint16_t, false>, grid, THREADS, 0, stream, *job, budget);
    else if (job->pixel == KERNELS_UINT8)
        launch_early(flood<uint8_t, true>, grid, THREADS, sizeof(struct pieces<uint8_t>), stream,
                     *job, budget);
    else
        launch_early(flood<uint16_t, true>, grid, THREADS, sizeof(struct pieces<uint16_t>), stream,
                     *job, budget);
}
