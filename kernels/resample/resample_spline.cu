/*
 * resample_spline.cu - order 3 on the GPU, axis by axis in doubles: a thread a line, through which the
 * recursion goes forth and back, and which is left at the places of the grid as it comes back.
 *
 * A warp's lines lie in shared memory by spans of SPAN samples, in a ring: forth, the spans ahead are
 * on their way there while the recursion is made in place, and the last ones stay. Back these are
 * there already; those before them are read once more, and what came of them forth is made again,
 * bit for bit, of what the recursion had come to before them (a mark).
 *
 * Each place of the grid is written as soon as the last of its four coefficients is there. What
 * bounds this are chains of operations that wait for each other, not their number: so behind each
 * sample the same few places are made, some for nothing, and those of several samples side by side,
 * without a branch. Spans with more places than that behind a sample make them one by one.
 */
#include "kernels/resample/resample_lines.cuh"

/* ---- the recursion ---- */

/* The places of a span, of each sample so many from the last one down; those that are none have any weights. */
template <int TOGETHER> struct spline_places {
    double2 low[SPAN][(size_t)TOGETHER], high[SPAN][(size_t)TOGETHER];
    int32_t count[SPAN];
};

template <typename Line> struct spline_walk {
    const struct spline_axis &axis;
    Line &line;
    struct spline_places<Line::together> &places; /* of this warp, as is the ring */
    double *const ring, *const end;
    double *marks; /* of this thread */
    double before; /* forth: of the last sample; and before the last span */
    double entry;
    double window[4]; /* back: coefficients from the last one on */

    static constexpr int TOGETHER = Line::together;
    static constexpr int SHARE = (SPAN * TOGETHER + SPLINE_WARP - 1) / SPLINE_WARP;
    double2 next_low[(size_t)SHARE],
        next_high[(size_t)SHARE]; /* this lane's share of the places that come next */
    int32_t next_count;

    __device__ __forceinline__ spline_walk(const struct spline_axis &along, Line &own,
                                           struct spline_places<Line::together> &due, double *slots,
                                           int64_t index)
        : axis(along), line(own), places(due), ring(slots), end(slots + along.slots * SPLINE_SLOT),
          marks(along.marks + min(index, along.lines - 1))
    {
    }

    /* Whether a span is no longer there when the recursion comes back. */
    __device__ __forceinline__ bool leaves(int32_t span, int32_t last) const
    {
        return span + axis.slots <= last;
    }

    /* The sum that the recursion begins with. */
    __device__ __forceinline__ void start()
    {
        const double *const own = ring + threadIdx.x % SPLINE_WARP;

        before = __dmul_rn(axis.start->weight[0], line.gained(own[0]));
#pragma unroll 4
        for (int32_t k = 1; k < axis.start->count; k++)
            before = __dadd_rn(
                before, __dmul_rn(axis.start->weight[k], line.gained(own[k * SPLINE_PITCH])));
    }

    /* Samples become what the recursion makes of them forth; the first of all has been made. */
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
            spline_commit();
        }
        line.land();
        spline_wait<0>();
        start();
        for (int32_t span = 0; span <= last; span++) {
            if (span + SPLINE_AHEAD <= last)
                line.fetch(span + SPLINE_AHEAD, coming);
            else
                line.land();
            spline_commit();
            spline_wait<SPLINE_AHEAD>();
            if (leaves(span, last) && line.exists)
                marks[span * axis.lines] = before;
            entry = before;
            run_forth(span, slot);
            slot = after(slot);
            coming = after(coming);
        }
    }

    __device__ __forceinline__ int32_t first_behind(int32_t sample) const
    {
        return __ldg(axis.firsts + min(sample, axis.samples));
    }

    /* A place's weights are those of the coefficients from the sample before the one that it lies behind. */
    __device__ __forceinline__ void fetch_places(int32_t span)
    {
        const int32_t lane = threadIdx.x % SPLINE_WARP, own = span * SPAN + lane % SPAN + 1;

        next_count = first_behind(own + 1) - first_behind(own);
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            const int32_t each = i * SPLINE_WARP + lane;
            const int32_t sample = span * SPAN + each / TOGETHER + 1;
            const int32_t place = first_behind(sample + 1) - 1 - each % TOGETHER;
            const double2 *const weights = (const double2 *)axis.weights[max(place, 0)].weight;

            next_low[i] = __ldg(weights);
            next_high[i] = __ldg(weights + 1);
        }
    }

    /* Whether no sample has more places than are made at once. */
    __device__ __forceinline__ bool take_places()
    {
        const int32_t lane = threadIdx.x % SPLINE_WARP;

        __syncwarp();
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            const int32_t each = i * SPLINE_WARP + lane;

            if (each < SPAN * TOGETHER) {
                places.low[each / TOGETHER][each % TOGETHER] = next_low[i];
                places.high[each / TOGETHER][each % TOGETHER] = next_high[i];
            }
        }
        if (lane < SPAN)
            places.count[lane] = next_count;
        return __all_sync(~0u, next_count <= TOGETHER);
    }

    __device__ __forceinline__ void push(double coefficient)
    {
        window[3] = window[2];
        window[2] = window[1];
        window[1] = window[0];
        window[0] = coefficient;
    }

    __device__ __forceinline__ typename Line::placed made(double2 low, double2 high) const
    {
        return line.place(
            __dadd_rn(__dadd_rn(__dadd_rn(__dmul_rn(low.x, window[0]), __dmul_rn(low.y, window[1])),
                                __dmul_rn(high.x, window[2])),
                      __dmul_rn(high.y, window[3])));
    }

    /* The places whose lowest coefficient is that of a span's sample, without a branch. */
    __device__ __forceinline__ void put_together(int32_t i)
    {
        const int32_t count = places.count[i];
        typename Line::placed values[(size_t)TOGETHER];

#pragma unroll
        for (int m = 0; m < TOGETHER; m++)
            values[m] = made(places.low[i][m], places.high[i][m]);
#pragma unroll
        for (int m = 0; m < TOGETHER; m++)
            line.put(values[m], m < count);
    }

    /* The same of sample k, however many. */
    __device__ __forceinline__ void put_all(int32_t k)
    {
        const int32_t first = first_behind(k + 1);

        for (int32_t place = first_behind(k + 2) - 1; place >= first; place--) {
            const double2 *const weights = (const double2 *)axis.weights[place].weight;

            line.put(made(__ldg(weights), __ldg(weights + 1)), true);
        }
    }

    /* A span's coefficients and places, from sample i of it down. */
    template <bool ALL>
    __device__ __forceinline__ void run_back(int32_t span, int32_t i, const double *own)
    {
        constexpr int STEPS = ALL ? 1 : SPLINE_STEPS;

#pragma unroll STEPS
        for (; i >= 0; i--) {
            push(__dmul_rn(RESAMPLE_POLE, __dsub_rn(window[0], own[i * SPLINE_PITCH])));
            if (ALL)
                put_all(span * SPAN + i);
            else
                put_together(i);
        }
    }

    /* The last sample's coefficient, and the one behind it, which is that before it mirrored. The one
     * that follows has no weight. */
    __device__ __forceinline__ void turn(double value, double previous)
    {
        window[0] =
            axis.samples == 1
                ? value
                : __dmul_rn(axis.start->end, __dadd_rn(__dmul_rn(RESAMPLE_POLE, previous), value));
        window[1] =
            axis.samples == 1 ? value : __dmul_rn(RESAMPLE_POLE, __dsub_rn(window[0], previous));
        window[2] = window[3] = value;
    }

    __device__ __forceinline__ void back(int32_t last)
    {
        double *slot = ring + last % axis.slots * SPLINE_SLOT;
        const double *own = slot + threadIdx.x % SPLINE_WARP;
        int32_t i = (axis.samples - 1) % SPAN;
        double mark = 0;

        fetch_places(last);
        turn(own[i * SPLINE_PITCH], i > 0 ? own[(i - 1) * SPLINE_PITCH] : entry);
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
            const bool few = take_places();

            fetch_places(max(span - 1, 0));
            __syncwarp();
            if (few)
                run_back<false>(span, i, own);
            else
                run_back<true>(span, i, own);
            if (span >= axis.slots)
                line.fetch(span - axis.slots, slot);
            else
                line.land();
            spline_commit();
            slot = slot == ring ? end - SPLINE_SLOT : slot - SPLINE_SLOT;
        }
        push(window[1]); /* mirrored */
        put_all(-1);
    }
};

