/*
 * glcm_pairs.cu - counts the pairs of grey level co-occurrence matrices (Hong 2018) on the GPU.
 *
 * The paper's scheme 2 keeps copies of a matrix in shared memory, so that threads rarely use the
 * same counter. Here every lane of a warp has its own copy while 32 fit. Copies are interleaved:
 * counter b of lane l is word 32 b + l, in bank l for every b. Atomic additions of a warp never
 * conflict, in smooth or rough images. The limits are the instructions per pair and the other
 * memory accesses, so work is shared between pairs where possible.
 *
 * A warp takes a line: 512 codes of a row, 16 per lane, and then those of the next rows in y, or in
 * z if there are enough slices. Addresses are then sums, and the image's edges are checked once per
 * line. The 32 warps of a block take neighbouring lines, so that a warp's neighbour rows are in the
 * cache. Neighbours in x are in the next lane; the last lane reads an extra word. Neighbours are
 * never to the left: the matrix of the opposite offset is counted instead.
 *
 * Two matrices share a block if possible: one uses the low halves of the counters, the other the
 * high halves. Counters are flushed before a half can overflow.
 *
 * Voxels that do not count (beyond the image, excluded, outside the region) have code L. Counters
 * of their pairs are dropped at the end.
 */
#include "kernels/cuda/ptx.cuh"
#include "kernels/texture/texture_cuda.cuh"

enum {
    THREADS = 1024,
    WARP = 32,
    WARPS = THREADS / WARP,
    PER_THREAD = GLCM_PER_THREAD,
    A_SPAN = WARP * PER_THREAD,
    WORDS = PER_THREAD / 4,
    ONE_LOW = 1,
    ONE_HIGH = 1 << 16,
    STEPS_OF_WORDS = 1 << 17, /* max steps before a counter overflows */
    /* max steps before a half overflows */
    STEPS_OF_HALVES = ((1 << 16) - 1) / (WARPS * PER_THREAD),
};

static const uint32_t all_lanes = 0xFFFFFFFF;

struct counting {
    uint32_t own;   /* start of the lane's copy in shared memory */
    uint32_t scale; /* bytes between first codes; in the high half, between second codes */
};

/* A lane's view of a row in a line: 16 codes, and one more word for the first and last lane. */
struct pairs_row {
    const uint8_t *at;
    int32_t edge; /* offset of that word */
    bool there, has_edge;
    uint32_t keep, fill; /* convert words to codes: (word & keep) | fill */
    uint32_t keep_edge, fill_edge;
};

/* As pairs_row for unaligned rows, which may lie partly outside the image. */
struct far_row {
    const uint8_t *at;
    uint32_t there[WORDS], edge; /* all ones, or 0 */
};

struct words {
    uint32_t word[WORDS], edge;
};

/* Codes of 16 voxels and of the next four. */
struct pairs_codes {
    uint32_t word[WORDS + 1];
};

/* Own codes of a line, from `row` on. */
struct pairs_line {
    const uint8_t *row;
    int32_t x, other;
    bool active; /* a lane beyond the row's end only takes part in shuffles */
};

static __device__ __forceinline__ struct words
fetch_row(const struct pairs_row &row)
{
    const uint4 nothing = {0, 0, 0, 0};
    const uint4 loaded = row.there ? __ldg((const uint4 *)row.at) : nothing;
    struct words words = {{loaded.x, loaded.y, loaded.z, loaded.w}, 0};

    if (row.has_edge)
        words.edge = __ldg((const uint32_t *)row.at + WORDS);
    return words;
}

/* Adds the next word: the next lane's first word, or `edge` in the last lane. */
static __device__ __forceinline__ void
join_next(struct pairs_codes *codes, uint32_t edge)
{
    const uint32_t next = __shfl_down_sync(all_lanes, codes->word[0], 1);

    codes->word[WORDS] = threadIdx.x % WARP == WARP - 1 ? edge : next;
}

