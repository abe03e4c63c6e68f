/*
 * zones_cuda.cuh - declarations shared by the zone files of the GPU.
 *
 * Rows of the box are divided into words of 32 voxels. A tile has ZONES_THREADS words, one per
 * thread: one word of each row in one or several slices. Words are numbered along y, then z, then
 * x.
 *
 * Zones within one tile are counted there; each tile also reads its surroundings. Other zones get a
 * number per tile. Seams unite these numbers, and united zones are counted afterwards. A tile of
 * one level gets its number without further analysis, as if its zone crossed the tile's border.
 */
#ifndef NOCTULE_KERNELS_TEXTURE_ZONES_ZONES_CUDA_CUH
#define NOCTULE_KERNELS_TEXTURE_ZONES_ZONES_CUDA_CUH

#include "kernels/texture/texture_cuda.cuh"

enum {
    ZONES_THREADS = 512,
    ZONES_WIDTH = 32,
    ZONES_DEEP_ROWS = 16, /* rows of a tile */
    ZONES_DEEP_SLICES = ZONES_THREADS / ZONES_DEEP_ROWS,
    ZONES_FLAT_ROWS = ZONES_THREADS,
    ZONES_BUNDLE = 16,  /* adjacent words along y; a tile has whole bundles */
    ZONES_FEW_BITS = 6, /* bits of levels; 0 is the last level */
    ZONES_MANY_BITS = 8,
    ZONES_QUEUE = 64, /* pairs per warp */
    ZONES_QUADS = 3,  /* max per record */
    ZONES_REACH = 10, /* max crossing runs per word: a quarter of rows is whole, and two ends */
};

/* Counts by key, with open addressing. Key 0 marks a free place. */
struct zones_table {
    unsigned long long *keys, *counts; /* mask + 1 */
    uint32_t *order;                   /* used places in the order of insertion */
    uint32_t *used;                    /* number of used places */
    uint32_t mask;
};

/* First word of a tile, as word, row and slice of the box. */
struct zones_place {
    uint32_t x, y, z;
};

struct zones_job {
    struct glcm_volume volume;
    const uint16_t *tables;
    size_t values;        /* per table; 0: one table for all slices */
    uint32_t table_slice; /* slice of the box with table 0 */
    uint32_t first[3];    /* first voxel of the box in the volume */
    uint32_t columns, rows, slices, words;
    uint32_t levels;
    bool distances, flat, per_slice;
    const uint16_t *steps;     /* one per voxel, in words; NULL: the region is the whole volume */
    uint4 *records;            /* one per word */
    uint32_t *ends;            /* levels of the voxels before and, 16 bits up, after each word */
    uint16_t *whole;           /* level of all voxels per bundle; 0: mixed */
    struct zones_place *tiles; /* the mixed tiles */
    uint32_t *tile_count;
    /*
     * A run crosses if a voxel of another tile next to it has the same level. Per word: the starts
     * of crossing runs, and the place of the first one's label. A label is the number of a run's
     * zone.
     */
    uint2 *crossings;
    uint32_t *labels;
    /* Indexed by number. */
    uint32_t *parents, *sizes, *groups, *least;
    uint32_t *numbers, *label_count; /* numbers and labels in use */
    struct zones_table table;
};

static __device__ __forceinline__ size_t
zones_word_at(const struct zones_job &job, uint32_t x, uint32_t y, uint32_t z)
{
    return ((size_t)x * job.slices + z) * job.rows + y;
}

static __host__ __device__ __forceinline__ uint32_t
zones_bundles(uint32_t rows)
{
    return (rows - 1) / ZONES_BUNDLE + 1;
}

static __device__ __forceinline__ size_t
zones_bundle_at(const struct zones_job &job, uint32_t x, uint32_t y, uint32_t z)
{
    return ((size_t)x * job.slices + z) * zones_bundles(job.rows) + y / ZONES_BUNDLE;
}

/* Returns the rows per tile. */
static __host__ __device__ __forceinline__ uint32_t
zones_rows(const struct zones_job &job)
{
    return job.flat ? ZONES_FLAT_ROWS : ZONES_DEEP_ROWS;
}

static __host__ __device__ __forceinline__ uint32_t
zones_tiles_of(const struct zones_job &job)
{
    const uint32_t rows = zones_rows(job), slices = ZONES_THREADS / rows;

    return job.words * ((job.rows - 1) / rows + 1) * ((job.slices - 1) / slices + 1);
}

