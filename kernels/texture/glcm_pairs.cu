/*
 * glcm_pairs.cu - counts the pairs of grey level co-occurrence matrices (Hong 2018) on the GPU.
 *
 * The paper's scheme 2 keeps copies of a matrix in shared memory, so that threads rarely meet at
 * one counter. Here every lane of a warp has a copy of its own as long as 32 fit, and copies are
 * interleaved: counter b of lane l is word 32 b + l, which is bank l whatever b is. An atomic
 * addition of a warp then never has a conflict, on smooth images as on rough ones. What limits is
 * the number of instructions a pair and of accesses beside the counters', so all that can be is
 * done once for many.
 *
 * A warp takes a line: 512 codes of a row, 16 a lane, and then those of the next row in y, or in z
 * where there are slices enough, so that addresses are sums and what is known of the image's edges
 * is known for the line. The 32 warps of a block take neighbouring lines: what one reads as the
 * neighbours of its codes, another one has just read as its own. Neighbours in x are those of the
 * next lane; the last one reads a word more. They are never to the left: a matrix of such an offset
 * is counted as that of the opposite one.
 *
 * Two matrices share a block where they can: one counts in the low halves of the counters, the
 * other in the high ones, and the counters are handed over before a half may overflow.
 *
 * A code that does not count - beyond the image, left out, outside of the region - is L, and the
 * counters of such pairs are dropped in the end.
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
    STEPS_OF_WORDS = 1 << 17,                                 /* before a counter overflows */
    STEPS_OF_HALVES = ((1 << 16) - 1) / (WARPS * PER_THREAD), /* before half of one does */
};

static const uint32_t all_lanes = 0xFFFFFFFF;

struct counting {
    uint32_t own;   /* where the lane's copy begins in shared memory */
    uint32_t scale; /* bytes from one first code to the next; in the high half from one second */
};

/* A row of a line as a lane sees it: 16 codes, and for the first lane and the last a word beside.
 */
struct pairs_row {
    const uint8_t *at;
    int32_t edge; /* where that word is */
    bool there, has_edge;
    uint32_t keep, fill; /* make codes of words: (word & keep) | fill */
    uint32_t keep_edge, fill_edge;
};

/* The same where its beginning is not aligned: not all of it may be in the image. */
struct far_row {
    const uint8_t *at;
    uint32_t there[WORDS], edge; /* all ones, or 0 */
};

struct words {
    uint32_t word[WORDS], edge;
};

/* Of 16 voxels, and of those that follow in the row. */
struct pairs_codes {
    uint32_t word[WORDS + 1];
};

/* A line's own codes, from `row` on. */
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

/* Puts in what follows: the next lane's first word, or for the last lane `edge`. */
static __device__ __forceinline__ void
join_next(struct pairs_codes *codes, uint32_t edge)
{
    const uint32_t next = __shfl_down_sync(all_lanes, codes->word[0], 1);

    codes->word[WORDS] = threadIdx.x % WARP == WARP - 1 ? edge : next;
}

/* Without what follows unless they MOVE. */
template <bool SHIFTED, bool MOVE>
static __device__ __forceinline__ struct pairs_codes
glcm_pairs_codes_of(const struct glcm_image &image, const struct pairs_row &row,
                    const struct words &words)
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

/* The neighbours of 16 codes: those of a row, `x` (0 .. 4) further. */
static __device__ __forceinline__ struct pairs_codes
move(const struct pairs_codes &codes, int32_t x)
{
    struct pairs_codes moved = {};

#pragma unroll
    for (int i = 0; i < WORDS; i++)
        moved.word[i] = __funnelshift_rc(codes.word[i], codes.word[i + 1], 8 * (uint32_t)x);
    return moved;
}

/* Four pairs of codes. */
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
count_words(const struct counting &counting, const struct pairs_codes &a,
            const struct pairs_codes &b)
{
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        count_pairs<ADDEND>(counting, a.word[i], b.word[i]);
}

