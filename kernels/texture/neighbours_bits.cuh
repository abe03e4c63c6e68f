/*
 * neighbours_bits.cuh - neighbourhoods at distance 1 with alpha 0, of up to BITS_LEVELS levels, for
 * neighbours_cuda.cu. Two voxels are alike if their levels are equal.
 *
 * A thread has a window of 32 adjacent voxels of a row. It counts all but the first and the last,
 * so that shifts need no other thread's words. It moves from slice to slice. A table in shared
 * memory converts the volume's bytes to levels, and these are converted to bit planes: one word per
 * bit of the levels. One operation per plane compares 32 voxels with 32 neighbours. Numbers of
 * alike neighbours are added as words too, one word per binary digit. A thread reads the
 * neighbouring rows from shared memory, where their threads write them.
 *
 * Levels are summed as half-precision multiples of the smallest number, two per word. All integers
 * below 2^11 are exact in this form, and the units for it are otherwise idle.
 *
 * Transposed back to one byte per voxel, level and number of alike neighbours form the address of a
 * counter. Deviations are first counted as if all voxels had all neighbours, with level 0 for
 * missing ones. The thread then corrects the few voxels that lack neighbours, one by one. Voxels
 * without a level count at level 0, which is not read.
 */
#ifndef NOCTULE_KERNELS_TEXTURE_NEIGHBOURS_BITS_CUH
#define NOCTULE_KERNELS_TEXTURE_NEIGHBOURS_BITS_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/texture/neighbours_cuda.cuh"
#include "kernels/texture/turn_cuda.cuh"

#include <cuda_fp16.h>

enum {
    BITS_LEVELS = 64,
    BITS_THREADS = 512,
    BITS_WINDOW = 30, /* voxels between windows; a window has two more */
    /* Slices in shared memory: one to read, one to write, and one that other threads still read. */
    BITS_SLOTS = 3,
    BITS_INSIDE = 5, /* as BITS_SLOTS, plus the two previous ones */
    BITS_LANES = 32,
    BITS_PITCH = 32, /* counters per level and kind */
    BITS_HALVES = 0x00FF00FF,
    BITS_THOUSAND = 0x64006400, /* halves of 1024, whose low bits hold a small added integer */
    BITS_VALUES = 256,
};

/* Partition of a box's rows. */
struct bits_part {
    uint32_t windows;        /* per row */
    uint32_t across, chunks; /* adjacent windows of a tile; tiles per row */
    uint32_t rows, tiles;    /* rows per tile, plus one on both sides; tiles per slice */
    uint32_t steps;          /* of all tiles, to distribute among blocks */
};

/* Bytes of shared memory between levels, and additionally between places: factors for sums of
 * bytes. */
static const uint32_t BITS_OF_LEVEL = BITS_PITCH * sizeof(uint32_t);
static const uint32_t BITS_OF_BOTH = BITS_OF_LEVEL << 8 | sizeof(uint32_t);

/* Returns a tile's steps: one per slice, and half as many more if the box ends above or below,
 * since voxels that lack neighbours take longer. */
static __host__ __device__ __forceinline__ uint32_t
bits_steps_of(const struct bits_part &part, uint32_t tile, uint32_t slices)
{
    const bool outer = tile < part.chunks || tile >= part.tiles - part.chunks;

    return outer ? slices + slices / 2 : slices;
}

/* A window's levels: byte b of word j is voxel 8 b + j. */
struct bits_levels {
    uint32_t word[8];
};

/* Bit k of all voxels' levels, and the voxels that have one. */
template <uint32_t PLANES> struct bits_planes {
    uint32_t plane[PLANES], inside;
};

/* 32 numbers: digit k of each. */
struct bits_number {
    uint32_t digit[5];
};

/* A block's counters by level. Level 0 is not used. */
struct bits_table {
    uint32_t alike[1 + BITS_LEVELS][BITS_PITCH]; /* see bits_place_of */
    /* Deviations per lane, as if voxels had all neighbours. */
    uint32_t copies[1 + BITS_LEVELS][BITS_LANES];
    /* For voxels that lack n of 27, or 9: their number, their deviations, and their part of
     * `copies`. */
    uint32_t lacking[1 + BITS_LEVELS][BITS_PITCH];
    uint32_t corrected[1 + BITS_LEVELS][BITS_PITCH];
    uint32_t removed[1 + BITS_LEVELS][BITS_PITCH];
};