/* Words */

template <uint32_t Bits> struct zones_word {
    uint32_t plane[Bits]; /* bits of levels */
    uint32_t valid;       /* voxels with a level */
    uint32_t starts;      /* starts of runs of one level */

    __device__ __forceinline__ uint32_t joined() const
    {
        return valid & ~starts;
    }

    __device__ __forceinline__ uint32_t level(int bit) const
    {
        uint32_t code = 0;

#pragma unroll
        for (uint32_t k = Bits; k-- > 0;) /* shift the voxel's bit to the top, then into the code */
            code = __funnelshift_l(plane[k] << (ZONES_WIDTH - 1 - bit), code, 1);
        return code > 0 ? code : 1u << Bits;
    }
};

/* A word in memory: `count` quads with its planes, valid voxels and starts, in this order. */
template <uint32_t Bits> struct zones_record {
    static constexpr uint32_t count = (Bits + 5) / 4;
};

template <uint32_t Bits>
static __device__ __forceinline__ zones_word<Bits>
zones_word_of(const uint4 *quads)
{
    constexpr uint32_t count = zones_record<Bits>::count;
    uint32_t parts[4 * count];
    zones_word<Bits> word;

#pragma unroll
    for (uint32_t q = 0; q < count; q++) {
        const uint4 four = quads[q];

        parts[4 * q] = four.x;
        parts[4 * q + 1] = four.y;
        parts[4 * q + 2] = four.z;
        parts[4 * q + 3] = four.w;
    }
#pragma unroll
    for (uint32_t p = 0; p < Bits; p++)
        word.plane[p] = parts[p];
    word.valid = parts[Bits];
    word.starts = parts[Bits + 1];
    return word;
}

/* Returns the start of this voxel's run. */
static __device__ __forceinline__ int
zones_start(uint32_t starts, int bit)
{
    return 31 - __clz((int)(starts & ((2u << bit) - 1)));
}

/* Voxels with the same level as the voxel of another row at the same place, one before, or one
 * after. */
struct zones_pairs {
    uint32_t at, before, after;
};

/* Shifts word a, since it is compared with several others. */
template <uint32_t Bits>
static __device__ __forceinline__ zones_pairs
zones_pairs_of(const zones_word<Bits> &a, const zones_word<Bits> &b)
{
    uint32_t at = 0, before = 0, after = 0; /* differences; the latter two at b's positions */

#pragma unroll
    for (uint32_t k = 0; k < Bits; k++) {
        at |= a.plane[k] ^ b.plane[k];
        before |= a.plane[k] >> 1 ^ b.plane[k];
        after |= a.plane[k] << 1 ^ b.plane[k];
    }
    return {a.valid & b.valid & ~at, a.valid & (b.valid & ~before) << 1, a.valid & (b.valid & ~after) >> 1};
}

/* Neighbouring rows of a word, by steps in y and z. */
enum zones_side { ZONES_UNDER, ZONES_ABOVE, ZONES_AHEAD, ZONES_BEHIND, ZONES_SIDES };

static __device__ __forceinline__ int
zones_side_y(enum zones_side side)
{
    return side == ZONES_UNDER ? 0 : side == ZONES_AHEAD ? 1 : -1;
}

static __device__ __forceinline__ int
zones_side_z(enum zones_side side)
{
    return side == ZONES_ABOVE ? 0 : -1;
}

/* Pairs of a word with one of another row to unite. */
struct zones_contacts {
    uint64_t
        /* one bit each: voxels with the ones after them in the upper half, with others in the
         * lower */
        left;
    uint32_t before; /* those of the others that are one before */
    uint32_t starts; /* run starts of the other word */
};

/* Calls visit(exists, from, to) for each pair. All lanes of the warp must take part, also those
 * without pairs left. */
template <typename Visit>
static __device__ __forceinline__ void
zones_each_pair(const struct zones_contacts &contacts, const Visit &visit)
{
    for (uint64_t left = contacts.left; __any_sync(~0u, left != 0); left &= left - 1) {
        const int at = __ffsll((long long)left) - 1, bit = at & (ZONES_WIDTH - 1);

        visit(left != 0, bit, at >= ZONES_WIDTH ? bit + 1 : bit - (int)(contacts.before >> bit & 1));
    }
}

