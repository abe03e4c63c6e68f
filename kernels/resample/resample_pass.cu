/*
 * resample_pass.cu - orders 0 and 1 on the GPU in one pass. A thread handles some lines of the grid
 * along the normal.
 *
 * The min traffic reads each sample once and writes each voxel once. A thread reads one sample
 * (order 0) or four (order 1) per column of each plane that it passes, once for all voxels between
 * two planes. Neighbouring threads read the same sectors. The position on a plane is computed once
 * for regular planes, otherwise per plane.
 *
 * Samples become doubles through the bits of a number above 2^52, which takes one exact operation.
 */
#include "kernels/cuda/ptx.cuh"
#include "kernels/resample/resample_cuda.cuh"

enum {
    PASS_LANES = 32,
    PASS_ROWS = 8,     /* rows of threads, one warp each */
    PASS_COLUMNS = 2,  /* columns per thread */
    PASS_DEPTH = 64,   /* voxels along the normal per thread */
    PASS_BLOCKS = 4,   /* order 1: per multiprocessor, by registers */
    PASS_MOST = 65535, /* max blocks along y and z */
};

/* A request, and the distances of its planes and slices. */
struct pass_task {
    struct resample_job job;
    int64_t from_slice, to_slice;
};

/* A voxel along the normal: its parts of two planes, and the lower plane (-1: outside). */
struct __align__(16) pass_step
{
    double part, rest;
    int32_t plane;
};

/* A thread's lines: columns PASS_LANES apart, of one row, and voxels along the normal. Beyond the
 * last column, the last one is repeated but not written. */
struct pass_lines {
    int64_t i[PASS_COLUMNS], j, first;
    bool exists[PASS_COLUMNS];
    int depth;
};

/* Prepares the steps of PASS_DEPTH voxels for the block, repeating the last one at the end. */
__device__ static __forceinline__ void
pass_stage(const struct pass_task &task, int64_t first, struct pass_step (&steps)[PASS_DEPTH])
{
    for (int i = (int)(threadIdx.y * PASS_LANES + threadIdx.x); i < PASS_DEPTH; i += PASS_LANES * PASS_ROWS) {
        const struct resample_pair tap = task.job.tables.taps[2][min(first + i, task.job.to.slices - 1)];

        steps[i].part = tap.part;
        steps[i].rest = __dsub_rn(1, tap.part);
        steps[i].plane = tap.at;
    }
}