/* Returns the counter's place for a level and number of alike neighbours. Near levels use different
 * banks. */
template <uint32_t PLANES>
static __device__ __forceinline__ uint32_t
bits_place_of(uint32_t level, uint32_t alike)
{
    return alike ^ (level & ((1u << PLANES) - 1) & (BITS_PITCH - 1));
}

/* Levels of 8-bit values. Each lane has a copy in its own bank. */
struct bits_values {
    uint32_t level[BITS_VALUES][BITS_LANES];
};

/* A window in memory. It begins in the lower or the upper half of the first word. */
struct bits_loaded {
    uint32_t word[9];
    uint32_t region[2]; /* voxels in the region, if there is one */
};

/* Looks up levels: byte b of the levels' word j is voxel 8 b + j. */
static __device__ __forceinline__ void
bits_look_up(const struct bits_values *values, const uint32_t word[8], struct bits_levels *levels)
{
    const uint32_t lane = threadIdx.x % BITS_LANES * (uint32_t)sizeof(uint32_t);

#pragma unroll
    for (int j = 0; j < 8; j++) {
        levels->word[j] = 0;
#pragma unroll
        for (int b = 3; b >= 0; b--)
            levels->word[j] = levels->word[j] * 0x100 +
                              *(const uint32_t *)((const char *)values->level +
                                                  __dp4a(word[2 * b + j / 4], BITS_OF_LEVEL << j % 4 * 8, lane));
    }
}

/* Makes planes for levels 1 .. 2^PLANES. The highest level has 0 in all planes. */
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

/* A tile's slice: four pieces per thread, two of levels and two of planes. The last one ends with
 * `inside`. */
struct bits_slot {
    uint4 piece[4][BITS_THREADS];
};

/* Shared memory of a block. */
struct bits_shared {
    struct bits_slot slots[BITS_SLOTS];
    uint32_t inside[BITS_INSIDE][BITS_THREADS]; /* voxels with a level */
    struct bits_values values;
    struct bits_table table;
};

