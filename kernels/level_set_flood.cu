/*
 * level_set_flood.cu - stage 2 of paper 001 on CUDA: the flood over tiles. What it is stands in
 * level_set_cuda.cuh.
 *
 * A visit takes one class of R at a time (both only where the tile is partly in the initial
 * region). Its mask, the voxels of the class, and what is settled of it stand in shared memory as
 * 32-bit halves of rows. Each thread holds 16 of them in registers, in turn along y and along z,
 * and carries settled bits up and down its line; along x one addition fills a whole run.
 */
#include "level_set_cuda.cuh"

enum {
    THREADS = 128,
    LINE = 16,                 /* halves of rows that a thread holds: half a tile's edge */
    PITCH = 2 * TILE_ROWS + 2, /* from slice to slice in shared memory: no bank conflicts */
    PIECES = TILE_WORDS / 2,   /* of 16 bytes a tile: two rows */
    GROUP = 8,                 /* threads that threshold a row */
    ROWS_IN_FLIGHT = 4,
    ALIGNED_IN_FLIGHT = 8, /* where rows begin at aligned addresses */
    BLOCKS_A_PROCESSOR = 4,
};

static const uint32_t OPEN = 1u << 31; /* not every voxel is known to have settled */
static const uint32_t NOTHING = UINT32_MAX;
static const uint32_t END = UINT32_MAX; /* in a place of the queue: there will be no more */

/* Of a block, in shared memory. */
struct visit {
    uint32_t settled[TILE_SLICES * PITCH]; /* [slice][row][half] */
    uint32_t mask[TILE_SLICES * PITCH];
    uint32_t tile;
    uint32_t kind;
    uint32_t state;            /* when the visit began */
    uint32_t neighbour[FACES]; /* NOTHING: the volume ends there */
    uint32_t kinds[FACES];
    uint32_t sends; /* bit 2 * face + class: something new crosses the face; and OPEN */
};

/* Of a thread. */
struct visitor {
    struct level_set_place place;
    uint32_t kind;
    bool first;      /* the tile's first visit */
    uint32_t half;   /* 0: columns 0 .. 31 of the tile */
    uint32_t across; /* the slice of a line along y, the row of one along z */
    uint32_t from;   /* of the line: 0 or 16 */
    int64_t grown;   /* voxels that came into the region */
};

__device__ static __forceinline__ uint32_t
look(const uint32_t *word)
{
    return *(const volatile uint32_t *)word;
}

/*
 * A tile off the queue, or NOTHING when there will be none. A ticket names a place, and there are
 * more places than blocks can wait at.
 */
