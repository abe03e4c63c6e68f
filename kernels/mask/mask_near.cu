/*
 * mask_near.cu - balls on the GPU that reach up to MASK_CLOSE voxels along each axis: as in mask_walk.cu, but a warp by
 * itself, whose lanes read their rows from memory.
 *
 * A warp has a column of words, and 32 rows of it, of which it makes those that all rows in reach are among. What
 * its lanes read, with half a word at either side, is widened in shared memory; slices that are begun wait in
 * registers. Rows lie sectors apart, so that what bounds this is how often they are asked for: where rows are whole
 * pairs of words, a word and its neighbour come at once.
 */
#include "kernels/mask/mask_cuda.cuh"

enum {
    NEAR_SLICES = 32, /* that a warp makes, unless the volume ends */
    NEAR_WARPS = 4,   /* of a block */
    NEAR_PITCH = 32,  /* between what one row is, widened by one span and the next */
    NEAR_SHARED = 2 * MASK_CLOSE + (MASK_CLOSE + 1) * NEAR_PITCH, /* words of a warp */
};

struct near_grid {
    int32_t words, rows, slices;
    uint64_t tail;
};

struct near_job {
    const uint64_t *source;
    uint64_t *target;
    uint64_t flip;      /* all ones: shrink */
    int32_t high, deep; /* warps along y and z */
};

/* A word, and the halves of its neighbours beside it. */
struct near_word {
    uint32_t before, low, high, behind;
};

/* What a lane has on its way: a pair of words, and half of the one beside it that is of neither. */
struct near_pair {
    uint4 pair;
    uint32_t beside;
};

/* A lane's row in one slice after another. Beyond the volume lies nothing. */
struct near_row {
    const uint64_t *next;
    int64_t slice; /* words */
    int32_t z, slices;
    bool exists, paired;
    bool odd, first, last; /* the word in its row */
    uint32_t flip;

    __device__ __forceinline__ near_pair read()
    {
        const uint32_t *const at = (const uint32_t *)next;
        near_pair read = {{0, 0, 0, 0}, 0};

        if (exists && z >= 0 && z < slices) {
            if (paired) {
                read.pair = __ldg((const uint4 *)(at - (odd ? 2 : 0)));
            } else {
                const uint2 own = __ldg((const uint2 *)at);

                read.pair = {own.x, own.y, last ? 0 : __ldg(at + 2), 0};
            }
            if (paired && odd ? !last : !first)
                read.beside = __ldg(paired && odd ? at + 2 : at - 1);
        }
        next += slice;
        z++;
        return read;
    }

    __device__ __forceinline__ near_word word_of(const near_pair &read) const
    {
        const uint4 pair = read.pair;

        if (paired && odd)
            return {pair.y ^ flip, pair.z ^ flip, pair.w ^ flip, read.beside ^ flip};
        return {read.beside ^ flip, pair.x ^ flip, pair.y ^ flip, pair.z ^ flip};
    }
};

/* What discs make of a slice. */
enum near_view { NEAR_NOTHING, NEAR_ALL, NEAR_SOME };

template <int Depth> struct near_walk {
    const struct mask_close &ball;
    uint64_t *widened; /* of this lane's row, by each span */
    uint32_t inner;    /* lanes whose rows are made */
    struct mask_begun<Depth> begun;

    /* Widens what only some of is there. */
    __device__ __forceinline__ near_view see(const near_word &own) const
    {
        const uint32_t span = (uint32_t)ball.span;
        const bool reached =
            own.low || own.high || own.before & ~(~0u >> span) || own.behind & ((1u << span) - 1);
        uint32_t low = own.low, high = own.high;

        if (!__any_sync(~0u, reached))
            return NEAR_NOTHING;
        if ((__ballot_sync(~0u, (low & high) == ~0u) & inner) == inner)
            return NEAR_ALL;
        __syncwarp();
        widened[0] = (uint64_t)high << 32 | low;
#pragma unroll
        for (uint32_t by = 1; by <= MASK_CLOSE; by++) {
            if (by > span)
                break;
            low |=
                __funnelshift_l(own.before, own.low, by) | __funnelshift_r(own.low, own.high, by);
            high |=
                __funnelshift_l(own.low, own.high, by) | __funnelshift_r(own.high, own.behind, by);
            widened[by * NEAR_PITCH] = (uint64_t)high << 32 | low;
        }
        __syncwarp();
        return NEAR_SOME;
    }

    /* Gives a slice to those that it reaches, from the farthest disc on; the one that is done with it. */
    __device__ __forceinline__ uint64_t give(near_view view)
    {
        uint64_t disc = view == NEAR_ALL ? ~UINT64_C(0) : 0, done = 0, behind = 0;

#pragma unroll
        for (int k = Depth; k >= 0; k--) {
            if (view == NEAR_SOME) {
#pragma unroll
                for (int i = 0; i <= MASK_CLOSE; i++)
                    if (i < ball.counts[k])
                        disc |= widened[ball.rows[k][i].x] | widened[ball.rows[k][i].y];
            }
            begun.give(k, disc, &done, &behind);
        }
        return done;
    }
};

