/*
 * resample_spline.cu - order 3 on the GPU, axis by axis in doubles. A thread handles a line: the
 * recursion runs forward and back, and the grid's places are computed on the way back. Sweeps come
 * first (resample_sweep.cuh). Lines on which these fail are then processed in one go, as follows.
 *
 * A warp's lines are in shared memory in a ring of spans of SPAN samples. Forward, later spans are
 * in transfer while the recursion runs in place, and the last spans stay. Backward, these are still
 * there. Earlier spans are read again, and their forward results are recomputed, bit for bit, from
 * the saved state before the span (a mark).
 */
#include "kernels/resample/resample_sweep.cuh"

#include <algorithm>

/* ---- the recursion ---- */

template <typename Line> struct spline_walk : spline_back<Line> {
    using back_of = spline_back<Line>;
    using back_of::axis, back_of::line, back_of::window;
    double *const ring, *const end; /* of this warp */
    double *marks;                  /* of this thread */
    double before;                  /* forward result of the last sample; and before the last span */
    double entry;

    __device__ __forceinline__ spline_walk(const struct spline_axis &along, Line &own,
                                           struct spline_places<Line::together> &due, double *slots, int64_t index)
        : back_of(along, own, due), ring(slots), end(slots + along.slots * SPLINE_SLOT),
          marks(along.marks + min(index, along.lines - 1))
    {
    }

    /* Returns whether a span has left the ring when the recursion comes back. */
    __device__ __forceinline__ bool leaves(int32_t span, int32_t last) const
    {
        return span + axis.slots <= last;
    }

    /* Computes the initial sum of the recursion. */
    __device__ __forceinline__ void start()
    {
        const double *const own = ring + threadIdx.x % SPLINE_WARP;

        before = __dmul_rn(axis.start->weight[0], line.gained(own[0]));
#pragma unroll 4
        for (int32_t k = 1; k < axis.start->count; k++)
            before = __dadd_rn(before, __dmul_rn(axis.start->weight[k], line.gained(own[k * SPLINE_PITCH])));
    }

    /* Replaces samples by their forward results. The very first one must be done already. */
    __device__ __forceinline__ void run_forth(int32_t span, double *slot)
    {
        double *const own = slot + threadIdx.x % SPLINE_WARP;

#pragma unroll
        for (int i = 0; i < SPAN; i++) {
            const double sample = line.gained(own[i * SPLINE_PITCH]);

            if (i > 0 || span > 0)
                before = __dadd_rn(sample, __dmul_rn(RESAMPLE_POLE, before));
            own[i * SPLINE_PITCH] = before;
        }
    }

    __device__ __forceinline__ double *after(double *slot) const
    {
        return slot + SPLINE_SLOT == end ? ring : slot + SPLINE_SLOT;
    }

    __device__ __forceinline__ void forth(int32_t last)
    {
        double *slot = ring, *coming = ring;

        for (int32_t span = 0; span < SPLINE_AHEAD; span++, coming = after(coming)) {
            if (span <= last)
                line.fetch(span, coming);
            ptx_copies_end_group();
        }
        line.land();
        spline_wait<0>();
        start();
        for (int32_t span = 0; span <= last; span++) {
            if (span + SPLINE_AHEAD <= last)
                line.fetch(span + SPLINE_AHEAD, coming);
            else
                line.land();
            ptx_copies_end_group();
            spline_wait<SPLINE_AHEAD>();
            if (leaves(span, last) && line.exists)
                marks[span * axis.lines] = before;
            entry = before;
            run_forth(span, slot);
            slot = after(slot);
            coming = after(coming);
        }
    }

    /* Computes a span's coefficients and places, from its sample i down. */
    template <bool ALL> __device__ __forceinline__ void run_back(int32_t span, int32_t i, const double *own)
    {
        constexpr int STEPS = ALL ? 1 : SPLINE_STEPS;

#pragma unroll STEPS
        for (; i >= 0; i--) {
            this->push_behind(own[i * SPLINE_PITCH]);
            if (ALL)
                this->put_all(span * SPAN + i);
            else
                this->put_together(i);
        }
    }

    __device__ __forceinline__ void back(int32_t last)
    {
        double *slot = ring + last % axis.slots * SPLINE_SLOT;
        const double *own = slot + threadIdx.x % SPLINE_WARP;
        int32_t i = (axis.samples - 1) % SPAN;
        double mark = 0;

        this->fetch_places(last);
        this->turn(own[i * SPLINE_PITCH], i > 0 ? own[(i - 1) * SPLINE_PITCH] : entry);
        i--;
        for (int32_t span = last; span >= 0; span--, i = SPAN - 1) {
            own = slot + threadIdx.x % SPLINE_WARP;
            if (leaves(span, last)) {
                spline_wait<SPLINE_AHEAD - 1>();
                before = mark;
                run_forth(span, slot);
            }
            if (span > 0 && leaves(span - 1, last))
                mark = marks[(span - 1) * axis.lines];
            const bool few = this->take_places();

            this->fetch_places(max(span - 1, 0));
            __syncwarp();
            if (few)
                run_back<false>(span, i, own);
            else
                run_back<true>(span, i, own);
            if (span >= axis.slots)
                line.fetch(span - axis.slots, slot);
            else
                line.land();
            ptx_copies_end_group();
            slot = slot == ring ? end - SPLINE_SLOT : slot - SPLINE_SLOT;
        }
        this->put_first();
    }
};

