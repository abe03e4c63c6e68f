/* image_type.c - checks of arguments, and plans of image types; see image_type.h and image_type_steps.h. */
#include "kernels/filter/image_type.h"

#include "kernels/filter/fft.h"
#include "kernels/filter/image_type_steps.h"

#include <errno.h>
#include <math.h>

/* ------------------------------------------------------------------------ recursive filters -- */

/* Returns the cosine and the negative sine of an angle >= 0. */
static struct fft_value
image_type_turn(double angle)
{
    const double eighths = angle / 0x1.921fb54442d18p-1, whole = floor(eighths); /* pi / 4 */

    return fft_root((int64_t)whole, eighths - whole);
}

/* Sums of weights, and of weights times their number and its square. */
struct image_type_moments {
    double s, d, e;
};

/* The two damped waves of which Deriche's filters consist: exp(-l x) (a cos(w x) + b sin(w x)). */
struct image_type_waves {
    double sine[2], cosine[2], fall[2];
};

static struct image_type_waves
image_type_waves(double sigma)
{
    static const double w[2] = {0.6681, 2.0787}, l[2] = {1.3932, 1.3732};
    struct image_type_waves waves;

    for (int i = 0; i < 2; i++) {
        const struct fft_value turn = image_type_turn(w[i] / sigma);

        waves.cosine[i] = turn.re;
        waves.sine[i] = -turn.im;
        waves.fall[i] = filter_exp_of(l[i] / sigma);
    }
    return waves;
}

/* Sets the weights of values for a derivative of order 0 or 2. */
static struct image_type_moments
image_type_numerator(const struct image_type_waves *waves, int order, double n[4])
{
    static const double a1[3] = {1.3530, -0.6724, -1.3563}, b1[3] = {1.8151, -3.4327, 5.2318};
    static const double a2[3] = {-0.3531, 0.6724, 0.3446}, b2[3] = {0.0902, 0.6100, -2.2355};
    const double *const sine = waves->sine, *const cosine = waves->cosine, *const fall = waves->fall;
    const double a = a1[order], b = b1[order], c = a2[order], d = b2[order];

    n[0] = a + c;
    n[1] = fall[1] * (d * sine[1] - (c + 2 * a) * cosine[1]);
    n[1] += fall[0] * (b * sine[0] - (a + 2 * c) * cosine[0]);
    n[2] = (a + c) * cosine[1] * cosine[0];
    n[2] -= b * cosine[1] * sine[0] + d * cosine[0] * sine[1];
    n[2] *= 2 * fall[0] * fall[1];
    n[2] += c * fall[0] * fall[0] + a * fall[1] * fall[1];
    n[3] = fall[1] * fall[0] * fall[0] * (d * sine[1] - c * cosine[1]);
    n[3] += fall[0] * fall[1] * fall[1] * (b * sine[0] - a * cosine[0]);
    return (struct image_type_moments){n[0] + n[1] + n[2] + n[3], n[1] + 2 * n[2] + 3 * n[3],
                                       n[1] + 4 * n[2] + 9 * n[3]};
}

/* Sets the weights of earlier results. */
static struct image_type_moments
image_type_denominator(const struct image_type_waves *waves, double d[4])
{
    const double *const cosine = waves->cosine, *const fall = waves->fall;

    d[3] = fall[0] * fall[0] * fall[1] * fall[1];
    d[2] = -2 * cosine[0] * fall[0] * fall[1] * fall[1];
    d[2] += -2 * cosine[1] * fall[1] * fall[0] * fall[0];
    d[1] = 4 * cosine[1] * cosine[0] * fall[0] * fall[1];
    d[1] += fall[0] * fall[0] + fall[1] * fall[1];
    d[0] = -2 * (fall[1] * cosine[1] + fall[0] * cosine[0]);
    return (struct image_type_moments){1.0 + d[0] + d[1] + d[2] + d[3], d[0] + 2 * d[1] + 3 * d[2] + 4 * d[3],
                                       d[0] + 4 * d[1] + 9 * d[2] + 16 * d[3]};
}

