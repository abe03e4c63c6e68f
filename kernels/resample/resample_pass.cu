/*
 * resample_pass.cu - orders 0 and 1 on the GPU: a pass, a thread some lines of the grid along the normal.
 *
 * The least that can be moved is each sample read once and each voxel written once. A thread reads of
 * each plane that it comes by one sample (order 0) or four (order 1) a column, once for all voxels
 * between two planes, and writes each voxel. What neighbours read lies in the same sectors. Where it
 * comes by is told once where planes are regular, else of each plane.
 *
 * Parts of a sample are whole numbers of 2^-16. So what order 1 makes of a plane is a whole number of
 * 2^-32 below 2^48 of them: exact, in integers as in doubles. Only along the normal it is rounded;
 * there values are doubles, 2^32 times as large, and round at the same bits.
 */
#include "kernels/cuda/ptx.cuh"
#include "kernels/resample/resample_cuda.cuh"

enum {
    PASS_LANES = 32,
    PASS_ROWS = 8,      /* of threads, a warp each */
    PASS_COLUMNS = 2,   /* of a thread */
    PASS_DEPTH = 64,    /* voxels along the normal of a thread */
    PASS_TOGETHER = 4,  /* of order 0, read before the first is written */
    PASS_BLOCKS = 4,    /* of order 1, of a multiprocessor, that there are registers for */
    PASS_MOST = 65535,  /* blocks along y and z */
    PASS_PARTS = 65536, /* of a sample */
};

#define PASS_HALF  0x1p31   /* half a stored value */
#define PASS_FLOOR 0x1.8p84 /* what is added to it loses 2^-32 and less */

/* As bits: 2^52, and 1.5 * 2^52. What is added to them is a whole number, to the second below zero too. */
#define PASS_WHOLE  UINT64_C(0x4330000000000000)
#define PASS_SIGNED INT64_C(0x4338000000000000)

/* A request, and how far its planes and slices are apart. */
struct pass_task {
    struct resample_job job;
    int64_t from_slice, to_slice;
};

/* A voxel along the normal: its part, the lower plane (-1: outside) and where that begins. */
struct pass_step {
    double part;
    int64_t begin;
    int32_t plane;
};

/* Of a thread: columns PASS_LANES apart, of one row, and so many voxels along the normal; beyond the
 * last column it is the last one again. */
struct pass_lines {
    int64_t i[PASS_COLUMNS], j, first;
    int depth;
};

/* The steps of PASS_DEPTH voxels, the last one again beyond the end: for the block. */
__device__ static __forceinline__ void
pass_stage(const struct pass_task &task, int64_t first, struct pass_step (&steps)[PASS_DEPTH])
{
    for (int i = (int)(threadIdx.y * PASS_LANES + threadIdx.x); i < PASS_DEPTH;
         i += PASS_LANES * PASS_ROWS) {
        const struct resample_pair tap =
            task.job.tables.taps[2][min(first + i, task.job.to.slices - 1)];

        steps[i].part = tap.part;
        steps[i].plane = tap.at;
        steps[i].begin = max(tap.at, 0) * task.from_slice;
    }
}

/* Calls with(struct pass_lines) for all lines of a thread, whose steps are there. */
template <typename With>
__device__ static __forceinline__ void
pass_each_lines(const struct pass_task &task, struct pass_step (&steps)[PASS_DEPTH],
                const With &with)
{
    const struct image_extent &to = task.job.to;
    struct pass_lines own;

#pragma unroll
    for (int c = 0; c < PASS_COLUMNS; c++)
        own.i[c] = min(((int64_t)blockIdx.x * PASS_COLUMNS + c) * PASS_LANES + threadIdx.x,
                       to.columns - 1);
    for (own.first = (int64_t)blockIdx.z * PASS_DEPTH; own.first < to.slices;
         own.first += (int64_t)gridDim.z * PASS_DEPTH) {
        own.depth = (int)min(to.slices - own.first, (int64_t)PASS_DEPTH);
        pass_stage(task, own.first, steps);
        __syncthreads();
        for (own.j = (int64_t)blockIdx.y * PASS_ROWS + threadIdx.y; own.j < to.rows;
             own.j += (int64_t)gridDim.y * PASS_ROWS)
            with(own);
        __syncthreads();
    }
}

