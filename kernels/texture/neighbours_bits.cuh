/*
 * neighbours_bits.cuh - neighbourhoods of one voxel each way whose voxels are alike where they are equal, of
 * up to BITS_LEVELS levels, for neighbours_cuda.cu.
 *
 * A thread has a window: 32 voxels of a row that stand next to each other, of which all but the first and
 * the last are its own to count; so nothing that it shifts comes from another's. It goes with the window from
 * slice to slice. Of what is there it makes planes, of each bit of the levels one word with that bit of every
 * voxel: 32 voxels are compared with 32 neighbours by one operation a plane, and how many neighbours are alike
 * is added up likewise, as numbers whose digits are words. Of the rows beside its own a thread reads from
 * shared memory what the threads of these rows have made.
 *
 * Levels are added up two in a word, as halves that are multiples of the least one: so are all whole numbers
 * below 2^11, and they are added and subtracted by what is not busy with planes.
 *
 * Turned back, a byte for each voxel, levels and what is alike are the addresses of counters. Deviations are
 * counted as if all voxels had all neighbours, levels of 0 among them; of the few that lack some this is put
 * right afterwards (neighbours_lacking.cuh), from a word for each window. Voxels without a level count among
 * those of a level 0, which nobody reads.
 */
#ifndef NOCTULE_NEIGHBOURS_BITS_CUH
#define NOCTULE_NEIGHBOURS_BITS_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/texture/neighbours_lacking.cuh"
#include "kernels/texture/turn_cuda.cuh"

#include <cuda_fp16.h>

enum {
    BITS_LEVELS = 64,
    BITS_THREADS = 512,
    BITS_SLOTS =
        3, /* slices in shared memory: what is read, what is written, and what others still read */
    BITS_COPIES = 32,       /* of a level's deviations: a lane has its own */
    BITS_PITCH = 64,        /* of a level's counters: what is alike, then the copies */
    BITS_BIAS = 0x3F000000, /* a half, whose lower bits are then what is added to it */
    BITS_HALVES = 0x00FF00FF,
    BITS_ALIGN = 256, /* bytes */
};

/* What the rows of a box are cut into. */
struct bits_part {
    uint32_t windows;        /* of a row */
    uint32_t across, chunks; /* windows of a tile beside each other; tiles of a row */
    uint32_t rows, tiles;    /* of a tile, with one more on both sides; tiles of a slice */
    uint32_t steps;          /* of all tiles, slice by slice: what blocks share */
};

/* The levels of a window: byte b of word j is voxel 8 b + j. */
struct bits_levels {
    uint32_t word[8];
};

/* Bit k of all voxels' levels, and which of them have one. */
template <uint32_t PLANES> struct bits_planes {
    uint32_t plane[PLANES], inside;
};

/* Numbers of as many voxels: digit k of each. */
struct bits_number {
    uint32_t digit[5];
};

/* What a block counts into, in shared memory. */
struct bits_table {
    uint32_t *counters; /* [1 + levels][BITS_PITCH]; see bits_place_of */
    uint32_t levels, width;
    uint32_t first,
        lane; /* as bytes of an address: where the counters are, in 256 bytes; the lane's copy */
};

/* Where those of a level are counted that have so many alike: levels that are near are in different banks. */
static __device__ __forceinline__ uint32_t
bits_place_of(uint32_t level, uint32_t alike)
{
    return level * BITS_PITCH + ((level ^ alike) & (BITS_COPIES - 1));
}

/* A window as it stands in memory; it begins with the lower or with the upper half of the first word. */
struct bits_loaded {
    uint32_t word[9];
};

static __device__ __forceinline__ void
bits_load(const uint32_t *at, struct bits_loaded *loaded)
{
#pragma unroll
    for (int i = 0; i < 9; i++)
        loaded->word[i] = __ldg(at + i);
}