template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_hand_over(struct bits_slot *slot, const struct bits_levels &levels, const struct bits_planes<PLANES> &planes)
{
    uint32_t word[8] = {};

#pragma unroll
    for (uint32_t k = 0; k < PLANES; k++)
        word[k] = planes.plane[k];
    word[7] = planes.inside;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        slot->piece[i][threadIdx.x] =
            make_uint4(levels.word[4 * i], levels.word[4 * i + 1], levels.word[4 * i + 2], levels.word[4 * i + 3]);
        slot->piece[2 + i][threadIdx.x] = make_uint4(word[4 * i], word[4 * i + 1], word[4 * i + 2], word[4 * i + 3]);
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

/* Adds three bits per voxel, with a two-digit sum. */
static __device__ __forceinline__ void
bits_add(uint32_t a, uint32_t b, uint32_t c, uint32_t *sum, uint32_t *carry)
{
    *sum = a ^ b ^ c;
    *carry = (a & b) | (c & (a ^ b));
}

/* Both digits of the number of alike voxels among a row's three, for three rows. */
struct bits_rows {
    uint32_t sum[3], carry[3];
};

/* Returns the number of alike voxels in three rows, at most 9. */
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

/* Partial sums of alike voxels in three slices, after one or two: ones, twos and so on left to
 * add. */
struct bits_first {
    uint32_t one, two[2], four;
};

struct bits_second {
    uint32_t one[2], two[2], four, eight;
};

static __device__ __forceinline__ struct bits_first
bits_sum_first(const struct bits_rows &rows)
{
    struct bits_first sum;

    bits_add(rows.sum[0], rows.sum[1], rows.sum[2], &sum.one, &sum.two[0]);
    bits_add(rows.carry[0], rows.carry[1], rows.carry[2], &sum.two[1], &sum.four);
    return sum;
}

static __device__ __forceinline__ struct bits_second
bits_sum_second(const struct bits_first &first, const struct bits_rows &rows)
{
    struct bits_second sum;
    uint32_t two, four[2];

    bits_add(first.one, rows.sum[0], rows.sum[1], &sum.one[0], &two);
    sum.one[1] = rows.sum[2];
    bits_add(first.two[0], first.two[1], two, &sum.two[0], &four[0]);
    bits_add(rows.carry[0], rows.carry[1], rows.carry[2], &sum.two[1], &four[1]);
    bits_add(first.four, four[0], four[1], &sum.four, &sum.eight);
    return sum;
}

static __device__ __forceinline__ struct bits_number
bits_sum_third(const struct bits_second &second, const struct bits_rows &rows)
{
    struct bits_number number;
    uint32_t one, two[4], four[4], eight[2];

    bits_add(second.one[0], second.one[1], rows.sum[0], &one, &two[0]);
    bits_add(one, rows.sum[1], rows.sum[2], &number.digit[0], &two[1]);
    bits_add(second.two[0], second.two[1], two[0], &two[2], &four[0]);
    bits_add(rows.carry[0], rows.carry[1], rows.carry[2], &two[3], &four[1]);
    bits_add(two[1], two[2], two[3], &number.digit[1], &four[2]);
    bits_add(second.four, four[0], four[1], &four[3], &eight[0]);
    number.digit[2] = four[2] ^ four[3];
    eight[1] = four[2] & four[3];
    bits_add(second.eight, eight[0], eight[1], &number.digit[3], &number.digit[4]);
    return number;
}

/* A row's voxels shifted: before, at and after each. */
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

/* Returns which voxels equal the others that have a level. */
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

/* Compares voxels of three slices (`DEEP`) or of the second one with another row. */
template <uint32_t PLANES, bool DEEP>
static __device__ __forceinline__ void
bits_compare_row(const struct bits_planes<PLANES> voxels[3], const struct bits_planes<PLANES> &row, int at,
                 struct bits_rows alike[3])
{
    struct bits_beside<PLANES> beside;

    bits_shift(row, &beside);
#pragma unroll
    for (int s = DEEP ? 0 : 1; s < (DEEP ? 3 : 2); s++)
        bits_add(bits_alike(voxels[s], beside.row[0]), bits_alike(voxels[s], beside.row[1]),
                 bits_alike(voxels[s], beside.row[2]), &alike[s].sum[at], &alike[s].carry[at]);
}

/* Compares with the second slice's own row, each pair once: pairs with the previous slice come from
 * `ahead`, which is then set for the next slice. */
template <uint32_t PLANES, bool DEEP>
static __device__ __forceinline__ void
bits_compare_own(const struct bits_planes<PLANES> voxels[3], uint32_t ahead[3], struct bits_rows alike[3])
{
    const uint32_t inside = voxels[1].inside;
    struct bits_beside<PLANES> beside;

    bits_shift(voxels[1], &beside);
    const uint32_t before = bits_alike(voxels[1], beside.row[0]), after = (before & inside) >> 1;

    alike[1].sum[1] = before ^ after;
    alike[1].carry[1] = before & after;
    if (!DEEP)
        return;
    bits_add((ahead[2] & inside) << 1, ahead[1] & inside, (ahead[0] & inside) >> 1, &alike[0].sum[1],
             &alike[0].carry[1]);
#pragma unroll
    for (int x = 0; x < 3; x++)
        ahead[x] = bits_alike(voxels[2], beside.row[x]);
    bits_add(ahead[0], ahead[1], ahead[2], &alike[2].sum[1], &alike[2].carry[1]);
}

/* Two numbers per word: word j has voxels j and 16 + j, word 8 + j the voxels 8 further. */
struct bits_sums {
    __half2 word[16];
};

static __device__ __forceinline__ __half2
bits_halves(uint32_t word)
{
    return *(const __half2 *)&word;
}

/* Returns the even or odd bytes of a word. */
static __device__ __forceinline__ __half2
bits_unpack_word(uint32_t word, bool odd)
{
    return bits_halves(odd ? ptx_permute<0x4341>(word, 0) : word & BITS_HALVES);
}

static __device__ __forceinline__ void
bits_unpack(const uint32_t word[8], struct bits_sums *sums)
{
#pragma unroll
    for (int j = 0; j < 8; j++) {
        sums->word[j] = bits_unpack_word(word[j], false);
        sums->word[8 + j] = bits_unpack_word(word[j], true);
    }
}

/* Sums the levels of three rows and each voxel's neighbours in x. Three levels fit in a byte. */
static __device__ __forceinline__ void
bits_sum_levels(const uint32_t above[8], const uint32_t own[8], const uint32_t below[8], struct bits_sums *sums)
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

/* Clears both signs. The halves are then also integers. */
static __device__ __forceinline__ uint32_t
bits_sizes(__half2 numbers)
{
    return *(const uint32_t *)&numbers & 0x7FFF7FFF;
}

template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_count(struct bits_table *table, uint32_t own, const struct bits_levels &levels,
           const struct bits_planes<PLANES> &planes, const struct bits_number &number,
           const struct bits_sums &deviations)
{
    const uint32_t alike = ptx_shared_address(table->alike);
    const uint32_t copy = ptx_shared_address(&table->copies[0][threadIdx.x % BITS_LANES]);
    uint32_t place[8] = {};

#pragma unroll
    for (uint32_t k = 0; k < 5; k++)
        place[k] = k < PLANES ? number.digit[k] ^ planes.plane[k] : number.digit[k];
    turn_bits(place);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        uint32_t level = levels.word[j];

        if (j == 0)
            level &= (own & 1) * 0xFF | 0xFFFFFF00;
        if (j == 7)
            level &= (own >> 31) * 0xFF000000 | 0x00FFFFFF;
        const uint32_t low = ptx_permute<0x5140>(place[j], level), high = ptx_permute<0x7362>(place[j], level);
        const uint32_t even = bits_sizes(deviations.word[j]), odd = bits_sizes(deviations.word[8 + j]);

        ptx_add_shared<1>(alike + __dp4a(low, BITS_OF_BOTH, 0u));
        ptx_add_shared<1>(alike + __dp4a(low, BITS_OF_BOTH << 16, 0u));
        ptx_add_shared<1>(alike + __dp4a(high, BITS_OF_BOTH, 0u));
        ptx_add_shared<1>(alike + __dp4a(high, BITS_OF_BOTH << 16, 0u));
        ptx_add_shared(__dp4a(level, BITS_OF_LEVEL, copy), __dp2a_lo(even, 0x01u, 0u));
        ptx_add_shared(__dp4a(level, BITS_OF_LEVEL << 8, copy), __dp2a_lo(odd, 0x01u, 0u));
        ptx_add_shared(__dp4a(level, BITS_OF_LEVEL << 16, copy), __dp2a_lo(even, 0x0100u, 0u));
        ptx_add_shared(__dp4a(level, BITS_OF_LEVEL << 24, copy), __dp2a_lo(odd, 0x0100u, 0u));
    }
}

