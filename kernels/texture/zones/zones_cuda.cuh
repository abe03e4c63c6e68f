/*
 * zones_cuda.cuh - what the files of zones on the GPU share.
 *
 * Rows of the box are cut into words of 32 voxels. A tile has ZONES_THREADS words, a thread each: one word
 * of each of so many rows of some slices, or of one. Words are numbered along y, then z, then x.
 *
 * A zone that lies in one tile is counted there: tiles look at what is beside them. What the others have in
 * each tile gets a number; seams unite these numbers, and what is united is counted then. A tile of one level gets
 * its number without being looked at, as if all of it went on in others.
 */
#ifndef NOCTULE_ZONES_CUDA_CUH
#define NOCTULE_ZONES_CUDA_CUH

#include "kernels/texture/texture_cuda.cuh"

enum {
    ZONES_THREADS = 512,
    ZONES_WIDTH = 32,
    ZONES_DEEP_ROWS = 16, /* of a tile */
    ZONES_DEEP_SLICES = ZONES_THREADS / ZONES_DEEP_ROWS,
    ZONES_FLAT_ROWS = ZONES_THREADS,
    ZONES_BUNDLE = 16,  /* words beside each other along y, whole ones in a tile */
    ZONES_FEW_BITS = 6, /* of levels, 0 being the last one */
    ZONES_MANY_BITS = 8,
    ZONES_QUEUE = 64, /* pairs, of a warp */
    ZONES_QUADS = 3,  /* of a record, at most */
    ZONES_REACH = 10, /* runs of a word that may cross: a quarter of rows is whole, and two ends */
};

/* Counts by key, with open addresses: 0 is no key. */
struct zones_table {
    unsigned long long *keys, *counts; /* mask + 1 */
    uint32_t *order;                   /* places in use, as they were taken */
    uint32_t *used;                    /* how many */
    uint32_t mask;
};

/* Where a tile begins: a word, a row and a slice of the box. */
struct zones_place {
    uint32_t x, y, z;
};

struct zones_job {
    struct glcm_volume volume;
    const uint16_t *tables;
    size_t values;        /* of a table; 0: there is one for all */
    uint32_t table_slice; /* of the box, that table 0 is of */
    uint32_t first[3];    /* of the box, in the volume */
    uint32_t columns, rows, slices, words;
    uint32_t levels;
    bool distances, flat, per_slice;
    const uint16_t *steps;     /* of voxels in words; NULL: everything is of the region */
    uint4 *records;            /* of words */
    uint32_t *ends;            /* levels of the voxels before each and, 16 bits up, after it */
    uint16_t *whole;           /* of bundles: the level of all voxels; 0: there is none */
    struct zones_place *tiles; /* that are not of one level */
    uint32_t *tile_count;
    /* Runs that cross have a voxel that is alike one beside it in another tile: of each word where they start, and the
     * place of its first one's label; labels are their numbers. */
    uint2 *crossings;
    uint32_t *labels;
    /* By number. */
    uint32_t *parents, *sizes, *groups, *least;
    uint32_t *numbers, *label_count; /* that are in use */
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

/* Of a tile. */
static __host__ __device__ __forceinline__ uint32_t
zones_rows(const struct zones_job &job)
{
    return job.flat ? ZONES_FLAT_ROWS : ZONES_DEEP_ROWS;
}

static __host__ __device__ __forceinline__ uint32_t
zones_tiles_high(const struct zones_job &job)
{
    return (job.rows - 1) / zones_rows(job) + 1;
}

static __host__ __device__ __forceinline__ uint32_t
zones_tiles_of(const struct zones_job &job)
{
    const uint32_t slices = ZONES_THREADS / zones_rows(job);

    return job.words * zones_tiles_high(job) * ((job.slices - 1) / slices + 1);
}

/* Words */

template <uint32_t Bits> struct zones_word {
    uint32_t plane[Bits]; /* bits of levels */
    uint32_t valid;       /* has a level */
    uint32_t starts;      /* of runs of one level */

    __device__ __forceinline__ uint32_t joined() const
    {
        return valid & ~starts;
    }

    __device__ __forceinline__ uint32_t level(int bit) const
    {
        uint32_t code = 0;

#pragma unroll
        for (uint32_t k = Bits;
             k-- > 0;) /* the voxel's bit to the top, and from there into the code */
            code = __funnelshift_l(plane[k] << (ZONES_WIDTH - 1 - bit), code, 1);
        return code > 0 ? code : 1u << Bits;
    }
};

/* A word as it is kept. */
template <uint32_t Bits> struct zones_record {
    static constexpr uint32_t count = (Bits + 5) / 4;
    uint4 quads[count];
};

template <uint32_t Bits>
static __device__ __forceinline__ zones_record<Bits>
zones_record_of(const zones_word<Bits> &word)
{
    zones_record<Bits> record;
    uint32_t parts[4 * record.count] = {};

#pragma unroll
    for (uint32_t p = 0; p < Bits; p++)
        parts[p] = word.plane[p];
    parts[Bits] = word.valid;
    parts[Bits + 1] = word.starts;
#pragma unroll
    for (uint32_t q = 0; q < record.count; q++)
        record.quads[q] =
            make_uint4(parts[4 * q], parts[4 * q + 1], parts[4 * q + 2], parts[4 * q + 3]);
    return record;
}

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

/* Where the run of this voxel starts. */
static __device__ __forceinline__ int
zones_start(uint32_t starts, int bit)
{
    return 31 - __clz((int)(starts & ((2u << bit) - 1)));
}

/* Voxels alike those of another row at the same place, one before, one after. */
struct zones_pairs {
    uint32_t at, before, after;