static __device__ __forceinline__ void
bits_arrange(const struct bits_loaded &loaded, uint32_t shift, struct bits_levels *levels)
{
    uint32_t word[8];

#pragma unroll
    for (int i = 0; i < 8; i++)
        word[i % 2 * 4 + i / 2] = __funnelshift_r(loaded.word[i], loaded.word[i + 1], shift);
    turn_bytes(word, levels->word);
    turn_bytes(word + 4, levels->word + 4);
}

/* Levels below 2^PLANES and that one, whose planes are all 0. */
template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_make_planes(const struct bits_levels &levels, struct bits_planes<PLANES> *planes)
{
    struct bits_levels turned = levels;

    turn_bits(turned.word);
    planes->inside = turned.word[PLANES];
#pragma unroll
    for (uint32_t k = 0; k < PLANES; k++) {
        planes->plane[k] = turned.word[k];
        planes->inside |= turned.word[k];
    }
}

/* A slice of the tile: of each thread four pieces, two of levels and two of planes. */
struct bits_slot {
    uint4 piece[4][BITS_THREADS];
};

template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_hand_over(struct bits_slot *slot, const struct bits_levels &levels,
               const struct bits_planes<PLANES> &planes)
{
    uint32_t word[8] = {};

#pragma unroll
    for (uint32_t k = 0; k < PLANES; k++)
        word[k] = planes.plane[k];
    word[7] = planes.inside;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        slot->piece[i][threadIdx.x] = make_uint4(levels.word[4 * i], levels.word[4 * i + 1],
                                                 levels.word[4 * i + 2], levels.word[4 * i + 3]);
        slot->piece[2 + i][threadIdx.x] =
            make_uint4(word[4 * i], word[4 * i + 1], word[4 * i + 2], word[4 * i + 3]);
    }
}

static __device__ __forceinline__ void
bits_read(const struct bits_slot *slot, int first, uint32_t thread, uint32_t word[8])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint4 piece = slot->piece[first + i][thread];

        word[4 * i] = piece.x;
        word[4 * i + 1] = piece.y;
        word[4 * i + 2] = piece.z;
        word[4 * i + 3] = piece.w;
    }
}

template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_read_planes(const struct bits_slot *slot, uint32_t thread, struct bits_planes<PLANES> *planes)
{
    uint32_t word[8];

    bits_read(slot, 2, thread, word);
#pragma unroll
    for (uint32_t k = 0; k < PLANES; k++)
        planes->plane[k] = word[k];
    planes->inside = word[7];
}

/* Of three bits each: their sum's two digits. */
static __device__ __forceinline__ void
bits_add(uint32_t a, uint32_t b, uint32_t c, uint32_t *sum, uint32_t *carry)
{
    *sum = a ^ b ^ c;
    *carry = (a & b) | (c & (a ^ b));
}

/* Both digits of how many of a row's three are alike, for each of three rows. */
struct bits_rows {
    uint32_t sum[3], carry[3];
};

/* How many of three rows are alike, at most 9. */
static __device__ __forceinline__ struct bits_number
bits_sum_rows(const struct bits_rows &rows)
{
    struct bits_number number = {};
    uint32_t twos, fours[2], two;

    bits_add(rows.sum[0], rows.sum[1], rows.sum[2], &number.digit[0], &two);
    bits_add(rows.carry[0], rows.carry[1], rows.carry[2], &twos, &fours[0]);
    number.digit[1] = twos ^ two;
    fours[1] = twos & two;
    number.digit[2] = fours[0] ^ fours[1];
    number.digit[3] = fours[0] & fours[1];
    return number;
}

static __device__ __forceinline__ struct bits_number
bits_sum(const struct bits_number &a, const struct bits_number &b)
{
    struct bits_number number;
    uint32_t carry = 0;

#pragma unroll
    for (int k = 0; k < 5; k++)
        bits_add(a.digit[k], b.digit[k], carry, &number.digit[k], &carry);
    return number;
}

/* What voxels of a row have before, at and after them. */
template <uint32_t PLANES> struct bits_beside {
    struct bits_planes<PLANES> row[3];
};