/* Makes codes. MOVE: also the next word. */
template <bool SHIFTED, bool MOVE>
static __device__ __forceinline__ struct pairs_codes
glcm_pairs_codes_of(const struct glcm_image &image, const struct pairs_row &row, const struct words &words)
{
    const uint32_t shift = SHIFTED ? image.shift : 0;
    struct pairs_codes codes = {};

#pragma unroll
    for (int i = 0; i < WORDS; i++)
        codes.word[i] = (words.word[i] >> shift & row.keep) | row.fill;
    if (MOVE)
        join_next(&codes, (words.edge >> shift & row.keep_edge) | row.fill_edge);
    return codes;
}

/* Returns the neighbours of 16 codes in a row, `x` (0 .. 4) further. */
static __device__ __forceinline__ struct pairs_codes
move(const struct pairs_codes &codes, int32_t x)
{
    struct pairs_codes moved = {};

#pragma unroll
    for (int i = 0; i < WORDS; i++)
        moved.word[i] = __funnelshift_rc(codes.word[i], codes.word[i + 1], 8 * (uint32_t)x);
    return moved;
}

/* Counts four pairs of codes. */
template <uint32_t ADDEND>
static __device__ __forceinline__ void
count_pairs(const struct counting &counting, uint32_t a, uint32_t b)
{
    uint32_t low = __byte_perm(a, b, 0x5140), high = __byte_perm(a, b, 0x7362);

    ptx_add_shared<ADDEND>(__dp2a_lo(counting.scale, low, counting.own));
    ptx_add_shared<ADDEND>(__dp2a_hi(counting.scale, low, counting.own));
    ptx_add_shared<ADDEND>(__dp2a_lo(counting.scale, high, counting.own));
    ptx_add_shared<ADDEND>(__dp2a_hi(counting.scale, high, counting.own));
}

template <uint32_t ADDEND>
static __device__ __forceinline__ void
count_words(const struct counting &counting, const struct pairs_codes &a, const struct pairs_codes &b)
{
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        count_pairs<ADDEND>(counting, a.word[i], b.word[i]);
}

/* Returns whether the warp has no codes to count. */
static __device__ __forceinline__ bool
is_empty(const struct glcm_image &image, const struct pairs_codes &codes)
{
    return __all_sync(all_lanes, ((codes.word[0] ^ image.none) | (codes.word[1] ^ image.none) |
                                  (codes.word[2] ^ image.none) | (codes.word[3] ^ image.none)) == 0);
}

/* Own words, and those of the neighbour rows of matrices ONE and TWO. */
struct fetched_rows {
    struct words row[GLCM_ROWS];
};

template <bool SHIFTED, int ONE, int TWO>
static __device__ __forceinline__ void
count_fetched(const struct glcm_image &image, const struct glcm_set &set, const struct counting &counting,
              const struct pairs_row rows[GLCM_ROWS], const struct fetched_rows &fetched)
{
    constexpr bool moves = ONE == GLCM_OWN || TWO == GLCM_OWN;
    const struct pairs_codes own = glcm_pairs_codes_of<SHIFTED, moves>(image, rows[GLCM_OWN], fetched.row[GLCM_OWN]);
    struct pairs_codes other = own;

    if (!SHIFTED && is_empty(image, own))
        return;
    if (ONE != GLCM_OWN)
        other = glcm_pairs_codes_of<SHIFTED, true>(image, rows[ONE], fetched.row[ONE]);
    count_words<ONE_LOW>(counting, own, move(other, set.x[0]));
    if (TWO == GLCM_NONE)
        return;
    if (TWO != ONE)
        other = glcm_pairs_codes_of<SHIFTED, true>(image, rows[TWO == GLCM_NONE ? 0 : TWO],
                                                   fetched.row[TWO == GLCM_NONE ? 0 : TWO]);
    count_words<ONE_HIGH>(counting, own, move(other, set.x[1]));
}