template <typename Lines>
__global__ void
__launch_bounds__(SPLINE_THREADS) spline_pass(const __grid_constant__ Lines lines,
                                              const __grid_constant__ struct spline_axis axis)
{
    typedef typename spline_line_of<Lines>::line Line;
    extern __shared__ __align__(16) double shared[];
    typedef struct spline_places<Line::together> Places;
    Places *const places = (Places *)shared;
    double *const rings = (double *)(places + SPLINE_THREADS / SPLINE_WARP);
    const int32_t warp = (int32_t)threadIdx.x / SPLINE_WARP;
    const int64_t index = (int64_t)blockIdx.x * SPLINE_THREADS + threadIdx.x;
    const int32_t last = (axis.samples - 1) / SPAN;

    if (index - threadIdx.x % SPLINE_WARP >= axis.lines)
        return;
    Line line(lines, axis, index);
    struct spline_walk<Line> walk(axis, line, places[warp], rings + warp * axis.slots * SPLINE_SLOT,
                                  index);

    walk.forth(last);
    walk.back(last);
}

/* The first place behind each sample of an axis, and how many there are: a thread each. */
__global__ void
spline_find(const struct resample_weights *weights, int32_t samples, int32_t places,
            int32_t *firsts)
{
    const int32_t sample = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    int32_t low = 0, high = places;

    if (sample > samples)
        return;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;

        if (weights[middle].at[1] < sample)
            low = middle + 1;
        else
            high = middle;
    }
    firsts[sample] = low;
}

