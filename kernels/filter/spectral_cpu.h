/* spectral_cpu.h - declarations that the sources of the spectral filters on the CPU share. */
#ifndef NOCTULE_KERNELS_FILTER_SPECTRAL_CPU_H
#define NOCTULE_KERNELS_FILTER_SPECTRAL_CPU_H

#include "kernels/cpu/device.h"
#include "kernels/filter/gabor.h"
#include "kernels/filter/spectral.h"

/* Memory of a Gabor filter. Columns are groups of FFT_LANES. */
struct cpu_gabor {
    struct gabor_plan plan;
    int64_t halves, columns, longest; /* largest numbers of the planes: groups of columns times places; places */
    struct fft_value *roots[GABOR_PLANES][2];
    double *transfer; /* per angle */
    double *sums;     /* pooled moduli of the planes so far; NULL for one plane */
    int64_t space;    /* values per thread */
    struct fft_lanes *spaces;
};

struct cpu_spectral {
    struct filter_demand demand; /* first: filter.h */
    struct spectral_plan plan;
    struct cpu_gabor gabor;
    int64_t groups; /* of FFT_LANES columns */
    int64_t space;  /* values per thread */
    double *tables[3];
    struct fft_value *roots[3];
    struct fft_lanes *spectrum;        /* groups of columns per row */
    struct fft_lanes *spaces;          /* per thread */
    struct spectral_ring_lanes *rings; /* per thread: of f, of f' */
    int32_t *codes;
};

/* Returns a clipped value. */
static inline int32_t
spectral_input(const struct cpu_lane *lane, const struct filter_request *request, int64_t voxel)
{
    return request->values ? filter_clip(request, request->values[voxel])
                           : filter_value(request, image_value(lane->voxels.memory, lane->base.pixel, voxel));
}

/* Transforms values that are at the begin of `space`, or one length behind it. `space` has three lengths. Returns the
 * place of the result, one of these two. */
static inline struct fft_lanes *
spectral_transform(const struct cpu_lane *lane, const struct fft_plan *plan, bool inverse, struct fft_lanes *space,
                   struct fft_lanes *values)
{
    return cpu_device_of(&lane->base)
        ->isa->fft_lines(plan, inverse, values, values == space ? space + plan->side : space, space + 2 * plan->side);
}

/* gabor_cpu.c: parts of the operation for Gabor filters. */
void cpu_gabor_size(struct cpu_gabor *own);
void cpu_gabor_place(const struct kernels_lane *lane, struct cpu_gabor *own, struct kernels_memory *memory);
void cpu_gabor_run(struct cpu_lane *lane, struct cpu_spectral *own, const struct filter_task *filter);

#endif