template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_shift(const struct bits_planes<PLANES> &row, struct bits_beside<PLANES> *beside)
{
#pragma unroll
    for (uint32_t k = 0; k < PLANES; k++) {
        beside->row[0].plane[k] = row.plane[k] << 1;
        beside->row[1].plane[k] = row.plane[k];
        beside->row[2].plane[k] = row.plane[k] >> 1;
    }
    beside->row[0].inside = row.inside << 1;
    beside->row[1].inside = row.inside;
    beside->row[2].inside = row.inside >> 1;
}

/* Which voxels are as others are that have a level. */
template <uint32_t PLANES>
static __device__ __forceinline__ uint32_t
bits_alike(const struct bits_planes<PLANES> &voxels, const struct bits_planes<PLANES> &others)
{
    uint32_t differ = (voxels.plane[0] ^ others.plane[0]) | ~others.inside;

#pragma unroll
    for (uint32_t k = 1; k < PLANES; k++)
        differ |= voxels.plane[k] ^ others.plane[k];
    return ~differ;
}

/* Compares voxels of three slices, if `DEEP`, else the second's, with another row. */
template <uint32_t PLANES, bool DEEP>
static __device__ __forceinline__ void
bits_compare_row(const struct bits_planes<PLANES> voxels[3], const struct bits_planes<PLANES> &row,
                 int at, struct bits_rows alike[3])
{
    struct bits_beside<PLANES> beside;

    bits_shift(row, &beside);
#pragma unroll
    for (int s = DEEP ? 0 : 1; s < (DEEP ? 3 : 2); s++)
        bits_add(bits_alike(voxels[s], beside.row[0]), bits_alike(voxels[s], beside.row[1]),
                 bits_alike(voxels[s], beside.row[2]), &alike[s].sum[at], &alike[s].carry[at]);
}

/* The same with the second's own row. Pairs are looked at once: those with the slice before were found there,
 * and `ahead` becomes those that are found for the next one. */
template <uint32_t PLANES, bool DEEP>
static __device__ __forceinline__ void
bits_compare_own(const struct bits_planes<PLANES> voxels[3], uint32_t ahead[3],
                 struct bits_rows alike[3])
{
    const uint32_t inside = voxels[1].inside;
    struct bits_beside<PLANES> beside;

    bits_shift(voxels[1], &beside);
    const uint32_t before = bits_alike(voxels[1], beside.row[0]), after = (before & inside) >> 1;

    alike[1].sum[1] = before ^ after;
    alike[1].carry[1] = before & after;
    if (!DEEP)
        return;
    bits_add((ahead[2] & inside) << 1, ahead[1] & inside, (ahead[0] & inside) >> 1,
             &alike[0].sum[1], &alike[0].carry[1]);
#pragma unroll
    for (int x = 0; x < 3; x++)
        ahead[x] = bits_alike(voxels[2], beside.row[x]);
    bits_add(ahead[0], ahead[1], ahead[2], &alike[2].sum[1], &alike[2].carry[1]);
}

/* Numbers of two voxels in a word: word j voxels j and 16 + j, word 8 + j those 8 after. */
struct bits_sums {
    __half2 word[16];
};

static __device__ __forceinline__ __half2
bits_halves(uint32_t word)
{
    return *(const __half2 *)&word;
}

static __device__ __forceinline__ void
bits_unpack(const uint32_t word[8], struct bits_sums *sums)
{
#pragma unroll
    for (int j = 0; j < 8; j++) {
        sums->word[j] = bits_halves(word[j] & BITS_HALVES);
        sums->word[8 + j] = bits_halves(ptx_permute<0x4341>(word[j], 0));
    }
}

/* Of three rows, and of what is beside each voxel; three levels fit a byte. */
static __device__ __forceinline__ void
bits_sum_levels(const uint32_t above[8], const uint32_t own[8], const uint32_t below[8],
                struct bits_sums *sums)
{
    const __half2 none = bits_halves(0);
    struct bits_sums rows;
    uint32_t word[8];

#pragma unroll
    for (int j = 0; j < 8; j++)
        word[j] = above[j] + own[j] + below[j];
    bits_unpack(word, &rows);
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const __half2 before = j > 0 ? rows.word[j - 1] : __lows2half2(none, rows.word[15]);
        const __half2 after = j < 15 ? rows.word[j + 1] : __highs2half2(rows.word[0], none);

