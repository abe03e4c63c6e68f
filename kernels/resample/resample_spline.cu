/*
 * resample_spline.cu - order 3 on the GPU, axis by axis in doubles: a thread a line, through which the
 * recursion goes forth and back, and which is left at the places of the grid as it comes back.
 *
 * Forth a line is read and nothing of it is written but, before each span of SPAN samples, what the
 * recursion has come to (a mark). Back the same spans are read once more, what came of them forth is
 * made again of the mark, bit for bit, and each place of the grid is written as soon as the last of
 * its four coefficients is there. (Spans that stay in shared memory need not be read again, but leave
 * room for half the warps, which took longer.) The weights of places wait in shared memory: asked of
 * the caches when a place is due, they were what two thirds of the time went into.
 *
 * Bytes, of a sample and a place of the axis: the first reads 2 + 2 (of a stored value of two bytes)
 * and writes 8, the others read 8 + up to 8 and write 8, or 2 at the end; marks are 1 of a sample.
 *
 * Along the first two axes a line lies in one piece. A warp reads a span of its 32 lines by half
 * rows, and turns it in shared memory; what it writes lies across, so the axis that comes next is the
 * one in one piece: after the first axis that is y, after the second x, and lines along z lie side by
 * side.
 */
#include "kernels/resample/resample_cuda.cuh"

enum {
    SPAN = 16,
    SPLINE_THREADS = 128,
    SPLINE_BLOCKS = 4, /* of a multiprocessor, that there are registers for */
    SPLINE_WARP = 32,
    SPLINE_TURN = SPAN + 1, /* of a row that is turned: no two in one bank */
    SPLINE_NOWHERE = -2,
};

#define SPLINE_WHOLE (0x1p52 + 0x1p31)
#define SPLINE_FLOOR 0x1.8p52 /* what is added to it is whole */

/* An axis of the volume as the grid has it. */
struct spline_axis {
    const struct resample_start *start;
    const struct resample_weights *weights; /* of the places */
    int32_t samples, places;
    int64_t lines;
    double *marks; /* of a span, of all lines */
};

/* ---- lines in one piece ---- */

/* What a stored value, or a double, is turned as; and what comes of it as a sample. */
template <typename Value> struct spline_value {
    typedef int32_t turned;

    /* In integers, and by 2^52 to a double: exact. */
    __device__ static __forceinline__ double gained(int32_t value, bool alone)
    {
        const uint32_t bits = (uint32_t)(alone ? value : value * (int32_t)RESAMPLE_GAIN);

        return __dsub_rn(__hiloint2double(0x43300000, (int)(bits ^ 0x80000000)), SPLINE_WHOLE);
    }
};

template <> struct spline_value<double> {
    typedef double turned;

    __device__ static __forceinline__ double gained(double value, bool alone)
    {
        return alone ? value : __dmul_rn(value, RESAMPLE_GAIN);
    }
};

/* Line l at samples + l * pitch; place i of it at target[(l / inner * places + i) * step + l % inner]. Places are put from
 * the last one on. */
template <typename Value> struct spline_rows {
    typedef typename spline_value<Value>::turned turned;
    static constexpr size_t shared = SPLINE_THREADS * SPLINE_TURN * sizeof(turned);

    const Value *samples;
    double *target;
    uint32_t pitch;
    int64_t inner, step;
};

