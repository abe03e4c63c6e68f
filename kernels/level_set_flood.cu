/*
 * level_set_flood.cu - stage 2 of paper 001 on CUDA: the flood over tiles. What it is stands in
 * level_set_cuda.cuh.
 *
 * A visit reads the tile's bits of R and of the region, which say what has settled, adds what has
 * arrived, lets both classes settle as level_set_tile.cuh says, and tells the neighbours before it
 * writes the region.
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

/* Beside the faces in a visit's `sends`. */
static const uint32_t LATE = 1u << 30; /* something has settled in this visit */
static const uint32_t LEFT = 1u << 31; /* not every voxel has settled */
static const uint32_t NOTHING = UINT32_MAX;
static const uint32_t END = UINT32_MAX; /* in a place of the queue: there will be no more */

__device__ static __forceinline__ uint32_t
look(const uint32_t *word)
{
    return *(const volatile uint32_t *)word;
}

/* What the block has written and seen comes before what the thread writes from here on. */
__device__ static __forceinline__ void
fence(void)
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/* What the block reads from here on is not older than what comes back. */
__device__ static __forceinline__ uint32_t
take_bits(uint32_t *word, uint32_t keep)
{
    uint32_t old;

    asm volatile("atom.acquire.gpu.global.and.b32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(word), "r"(keep)
                 : "memory");
    return old;
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

/* The tile's first word of the region. */
__device__ static __forceinline__ uint64_t *
region_of(const struct level_set_job &job, const struct level_set_place &place)
{
    const int64_t y = (int64_t)place.y * TILE_ROWS, z = (int64_t)place.z * TILE_SLICES;

    return job.inside + place.label * job.words + (z * job.rows + y) * job.words_per_row + place.x;
}

/* Word i of the tile in the region, or -1 beyond the volume; from the tile's first. */
__device__ static __forceinline__ int64_t
region_word(const struct level_set_job &job, const struct level_set_place &place, uint32_t i)
{
    const int64_t row = i % TILE_ROWS, slice = i / TILE_ROWS;

    if ((int64_t)place.y * TILE_ROWS + row >= job.rows ||
        (int64_t)place.z * TILE_SLICES + slice >= job.slices)
        return -1;
    return (slice * job.rows + row) * job.words_per_row;
}

/* The region, to where settled voxels will stand. It is written by others: past the first cache. */
__device__ static __forceinline__ void
load_region(const struct level_set_job &job, const struct level_set_place &place,
            struct visit *visit)
{
    const uint64_t *region = region_of(job, place);
    uint64_t words[TILE_WORDS / THREADS];

#pragma unroll
    for (uint32_t i = 0; i < TILE_WORDS / THREADS; i++) {
        const int64_t at = region_word(job, place, threadIdx.x + i * THREADS);

        words[i] = at < 0 ? 0 : __ldcg(&region[at]);
    }
#pragma unroll
    for (uint32_t i = 0; i < TILE_WORDS / THREADS; i++) {
        const uint32_t word = threadIdx.x + i * THREADS;

        *(uint64_t *)&visit->settled[half_at(word / TILE_ROWS, word % TILE_ROWS, 0)] = words[i];
    }
}

/* Threads `first` .. of the block: R where settled, else not R. */
__device__ static __forceinline__ void
write_region(const struct level_set_job &job, const struct level_set_place &place,
             const struct visit *visit, uint32_t first)
{
    const uint64_t exist = level_set_columns(job, place.x);
    uint64_t *region = region_of(job, place);

    for (uint32_t word = threadIdx.x - first; word < TILE_WORDS; word += THREADS - first) {
        const uint32_t half = half_at(word / TILE_ROWS, word % TILE_ROWS, 0);
        const int64_t at = region_word(job, place, word);

        if (at >= 0)
            region[at] = ~(*(const uint64_t *)&visit->range[half] ^
                           *(const uint64_t *)&visit->settled[half]) &
                         exist;
    }
}

/* What has arrived of one class across the faces, for the thread's line along y. */
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

/* What of it lies at half i. */
__device__ static __forceinline__ uint32_t
arrived_at(const struct visitor &own, const struct arrival &arrival, int i)
{
    uint32_t come = (arrival.x >> i & 1) << (own.half ? 31 : 0) | arrival.z[i];

    if ((i == 0 && own.part == 0) || (i == LINE - 1 && own.part == PARTS - 1))
        come |= arrival.y;
    return come;
}

/*
 * What has settled in the thread's line when the visit begins, without and with what has arrived,
 * and the thread's share of the traits.
 */
__device__ static __forceinline__ uint32_t
begin_line(const struct level_set_job &job, struct visitor *own, const struct visit *visit,
           bool has_region, uint32_t before[LINE], uint32_t settled[LINE])
{
    const struct arrival out = load_inbox(job, *own, visit, 0);
    const struct arrival in = load_inbox(job, *own, visit, 1);
    const uint32_t at = along_y_at(*own), all = visit->kind ? ~0u : 0;
    uint32_t traits = 0;

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        const uint32_t exist = existing(*own, i);
        const uint32_t range = visit->range[at + 2 * (uint32_t)i] & exist;
        const uint32_t region = has_region ? visit->settled[at + 2 * (uint32_t)i] : all;
        const uint32_t come =
            ((range & arrived_at(*own, in, i)) | (~range & arrived_at(*own, out, i))) & exist;

        own->range[i] = range;
        before[i] = ~(range ^ region) & exist;
        settled[i] = before[i] | come;
        traits |= (range ? TRAIT_IN : 0) | (exist & ~range ? TRAIT_OUT : 0) |
                  (settled[i] ? TRAIT_SETTLED : 0) | (exist & ~settled[i] ? TRAIT_OPEN : 0) |
                  (come & ~before[i] ? TRAIT_ARRIVED : 0);
    }
    return traits;
}