/* Corrects the voxels of a window that lack neighbours. */
static __device__ __forceinline__ void
bits_correct(struct bits_table *table, uint32_t lacking, const struct bits_number &lacks,
             const struct bits_levels &levels, const struct bits_sums &deviations)
{
    const uint32_t at = ptx_shared_address(table->lacking);
    const uint32_t apart = (uint32_t)sizeof(table->lacking);
    const __half2 bias = bits_halves(BITS_THOUSAND);
    uint32_t number[8] = {lacks.digit[0], lacks.digit[1], lacks.digit[2], lacks.digit[3], lacks.digit[4]};

    turn_bits(number);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const uint32_t level = levels.word[j];

        if ((lacking >> j & 0x01010101) == 0)
            continue;
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
            const __half2 counted = deviations.word[8 * odd + j];
            const __half2 own = bits_unpack_word(level, odd);
            const __half2 less = __hsub2(bias, bits_halves(odd ? ptx_permute<0x4341>(number[j], BITS_THOUSAND >> 24)
                                                               : ptx_permute<0x4240>(number[j], BITS_THOUSAND >> 24)));
            const uint32_t corrected = bits_sizes(__hfma2(own, less, counted));
            const uint32_t removed = bits_sizes(counted);

#pragma unroll
            for (int upper = 0; upper < 2; upper++) {
                const int voxel = 16 * upper + 8 * odd + j;
                const uint32_t of = 1u << 8 * upper;
                const uint32_t place = at + __dp4a(level, BITS_OF_LEVEL << voxel / 8 * 8,
                                                   __dp4a(number[j], (uint32_t)sizeof(uint32_t) << voxel / 8 * 8, 0u));

                if ((lacking >> voxel & 1) == 0)
                    continue;
                ptx_add_shared<1>(place);
                ptx_add_shared(place + apart, __dp2a_lo(corrected, of, 0u));
                ptx_add_shared(place + 2 * apart, __dp2a_lo(removed, of, 0u));
            }
        }
    }
}

