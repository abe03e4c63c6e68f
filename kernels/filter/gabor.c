/* gabor.c - the plan of gabor.h. */
#include "kernels/filter/gabor.h"

#include <errno.h>

/* Finds the axes of a plane: a, b and across. */
static void
plane_axes(int plane, int axes[3])
{
    axes[0] = plane == 2 ? 1 : 0;
    axes[1] = plane == 0 ? 1 : 2;
    axes[2] = 2 - plane;
}

/* Returns the places of a kernel to each side; a large number if the options are impossible. */
static int64_t
kernel_reach(const struct filter_options *options, double mm)
{
    const double reach = ceil(GABOR_CUT * options->sigma_mm * fmax(1, 1 / options->gamma) / mm);

    return reach >= 0 && reach < INT32_MAX / 4 ? (int64_t)reach : INT32_MAX / 4;
}

/* Returns the number of angles within half a turn, or of the whole turn if that has no opposite angles; 0: the step does
 * not divide the turn. */
static int
count_angles(const struct filter_options *options)
{
    const double turn = 360 / options->theta_degrees;

    if (options->pooling == FILTER_ONE)
        return 1;
    if (!(turn >= 1 && turn <= FILTER_MAX_ANGLES) || turn != floor(turn))
        return 0;
    return (int)turn % 2 == 0 ? (int)turn / 2 : (int)turn;
}

static void
make_axis(const struct filter_demand *demand, int axis, int64_t side, struct gabor_axis *own)
{
    int64_t length = side;
    struct fft_plan plan;

    *own = (struct gabor_axis){.axis = axis, .side = side, .mm = demand->spacing[axis]};
    own->reach = kernel_reach(&demand->options, own->mm);
    fft_plan_make(side, &plan);
    if (demand->options.boundary != FILTER_PERIODIC || !fft_is_small(&plan)) {
        own->before = own->reach;
        length = side + 2 * own->reach;
        length = length > FFT_MAX_SIDE ? length : fft_good_side(length);
    }
    own->fft.side = (int32_t)length;
}

/* Finds the frequencies of a kernel along a. Its standard deviation in radians is that of (cos / sigma, sin gamma /
 * sigma). */
static void
kernel_band(const struct gabor_plan *plan, const struct gabor_plane *plane, struct gabor_kernel *kernel, int at)
{
    const double length = plane->axis[0].fft.side, mm = plane->axis[0].mm;
    const double u = kernel->cosine / plan->sigma_mm, w = kernel->sine * plan->gamma / plan->sigma_mm;
    const double deviation = sqrt(u * u + w * w) * mm / 0x1.921fb54442d18p+2; /* 2 pi */
    const double mean = -kernel->cosine * mm / plan->lambda_mm;
    const double first = ceil((mean - GABOR_CUT * deviation) * length);
    const double last = floor((mean + GABOR_CUT * deviation) * length);
    const double wrapped = first - floor(first / length) * length;

    kernel->first[at] = wrapped < length ? (int32_t)wrapped : 0;
    kernel->count[at] = last - first + 1 < length ? (int32_t)(last - first) + 1 : (int32_t)length;
}

int
gabor_plan_make(const struct filter_demand *demand, const struct image_extent *extent, struct gabor_plan *plan)
{
    const struct filter_options *options = &demand->options;
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};

    *plan = (struct gabor_plan){.gamma = options->gamma,
                                .lambda_mm = options->lambda_mm,
                                .sigma_mm = options->sigma_mm,
                                .boundary = options->boundary,
                                .pooling = options->pooling};
    if (gabor_bound(demand) < 0)
        return -EINVAL;
    plan->angles = count_angles(options);
    plan->planes = options->in_slice ? 1 : GABOR_PLANES;
    for (int i = 0; i < plan->angles; i++) {
        const double degrees = options->theta_degrees * (options->pooling == FILTER_ONE ? 1 : i);
        const double eighths = degrees / 45 - 8 * floor(degrees / 360);
        const struct fft_value root = fft_root((int64_t)eighths, eighths - floor(eighths));

        plan->kernel[i].cosine = root.re;
        plan->kernel[i].sine = -root.im;
    }
    for (int p = 0; p < plan->planes; p++) {
        struct gabor_plane *plane = &plan->plane[p];
        int axes[3];

        plane_axes(p, axes);
        plane->slices = axes[2];
        for (int i = 0; i < 2; i++) {
            struct gabor_axis *own = &plane->axis[i];

            make_axis(demand, axes[i], sides[axes[i]], own);
            if (own->fft.side > FFT_MAX_SIDE)
                return -E2BIG;
            fft_plan_make(own->fft.side, &own->fft);
        }
        plane->half = plane->axis[0].fft.side / 2 + 1;
        for (int i = 0; i < plan->angles; i++)
            kernel_band(plan, plane, &plan->kernel[i], p);
    }
    return 0;
}

/* A sum of exp(-t^2 / (2 s^2)) over equidistant t is at most 1 + sqrt(2 pi) s. In a plane, rows have the conditional
 * deviation, and their largest values the marginal one: their sum is largest, for the same product, along the axes of
 * the ellipse. */
double
gabor_bound(const struct filter_demand *demand)
{
    const struct filter_options *options = &demand->options;
    const double *mm = demand->spacing;
    const double least = fmin(fmin(mm[0], mm[1]), options->in_slice ? mm[0] : mm[2]);
    const double deviations = 0x1.40d931ff62706p+1 * options->sigma_mm / least; /* sqrt(2 pi) */

    if (!(options->sigma_mm > 0 && options->gamma > 0 && options->lambda_mm > 0 && least > 0) ||
        count_angles(options) == 0 || !(fabs(options->theta_degrees) <= 360))
        return -1;
    return (1 + deviations) * (1 + deviations / options->gamma);
}