template <typename Lines>
__global__ void
__launch_bounds__(SPLINE_THREADS)
    spline_pass(const __grid_constant__ Lines lines, const __grid_constant__ struct spline_axis axis)
{
    typedef typename spline_line_of<Lines>::line Line;
    extern __shared__ __align__(16) double shared[];
    typedef struct spline_places<Line::together> Places;
    Places *const places = (Places *)shared;
    double *const rings = (double *)(places + SPLINE_THREADS / SPLINE_WARP);
    const int32_t warp = (int32_t)threadIdx.x / SPLINE_WARP;
    const int64_t index = (int64_t)blockIdx.x * SPLINE_THREADS + threadIdx.x;
    const int32_t last = (axis.samples - 1) / SPAN;

    if (index - threadIdx.x % SPLINE_WARP >= axis.lines || !axis.missed[index / SPLINE_WARP])
        return;
    Line line(lines, axis, index);
    struct spline_walk<Line> walk(axis, line, places[warp], rings + warp * axis.slots * SPLINE_SLOT, index);

    walk.forth(last);
    walk.back(last);
}

/* Returns the first place after a sample, or the number of places. */
__device__ static __forceinline__ int32_t
spline_first_behind(const struct resample_weights *weights, int32_t places, int32_t sample)
{
    int32_t low = 0, high = places;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;

        if (weights[middle].at[1] < sample)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes the axes' tables of places: a block's y is the axis, a thread a sample. A place's weights
 * begin with the coefficient of the sample before the one that it follows. */
__global__ void
spline_find(const __grid_constant__ struct spline_axes axes,
            const __grid_constant__ struct resample_between_axes between)
{
    const struct spline_axis &axis = axes.of[blockIdx.y];
    const struct resample_weights *const weights = axis.weights;
    const int32_t sample = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);

    if (sample > axis.samples)
        return;
    const int32_t first = spline_first_behind(weights, axis.places, sample);

    between.firsts[blockIdx.y][sample] = first;
    if (sample == 0)
        return;
    const int32_t end = sample < axis.samples ? spline_first_behind(weights, axis.places, sample + 1) : first;

    for (int32_t i = 0; i < axis.together; i++) {
        const double *const of = weights[max(end - 1 - i, 0)].weight;

        between.due[blockIdx.y][(sample - 1) * axis.together + i] = {{of[0], of[1]}, {of[2], of[3]}};
    }
}

/* ---- on the host ---- */