__device__ static uint32_t
pop(const struct level_set_job &job, int64_t deadline)
{
    uint32_t *place = &job.queue[atomicAdd(&job.counts->head, 1) & job.queue_mask];

    for (;;) {
        uint32_t taken = look(place);

        if (taken) {
            *(volatile uint32_t *)place = 0; /* nobody else has this ticket */
            return taken == END ? NOTHING : taken - 1;
        }
        if (deadline && clock64() > deadline) {
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

/* The 32-bit halves of a row that exist. */
__device__ static __forceinline__ uint32_t
existing(const struct level_set_job &job, const struct visitor &own, uint32_t half, uint32_t row,
         uint32_t slice)
{
    uint64_t columns = level_set_columns(job, own.place.x);
    bool inside = (int64_t)own.place.y * TILE_ROWS + row < job.rows &&
                  (int64_t)own.place.z * TILE_SLICES + slice < job.slices;

    return inside ? (uint32_t)(columns >> 32 * half) : 0;
}

__device__ static __forceinline__ int64_t
region_word(const struct level_set_job &job, const struct visitor &own, uint32_t row,
            uint32_t slice)
{
    int64_t y = (int64_t)own.place.y * TILE_ROWS + row;
    int64_t z = (int64_t)own.place.z * TILE_SLICES + slice;

    return own.place.label * job.words + (z * job.rows + y) * job.words_per_row + own.place.x;
}

/*
 * Lazily: the range bits of the tile, into the visit's mask. Eight threads a row, eight values each
 * at aligned addresses; the row begins within the first eight, unless ALIGNED, at the first.
 */
template <typename Value, bool ALIGNED, int ROWS>
__device__ static __forceinline__ void
threshold_rows(const struct level_set_job &job, const struct visitor &own, struct visit *visit)
{
    using eight = typename level_set_eight<Value>::type;
    const eight *voxels = (const eight *)job.voxels;
    const int64_t end = (job.columns * job.rows * job.slices + 7) / 8;
    const uint32_t group = threadIdx.x / GROUP, lane = threadIdx.x % GROUP;

    for (uint32_t begin = group; begin < TILE_WORDS; begin += THREADS / GROUP * ROWS) {
        eight loaded[ROWS], next[ROWS];
        uint32_t shift[ROWS];
        bool exists;

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            uint32_t line = begin + (uint32_t)i * (THREADS / GROUP);
            int64_t y = (int64_t)own.place.y * TILE_ROWS + line % TILE_ROWS;
            int64_t z = (int64_t)own.place.z * TILE_SLICES + line / TILE_ROWS;
            int64_t voxel = (z * job.rows + y) * job.columns + (int64_t)own.place.x * TILE_COLUMNS;

            exists = y < job.rows && z < job.slices;
            shift[i] = ALIGNED ? 0 : (uint32_t)voxel & 7;
            voxel = voxel / 8 + lane;
            loaded[i] = exists && voxel < end ? __ldg(voxels + voxel) : eight{};
            next[i] = !ALIGNED && exists && lane == GROUP - 1 && shift[i] && voxel + 1 < end
                          ? __ldg(voxels + voxel + 1)
                          : eight{};
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            uint32_t line = begin + (uint32_t)i * (THREADS / GROUP);
            int64_t z = min((int64_t)own.place.z * TILE_SLICES + line / TILE_ROWS, job.slices - 1);
            const struct level_set_pass &pass = job.passes[own.place.label * job.slices + z];
            uint32_t bits = level_set_in_range<Value>(loaded[i], pass);

            if (!ALIGNED) {
                uint32_t more = __shfl_down_sync(~0u, bits, 1, GROUP);

                if (lane == GROUP - 1 && shift[i])
                    more = level_set_in_range<Value>(next[i], pass);
                bits = (bits | more << 8) >> shift[i];
            }
            ((uint8_t *)&visit->mask[line / TILE_ROWS * PITCH + line % TILE_ROWS * 2])[lane] =
                (uint8_t)bits;
        }
    }
    __syncthreads();
}

template <typename Value>
__device__ static void
threshold(const struct level_set_job &job, const struct visitor &own, struct visit *visit)
{
    if (job.columns % 8 == 0)
        threshold_rows<Value, true, ALIGNED_IN_FLIGHT>(job, own, visit);
    else
        threshold_rows<Value, false, ROWS_IN_FLIGHT>(job, own, visit);
}

/* Where two rows of the tile stand in shared memory; each thread has its own. */
__device__ static __forceinline__ uint32_t
piece_at(uint32_t piece)
{
    return piece / (TILE_ROWS / 2) * PITCH + piece % (TILE_ROWS / 2) * 4;
}

/* 64 bits from the device's memory to shared memory, past the registers. */
__device__ static __forceinline__ void
send_for_word(uint32_t *to, const uint64_t *from)
{
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
}

/* Until all that the thread has sent for is there. */
__device__ static __forceinline__ void
wait_for_words(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* The range bits of the tile are on their way into the visit's mask: each thread's own pieces. */
__device__ static __forceinline__ void
send_for_range(const struct level_set_job &job, struct visit *visit)
{
    const uint64_t *range = job.range + (size_t)visit->tile * TILE_WORDS;

#pragma unroll
    for (uint32_t i = 0; i < PIECES / THREADS; i++) {
        uint32_t piece = threadIdx.x + i * THREADS;

        for (uint32_t row = 0; row < 2; row++)
            send_for_word(&visit->mask[piece_at(piece) + 2 * row], &range[2 * piece + row]);
    }
}

/* What the visit's mask holds before a class is loaded. */
enum mask_content {
    MASK_THRESHOLDED, /* range bits that the device's memory does not have yet */
    MASK_RANGE,
    MASK_OTHER_CLASS,
};

/* Sets the mask and what is settled of one class, two rows at a time. Returns whether all of the
 * tile is of the class. */
__device__ static bool
load_class(const struct level_set_job &job, const struct visitor &own, struct visit *visit,
           uint32_t value, enum mask_content content)
{
    uint4 *range = (uint4 *)(job.range + (size_t)visit->tile * TILE_WORDS);
    uint4 *grown = (uint4 *)(job.grown + (size_t)visit->tile * TILE_WORDS);
    const bool fresh = own.first && !(own.kind == TILE_MIXED && value == 1);
    const uint32_t flip = value ? 0 : ~0u, turn = content == MASK_OTHER_CLASS ? ~0u : flip;
    const uint2 *region = (const uint2 *)job.inside;
    bool full = true;

#pragma unroll
    for (uint32_t i = 0; i < PIECES / THREADS; i++) {
        uint32_t piece = threadIdx.x + i * THREADS, slice = piece / (TILE_ROWS / 2);
        uint32_t row = piece % (TILE_ROWS / 2) * 2, at = piece_at(piece);
        const uint32_t ins[4] = {visit->mask[at], visit->mask[at + 1], visit->mask[at + 2],
                                 visit->mask[at + 3]};
        uint4 late = make_uint4(0, 0, 0, 0);
        uint32_t initial[4], exist[4];

        if (content == MASK_THRESHOLDED)
            range[piece] = make_uint4(ins[0], ins[1], ins[2], ins[3]);
        if (!fresh)
            late = __ldcg(&grown[piece]);
        else if (own.kind == TILE_MIXED)
            grown[piece] = late;
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            exist[k] = existing(job, own, k % 2, row + k / 2, slice);
            initial[k] = own.kind == 1 ? ~0u : 0;
        }
        if (own.kind == TILE_MIXED) {
#pragma unroll
            for (uint32_t k = 0; k < 2; k++) {
                if (!(exist[2 * k] | exist[2 * k + 1]))
                    continue;
                uint2 now = __ldcg(&region[region_word(job, own, row + k, slice)]);
                initial[2 * k] = now.x ^ (k ? late.z : late.x);
                initial[2 * k + 1] = now.y ^ (k ? late.w : late.y);
            }
        }
        const uint32_t lates[4] = {late.x, late.y, late.z, late.w};
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t mask = (ins[k] ^ turn) & exist[k];

            full &= mask == ~0u;
            visit->mask[at + k] = mask;
            visit->settled[at + k] = mask & ((initial[k] ^ flip) | lates[k]);
        }
    }
    return __syncthreads_and(full);
}

/* What has arrived across the faces. */
__device__ static __forceinline__ void
take_inbox(const struct level_set_job &job, const struct visitor &own, const struct visit *visit,
           uint32_t value, const uint32_t mask[LINE], uint32_t settled[LINE])
{
    const uint32_t pending = visit->state >> value;
    const uint32_t *inbox = job.inbox + (size_t)visit->tile * INBOX_WORDS + value * FACE_WORDS;
    const uint32_t side = own.half, end = own.from ? LINE - 1 : 0;

    if (pending >> 2 * side & 1) {
        const uint16_t *plane = (const uint16_t *)(inbox + side * 2 * FACE_WORDS);
        uint32_t bits = __ldcg(&plane[own.across * 2 + own.from / LINE]);

#pragma unroll
        for (int i = 0; i < LINE; i++)
            settled[i] |= (bits >> i & 1) << (own.half ? 31 : 0) & mask[i];
    }
    if (pending >> 2 * (2 + own.from / LINE) & 1) {
        const uint32_t *plane = inbox + (2 + own.from / LINE) * 2 * FACE_WORDS;
        uint32_t bits = __ldcg(&plane[own.across * 2 + own.half]);

        settled[0] |= end == 0 ? bits & mask[0] : 0;
        settled[LINE - 1] |= end != 0 ? bits & mask[LINE - 1] : 0;
    }
#pragma unroll
    for (uint32_t face = 4; face < FACES; face++) {
        const uint32_t *plane = inbox + face * 2 * FACE_WORDS;

        if (own.across != (face == 4 ? 0 : TILE_SLICES - 1) || !(pending >> 2 * face & 1))
            continue;
#pragma unroll
        for (uint32_t i = 0; i < LINE; i++)
            settled[i] |= __ldcg(&plane[(own.from + i) * 2 + own.half]) & mask[i];
    }
}

/* Along x: every run of the mask that holds a settled voxel, as far as this half of the row. */
__device__ static __forceinline__ uint32_t
fill_runs(uint32_t settled, uint32_t mask)
{
    settled |= mask & ~(mask + settled);
    if (mask & ~settled & settled >> 1) {
        uint32_t turned = __brev(settled), other = __brev(mask);
        settled = __brev(turned | (other & ~(other + turned)));
    }
    return settled;
}

__device__ static __forceinline__ void
sweep_up(uint32_t settled[LINE], const uint32_t mask[LINE], uint32_t before)
{
    settled[0] |= mask[0] & before;
#pragma unroll
    for (int i = 1; i < LINE; i++)
        settled[i] |= mask[i] & settled[i - 1];
}

__device__ static __forceinline__ void
sweep_down(uint32_t settled[LINE], const uint32_t mask[LINE], uint32_t after)
{
    settled[LINE - 1] |= mask[LINE - 1] & after;
#pragma unroll
    for (int i = LINE - 2; i >= 0; i--)
        settled[i] |= mask[i] & settled[i + 1];
}

/* Once along x and along y, both ways. */
__device__ static __forceinline__ void
sweep_rows(uint32_t settled[LINE], const uint32_t mask[LINE], uint32_t beyond, uint32_t from,
           uint32_t half)
{
    sweep_up(settled, mask, from ? beyond : 0);
#pragma unroll
    for (int i = 0; i < LINE; i++) {
        uint32_t other = __shfl_xor_sync(~0u, settled[i], 1);

        settled[i] |= (half ? other >> 31 : other << 31) & mask[i];
        settled[i] = fill_runs(settled[i], mask[i]);
    }
    sweep_down(settled, mask, from ? 0 : beyond);
}

/* Writes what has changed of a line; `step` words from one to the next. */
__device__ static __forceinline__ bool
put_line(uint32_t *line, int step, const uint32_t now[LINE])
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

/*
 * To the fixed point of the tile. `settled` is this thread's line along y, which is in shared
 * memory as well; on return both are final.
 */
__device__ static void
settle(const struct visitor &own, struct visit *visit, const uint32_t mask[LINE],
       uint32_t settled[LINE])
{
    uint32_t *along_y = &visit->settled[own.across * PITCH + own.from * 2 + own.half];
    uint32_t *along_z = &visit->settled[own.from * PITCH + own.across * 2 + own.half];
    const uint32_t *z_mask = &visit->mask[own.from * PITCH + own.across * 2 + own.half];

    for (;;) {
        uint32_t beyond = own.from ? along_y[-2] : along_y[LINE * 2];

        __syncthreads();
        sweep_rows(settled, mask, beyond, own.from, own.half);
        bool changed = put_line(along_y, 2, settled);
        __syncthreads();

        uint32_t line[LINE], across[LINE];
#pragma unroll
        for (int i = 0; i < LINE; i++) {
            line[i] = along_z[i * PITCH];
            across[i] = z_mask[i * PITCH];
        }
        beyond = own.from ? along_z[-PITCH] : along_z[LINE * PITCH];
        __syncthreads();
        sweep_up(line, across, own.from ? beyond : 0);
        sweep_down(line, across, own.from ? 0 : beyond);
        changed |= put_line(along_z, PITCH, line);
        if (!__syncthreads_or(changed))
            return;
#pragma unroll
        for (int i = 0; i < LINE; i++)
            settled[i] = along_y[i * 2];
    }
}

/* The region's words that have changed, and how many voxels it gained. */
__device__ static __forceinline__ void
write_region(const struct level_set_job &job, struct visitor *own, const struct visit *visit,
             uint32_t value, const uint32_t settled[LINE], const uint32_t before[LINE])
{
    uint32_t *region = (uint32_t *)job.inside;
    uint32_t *grown = (uint32_t *)(job.grown + (size_t)visit->tile * TILE_WORDS);
    int32_t voxels = 0;

#pragma unroll
    for (uint32_t i = 0; i < LINE; i++) {
        uint32_t late = settled[i] & ~before[i], row = own->from + i;

        if (!late)
            continue;
        size_t at = (size_t)region_word(job, *own, row, own->across) * 2 + own->half;
        voxels += __popc(late);
        if (own->kind == TILE_MIXED) {
            size_t word = (own->across * TILE_ROWS + row) * 2 + own->half;

            region[at] = __ldcg(&region[at]) ^ late;
            grown[word] = __ldcg(&grown[word]) | late;
        } else {
            region[at] = own->kind == 0
                             ? settled[i]
                             : ~settled[i] & existing(job, *own, own->half, row, own->across);
        }
    }
    own->grown += value ? voxels : -voxels;
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

/* Bit `face` of the result: something new crosses it. Planes are written whole. */
__device__ static __forceinline__ uint32_t
fill_inboxes(const struct level_set_job &job, const struct visitor &own, const struct visit *visit,
             uint32_t value, const uint32_t settled[LINE], const uint32_t before[LINE])
{
    uint32_t any = 0, bits = 0, fresh = 0, sends = 0;
    const uint32_t edge = own.half ? 31 : 0, side = 2 + own.from / LINE;
    uint32_t *plane;

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        uint32_t late = own.first ? settled[i] : settled[i] & ~before[i];

        any |= late;
        bits |= (settled[i] >> edge & 1) << i;
        fresh |= late >> edge & 1;
    }
    plane = inbox_beyond(job, visit, own.half, value);
    if (plane) {
        ((uint16_t *)plane)[own.across * 2 + own.from / LINE] = (uint16_t)bits;
        sends |= fresh << own.half;
    }
    plane = inbox_beyond(job, visit, side, value);
    if (plane) {
        uint32_t last = own.from ? settled[LINE - 1] : settled[0];
        uint32_t old = own.first ? 0 : own.from ? before[LINE - 1] : before[0];

        plane[own.across * 2 + own.half] = last;
        sends |= (uint32_t)((last & ~old) != 0) << side;
    }
    if (own.across != 0 && own.across != TILE_SLICES - 1)
        return sends;
    const uint32_t face = own.across == 0 ? 4 : 5;
    plane = inbox_beyond(job, visit, face, value);
    if (plane) {
#pragma unroll
        for (uint32_t i = 0; i < LINE; i++)
            plane[(own.from + i) * 2 + own.half] = settled[i];
        sends |= (uint32_t)(any != 0) << face;
    }
    return sends;
}

/* One class of one tile. */
__device__ static void
visit_class(const struct level_set_job &job, struct visitor *own, struct visit *visit,
            uint32_t value, enum mask_content content)
{
    uint32_t *line = &visit->settled[own->across * PITCH + own->from * 2 + own->half];
    uint32_t mask[LINE], settled[LINE], before[LINE];
    bool arrived, open = false;

    bool full = load_class(job, *own, visit, value, content);
#pragma unroll
    for (int i = 0; i < LINE; i++) {
        mask[i] = visit->mask[own->across * PITCH + (own->from + i) * 2 + own->half];
        before[i] = settled[i] = line[i * 2];
    }
    /* A class that the whole tile began with is settled. */
    if (own->kind != value) {
        take_inbox(job, *own, visit, value, mask, settled);
        arrived = put_line(line, 2, settled);
        arrived = __syncthreads_or(arrived) != 0;
        if (full && arrived) {
#pragma unroll
            for (int i = 0; i < LINE; i++)
                settled[i] = line[i * 2] = ~0u;
        } else if (arrived || (own->kind == TILE_MIXED && own->first)) {
            settle(*own, visit, mask, settled);
        }
        bool late = false;
#pragma unroll
        for (int i = 0; i < LINE; i++) {
            late |= settled[i] != before[i];
            open |= settled[i] != mask[i];
        }
        late = __syncthreads_or(late) != 0;
        if (late)
            write_region(job, own, visit, value, settled, before);
        /* Nobody comes back to a tile that has settled as a whole. */
        if (own->kind != TILE_MIXED && (late || own->first) && !(full && arrived)) {
            uint4 *grown = (uint4 *)(job.grown + (size_t)visit->tile * TILE_WORDS);

#pragma unroll
            for (uint32_t i = 0; i < PIECES / THREADS; i++) {
                uint32_t piece = threadIdx.x + i * THREADS;
                const uint32_t *two = &visit->settled[piece_at(piece)];

                grown[piece] = make_uint4(two[0], two[1], two[2], two[3]);
            }
        }
        if (!late && !own->first) {
            if (threadIdx.x == 0)
                atomicOr(&visit->sends, OPEN);
            return;
        }
    }
    uint32_t sends = fill_inboxes(job, *own, visit, value, settled, before);
    sends = __reduce_or_sync(~0u, sends | (open ? OPEN : 0));
    if (threadIdx.x % 32 == 0 && sends) {
        uint32_t spread = sends & OPEN;

        for (uint32_t face = 0; face < FACES; face++)
            spread |= (sends >> face & 1) << (2 * face + value);
        atomicOr(&visit->sends, spread);
    }
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
    }
    __syncthreads();
}