/* A thread's line. */
template <typename Value> struct spline_row {
    typedef typename spline_value<Value>::turned turned;

    const struct spline_axis &axis;
    const Value *samples; /* of the warp's first line */
    turned *tile;         /* of the warp */
    double *target;       /* of the next place */
    int64_t step;
    uint32_t pitch;
    int32_t last_line; /* of the warp's lines, that there is */
    bool exists;

    __device__ __forceinline__ spline_row(const struct spline_rows<Value> &rows,
                                          const struct spline_axis &along, int64_t line,
                                          void *shared)
        : axis(along)
    {
        const int32_t lane = threadIdx.x % SPLINE_WARP;

        samples = rows.samples + (line - lane) * rows.pitch;
        tile = (turned *)shared + (int64_t)(threadIdx.x - lane) * SPLINE_TURN;
        target = rows.target + ((line / rows.inner + 1) * axis.places - 1) * rows.step +
                 line % rows.inner;
        step = rows.step;
        pitch = rows.pitch;
        last_line = (int32_t)min(axis.lines - 1 - (line - lane), (int64_t)SPLINE_WARP - 1);
        exists = line < axis.lines;
    }

    /* A span of two lines at a time; what is beyond a line is its last sample. */
    __device__ __forceinline__ void fetch(int32_t span, turned (&fetched)[SPAN]) const
    {
        const int32_t half = threadIdx.x % SPLINE_WARP / SPAN;
        const Value *column =
            samples + min(span * SPAN + (int32_t)threadIdx.x % SPAN, axis.samples - 1);

#pragma unroll
        for (int i = 0; i < SPAN; i++)
            fetched[i] = (turned)__ldg(
                column + (uint64_t)pitch * (uint32_t)min(SPLINE_WARP / SPAN * i + half, last_line));
    }

    __device__ __forceinline__ void settle(const turned (&fetched)[SPAN],
                                           double (&values)[SPAN]) const
    {
        const int32_t lane = threadIdx.x % SPLINE_WARP, half = lane / SPAN;

        __syncwarp();
#pragma unroll
        for (int i = 0; i < SPAN; i++)
            tile[(SPLINE_WARP / SPAN * i + half) * SPLINE_TURN + lane % SPAN] = fetched[i];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < SPAN; i++)
            values[i] =
                spline_value<Value>::gained(tile[lane * SPLINE_TURN + i], axis.samples == 1);
    }

    __device__ __forceinline__ void put(double value)
    {
        if (exists)
            *target = value;
        target -= step;
    }
};

/* ---- lines side by side ---- */

/* Sample k of line l at samples[k * lines + l]; pitch lines are a row of the grid, whose slices are step voxels apart. */
template <typename Result> struct spline_sides {
    typedef double turned;
    static constexpr size_t shared = 0;

    const double *samples;
    Result *target;
    int64_t pitch, columns, step;
};

template <typename Result> struct spline_side {
    typedef double turned;

    const struct spline_axis &axis;
    const double *samples;
    Result *target; /* of the next place */
    int64_t step;
    bool exists;

    __device__ __forceinline__ spline_side(const struct spline_sides<Result> &sides,
                                           const struct spline_axis &along, int64_t line, void *)
        : axis(along)
    {
        const int64_t i = line % sides.pitch;

        samples = sides.samples + min(line, axis.lines - 1);
        target =
            sides.target + (axis.places - 1) * sides.step + line / sides.pitch * sides.columns + i;
        step = sides.step;
        exists = line < axis.lines && i < sides.columns;
    }

    __device__ __forceinline__ void fetch(int32_t span, double (&fetched)[SPAN]) const
    {
#pragma unroll
        for (int i = 0; i < SPAN; i++)
            fetched[i] = __ldg(samples + min(span * SPAN + i, axis.samples - 1) * axis.lines);
    }

    __device__ __forceinline__ void settle(const double (&fetched)[SPAN],
                                           double (&values)[SPAN]) const
    {
#pragma unroll
        for (int i = 0; i < SPAN; i++)
            values[i] = spline_value<double>::gained(fetched[i], axis.samples == 1);
    }

    /* As a stored value: no spline swings beyond 2^31. */
    __device__ __forceinline__ void put(double value)
    {
        const int32_t whole = __double2loint(__dadd_rd(__dadd_rn(value, 0.5), SPLINE_FLOOR));

        if (exists)
            *target = resample_kept<Result>(whole);
        target -= step;
    }
};

template <typename Lines> struct spline_line_of;

template <typename Value> struct spline_line_of<struct spline_rows<Value>> {
    typedef struct spline_row<Value> line;
};

template <typename Result> struct spline_line_of<struct spline_sides<Result>> {
    typedef struct spline_side<Result> line;
};

/* ---- the recursion ---- */

/* The places that a warp comes to next: all its lines come to them at a time. */
struct spline_chunk {
    double2 low[SPLINE_WARP], high[SPLINE_WARP];
    int32_t at[SPLINE_WARP];
};