/* A thread's state for its window. */
template <uint32_t PLANES> struct bits_column {
    const uint8_t *window; /* in slice 0 */
    const uint32_t *region;
    uint32_t shift;        /* bits to shift loaded words */
    uint32_t region_shift; /* bits to shift the region's words */
    uint32_t apart;        /* threads to the next row's */
    bool counts;           /* is a window, in a row of the tile itself */
    uint32_t inside;       /* voxels in the box */
    uint32_t own;          /* voxels to count */

    struct bits_planes<PLANES> planes[3]; /* of the slice before the last, of the last, of the next */
    struct bits_second before;            /* alike so far: of the previous slice */
    struct bits_first at;                 /* alike so far: of the last slice */
    struct bits_sums sums;                /* of the previous slice */
    struct bits_sums deviations;          /* of that slice's voxels so far */
    uint32_t ahead[3];                    /* see bits_compare_own */
    uint32_t full[2];                     /* voxels with levels above and below, for the two previous slices */
};

/* Returns voxels that lack neighbours; `full` have levels above and below. */
static __device__ __forceinline__ uint32_t
bits_lacking(uint32_t own, uint32_t inside, uint32_t full)
{
    return own & inside & ~(full & full << 1 & full >> 1);
}

/* Adds a slice's sums. With DEEP this completes the deviations of the previous slice, otherwise of
 * this one. */
template <uint32_t PLANES, bool DEEP>
static __device__ __forceinline__ void
bits_deviate(struct bits_column<PLANES> *column, const struct bits_levels &levels, const struct bits_sums &sums,
             struct bits_sums *deviations)
{
    const __half2 all = __half2half2(__int2half_rn(DEEP ? 27 : 9));
    struct bits_sums own;

    bits_unpack(levels.word, &own);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const __half2 sum = sums.word[i];

        if (!DEEP) {
            deviations->word[i] = __hfma2(own.word[i], all, __hneg2(sum));
            continue;
        }
        deviations->word[i] = __hsub2(column->deviations.word[i], sum);
        column->deviations.word[i] = __hfma2(own.word[i], all, __hneg2(__hadd2(column->sums.word[i], sum)));
        column->sums.word[i] = sum;
    }
}

/* Returns the number of missing neighbours of slice z or, with DEEP, of the previous slice. Rows are
 * `apart` threads from each other. */
template <bool DEEP>
static __device__ __forceinline__ struct bits_number
bits_miss(const struct bits_shared *shared, uint32_t z, uint32_t apart)
{
    struct bits_rows rows[3] = {};

#pragma unroll
    for (uint32_t s = 0; s < (DEEP ? 3 : 1); s++)
#pragma unroll
        for (int y = 0; y < 3; y++) {
            const uint32_t row = shared->inside[(z - s) % BITS_INSIDE][threadIdx.x + (y - 1) * apart];

            /* missing voxels before, at and after each */
            bits_add(~(row << 1), ~row, ~(row >> 1), &rows[s].sum[y], &rows[s].carry[y]);
        }
    return DEEP ? bits_sum_third(bits_sum_second(bits_sum_first(rows[0]), rows[1]), rows[2]) : bits_sum_rows(rows[0]);
}

/* Processes slice number z of those in the slots. Counts the previous slice with DEEP, otherwise
 * this one. */
template <uint32_t PLANES, bool DEEP>
static __device__ __forceinline__ void
bits_step(struct bits_shared *shared, uint32_t z, bool counted, struct bits_column<PLANES> *column)
{
    const struct bits_slot *slot = &shared->slots[z % BITS_SLOTS];
    const uint32_t above = threadIdx.x - column->apart, below = threadIdx.x + column->apart;
    struct bits_planes<PLANES> row;
    struct bits_rows rows[3];
    struct bits_sums sums, deviations;
    struct bits_number number;
    struct bits_levels levels;
    uint32_t words[2][8], full = column->planes[1].inside;

    bits_read_planes(slot, above, &row);
    full &= row.inside;
    bits_compare_row<PLANES, DEEP>(column->planes, row, 0, rows);
    bits_compare_own<PLANES, DEEP>(column->planes, column->ahead, rows);
    bits_read_planes(slot, below, &row);
    full &= row.inside;
    bits_compare_row<PLANES, DEEP>(column->planes, row, 2, rows);

    bits_read(slot, 0, threadIdx.x, levels.word);
    bits_read(slot, 0, above, words[0]);
    bits_read(slot, 0, below, words[1]);
    bits_sum_levels(words[0], levels.word, words[1], &sums);
    if (DEEP) {
        number = bits_sum_third(column->before, rows[0]);
        column->before = bits_sum_second(column->at, rows[1]);
        column->at = bits_sum_first(rows[2]);
    } else
        number = bits_sum_rows(rows[1]);
    bits_deviate<PLANES, DEEP>(column, levels, sums, &deviations);
    if (counted) {
        const int at = DEEP ? 0 : 1;
        const uint32_t lacking =
            bits_lacking(column->own, column->planes[at].inside, DEEP ? column->full[0] & full : full);

        if (DEEP)
            bits_read(&shared->slots[(z - 1) % BITS_SLOTS], 0, threadIdx.x, levels.word);
        if (lacking != 0)
            bits_correct(&shared->table, lacking, bits_miss<DEEP>(shared, z, column->apart), levels, deviations);
        bits_count<PLANES>(&shared->table, column->own, levels, column->planes[at], number, deviations);
    }
    column->full[0] = column->full[1] & full;
    column->full[1] = full;
}

