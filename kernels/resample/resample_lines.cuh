/*
 * resample_lines.cuh - the lines of order 3 on the GPU: reads a warp's lines into its ring, and
 * writes their places.
 *
 * Along the first two axes, a line is contiguous. A warp reads a span of its lines by half rows,
 * and transposes them in the ring. It writes transposed, so that the next axis is contiguous: y
 * after the first axis, x after the second. Lines along z are parallel, not contiguous.
 */
#ifndef NOCTULE_KERNELS_RESAMPLE_RESAMPLE_LINES_CUH
#define NOCTULE_KERNELS_RESAMPLE_RESAMPLE_LINES_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/resample/resample_cuda.cuh"

enum {
    SPAN = 16,
    SPLINE_THREADS = 64,
    SPLINE_STEPS = 4, /* samples whose places are computed in parallel */
    SPLINE_WARP = 32,
    SPLINE_SECTOR = 4,                 /* doubles per memory sector */
    SPLINE_PITCH = SPLINE_WARP + 1,    /* avoids bank conflicts in both directions */
    SPLINE_SLOT = SPAN * SPLINE_PITCH, /* doubles of the ring: a span of a warp's lines */
    SPLINE_AHEAD = 2,                  /* spans in transfer, and those before a recursion begins */
    SPLINE_RESERVED = 1024,            /* bytes of shared memory reserved per block */
};

static_assert(SPLINE_AHEAD * SPAN >= RESAMPLE_REACH, "");

/* Warps per multiprocessor, which share its memory, for the three axes. */
static const int spline_warps[3] = {16, 16, 16};

/* Places after a sample that are computed together, for the three axes. */
static constexpr int spline_together[3] = {1, 1, 3};

#define SPLINE_WHOLE (0x1p52 + 0x1p31)

/* An axis of the volume and its places on the grid. */
struct spline_axis {
    const struct resample_start *start;
    const struct resample_weights *weights; /* of the places */
    const int32_t *firsts;                  /* the first place after each sample, and beyond the last */
    const struct resample_due *due;         /* per sample, as many as are computed together */
    int32_t samples, places, together;
    int32_t slots; /* per warp's ring */
    int64_t lines;
    double *marks;    /* state before a span, for all lines */
    uint32_t *missed; /* per warp, whether a sweep failed on its lines */
};

struct spline_axes {
    struct spline_axis of[3];
};

/* The whole warp must call it. */
template <int LEFT>
__device__ static __forceinline__ void
spline_wait()
{
    ptx_copies_wait<LEFT>();
    __syncwarp();
}

/* The destination of a thread's line. */
template <typename Placed> struct spline_target {
    typedef Placed placed;

    const struct spline_axis &axis;
    Placed *first;
    uint32_t step; /* in bytes */
    double gain;   /* factor of samples */
    bool exists;

    __device__ __forceinline__ explicit spline_target(const struct spline_axis &along)
        : axis(along), gain(along.samples > 1 ? RESAMPLE_GAIN : 1)
    {
    }

    __device__ __forceinline__ double gained(double value) const
    {
        return __dmul_rn(value, gain);
    }

    /* Computes the address explicitly: the compiler would start from the first line each time. */
    __device__ __forceinline__ void put(Placed value, int32_t place, bool due) const
    {
        ptx_store((Placed *)ptx_mad_wide((uint32_t)place, step, (uint64_t)first), value, due && exists);
    }
};

/* ---- contiguous lines ---- */

/* Line l begins at samples + l * pitch. Its place i is at target[(l / inner * places + i) * step +
 * l % inner]. */
template <typename Value> struct spline_rows {
    const Value *samples;
    double *target;
    uint32_t pitch;
    int64_t inner, step;
};

struct spline_row_target : spline_target<double> {
    template <typename Value>
    __device__ __forceinline__ spline_row_target(const struct spline_rows<Value> &rows, const struct spline_axis &along,
                                                 int64_t line)
        : spline_target<double>(along)
    {
        first = rows.target + line / rows.inner * axis.places * rows.step + line % rows.inner;
        step = (uint32_t)rows.step * (uint32_t)sizeof(double);
        exists = line < axis.lines;
    }

    __device__ __forceinline__ double place(double value) const
    {
        return value;
    }
};

