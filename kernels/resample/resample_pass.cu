/*
 * resample_pass.cu - orders 0 and 1 on the GPU: a pass, a thread a line of the grid along the normal.
 *
 * The least that can be moved is each sample read once and each voxel written once. A thread reads of
 * each plane that it comes by one sample (order 0) or four (order 1), once for all voxels between two
 * planes, and writes each voxel. What neighbours read lies in the same sectors.
 *
 * Parts of a sample are whole numbers of 2^-16. So what order 1 makes of a plane is a whole number of
 * 2^-32 below 2^48 of them: exact, in integers as in doubles. Only along the normal it is rounded;
 * there values are doubles, 2^32 times as large, and round at the same bits.
 */
#include "kernels/resample/resample_cuda.cuh"

#include <type_traits>

enum {
    PASS_COLUMNS = 32,
    PASS_ROWS = 8,      /* of threads, a warp each */
    PASS_DEPTH = 64,    /* voxels along the normal of a thread */
    PASS_TOGETHER = 8,  /* of order 0, read before the first is written */
    PASS_MOST = 65535,  /* blocks along y and z */
    PASS_PARTS = 65536, /* of a sample */
};

#define PASS_HALF  0x1p31                       /* half a stored value */
#define PASS_FLOOR 0x1.8p84                     /* what is added to it loses 2^-32 and less */
#define PASS_WHOLE UINT64_C(0x4330000000000000) /* 2^52, as bits; below them a whole number */

/* Where a line is, and where it goes. */
struct pass_line {
    int64_t i, j, first, end;
};

/* Calls line(struct pass_line) for all lines of a thread. */
template <typename Line>
__device__ static __forceinline__ void
pass_each_line(const struct resample_job &job, const Line &line)
{
    const int64_t i = (int64_t)blockIdx.x * PASS_COLUMNS + threadIdx.x;

    if (i >= job.to.columns)
        return;
    for (int64_t first = (int64_t)blockIdx.z * PASS_DEPTH; first < job.to.slices;
         first += (int64_t)gridDim.z * PASS_DEPTH)
        for (int64_t j = (int64_t)blockIdx.y * PASS_ROWS + threadIdx.y; j < job.to.rows;
             j += (int64_t)gridDim.y * PASS_ROWS) {
            const struct pass_line own = {i, j, first, min(first + PASS_DEPTH, job.to.slices)};

            line(own);
        }
}

__device__ static __forceinline__ struct resample_pair
pass_tap(const struct resample_job &job, int axis, int64_t plane, int64_t i)
{
    return job.tables.taps[axis][plane * job.tables.step[axis] + i];
}

__device__ static __forceinline__ int64_t
pass_place(const struct resample_job &job, const struct pass_line &line, int64_t k)
{
    return (k * job.to.rows + line.j) * job.to.columns + line.i;
}

/* ---- order 0 ---- */

template <typename Value>
__device__ static __forceinline__ int32_t
pass_nearest(const struct resample_job &job, const struct pass_line &line, int32_t plane)
{
    if (plane < 0)
        return job.outside;
    const int32_t x = pass_tap(job, 0, plane, line.i).at, y = pass_tap(job, 1, plane, line.j).at;

    if (x < 0 || y < 0)
        return job.outside;
    return resample_kept(
        job, ((const Value *)job.voxels)[(plane * job.from.rows + y) * job.from.columns + x]);
}

template <typename Value>
__global__ void
__launch_bounds__(PASS_COLUMNS *PASS_ROWS)
    pass_nearest_lines(const __grid_constant__ struct resample_job job)
{
    pass_each_line(job, [&](const struct pass_line &line) {
        for (int64_t k = line.first; k < line.end; k += PASS_TOGETHER) {
            int32_t values[PASS_TOGETHER];

#pragma unroll
            for (int i = 0; i < PASS_TOGETHER; i++)
                values[i] =
                    pass_nearest<Value>(job, line, job.tables.taps[2][min(k + i, line.end - 1)].at);
#pragma unroll
            for (int i = 0; i < PASS_TOGETHER; i++)
                if (k + i < line.end)
                    resample_put(job, pass_place(job, line, k + i), values[i]);
        }
    });
}

/* ---- order 1 ---- */

/* What has been read of a plane: samples counted from the least that their type has, and parts. */
struct pass_seen {
    uint32_t corners[4]; /* of two rows, two each */
    uint32_t x, y;
    bool inside;
};

template <typename Value>
__device__ static __forceinline__ struct pass_seen
pass_see(const struct resample_job &job, const struct pass_line &line, int32_t plane)
{
    const int32_t least = std::is_signed<Value>::value ? -32768 : 0;
    const struct resample_pair x = pass_tap(job, 0, plane, line.i);
    const struct resample_pair y = pass_tap(job, 1, plane, line.j);
    struct pass_seen seen = {};

    seen.inside = x.at >= 0 && y.at >= 0;
    if (!seen.inside)
        return seen;
    const Value *near =
        (const Value *)job.voxels + (plane * job.from.rows + y.at) * job.from.columns + x.at;
    const Value *far = near + (y.part > 0 ? job.from.columns : 0);
    const int beside = x.part > 0 ? 1 : 0;
    seen.corners[0] = (uint32_t)(near[0] - least);
    seen.corners[1] = (uint32_t)(near[beside] - least);
    seen.corners[2] = (uint32_t)(far[0] - least);
    seen.corners[3] = (uint32_t)(far[beside] - least);
    seen.x = (uint32_t)(x.part * PASS_PARTS);
    seen.y = (uint32_t)(y.part * PASS_PARTS);
    return seen;
}