/* Relation of a word to one of another row. */
struct zones_met {
    zones_pairs pairs;
    uint32_t joined, starts; /* of the other word */
};

template <uint32_t Bits>
static __device__ __forceinline__ zones_met
zones_met_of(const zones_word<Bits> &own, const zones_word<Bits> &other)
{
    return {zones_pairs_of(own, other), other.joined(), other.starts};
}

/* Returns the voxels in one zone with the voxel two before them, since the other row's voxel
 * between them has their level. */
static __device__ __forceinline__ uint32_t
zones_bridged(const zones_met &met)
{
    return met.pairs.before & met.pairs.after << 2;
}

/*
 * Finds the pairs of a word's voxels with neighbouring rows that must be united to connect all
 * voxels of equal level. Skips pairs that others cover: runs, and adjacent neighbours of a voxel,
 * which the later of them unites. A pair must not be skipped for one of a later row, or for a later
 * one of its own row. Two non-adjacent voxels under a voxel need one pair if a third one touches
 * both. Two voxels bridged elsewhere need one pair with the voxel between them. Chequerboards have
 * many of these.
 */
template <uint32_t Bits>
static __device__ __forceinline__ void
zones_find_contacts(const zones_word<Bits> &own, const struct zones_met met[ZONES_SIDES], uint32_t bridged,
                    struct zones_contacts contacts[ZONES_SIDES])
{
    const zones_met &under = met[ZONES_UNDER], &above = met[ZONES_ABOVE], &next = met[ZONES_AHEAD],
                    &last = met[ZONES_BEHIND];
    const uint32_t joined = own.joined(), ahead = joined >> 1;
    const uint32_t under_before = under.pairs.before & ~under.pairs.at,
                   under_after = under.pairs.after & ~under.pairs.at,
                   between = above.pairs.at | next.pairs.at | last.pairs.at;
    const uint32_t known = under.pairs.at | under_before | under_after;
    const uint32_t before = under.pairs.at | under_before | above.pairs.at | above.pairs.before,
                   after = under.pairs.at | under_after | above.pairs.at | above.pairs.after;
    const auto needed = [&](enum zones_side side, uint32_t not_at, uint32_t not_before, uint32_t not_after) {
        const zones_pairs &pairs = met[side].pairs;
        /* A voxel must not have pairs both at its place and before it. */
        const uint32_t at_place = pairs.at & ~(not_at | (joined & met[side].joined));
        const uint32_t one_before = pairs.before & ~(not_before | pairs.at | joined | (bridged & pairs.after << 2));
        const uint32_t one_after = pairs.after & ~(not_after | pairs.at | ahead);

        contacts[side] = {(uint64_t)one_after << 32 | at_place | one_before, one_before, met[side].starts};
    };

    needed(ZONES_UNDER, 0, 0, under_before & between);
    needed(ZONES_ABOVE, known, under.pairs.at | under_before, under.pairs.at | under_after);
    needed(ZONES_AHEAD, known, under.pairs.at | under_before, under.pairs.at | under_after);
    needed(ZONES_BEHIND, before | after, before, after);
}

/* Links the root of the larger number below the other number's parent or root (Rem 1976). Shortens
 * the paths on the way. peek(number) reads a parent. hung(root) follows the link of a root. */
template <typename Peek, typename Hung>
static __device__ __forceinline__ void
zones_unite_numbers(uint32_t *parents, const Peek &peek, const Hung &hung, uint32_t a, uint32_t b)
{
    uint32_t over_a = peek(a), over_b = peek(b);

    while (over_a != over_b) {
        if (over_a < over_b) {
            const uint32_t number = a, over = over_a;

            a = b;
            b = number;
            over_a = over_b;
            over_b = over;
        }
        if (a == over_a) {
            over_a = atomicCAS(&parents[a], a, over_b);
            if (a == over_a) {
                hung(a);
                return;
            }
            continue;
        }
        const uint32_t next = peek(over_a);

        if (next != over_a)
            parents[a] = next;
        a = over_a;
        over_a = next;
    }
}