/* Makes the Gaussian, or its second derivative times the square of sigma, for a sigma in mm. */
static void
image_type_recursion(double sigma, double spacing, bool second, struct image_type_recursion *own)
{
    const struct image_type_waves waves = image_type_waves(sigma / spacing);
    const struct image_type_moments down = image_type_denominator(&waves, own->d);
    struct image_type_moments up = image_type_numerator(&waves, 0, own->n);
    double gain, sum_n, sum_m, sum_d;

    if (second) {
        double n[4];
        const struct image_type_moments own_up = image_type_numerator(&waves, 2, n);
        const double beta = -(2 * own_up.s - down.s * n[0]) / (2 * up.s - down.s * own->n[0]);

        for (int i = 0; i < 4; i++)
            own->n[i] = n[i] + beta * own->n[i];
        up = (struct image_type_moments){own_up.s + beta * up.s, own_up.d + beta * up.d, own_up.e + beta * up.e};
        gain =
            up.e * down.s * down.s - down.e * up.s * down.s - 2 * up.d * down.d * down.s + 2 * down.d * down.d * up.s;
        gain /= down.s * down.s * down.s;
        gain = sigma * sigma / gain;
    } else
        gain = 1 / (2 * up.s / down.s - own->n[0]);
    for (int i = 0; i < 4; i++)
        own->n[i] *= gain;
    for (int i = 0; i < 4; i++)
        own->m[i] = i < 3 ? own->n[i + 1] - own->d[i] * own->n[0] : -own->d[i] * own->n[0];
    sum_n = own->n[0] + own->n[1] + own->n[2] + own->n[3];
    sum_m = own->m[0] + own->m[1] + own->m[2] + own->m[3];
    sum_d = 1.0 + own->d[0] + own->d[1] + own->d[2] + own->d[3];
    for (int i = 0; i < 4; i++) {
        own->bn[i] = own->d[i] * sum_n / sum_d;
        own->bm[i] = own->d[i] * sum_m / sum_d;
    }
}

/* ------------------------------------------------------------------------------------ LBP3D -- */

/* Writes the vertices of an icosphere: those of an icosahedron, and the middles of its edges. */
static void
image_type_vertices(double vertices[3 * IMAGE_TYPE_VERTICES])
{
    const double golden = (1 + sqrt(5)) / 2;
    int count = 0;

    for (int v = 0; v < 12; v++) { /* (0, +-1, +-golden), and its turns */
        const double one = v & 1 ? -1 : 1, long_one = v & 2 ? -golden : golden;

        vertices[3 * v + v / 4] = 0;
        vertices[3 * v + (v / 4 + 1) % 3] = one;
        vertices[3 * v + (v / 4 + 2) % 3] = long_one;
    }
    count = 12;
    for (int v = 0; v < 12; v++)
        for (int u = 0; u < v; u++) {
            double middle[3], square = 0;

            for (int i = 0; i < 3; i++) {
                const double along = vertices[3 * v + i] - vertices[3 * u + i];

                square += along * along;
                middle[i] = (vertices[3 * v + i] + vertices[3 * u + i]) / 2;
            }
            for (int i = 0; i < 3 && square < 5; i++) /* edges have length 2 */
                vertices[3 * count + i] = middle[i];
            count += square < 5;
        }
    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++) {
        double *at = vertices + 3 * v;
        const double length = sqrt(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]);

        for (int i = 0; i < 3; i++)
            at[i] /= length;
    }
}

static double
image_type_legendre(int degree, double x)
{
    double before = 1, value = x;

    if (degree == 0)
        return 1;
    for (int n = 1; n < degree; n++) {
        const double next = ((2 * n + 1) * x * value - n * before) / (n + 1);

        before = value;
        value = next;
    }
    return value;
}