/* Where the lines come by on a plane. */
template <typename Value> struct pass_there {
    const Value *near[PASS_COLUMNS];    /* on the first plane */
    uint32_t beside[PASS_COLUMNS], far; /* samples that the next ones are on, where they count */
    int32_t x[PASS_COLUMNS], y;         /* parts */
    bool inside[PASS_COLUMNS];
};

template <typename Value>
__device__ static __forceinline__ struct pass_there<Value>
pass_on_plane(const struct resample_job &job, const struct pass_lines &lines, int64_t plane) {
    const struct resample_pair *const columns = job.tables.taps[0] + plane * job.tables.step[0];
    const struct resample_pair y = job.tables.taps[1][plane * job.tables.step[1] + lines.j];
    struct pass_there<Value> there;

    there.far = y.at >= 0 && y.part > 0 ? (uint32_t)job.from.columns : 0;
    there.y = (int32_t)(y.part * PASS_PARTS);
#pragma unroll
    for (int c = 0; c < PASS_COLUMNS; c++) {
        const struct resample_pair x = columns[lines.i[c]];

        there.inside[c] = x.at >= 0 && y.at >= 0;
        there.near[c] = (const Value *)job.voxels + max(y.at, 0) * job.from.columns + max(x.at, 0);
        there.beside[c] = x.at >= 0 && x.part > 0 ? 1 : 0;
        there.x[c] = (int32_t)(x.part * PASS_PARTS);
    }
    return there;

}

/* As a value of the results' type. */
template <typename Value, typename Result>
__device__ static __forceinline__ Result
pass_kept(int32_t value)

{
    if (std::is_same<Value, Result>::value) /* what lies between values of a type is one of it */
        return (Result)value;
    return resample_kept<Result>(value);
}

/* Where voxels of the lines go, one slice after the other. */
template <typename Result> struct pass_target {
    Result *next[PASS_COLUMNS];

    __device__ __forceinline__ pass_target(const struct pass_task &task,
                                           const struct pass_lines &lines)
    {
#pragma unroll
        for (int c = 0; c < PASS_COLUMNS; c++)
            next[c] = (Result *)task.job.resampled + lines.first * task.to_slice +
                      lines.j * task.job.to.columns + lines.i[c];
    }

    __device__ __forceinline__ void put(const struct pass_task &task,
                                        const Result (&values)[PASS_COLUMNS])
    {
#pragma unroll
        for (int c = 0; c < PASS_COLUMNS; c++) {
            *next[c] = values[c];
            next[c] += task.to_slice;
        }
    }
};

/* ---- order 0 ---- */

template <typename Value, typename Result, bool REGULAR>
__global__ void
__launch_bounds__(PASS_LANES *PASS_ROWS)
    pass_nearest_lines(const __grid_constant__ struct pass_task task)
{
    __shared__ struct pass_step steps[PASS_DEPTH];

    pass_each_lines(task, steps, [&](const struct pass_lines &lines) {
        const Result outside = (Result)task.job.outside;
        struct pass_there<Value> there = pass_on_plane<Value>(task.job, lines, 0);
        struct pass_target<Result> target(task, lines);

        for (int k = 0; k < lines.depth; k += PASS_TOGETHER) {
            Result values[PASS_TOGETHER][PASS_COLUMNS];

#pragma unroll
            for (int i = 0; i < PASS_TOGETHER; i++) {
                const struct pass_step &step = steps[k + i];

                if (!REGULAR)
                    there = pass_on_plane<Value>(task.job, lines, max(step.plane, 0));
#pragma unroll
                for (int c = 0; c < PASS_COLUMNS; c++) {
                    const Value value = __ldg(there.near[c] + step.begin);

                    values[i][c] = step.plane >= 0 && there.inside[c]
                                       ? pass_kept<Value, Result>(value)
                                       : outside;
                }
            }
#pragma unroll
            for (int i = 0; i < PASS_TOGETHER; i++)
                if (k + i < lines.depth)
                    target.put(task, values[i]);
        }
    });
}