__device__ static __forceinline__ void
put_line(const struct visitor &own, struct visit *visit, const uint32_t settled[LINE])
{
    const uint32_t at = along_y_at(own);

#pragma unroll
    for (int i = 0; i < LINE; i++)
        visit->settled[at + 2 * (uint32_t)i] = settled[i];
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

/* Bit 2 * face + class of the result: something of `fresh` crosses it. Planes are written whole. */
__device__ static __forceinline__ uint32_t
fill_inboxes(const struct level_set_job &job, const struct visitor &own, const struct visit *visit,
             const uint32_t settled[LINE], const uint32_t fresh[LINE])
{
    const uint32_t side = inner_edge(settled, !own.half), news = inner_edge(fresh, !own.half);
    const uint32_t side_range = inner_edge(own.range, !own.half);
    uint32_t sends = 0;

#pragma unroll
    for (uint32_t value = 0; value < 2; value++) {
        const uint32_t flip = value ? 0 : ~0u;
        uint32_t *plane = inbox_beyond(job, visit, own.half, value);

        if (plane) {
            ((uint8_t *)plane)[own.across * PARTS + own.part] =
                (uint8_t)(side & (side_range ^ flip));
            sends |= (uint32_t)((news & (side_range ^ flip)) != 0) << (2 * own.half + value);
        }
        if (own.part == 0 || own.part == PARTS - 1) {
            const uint32_t face = own.part ? 3 : 2;
            const int i = own.part ? LINE - 1 : 0;
            const uint32_t range = (i ? own.range[LINE - 1] : own.range[0]) ^ flip;

            plane = inbox_beyond(job, visit, face, value);
            if (plane) {
                plane[own.across * 2 + own.half] = range & (i ? settled[LINE - 1] : settled[0]);
                sends |= (uint32_t)((range & (i ? fresh[LINE - 1] : fresh[0])) != 0)
                         << (2 * face + value);
            }
        }
        if (own.across == 0 || own.across == TILE_SLICES - 1) {
            const uint32_t face = own.across ? 5 : 4;

            plane = inbox_beyond(job, visit, face, value);
            if (plane) {
                uint32_t any = 0;

#pragma unroll
                for (uint32_t i = 0; i < LINE; i++) {
                    plane[(own.part * LINE + i) * 2 + own.half] =
                        settled[i] & (own.range[i] ^ flip);
                    any |= fresh[i] & (own.range[i] ^ flip);
                }
                sends |= (uint32_t)(any != 0) << (2 * face + value);
            }
        }
    }
    return sends;
}

/* Of a thread whose line has settled: what crosses faces, and the traits of the visit's end. */
__device__ static __forceinline__ uint32_t
end_line(const struct level_set_job &job, struct visitor *own, const struct visit *visit,
         bool begins, const uint32_t before[LINE], const uint32_t settled[LINE])
{
    uint32_t fresh[LINE], any = 0;

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        fresh[i] = settled[i] & ~before[i];
        own->grown += 2 * __popc(fresh[i] & own->range[i]) - __popc(fresh[i]);
        any |= fresh[i];
        if (begins)
            fresh[i] = settled[i];
    }
    return (any ? LATE : 0) | (all_exist(*own, settled) ? 0 : LEFT) |
           fill_inboxes(job, *own, visit, settled, fresh);
}