template <int Depth>
__device__ static __forceinline__ void
near_column(const near_grid &grid, const struct mask_close &ball, const near_job &job,
            int32_t column, uint64_t *shared)
{
    const int32_t lane = (int32_t)(threadIdx.x % 32), made = 32 - 2 * ball.reach;
    const int32_t x = column % grid.words,
                  y = column / grid.words % job.high * made + lane - ball.reach,
                  first = column / grid.words / job.high * NEAR_SLICES;
    const int32_t end = min(first + NEAR_SLICES, grid.slices);
    const int64_t slice = (int64_t)grid.rows * grid.words, at = (int64_t)y * grid.words + x;
    const bool makes = lane >= ball.reach && lane < 32 - ball.reach && y < grid.rows;
    const uint64_t tail = x + 1 == grid.words ? grid.tail : ~UINT64_C(0);
    near_row source = {job.source + (first - Depth) * slice + at,
                       slice,
                       first - Depth,
                       grid.slices,
                       y >= 0 && y < grid.rows,
                       grid.words % 2 == 0,
                       x % 2 != 0,
                       x == 0,
                       x + 1 == grid.words,
                       (uint32_t)job.flip};
    near_walk<Depth> walk = {
        ball, shared + MASK_CLOSE + lane, (~0u >> 2 * ball.reach) << ball.reach, {}};
    uint64_t *target = job.target + first * slice + at;
    near_pair coming[2];

    coming[0] = source.read();
    coming[1] = source.read();
    for (int32_t z = first - Depth; z < end + Depth; z++) {
        const near_word own = source.word_of(coming[0]);

        coming[0] = coming[1];
        coming[1] = source.read();
        const uint64_t done = walk.give(walk.see(own));

        if (z - Depth >= first) {
            if (makes)
                *target = (done ^ job.flip) & tail;
            target += slice;
        }
    }
}

template <int Depth>
__global__ void __launch_bounds__(32 * NEAR_WARPS, 5)
    near(const __grid_constant__ near_grid grid, const __grid_constant__ struct mask_close ball,
         const __grid_constant__ near_job job)
{
    __shared__ uint64_t shared[NEAR_WARPS][NEAR_SHARED];
    const int32_t warp = (int32_t)threadIdx.x / 32,
                  column = (int32_t)blockIdx.x * NEAR_WARPS + warp;

    if (column < grid.words * job.high * job.deep)
        near_column<Depth>(grid, ball, job, column, shared[warp]);
}

using near_kernel = void (*)(near_grid, struct mask_close, near_job);

bool
mask_near_can(const struct mask_reach *reach)
{
    return reach->size[0] <= MASK_CLOSE && reach->size[1] <= MASK_CLOSE &&
           reach->size[2] <= MASK_CLOSE;
}

void
mask_near_make(const struct mask_reach *reach, const mask_spans spans, struct mask_close *made)
{
    *made = {};
    made->span = (int32_t)reach->size[0];
    made->reach = (int32_t)reach->size[1];
    made->depth = (int32_t)reach->size[2];
    for (int32_t k = made->depth; k >= 0; k--)
        for (int32_t j = 0; j <= made->reach; j++)
            if (spans[k][j] > spans[k + 1][j])
                made->rows[k][made->counts[k]++] = {spans[k][j] * NEAR_PITCH - j,
                                                    spans[k][j] * NEAR_PITCH + j};
}

int
mask_near_queue(struct cuda_lane *lane, const struct mask_grid *grid, const struct mask_close *ball,
                const uint64_t *source, bool shrink, uint64_t *target, struct error *error)
{
    static const near_kernel kernels[MASK_CLOSE + 1] = {near<0>, near<1>, near<2>, near<3>,
                                                        near<4>};
    const int32_t made = 32 - 2 * ball->reach;
    const near_grid shape = {(int32_t)grid->words_per_row, (int32_t)grid->rows,
                             (int32_t)grid->slices, grid->tail};
    const near_job job = {source, target, shrink ? ~UINT64_C(0) : 0, (shape.rows - 1) / made + 1,
                          (shape.slices - 1) / NEAR_SLICES + 1};
    const int32_t warps = shape.words * job.high * job.deep;

    kernels
        [ball->depth]<<<(unsigned)((warps - 1) / NEAR_WARPS + 1), 32 * NEAR_WARPS, 0, lane->work>>>(
            shape, *ball, job);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}
