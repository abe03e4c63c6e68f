/*
 * zones_seams.cu - zones of several tiles: unites their numbers at seams, and counts them.
 *
 * Parents are smaller than their children, and only roots are linked. Stale parts of a path in the
 * L1 cache therefore still lead upwards.
 */
#include "kernels/texture/zones/zones_cuda.cuh"

namespace
{
enum {
    SEAM_BLOCKS = 8, /* per multiprocessor */
    SEAM_COUNTERS = 8192,
    SEAM_SIZES = 2048,
    SEAM_AT_ONCE = 4, /* numbers per thread */
};

/* Places of two runs' labels. */
struct seam_pair {
    uint32_t a, b;
};

/* Returns the label's place for a voxel in a crossing run: the last run that starts at or before
 * the voxel. */
__device__ __forceinline__ uint32_t
seam_label(const uint2 &crossing, int bit)
{
    return crossing.y - 1 + (uint32_t)__popc(crossing.x & ((2u << bit) - 1));
}

struct seam_queue {
    const struct zones_job &job;
    zones_queue<seam_pair> queue;

    __device__ __forceinline__ void unite(const seam_pair &pair) const
    {
        const uint32_t a = __ldg(&job.labels[pair.a]), b = __ldg(&job.labels[pair.b]);

        if (a != b)
            zones_unite_numbers(
                job.parents, [&](uint32_t id) { return __ldca(&job.parents[id]); }, [](uint32_t) {}, a, b);
    }

    __device__ __forceinline__ void push(bool is, const seam_pair &pair)
    {
        queue.push(is, pair, [&](const seam_pair &each) { unite(each); });
    }

