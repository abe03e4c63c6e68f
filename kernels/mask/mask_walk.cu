/*
 * mask_walk.cu - small balls on the GPU. A block walks along z with some rows of the volume, whole
 * or in pieces, and the rows in their reach. It makes two slices at a time.
 *
 * A thread has a word of each slice in reach. It writes its windows to shared memory: for each k up
 * to the ball's depth, the union of the 2 k + 1 slices around the current one. The ball is made
 * from windows as in ball.h, from the longest span to 0. The result is widened by a voxel before
 * each next span. A span has the rows at j and -j of the widest window with a k in the ball, unless
 * a longer span already had that window.
 *
 * If the widest window is full, so is the result. If it is empty in all rows in reach, the result
 * is empty. This covers half of typical tissue masks. Shrinking grows the complement within the
 * volume.
 */
#include "kernels/mask/mask_cuda.cuh"

#include <algorithm>
#include <utility>

enum {
    WALK_THREADS = 448, /* at most */
    WALK_WARPS = 8,     /* max warps that make rows */
    WALK_SLICES = 8,    /* slices per block, unless the volume ends; even */
    WALK_WHOLE = 10,    /* max words of a row in one warp; longer rows are split into pieces */
};

static_assert(MASK_NEAR < 64, "beyond a piece nothing is seen that its words in between need");
static_assert((32 / WALK_WHOLE + 2 * MASK_NEAR) * WALK_WHOLE <= WALK_THREADS, "a thread a word");

/* A block's result and source. */
struct walk_job {
    const uint64_t *source;
    uint64_t *target;
    uint64_t flip;        /* all ones: shrink */
    int32_t pieces, deep; /* blocks along x and z */
};

/* A thread's word in consecutive slices. Slices beyond the volume are empty. */
struct walk_source {
    const uint64_t *next;
    int64_t slice; /* words per slice */
    uint32_t z, slices;
    uint64_t flip; /* for existing bits */

    __device__ __forceinline__ uint64_t read()
    {
        const uint64_t word = z < slices ? __ldg(next) ^ flip : 0;

        next += slice;
        z++;
        return word;
    }
};

/* The slices around the two current ones. */
template <int Depth> struct walk_column {
    uint64_t words[(size_t)(2 * Depth + 2)];

    __device__ __forceinline__ void push(ulonglong2 coming)
    {
#pragma unroll
        for (int i = 0; i < 2 * Depth; i++)
            words[i] = words[i + 2];
        words[2 * Depth] = coming.x;
        words[2 * Depth + 1] = coming.y;
    }

    __device__ __forceinline__ void write_windows(ulonglong2 *to, int32_t pitch) const
    {
        ulonglong2 window = {0, 0};

#pragma unroll
        for (int k = 0; k <= Depth; k++) {
            window.x |= words[Depth - k] | words[Depth + k];
            window.y |= words[Depth - k + 1] | words[Depth + k + 1];
            to[k * pitch] = window;
        }
    }
};

/* A lane that makes a word, or provides one to its neighbours. */
struct walk_lane {
    uint64_t own;     /* bits to make */
    bool first, last; /* ends of the part of a row that is read */

    /* Returns the word widened by one voxel to both sides. */
    __device__ __forceinline__ uint64_t widen(uint64_t word) const
    {
        const uint32_t low = (uint32_t)word, high = (uint32_t)(word >> 32);
        const uint32_t lower = __shfl_up_sync(~0u, high, 1), higher = __shfl_down_sync(~0u, low, 1);
        const uint32_t before = first ? 0 : lower, behind = last ? 0 : higher;
        const uint32_t wide_low = low | __funnelshift_l(before, low, 1) | __funnelshift_r(low, high, 1);
        const uint32_t wide_high = high | __funnelshift_l(low, high, 1) | __funnelshift_r(high, behind, 1);

        return (uint64_t)wide_high << 32 | wide_low;
    }
};