/* ---- on the host ---- */

/* Doubles of a row, so that rows begin with sectors. */
static int64_t
spline_pitch(int64_t side)
{
    return (side + SPAN - 1) / SPAN * SPAN;
}

static int64_t
spline_spans(int64_t samples)
{
    return (samples - 1) / SPAN + 1;
}

void
resample_place_spline(struct kernels_arena *arena, const struct image_extent *from,
                      const struct image_extent *to, struct resample_between_axes *between)
{
    const int64_t rows = spline_pitch(from->rows), columns = spline_pitch(to->columns);
    const int64_t marks[3] = {from->rows * from->slices * spline_spans(from->columns),
                              to->columns * from->slices * spline_spans(from->rows),
                              columns * to->rows * spline_spans(from->slices)};
    int64_t most = marks[0] > marks[1] ? marks[0] : marks[1];

    most = most > marks[2] ? most : marks[2];
    cuda_take(arena, &between->first, (size_t)(to->columns * rows), (size_t)from->slices);
    cuda_take(arena, &between->second, (size_t)(to->rows * columns), (size_t)from->slices);
    cuda_take(arena, &between->marks, (size_t)most);
    for (int axis = 0; axis < 3; axis++) {
        struct image_extent extent = *from;

        cuda_take(arena, &between->firsts[axis], (size_t)*resample_side(&extent, axis) + 1);
    }
}