    __device__ __forceinline__ void finish()
    {
        queue.finish([&](const seam_pair &pair) { unite(pair); });
    }
};

/* Unites a word, if `is`, with the neighbours in `wanted`. Neighbours in `known` are of its own
 * tile. All lanes of the warp must call it. */
template <uint32_t Bits>
__device__ __forceinline__ void
seam_unite_word(struct seam_queue *queue, bool is, uint32_t x, uint32_t y, uint32_t z, uint32_t wanted, uint32_t known)
{
    const struct zones_job &job = queue->job;
    const size_t at = zones_word_at(job, x, y, z);
    const auto away = [&](enum zones_side side) {
        return (ptrdiff_t)zones_side_y(side) + (ptrdiff_t)zones_side_z(side) * job.rows;
    };
    const auto word_at = [&](size_t word) {
        return zones_word_of<Bits>(job.records + word * zones_record<Bits>::count);
    };
    zones_word<Bits> own = {};
    struct zones_met met[ZONES_SIDES] = {};
    struct zones_contacts contacts[ZONES_SIDES];
    uint32_t bridged = 0;

    if (is && wanted)
        own = word_at(at);
    if (!__any_sync(~0u, own.valid != 0))
        return;
#pragma unroll
    for (int i = 0; i < ZONES_SIDES; i++) {
        const enum zones_side side = (enum zones_side)i;

        if (own.valid && (wanted | known) >> i & 1 && y + zones_side_y(side) < job.rows)
            met[i] = zones_met_of(own, word_at(at + away(side)));
        bridged |= wanted >> i & 1 ? 0 : zones_bridged(met[i]);
    }
    zones_find_contacts(own, met, bridged, contacts);
    const uint2 crossing = own.valid ? __ldg(&job.crossings[at]) : make_uint2(0, 0);

#pragma unroll
    for (int i = 0; i < ZONES_SIDES; i++) {
        const enum zones_side side = (enum zones_side)i;

        if (!(wanted >> side & 1))
            contacts[i].left = 0;
        if (!__any_sync(~0u, contacts[i].left != 0))
            continue;
        const uint2 there = contacts[i].left ? __ldg(&job.crossings[at + away(side)]) : make_uint2(0, 0);

        zones_each_pair(contacts[i], [&](bool is, int from, int to) {
            queue->push(is, {seam_label(crossing, from), seam_label(there, to)});
        });
    }
}

constexpr uint32_t UNDER = 1u << ZONES_UNDER, ABOVE = 1u << ZONES_ABOVE, AHEAD = 1u << ZONES_AHEAD,
                   BEHIND = 1u << ZONES_BEHIND;

/* Sizes of the seams in words. */
struct seam_share {
    uint32_t slices, rows, columns;
};

__host__ __device__ __forceinline__ uint32_t
seam_blocks(uint32_t count)
{
    return (count + ZONES_THREADS - 1) / ZONES_THREADS;
}

/* Unites the first and last rows of tiles with those of neighbouring tiles. */
template <uint32_t Bits, bool Flat>
__device__ __forceinline__ void
seam_rows(struct seam_queue *queue, uint32_t index, uint32_t count)
{
    const struct zones_job &job = queue->job;
    constexpr uint32_t rows = Flat ? ZONES_FLAT_ROWS : ZONES_DEEP_ROWS, sides = Flat ? 1 : 2;
    const uint32_t seams = (job.rows - 1) / rows;
    const bool last = index % sides == 1;
    const uint32_t seam = index / sides % seams, z = index / sides / seams % job.slices,
                   x = index / sides / seams / job.slices, y = (seam + 1) * rows - last;
    const bool done = !Flat && z > 0 && z % ZONES_DEEP_SLICES == 0; /* handled by the seam of slices */
    const bool deep = !Flat && z > 0;

    seam_unite_word<Bits>(queue, index < count && !done, x, y, z,
                          last ? (deep ? AHEAD : 0) : ABOVE | (deep ? BEHIND : 0), deep ? UNDER : 0);
}

/* Unites the last voxels of words and the first ones of the next words, including diagonal
 * neighbours. */
template <bool Flat>
__device__ __forceinline__ void
seam_columns(struct seam_queue *queue, uint32_t index, uint32_t count)
{
    const struct zones_job &job = queue->job;
    const uint32_t in_column = job.rows * job.slices, in = index % in_column, y = in % job.rows, z = in / job.rows;
    const uint32_t *firsts = job.ends + index, *lasts = firsts + in_column;
    const uint32_t own_last = index < count ? *lasts & 0xFFFF : 0, own_first = index < count ? *firsts >> 16 : 0;
    const bool alike = own_last == own_first && own_first > 0;
    bool known = false; /* a neighbouring row already connects them */
    /* two bits per side: first with last, last with first; above them, the own row */
    uint32_t pending = 0;

#pragma unroll
    for (int i = 0; i < ZONES_SIDES; i++) {
        const enum zones_side side = (enum zones_side)i;
        const int away = zones_side_y(side) + zones_side_z(side) * (int)job.rows;
        const bool there = (own_last | own_first) > 0 && (!Flat || side == ZONES_ABOVE) &&
                           y + zones_side_y(side) < job.rows && z + zones_side_z(side) < job.slices;
        const uint32_t other_last = there ? lasts[away] & 0xFFFF : 0, other_first = there ? firsts[away] >> 16 : 0;

        known |= other_last == own_last && other_first == own_first;
        if (own_first > 0 && own_first == other_last && !alike && other_first != own_first)
            pending |= 1u << 2 * i;
        if (own_last > 0 && own_last == other_first && !alike && other_last != own_last)
            pending |= 2u << 2 * i;
    }
    if (alike && !known)
        pending |= 1u << 2 * ZONES_SIDES;
    for (uint32_t left = pending; __any_sync(~0u, left != 0); left &= left - 1) {
        const int bit = __ffs((int)left) - 1;
        const enum zones_side side = (enum zones_side)(bit / 2);
        const int away = side == ZONES_SIDES ? 0 : zones_side_y(side) + zones_side_z(side) * (int)job.rows;
        seam_pair pair = {};

        if (left) {
            const uint2 before = __ldg(&job.crossings[index + (bit % 2 ? 0 : away)]),
                        after = __ldg(&job.crossings[index + in_column + (bit % 2 ? away : 0)]);

            pair = {seam_label(before, ZONES_WIDTH - 1), seam_label(after, 0)};
        }
        queue->push(left != 0, pair);
    }
}

/* A block handles words of one kind of seam only. */
template <uint32_t Bits, bool Flat>
__global__ void
__launch_bounds__(ZONES_THREADS) seam_unite(const __grid_constant__ struct zones_job job, struct seam_share share)
{
    __shared__ seam_pair pairs[ZONES_THREADS / 32][ZONES_QUEUE];
    seam_queue queue = {job, {pairs[threadIdx.x / 32], 0}};
    const uint32_t slices = seam_blocks(share.slices), rows = slices + seam_blocks(share.rows),
                   all = rows + seam_blocks(share.columns);

    for (uint32_t block = blockIdx.x; block < all; block += gridDim.x)
        if (!Flat && block < slices) { /* the first slice of tiles with the previous slice */
            const uint32_t index = block * ZONES_THREADS + threadIdx.x, seams = (job.slices - 1) / ZONES_DEEP_SLICES;
            const uint32_t y = index % job.rows, seam = index / job.rows % seams, x = index / job.rows / seams;
            const bool first = y % ZONES_DEEP_ROWS == 0 && y > 0;

            seam_unite_word<Bits>(&queue, index < share.slices, x, y, (seam + 1) * ZONES_DEEP_SLICES,
                                  UNDER | AHEAD | BEHIND | (first ? ABOVE : 0), ABOVE);
        } else if (block < rows)
            seam_rows<Bits, Flat>(&queue, (block - slices) * ZONES_THREADS + threadIdx.x, share.rows);
        else
            seam_columns<Flat>(&queue, (block - rows) * ZONES_THREADS + threadIdx.x, share.columns);
    queue.finish();
}

/* Calls visit(ids) with several per thread, to overlap their memory latency. Ids may lie beyond the
 * last. */
template <typename Visit>
__device__ __forceinline__ void
seam_each_id(uint32_t count, const Visit &visit)
{
    constexpr uint32_t span = SEAM_AT_ONCE * ZONES_THREADS;

    for (uint32_t base = blockIdx.x * span; base < count; base += gridDim.x * span) {
        uint32_t ids[SEAM_AT_ONCE];

#pragma unroll
        for (uint32_t k = 0; k < SEAM_AT_ONCE; k++)
            ids[k] = base + k * ZONES_THREADS + threadIdx.x;
        visit(ids);
    }
}

/*
 * Adds a number's size to its root. Lanes with the first one's root are summed first, since a zone
 * may have most numbers. With many roots, the other lanes add separately. All lanes of the warp
 * must call it.
 */
__device__ __forceinline__ void
seam_give(const struct zones_job &job, bool gives, uint32_t root, uint32_t size, uint32_t least)
{
    const uint32_t givers = __ballot_sync(~0u, gives), lane = threadIdx.x % 32;

    if (givers == 0)
        return;
    const uint32_t first = (uint32_t)__ffs((int)givers) - 1;
    const uint32_t shared_root = __shfl_sync(~0u, root, (int)first);
    const bool shared = gives && root == shared_root;
    const uint32_t sum = __reduce_add_sync(~0u, shared ? size : 0);
    const uint32_t smallest = job.distances ? __reduce_min_sync(~0u, shared ? least : ~0u) : 0;

    if (!gives || (shared && lane != first))
        return;
    atomicAdd(&job.sizes[root], shared ? sum : size);
    if (job.distances)
        atomicMin(&job.least[root], shared ? smallest : least);
}

/* Adds all numbers' counts to their roots. */
__global__ void
__launch_bounds__(ZONES_THREADS) seam_gather(const __grid_constant__ struct zones_job job)
{
    const uint32_t count = *job.numbers;

    seam_each_id(count, [&](const uint32_t ids[SEAM_AT_ONCE]) {
        uint32_t roots[SEAM_AT_ONCE], sizes[SEAM_AT_ONCE];
        bool more;

#pragma unroll
        for (uint32_t k = 0; k < SEAM_AT_ONCE; k++) {
            roots[k] = ids[k] < count ? job.parents[ids[k]] : ids[k];
            sizes[k] = ids[k] < count ? job.sizes[ids[k]] : 0;
        }
        do {
            more = false;
#pragma unroll
            for (uint32_t k = 0; k < SEAM_AT_ONCE; k++) {
                const uint32_t next = roots[k] < count ? job.parents[roots[k]] : roots[k];

                more |= next != roots[k];
                roots[k] = next;
            }
        } while (more);
#pragma unroll
        for (uint32_t k = 0; k < SEAM_AT_ONCE; k++) {
            const bool gives = roots[k] != ids[k];

            seam_give(job, gives, roots[k], sizes[k], gives && job.distances ? job.least[ids[k]] : ~0u);
        }
    });
}

__global__ void
__launch_bounds__(ZONES_THREADS) seam_count(const __grid_constant__ struct zones_job job)
{
    __shared__ uint32_t shared_sizes[SEAM_SIZES], shared_distances[SEAM_COUNTERS];
    const uint32_t count = *job.numbers;
    const zones_counters sizes = {shared_sizes, job.per_slice ? 0 : SEAM_SIZES / job.levels, false};
    const zones_counters distances = {shared_distances,
                                      job.per_slice || !job.distances ? 0 : SEAM_COUNTERS / job.levels, true};

    sizes.clear(job);
    distances.clear(job);
    __syncthreads();
    seam_each_id(count, [&](const uint32_t ids[SEAM_AT_ONCE]) {
        uint32_t groups[SEAM_AT_ONCE], values[SEAM_AT_ONCE];
        bool roots[SEAM_AT_ONCE];

#pragma unroll
        for (uint32_t k = 0; k < SEAM_AT_ONCE; k++) {
            const bool is = ids[k] < count;

            roots[k] = is && job.parents[ids[k]] == ids[k];
            groups[k] = is ? job.groups[ids[k]] : 0;
            values[k] = is ? job.sizes[ids[k]] : 0;
        }
#pragma unroll
        for (uint32_t k = 0; k < SEAM_AT_ONCE; k++) {
            const uint32_t level = groups[k] & ((1u << TEXTURE_ZONE_LEVEL_BITS) - 1), slice = groups[k] - level;

            if (!roots[k])
                continue;
            sizes.add(job, 1, slice, level, values[k]);
            if (job.distances)
                distances.add(job, 1, slice, level, job.least[ids[k]]);
        }
    });
    __syncthreads();
    sizes.flush(job, 1, 0);
    distances.flush(job, 1, 0);
}

template <uint32_t Bits>
void
queue_words(const struct zones_job *job, uint32_t most, cudaStream_t stream)
{
    const uint32_t rows = job->flat ? ZONES_FLAT_ROWS : ZONES_DEEP_ROWS;
    const struct seam_share share = {job->flat ? 0 : job->words * job->rows * ((job->slices - 1) / ZONES_DEEP_SLICES),
                                     (job->flat ? 1 : 2) * job->words * job->slices * ((job->rows - 1) / rows),
                                     (job->words - 1) * job->rows * job->slices};
    const uint32_t wanted = seam_blocks(share.slices) + seam_blocks(share.rows) + seam_blocks(share.columns);
    const uint32_t blocks = wanted < most ? wanted : most;

    if (wanted == 0)
        return;
    if (job->flat)
        seam_unite<Bits, true><<<blocks, ZONES_THREADS, 0, stream>>>(*job, share);
    else
        seam_unite<Bits, false><<<blocks, ZONES_THREADS, 0, stream>>>(*job, share);
}
} // namespace

void
zones_seams_queue(const struct zones_job *job, int processors, cudaStream_t stream)
{
    const uint32_t most = (uint32_t)processors * SEAM_BLOCKS;

    if (zones_bits_of(job) == ZONES_FEW_BITS)
        queue_words<ZONES_FEW_BITS>(job, most, stream);
    else
        queue_words<ZONES_MANY_BITS>(job, most, stream);
    seam_gather<<<most, ZONES_THREADS, 0, stream>>>(*job);
    seam_count<<<(uint32_t)processors * 4, ZONES_THREADS, 0, stream>>>(*job);
}