/* ---- order 1 ---- */

/* What has been read of a plane, two samples each of two rows. */
template <typename Value> struct pass_seen {
    typedef typename std::conditional<std::is_signed<Value>::value, int32_t, uint32_t>::type wide;
    wide corners[PASS_COLUMNS][4];
};

/* The value of a column, 2^32 times as large: in the lower bits of a double, exact. */
__device__ static __forceinline__ double
pass_mixed(const int32_t (&corners)[4], int32_t x, int32_t y)
{
    const int32_t rest = PASS_PARTS - y;
    const int32_t low = rest * corners[0] + y * corners[2],
                  high = rest * corners[1] + y * corners[3];
    const int64_t mixed = ptx_mad_wide(PASS_PARTS - x, low, ptx_mad_wide(x, high, PASS_SIGNED));

    return __dsub_rn(__longlong_as_double(mixed), 0x1.8p52);
}

__device__ static __forceinline__ double
pass_mixed(const uint32_t (&corners)[4], int32_t x, int32_t y)
{
    const uint32_t part = (uint32_t)y, rest = (uint32_t)(PASS_PARTS - y);
    const uint32_t low = rest * corners[0] + part * corners[2];
    const uint32_t high = rest * corners[1] + part * corners[3];
    const uint64_t mixed =
        ptx_mad_wide((uint32_t)(PASS_PARTS - x), low, ptx_mad_wide((uint32_t)x, high, PASS_WHOLE));

    return __dsub_rn(__longlong_as_double((long long)mixed), 0x1p52);
}

/* The two planes around a voxel, and of the one behind them what has been read. */
template <typename Value, bool REGULAR> struct pass_planes {
    const struct pass_task &task;
    const struct pass_lines &lines;
    struct pass_there<Value> there; /* of `ahead`; where planes are regular, of all */
    struct pass_seen<Value> ahead;
    int32_t at = -2, seen = -1; /* the lower plane; that of `ahead` */
    double lower[PASS_COLUMNS], upper[PASS_COLUMNS];
    bool has_lower[PASS_COLUMNS], has_upper[PASS_COLUMNS];

    __device__ __forceinline__ pass_planes(const struct pass_task &of, const struct pass_lines &own)
        : task(of), lines(own), there(pass_on_plane<Value>(of.job, own, 0))
    {
    }

    __device__ __forceinline__ void look_ahead(int32_t plane, int64_t begin)
    {
        if (!REGULAR)
            there = pass_on_plane<Value>(task.job, lines, plane);
#pragma unroll
        for (int c = 0; c < PASS_COLUMNS; c++) {
            const Value *const near = there.near[c] + begin;
            const Value *const far = near + there.far;

            ahead.corners[c][0] = __ldg(near);
            ahead.corners[c][1] = __ldg(near + there.beside[c]);
            ahead.corners[c][2] = __ldg(far);
            ahead.corners[c][3] = __ldg(far + there.beside[c]);
        }
        seen = plane;
    }

    /* The plane, which has been read or is read now, becomes the upper one. */
    __device__ __forceinline__ void take(int32_t plane, int64_t begin)
    {
        if (seen != plane)
            look_ahead(plane, begin);
#pragma unroll
        for (int c = 0; c < PASS_COLUMNS; c++) {
            upper[c] = pass_mixed(ahead.corners[c], there.x[c], there.y);
            has_upper[c] = there.inside[c];
        }
    }

    /* Between planes `to` and to + 1; the last one is its own upper one. */
    __device__ __forceinline__ void move(int32_t to, int64_t begin)
    {
        const int32_t last = (int32_t)task.job.from.slices - 1;

        if (to != at + 1)
            take(to, begin);
#pragma unroll
        for (int c = 0; c < PASS_COLUMNS; c++) {
            lower[c] = upper[c];
            has_lower[c] = has_upper[c];
        }
        if (to < last)
            take(to + 1, begin + task.from_slice);
        else
            take(to, begin);
        if (to + 2 <= last)
            look_ahead(to + 2, begin + 2 * task.from_slice);
        at = to;
    }

    template <typename Result>
    __device__ __forceinline__ Result voxel(int c, double part, double rest, Result outside) const
    {
        const double mixed = __dadd_rn(__dmul_rn(rest, lower[c]), __dmul_rn(part, upper[c]));

        if (!has_lower[c] || (!REGULAR && part > 0 && !has_upper[c]))
            return outside;
        return pass_kept<Value, Result>(
            __double2loint(__dadd_rd(__dadd_rn(mixed, PASS_HALF), PASS_FLOOR)));
    }
};

