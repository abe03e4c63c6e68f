/*
 * resample_sweep.cuh - order 3 on the GPU in one sweep along each line, which reads it once. One
 * line per thread, one warp per block.
 *
 * The recursion runs forward over a chunk of spans and some more. From there it runs back as if the
 * line ended. The initial value fades by the pole, 0.27, with every sample. In the chunk's own
 * spans, the result therefore usually equals that from the line's real end, bit for bit, given
 * noise. The next chunk verifies this: it begins further on, and its result at the chunk's end is
 * compared with the assumed one. If they differ in any line, the warp leaves all its lines to
 * resample_spline.cu.
 *
 * Where samples are 0, rounding does not hide the initial value. Outside a scanner's field of view,
 * all lines of a warp begin with spans of zeros. These are deferred until the recursion comes back
 * from the first chunk behind them.
 *
 * A chunk's second span is free first. The span five further is then loaded into its slot, followed
 * by the next one into the first span's slot. Even spans rotate through three slots, odd ones
 * through two.
 */
#ifndef NOCTULE_KERNELS_RESAMPLE_RESAMPLE_SWEEP_CUH
#define NOCTULE_KERNELS_RESAMPLE_RESAMPLE_SWEEP_CUH

#include "kernels/resample/resample_back.cuh"

enum {
    SWEEP_CHUNK = 2,
    SWEEP_AFTER =
        /* spans behind a chunk where the backward recursion begins: 0.27^48 is below double
         * precision */
    3,
    SWEEP_SLOTS = SWEEP_CHUNK + SWEEP_AFTER,
    SWEEP_SLOT = SPAN * SPLINE_WARP, /* doubles */
    SWEEP_BLOCKS = 10,               /* per multiprocessor */
    SWEEP_AHEAD = 5,                 /* spans of stored values that are prefetched */
};

static_assert(SWEEP_CHUNK * SPAN >= RESAMPLE_REACH, "a chunk of zeros begins with 0");
static_assert((int)SPLINE_WARP == (int)RESAMPLE_REACH, "a lane has a weight of a beginning");

/* ---- loading lines ---- */

/* For contiguous lines. A lane's samples of a span form a row, in pairs that are rotated so that
 * eight lanes access different banks. */
struct sweep_row : spline_row_target {
    static constexpr int together = spline_together[0];
    using spline_row_target::spline_row_target;

    __device__ __forceinline__ static double2 *pair(double *slot, int32_t i)
    {
        const int32_t lane = (int32_t)threadIdx.x % SPLINE_WARP;

        return (double2 *)slot + (lane * (SPAN / 2) + (i ^ lane % (SPAN / 2)));
    }

    __device__ __forceinline__ static void hold(double *slot, const double (&values)[SPAN])
    {
#pragma unroll
        for (int i = 0; i < SPAN; i += 2)
            *pair(slot, i / 2) = make_double2(values[i], values[i + 1]);
    }

    template <size_t COUNT>
    __device__ __forceinline__ static void held(double *slot, int32_t from, double (&values)[COUNT])
    {
#pragma unroll
        for (int i = 0; i < (int)COUNT; i += 2) {
            const double2 two = *pair(slot, from / 2 + i / 2);

            values[i] = two.x;
            values[i + 1] = two.y;
        }
    }

    __device__ __forceinline__ static double held_at(double *slot, int32_t i)
    {
        const double2 two = *pair(slot, i / 2);

        return i % 2 ? two.y : two.x;
    }
};