template <bool SHIFTED, int ONE, int TWO>
static __device__ __forceinline__ void
count_rows(const struct glcm_image &image, const struct glcm_set &set, const struct counting &counting,
           struct pairs_row rows[GLCM_ROWS], uint32_t steps)
{
    constexpr int last = ONE > TWO ? ONE : TWO;
    struct fetched_rows fetched_rows[TWO == GLCM_NONE ? 3 : 2];

    glcm_each_row(
        fetched_rows, steps,
        [&](struct fetched_rows *into) {
#pragma unroll
            for (int i = 0; i <= last; i++) {
                into->row[i] = fetch_row(rows[i]);
                rows[i].at += image.stride;
            }
        },
        [&](const struct fetched_rows &fetched) {
            count_fetched<SHIFTED, ONE, TWO>(image, set, counting, rows, fetched);
        });
}

/* Counts one matrix with neighbours further away in x. */
template <bool SHIFTED>
static __device__ __forceinline__ void
count_far_rows(const struct glcm_image &image, const struct glcm_set &set, const struct counting &counting,
               struct pairs_row own, struct far_row far, uint32_t steps)
{
    const uint32_t shift = SHIFTED ? image.shift : 0;
    struct fetched_rows fetched_rows[2];

    glcm_each_row(
        fetched_rows, steps,
        [&](struct fetched_rows *into) {
            into->row[0] = fetch_row(own);
#pragma unroll
            for (int i = 0; i < WORDS; i++)
                into->row[1].word[i] = far.there[i] != 0 ? __ldg((const uint32_t *)far.at + i) : 0;
            into->row[1].edge = far.edge != 0 ? __ldg((const uint32_t *)far.at + WORDS) : 0;
            own.at += image.stride;
            far.at += image.stride;
        },
        [&](const struct fetched_rows &fetched) {
            const struct pairs_codes a = glcm_pairs_codes_of<SHIFTED, false>(image, own, fetched.row[0]);
            struct pairs_codes b;

            if (!SHIFTED && is_empty(image, a))
                return;
#pragma unroll
            for (int i = 0; i < WORDS; i++)
                b.word[i] =
                    (fetched.row[1].word[i] >> shift & image.mask & far.there[i]) | (image.none & ~far.there[i]);
            join_next(&b, (fetched.row[1].edge >> shift & image.mask & far.edge) | (image.none & ~far.edge));
            count_words<ONE_LOW>(counting, a, move(b, set.x[0] & 3));
        });
}

/* Returns whether the row at `along` of a line has neighbours. Sets *until to the row where that
 * changes, if it is earlier. */
static __device__ __forceinline__ bool
has_neighbours(const struct glcm_image &image, const struct glcm_set &set, int which, const struct pairs_line &line,
               int32_t along, int32_t *until)
{
    /* the neighbours' distance in rows along the lines, and across them */
    const int32_t ahead = image.in_z ? set.z[which] : set.y[which], to = along + ahead;
    const int32_t aside = image.in_z ? set.y[which] : set.z[which];

    if ((uint32_t)(line.other + aside) >= image.others)
        return false;
    if (to < 0)
        *until = min(*until, -ahead);
    else if (to < image.length)
        *until = min(*until, image.length - ahead);
    return (uint32_t)to < (uint32_t)image.length;
}

/* Finds a row of neighbours, or the line's own at step 0. */
static __device__ __forceinline__ struct pairs_row
glcm_pairs_find_row(const struct glcm_image &image, const struct pairs_line &line, const uint8_t *at, bool there)
{
    struct pairs_row row;

    row.at = at;
    row.there = there && line.active;
    row.has_edge = row.there && threadIdx.x % WARP == WARP - 1 && (uint32_t)line.x + PER_THREAD < image.pitch;
    row.keep = row.there ? image.mask : 0;
    row.fill = row.there ? 0 : image.none;
    row.keep_edge = row.has_edge ? image.mask : 0;
    row.fill_edge = row.has_edge ? 0 : image.none;
    return row;
}

