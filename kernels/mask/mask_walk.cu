/*
 * mask_walk.cu - balls on the GPU that reach few voxels: each slice of the source is read once, and given to all
 * slices that its balls reach.
 *
 * A warp has a column of words, 32 rows high, and walks along z. Of a slice it makes what it is when it is widened
 * by each span, for its rows and those that the ball reaches from there, in shared memory; and of these the
 * union of the ball's rows at a distance of k slices, the disc of k, for falling k: discs lie in each other, so that
 * one has of the next but the pairs of rows (-j, k) and (j, k) whose span is longer. Slices of the target that
 * are begun wait in registers: disc k is for those k slices before and behind.
 *
 * A disc that is full stays full, and where nothing is in reach there is none: of what is made of tissue, that is most
 * of it. Shrinking is growing the complement, to which all beyond the volume belongs.
 */
#include "kernels/cuda/ptx.cuh"
#include "kernels/mask/mask_cuda.cuh"

#include <utility>

enum {
    WALK_WORDS = 4, /* of a row, that a block makes: a warp each */
    WALK_THREADS = 32 * WALK_WORDS,
    WALK_ROWS = 32,                        /* a lane each */
    WALK_SEEN = WALK_ROWS + 2 * MASK_NEAR, /* rows that they may be reached from: two a lane */
    WALK_SLICES = 32,                      /* that a block makes, unless the volume ends */
    WALK_BATCH = 2, /* slices that are read together, while others are worked on */
    WALK_PITCH =
        WALK_SEEN + 4, /* between words beside each other: 4 by 4 of them lie in all banks */
    WALK_RAW =
        (WALK_WORDS + 2) * WALK_PITCH, /* words of a slice, with a neighbour at either side */
};

static_assert(WALK_SEEN == 64, "two rows a lane");
static_assert(MASK_NEAR < 32, "neighbours are seen by half a word");

/* What a block makes, and from what. */
struct walk_job {
    const uint64_t *source;
    uint64_t *target;
    uint64_t flip;       /* all ones: shrink */
    uint32_t wide, deep; /* blocks along x and z */
};

/* A block's place in the volume, and the slices that it makes. */
struct walk_place {
    int32_t x, y; /* x in words */
    int32_t first, end;
};

/* Beyond the volume lies nothing. */
__device__ static __forceinline__ void
read_slice(const struct mask_grid &grid, const struct mask_walk &ball, const struct walk_job &job,
           const struct walk_place &place, int32_t z, uint64_t *raw)
{
    const int32_t words = (WALK_ROWS + 2 * ball.reach) * (WALK_WORDS + 2);

    for (int32_t i = (int32_t)threadIdx.x; i < words; i += WALK_THREADS) {
        const int32_t word = i % (WALK_WORDS + 2), row = i / (WALK_WORDS + 2);
        const int32_t x = place.x + word - 1, y = place.y + row - ball.reach;
        const bool exists = x >= 0 && x < grid.words_per_row && y >= 0 && y < grid.rows && z >= 0 &&
                            z < grid.slices;
        const int64_t from = ((int64_t)z * grid.rows + y) * grid.words_per_row + x;

        ptx_copy<sizeof(*raw)>(&raw[word * WALK_PITCH + row], job.source + (exists ? from : 0),
                               exists);
    }
}

/* A word, and the halves of its neighbours beside it. */
struct walk_word {
    uint32_t before, low, high, behind;

    __device__ __forceinline__ bool reached(int32_t span) const
    {
        return low || high || before & ~(~0u >> span) || behind & ((1u << span) - 1);
    }

    __device__ __forceinline__ bool full() const
    {
        return (low & high) == ~0u;
    }

    /* With those up to `span` voxels beside it: into every WALK_SEEN-th word. */
    __device__ __forceinline__ void widen(int32_t span, uint64_t *to) const
    {
        uint32_t all_low = low, all_high = high;

        *to = (uint64_t)all_high << 32 | all_low;
#pragma unroll 4
        for (int32_t by = 1; by <= span; by++) {
            all_low |= __funnelshift_l(before, low, by) | __funnelshift_r(low, high, by);
            all_high |= __funnelshift_l(low, high, by) | __funnelshift_r(high, behind, by);
            to[by * WALK_SEEN] = (uint64_t)all_high << 32 | all_low;
        }
    }
};