/*
 * The first warp: tells the neighbours and queues who has to be visited. Returns one of them for
 * this block to go on with, or NOTHING, the same in all lanes. When it is one, the tile visited
 * now is not outstanding any longer.
 */
__device__ static uint32_t
tell_neighbours(const struct level_set_job &job, const struct visit *visit)
{
    const uint32_t lane = threadIdx.x;
    uint32_t wakes = NOTHING, ticket = 0;

    if (!(visit->sends & STATE_PENDING))
        return NOTHING;
    fence();
    if (lane < FACES && visit->sends >> 2 * lane & 3) {
        uint32_t tile = visit->neighbour[lane],
                 z = tile / (job.tiles_x * job.tiles_y) % job.tiles_z;
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
        /* Tiles are counted before anybody can take them. */
        if (lane < 2) {
            ticket = atomicAdd(lane ? &job.counts->tail : &job.counts->outstanding, count - 1);
            fence();
        }
        ticket = __shfl_sync(~0u, ticket, 1);
        if (wakes != NOTHING && rank + 1 < count)
            put(job, ticket + rank, wakes + 1);
    }
    return __shfl_sync(~0u, wakes, count ? 31 - __clz((int)awake) : 0);
}

/*
 * The first warp: lets the tile go. What has arrived meanwhile makes another visit. Returns a tile
 * for this block to go on with, `next` where there is one.
 */