        sums->word[j] = __hadd2(__hadd2(before, rows.word[j]), after);
    }
}

/* BITS_BIAS and a number of either sign. */
static __device__ __forceinline__ uint32_t
bits_addend(float number)
{
    return __float_as_uint(fabsf(number) + __uint_as_float(BITS_BIAS));
}

/* Where a window is counted. */
struct bits_counting {
    uint32_t keep
        [2]; /* bytes of the first and of the last word of its levels: whose voxels are its own */
};

/* Each deviation adds BITS_BIAS, too. */
static __device__ __forceinline__ void
bits_count(const struct bits_table &table, const struct bits_counting &counting,
           const struct bits_levels &levels, const struct bits_number &number,
           const struct bits_sums &deviations)
{
    uint32_t alike[8] = {
        0, 0, number.digit[0], number.digit[1], number.digit[2], number.digit[3], number.digit[4],
        0}; /* four times */

    turn_bits(alike);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        uint32_t level = levels.word[j];

        if (j == 0)
            level &= counting.keep[0];
        if (j == 7)
            level &= counting.keep[1];
        const uint32_t low = alike[j] ^ (level << 2 & 0x7C7C7C7C), high = level + table.first;
        const __half2 even = deviations.word[j], odd = deviations.word[8 + j];

        ptx_add_shared<1>(ptx_permute<0x8840>(low, high));
        ptx_add_shared<1>(ptx_permute<0x9951>(low, high));
        ptx_add_shared<1>(ptx_permute<0xAA62>(low, high));
        ptx_add_shared<1>(ptx_permute<0xBB73>(low, high));
        ptx_add_shared(ptx_permute<0x2140>(table.lane, high), bits_addend(__low2float(even)));
        ptx_add_shared(ptx_permute<0x2150>(table.lane, high), bits_addend(__low2float(odd)));
        ptx_add_shared(ptx_permute<0x2160>(table.lane, high), bits_addend(__high2float(even)));
        ptx_add_shared(ptx_permute<0x2170>(table.lane, high), bits_addend(__high2float(odd)));
    }
}

/* What a thread has of its window. */
template <uint32_t PLANES> struct bits_column {
    const uint8_t *window; /* in slice 0 */
    uint32_t shift;        /* of what is loaded */
    uint32_t across;       /* threads to the next row's */
    bool counts;           /* is a window, and no row beside the tile's */
    uint32_t own;          /* voxels that it counts */
    struct bits_counting counting;

    struct bits_planes<PLANES>
        planes[3]; /* of the slice before the last, of the last, of the next */
    struct bits_levels levels[3];
    struct bits_number alike[2]; /* so far: of the slice before, of the last one */
    struct bits_sums sums;       /* of the slice before */
    struct bits_sums deviations; /* of that slice's voxels, so far */
    uint32_t ahead[3];           /* see bits_compare_own */
    uint32_t full[2];  /* voxels that have levels above and below, of the two slices before */
    uint32_t *lacking; /* where it says which of a slice lack neighbours, from the next one on */
};

/* Those that lack neighbours; `full` have such above and below. */
static __device__ __forceinline__ uint32_t
bits_lacking(uint32_t own, uint32_t inside, uint32_t full)
{
    return own & inside & ~(full & full << 1 & full >> 1);
}

/* Sums of a slice: with DEEP they make deviations of the slice before whole, else of this one. */
template <uint32_t PLANES, bool DEEP>
static __device__ __forceinline__ void
bits_deviate(struct bits_column<PLANES> *column, const struct bits_sums &sums,
             struct bits_sums *deviations)
{
    const __half2 all = __half2half2(__int2half_rn(DEEP ? 27 : 9));
    struct bits_sums own;

    bits_unpack(column->levels[1].word, &own);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const __half2 sum = sums.word[i];