template <typename Value, typename Result, bool REGULAR>
__global__ void
__launch_bounds__(PASS_LANES *PASS_ROWS, PASS_BLOCKS)
    pass_linear_lines(const __grid_constant__ struct pass_task task)
{
    __shared__ struct pass_step steps[PASS_DEPTH];

    pass_each_lines(task, steps, [&](const struct pass_lines &lines) {
        const Result outside = (Result)task.job.outside;
        struct pass_planes<Value, REGULAR> planes(task, lines);
        struct pass_target<Result> target(task, lines);

        for (int k = 0; k < lines.depth; k++) {
            const struct pass_step &step = steps[k];
            const double rest = __dsub_rn(1, step.part);
            Result values[PASS_COLUMNS];

            if (step.plane >= 0 && step.plane != planes.at)
                planes.move(step.plane, step.begin);
#pragma unroll
            for (int c = 0; c < PASS_COLUMNS; c++)
                values[c] = step.plane < 0 ? outside : planes.voxel(c, step.part, rest, outside);
            target.put(task, values);
        }
    });
}

/* ---- on the host ---- */

static unsigned
pass_blocks(int64_t count, int64_t each)
{
    const int64_t blocks = (count + each - 1) / each;

    return (unsigned)(blocks < PASS_MOST ? blocks : (int64_t)PASS_MOST);
}

template <typename Value, typename Result, bool REGULAR>
static void
pass_launch(cudaStream_t stream, const struct resample_job *job, int order)
{
    const dim3 blocks(resample_blocks(job->to.columns, PASS_LANES * PASS_COLUMNS),
                      pass_blocks(job->to.rows, PASS_ROWS),
                      pass_blocks(job->to.slices, PASS_DEPTH));
    const dim3 threads(PASS_LANES, PASS_ROWS);
    const struct pass_task task = {*job, job->from.rows * job->from.columns,
                                   job->to.rows * job->to.columns};

    if (order == RESAMPLE_NEAREST)
        pass_nearest_lines<Value, Result, REGULAR><<<blocks, threads, 0, stream>>>(task);
    else
        pass_linear_lines<Value, Result, REGULAR><<<blocks, threads, 0, stream>>>(task);
}

template <typename Value, typename Result>
static void
pass_launch_planes(cudaStream_t stream, const struct resample_job *job, int order)
{
    if (job->tables.step[0] == 0 && job->tables.step[1] == 0)
        pass_launch<Value, Result, true>(stream, job, order);
    else
        pass_launch<Value, Result, false>(stream, job, order);
}

int
resample_queue_pass(struct cuda_lane *lane, const struct resample_job *job, int order,
                    struct error *error)
{
    resample_typed(lane->base.pixel, [&](auto value) {
        resample_typed(job->pixel, [&](auto result) {
            pass_launch_planes<decltype(value), decltype(result)>(lane->work, job, order);
        });
    });
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}