/* A thread's line. Stored values wait in registers until they enter the ring, as samples. */
template <typename Value> struct spline_row : spline_row_target {
    static constexpr bool stored = !std::is_same<Value, double>::value;

    const Value *samples; /* of the warp's first line */
    uint32_t pitch;
    int32_t last_line; /* last existing line of the warp */
    Value coming[SPAN];
    double *landing; /* start of this lane's samples in the ring, if any */

    __device__ __forceinline__ spline_row(const struct spline_rows<Value> &rows, const struct spline_axis &along,
                                          int64_t line)
        : spline_row_target(rows, along, line)
    {
        const int32_t lane = threadIdx.x % SPLINE_WARP;

        samples = rows.samples + (line - lane) * rows.pitch;
        pitch = rows.pitch;
        last_line = (int32_t)min(axis.lines - 1 - (line - lane), (int64_t)SPLINE_WARP - 1);
        landing = nullptr;
    }

    /* Fetches a span of two lines at a time. Beyond a line, its last sample repeats. */
    __device__ __forceinline__ void fetch(int32_t span, double *slot)
    {
        const int32_t lane = threadIdx.x % SPLINE_WARP, half = lane / SPAN, i = lane % SPAN;
        const Value *const column = samples + min(span * SPAN + i, axis.samples - 1);
        double *const to = slot + i * SPLINE_PITCH + half;

        land();
        __syncwarp();
#pragma unroll
        for (int l = 0; l < SPAN; l++) {
            const int32_t line = min(l * (SPLINE_WARP / SPAN) + half, last_line);
            const Value *const from = column + (uint64_t)pitch * (uint32_t)line;

            if constexpr (stored)
                coming[l] = __ldg(from);
            else
                ptx_copy<8>(to + l * (SPLINE_WARP / SPAN), from);
        }
        landing = to;
    }

    __device__ __forceinline__ void land()
    {
        if constexpr (stored) {
            if (!landing)
                return;
#pragma unroll
            for (int l = 0; l < SPAN; l++)
                landing[l * (SPLINE_WARP / SPAN)] = sample(coming[l]);
            landing = nullptr;
            __syncwarp();
        }
    }

    /* Converts in integers and through 2^52 to a double: exact. */
    __device__ __forceinline__ double sample(int32_t value) const
    {
        const int32_t whole = axis.samples == 1 ? value : value * (int32_t)RESAMPLE_GAIN;

        return __dsub_rn(__hiloint2double(0x43300000, whole ^ INT32_MIN), SPLINE_WHOLE);
    }

    __device__ __forceinline__ double gained(double value) const
    {
        return stored ? value : spline_row_target::gained(value);
    }

    static constexpr int together = spline_together[0];
};

/* ---- parallel lines ---- */

/* Sample k of line l is at samples[k * lines + l]. pitch lines are a row of the grid, whose slices
 * are step voxels apart. */
template <typename Result> struct spline_sides {
    const double *samples;
    Result *target;
    int64_t pitch, columns, step;
};

/* A thread's line. */
template <typename Result> struct spline_side : spline_target<Result> {
    static constexpr int together = spline_together[2];
    using spline_target<Result>::axis;

    const double *samples;

    __device__ __forceinline__ spline_side(const struct spline_sides<Result> &sides, const struct spline_axis &along,
                                           int64_t line)
        : spline_target<Result>(along)
    {
        const int64_t i = line % sides.pitch;

        samples = sides.samples + min(line, axis.lines - 1);
        this->first = sides.target + line / sides.pitch * sides.columns + i;
        this->step = (uint32_t)sides.step * (uint32_t)sizeof(Result);
        this->exists = line < axis.lines && i < sides.columns;
    }

    __device__ __forceinline__ Result place(double value) const
    {
        return resample_result<Result>(value);
    }

    __device__ __forceinline__ void fetch(int32_t span, double *slot) const
    {
        const double *from = samples + (int64_t)span * SPAN * axis.lines;
        double *const to = slot + threadIdx.x % SPLINE_WARP;

#pragma unroll
        for (int i = 0; i < SPAN; i++) {
            ptx_copy<8>(to + i * SPLINE_PITCH, from);
            if (span * SPAN + i + 1 < axis.samples)
                from += axis.lines;
        }
    }

    __device__ __forceinline__ void land()
    {
    }
};

template <typename Lines> struct spline_line_of;

template <typename Value> struct spline_line_of<struct spline_rows<Value>> {
    typedef struct spline_row<Value> line;
};

template <typename Result> struct spline_line_of<struct spline_sides<Result>> {
    typedef struct spline_side<Result> line;
};

#endif