/* Calls with(struct pass_lines) for all lines of a thread, after their steps are ready. */
template <typename With>
__device__ static __forceinline__ void
pass_each_lines(const struct pass_task &task, struct pass_step (&steps)[PASS_DEPTH], const With &with)
{
    const struct image_extent &to = task.job.to;
    struct pass_lines own;

#pragma unroll
    for (int c = 0; c < PASS_COLUMNS; c++) {
        const int64_t i = ((int64_t)blockIdx.x * PASS_COLUMNS + c) * PASS_LANES + threadIdx.x;

        own.i[c] = min(i, to.columns - 1);
        own.exists[c] = i < to.columns;
    }
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

/* Position of the lines on a plane. */
template <typename Value> struct pass_there {
    const Value *near[PASS_COLUMNS];    /* on the first plane */
    uint32_t beside[PASS_COLUMNS], far; /* offsets of the next samples, where they count */
    double x[PASS_COLUMNS][2], y[2];    /* parts of both */
    bool inside[PASS_COLUMNS];
};

/* PAIRS: every row has a next sample, also at the last one. */
template <typename Value, bool PAIRS>
__device__ static __forceinline__ struct pass_there<Value>
pass_on_plane(const struct resample_job &job, const struct pass_lines &lines, int64_t plane) {
    const struct resample_pair *const columns = job.tables.taps[0] + plane * job.tables.step[0];
    const struct resample_pair y = job.tables.taps[1][plane * job.tables.step[1] + lines.j];
    const int32_t last = (int32_t)job.from.columns - 1;
    struct pass_there<Value> there;

    there.far = y.at >= 0 && y.part > 0 ? (uint32_t)job.from.columns : 0;
    there.y[1] = y.part;
    there.y[0] = __dsub_rn(1, y.part);
#pragma unroll
    for (int c = 0; c < PASS_COLUMNS; c++) {
        const struct resample_pair x = columns[lines.i[c]];
        const bool is_next = PAIRS && x.at == last;

        there.inside[c] = x.at >= 0 && y.at >= 0;
        there.near[c] = (const Value *)job.voxels + max(y.at, 0) * job.from.columns + max(x.at, 0) - is_next;
        there.beside[c] = PAIRS || (x.at >= 0 && x.part > 0) ? 1 : 0;
        there.x[c][1] = is_next ? 1 : x.part;
        there.x[c][0] = __dsub_rn(1, there.x[c][1]);
    }
    return there;
}

/* Destination of the lines' voxels, slice by slice. */
template <typename Result>
struct pass_target {

    Result *next; /* of the first column */

    __device__ __forceinline__ pass_target(const struct pass_task &task, const struct pass_lines &lines)
        : next((Result *)task.job.resampled + lines.first * task.to_slice + lines.j * task.job.to.columns + lines.i[0])
    {
    }

    __device__ __forceinline__ void put(const struct pass_task &task, const struct pass_lines &lines,
                                        const Result (&values)[PASS_COLUMNS])
    {
#pragma unroll
        for (int c = 0; c < PASS_COLUMNS; c++)
            ptx_store(next + c * PASS_LANES, values[c], lines.exists[c]);
        next += task.to_slice;
    }
};

/* Returns the same samples of another plane. Computes the address explicitly: the compiler would
 * start from the volume's beginning each time. */
template <bool REGULAR, typename Value>
__device__ static __forceinline__ const Value *
pass_at(const struct pass_task &task, const Value *on_first, int32_t plane)
{
    const uint32_t slice = (uint32_t)task.from_slice * (uint32_t)sizeof(Value);

    if (REGULAR)
        return (const Value *)ptx_mad_wide((uint32_t)plane, slice, (uint64_t)on_first);
    return on_first + plane * task.from_slice;
}

/* ---- order 0 ---- */

/* Samples on a plane, for all voxels above it, and on the next plane, loading meanwhile. */
template <typename Value, typename Result, bool REGULAR> struct pass_samples {
    const struct pass_task &task;
    const struct pass_lines &lines;
    const Result outside;
    struct pass_there<Value> there; /* of `ahead`; with regular planes, of all */
    Value ahead[PASS_COLUMNS];
    Result values[PASS_COLUMNS];
    int32_t at = -2; /* no plane */

    __device__ __forceinline__ pass_samples(const struct pass_task &of, const struct pass_lines &own, Result beyond)
        : task(of), lines(own), outside(beyond), there(pass_on_plane<Value, false>(of.job, own, 0))
    {
    }

    __device__ __forceinline__ void look_ahead(int32_t plane)
    {
        const int32_t that = min(plane, (int32_t)task.job.from.slices - 1);

        if (!REGULAR)
            there = pass_on_plane<Value, false>(task.job, lines, that);
#pragma unroll
        for (int c = 0; c < PASS_COLUMNS; c++)
            ahead[c] = __ldg(pass_at<REGULAR>(task, there.near[c], that));
    }

    __device__ __forceinline__ void move(int32_t to)
    {
        if (to >= 0 && to != at + 1)
            look_ahead(to);
#pragma unroll
        for (int c = 0; c < PASS_COLUMNS; c++)
            values[c] = to >= 0 && there.inside[c] ? resample_kept<Result>(ahead[c]) : outside;
        at = to;
        look_ahead(to + 1);
    }
};

template <typename Value, typename Result, bool REGULAR>
__global__ void
__launch_bounds__(PASS_LANES *PASS_ROWS) pass_nearest_lines(const __grid_constant__ struct pass_task task)
{
    __shared__ struct pass_step steps[PASS_DEPTH];
    const Result outside = resample_kept<Result>(task.job.outside);

    pass_each_lines(task, steps, [&](const struct pass_lines &lines) {
        struct pass_samples<Value, Result, REGULAR> samples(task, lines, outside);
        struct pass_target<Result> target(task, lines);

        const struct pass_step *next = steps, *const end = steps + lines.depth;

        while (next < end) {
            const int32_t plane = next->plane;

            samples.move(plane);
            do
                target.put(task, lines, samples.values);
            while (++next < end && next->plane == plane);
        }
    });
}

/* ---- order 1 ---- */

/* Returns the double of a sample. */
template <typename Value>
__device__ static __forceinline__ double
pass_double(Value value)
{
    if constexpr (std::is_same<Value, double>::value)
        return value;
    else
        return __dsub_rn(__hiloint2double(0x43300000, (int32_t)value ^ INT32_MIN), 0x1p52 + 0x1p31);
}

__device__ static __forceinline__ double
pass_mixed(const double (&parts)[2], double first, double second)
{
    return __dadd_rn(__dmul_rn(parts[0], first), __dmul_rn(parts[1], second));
}

/* The two planes around a voxel, and the samples read of the next plane. */
template <typename Value, bool REGULAR> struct pass_planes {
    const struct pass_task &task;
    const struct pass_lines &lines;
    const int32_t last;
    struct pass_there<Value> there; /* of `ahead`; with regular planes, of all */
    Value ahead[PASS_COLUMNS][4];   /* two samples of each of two rows */
    int32_t at = -3;                /* the lower plane; initially none */
    double lower[PASS_COLUMNS] = {}, upper[PASS_COLUMNS] = {};
    bool has_lower[PASS_COLUMNS] = {}, has_upper[PASS_COLUMNS] = {};

    __device__ __forceinline__ pass_planes(const struct pass_task &of, const struct pass_lines &own)
        : task(of), lines(own), last((int32_t)of.job.from.slices - 1),
          there(pass_on_plane<Value, REGULAR>(of.job, own, 0))
    {
    }

    /* After the last plane, reads it again. */
    __device__ __forceinline__ void look_ahead(int32_t plane)
    {
        const int32_t that = min(plane, last);

        if (!REGULAR)
            there = pass_on_plane<Value, false>(task.job, lines, that);
#pragma unroll
        for (int c = 0; c < PASS_COLUMNS; c++) {
            const Value *const near = pass_at<REGULAR>(task, there.near[c], that);
            const Value *const far = pass_at<REGULAR>(task, there.near[c] + there.far, that);
            const uint32_t beside = REGULAR ? 1 : there.beside[c];

            ahead[c][0] = __ldg(near);
            ahead[c][1] = __ldg(near + beside);
            ahead[c][2] = __ldg(far);
            ahead[c][3] = __ldg(far + beside);
        }
    }

    /* Advances by one plane. */
    __device__ __forceinline__ void rise()
    {
#pragma unroll
        for (int c = 0; c < PASS_COLUMNS; c++) {
            lower[c] = upper[c];
            has_lower[c] = has_upper[c];
            upper[c] = pass_mixed(there.x[c], pass_mixed(there.y, pass_double(ahead[c][0]), pass_double(ahead[c][2])),
                                  pass_mixed(there.y, pass_double(ahead[c][1]), pass_double(ahead[c][3])));
            has_upper[c] = there.inside[c];
        }
        at++;
        look_ahead(at + 2);
    }

    __device__ __forceinline__ void move(int32_t to)
    {
        if (to != at + 1) {
            at = to - 2;
            look_ahead(to);
            rise();
        }
        rise();
    }

    template <typename Result>
    __device__ __forceinline__ Result voxel(int c, const struct pass_step &step, Result outside) const
    {
        const double mixed = __dadd_rn(__dmul_rn(step.rest, lower[c]), __dmul_rn(step.part, upper[c]));

        if (step.plane < 0 || !has_lower[c] || (!REGULAR && step.part > 0 && !has_upper[c]))
            return outside;
        return resample_result<Result>(mixed);
    }
};

template <typename Value, typename Result, bool REGULAR>
__global__ void
__launch_bounds__(PASS_LANES *PASS_ROWS, PASS_BLOCKS) pass_linear_lines(const __grid_constant__ struct pass_task task)
{
    __shared__ struct pass_step steps[PASS_DEPTH];
    const Result outside = resample_kept<Result>(task.job.outside);

    pass_each_lines(task, steps, [&](const struct pass_lines &lines) {
        struct pass_planes<Value, REGULAR> planes(task, lines);
        struct pass_target<Result> target(task, lines);

        const struct pass_step *next = steps;

        for (int left = lines.depth; left > 0; left--, next++) {
            const struct pass_step step = *next;
            Result values[PASS_COLUMNS];

            if (step.plane != planes.at && step.plane >= 0)
                planes.move(step.plane);
#pragma unroll
            for (int c = 0; c < PASS_COLUMNS; c++)
                values[c] = planes.template voxel<Result>(c, step, outside);
            target.put(task, lines, values);
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
    const dim3 blocks(resample_blocks(job->to.columns, PASS_LANES * PASS_COLUMNS), pass_blocks(job->to.rows, PASS_ROWS),
                      pass_blocks(job->to.slices, PASS_DEPTH));
    const dim3 threads(PASS_LANES, PASS_ROWS);
    const struct pass_task task = {*job, job->from.rows * job->from.columns, job->to.rows * job->to.columns};

    if (order == RESAMPLE_NEAREST)
        pass_nearest_lines<Value, Result, REGULAR><<<blocks, threads, 0, stream>>>(task);
    else
        pass_linear_lines<Value, Result, REGULAR><<<blocks, threads, 0, stream>>>(task);
}

template <typename Value, typename Result>
static void
pass_launch_planes(cudaStream_t stream, const struct resample_job *job, int order)
{
    const int64_t slice = job->from.rows * job->from.columns * (int64_t)sizeof(Value);

    if (job->tables.step[0] == 0 && job->tables.step[1] == 0 && job->from.columns > 1 && slice <= UINT32_MAX)
        pass_launch<Value, Result, true>(stream, job, order);
    else
        pass_launch<Value, Result, false>(stream, job, order);
}

int
resample_queue_pass(struct cuda_lane *lane, const struct resample_job *job, int order, struct error *error)
{
    if (job->values == RESAMPLE_RESCALED)
        pass_launch_planes<double, double>(lane->work, job, order);
    else
        resample_typed(lane->base.pixel, [&](auto value) {
            resample_typed_result(*job, [&](auto result) {
                pass_launch_planes<decltype(value), decltype(result)>(lane->work, job, order);
            });
        });
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}