/* Stored values: those of the next spans wait in registers. */
template <typename Value> struct sweep_stored : sweep_row {
    static constexpr int words = SPAN * (int)sizeof(Value) / 4, each = 4 / (int)sizeof(Value);
    static constexpr int32_t least = std::is_signed<Value>::value ? -32768 : 0;

    const Value *samples;
    double less; /* offset to subtract, scaled by the gain */
    bool aligned;
    uint32_t coming[2][(size_t)words];

    __device__ __forceinline__ sweep_stored(const struct spline_rows<Value> &rows, const struct spline_axis &along,
                                            int64_t line)
        : sweep_row(rows, along, line)
    {
        samples = rows.samples + min(line, axis.lines - 1) * rows.pitch;
        less = -gain * (0x1p52 - least);
        aligned = __all_sync(~0u, (uintptr_t)samples % 16 == 0);
    }

    /* Beyond a line, its last sample repeats. */
    __device__ __forceinline__ void read(int32_t span, uint32_t (&to)[(size_t)words]) const
    {
        const Value *const from = samples + (int64_t)span * SPAN;

        if (aligned && (span + 1) * SPAN <= axis.samples) {
#pragma unroll
            for (int i = 0; i < words / 4; i++) {
                const uint4 four = __ldg((const uint4 *)from + i);

                to[4 * i] = four.x;
                to[4 * i + 1] = four.y;
                to[4 * i + 2] = four.z;
                to[4 * i + 3] = four.w;
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < words; i++)
            to[i] = 0;
#pragma unroll
        for (int i = 0; i < SPAN; i++) {
            const int32_t k = min(span * SPAN + i, axis.samples - 1);
            const uint32_t bits = (uint32_t)__ldg(samples + k) & ~0u >> (32 - 8 * sizeof(Value));

            to[i / each] |= bits << (i % each * 8 * (int)sizeof(Value));
        }
    }

    __device__ __forceinline__ bool is_zero(int32_t span) const
    {
        uint32_t words_of[(size_t)words], any = 0;

        read(span, words_of);
#pragma unroll
        for (int i = 0; i < words; i++)
            any |= words_of[i];
        return any == 0;
    }

    /* Converts from the bits of a double of at least 2^52; fused but exact. */
    __device__ __forceinline__ double sample(Value value) const
    {
        return __fma_rn(__hiloint2double(0x43300000, (int32_t)(uint16_t)(value ^ least)), gain, less);
    }

    __device__ __forceinline__ void begin(int32_t span, int32_t last, double *)
    {
        read(span, coming[0]);
        read(min(span + 1, last), coming[1]);
    }

    /* For the first spans. */
    __device__ __forceinline__ double early(double *, int32_t k) const
    {
        return sample(held_in(coming[k / SPAN], k % SPAN));
    }

    __device__ __forceinline__ static Value held_in(const uint32_t (&words_of)[(size_t)words], int32_t i)
    {
        return (Value)(words_of[i / each] >> (i % each * 8 * (int)sizeof(Value)));
    }

    __device__ __forceinline__ void take(int32_t span, int32_t last, double *, double (&values)[SPAN])
    {
#pragma unroll
        for (int i = 0; i < SPAN; i++)
            values[i] = sample(held_in(coming[0], i));
#pragma unroll
        for (int i = 0; i < words; i++)
            coming[0][i] = coming[1][i];
        if (span + 2 <= last)
            read(span + 2, coming[1]);
        ptx_prefetch(samples + min(span + SWEEP_AHEAD, last) * SPAN);
    }

    __device__ __forceinline__ void renew(int32_t, int32_t, double *) const
    {
    }
};

/* Returns the slot of a span in a warp's ring. */
__device__ static __forceinline__ double *
sweep_slot(double *ring, int32_t span)
{
    const uint32_t two = (uint32_t)span / 2;

    return ring + (span % 2 ? 3 + two % 2 : two % 3) * SWEEP_SLOT;
}

/* Fetches the first spans of a line, and waits for them. */
template <typename Line>
__device__ static __forceinline__ void
sweep_fetch_first(const Line &line, int32_t span, int32_t last, double *ring)
{
    for (int32_t end = min(span + SWEEP_SLOTS - 1, last); span <= end; span++)
        line.fetch(span, sweep_slot(ring, span));
    ptx_copies_end_group();
    spline_wait<0>();
}

/* After a chunk, two spans are fetched: an odd one, and the next even one. */
__device__ static __forceinline__ void
sweep_wait(int32_t span)
{
    if (span % 2)
        spline_wait<1>();
    else
        spline_wait<0>();
}

/* Doubles: a warp reads four lines at a time. Rows are whole spans. */
struct sweep_doubles : sweep_row {
    const double *samples, *own; /* of the warp's first line, this lane's piece; and of its own line */
    uint32_t pitch;
    int32_t last_line;

    __device__ __forceinline__ sweep_doubles(const struct spline_rows<double> &rows, const struct spline_axis &along,
                                             int64_t line)
        : sweep_row(rows, along, line)
    {
        const int32_t lane = (int32_t)threadIdx.x % SPLINE_WARP;

        samples = rows.samples + (line - lane) * rows.pitch + lane % 8 * 2;
        own = rows.samples + min(line, axis.lines - 1) * rows.pitch;
        pitch = rows.pitch;
        last_line = (int32_t)min(axis.lines - 1 - (line - lane), (int64_t)SPLINE_WARP - 1);
    }

    __device__ __forceinline__ void fetch(int32_t span, double *slot) const
    {
        const int32_t lane = (int32_t)threadIdx.x % SPLINE_WARP;
        const double *const from = samples + span * SPAN;

#pragma unroll
        for (int l = 0; l < SPLINE_WARP; l += 4) {
            const int32_t line = l + lane / 8;

            ptx_copy<16>((double2 *)slot + (line * (SPAN / 2) + (lane ^ line) % (SPAN / 2)),
                         from + (uint64_t)pitch * (uint32_t)min(line, last_line));
        }
    }

    /* Accepts +0 only: the sign of -0 would be lost. */
    __device__ __forceinline__ bool is_zero(int32_t span) const
    {
        const double2 *const from = (const double2 *)(own + (int64_t)span * SPAN);
        long long any = 0;

#pragma unroll
        for (int i = 0; i < SPAN / 2; i++) {
            const double2 two = __ldg(from + i);

            any |= __double_as_longlong(two.x) | __double_as_longlong(two.y);
        }
        return any == 0;
    }

    __device__ __forceinline__ void begin(int32_t span, int32_t last, double *ring) const
    {
        sweep_fetch_first(*this, span, last, ring);
    }

    __device__ __forceinline__ double early(double *ring, int32_t k) const
    {
        return gained(held_at(sweep_slot(ring, k / SPAN), k % SPAN));
    }

    __device__ __forceinline__ void take(int32_t span, int32_t, double *slot, double (&values)[SPAN]) const
    {
        sweep_wait(span);
        held(slot, 0, values);
#pragma unroll
        for (int i = 0; i < SPAN; i++)
            values[i] = gained(values[i]);
    }

    /* Refills a slot. All lanes must be done with it. */
    __device__ __forceinline__ void renew(int32_t span, int32_t last, double *slot) const
    {
        __syncwarp();
        if (span <= last)
            fetch(span, slot);
        ptx_copies_end_group();
    }
};

/* Parallel lines: a lane's samples form a column. */
template <typename Result> struct sweep_side : spline_side<Result> {
    using spline_side<Result>::axis, spline_side<Result>::samples;

    const double *pairs; /* of the warp's lines, this lane's two */
    int32_t last_sample;

    __device__ __forceinline__ sweep_side(const struct spline_sides<Result> &sides, const struct spline_axis &along,
                                          int64_t line)
        : spline_side<Result>(sides, along, line), last_sample(along.samples - 1)
    {
        const int32_t lane = (int32_t)threadIdx.x % SPLINE_WARP;

        pairs = sides.samples + min(line - lane + lane % SPAN * 2, axis.lines - 2);
    }

    /* A warp reads two samples of each line at a time. Rows are whole sectors. */
    __device__ __forceinline__ void fetch(int32_t span, double *slot) const
    {
        const int32_t lane = (int32_t)threadIdx.x % SPLINE_WARP, i = span * SPAN + lane / SPAN;
        double *const to = slot + lane * 2;

#pragma unroll
        for (int k = 0; k < SPAN; k += 2)
            ptx_copy<16>(to + k * SPLINE_WARP, pairs + min(i + k, last_sample) * axis.lines);
    }

    /* Accepts +0 only: the sign of -0 would be lost. */
    __device__ __forceinline__ bool is_zero(int32_t span) const
    {
        const double *const from = samples + (int64_t)span * SPAN * axis.lines;
        long long any = 0;

#pragma unroll
        for (int i = 0; i < SPAN; i++)
            any |= __double_as_longlong(__ldg(from + i * axis.lines));
        return any == 0;
    }

    __device__ __forceinline__ void begin(int32_t span, int32_t last, double *ring) const
    {
        sweep_fetch_first(*this, span, last, ring);
    }

    __device__ __forceinline__ double early(double *ring, int32_t k) const
    {
        return this->gained(held_at(sweep_slot(ring, k / SPAN), k % SPAN));
    }

    __device__ __forceinline__ void take(int32_t span, int32_t, double *slot, double (&values)[SPAN]) const
    {
        sweep_wait(span);
        held(slot, 0, values);
#pragma unroll
        for (int i = 0; i < SPAN; i++)
            values[i] = this->gained(values[i]);
    }

    /* Refills a slot. All lanes must be done with it. */
    __device__ __forceinline__ void renew(int32_t span, int32_t last, double *slot) const
    {
        __syncwarp();
        if (span <= last)
            fetch(span, slot);
        ptx_copies_end_group();
    }

    __device__ __forceinline__ static void hold(double *slot, const double (&values)[SPAN])
    {
#pragma unroll
        for (int i = 0; i < SPAN; i++)
            slot[i * SPLINE_WARP + threadIdx.x % SPLINE_WARP] = values[i];
    }

    template <size_t COUNT>
    __device__ __forceinline__ static void held(double *slot, int32_t from, double (&values)[COUNT])
    {
#pragma unroll
        for (int i = 0; i < (int)COUNT; i++)
            values[i] = held_at(slot, from + i);
    }

    __device__ __forceinline__ static double held_at(double *slot, int32_t i)
    {
        return slot[i * SPLINE_WARP + threadIdx.x % SPLINE_WARP];
    }
};

template <typename Lines> struct sweep_line_of;

template <typename Value> struct sweep_line_of<struct spline_rows<Value>> {
    typedef struct sweep_stored<Value> line;
};

template <> struct sweep_line_of<struct spline_rows<double>> {
    typedef struct sweep_doubles line;
};

template <typename Result> struct sweep_line_of<struct spline_sides<Result>> {
    typedef struct sweep_side<Result> line;
};

/* ---- the sweep ---- */

template <typename Line> struct spline_sweep : spline_back<Line> {
    using back_of = spline_back<Line>;
    using back_of::axis, back_of::line, back_of::window;

    double *const ring;
    int32_t last, quiet;  /* spans: the last one, and the number of deferred zero spans */
    double before, entry; /* forward result of the last sample, and before the last span */
    double taken[3];      /* assumed window at the end of the next chunk */
    bool missed;

    __device__ __forceinline__ spline_sweep(const struct spline_axis &along, Line &own,
                                            struct spline_places<Line::together> &due, double *slots)
        : back_of(along, own, due), ring(slots), last((along.samples - 1) / SPAN), quiet(0), missed(false)
    {
    }

    __device__ __forceinline__ double *slot_of(int32_t span) const
    {
        return sweep_slot(ring, span);
    }

    /* Skips whole chunks of zeros that are followed by other spans. */
    __device__ __forceinline__ void skip_zeros()
    {
        while (quiet + SWEEP_CHUNK < last &&
               __all_sync(~0u, !line.exists || (line.is_zero(quiet) && line.is_zero(quiet + 1))))
            quiet += SWEEP_CHUNK;
    }

    /* Computes the initial sum of the recursion, 0 for zeros. */
    __device__ __forceinline__ void start()
    {
        before = 0;
        if (quiet > 0)
            return;
        const double weight = axis.start->weight[threadIdx.x % SPLINE_WARP];
        const int32_t count = axis.start->count;

#pragma unroll
        for (int32_t k = 0; k < RESAMPLE_REACH; k++) {
            const double part = __dmul_rn(__shfl_sync(~0u, weight, k), line.early(ring, k));

            if (k < count)
                before = k > 0 ? __dadd_rn(before, part) : part;
        }
    }

    __device__ __forceinline__ void forth(int32_t span, double (&values)[SPAN])
    {
        double *const slot = slot_of(span);

        line.take(span, last, slot, values);
        entry = before;
#pragma unroll
        for (int i = 0; i < SPAN; i++) {
            if (i > 0 || span > 0)
                before = __dadd_rn(values[i], __dmul_rn(RESAMPLE_POLE, before));
            values[i] = before;
        }
        Line::hold(slot, values);
    }

    /* Begins the backward recursion at the end of the line. Returns the rest of the last span. */
    __device__ __forceinline__ int32_t begin_last()
    {
        double *const slot = slot_of(last);
        const int32_t i = (axis.samples - 1) % SPAN;

        this->turn(Line::held_at(slot, i), i > 0 ? Line::held_at(slot, i - 1) : entry);
        return i - 1;
    }

    /* Begins the backward recursion behind a span as if all later samples equalled its last one. */
    __device__ __forceinline__ void begin_behind(const double (&values)[SPAN])
    {
        window[0] = __dmul_rn(values[SPAN - 1], -RESAMPLE_POLE / (1 - RESAMPLE_POLE));
        window[1] = window[2] = window[3] = window[0];
        back_bare(values);
    }

    /* Computes a span's coefficients only. */
    __device__ __forceinline__ void back_bare(const double (&values)[SPAN])
    {
#pragma unroll
        for (int i = SPAN - 1; i >= 0; i--)
            this->push_behind(values[i]);
    }

    /* From sample i on. */
    __device__ __forceinline__ void back_bare(double *slot, int32_t i)
    {
        double values[SPAN];

        if (i == SPAN - 1) {
            Line::held(slot, 0, values);
            back_bare(values);
            return;
        }
#pragma unroll 2
        for (; i >= 0; i--)
            this->push_behind(Line::held_at(slot, i));
    }

    /* Computes coefficients and their places. */
    __device__ __forceinline__ void back_whole(double *slot)
    {
        constexpr int STEPS = 8; /* places computed in parallel */

#pragma unroll 1
        for (int32_t i = SPAN - STEPS; i >= 0; i -= STEPS) {
            double values[(size_t)STEPS];

            Line::held(slot, i, values);
#pragma unroll
            for (int k = STEPS - 1; k >= 0; k--) {
                this->push_behind(values[k]);
                this->put_together(i + k);
            }
        }
    }

    /* Handles a span of zeros, which has no slot, or one with more places than are computed
     * together. */
    __device__ __forceinline__ void back_single(double *slot, int32_t span, int32_t i, bool few)
    {
#pragma unroll 1
        for (; i >= 0; i--) {
            this->push_behind(span < quiet ? 0 : Line::held_at(slot, i));
            if (few)
                this->put_together(i);
            else
                this->put_all(span * SPAN + i);
        }
    }

    __device__ __forceinline__ void back_span(int32_t span, int32_t i, int32_t next)
    {
        double *const slot = slot_of(span);
        const bool few = this->take_places();

        this->fetch_places(next);
        __syncwarp();
        if (few && span >= quiet && i == SPAN - 1)
            back_whole(slot);
        else
            back_single(slot, span, i, few);
        if (span >= quiet)
            line.renew(span % 2 ? span + SWEEP_SLOTS - 1 : span + SWEEP_SLOTS + 1, last, slot);
    }

    /* Checks the assumption about the chunk's end, and stores the next one. */
    __device__ __forceinline__ void compare(int32_t first, const double (&next)[3])
    {
#pragma unroll
        for (int w = 0; w < 3; w++) {
            missed |= first > quiet && window[w] != taken[w];
            taken[w] = next[w];
        }
    }

    /* Runs back through the chunk that begins at `first`, from behind span `reach` if it exists,
     * and through zeros before the first one. */
    __device__ __forceinline__ void chunk(int32_t first, int32_t reach, const double (&values)[SPAN])
    {
        const int32_t end = first == quiet ? 0 : first;
        int32_t i = SPAN - 1, span = reach;
        double next[3];

        if (reach == last)
            i = begin_last();
        else {
            begin_behind(values);
            span--;
        }
        for (; span >= first + SWEEP_CHUNK; span--, i = SPAN - 1)
            back_bare(slot_of(span), i);
#pragma unroll
        for (int w = 0; w < 3; w++)
            next[w] = window[w];
        for (; span >= end; span--, i = SPAN - 1)
            back_span(span, i, span > end ? span - 1 : min(first + 2 * SWEEP_CHUNK - 1, last));
        compare(first, next);
        if (end == 0)
            this->put_first();
    }

    /* Returns false if an assumption failed. */
    __device__ __forceinline__ bool sweep()
    {
        skip_zeros();
        line.begin(quiet, last, ring);
        this->fetch_places(min(quiet + SWEEP_CHUNK - 1, last));
        start();
        for (int32_t first = quiet, span = quiet; first <= last; first += SWEEP_CHUNK) {
            const int32_t reach = min(first + SWEEP_SLOTS - 1, last);
            double values[SPAN];

            for (; span <= reach; span++)
                forth(span, values);
            chunk(first, reach, values);
            if (__any_sync(~0u, missed && line.exists)) {
                spline_wait<0>(); /* no transfer may be in progress to memory of another */
                return false;
            }
        }
        return true;
    }
};

/* missed: per warp. */
template <typename Lines>
__global__ void
__launch_bounds__(SPLINE_WARP, SWEEP_BLOCKS)
    spline_sweep_pass(const __grid_constant__ Lines lines, const __grid_constant__ struct spline_axis axis)
{
    typedef typename sweep_line_of<Lines>::line Line;
    extern __shared__ __align__(16) double shared[];
    Line line(lines, axis, (int64_t)blockIdx.x * SPLINE_WARP + threadIdx.x);
    struct spline_sweep<Line> sweep(
        axis, line, *(struct spline_places<Line::together> *)(shared + SWEEP_SLOTS * SWEEP_SLOT), shared);
    const bool made = sweep.sweep();

    if (threadIdx.x == 0)
        axis.missed[blockIdx.x] = !made;
}

#endif