/* Queue in shared memory of pairs to unite. A warp unites 32 at a time, one per lane. */
template <typename Pair> struct zones_queue {
    Pair *pairs; /* ZONES_QUEUE */
    uint32_t count;

    /* All lanes must call it. */
    template <typename Unite> __device__ __forceinline__ void push(bool is, const Pair &pair, const Unite &unite)
    {
        const uint32_t all = __ballot_sync(~0u, is), lane = threadIdx.x % 32;

        if (is)
            pairs[count + (uint32_t)__popc(all & ((1u << lane) - 1))] = pair;
        count += (uint32_t)__popc(all);
        if (count < 32)
            return;
        count -= 32;
        __syncwarp();
        unite(pairs[count + lane]);
        __syncwarp();
    }

    template <typename Unite> __device__ __forceinline__ void finish(const Unite &unite)
    {
        __syncwarp();
        if (threadIdx.x % 32 < count)
            unite(pairs[threadIdx.x % 32]);
        count = 0;
        __syncwarp();
    }
};

/* Counts */

static constexpr unsigned long long ZONES_DISTANCE_KEY = 1ull << 63;

static __device__ __forceinline__ unsigned long long
zones_key(bool distance, uint32_t group, uint32_t value)
{
    return texture_zone_key(0, 0, value) | (unsigned long long)group << TEXTURE_ZONE_VALUE_BITS |
           (distance ? ZONES_DISTANCE_KEY : 0);
}

static __device__ __noinline__ void
zones_add(const struct zones_table &table, unsigned long long key, uint32_t count)
{
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15ull >> 32) & table.mask;

    for (;; at = (at + 1) & table.mask) {
        unsigned long long held = *(volatile unsigned long long *)&table.keys[at];

        if (held == 0) {
            held = atomicCAS(&table.keys[at], 0ull, key);
            if (held == 0) {
                table.order[atomicAdd(table.used, 1u)] = at;
                break;
            }
        }
        if (held == key)
            break;
    }
    atomicAdd(&table.counts[at], (unsigned long long)count);
}

/* A block's counters in shared memory: `each` values from `base` on, each with adjacent counters
 * for all levels. Most values are in this range. Others go to the table. */
struct zones_counters {
    uint32_t *counters; /* each * levels */
    uint32_t each;
    bool distance;

    /* slice: the group's, without the level. */
    __device__ __forceinline__ void add(const struct zones_job &job, uint32_t base, uint32_t slice, uint32_t level,
                                        uint32_t value, uint32_t count = 1) const
    {
        if (value - base < each)
            atomicAdd(&counters[(value - base) * job.levels + level - 1], count);
        else
            zones_add(job.table, zones_key(distance, slice | level, value), count);
    }

    /* All threads of the block must call it, between barriers. */
    __device__ __forceinline__ void clear(const struct zones_job &job) const
    {
        for (uint32_t i = threadIdx.x; i < each * job.levels; i += ZONES_THREADS)
            counters[i] = 0;
    }

    /* Adds the counters to the table and clears them. */
    __device__ __forceinline__ void flush(const struct zones_job &job, uint32_t base, uint32_t slice) const
    {
        for (uint32_t i = threadIdx.x; i < each * job.levels; i += ZONES_THREADS)
            if (counters[i] > 0) {
                zones_add(
                    job.table,
                    zones_key(distance, slice << TEXTURE_ZONE_LEVEL_BITS | (i % job.levels + 1), base + i / job.levels),
                    counters[i]);
                counters[i] = 0;
            }
    }
};

/* Each function queues its kernels. The caller must check cudaGetLastError for failed launches. */

/* zones_steps.cu: counts steps from each voxel to the nearest one outside the region. */
void zones_steps_queue(const struct zones_job *job, uint16_t *steps, cudaStream_t stream);

/* zones_words.cu: writes the words of slices first .. first + count - 1, and their bundles. */
void zones_words_queue(const struct zones_job *job, enum image_pixel pixel, uint32_t first, uint32_t count,
                       cudaStream_t stream);

/* zones_whole.cu: handles tiles of one level for the seams, and lists the mixed tiles. */
void zones_whole_queue(const struct zones_job *job, cudaStream_t stream);

/* zones_tiles.cu: processes the mixed tiles. */
cudaError_t zones_tiles_queue(const struct zones_job *job, int processors, cudaStream_t stream);

/* zones_seams.cu: unites the tiles' numbers and counts their zones. */
void zones_seams_queue(const struct zones_job *job, int processors, cudaStream_t stream);

static inline int
zones_bits_of(const struct zones_job *job)
{
    return job->levels <= 1u << ZONES_FEW_BITS ? ZONES_FEW_BITS : ZONES_MANY_BITS;
}

#endif