template <typename Line> struct spline_walk {
    typedef typename Line::turned turned;

    const struct spline_axis &axis;
    Line &line;
    struct spline_chunk &chunk; /* of this warp */
    double *marks;              /* of this thread */
    turned ahead[SPAN];         /* the span that comes next */
    double before;              /* forth: of the last sample */
    double window[4];           /* back: coefficients from the last one on */
    int32_t place, at;          /* that is written next, and the sample before it */

    __device__ __forceinline__ spline_walk(const struct spline_axis &along, Line &own,
                                           struct spline_chunk *chunks, int64_t index)
        : axis(along), line(own), chunk(chunks[threadIdx.x / SPLINE_WARP]),
          marks(along.marks + min(index, along.lines - 1))
    {
    }

    /* The sum that the recursion begins with. */
    __device__ __forceinline__ void start()
    {
        const int32_t count = axis.start->count;
        double samples[SPAN];

        for (int32_t span = 0; span * SPAN < count; span++) {
            line.fetch(span, ahead);
            line.settle(ahead, samples);
#pragma unroll
            for (int i = 0; i < SPAN; i++) {
                const int32_t k = span * SPAN + i;

                if (k < count) {
                    const double term = __dmul_rn(axis.start->weight[k], samples[i]);
                    before = k > 0 ? __dadd_rn(before, term) : term;
                }
            }
        }
    }

    /* Samples become what the recursion makes of them forth; the first of all has been made. */
    __device__ __forceinline__ void run_forth(int32_t span, double (&values)[SPAN])
    {
#pragma unroll
        for (int i = 0; i < SPAN; i++) {
            if (i > 0 || span > 0)
                before = __dadd_rn(values[i], __dmul_rn(RESAMPLE_POLE, before));
            values[i] = before;
        }
    }

    /* All spans but the last, which is ahead then. */
    __device__ __forceinline__ void forth(int32_t last)
    {
        line.fetch(0, ahead);
        for (int32_t span = 0; span < last; span++) {
            double values[SPAN];

            line.settle(ahead, values);
            line.fetch(span + 1, ahead);
            if (line.exists)
                marks[span * axis.lines] = before;
            run_forth(span, values);
        }
    }

    /* The weights of a chunk's places, a lane one. */
    __device__ __forceinline__ void fetch_chunk(int32_t first)
    {
        const int32_t lane = threadIdx.x % SPLINE_WARP;
        const struct resample_weights *const own =
            &axis.weights[min(first + lane, axis.places - 1)];
        const double2 low = __ldg((const double2 *)own->weight),
                      high = __ldg((const double2 *)own->weight + 1);

        __syncwarp();
        chunk.low[lane] = low;
        chunk.high[lane] = high;
        chunk.at[lane] = __ldg(&own->at[1]);
        __syncwarp();
    }

    __device__ __forceinline__ void look(int32_t next)
    {
        const int32_t slot = next & (SPLINE_WARP - 1);

        place = next;
        at = SPLINE_NOWHERE;
        if (next < 0)
            return;
        if (slot == SPLINE_WARP - 1 || next == axis.places - 1)
            fetch_chunk(next - slot);
        at = chunk.at[slot];
    }

    /* The coefficient of sample k, and the places whose lowest one it is. */
    __device__ __forceinline__ void push(int32_t k, double coefficient)
    {
        window[3] = window[2];
        window[2] = window[1];
        window[1] = window[0];
        window[0] = coefficient;
        while (at == k + 1) {
            const int32_t slot = place & (SPLINE_WARP - 1);
            const double2 low = chunk.low[slot], high = chunk.high[slot];
            const double sum = __dadd_rn(
                __dadd_rn(__dadd_rn(__dmul_rn(low.x, window[0]), __dmul_rn(low.y, window[1])),
                          __dmul_rn(high.x, window[2])),
                __dmul_rn(high.y, window[3]));

            line.put(sum);
            look(place - 1);
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
        double mark = 0;

        look(axis.places - 1);
        for (int32_t span = last; span >= 0; span--) {
            double values[SPAN];

            if (span < last)
                before = mark;
            const double entry = before;

            line.settle(ahead, values);
            run_forth(span, values);
            if (span > 0) {
                line.fetch(span - 1, ahead);
                mark = marks[(span - 1) * axis.lines];
            }
#pragma unroll
            for (int i = SPAN - 1; i >= 0; i--) {
                const int32_t k = span * SPAN + i;

                if (k >= axis.samples - 1) {
                    if (k == axis.samples - 1)
                        turn(values[i], i > 0 ? values[i > 0 ? i - 1 : 0] : entry);
                    continue;
                }
                push(k, __dmul_rn(RESAMPLE_POLE, __dsub_rn(window[0], values[i])));
            }
        }
        push(-1, window[1]); /* mirrored */
    }
};

template <typename Lines>
__global__ void
__launch_bounds__(SPLINE_THREADS, SPLINE_BLOCKS)
    spline_pass(const __grid_constant__ Lines lines,
                const __grid_constant__ struct spline_axis axis)
{
    typedef typename spline_line_of<Lines>::line Line;
    __shared__ double shared[Lines::shared / sizeof(double) + 1]; /* none is no array */
    __shared__ struct spline_chunk chunks[SPLINE_THREADS / SPLINE_WARP];
    const int64_t index = (int64_t)blockIdx.x * SPLINE_THREADS + threadIdx.x;
    const int32_t last = (axis.samples - 1) / SPAN;

    if (index - threadIdx.x % SPLINE_WARP >= axis.lines)
        return;
    Line line(lines, axis, index, shared);
    struct spline_walk<Line> walk(axis, line, chunks, index);

    walk.start();
    walk.forth(last);
    walk.back(last);
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
}

template <typename Lines>
static int
spline_launch(struct cuda_lane *lane, const Lines &lines, const struct spline_axis &axis,
              struct error *error)
{
    spline_pass<Lines>
        <<<resample_blocks(axis.lines, SPLINE_THREADS), SPLINE_THREADS, 0, lane->work>>>(lines,
                                                                                         axis);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

static struct spline_axis
spline_axis_of(const struct resample_job *job, int axis, double *marks)
{
    struct image_extent from = job->from, to = job->to;
    struct spline_axis along = {};

    along.start = job->tables.starts + axis;
    along.weights = job->tables.weights[axis];
    along.samples = (int32_t)*resample_side(&from, axis);
    along.places = (int32_t)*resample_side(&to, axis);
    along.marks = marks;
    return along;
}

template <typename Value>
static int
spline_first(struct cuda_lane *lane, const struct resample_job *job,
             const struct resample_between_axes *between, struct error *error)
{
    struct spline_axis axis = spline_axis_of(job, 0, between->marks);

    struct spline_rows<Value> rows = {
    };

    axis.lines = job->from.rows * job->from.slices;
    rows.samples = (const Value *)job->voxels;
    rows.pitch = (uint32_t)job->from.columns;
    rows.target = between->first;
    rows.inner = job->from.rows;
    rows.step = spline_pitch(job->from.rows);
    return spline_launch(lane, rows, axis, error);
}

static int
spline_second(struct cuda_lane *lane, const struct resample_job *job,
              const struct resample_between_axes *between, struct error *error)
{
    struct spline_axis axis = spline_axis_of(job, 1, between->marks);

    struct spline_rows<double> rows = {
    };

    axis.lines = job->to.columns * job->from.slices;
    rows.samples = between->first;
    rows.pitch = (uint32_t)spline_pitch(job->from.rows);
    rows.target = between->second;
    rows.inner = job->to.columns;
    rows.step = spline_pitch(job->to.columns);
    return spline_launch(lane, rows, axis, error);
}

template <typename Result>
static int
spline_third(struct cuda_lane *lane, const struct resample_job *job,
             const struct resample_between_axes *between, struct error *error)
{
    struct spline_axis axis = spline_axis_of(job, 2, between->marks);

    const struct spline_sides<Result> sides = {
        between->second, (Result *)job->resampled,
            spline_pitch(job->to.columns), job->to.columns, job->to.rows * job->to.columns
    };

    axis.lines = sides.pitch * job->to.rows;
    return spline_launch(lane, sides, axis, error);
}

int
resample_queue_spline(struct cuda_lane *lane, const struct resample_job *job,
                      const struct resample_between_axes *between, struct error *error)
{
    int rc = resample_typed(lane->base.pixel, [&](auto value) {
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