/* Is there nothing to count in the warp's codes? */
static __device__ __forceinline__ bool
is_empty(const struct glcm_image &image, const struct pairs_codes &codes)
{
    return __all_sync(all_lanes,
                      ((codes.word[0] ^ image.none) | (codes.word[1] ^ image.none) |
                       (codes.word[2] ^ image.none) | (codes.word[3] ^ image.none)) == 0);
}

/* Own words and those of the rows that matrices ONE and TWO have neighbours in. */
struct fetched_rows {
    struct words row[GLCM_ROWS];
};

template <bool SHIFTED, int ONE, int TWO>
static __device__ __forceinline__ void
count_fetched(const struct glcm_image &image, const struct glcm_set &set,
              const struct counting &counting, const struct pairs_row rows[GLCM_ROWS],
              const struct fetched_rows &fetched)
{
    constexpr bool moves = ONE == GLCM_OWN || TWO == GLCM_OWN;
    const struct pairs_codes own =
        glcm_pairs_codes_of<SHIFTED, moves>(image, rows[GLCM_OWN], fetched.row[GLCM_OWN]);
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
count_rows(const struct glcm_image &image, const struct glcm_set &set,
           const struct counting &counting, struct pairs_row rows[GLCM_ROWS], uint32_t steps)
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

/* The same where the other row is that of the step before, which is rows[1] at first. */
template <bool SHIFTED, int ONE, int TWO>
static __device__ __forceinline__ void
count_kept_rows(const struct glcm_image &image, const struct glcm_set &set,
                const struct counting &counting, struct pairs_row rows[GLCM_ROWS], uint32_t steps,
                int64_t stride)
{
    struct pairs_codes other =
        glcm_pairs_codes_of<SHIFTED, true>(image, rows[1], fetch_row(rows[1]));
    struct words fetched_words[3];

    glcm_each_row(
        fetched_words, steps,
        [&](struct words *into) {
            *into = fetch_row(rows[GLCM_OWN]);
            rows[GLCM_OWN].at += stride;
        },
        [&](const struct words &fetched) {
            const struct pairs_codes own =
                glcm_pairs_codes_of<SHIFTED, true>(image, rows[GLCM_OWN], fetched);

            if (SHIFTED || !is_empty(image, own)) {
                count_words<ONE_LOW>(counting, own, move(ONE == GLCM_OWN ? own : other, set.x[0]));
                if (TWO != GLCM_NONE)
                    count_words<ONE_HIGH>(counting, own, move(other, set.x[1]));
            }
            other = own;
        });
}

/* One matrix whose neighbours are further away in x. */
template <bool SHIFTED>
static __device__ __forceinline__ void
count_far_rows(const struct glcm_image &image, const struct glcm_set &set,
               const struct counting &counting, struct pairs_row own, struct far_row far,
               uint32_t steps)
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
            const struct pairs_codes a =
                glcm_pairs_codes_of<SHIFTED, false>(image, own, fetched.row[0]);
            struct pairs_codes b;

            if (!SHIFTED && is_empty(image, a))
                return;
#pragma unroll
            for (int i = 0; i < WORDS; i++)
                b.word[i] = (fetched.row[1].word[i] >> shift & image.mask & far.there[i]) |
                            (image.none & ~far.there[i]);
            join_next(&b, (fetched.row[1].edge >> shift & image.mask & far.edge) |
                              (image.none & ~far.edge));
            count_words<ONE_LOW>(counting, a, move(b, set.x[0] & 3));
        });
}

/* How many rows along the lines neighbours are, and across them. */
static __device__ __forceinline__ int32_t
ahead_of(const struct glcm_image &image, const struct glcm_set &set, int which)
{
    return image.in_z ? set.z[which] : set.y[which];
}

static __device__ __forceinline__ int32_t
aside_of(const struct glcm_image &image, const struct glcm_set &set, int which)
{
    return image.in_z ? set.y[which] : set.z[which];
}