__device__ static __forceinline__ struct walk_word
seen_word(const struct walk_job &job, const struct mask_walk &ball, const uint64_t *raw,
          int32_t row)
{
    if (row >= WALK_ROWS + 2 * ball.reach)
        return {0, 0, 0, 0};
    const uint64_t before = raw[row] ^ job.flip, own = raw[WALK_PITCH + row] ^ job.flip,
                   behind = raw[2 * WALK_PITCH + row] ^ job.flip;

    return {(uint32_t)(before >> 32), (uint32_t)own, (uint32_t)(own >> 32), (uint32_t)behind};
}

/* What is known of all discs of a slice before they are made. */
enum walk_view { WALK_NOTHING, WALK_ALL, WALK_SOME };

/* Where something is in reach, but not everything there: a warp's widened rows. */
__device__ static __forceinline__ enum walk_view
see_slice(const struct walk_job &job, const struct mask_walk &ball, const uint64_t *raw,
          uint64_t *widened)
{
    const int32_t lane = (int32_t)(threadIdx.x % 32);
    const struct walk_word upper = seen_word(job, ball, raw, lane),
                           lower = seen_word(job, ball, raw, lane + 32);
    const uint64_t full =
        __ballot_sync(~0u, upper.full()) | (uint64_t)__ballot_sync(~0u, lower.full()) << 32;

    if (!__any_sync(~0u, upper.reached(ball.span) || lower.reached(ball.span)))
        return WALK_NOTHING;
    if ((uint32_t)(full >> ball.reach) == ~0u)
        return WALK_ALL;
    upper.widen(ball.span, widened + lane);
    if (lane + 32 < WALK_ROWS + 2 * ball.reach)
        lower.widen(ball.span, widened + lane + 32);
    return WALK_SOME;
}

/* The disc with what it has beyond the one before. */
__device__ static __forceinline__ uint64_t
add_rows(const struct mask_walk &ball, int32_t first, int32_t end, const uint64_t *widened,
         uint64_t disc)
{
    for (int32_t i = first; i < end; i++) {
        const int4 two = ball.rows[i];

        disc |= widened[two.x] | widened[two.y] | widened[two.z] | widened[two.w];
    }
    return disc;
}

/* Gives the discs of the next slice, from `least` on, whose view is this; the slice that is done with it. */
template <int Depth>
__device__ static __forceinline__ uint64_t
give_discs(const struct mask_walk &ball, enum walk_view view, int32_t least,
           const uint64_t *widened, struct mask_begun<Depth> *begun)
{
    uint64_t disc = view == WALK_ALL ? ~UINT64_C(0) : 0, done = 0, behind = 0;
    bool rises = view == WALK_SOME;

#pragma unroll
    for (int k = Depth; k >= 0; k--) {
        if (rises && k >= least) {
            disc = add_rows(ball, ball.ends[k + 1], ball.ends[k], widened, disc);
            rises = !__all_sync(~0u, disc == ~UINT64_C(0));
        }
        begun->give(k, disc, &done, &behind);
    }
    return done;
}

/* What follows each other lies behind each other: places that have much to do are spread over the processors. */
__device__ static __forceinline__ struct walk_place
walk_place_of(const struct mask_grid &grid, const struct walk_job &job)
{
    const uint32_t column = blockIdx.x / job.deep, first = blockIdx.x % job.deep * WALK_SLICES;

    return {(int32_t)(column % job.wide * WALK_WORDS), (int32_t)(column / job.wide * WALK_ROWS),
            (int32_t)first, (int32_t)min((int64_t)first + WALK_SLICES, grid.slices)};
}

/* Slices beyond those that are made give to these but the discs of `least` and more. */
__device__ static __forceinline__ int32_t
least_disc(const struct walk_place &place, int32_t z)
{
    return max(max(place.first - z, z - place.end + 1), 0);
}

