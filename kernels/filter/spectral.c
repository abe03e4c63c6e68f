/* spectral.c - the plan of spectral.h. */
#include "kernels/filter/spectral.h"

#include "kernels/filter/gabor.h"
#include "kernels/filter/separable.h"

#include <errno.h>

static double
factorial(int n)
{
    double product = 1;

    for (int i = 2; i <= n; i++)
        product *= i;
    return product;
}

static int
riesz_order(const struct filter_options *options)
{
    const bool riesz = options->kind == FILTER_RIESZ_LOG || options->kind == FILTER_RIESZ_SIMONCELLI;

    return riesz ? options->riesz[0] + options->riesz[1] + options->riesz[2] : 0;
}

static double
riesz_norm(const struct filter_options *options)
{
    const int order = riesz_order(options);

    return order == 0 ? 1
                      : sqrt(factorial(order) / (factorial(options->riesz[0]) * factorial(options->riesz[1]) *
                                                 factorial(options->riesz[2])));
}

/* Returns (2^j f)^2. */
static double
grid_square(int64_t k, int64_t side, int level)
{
    const int64_t place = (k + side / 2) % side;
    const double frequency = side > 1 ? (double)(2 * place - (side - 1)) / (double)(side - 1) : 0;

    return ldexp(frequency * frequency, 2 * level);
}

int
spectral_plan_make(const struct filter_demand *demand, const struct image_extent *extent, struct spectral_plan *plan)
{
    const struct filter_options *options = &demand->options;
    const int64_t sides[3] = {extent->columns, extent->rows, options->in_slice ? 1 : extent->slices};
    double voxels = 1;

    *plan = (struct spectral_plan){.radial = options->kind != FILTER_RIESZ_LOG, .order = riesz_order(options)};
    for (int axis = 0; axis < 3; axis++) {
        if (sides[axis] > FFT_MAX_SIDE)
            return -E2BIG;
        fft_plan_make(sides[axis], &plan->axis[axis].fft);
        voxels *= (double)sides[axis];
    }
    plan->kept = 1;
    for (int64_t k = 1; k <= extent->columns / 2; k++)
        if (!plan->radial || grid_square(k, extent->columns, options->level) <= 4 ||
            grid_square((extent->columns - k) % extent->columns, extent->columns, options->level) <= 4)
            plan->kept = k + 1;
    plan->factor = plan->order % 4 >= 2 ? -riesz_norm(options) : riesz_norm(options);
    plan->scale = 1 / voxels;
    return spectral_bound(demand) < 0 ? -EINVAL : 0;
}

void
spectral_point(struct spectral_axis *axis, double *table)
{
    const int64_t side = axis->fft.side;

    axis->plus = table;
    axis->minus = table + side;
    axis->power = table + 2 * side;
    axis->square = table + 3 * side;
}

void
spectral_fill(const struct filter_demand *demand, struct spectral_plan *plan, int axis, double *table)
{
    struct spectral_axis *own = &plan->axis[axis];
    const int64_t side = own->fft.side;
    const int order = plan->order > 0 ? demand->options.riesz[axis] : 0;

    spectral_point(own, table);
    for (int64_t k = 0; k < side; k++) {
        const double frequency = (double)(2 * k < side ? k : k - side) / (double)side;
        double power = 1;

        for (int i = 0; i < order; i++)
            power *= 2 * k == side && order % 2 == 1 ? 0 : frequency;
        table[k] = grid_square(k, side, demand->options.level);
        table[side + k] = grid_square((side - k) % side, side, demand->options.level);
        table[2 * side + k] = power;
        table[3 * side + k] = frequency * frequency;
    }
}

int
spectral_check(const struct filter_demand *demand, const struct image_extent *extent)
{
    struct spectral_plan plan;
    struct gabor_plan gabor;

    return demand->options.kind == FILTER_GABOR ? gabor_plan_make(demand, extent, &gabor)
                                                : spectral_plan_make(demand, extent, &plan);
}

/* Returns the largest sum of absolute values of a Riesz transform of a Laplacian of Gaussian, over that of the latter. */
static double
riesz_gain(const struct filter_demand *demand)
{
    const int axes = demand->options.in_slice ? 2 : 3;
    bool wide = true;

    for (int axis = 0; axis < axes; axis++)
        wide = wide && demand->options.sigma_mm >= demand->spacing[axis];
    return (wide ? 1 : 8) * riesz_norm(&demand->options);
}

/*
 * The sums of the absolute values of the kernels, measured: Simoncelli's in space 5.9 for 65^3 voxels, 6.9 for 256^3,
 * 0.7 more per doubling; in slices 3.5 for 4096 x 3328. Riesz transforms of them have at most half of that times their
 * norm. Riesz transforms of a Laplacian of Gaussian have at most 0.9 of its sum times their norm for sigma of a voxel
 * and more; of an impulse 7.7 for 192^3 and 12.3 for 2048 x 2048. Codes have room for twice the bound.
 */
double
spectral_bound(const struct filter_demand *demand)
{
    const struct filter_options *options = &demand->options;
    const int *riesz = options->riesz;
    const int order = riesz_order(options);

    if (options->kind == FILTER_GABOR)
        return gabor_bound(demand);
    if (order < 0 || order > FILTER_MAX_ORDER || riesz[0] < 0 || riesz[1] < 0 || riesz[2] < 0)
        return -1;
    if (options->kind != FILTER_SIMONCELLI &&
        (order == 0 || options->pooling != FILTER_ONE || (options->in_slice && riesz[2])))
        return -1;
    if (options->kind != FILTER_RIESZ_LOG && (options->level < 1 || options->level > FILTER_MAX_LEVEL))
        return -1;
    if (options->kind == FILTER_RIESZ_LOG)
        return riesz_gain(demand) * separable_bound(demand);
    return (options->in_slice ? 4 : 8) * riesz_norm(options);
}

void
spectral_reach(const struct filter_demand *demand, int32_t reach[3])
{
    for (int axis = 0; axis < 3; axis++)
        reach[axis] = axis == 2 && demand->options.in_slice ? 0 : INT32_MAX;
}