/* Whether the row at `along` of a line has neighbours; *until: where that changes, if before. */
static __device__ __forceinline__ bool
has_neighbours(const struct glcm_image &image, const struct glcm_set &set, int which,
               const struct pairs_line &line, int32_t along, int32_t *until)
{
    const int32_t ahead = ahead_of(image, set, which), to = along + ahead;

    if ((uint32_t)(line.other + aside_of(image, set, which)) >= image.others)
        return false;
    if (to < 0)
        *until = min(*until, -ahead);
    else if (to < image.length)
        *until = min(*until, image.length - ahead);
    return (uint32_t)to < (uint32_t)image.length;
}

/* A row of neighbours beside, or the own one, at step 0. */
static __device__ __forceinline__ struct pairs_row
glcm_pairs_find_row(const struct glcm_image &image, const struct pairs_line &line,
                    const uint8_t *at, bool there)
{
    struct pairs_row row;

    row.at = at;
    row.there = there && line.active;
    row.has_edge =
        row.there && threadIdx.x % WARP == WARP - 1 && (uint32_t)line.x + PER_THREAD < image.pitch;
    row.keep = row.there ? image.mask : 0;
    row.fill = row.there ? 0 : image.none;
    row.keep_edge = row.has_edge ? image.mask : 0;
    row.fill_edge = row.has_edge ? 0 : image.none;
    return row;
}

static __device__ __forceinline__ struct far_row
find_far_row(const struct glcm_image &image, const struct glcm_set &set,
             const struct pairs_line &line, const uint8_t *at, bool there)
{
    const int32_t aligned = set.x[0] & ~3;
    struct far_row far;

    far.at = at + aligned;
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        far.there[i] =
            there && line.active && (uint32_t)(line.x + aligned + 4 * i) < image.pitch ? ~0u : 0;
    far.edge = there && line.active && threadIdx.x % WARP == WARP - 1 &&
                       (uint32_t)(line.x + aligned + PER_THREAD) < image.pitch
                   ? ~0u
                   : 0;
    return far;
}

static __device__ __forceinline__ const uint8_t *
glcm_pairs_beside(const struct glcm_image &image, const struct glcm_set &set, int which,
                  const uint8_t *row)
{
    return row + ((int64_t)set.z[which] * image.row_count + set.y[which]) * (int64_t)image.pitch;
}

/* Rows first .. until - 1 of a line, of which each has the same neighbours. */
template <bool SHIFTED, int ONE, int TWO>
static __device__ __forceinline__ void
count_run(const struct glcm_image &image, const struct glcm_set &set,
          const struct counting &counting, const struct pairs_line &line, int32_t first,
          int32_t until, const bool has[2])
{
    const uint8_t *at = line.row + (size_t)first * image.stride;
    const uint32_t steps = (uint32_t)(until - first);
    struct pairs_row rows[GLCM_ROWS];

    rows[GLCM_OWN] = glcm_pairs_find_row(image, line, at, true);
    if (ONE == GLCM_FAR) {
        count_far_rows<SHIFTED>(
            image, set, counting, rows[GLCM_OWN],
            find_far_row(image, set, line, glcm_pairs_beside(image, set, 0, at), has[0]), steps);
        return;
    }
    rows[1] = glcm_pairs_find_row(image, line, glcm_pairs_beside(image, set, ONE == 1 ? 0 : 1, at),
                                  has[ONE != 1]);
    rows[2] = glcm_pairs_find_row(image, line, glcm_pairs_beside(image, set, 1, at), has[1]);
    count_rows<SHIFTED, ONE == GLCM_FAR ? 0 : ONE, TWO>(image, set, counting, rows, steps);
}

/* The same where neighbours are in the row before or after; where they are in the row after, the
 * run goes backwards. A run without them is one row. */