/* Makes the next slice the last one. */
template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_go_on(struct bits_column<PLANES> *column)
{
    column->planes[0] = column->planes[1];
    column->planes[1] = column->planes[2];
}

/* Loads the window in a slice, which may lie outside the box. */
template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_load(const struct neighbours_job &job, const struct bits_column<PLANES> &column, int32_t z,
          struct bits_loaded *loaded)
{
    const int64_t there = min(max(z, 0), (int32_t)job.box.size[2] - 1);
    const uint32_t *at = (const uint32_t *)(column.window + there * job.bytes.slice);

#pragma unroll
    for (int i = 0; i < 9; i++)
        loaded->word[i] = __ldg(at + i);
    if (job.bytes.region) {
        loaded->region[0] = __ldg(column.region + there * job.bytes.region_slice);
        loaded->region[1] = __ldg(column.region + there * job.bytes.region_slice + 1);
    }
}

/* Converts the loaded window of slice z. */
template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_make_next(const struct neighbours_job &job, struct bits_shared *shared, const struct bits_loaded &loaded,
               int32_t z, uint32_t slot, struct bits_column<PLANES> *column)
{
    uint32_t word[8], inside = (uint32_t)z < (uint32_t)job.box.size[2] ? column->inside : 0;
    struct bits_levels levels;

#pragma unroll
    for (int i = 0; i < 8; i++)
        word[i] = __funnelshift_r(loaded.word[i], loaded.word[i + 1], column->shift);
    bits_look_up(&shared->values, word, &levels);
    if (job.bytes.region)
        inside &= __funnelshift_r(loaded.region[0], loaded.region[1], column->region_shift);
    if (inside != ~0u)
#pragma unroll
        for (int j = 0; j < 8; j++)
            levels.word[j] &= (inside >> j & 0x01010101) * 0xFF;
    bits_make_planes(levels, &column->planes[2]);
    bits_hand_over(&shared->slots[slot % BITS_SLOTS], levels, column->planes[2]);
    shared->inside[slot % BITS_INSIDE][threadIdx.x] = column->planes[2].inside;
}

/* Walks through slices first .. end - 1 of a tile. */
template <uint32_t PLANES, bool DEEP>
static __device__ __forceinline__ void
bits_walk(const struct neighbours_job &job, struct bits_shared *shared, struct bits_column<PLANES> *column,
          int32_t first, int32_t end)
{
    const int32_t beside = DEEP ? 1 : 0;
    uint32_t slot = BITS_SLOTS * BITS_INSIDE;
    struct bits_loaded loaded;

    __syncthreads();
    bits_load(job, *column, first - beside, &loaded);
    bits_make_next(job, shared, loaded, first - beside, slot, column);
    bits_go_on(column);
    bits_load(job, *column, first - beside + 1, &loaded);
    for (int32_t z = first - beside; z < end + beside; z++) {
        bits_make_next(job, shared, loaded, z + 1, slot + 1, column);
        bits_load(job, *column, z + 2, &loaded);
        __syncthreads();
        if (column->counts)
            bits_step<PLANES, DEEP>(shared, slot, z > first || !DEEP, column);
        bits_go_on(column);
        slot++;
    }
}