static __device__ __forceinline__ struct far_row
find_far_row(const struct glcm_image &image, const struct glcm_set &set, const struct pairs_line &line,
             const uint8_t *at, bool there)
{
    const int32_t aligned = set.x[0] & ~3;
    struct far_row far;

    far.at = at + aligned;
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        far.there[i] = there && line.active && (uint32_t)(line.x + aligned + 4 * i) < image.pitch ? ~0u : 0;
    far.edge = there && line.active && threadIdx.x % WARP == WARP - 1 &&
                       (uint32_t)(line.x + aligned + PER_THREAD) < image.pitch
                   ? ~0u
                   : 0;
    return far;
}

static __device__ __forceinline__ const uint8_t *
glcm_pairs_beside(const struct glcm_image &image, const struct glcm_set &set, int which, const uint8_t *row)
{
    return row + ((int64_t)set.z[which] * image.row_count + set.y[which]) * (int64_t)image.pitch;
}

/* Counts rows first .. until - 1 of a line, which must have the same neighbour rows. */
template <bool SHIFTED, int ONE, int TWO>
static __device__ __forceinline__ void
count_run(const struct glcm_image &image, const struct glcm_set &set, const struct counting &counting,
          const struct pairs_line &line, int32_t first, int32_t until, const bool has[2])
{
    const uint8_t *at = line.row + (size_t)first * image.stride;
    const uint32_t steps = (uint32_t)(until - first);
    struct pairs_row rows[GLCM_ROWS];

    rows[GLCM_OWN] = glcm_pairs_find_row(image, line, at, true);
    if (ONE == GLCM_FAR) {
        count_far_rows<SHIFTED>(image, set, counting, rows[GLCM_OWN],
                                find_far_row(image, set, line, glcm_pairs_beside(image, set, 0, at), has[0]), steps);
        return;
    }
    rows[1] = glcm_pairs_find_row(image, line, glcm_pairs_beside(image, set, ONE == 1 ? 0 : 1, at), has[ONE != 1]);
    rows[2] = glcm_pairs_find_row(image, line, glcm_pairs_beside(image, set, 1, at), has[1]);
    count_rows<SHIFTED, ONE == GLCM_FAR ? 0 : ONE, TWO>(image, set, counting, rows, steps);
}

/* Counts rows with neighbours in the previous or next row, which a step has from the previous step.
 * If they are in the next row, the run goes backwards. Without neighbours, a run is one row. */
template <bool SHIFTED, int ONE, int TWO>
static __device__ __forceinline__ void
count_kept_run(const struct glcm_image &image, const struct glcm_set &set, const struct counting &counting,
               const struct pairs_line &line, int32_t first, int32_t until, const bool has[2])
{
    constexpr int which = ONE == 1 ? 0 : 1;
    const bool backwards = (image.in_z ? set.z[which] : set.y[which]) > 0;
    const int64_t stride = backwards ? -(int64_t)image.stride : (int64_t)image.stride;
    const uint8_t *at = line.row + (size_t)(backwards ? until - 1 : first) * image.stride;
    struct pairs_row row = glcm_pairs_find_row(image, line, at, true);
    const struct pairs_row beside =
        glcm_pairs_find_row(image, line, glcm_pairs_beside(image, set, which, at), has[which]);
    struct pairs_codes other = glcm_pairs_codes_of<SHIFTED, true>(image, beside, fetch_row(beside));
    struct words fetched_words[3];

    glcm_each_row(
        fetched_words, (uint32_t)(until - first),
        [&](struct words *into) {
            *into = fetch_row(row);
            row.at += stride;
        },
        [&](const struct words &fetched) {
            const struct pairs_codes own = glcm_pairs_codes_of<SHIFTED, true>(image, row, fetched);

            if (SHIFTED || !is_empty(image, own)) {
                count_words<ONE_LOW>(counting, own, move(ONE == GLCM_OWN ? own : other, set.x[0]));
                if (TWO != GLCM_NONE)
                    count_words<ONE_HIGH>(counting, own, move(other, set.x[1]));
            }
            other = own;
        });
}

