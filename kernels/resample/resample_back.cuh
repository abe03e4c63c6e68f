/*
 * resample_back.cuh - order 3 on the GPU, the backward recursion along a line: coefficients, and
 * the grid's places when the last of their four coefficients is known.
 *
 * The bottleneck is dependent operations, not their number. The same fixed number of places is
 * therefore computed after each sample, some unused, and those of several samples in parallel,
 * without branches. Spans with more places after a sample compute them one by one.
 */
#ifndef NOCTULE_KERNELS_RESAMPLE_RESAMPLE_BACK_CUH
#define NOCTULE_KERNELS_RESAMPLE_RESAMPLE_BACK_CUH

#include "kernels/resample/resample_lines.cuh"

/* The places of a span: a fixed number per sample, from the last one down. Unused ones have
 * arbitrary weights. */
template <int TOGETHER> struct spline_places {
    double2 low[SPAN][(size_t)TOGETHER], high[SPAN][(size_t)TOGETHER];
    int2 due[SPAN]; /* last place, and number */
};

template <typename Line> struct spline_back {
    static constexpr int TOGETHER = Line::together;
    static constexpr int SHARE = (SPAN * TOGETHER + SPLINE_WARP - 1) / SPLINE_WARP;

    const struct spline_axis &axis;
    Line &line;
    struct spline_places<TOGETHER> &places;  /* of this warp */
    double window[4];                        /* coefficients from the last one on */
    struct resample_due next[(size_t)SHARE]; /* this lane's share of the next places */
    int32_t next_first, next_end;            /* places after a sample */

    __device__ __forceinline__ spline_back(const struct spline_axis &along, Line &own,
                                           struct spline_places<TOGETHER> &due)
        : axis(along), line(own), places(due)
    {
    }

    __device__ __forceinline__ int32_t first_behind(int32_t sample) const
    {
        return __ldg(axis.firsts + min(sample, axis.samples));
    }

    __device__ __forceinline__ void fetch_places(int32_t span)
    {
        const int32_t lane = threadIdx.x % SPLINE_WARP, own = span * SPAN + lane % SPAN + 1;

        next_first = first_behind(own);
        next_end = first_behind(own + 1);
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            const int32_t each = min(i * SPLINE_WARP + lane, SPAN * TOGETHER - 1);
            const struct resample_due *const due = axis.due + (span * (SPAN * TOGETHER) + each);

            next[i].low = __ldg(&due->low);
            next[i].high = __ldg(&due->high);
        }
    }

    /* Returns whether no sample has more places than are computed together. */
    __device__ __forceinline__ bool take_places()
    {
        const int32_t lane = threadIdx.x % SPLINE_WARP, count = next_end - next_first;

        __syncwarp();
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            const int32_t each = i * SPLINE_WARP + lane;

            if (each < SPAN * TOGETHER) {
                places.low[each / TOGETHER][each % TOGETHER] = next[i].low;
                places.high[each / TOGETHER][each % TOGETHER] = next[i].high;
            }
        }
        if (lane < SPAN)
            places.due[lane] = make_int2(next_end - 1, count);
        return __all_sync(~0u, count <= TOGETHER);
    }

    __device__ __forceinline__ void push(double coefficient)
    {
        window[3] = window[2];
        window[2] = window[1];
        window[1] = window[0];
        window[0] = coefficient;
    }

    /* Handles the sample whose forward result is given. */
    __device__ __forceinline__ void push_behind(double forth)
    {
        push(__dmul_rn(RESAMPLE_POLE, __dsub_rn(window[0], forth)));
    }

    __device__ __forceinline__ typename Line::placed made(double2 low, double2 high) const
    {
        return line.place(__dadd_rn(__dadd_rn(__dadd_rn(__dmul_rn(low.x, window[0]), __dmul_rn(low.y, window[1])),
                                              __dmul_rn(high.x, window[2])),
                                    __dmul_rn(high.y, window[3])));
    }

    /* Computes, without a branch, the places whose lowest coefficient belongs to a sample of a span. */
    __device__ __forceinline__ void put_together(int32_t i)
    {
        const int2 due = places.due[i];

#pragma unroll
        for (int m = 0; m < TOGETHER; m++)
            line.put(made(places.low[i][m], places.high[i][m]), due.x - m, m < due.y);
    }

    /* Computes all places of sample k. */
    __device__ __forceinline__ void put_all(int32_t k)
    {
        const int32_t first = first_behind(k + 1);

        for (int32_t place = first_behind(k + 2) - 1; place >= first; place--) {
            const double2 *const weights = (const double2 *)axis.weights[place].weight;

            line.put(made(__ldg(weights), __ldg(weights + 1)), place, true);
        }
    }

    /* Handles the last sample's coefficient, and the next one, which mirrors the previous one. The
     * one after it has no weight. */
    __device__ __forceinline__ void turn(double value, double previous)
    {
        window[0] = axis.samples == 1
                        ? value
                        : __dmul_rn(axis.start->end, __dadd_rn(__dmul_rn(RESAMPLE_POLE, previous), value));
        window[1] = axis.samples == 1 ? value : __dmul_rn(RESAMPLE_POLE, __dsub_rn(window[0], previous));
        window[2] = window[3] = value;
    }

    /* Computes the places before the second sample. Samples before the first are mirrored. */
    __device__ __forceinline__ void put_first()
    {
        push(window[1]);
        put_all(-1);
    }
};

#endif