/* Returns the doubles per row: whole spans or, if less, whole memory sectors. */
static int64_t
spline_pitch(int64_t side, int64_t whole)
{
    return (side + whole - 1) / whole * whole;
}

static int64_t
spline_spans(int64_t samples)
{
    return (samples - 1) / SPAN + 1;
}

/* Returns whether 32 bits suffice for the byte offset from one place of a line to the next. */
bool
resample_spline_fits(const struct image_extent *from, const struct resample_demand *demand)
{
    const int64_t doubles =
        std::max(spline_pitch(from->rows, SPAN), spline_pitch(demand->extent.columns, SPLINE_SECTOR));

    return doubles * (int64_t)sizeof(double) <= UINT32_MAX &&
           image_slice_voxels(&demand->extent) * (int64_t)resample_voxel_size(demand) <= UINT32_MAX;
}

void
resample_place_spline(struct kernels_arena *arena, const struct image_extent *from, const struct image_extent *to,
                      struct resample_between_axes *between)
{
    const int64_t rows = spline_pitch(from->rows, SPAN), columns = spline_pitch(to->columns, SPLINE_SECTOR);
    const int64_t lines[3] = {from->rows * from->slices, to->columns * from->slices, columns * to->rows};
    int64_t marks = 0, warps = 0;

    for (int axis = 0; axis < 3; axis++) {
        struct image_extent extent = *from;

        marks = std::max(marks, lines[axis] * spline_spans(*resample_side(&extent, axis)));
        warps = std::max(warps, (lines[axis] - 1) / SPLINE_WARP + 1);
    }
    cuda_take(arena, &between->first, (size_t)(to->columns * rows), (size_t)from->slices);
    cuda_take(arena, &between->second, (size_t)(to->rows * columns), (size_t)from->slices);
    cuda_take(arena, &between->marks, (size_t)marks);
    cuda_take(arena, &between->missed, (size_t)warps);
    for (int axis = 0; axis < 3; axis++) {
        struct image_extent extent = *from;

        cuda_take(arena, &between->firsts[axis], (size_t)*resample_side(&extent, axis) + 1);
        cuda_take(arena, &between->due[axis], (size_t)spline_pitch(*resample_side(&extent, axis), SPAN),
                  (size_t)spline_together[axis]);
    }
}