template <typename Value, bool LAZY>
__device__ static void
visit_tile(const struct level_set_job &job, struct visit *visit)
{
    struct visitor own;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    if (!LAZY)
        send_for_range(job, visit);
    begin_visit(job, visit);
    own.place = level_set_place_of(job, visit->tile);
    own.kind = visit->kind;
    own.first = !(visit->state & STATE_VISITED);
    own.half = lane % 2;
    own.across = lane / 2 + 16 * (warp / 2);
    own.from = warp % 2 * LINE;
    own.grown = 0;

    enum mask_content content = LAZY && own.first ? MASK_THRESHOLDED : MASK_RANGE;
    if (content == MASK_THRESHOLDED) {
        threshold<Value>(job, own, visit);
    } else {
        if (LAZY)
            send_for_range(job, visit);
        wait_for_words();
    }
    for (uint32_t value = 0; value < 2; value++) {
        if (own.kind == value && !(visit->state & STATE_INITIAL && own.first))
            continue;
        visit_class(job, &own, visit, value, content);
        content = MASK_OTHER_CLASS;
        __syncthreads();
    }
    int32_t voxels = __reduce_add_sync(~0u, (int32_t)own.grown);
    if (lane == 0 && voxels)
        atomicAdd((unsigned long long *)&job.voxels_in[own.place.label],
                  (unsigned long long)(long long)voxels);
}