template <bool SHIFTED, int ONE, int TWO>
static __device__ __forceinline__ void
count_kept_run(const struct glcm_image &image, const struct glcm_set &set,
               const struct counting &counting, const struct pairs_line &line, int32_t first,
               int32_t until, const bool has[2])
{
    constexpr int which = ONE == 1 ? 0 : 1;
    const bool backwards = ahead_of(image, set, which) > 0;
    const uint8_t *at = line.row + (size_t)(backwards ? until - 1 : first) * image.stride;
    struct pairs_row rows[GLCM_ROWS];

    rows[GLCM_OWN] = glcm_pairs_find_row(image, line, at, true);
    rows[1] =
        glcm_pairs_find_row(image, line, glcm_pairs_beside(image, set, which, at), has[which]);
    count_kept_rows<SHIFTED, ONE, TWO>(image, set, counting, rows, (uint32_t)(until - first),
                                       backwards ? -(int64_t)image.stride : (int64_t)image.stride);
}

/* Rows first .. last - 1 along a line, in runs along which the same neighbours are there. */
template <bool SHIFTED, int ONE, int TWO, bool KEPT>
static __device__ __forceinline__ void
glcm_pairs_count_line(const struct glcm_image &image, const struct glcm_set &set,
                      const struct counting &counting, const struct pairs_line &line, int32_t first,
                      int32_t last)
{
    while (first < last) {
        int32_t until = last;
        const bool has_one = has_neighbours(image, set, 0, line, first, &until);
        const bool has_two = TWO != GLCM_NONE && has_neighbours(image, set, 1, line, first, &until);
        const bool has[2] = {has_one, has_two};

        if (KEPT && (has_one || has_two))
            count_kept_run<SHIFTED, ONE, TWO>(image, set, counting, line, first, until, has);
        else if (has_one || has_two)
            count_run<SHIFTED, ONE, TWO>(image, set, counting, line, first, until, has);
        first = until;
    }
}

/* Steps first .. first + steps - 1 of line `index` of the set. */
template <bool SHIFTED, int ONE, int TWO, bool KEPT>
static __device__ __forceinline__ void
count_steps(const struct glcm_image &image, const struct glcm_set &set,
            const struct counting &counting, uint32_t index, uint32_t first, uint32_t steps)
{
    const uint32_t rest = index / image.across, part = rest % image.parts;
    const int32_t begin = (int32_t)(part * image.steps + first);
    struct pairs_line line;

    line.x = (int32_t)(index % image.across * A_SPAN + threadIdx.x % WARP * PER_THREAD);
    line.other = (int32_t)(rest / image.parts) + (image.in_z ? 0 : set.first_slice);
    line.active = (uint32_t)line.x < image.pitch;
    if (index >= image.lines || (uint32_t)line.other >= image.others)
        return;
    line.row = image.rows + (size_t)line.other * image.pitch * (image.in_z ? 1 : image.row_count) +
               (size_t)line.x;
    glcm_pairs_count_line<SHIFTED, ONE, TWO, KEPT>(image, set, counting, line, begin,
                                                   min(begin + (int32_t)steps, image.length));
}

/* All copies of a counter, low halves and high ones, which are 0 afterwards; each thread begins
 * with another bank. */
template <bool HALVES>
static __device__ __forceinline__ void
take_counter(uint32_t *first, uint32_t copies, unsigned long long *low, unsigned long long *high)
{
    *low = *high = 0;
    for (uint32_t i = 0; i < copies; i++) {
        uint32_t *counter = first + ((i + threadIdx.x) & (copies - 1)), number = *counter;

        *low += HALVES ? number & 0xFFFF : number;
        *high += HALVES ? number >> 16 : 0;
        *counter = 0;
    }
}

static __device__ __forceinline__ void
glcm_pairs_add_pair(const struct glcm_image &image, const struct glcm_set &set, int which,
                    uint32_t a, uint32_t b, unsigned long long number, unsigned long long *counts)
{
    const uint32_t levels = image.levels;
    const uint32_t at = set.reversed[which] ? b * levels + a : a * levels + b;

    if (number != 0 && a < levels && b < levels)
        atomicAdd(&counts[(size_t)set.matrix[which] * levels * levels + at], number);
}