        if (!DEEP) {
            deviations->word[i] = __hfma2(own.word[i], all, __hneg2(sum));
            continue;
        }
        deviations->word[i] = __hsub2(column->deviations.word[i], sum);
        column->deviations.word[i] =
            __hfma2(own.word[i], all, __hneg2(__hadd2(column->sums.word[i], sum)));
        column->sums.word[i] = sum;
    }
}

/* Looks at a slice, which is in the slot; with DEEP counts the one before, else this one. */
template <uint32_t PLANES, bool DEEP>
static __device__ __forceinline__ void
bits_step(const struct bits_table &table, const struct bits_slot *slot, bool counted,
          size_t lacking_apart, struct bits_column<PLANES> *column)
{
    const uint32_t above = threadIdx.x - column->across, below = threadIdx.x + column->across;
    struct bits_planes<PLANES> row;
    struct bits_rows rows[3];
    struct bits_sums sums, deviations;
    struct bits_number number;
    uint32_t words[2][8], full = column->planes[1].inside;

    bits_read_planes(slot, above, &row);
    full &= row.inside;
    bits_compare_row<PLANES, DEEP>(column->planes, row, 0, rows);
    bits_compare_own<PLANES, DEEP>(column->planes, column->ahead, rows);
    bits_read_planes(slot, below, &row);
    full &= row.inside;
    bits_compare_row<PLANES, DEEP>(column->planes, row, 2, rows);

    bits_read(slot, 0, above, words[0]);
    bits_read(slot, 0, below, words[1]);
    bits_sum_levels(words[0], column->levels[1].word, words[1], &sums);
    if (DEEP) {
        number = bits_sum(column->alike[0], bits_sum_rows(rows[0]));
        column->alike[0] = bits_sum(column->alike[1], bits_sum_rows(rows[1]));
        column->alike[1] = bits_sum_rows(rows[2]);
    } else
        number = bits_sum_rows(rows[1]);
    bits_deviate<PLANES, DEEP>(column, sums, &deviations);
    if (counted) {
        bits_count(table, column->counting, column->levels[DEEP ? 0 : 1], number, deviations);
        *column->lacking = bits_lacking(column->own, column->planes[DEEP ? 0 : 1].inside,
                                        DEEP ? column->full[0] & full : full);
        column->lacking += lacking_apart;
    }
    column->full[0] = column->full[1] & full;
    column->full[1] = full;
}

/* The next slice becomes the last one. */
template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_go_on(struct bits_column<PLANES> *column)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        column->planes[i] = column->planes[i + 1];
        column->levels[i] = column->levels[i + 1];
    }
}

template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_make_next(const struct bits_loaded &loaded, struct bits_slot *slot,
               struct bits_column<PLANES> *column)
{
    bits_arrange(loaded, column->shift, &column->levels[2]);
    bits_make_planes(column->levels[2], &column->planes[2]);
    bits_hand_over(slot, column->levels[2], column->planes[2]);
}

/* Slices first .. end - 1 of a tile. */
template <uint32_t PLANES, bool DEEP>
static __device__ __forceinline__ void
bits_walk(const struct neighbours_job &job, const struct bits_table &table, struct bits_slot *slots,
          struct bits_column<PLANES> *column, int32_t first, int32_t end)
{
    const int32_t beside = DEEP ? 1 : 0, last = end - 1 + beside;
    const int64_t apart = job.box.slice / (int64_t)sizeof(uint32_t);
    const size_t words = lacking_words(job.box);
    const uint32_t *at =
        (const uint32_t *)(column->window - column->shift / 8) + (first - beside) * apart;
    struct bits_loaded loaded;
    uint32_t slot = 0;

    column->lacking += (size_t)first * words;
    __syncthreads();
    bits_load(at, &loaded);
    bits_make_next(loaded, &slots[slot], column);
    bits_go_on(column);
    at += first - beside < last ? apart : 0;
    bits_load(at, &loaded);
    for (int32_t z = first - beside; z <= last; z++) {
        const uint32_t next = slot + 1 < BITS_SLOTS ? slot + 1 : 0;

        bits_make_next(loaded, &slots[next], column);
        at += z + 1 < last ? apart : 0; /* the last is loaded again, without need */
        bits_load(at, &loaded);
        __syncthreads();
        if (column->counts)
            bits_step<PLANES, DEEP>(table, &slots[slot], z > first || !DEEP, words, column);
        bits_go_on(column);
        slot = next;
    }
}