template <typename Value, bool LAZY>
__global__ void
__launch_bounds__(THREADS, BLOCKS_A_PROCESSOR)
    flood(const __grid_constant__ struct level_set_job job, int64_t budget)
{
    __shared__ struct visit visit;
    const int64_t deadline = budget ? clock64() + budget : 0;
    uint32_t next = NOTHING;

    if (look(&job.counts->stopped))
        return;
    if (blockIdx.x == 0 && threadIdx.x < 32)
        count_tile(job);
    for (;;) {
        if (threadIdx.x == 0)
            visit.tile = next != NOTHING ? next : pop(job, deadline);
        __syncthreads();
        if (visit.tile == NOTHING)
            return;
        visit_tile<Value, LAZY>(job, &visit);
        __syncthreads();
        if (threadIdx.x >= 32)
            continue;
        next = end_visit(job, &visit);
        if (deadline && clock64() > deadline)
            next = NOTHING; /* as pop finds out, too */
    }
}

cudaError_t
level_set_blocks(enum kernels_pixel pixel, bool lazy, int *blocks)
{
    int device, processors, each;
    cudaError_t error = cudaGetDevice(&device);

    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess && pixel == KERNELS_UINT8)
        error = lazy ? cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, flood<uint8_t, true>,
                                                                     THREADS, 0)
                     : cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, flood<uint8_t, false>,
                                                                     THREADS, 0);
    else if (error == cudaSuccess)
        error = lazy ? cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, flood<uint16_t, true>,
                                                                     THREADS, 0)
                     : cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, flood<uint16_t, false>,
                                                                     THREADS, 0);
    if (error == cudaSuccess)
        *blocks = processors * each;
    return error;
}

void
level_set_flood(const struct level_set_job *job, bool lazy, int blocks, int64_t budget,
                cudaStream_t stream)
{
    const unsigned grid = (unsigned)blocks;

    if (job->pixel == KERNELS_UINT8 && lazy)
        flood<uint8_t, true><<<grid, THREADS, 0, stream>>>(*job, budget);
    else if (!lazy)
        flood<uint16_t, false><<<grid, THREADS, 0, stream>>>(*job, budget);
    else
        flood<uint16_t, true><<<grid, THREADS, 0, stream>>>(*job, budget);
}