template <bool HALVES>
static __device__ void
glcm_pairs_hand_over(const struct glcm_image &image, const struct glcm_set &set, uint32_t *counters,
                     unsigned long long *counts)
{
    const uint32_t k = image.levels + 1;

    for (uint32_t i = threadIdx.x; i < k * k; i += THREADS) {
        unsigned long long low, high;

        take_counter<HALVES>(counters + i * image.copies, image.copies, &low, &high);
        glcm_pairs_add_pair(image, set, 0, i / k, i % k, low, counts);
        if (HALVES)
            glcm_pairs_add_pair(image, set, 1, i / k, i % k, high, counts);
    }
}

/* A part of a set's steps, which are numbered through the groups of a block's lines. */
template <bool SHIFTED, int ONE, int TWO, bool KEPT = false>
static __device__ void
glcm_pairs_count_part(const struct glcm_image &image, const struct glcm_set &set, uint32_t part,
                      uint32_t parts, uint32_t *counters, unsigned long long *counts)
{
    const uint32_t at_most = TWO == GLCM_NONE ? STEPS_OF_WORDS : STEPS_OF_HALVES;
    const uint64_t total = (uint64_t)((image.lines + WARPS - 1) / WARPS) * image.steps;
    const uint32_t end = (uint32_t)(total * (part + 1) / parts);
    const uint32_t size = image.copies * (uint32_t)sizeof(uint32_t);
    uint32_t at = (uint32_t)(total * part / parts);
    struct counting counting;

    counting.own = ptx_shared_address(counters) +
                   (threadIdx.x & (image.copies - 1)) * (uint32_t)sizeof(uint32_t);
    /* Plus 0, which the compiler cannot tell: else it would move it to every dp2a once more. */
    counting.scale = ((image.levels + 1) * size | size << 16) + (counting.own >> 31);
    while (at < end) {
        const uint32_t stop = min(end, at + at_most);

        while (at < stop) {
            const uint32_t group = at / image.steps, first = at % image.steps;
            const uint32_t steps = min(image.steps - first, stop - at);

            count_steps<SHIFTED, ONE, TWO, KEPT>(image, set, counting,
                                                 group * WARPS + threadIdx.x / WARP, first, steps);
            at += steps;
        }
        __syncthreads();
        glcm_pairs_hand_over<TWO != GLCM_NONE>(image, set, counters, counts);
        __syncthreads();
    }
}

/* The block's set. All have one block, or few have several. */
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

/* A block takes a part of a set; the counts are 0 before. */
template <bool SHIFTED>
static __global__ void
__launch_bounds__(THREADS)
    glcm_pairs_count_sets(const __grid_constant__ struct glcm_image image,
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
#define COUNT(KIND, ...)                                                                           \
    case KIND:                                                                                     \
        glcm_pairs_count_part<SHIFTED, __VA_ARGS__>(image, set, part, parts, counters, counts);    \
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
glcm_pairs_allow(size_t shared)
{
    const cudaFuncAttribute most_of = cudaFuncAttributeMaxDynamicSharedMemorySize;
    cudaError_t error = cudaFuncSetAttribute(glcm_pairs_count_sets<true>, most_of, (int)shared);

    return error != cudaSuccess
               ? error
               : cudaFuncSetAttribute(glcm_pairs_count_sets<false>, most_of, (int)shared);
}

bool
glcm_pairs_near(const struct texture_offset *offset)
{
    return offset->x >= 0 && offset->x <= (int32_t)sizeof(uint32_t);
}

void
glcm_pairs_launch(const struct glcm_image *image, const struct glcm_share *share,
                  const struct glcm_set *sets, unsigned long long *counts, cudaStream_t stream)
{
    const size_t k = image->levels + 1, shared = k * k * image->copies * sizeof(uint32_t);
    const auto count =
        image->shift != 0 ? glcm_pairs_count_sets<true> : glcm_pairs_count_sets<false>;

    count<<<share->blocks, THREADS, shared, stream>>>(*image, *share, sets, counts);
}