void
image_type_table(const struct image_type_demand *demand, double table[IMAGE_TYPE_TABLE])
{
    const int degree = demand->options.harmonic < LBP_K ? (int)demand->options.harmonic : 0;
    double ways[3 * IMAGE_TYPE_VERTICES];

    image_type_vertices(table);
    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++) {
        const double *at = table + 3 * v;
        const double around = sqrt(at[0] * at[0] + at[1] * at[1]);
        /* At the poles pyradiomics has an angle of 0. */
        const double cosine = around > 0 ? at[0] / around : 1, sine = around > 0 ? fabs(at[1]) / around : 0;

        ways[3 * v] = sine * at[2];
        ways[3 * v + 1] = sine * around;
        ways[3 * v + 2] = cosine;
    }
    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
        for (int u = 0; u < IMAGE_TYPE_VERTICES; u++) {
            const double *a = ways + 3 * v, *b = ways + 3 * u;
            const double angle = a[0] * b[0] - a[1] * b[1] + a[2] * b[2];

            table[3 * IMAGE_TYPE_VERTICES + v * IMAGE_TYPE_VERTICES + u] =
                (2 * degree + 1) / (4 * 0x1.921fb54442d18p1) * image_type_legendre(degree, angle);
        }
    for (int i = 0; i < 3 * IMAGE_TYPE_VERTICES; i++)
        table[i] *= i % 3 == 0 && demand->reversed ? -demand->options.radius : demand->options.radius;
}

/* ------------------------------------------------------------------------------------- plan -- */

static struct image_type_step *
image_type_add(struct image_type_plan *plan, enum image_type_action action, const int64_t sides[3])
{
    struct image_type_step *step = &plan->steps[plan->count++];

    *step = (struct image_type_step){.action = action,
                                     .kind = plan->demand.options.kind,
                                     .from = IMAGE_TYPE_VALUES,
                                     .to = IMAGE_TYPE_RESPONSES,
                                     .sides = {sides[0], sides[1], sides[2]},
                                     .from_sides = {sides[0], sides[1], sides[2]},
                                     .size = {sides[0], sides[1], sides[2]}};
    return step;
}

static void
image_type_plan_log(struct image_type_plan *plan, const int64_t sides[3])
{
    const double sigma = plan->demand.options.sigma_mm;

    for (int axis = 0; axis < 3; axis++)
        plan->none |= sides[axis] < 4 || (double)sides[axis] < ceil(sigma / plan->demand.spacing[axis]) + 1;
    plan->between = sides[0] * sides[1] * sides[2];
    for (int second = 0; second < 3; second++)
        for (int i = 0; i < 3; i++) {
            struct image_type_step *step = image_type_add(plan, IMAGE_TYPE_RECURSION, sides);
            const double spacing = plan->demand.spacing[second];

            /* The derivative is first, then the other axes. */
            step->axis = i == 0 ? second : i - (i <= second);
            step->from = i == 0 ? IMAGE_TYPE_VALUES : i == 1 ? IMAGE_TYPE_FIRST : IMAGE_TYPE_SECOND;
            step->to = i == 1 ? IMAGE_TYPE_SECOND : IMAGE_TYPE_FIRST;
            step->adds = i == 2;
            step->begins = second == 0;
            step->factor = 1.0 / (spacing * spacing);
            image_type_recursion(sigma, plan->demand.spacing[step->axis], i == 0, &step->recursion);
        }
}

static void
image_type_plan_wavelet(struct image_type_plan *plan, const int64_t sides[3])
{
    const struct filter_options *options = &plan->demand.options;
    const int axes = options->in_slice ? 2 : 3, turns = options->start_level + options->level;
    const int64_t even[3] = {sides[0] + sides[0] % 2, sides[1] + sides[1] % 2,
                             options->in_slice ? sides[2] : sides[2] + sides[2] % 2};

    plan->between = even[0] * even[1] * even[2];
    for (int turn = 0; turn < turns; turn++)
        for (int axis = 0; axis < axes; axis++) {
            const bool begins = plan->count == 0, ends = turn == turns - 1 && axis == axes - 1;
            struct image_type_step *step = image_type_add(plan, IMAGE_TYPE_TAPS, ends ? sides : even);

            step->axis = axis;
            step->from = begins ? IMAGE_TYPE_VALUES : plan->count % 2 == 0 ? IMAGE_TYPE_FIRST : IMAGE_TYPE_SECOND;
            step->to = ends ? IMAGE_TYPE_RESPONSES : plan->count % 2 ? IMAGE_TYPE_FIRST : IMAGE_TYPE_SECOND;
            for (int i = 0; i < 3; i++)
                step->from_sides[i] = begins ? sides[i] : even[i];
            step->from_reversed = begins && plan->demand.reversed;
            step->to_reversed = ends && plan->demand.reversed;
            step->count = filter_wavelet_taps(options->wavelet, turn == turns - 1 && options->high[axis], step->taps);
        }
}