/*
 * Place of a thread's window in the tile. Windows at either end come first, with the neighbouring
 * rows: only these have voxels that lack neighbours in every slice, and thus few warps have them.
 */
struct bits_place {
    uint32_t row, window, apart;
};

static __device__ __forceinline__ struct bits_place
bits_place_of_thread(const struct bits_part &part)
{
    const uint32_t inner = part.across > 2 ? part.across - 2 : 1, thread = threadIdx.x;

    if (thread < part.rows)
        return {thread, 0, 1};
    if (thread < 2 * part.rows && part.across > 1)
        return {thread - part.rows, part.across - 1, 1};
    if (part.across <= 2)
        return {part.rows, 0, 1};
    return {(thread - 2 * part.rows) / inner, (thread - 2 * part.rows) % inner + 1, inner};
}

/* Sets up the thread's window of a tile. */
template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_begin(const struct neighbours_job &job, const struct bits_part &part, uint32_t tile,
           struct bits_column<PLANES> *column)
{
    const struct cuda_bytes &bytes = job.bytes;
    const struct bits_place place = bits_place_of_thread(part);
    const uint32_t inner = part.rows - 2, wanted = tile % part.chunks * part.across + place.window;
    const uint32_t window = min(wanted, part.windows - 1), x = window * BITS_WINDOW;
    const int64_t y = (int64_t)(tile / part.chunks * inner + place.row) - 1;
    const int64_t there = min(max(y, (int64_t)0), job.box.size[1] - 1);
    const uint32_t left = (uint32_t)job.box.size[0] - x;
    const bool starts = window == 0, ends = window == part.windows - 1;

    *column = {};
    column->shift = x % 4 * 8;
    column->window = bytes.first + there * bytes.row + (x & ~3u);
    column->region_shift = (bytes.bit + x) % 32;
    column->region = bytes.region + there * bytes.region_row + (bytes.bit + x) / 32;
    column->apart = place.apart;
    column->counts = wanted == window && place.row > 0 && place.row <= inner && y < job.box.size[1];
    column->inside = there != y ? 0 : left < 32 ? (1u << left) - 1 : ~0u;
    column->own = 0x7FFFFFFE | (starts ? 1u : 0) | (ends ? 1u << 31 : 0);
}

/* Adds the block's table to the matrix. */
template <uint32_t PLANES>
static __device__ __forceinline__ void
bits_flush(const struct neighbours_job &job, const struct bits_table &table, unsigned long long *counts)
{
    const uint32_t plane = job.levels * job.width, all = job.width - 1;

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < plane; i += BITS_THREADS) {
        const uint32_t level = i / job.width + 1, n = i % job.width;
        const uint32_t alike = table.alike[level][bits_place_of<PLANES>(level, n)];
        const uint32_t lacking = table.lacking[level][all - n];

        if (alike != 0)
            atomicAdd(&counts[TEXTURE_ALIKE * plane + i], (unsigned long long)alike);
        if (lacking != 0) {
            atomicAdd(&counts[TEXTURE_PRESENT * plane + i], (unsigned long long)lacking);
            atomicAdd(&counts[TEXTURE_DEVIATION * plane + i], (unsigned long long)table.corrected[level][all - n]);
        }
    }
    for (uint32_t level = 1 + threadIdx.x; level <= job.levels; level += BITS_THREADS) {
        const uint32_t of_all = level * job.width - 1;
        uint32_t from = 0, voxels = 0;

        for (uint32_t i = 0; i < BITS_PITCH; i++) {
            const uint32_t at = (i + level) % BITS_PITCH;

            from += table.copies[level][at] - table.removed[level][at];
            voxels += table.alike[level][at] - table.lacking[level][at];
        }
        if (voxels != 0)
            atomicAdd(&counts[TEXTURE_PRESENT * plane + of_all], (unsigned long long)voxels);
        if (from != 0)
            atomicAdd(&counts[TEXTURE_DEVIATION * plane + of_all], (unsigned long long)from);
    }
}

/* Counts part blockIdx.x of matrix blockIdx.y: all slices of the box, or slice first +
 * blockIdx.y. */