/* Counts steps first .. first + steps - 1 of line `index` of the set, in runs with the same neighbour rows. */
template <bool SHIFTED, int ONE, int TWO, bool KEPT>
static __device__ __forceinline__ void
count_steps(const struct glcm_image &image, const struct glcm_set &set, const struct counting &counting, uint32_t index,
            uint32_t first, uint32_t steps)
{
    const uint32_t rest = index / image.across, part = rest % image.parts;
    const int32_t begin = (int32_t)(part * image.steps + first), last = min(begin + (int32_t)steps, image.length);
    struct pairs_line line;

    line.x = (int32_t)(index % image.across * A_SPAN + threadIdx.x % WARP * PER_THREAD);
    line.other = (int32_t)(rest / image.parts) + (image.in_z ? 0 : set.first_slice);
    line.active = (uint32_t)line.x < image.pitch;
    if (index >= image.lines || (uint32_t)line.other >= image.others)
        return;
    line.row = image.rows + (size_t)line.other * image.pitch * (image.in_z ? 1 : image.row_count) + (size_t)line.x;
    for (int32_t at = begin, until; at < last; at = until) {
        until = last;
        const bool has_one = has_neighbours(image, set, 0, line, at, &until);
        const bool has_two = TWO != GLCM_NONE && has_neighbours(image, set, 1, line, at, &until);
        const bool has[2] = {has_one, has_two};

        if (KEPT && (has_one || has_two))
            count_kept_run<SHIFTED, ONE, TWO>(image, set, counting, line, at, until, has);
        else if (has_one || has_two)
            count_run<SHIFTED, ONE, TWO>(image, set, counting, line, at, until, has);
    }
}

static __device__ __forceinline__ void
glcm_pairs_add_pair(const struct glcm_image &image, const struct glcm_set &set, int which, uint32_t a, uint32_t b,
                    unsigned long long number, unsigned long long *counts)
{
    const uint32_t levels = image.levels;
    const uint32_t at = set.reversed[which] ? b * levels + a : a * levels + b;

    if (number != 0 && a < levels && b < levels)
        atomicAdd(&counts[(size_t)set.matrix[which] * levels * levels + at], number);
}

/* Sums and clears all copies of each counter, low and high halves. Each thread begins at another
 * bank. */
template <bool HALVES>
static __device__ void
glcm_pairs_hand_over(const struct glcm_image &image, const struct glcm_set &set, uint32_t *counters,
                     unsigned long long *counts)
{
    const uint32_t k = image.levels + 1;

    for (uint32_t i = threadIdx.x; i < k * k; i += THREADS) {
        unsigned long long low = 0, high = 0;

        for (uint32_t copy = 0; copy < image.copies; copy++) {
            uint32_t *counter = counters + i * image.copies + ((copy + threadIdx.x) & (image.copies - 1));
            const uint32_t number = *counter;

            low += HALVES ? number & 0xFFFF : number;
            high += HALVES ? number >> 16 : 0;
            *counter = 0;
        }
        glcm_pairs_add_pair(image, set, 0, i / k, i % k, low, counts);
        if (HALVES)
            glcm_pairs_add_pair(image, set, 1, i / k, i % k, high, counts);
    }
}