    __device__ __forceinline__ uint32_t any() const
    {
        return at | before | after;
    }
};

/* What is moved is the word that has several others beside it. */
template <uint32_t Bits>
static __device__ __forceinline__ zones_pairs
zones_pairs_of(const zones_word<Bits> &a, const zones_word<Bits> &b)
{
    uint32_t at = 0, before = 0, after = 0; /* differ; the latter two where b has them */

#pragma unroll
    for (uint32_t k = 0; k < Bits; k++) {
        at |= a.plane[k] ^ b.plane[k];
        before |= a.plane[k] >> 1 ^ b.plane[k];
        after |= a.plane[k] << 1 ^ b.plane[k];
    }
    return {a.valid & b.valid & ~at, a.valid & (b.valid & ~before) << 1,
            a.valid & (b.valid & ~after) >> 1};
}

/* Rows beside that of a word: by steps in y, z. */
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

/* Pairs of a word with one of another row that are to be united. */
struct zones_contacts {
    uint64_t
        left; /* a bit each: of voxels with those after them above, of those with others below */
    uint32_t before; /* which of the others are before them */
    uint32_t starts; /* of the other word's runs */
};

/* Of all pairs no voxel has two with voxels at its place and before it. */
static __device__ __forceinline__ zones_contacts
zones_contacts_of(const zones_pairs &pairs, uint32_t starts)
{
    return {(uint64_t)pairs.after << 32 | pairs.at | pairs.before, pairs.before, starts};
}

/* Pairs in turn, all lanes of a warp together, those that have none left, too: visit(is there one, from, to). */
template <typename Visit>
static __device__ __forceinline__ void
zones_each_pair(const struct zones_contacts &contacts, const Visit &visit)
{
    for (uint64_t left = contacts.left; __any_sync(~0u, left != 0); left &= left - 1) {
        const int at = __ffsll((long long)left) - 1, bit = at & (ZONES_WIDTH - 1);

        visit(left != 0, bit,
              at >= ZONES_WIDTH ? bit + 1 : bit - (int)(contacts.before >> bit & 1));
    }
}

/* What a word has to do with one of another row. */
struct zones_met {
    zones_pairs pairs;
    uint32_t joined, starts; /* of the other one */
};

template <uint32_t Bits>
static __device__ __forceinline__ zones_met
zones_met_of(const zones_word<Bits> &own, const zones_word<Bits> &other)
{
    return {zones_pairs_of(own, other), other.joined(), other.starts};
}

/* Voxels that are of one zone with those two before them: both are alike one between them. */
static __device__ __forceinline__ uint32_t
zones_bridged(const zones_met &met)
{
    return met.pairs.before & met.pairs.after << 2;
}

/*
 * The pairs of a word's voxels with those of the rows beside it that have to be united for all that are
 * alike to hang together. Left out is what others do: runs; neighbours of a voxel that touch each other
 * are united by the later of them. So no pair is left out for one of a later row, or for one of its own row
 * that comes later here. Of two that do not touch each other, under a voxel, one is enough if there is a
 * third that touches both, and of two voxels with the one between them if they are bridged elsewhere: a
 * chequerboard is full of them.
 */
template <uint32_t Bits>
static __device__ __forceinline__ void
zones_find_contacts(const zones_word<Bits> &own, const struct zones_met met[ZONES_SIDES],
                    uint32_t bridged, struct zones_contacts contacts[ZONES_SIDES])
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
    const auto needed = [&](enum zones_side side, uint32_t not_at, uint32_t not_before,
                            uint32_t not_after) {
        const zones_pairs &pairs = met[side].pairs;

        contacts[side] = zones_contacts_of(
            {pairs.at & ~(not_at | (joined & met[side].joined)),
             pairs.before & ~(not_before | pairs.at | joined | (bridged & pairs.after << 2)),
             pairs.after & ~(not_after | pairs.at | ahead)},
            met[side].starts);
    };