template <typename Lines>
static int
spline_launch_sweep(struct cuda_lane *lane, const Lines &lines, const struct spline_axis &axis, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const int bytes = SWEEP_SLOTS * SWEEP_SLOT * (int)sizeof(double) +
                      (int)sizeof(struct spline_places<sweep_line_of<Lines>::line::together>);

    CUDA_TRY(device,
             cudaFuncSetAttribute(spline_sweep_pass<Lines>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    CUDA_TRY(device,
             cudaFuncSetAttribute(spline_sweep_pass<Lines>, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    spline_sweep_pass<Lines>
        <<<resample_blocks(axis.lines, SPLINE_WARP), SPLINE_WARP, (size_t)bytes, lane->work>>>(lines, axis);
    CUDA_LAUNCHED(device);
    return 0;
}

/* Launches `warps` warps per multiprocessor, each with as many slots as fit. */
template <typename Lines>
static int
spline_launch(struct cuda_lane *lane, const Lines &lines, struct spline_axis axis, int warps, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const int each = SPLINE_THREADS / SPLINE_WARP;
    const int places = (int)sizeof(struct spline_places<spline_line_of<Lines>::line::together>);
    const int slot = SPLINE_SLOT * (int)sizeof(double);
    const int each_block = (int)(device->shared_per_block + SPLINE_RESERVED) / (warps / each);
    const int room = (each_block - SPLINE_RESERVED) / each - places;

    axis.slots = room / slot > SPLINE_AHEAD ? room / slot : SPLINE_AHEAD + 1;
    const int bytes = each * (places + axis.slots * slot);
    const int rc = spline_launch_sweep(lane, lines, axis, error);

    if (rc)
        return rc;
    CUDA_TRY(device, cudaFuncSetAttribute(spline_pass<Lines>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    spline_pass<Lines>
        <<<resample_blocks(axis.lines, SPLINE_THREADS), SPLINE_THREADS, (size_t)bytes, lane->work>>>(lines, axis);
    CUDA_LAUNCHED(device);
    return 0;
}

static struct spline_axis
spline_axis_of(const struct resample_job *job, const struct resample_between_axes *between, int axis)
{
    struct image_extent from = job->from, to = job->to;
    struct spline_axis along = {};

    along.start = job->tables.starts + axis;
    along.weights = job->tables.weights[axis];
    along.samples = (int32_t)*resample_side(&from, axis);
    along.places = (int32_t)*resample_side(&to, axis);
    along.together = spline_together[axis];
    along.marks = between->marks;
    along.missed = between->missed;
    along.firsts = between->firsts[axis];
    along.due = between->due[axis];
    return along;
}

static int
spline_find_places(struct cuda_lane *lane, const struct resample_job *job, const struct resample_between_axes *between,
                   struct error *error)
{
    struct spline_axes axes;
    int32_t most = 0;

    for (int axis = 0; axis < 3; axis++) {
        axes.of[axis] = spline_axis_of(job, between, axis);
        most = std::max(most, axes.of[axis].samples);
    }
    spline_find<<<dim3(resample_blocks((int64_t)most + 1, SPLINE_THREADS), 3), SPLINE_THREADS, 0, lane->work>>>(
        axes, *between);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

template <typename Value>
static int
spline_first(struct cuda_lane *lane, const struct resample_job *job, const struct resample_between_axes *between,
             struct error *error)
{
    struct spline_axis axis = spline_axis_of(job, between, 0);

    struct spline_rows<Value> rows = {
    };

    axis.lines = job->from.rows * job->from.slices;
    rows.samples = (const Value *)job->voxels;
    rows.pitch = (uint32_t)job->pitch;
    rows.target = between->first;
    rows.inner = job->from.rows;
    rows.step = spline_pitch(job->from.rows, SPAN);
    return spline_launch(lane, rows, axis, spline_warps[0], error);
}

static int
spline_second(struct cuda_lane *lane, const struct resample_job *job, const struct resample_between_axes *between,
              struct error *error)
{
    struct spline_axis axis = spline_axis_of(job, between, 1);

    struct spline_rows<double> rows = {
    };

    axis.lines = job->to.columns * job->from.slices;
    rows.samples = between->first;
    rows.pitch = (uint32_t)spline_pitch(job->from.rows, SPAN);
    rows.target = between->second;
    rows.inner = job->to.columns;
    rows.step = spline_pitch(job->to.columns, SPLINE_SECTOR);
    return spline_launch(lane, rows, axis, spline_warps[1], error);
}

template <typename Result>
static int
spline_third(struct cuda_lane *lane, const struct resample_job *job, const struct resample_between_axes *between,
             struct error *error)
{
    struct spline_axis axis = spline_axis_of(job, between, 2);

    const struct spline_sides<Result> sides = {
        between->second, (Result *)job->resampled,
            spline_pitch(job->to.columns, SPLINE_SECTOR), job->to.columns, job->to.rows * job->to.columns
    };

    axis.lines = sides.pitch * job->to.rows;
    return spline_launch(lane, sides, axis, spline_warps[2], error);
}

int
resample_queue_spline(struct cuda_lane *lane, const struct resample_job *job,
                      const struct resample_between_axes *between, struct error *error)
{
    int rc = spline_find_places(lane, job, between, error);

    if (!rc && job->values == RESAMPLE_RESCALED)
        rc = spline_first<double>(lane, job, between, error);
    else if (!rc)
        rc = resample_typed(lane->base.pixel,
                            [&](auto value) { return spline_first<decltype(value)>(lane, job, between, error); });
    if (!rc)
        rc = spline_second(lane, job, between, error);
    if (rc)
        return rc;
    return resample_typed_result(
        *job, [&](auto result) { return spline_third<decltype(result)>(lane, job, between, error); });
}