/* The thread's window of a tile. */
template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_begin(const struct neighbours_job &job, const struct bits_part &part, uint32_t tile,
           struct bits_column<PLANES> *column)
{
    const uint32_t row = threadIdx.x / part.across, inner = part.rows - 2;
    const uint32_t wanted = tile % part.chunks * part.across + threadIdx.x % part.across;
    const uint32_t window = min(wanted, part.windows - 1);
    const int64_t y = (int64_t)(tile / part.chunks * inner + row) - 1;
    const bool starts = window == 0, ends = window == part.windows - 1;

    *column = {};
    column->window = cuda_box_slice<uint8_t>(&job.box, 0) + BOXED_ALIGN +
                     (min(y, job.box.size[1]) + job.box.margin) * job.box.row +
                     window * BOXED_WINDOW;
    column->shift = window % 2 * 16;
    column->lacking = lacking_of(job.box) + (y * part.windows + window);
    column->across = part.across;
    column->counts = wanted == window && row > 0 && row <= inner && y < job.box.size[1];
    column->own = 0x7FFFFFFE | (starts ? 1u : 0) | (ends ? 1u << 31 : 0);
    column->counting.keep[0] = starts ? ~0u : 0xFFFFFF00;
    column->counting.keep[1] = ends ? ~0u : 0x00FFFFFF;
}

/* The block's table into the matrix. */
static __device__ __forceinline__ void
bits_flush(const struct bits_table &table, unsigned long long *counts)
{
    const uint32_t plane = table.levels * table.width;

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < plane; i += BITS_THREADS) {
        const uint32_t alike = table.counters[bits_place_of(i / table.width + 1, i % table.width)];

        if (alike != 0)
            atomicAdd(&counts[TEXTURE_ALIKE * plane + i], (unsigned long long)alike);
    }
    for (uint32_t level = threadIdx.x; level < table.levels; level += BITS_THREADS) {
        const uint32_t *of_level = table.counters + (level + 1) * BITS_PITCH;
        const uint32_t all = level * table.width + table.width - 1;
        uint32_t from = 0, voxels = 0;

        for (uint32_t i = 0; i < BITS_COPIES; i++) {
            from += of_level[BITS_COPIES + (i + level) % BITS_COPIES];
            voxels += of_level[(i + level) % BITS_COPIES];
        }
        from -= voxels * BITS_BIAS;
        if (voxels != 0)
            atomicAdd(&counts[TEXTURE_PRESENT * plane + all], (unsigned long long)voxels);
        if (from != 0)
            atomicAdd(&counts[TEXTURE_DEVIATION * plane + all], (unsigned long long)from);
    }
}

/* A block's, in shared memory from a multiple of BITS_ALIGN on; the slots follow. */
static __host__ __device__ __forceinline__ uint32_t
bits_counters(uint32_t levels)
{
    return (1 + levels) * BITS_PITCH;
}