template <int Depth>
__global__ void
__launch_bounds__(WALK_THREADS, (Depth > 6 ? 512 : 768) / WALK_THREADS)
    walk(const __grid_constant__ struct mask_grid grid,
         const __grid_constant__ struct mask_walk ball, const __grid_constant__ struct walk_job job)
{
    extern __shared__ uint64_t walk_memory[];
    const struct walk_place place = walk_place_of(grid, job);
    const int32_t warp = (int32_t)(threadIdx.x / 32), lane = (int32_t)(threadIdx.x % 32);
    const int32_t x = place.x + warp, y = place.y + lane;
    const bool exists = x < grid.words_per_row && y < grid.rows;
    const uint64_t own = x == grid.words_per_row - 1 ? grid.tail : ~UINT64_C(0);
    uint64_t *widened =
        walk_memory + 2 * WALK_BATCH * WALK_RAW + warp * (ball.span + 1) * WALK_SEEN;
    const int32_t first = place.first - Depth, end = place.end + Depth;

    struct mask_begun<Depth> begun = {
    };

    const auto read_batch = [&](int32_t z) {
        for (int32_t i = 0; i < WALK_BATCH && z + i < end; i++)
            read_slice(grid, ball, job, place, z + i,
                       walk_memory + (z - first + i) % (2 * WALK_BATCH) * WALK_RAW);
        ptx_copies_end_group();
    };

    read_batch(first);
    for (int32_t z = first; z < end; z++) {
        if ((z - first) % WALK_BATCH == 0) {
            ptx_copies_wait<0>();
            __syncthreads();
            read_batch(z + WALK_BATCH);
        }
        const uint64_t *raw =
            walk_memory + (z - first) % (2 * WALK_BATCH) * WALK_RAW + warp * WALK_PITCH;
        const enum walk_view view = see_slice(job, ball, raw, widened);

        __syncwarp();
        const uint64_t done =
            give_discs(ball, view, least_disc(place, z), widened + ball.reach + lane, &begun);

        if (exists && z - Depth >= place.first)
            job.target[((int64_t)(z - Depth) * grid.rows + y) * grid.words_per_row + x] =
                (done ^ job.flip) & own;
        __syncwarp();
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

bool
mask_walk_can(const struct mask_reach *reach)
{
    return reach->size[0] <= MASK_NEAR && reach->size[1] <= MASK_NEAR &&
           reach->size[2] <= MASK_NEAR;
}

/* Of a ball that fits. */
static void
walk_spans(const struct mask_ball *ball, mask_spans spans)
{
    int64_t entry = 0, span = ball->reach.size[0];

    for (int32_t k = 0; k <= MASK_NEAR + 1; k++)
        for (int32_t j = 0; j <= MASK_NEAR; j++)
            spans[k][j] = -1;
    for (int64_t group = 0; group < ball->groups; group++) {
        for (; entry < ball->ends[group]; entry++) {
            const struct mask_row *row = &ball->rows[entry];

            if (row->j >= 0 && row->k >= 0)
                spans[row->k][row->j] = (int32_t)span;
        }
        span -= ball->widen[group];
    }
}

void
mask_walk_make(const struct mask_ball *ball, struct mask_walk *made)
{
    mask_spans spans;
    int32_t count = 0;
    int2 *rows = (int2 *)made->rows;

    walk_spans(ball, spans);
    made->is_close = mask_near_can(&ball->reach);
    if (made->is_close) {
        mask_near_make(&ball->reach, spans, &made->close);
        return;
    }
    made->span = (int32_t)ball->reach.size[0];
    made->reach = (int32_t)ball->reach.size[1];
    made->depth = (int32_t)ball->reach.size[2];
    made->ends[made->depth + 1] = 0;
    for (int32_t k = made->depth; k >= 0; k--) {
        for (int32_t j = 0; j <= made->reach; j++)
            if (spans[k][j] > spans[k + 1][j])
                rows[count++] = {spans[k][j] * WALK_SEEN - j, spans[k][j] * WALK_SEEN + j};
        if (count % 2 != 0) {
            rows[count] = rows[count - 1];
            count++;
        }
        made->ends[k] = count / 2;
    }
}

int
mask_walk_queue(struct cuda_lane *lane, const struct mask_grid *grid, const struct mask_walk *ball,
                const uint64_t *source, bool shrink, uint64_t *target, struct error *error)
{
    if (ball->is_close)
        return mask_near_queue(lane, grid, &ball->close, source, shrink, target, error);
    const walk_kernel kernel =
        walk_of(ball->depth, std::make_integer_sequence<int, MASK_NEAR + 1>());
    const size_t shared =
        (2 * WALK_BATCH * WALK_RAW + (size_t)WALK_WORDS * (size_t)(ball->span + 1) * WALK_SEEN) *
        sizeof(*source);
    const struct walk_job job = {source, target, shrink ? ~UINT64_C(0) : 0,
                                 (uint32_t)((grid->words_per_row - 1) / WALK_WORDS + 1),
                                 (uint32_t)((grid->slices - 1) / WALK_SLICES + 1)};
    const uint32_t blocks = job.wide * (uint32_t)((grid->rows - 1) / WALK_ROWS + 1) * job.deep;
    struct cuda_device *device = cuda_device_of(&lane->base);

    CUDA_TRY(device, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)shared));
    kernel<<<blocks, WALK_THREADS, shared, lane->work>>>(*grid, *ball, job);
    CUDA_LAUNCHED(device);
    return 0;
}
