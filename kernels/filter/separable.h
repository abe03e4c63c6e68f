/*
 * separable.h - the plan of a separable filter (filter.h), for all backends. Private to kernels/.
 *
 * Mean filters, and the energy of Laws, are sums over boxes. Others are sums or extremes of terms. A term is a kernel
 * along each axis. Its response along z is added to the response of the filter or, for an extreme, compared with it.
 * Terms are sorted into planes, which are kept between the passes along y and z: sums have a plane per kernel along z,
 * extremes have one per pair of kernels along x and y.
 */
#ifndef NOCTULE_KERNELS_FILTER_SEPARABLE_H
#define NOCTULE_KERNELS_FILTER_SEPARABLE_H

#include "kernels/filter/filter_private.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SEPARABLE_KERNELS = 4, /* per axis */
    SEPARABLE_TERMS = 24,
    SEPARABLE_PLANES = 16,
    SEPARABLE_WIDTH = 2 * FILTER_MAX_REACH + 1,
};

/*
 * The kernels of an axis. Place p of the window of the value at i is i - before + p. Near the ends of the volume a
 * wavelet's higher levels have other weights: rows for `edge` values at each end, and one for all between.
 */
struct separable_axis {
    int before, after, edge;
    int64_t side, rows;
    double *weights; /* [kernels][rows][width] */
};

struct separable_term {
    int8_t kernel[3];
    int8_t sign; /* of a sum: 1 or -1; of an extreme: also 0 for both signs */
};

struct separable_plane {
    int first, count; /* terms */
};

/* A kernel, the kernel turned around, half the sum of both, and half the difference. */
enum separable_turning { SEPARABLE_PLAIN, SEPARABLE_TURNED, SEPARABLE_EVEN, SEPARABLE_ODD };

struct separable_kernel {
    int base; /* LoG: 0 Gaussian, 1 second derivative; Laws: enum filter_laws; wavelets: 0 low, 1 high */
    enum separable_turning turning;
};

struct separable_plan {
    struct filter_demand demand;
    bool box; /* a mean */
    bool energy;
    int half[3];      /* of the box of a mean, or of energy */
    bool extreme;     /* pooling by maximum or minimum */
    double scale;     /* response / sum */
    double bound;     /* of the response for values up to 1 */
    double largest;   /* as `bound`, of the sum of a term */
    double box_scale; /* 1 / voxels of the box */
    struct separable_kernel kernels[SEPARABLE_KERNELS];
    int kernel_count;
    struct separable_term terms[SEPARABLE_TERMS];
    int term_count;
    struct separable_plane planes[SEPARABLE_PLANES];
    int plane_count;
    struct separable_axis axis[3];
};

/* Makes the plan of a filter for a volume, without weights. Returns -EINVAL or -E2BIG for filters that filter_run()
 * refuses. */
int separable_plan_make(const struct filter_demand *demand, const struct image_extent *extent,
                        struct separable_plan *plan);

/* Fills the weights of an axis, whose memory has separable_weights() elements. */
void separable_fill(const struct separable_plan *plan, int axis, double *weights);

/* See filter_step() and filter_reach(). The bound is for values up to 1; -1: impossible options. */
double separable_bound(const struct filter_demand *demand);
void separable_reach(const struct filter_demand *demand, int32_t reach[3]);

FILTER_INLINE int
separable_width(const struct separable_axis *axis)
{
    return axis->before + 1 + axis->after;
}

static inline size_t
separable_weights(const struct separable_plan *plan, int axis)
{
    return (size_t)plan->kernel_count * (size_t)plan->axis[axis].rows * (size_t)separable_width(&plan->axis[axis]);
}

/* Returns whether a term has a kernel along an axis. */
bool separable_uses(const struct separable_plan *plan, int axis, int kernel);

/* Returns the weights of the value at i. */
FILTER_INLINE const double *
separable_row(const struct separable_axis *axis, int kernel, int64_t i)
{
    const int64_t row = i < axis->edge ? i : i >= axis->side - axis->edge ? axis->rows - (axis->side - i) : axis->edge;

    return axis->weights + (kernel * axis->rows + row) * separable_width(axis);
}

/* Pools the response of a term. `first`: there is no other yet. */
FILTER_INLINE double
separable_pool(enum filter_pooling pooling, int sign, bool first, double pooled, double response)
{
    const double size = response < 0 ? -response : response;

    if (pooling != FILTER_MAX && pooling != FILTER_MIN)
        return pooled + (sign < 0 ? -response : response);
    if (pooling == FILTER_MAX) {
        response = sign == 0 ? size : sign < 0 ? -response : response;
        return first || response > pooled ? response : pooled;
    }
    response = sign == 0 ? -size : sign < 0 ? -response : response;
    return first || response < pooled ? response : pooled;
}

#ifdef __cplusplus
}
#endif
#endif