/* Its value, 2^32 times as large. */
template <typename Value>
__device__ static __forceinline__ double
pass_mixed(const struct pass_seen &seen)
{
    const double least = std::is_signed<Value>::value ? -0x1p47 : 0; /* -32768 */
    const uint32_t low = (PASS_PARTS - seen.y) * seen.corners[0] + seen.y * seen.corners[2];
    const uint32_t high = (PASS_PARTS - seen.y) * seen.corners[1] + seen.y * seen.corners[3];
    const uint64_t mixed = (uint64_t)(PASS_PARTS - seen.x) * low + (uint64_t)seen.x * high;

    return __dsub_rn(__longlong_as_double((long long)(PASS_WHOLE | mixed)), 0x1p52 - least);
}

/* The two planes around a voxel; and of the one behind them what has been read. */
template <typename Value> struct pass_planes {
    const struct resample_job &job;
    const struct pass_line &line;
    int32_t at = -2; /* the lower plane */
    bool looks_ahead = false, has_lower, has_upper;
    double lower, upper;
    struct pass_seen ahead;

    __device__ __forceinline__ void look(int32_t plane)
    {
        const struct pass_seen seen = pass_see<Value>(job, line, plane);

        upper = pass_mixed<Value>(seen);
        has_upper = seen.inside;
    }

    /* Between planes `to` and to + 1; the next voxel will be behind plane `next`. */
    __device__ __forceinline__ void move(int32_t to, int32_t next)
    {
        const int32_t end = (int32_t)job.from.slices - 1;

        if (to != at + 1)
            look(to);
        lower = upper;
        has_lower = has_upper;
        if (to == at + 1 && looks_ahead) {
            upper = pass_mixed<Value>(ahead);
            has_upper = ahead.inside;
        } else if (to < end) {
            look(to + 1);
        }
        looks_ahead = next <= to + 1 && to + 2 <= end;
        if (looks_ahead)
            ahead = pass_see<Value>(job, line, to + 2);
        at = to;
    }

    __device__ __forceinline__ int32_t voxel(double part) const
    {
        if (!has_lower || (part > 0 && !has_upper))
            return job.outside;
        const double mixed =
            part > 0 ? __dadd_rn(__dmul_rn(__dsub_rn(1, part), lower), __dmul_rn(part, upper))
                     : lower;

        return resample_kept(job,
                             __double2loint(__dadd_rd(__dadd_rn(mixed, PASS_HALF), PASS_FLOOR)));
    }
};

template <typename Value>
__global__ void
__launch_bounds__(PASS_COLUMNS *PASS_ROWS)
    pass_linear_lines(const __grid_constant__ struct resample_job job)
{
    pass_each_line(job, [&](const struct pass_line &line) {
        const struct resample_pair *taps = job.tables.taps[2];
        const int64_t slice = job.to.rows * job.to.columns;
        struct pass_planes<Value> planes = {
            job, line
        };
        struct resample_pair tap = taps[line.first];
        int64_t place = pass_place(job, line, line.first);

        for (int64_t k = line.first; k < line.end; k++, place += slice) {
            const struct resample_pair next = taps[min(k + 1, line.end - 1)];

            if (tap.at >= 0 && tap.at != planes.at)
                planes.move(tap.at, next.at);
            resample_put(job, place, tap.at < 0 ? job.outside : planes.voxel(tap.part));
            tap = next;
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

template <typename Value>
static void
pass_launch(cudaStream_t stream, const struct resample_job *job, int order)
{
    const dim3 blocks(resample_blocks(job->to.columns, PASS_COLUMNS),
                      pass_blocks(job->to.rows, PASS_ROWS),
                      pass_blocks(job->to.slices, PASS_DEPTH));
    const dim3 threads(PASS_COLUMNS, PASS_ROWS);

    if (order == RESAMPLE_NEAREST)
        pass_nearest_lines<Value><<<blocks, threads, 0, stream>>>(*job);
    else
        pass_linear_lines<Value><<<blocks, threads, 0, stream>>>(*job);
}

int
resample_queue_pass(struct cuda_lane *lane, const struct resample_job *job, int order,
                    struct error *error)
{
    switch (lane->base.pixel) {
    case IMAGE_UINT8:
        pass_launch<uint8_t>(lane->work, job, order);
        break;
    case IMAGE_INT16:
        pass_launch<int16_t>(lane->work, job, order);
        break;
    case IMAGE_UINT16:
        pass_launch<uint16_t>(lane->work, job, order);
        break;
    }
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}