/* Part blockIdx.x of matrix blockIdx.y: of all slices of the box, or of slice first + blockIdx.y. */
template <uint32_t PLANES, bool DEEP>
static __global__ void
__launch_bounds__(BITS_THREADS) bits_count_part(struct neighbours_job job, struct bits_part part,
                                                int64_t first, unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char bits_shared[];
    const uint32_t lead = (0 - ptx_shared_address(bits_shared)) & (BITS_ALIGN - 1);
    const uint32_t slice = job.per_slice ? (uint32_t)(first + blockIdx.y) : 0;
    const uint32_t slices = job.per_slice ? 1 : (uint32_t)job.box.size[2];
    const uint32_t end = (uint32_t)((uint64_t)part.steps * (blockIdx.x + 1) / gridDim.x);
    const uint32_t counters = bits_counters(job.levels);
    struct bits_column<PLANES> column;
    struct bits_table table;

    table.counters = (uint32_t *)(bits_shared + lead);
    table.levels = job.levels;
    table.width = DEEP ? 27 : 9;
    table.first = (ptx_shared_address(bits_shared) + lead) / BITS_ALIGN * 0x01010101;
    table.lane = BITS_COPIES * 4 + threadIdx.x % 32 * 4;
    struct bits_slot *slots = (struct bits_slot *)(table.counters + counters);

    texture_clear_counters<BITS_THREADS>(table.counters, counters);
    for (uint32_t step = (uint32_t)((uint64_t)part.steps * blockIdx.x / gridDim.x); step < end;) {
        const uint32_t from = step % slices, to = min(slices, from + (end - step));

        bits_begin(job, part, step / slices, &column);
        bits_walk<PLANES, DEEP>(job, table, slots, &column, (int32_t)(slice + from),
                                (int32_t)(slice + to));
        step += to - from;
    }
    bits_flush(table, counts + (size_t)blockIdx.y * job.entries);
}

/* Whether it counts what is asked. */
static bool
bits_take(const struct neighbours_job *job)
{
    return job->distance == 1 && job->alpha == 0 && job->levels <= BITS_LEVELS;
}

static size_t
bits_bytes(const struct neighbours_job *job)
{
    return BITS_SLOTS * sizeof(struct bits_slot) + bits_counters(job->levels) * sizeof(uint32_t) +
           BITS_ALIGN;
}

/* Steps of a block for every processor, and few enough that none of its counters overflows. */
static struct bits_part
bits_cut(const struct neighbours_job *job, size_t matrices, size_t processors, uint32_t *blocks)
{
    const size_t slices = job->per_slice ? 1 : (size_t)job->box.size[2];
    struct bits_part part;
    size_t most;

    part.windows = (uint32_t)boxed_windows(job->box.size[0]);
    part.chunks = (part.windows + 31) / 32;
    part.across = (part.windows + part.chunks - 1) / part.chunks;
    part.rows =
        (uint32_t)texture_least((size_t)BITS_THREADS / part.across, (size_t)job->box.size[1] + 2);
    part.tiles = part.chunks * (uint32_t)((job->box.size[1] + part.rows - 3) / (part.rows - 2));
    part.steps = (uint32_t)(part.tiles * slices);
    most = UINT32_MAX / ((size_t)BITS_LEVELS * job->width * 32 * BITS_THREADS);
    *blocks =
        (uint32_t)texture_most((part.steps + most - 1) / most,
                               texture_least(part.steps, texture_most(1, processors / matrices)));
    return part;
}

/* Calls launch(kernel) with the one that counts the job. */
template <typename Launch>
static cudaError_t
bits_with_kernel(const struct neighbours_job *job, const Launch &launch)
{
    const bool deep = job->deep != 0;

    if (job->levels <= 16)
        return launch(deep ? bits_count_part<4, true> : bits_count_part<4, false>);
    if (job->levels <= 32)
        return launch(deep ? bits_count_part<5, true> : bits_count_part<5, false>);
    return launch(deep ? bits_count_part<6, true> : bits_count_part<6, false>);
}

/* Adds matrices first .. first + count - 1 to counts. */
static cudaError_t
bits_launch(const struct neighbours_job *job, int64_t first, size_t count, size_t processors,
            unsigned long long *counts, cudaStream_t stream)
{
    const size_t shared = bits_bytes(job);
    uint32_t blocks;
    const struct bits_part part = bits_cut(job, count, processors, &blocks);
    const dim3 grid(blocks, (unsigned)count);

    return bits_with_kernel(job, [&](auto *kernel) {
        const cudaError_t status =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);

        if (status == cudaSuccess)
            kernel<<<grid, BITS_THREADS, shared, stream>>>(*job, part, first, counts);
        if (status == cudaSuccess)
            lacking_launch(job, first, count, processors, counts, stream);
        return status;
    });
}

#endif