/* Makes the lane's words of the result from the windows around `own`. */
__device__ static __forceinline__ ulonglong2
walk_make(const struct mask_walk &ball, const struct walk_lane &lane, const ulonglong2 *own)
{
    const auto at = [&](int32_t away) { return *(const ulonglong2 *)((const char *)own + away); };
    const ulonglong2 widest = at(ball.widest);
    ulonglong2 made = {0, 0};

    if (__all_sync(~0u, ((widest.x & widest.y) | ~lane.own) == ~UINT64_C(0)))
        return {~UINT64_C(0), ~UINT64_C(0)};
    uint64_t near = 0;

    for (int32_t j = -ball.reach;; j += ball.warp_rows) {
        const ulonglong2 there = at(ball.widest + min(j, ball.reach) * ball.words * (int32_t)sizeof(made));

        near |= there.x | there.y;
        if (j >= ball.reach)
            break;
    }
    if (!__any_sync(~0u, near != 0))
        return made;
    for (int32_t span = ball.span, i = 0;; span--) {
        const int32_t end = ball.ends[span];

#pragma unroll 1
        do {
            const int4 two = ball.rows[i];
            const ulonglong2 a = at(two.x), b = at(two.y), c = at(two.z), d = at(two.w);

            made.x |= a.x | b.x;
            made.y |= a.y | b.y;
            made.x |= c.x | d.x;
            made.y |= c.y | d.y;
        } while (++i < end);
        if (span == 0)
            return made;
        made = {lane.widen(made.x), lane.widen(made.y)};
    }
}

template <int Depth>
__global__ void
__launch_bounds__(WALK_THREADS, Depth > 10 ? 1 : 2)
    walk(const __grid_constant__ struct mask_grid grid, const __grid_constant__ struct mask_walk ball,
         const __grid_constant__ struct walk_job job)
{
    extern __shared__ ulonglong2 walk_memory[];
    const int32_t words = (int32_t)grid.words_per_row, rows = (int32_t)grid.rows, slices = (int32_t)grid.slices,
                  slice = words * rows;
    /* Consecutive blocks cover neighbouring slices, which spreads busy places over the
     * multiprocessors. */
    const int32_t block = (int32_t)blockIdx.x, column = block / job.deep, z_first = block % job.deep * WALK_SLICES,
                  z_end = min(z_first + WALK_SLICES, slices);
    const int32_t x_first = column % job.pieces * ball.made - ball.halo, y_first = column / job.pieces * ball.rows_made;
    const int32_t thread = (int32_t)threadIdx.x;
    /* The word that the thread reads. */
    const bool sees = thread < ball.pitch;
    const int32_t seen_x = x_first + thread % ball.words, seen_y = y_first + thread / ball.words - ball.reach;
    const bool exists = sees && seen_x >= 0 && seen_x < words && seen_y >= 0 && seen_y < rows;
    walk_source source = {job.source + (int64_t)(z_first - Depth) * slice + seen_y * words + seen_x, slice,
                          (uint32_t)(z_first - Depth), exists ? (uint32_t)slices : 0,
                          seen_x + 1 == words ? job.flip & grid.tail : job.flip};
    /* The word that it makes. Lanes beyond the rows of a warp duplicate the last one. */
    const int32_t row = thread / 32 * ball.warp_rows, lane = min(thread % 32, ball.warp_rows * ball.words - 1),
                  at = lane % ball.words;
    const int32_t x = x_first + at, y = y_first + row + lane / ball.words;
    const bool has_rows = row < min(ball.rows_made, rows - y_first),
               makes = lane == thread % 32 && at >= ball.halo && at < ball.halo + ball.made && x < words && y < rows;
    const walk_lane own = {!makes ? 0 : x + 1 == words ? grid.tail : ~UINT64_C(0), at == 0, at == ball.words - 1};
    const ulonglong2 *windows = walk_memory + (row + ball.reach) * ball.words + lane;
    uint64_t *target = job.target + (int64_t)z_first * slice + y * words + x;
    walk_column<Depth> seen;

#pragma unroll
    for (int i = 0; i < 2 * Depth + 2; i++)
        seen.words[i] = source.read();
    for (int32_t z = z_first; z < z_end; z += 2) {
        ulonglong2 coming;

        if (sees)
            seen.write_windows(walk_memory + thread, ball.pitch);
        __syncthreads();
        coming.x = source.read();
        coming.y = source.read();
        if (has_rows) {
            const ulonglong2 made = walk_make(ball, own, windows);

            if (makes)
                target[0] = (made.x ^ job.flip) & own.own;
            if (makes && z + 1 < z_end)
                target[slice] = (made.y ^ job.flip) & own.own;
            target += 2 * slice;
        }
        seen.push(coming);
        __syncthreads();
    }
}