static void
image_type_plan_lbp_3d(struct image_type_plan *plan, const int64_t sides[3])
{
    struct image_type_step *step;

    plan->between = sides[0] * sides[1] * sides[2];
    for (int axis = 0; axis < 3; axis++) {
        step = image_type_add(plan, IMAGE_TYPE_SPLINE, sides);
        step->axis = axis;
        step->from = axis == 0 ? IMAGE_TYPE_VALUES : axis == 1 ? IMAGE_TYPE_FIRST : IMAGE_TYPE_SECOND;
        step->to = axis == 1 ? IMAGE_TYPE_SECOND : IMAGE_TYPE_FIRST;
    }
    step = image_type_add(plan, IMAGE_TYPE_LBP_3D, sides);
    step->from = IMAGE_TYPE_FIRST;
    step->harmonic = plan->demand.options.harmonic;
    step->whole = plan->demand.whole;
    step->is_unsigned = plan->demand.is_unsigned;
}

static void
image_type_plan_lbp_2d(struct image_type_plan *plan, const int64_t sides[3])
{
    const struct filter_options *options = &plan->demand.options;
    struct image_type_step *step = image_type_add(plan, IMAGE_TYPE_LBP_2D, sides);

    step->method = options->method;
    step->count = options->points;
    for (int i = 0; i < options->points; i++) {
        const struct fft_value turn = image_type_turn(2 * 0x1.921fb54442d18p1 * i / options->points);

        /* Rounded to five decimals. */
        step->taps[i] = rint(options->radius * turn.im * 1e5) / 1e5;
        step->taps[FILTER_MAX_POINTS + i] = rint(options->radius * turn.re * 1e5) / 1e5;
    }
}

static bool
image_type_possible(const struct image_type_demand *demand)
{
    const struct filter_options *options = &demand->options;

    switch (options->kind) {
    case FILTER_PYRADIOMICS_LOG:
    case FILTER_PYRADIOMICS_GRADIENT:
        return demand->spacing[0] > 0 && demand->spacing[1] > 0 && demand->spacing[2] > 0 &&
               (options->kind == FILTER_PYRADIOMICS_GRADIENT || options->sigma_mm > 0);
    case FILTER_PYRADIOMICS_WAVELET:
        return options->level >= 1 && options->level <= FILTER_MAX_LEVEL && options->start_level >= 0 &&
               options->start_level <= FILTER_MAX_STEPS && options->wavelet < WAVELETS;
    case FILTER_PYRADIOMICS_LBP_2D:
        return options->points >= 1 && options->points <= FILTER_MAX_POINTS && options->radius > 0;
    case FILTER_PYRADIOMICS_LBP_3D:
        return options->radius > 0 && options->harmonic < LBP_HARMONICS;
    default:
        return filter_is_image_type(options->kind);
    }
}

int
image_type_plan_make(const struct image_type_demand *demand, const struct image_extent *extent,
                     struct image_type_plan *plan)
{
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};
    struct image_type_step *step;

    plan->demand = *demand;
    plan->none = false;
    plan->count = 0;
    plan->between = 0;
    if (!image_type_possible(demand))
        return -EINVAL;
    switch (demand->options.kind) {
    case FILTER_PYRADIOMICS_LOG:
        image_type_plan_log(plan, sides);
        break;
    case FILTER_PYRADIOMICS_WAVELET:
        image_type_plan_wavelet(plan, sides);
        break;
    case FILTER_PYRADIOMICS_LBP_2D:
        image_type_plan_lbp_2d(plan, sides);
        break;
    case FILTER_PYRADIOMICS_LBP_3D:
        image_type_plan_lbp_3d(plan, sides);
        break;
    case FILTER_PYRADIOMICS_GRADIENT:
        step = image_type_add(plan, IMAGE_TYPE_GRADIENT, sides);
        for (int axis = 0; axis < 3; axis++)
            step->per[axis] = demand->options.use_spacing ? 1.0 / demand->spacing[axis] * 0.5 : 0.5;
        break;
    default:
        image_type_add(plan, IMAGE_TYPE_POINT, sides);
        break;
    }
    return 0;
}