template <uint32_t PLANES, bool DEEP>
static __global__ void
__launch_bounds__(BITS_THREADS)
    bits_count_part(struct neighbours_job job, struct bits_part part, int64_t first, unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char bits_memory[];
    struct bits_shared *shared = (struct bits_shared *)bits_memory;
    const uint32_t slice = job.per_slice ? (uint32_t)(first + blockIdx.y) : 0;
    const uint32_t slices = job.per_slice ? 1 : (uint32_t)job.box.size[2];
    const uint32_t begin = (uint32_t)((uint64_t)part.steps * blockIdx.x / gridDim.x);
    const uint32_t end = (uint32_t)((uint64_t)part.steps * (blockIdx.x + 1) / gridDim.x);
    struct bits_column<PLANES> column;

    for (uint32_t i = threadIdx.x; i < BITS_VALUES * BITS_LANES; i += BITS_THREADS) {
        const uint32_t value = i / BITS_LANES;

        /* the identity if the bytes are levels */
        shared->values.level[value][i % BITS_LANES] = job.bytes.table ? job.bytes.table[value] : value;
    }
    texture_clear_counters<BITS_THREADS>((uint32_t *)&shared->table,
                                         (uint32_t)(sizeof(shared->table) / sizeof(uint32_t)));
    for (uint32_t tile = 0, before = 0; before < end; tile++) {
        const uint32_t steps = bits_steps_of(part, tile, slices);
        const uint32_t from = max(begin, before) - before, to = min(end, before + steps) - before;

        before += steps;
        if (from >= to)
            continue;
        bits_begin(job, part, tile, &column);
        bits_walk<PLANES, DEEP>(job, shared, &column, (int32_t)(slice + (uint64_t)from * slices / steps),
                                (int32_t)(slice + (uint64_t)to * slices / steps));
    }
    bits_flush<PLANES>(job, shared->table, counts + (size_t)blockIdx.y * job.entries);
}

/* Returns whether this file can count the request. */
static bool
bits_take(const struct neighbours_job *job)
{
    return job->distance == 1 && job->alpha == 0 && job->levels <= BITS_LEVELS;
}

/* Distributes steps: blocks for every processor, short enough that no counter overflows. */
static struct bits_part
bits_cut(const struct neighbours_job *job, size_t matrices, size_t processors, uint32_t *blocks)
{
    const size_t slices = job->per_slice ? 1 : (size_t)job->box.size[2];
    const int64_t columns = job->box.size[0];
    struct bits_part part;
    size_t most;

    part.windows = columns > 2 ? (uint32_t)((columns - 2 + BITS_WINDOW - 1) / BITS_WINDOW) : 1;
    part.chunks = (part.windows + 31) / 32;
    part.across = (part.windows + part.chunks - 1) / part.chunks;
    part.rows = (uint32_t)texture_least((size_t)BITS_THREADS / part.across, (size_t)job->box.size[1] + 2);
    part.tiles = (uint32_t)((job->box.size[1] + part.rows - 3) / (part.rows - 2));
    part.rows = (uint32_t)((job->box.size[1] + part.tiles - 1) / part.tiles) + 2; /* equal tiles */
    part.tiles *= part.chunks;
    part.steps = 0;
    for (uint32_t tile = 0; tile < part.tiles; tile++)
        part.steps += bits_steps_of(part, tile, (uint32_t)slices);
    most = UINT32_MAX / ((size_t)BITS_LEVELS * job->width * 32 * BITS_THREADS);
    *blocks = (uint32_t)texture_most((part.steps + most - 1) / most,
                                     texture_least(part.steps, texture_most(1, processors / matrices)));
    return part;
}

/* Adds matrices first .. first + count - 1 to counts. */
static cudaError_t
bits_launch(const struct neighbours_job *job, int64_t first, size_t count, size_t processors,
            unsigned long long *counts, cudaStream_t stream)
{
    const size_t shared = sizeof(struct bits_shared);
    uint32_t blocks;
    const struct bits_part part = bits_cut(job, count, processors, &blocks);
    const dim3 grid(blocks, (unsigned)count);
    const bool deep = job->deep != 0;
    auto *const of_16 = deep ? bits_count_part<4, true> : bits_count_part<4, false>;
    auto *const of_32 = deep ? bits_count_part<5, true> : bits_count_part<5, false>;
    auto *const of_64 = deep ? bits_count_part<6, true> : bits_count_part<6, false>;

    return neighbours_launch(job->levels <= 16   ? of_16
                             : job->levels <= 32 ? of_32
                                                 : of_64,
                             grid, BITS_THREADS, shared, shared, stream, *job, part, first, counts);
}

#endif