/* On the host */

using walk_kernel = void (*)(struct mask_grid, struct mask_walk, struct walk_job);

template <int... Depths>
static walk_kernel
walk_of(int32_t depth, std::integer_sequence<int, Depths...>)
{
    static const walk_kernel walks[] = {walk<Depths>...};

    return walks[depth];
}

/* The widest window at j with rows of a span or longer ones, by span; -1: no window. */
typedef int32_t walk_windows[MASK_NEAR + 1][MASK_NEAR + 2];

/* The ball must fit. */
static void
walk_find_windows(const struct mask_ball *ball, walk_windows windows)
{
    int64_t entry = 0, span = ball->reach.size[0];

    for (int32_t j = 0; j <= MASK_NEAR; j++)
        for (int32_t s = 0; s <= MASK_NEAR + 1; s++)
            windows[j][s] = -1;
    for (int64_t group = 0; group < ball->groups; group++) {
        for (; entry < ball->ends[group]; entry++) {
            const struct mask_row *row = &ball->rows[entry];

            for (int64_t s = 0; s <= span && row->j >= 0; s++)
                windows[row->j][s] = std::max(windows[row->j][s], row->k);
        }
        span -= ball->widen[group];
    }
}

void
mask_walk_make(const struct mask_grid *grid, const struct mask_ball *ball, struct mask_walk *made)
{
    const int32_t size = (int32_t)sizeof(ulonglong2), words = (int32_t)grid->words_per_row;
    int2 *const rows = (int2 *)made->rows;
    walk_windows windows;
    int32_t count = 0;

    walk_find_windows(ball, windows);
    made->span = (int32_t)ball->reach.size[0];
    made->reach = (int32_t)ball->reach.size[1];
    made->depth = (int32_t)ball->reach.size[2];
    made->halo = words > WALK_WHOLE ? 1 : 0;
    made->words = std::min(words, (int32_t)WALK_WHOLE);
    made->made = made->words - 2 * made->halo;
    made->warp_rows = 32 / made->words;
    const int32_t room = WALK_THREADS / made->words - 2 * made->reach;

    made->rows_made = std::min(room / made->warp_rows, (int32_t)WALK_WARPS) * made->warp_rows;
    made->pitch = (made->rows_made + 2 * made->reach) * made->words;
    made->widest = made->depth * made->pitch * size;
    for (int32_t span = made->span; span >= 0; span--) {
        const int32_t before = count;

        for (int32_t j = 0; j <= made->reach; j++) {
            const int32_t at = windows[j][span] * made->pitch, away = j * made->words;

            if (windows[j][span] > windows[j][span + 1])
                rows[count++] = {(at - away) * size, (at + away) * size};
        }
        for (; count % 2 != 0 || count == before; count++)
            rows[count] = rows[count - 1];
        made->ends[span] = count / 2;
    }
}

int
mask_walk_queue(struct cuda_lane *lane, const struct mask_grid *grid, const struct mask_walk *ball,
                const uint64_t *source, bool shrink, uint64_t *target, struct error *error)
{
    const walk_kernel kernel = walk_of(ball->depth, std::make_integer_sequence<int, MASK_NEAR + 1>());
    const size_t shared = (size_t)(ball->depth + 1) * (size_t)ball->pitch * sizeof(ulonglong2);
    const walk_job job = {source, target, shrink ? ~UINT64_C(0) : 0,
                          (int32_t)((grid->words_per_row - 1) / ball->made + 1),
                          (int32_t)((grid->slices - 1) / WALK_SLICES + 1)};
    const int32_t blocks = job.pieces * job.deep * (int32_t)((grid->rows - 1) / ball->rows_made + 1),
                  threads = (ball->pitch + 31) / 32 * 32;
    struct cuda_device *device = cuda_device_of(&lane->base);

    CUDA_TRY(device, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    kernel<<<(unsigned)blocks, (unsigned)threads, shared, lane->work>>>(*grid, *ball, job);
    CUDA_LAUNCHED(device);
    return 0;
}