/* Counts a part of a set's steps, which are numbered through the groups of a block's lines. */
template <bool SHIFTED, int ONE, int TWO, bool KEPT = false>
static __device__ void
glcm_pairs_count_part(const struct glcm_image &image, const struct glcm_set &set, uint32_t part, uint32_t parts,
                      uint32_t *counters, unsigned long long *counts)
{
    const uint32_t at_most = TWO == GLCM_NONE ? STEPS_OF_WORDS : STEPS_OF_HALVES;
    const uint64_t total = (uint64_t)((image.lines + WARPS - 1) / WARPS) * image.steps;
    const uint32_t end = (uint32_t)(total * (part + 1) / parts);
    const uint32_t size = image.copies * (uint32_t)sizeof(uint32_t);
    uint32_t at = (uint32_t)(total * part / parts);
    struct counting counting;

    counting.own = ptx_shared_address(counters) + (threadIdx.x & (image.copies - 1)) * (uint32_t)sizeof(uint32_t);
    /* Adds 0, which the compiler cannot detect: otherwise it would repeat the addition at each
     * dp2a. */
    counting.scale = ((image.levels + 1) * size | size << 16) + (counting.own >> 31);
    while (at < end) {
        const uint32_t stop = min(end, at + at_most);

        while (at < stop) {
            const uint32_t group = at / image.steps, first = at % image.steps;
            const uint32_t steps = min(image.steps - first, stop - at);

            count_steps<SHIFTED, ONE, TWO, KEPT>(image, set, counting, group * WARPS + threadIdx.x / WARP, first,
                                                 steps);
            at += steps;
        }
        __syncthreads();
        glcm_pairs_hand_over<TWO != GLCM_NONE>(image, set, counters, counts);
        __syncthreads();
    }
}

/* Finds the block's set. Either all sets have one block, or few sets have several. */
static __device__ struct glcm_set
find_set(const struct glcm_share &share, const struct glcm_set *sets, uint32_t *found)
{
    if (share.blocks == share.sets)
        return sets[blockIdx.x];
    for (uint32_t i = threadIdx.x; i < share.sets; i += THREADS)
        if (blockIdx.x - sets[i].first_block < sets[i].parts)
            *found = i;
    __syncthreads();
    return sets[*found];
}

/* Each block counts a part of a set. The counts must be 0 initially. */
template <bool SHIFTED>
static __global__ void
__launch_bounds__(THREADS) glcm_pairs_count_sets(const __grid_constant__ struct glcm_image image,
                                                 const __grid_constant__ struct glcm_share share,
                                                 const struct glcm_set *sets, unsigned long long *counts)
{
    extern __shared__ __align__(16) uint32_t counters[];
    const struct glcm_set set = find_set(share, sets, counters);
    const uint32_t part = blockIdx.x - set.first_block, parts = set.parts;
    const uint32_t k = image.levels + 1;

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < k * k * image.copies; i += THREADS)
        counters[i] = 0;
    __syncthreads();
#define COUNT(KIND, ...)                                                                                               \
    case KIND:                                                                                                         \
        glcm_pairs_count_part<SHIFTED, __VA_ARGS__>(image, set, part, parts, counters, counts);                        \
        return
    switch (set.kind) {
        COUNT(GLCM_SINGLE_OWN, GLCM_OWN, GLCM_NONE);
        COUNT(GLCM_SINGLE, 1, GLCM_NONE);
        COUNT(GLCM_SINGLE_KEPT, 1, GLCM_NONE, true);
        COUNT(GLCM_SINGLE_FAR, GLCM_FAR, GLCM_NONE);
        COUNT(GLCM_BOTH_OWN, GLCM_OWN, GLCM_OWN);
        COUNT(GLCM_ONE_OWN, GLCM_OWN, 1);
        COUNT(GLCM_ONE_OWN_KEPT, GLCM_OWN, 1, true);
        COUNT(GLCM_ONE_ROW, 1, 1);
        COUNT(GLCM_ONE_ROW_KEPT, 1, 1, true);
        COUNT(GLCM_TWO_ROWS, 1, 2);
    }
#undef COUNT
}

cudaError_t
glcm_pairs_launch(const struct glcm_image *image, const struct glcm_share *share, const struct glcm_set *sets,
                  unsigned long long *counts, size_t most, cudaStream_t stream)
{
    const size_t k = image->levels + 1, shared = k * k * image->copies * sizeof(uint32_t);
    const auto count = image->shift != 0 ? glcm_pairs_count_sets<true> : glcm_pairs_count_sets<false>;
    const cudaError_t status = cudaFuncSetAttribute(count, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);

    if (status == cudaSuccess)
        count<<<share->blocks, THREADS, shared, stream>>>(*image, *share, sets, counts);
    return status;
}