    needed(ZONES_UNDER, 0, 0, under_before & between);
    needed(ZONES_ABOVE, known, under.pairs.at | under_before, under.pairs.at | under_after);
    needed(ZONES_AHEAD, known, under.pairs.at | under_before, under.pairs.at | under_after);
    needed(ZONES_BEHIND, before | after, before, after);
}

/* The root of the later number is hung below what the other one is under, or is itself (Rem 1976). On the
 * way to it numbers are hung higher. */
template <typename Forest>
static __device__ __forceinline__ void
zones_unite_numbers(const Forest &forest, uint32_t a, uint32_t b)
{
    uint32_t over_a = forest.peek(a), over_b = forest.peek(b);

    while (over_a != over_b) {
        if (over_a < over_b) {
            const uint32_t number = a, over = over_a;

            a = b;
            b = number;
            over_a = over_b;
            over_b = over;
        }
        if (a == over_a) {
            over_a = forest.hang(a, over_b);
            if (a == over_a)
                return;
            continue;
        }
        const uint32_t next = forest.peek(over_a);

        if (next != over_a)
            forest.raise(a, next);
        a = over_a;
        over_a = next;
    }
}

/* Pairs that a warp unites, each lane one, once there are enough. In shared memory. */
template <typename Pair> struct zones_queue {
    Pair *pairs; /* ZONES_QUEUE */
    uint32_t count;

    /* All lanes together. */
    template <typename Unite>
    __device__ __forceinline__ void push(bool is, const Pair &pair, const Unite &unite)
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

/* A block's counters in shared memory of values from `base` on, `each` of every level, which are beside each
 * other: most have the first values. Others go to the table. */
struct zones_counters {
    uint32_t *counters; /* each * levels */
    uint32_t each;
    bool distance;

    /* slice: of a group, without the level. */
    __device__ __forceinline__ void add(const struct zones_job &job, uint32_t base, uint32_t slice,
                                        uint32_t level, uint32_t value, uint32_t count = 1) const
    {
        if (value - base < each)
            atomicAdd(&counters[(value - base) * job.levels + level - 1], count);
        else
            zones_add(job.table, zones_key(distance, slice | level, value), count);
    }

    /* All threads of a block, between barriers. */
    __device__ __forceinline__ void clear(const struct zones_job &job) const
    {
        for (uint32_t i = threadIdx.x; i < each * job.levels; i += ZONES_THREADS)
            counters[i] = 0;
    }

    /* And clears them. */
    __device__ __forceinline__ void flush(const struct zones_job &job, uint32_t base,
                                          uint32_t slice) const
    {
        for (uint32_t i = threadIdx.x; i < each * job.levels; i += ZONES_THREADS)
            if (counters[i] > 0) {
                zones_add(job.table,
                          zones_key(distance,
                                    slice << TEXTURE_ZONE_LEVEL_BITS | (i % job.levels + 1),
                                    base + i / job.levels),
                          counters[i]);
                counters[i] = 0;
            }
    }
};

/* Each queues its kernels; a failed launch is cudaGetLastError's. */

/* zones_steps.cu: steps from each voxel to what is not of the region. */
void zones_steps_queue(const struct zones_job *job, uint16_t *steps, cudaStream_t stream);

/* zones_words.cu: what words of slices first .. first + count - 1 are, and their bundles. */
void zones_words_queue(const struct zones_job *job, enum image_pixel pixel, uint32_t first,
                       uint32_t count, cudaStream_t stream);

/* zones_whole.cu: of tiles of one level all that seams ask for; which are the others? */
void zones_whole_queue(const struct zones_job *job, cudaStream_t stream);

/* zones_tiles.cu: these. */
cudaError_t zones_tiles_allow(const struct zones_job *job);
void zones_tiles_queue(const struct zones_job *job, int processors, cudaStream_t stream);

/* zones_seams.cu: unites what tiles numbered, and counts it. */
void zones_seams_queue(const struct zones_job *job, int processors, cudaStream_t stream);

static inline int
zones_bits_of(const struct zones_job *job)
{
    return job->levels <= 1u << ZONES_FEW_BITS ? ZONES_FEW_BITS : ZONES_MANY_BITS;
}

#endif