__device__ static uint32_t
let_go(const struct level_set_job &job, const struct visit *visit, uint32_t next)
{
    const uint32_t held = visit->state & ~(uint32_t)(STATE_PENDING | STATE_INITIAL);
    const uint32_t gains = STATE_VISITED | (visit->sends & LEFT ? 0 : STATE_CLOSED);
    uint32_t *state = &job.state[visit->tile];
    bool again = false;

    if (threadIdx.x == 0) {
        fence();
        if (atomicCAS(state, held, (held | gains) & ~(uint32_t)STATE_QUEUED) != held) {
            atomicOr(state, gains);
            again = !(gains & STATE_CLOSED);
        }
        if (again && next != NOTHING) {
            atomicAdd(&job.counts->outstanding, 1);
            uint32_t ticket = atomicAdd(&job.counts->tail, 1);
            fence();
            put(job, ticket, visit->tile + 1);
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
        visit->state = take_bits(&job.state[tile], ~(uint32_t)(STATE_PENDING | STATE_INITIAL));
        visit->sends = 0;
        visit->traits = 0;
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
visit_tile(const struct level_set_job &job, struct visit *visit, struct pieces<Value> *pieces,
           uint32_t depth)
{
    uint32_t before[LINE], settled[LINE];

    if (!LAZY)
        send_for_range(job, visit);
    begin_visit(job, visit);
    struct visitor own = visitor_of(job, visit);
    const bool mixed = visit->kind == TILE_MIXED, has_region = mixed || !own.first;
    const bool begins = own.first && visit->state & STATE_INITIAL;
    if (LAZY && own.first)
        threshold<Value>(job, own, visit, pieces, depth);
    else if (LAZY)
        send_for_range(job, visit);
    if (has_region)
        load_region(job, own.place, visit);
    wait_for_groups<0>();
    __syncthreads();
    uint32_t traits = begin_line(job, &own, visit, has_region, before, settled);
    put_line(own, visit, settled);
    traits = __reduce_or_sync(~0u, traits);
    if (threadIdx.x % 32 == 0)
        atomicOr(&visit->traits, traits);
    __syncthreads();
    traits = visit->traits;
    if (traits & TRAIT_OPEN && (traits & TRAIT_ARRIVED || (own.first && mixed))) {
        const uint32_t classes = traits & (TRAIT_IN | TRAIT_OUT);

        if (classes == (TRAIT_IN | TRAIT_OUT)) {
            settle(own, visit, settled);
        } else if (traits & TRAIT_SETTLED) {
#pragma unroll
            for (int i = 0; i < LINE; i++)
                settled[i] = existing(own, i);
            put_line(own, visit, settled);
        }
    }
    uint32_t sends = end_line(job, &own, visit, begins, before, settled);
    sends = __reduce_or_sync(~0u, sends);
    const int32_t voxels = __reduce_add_sync(~0u, own.grown);
    if (threadIdx.x % 32 == 0 && sends)
        atomicOr(&visit->sends, sends);
    if (threadIdx.x % 32 == 0 && voxels)
        atomicAdd((unsigned long long *)&job.voxels_in[own.place.label],
                  (unsigned long long)(long long)voxels);
}

template <typename Value, bool LAZY>
__global__ void
__launch_bounds__(THREADS, LAZY ? BLOCKS_LAZILY : BLOCKS_A_PROCESSOR)
    flood(const __grid_constant__ struct level_set_job job, int64_t budget, uint32_t depth)
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
        visit_tile<Value, LAZY>(job, &visit, (struct pieces<Value> *)memory, depth);
        __syncthreads();
        /* Neighbours can begin while the region is written. */
        if (threadIdx.x < 32)
            next = tell_neighbours(job, &visit);
        else if (visit.sends & LATE)
            write_region(job, level_set_place_of(job, visit.tile), &visit, 32);
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
 * Where tiles are few a processor has one block: a second one would only take its time, while
 * others had nothing to do. So many bytes of shared memory see to it; lazily, voxels fill them.
 */
enum { FEW_TILES = 8 /* a processor */ };

static const size_t ALONE = pieces_size<uint16_t>(DEEP);

template <typename Value, bool LAZY>
static cudaError_t
blocks_each(int most, int *each)
{
    const size_t memory = LAZY ? pieces_size<Value>(SHALLOW) : 0;
    const bool has_room = ALONE + sizeof(struct visit) <= (size_t)most;
    cudaError_t error = CUDA_OF(cudaFuncSetAttribute(flood<Value, LAZY>,
                                                     cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                     (int)(has_room ? ALONE : memory)));

    if (error == cudaSuccess)
        error = CUDA_OF(cudaOccupancyMaxActiveBlocksPerMultiprocessor(each, flood<Value, LAZY>,
                                                                      THREADS, memory));
    return error;
}

cudaError_t
level_set_blocks(enum kernels_pixel pixel, bool lazy, int *blocks)
{
    int device, processors, most, each;
    cudaError_t error = cudaGetDevice(&device);

    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess && !lazy)
        error = blocks_each<uint16_t, false>(most, &each);
    else if (error == cudaSuccess && pixel == KERNELS_UINT8)
        error = blocks_each<uint8_t, true>(most, &each);
    else if (error == cudaSuccess)
        error = blocks_each<uint16_t, true>(most, &each);
    if (error == cudaSuccess)
        *blocks = processors * each;
    return error;
}

template <typename Value, bool LAZY>
static cudaError_t
launch_flood(const struct level_set_job *job, int blocks, int64_t budget, cudaStream_t stream)
{
    const int processors = blocks / (LAZY ? BLOCKS_LAZILY : BLOCKS_A_PROCESSOR);
    const size_t memory = LAZY ? pieces_size<Value>(SHALLOW) : 0;
    struct cudaFuncAttributes attributes;
    cudaError_t error = CUDA_OF(cudaFuncGetAttributes(&attributes, flood<Value, LAZY>));

    if (error != cudaSuccess)
        return error;
    if ((size_t)attributes.maxDynamicSharedSizeBytes >= ALONE &&
        (int64_t)job->tiles * job->labels <= (int64_t)processors * FEW_TILES)
        launch_early(flood<Value, LAZY>, (unsigned)processors, THREADS, ALONE, stream, *job, budget,
                     DEEP);
    else
        launch_early(flood<Value, LAZY>, (unsigned)blocks, THREADS, memory, stream, *job, budget,
                     SHALLOW);
    return cudaSuccess;
}

cudaError_t
level_set_flood(const struct level_set_job *job, bool lazy, int blocks, int64_t budget,
                cudaStream_t stream)
{
    if (!lazy)
        return launch_flood<uint16_t, false>(job, blocks, budget, stream);
    if (job->pixel == KERNELS_UINT8)
        return launch_flood<uint8_t, true>(job, blocks, budget, stream);
    return launch_flood<uint16_t, true>(job, blocks, budget, stream);
}