/* So many warps of a multiprocessor, each with as many slots as there is room for. */
template <typename Lines>
static int
spline_launch(struct cuda_lane *lane, const Lines &lines, struct spline_axis axis, int warps,
              struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const int each = SPLINE_THREADS / SPLINE_WARP;
    const int places = (int)sizeof(struct spline_places<spline_line_of<Lines>::line::together>);
    const int slot = SPLINE_SLOT * (int)sizeof(double);
    const int each_block = (int)(device->shared_per_block + SPLINE_RESERVED) / (warps / each);
    const int room = (each_block - SPLINE_RESERVED) / each - places;

    axis.slots = room / slot > SPLINE_AHEAD ? room / slot : SPLINE_AHEAD + 1;
    const int bytes = each * (places + axis.slots * slot);

    CUDA_TRY(device, cudaFuncSetAttribute(spline_pass<Lines>,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    spline_pass<Lines><<<resample_blocks(axis.lines, SPLINE_THREADS), SPLINE_THREADS, (size_t)bytes,
                         lane->work>>>(lines, axis);
    CUDA_LAUNCHED(device);
    return 0;
}

static struct spline_axis
spline_axis_of(const struct resample_job *job, const struct resample_between_axes *between,
               int axis)
{
    struct image_extent from = job->from, to = job->to;
    struct spline_axis along = {};

    along.start = job->tables.starts + axis;
    along.weights = job->tables.weights[axis];
    along.samples = (int32_t)*resample_side(&from, axis);
    along.places = (int32_t)*resample_side(&to, axis);
    along.marks = between->marks;
    along.firsts = between->firsts[axis];
    return along;
}

static int
spline_find_places(struct cuda_lane *lane, const struct resample_job *job,
                   const struct resample_between_axes *between, struct error *error)
{
    for (int axis = 0; axis < 3; axis++) {
        const struct spline_axis along = spline_axis_of(job, between, axis);

        spline_find<<<resample_blocks(along.samples + 1, SPLINE_THREADS), SPLINE_THREADS, 0,
                      lane->work>>>(along.weights, along.samples, along.places,
                                    between->firsts[axis]);
        CUDA_LAUNCHED(cuda_device_of(&lane->base));
    }
    return 0;
}

template <typename Value>
static int
spline_first(struct cuda_lane *lane, const struct resample_job *job,
             const struct resample_between_axes *between, struct error *error)
{
    struct spline_axis axis = spline_axis_of(job, between, 0);

    struct spline_rows<Value> rows = {
    };

    axis.lines = job->from.rows * job->from.slices;
    rows.samples = (const Value *)job->voxels;
    rows.pitch = (uint32_t)job->from.columns;
    rows.target = between->first;
    rows.inner = job->from.rows;
    rows.step = spline_pitch(job->from.rows);
    return spline_launch(lane, rows, axis, spline_warps[0], error);
}

static int
spline_second(struct cuda_lane *lane, const struct resample_job *job,
              const struct resample_between_axes *between, struct error *error)
{
    struct spline_axis axis = spline_axis_of(job, between, 1);

    struct spline_rows<double> rows = {
    };

    axis.lines = job->to.columns * job->from.slices;
    rows.samples = between->first;
    rows.pitch = (uint32_t)spline_pitch(job->from.rows);
    rows.target = between->second;
    rows.inner = job->to.columns;
    rows.step = spline_pitch(job->to.columns);
    return spline_launch(lane, rows, axis, spline_warps[1], error);
}

template <typename Result>
static int
spline_third(struct cuda_lane *lane, const struct resample_job *job,
             const struct resample_between_axes *between, struct error *error)
{
    struct spline_axis axis = spline_axis_of(job, between, 2);

    const struct spline_sides<Result> sides = {
        between->second, (Result *)job->resampled,
            spline_pitch(job->to.columns), job->to.columns, job->to.rows * job->to.columns
    };

    axis.lines = sides.pitch * job->to.rows;
    return spline_launch(lane, sides, axis, spline_warps[2], error);
}

int
resample_queue_spline(struct cuda_lane *lane, const struct resample_job *job,
                      const struct resample_between_axes *between, struct error *error)
{
    int rc = spline_find_places(lane, job, between, error);

    if (!rc)
        rc = resample_typed(lane->base.pixel, [&](auto value) {
            return spline_first<decltype(value)>(lane, job, between, error);
        });
    if (!rc)
        rc = spline_second(lane, job, between, error);
    if (rc)
        return rc;
    return resample_typed(job->pixel, [&](auto result) {
        return spline_third<decltype(result)>(lane, job, between, error);
    });
}