/* Returns the factor of a point for a largest absolute value. */
static double
image_type_factor(enum filter_kind kind, double peak)
{
    if (kind == FILTER_PYRADIOMICS_SQUARE_ROOT)
        return peak;
    if (!(peak > 0))
        return NAN;
    if (kind == FILTER_PYRADIOMICS_SQUARE)
        return 1 / sqrt(peak);
    return kind == FILTER_PYRADIOMICS_LOGARITHM ? peak / image_type_log(peak + 1) : image_type_log(peak) / peak;
}

void
image_type_plan_set(struct image_type_plan *plan, const struct image_type_task *task)
{
    for (int i = 0; i < plan->count; i++) {
        struct image_type_step *step = &plan->steps[i];

        if (step->action == IMAGE_TYPE_POINT)
            step->factor = image_type_factor(step->kind, task->peak);
        if (step->action == IMAGE_TYPE_GRADIENT || step->action == IMAGE_TYPE_LBP_2D ||
            step->action == IMAGE_TYPE_LBP_3D)
            for (int axis = 0; axis < 3; axis++) {
                step->first[axis] = task->request->first[axis];
                step->size[axis] = task->request->size[axis];
            }
    }
}

/* ---------------------------------------------------------------------------------- requests -- */

void
image_type_reach(const struct image_type_demand *demand, int32_t reach[3])
{
    const struct filter_options *options = &demand->options;
    int32_t most = INT32_MAX;

    if (options->kind == FILTER_PYRADIOMICS_GRADIENT)
        most = 1;
    else if (options->kind == FILTER_PYRADIOMICS_LBP_2D)
        most = (int32_t)ceil(options->radius) + 1;
    else if (options->kind == FILTER_PYRADIOMICS_LBP_3D) /* a spline's coefficients fall by 0.27 per voxel */
        most = (int32_t)ceil(options->radius) + 2 + 32;
    for (int axis = 0; axis < 3; axis++)
        reach[axis] = most;
}

double
image_type_bound(const struct image_type_demand *demand, double limit)
{
    const struct filter_options *options = &demand->options;
    const int turns = options->start_level + options->level;
    double taps[FILTER_MAX_WAVELET], sum = 0, bound = limit;

    switch (options->kind) {
    case FILTER_PYRADIOMICS_GRADIENT:
        for (int axis = 0; axis < 3; axis++)
            sum += options->use_spacing ? 1 / demand->spacing[axis] : 1;
        return limit * sum;
    case FILTER_PYRADIOMICS_LOG: /* the second derivative has a sum of absolute weights below 1 */
        return 4 * limit;
    case FILTER_PYRADIOMICS_WAVELET:
        for (int i = 0; i < 3 * turns; i++) {
            const bool high = i / 3 == turns - 1 && options->high[i % 3];
            const int count = filter_wavelet_taps(options->wavelet, high, taps);

            sum = 0;
            for (int t = 0; t < count; t++)
                sum += fabs(taps[t]);
            bound *= sum;
        }
        return bound;
    case FILTER_PYRADIOMICS_LBP_2D:
        return options->method == LBP_UNIFORM ? options->points + 1 : ldexp(1, options->points);
    case FILTER_PYRADIOMICS_LBP_3D: /* of a norm of 42 sums of 42 elements up to 7 / (4 pi) */
        return 160;
    default: /* m, or 1 if all values are small */
        return limit > 1 ? limit : 1;
    }
}

int
image_type_run(struct kernels_lane *lane, const struct image_type_request *request, const double **responses,
               struct error *error)
{
    const struct image_type_demand *demand = kernels_state(lane, KERNELS_IMAGE_TYPE);
    struct image_type_task task = {.request = request, .responses = responses};
    struct image_type_plan plan;
    int rc = kernels_op_check(lane, KERNELS_IMAGE_TYPE, error);

    if (rc)
        return rc;
    if (image_type_plan_make(demand, &lane->extent, &plan))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "the options of the image type are impossible");
    if (plan.steps[0].action == IMAGE_TYPE_POINT)
        for (int64_t i = 0; i < image_voxels(&lane->extent); i++)
            task.peak = fmax(task.peak, fabs(request->values[i]));
    return kernels_op_run(lane, KERNELS_IMAGE_TYPE, &task, error);
}
