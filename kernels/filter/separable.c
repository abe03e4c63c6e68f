/* separable.c - kernels and terms of separable filters; see separable.h. */
#include "kernels/filter/separable.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Taps of a kernel: tap t is at place `centre` - t. */
struct separable_taps {
    int count, centre;
    double taps[SEPARABLE_WIDTH];
};

/* -------------------------------------------------------------------------------- kernels -- */

static const struct {
    int count;
    int8_t taps[5];
    bool odd; /* turned around, it changes its sign; others do not change */
} laws_kernels[LAWS_KERNELS] = {
    [LAWS_L5] = {5, {1, 4, 6, 4, 1}, false},   [LAWS_E5] = {5, {-1, -2, 0, 2, 1}, true},
    [LAWS_S5] = {5, {-1, 0, 2, 0, -1}, false}, [LAWS_W5] = {5, {-1, 2, 0, -2, 1}, true},
    [LAWS_R5] = {5, {1, -4, 6, -4, 1}, false}, [LAWS_L3] = {3, {1, 2, 1}, false},
    [LAWS_E3] = {3, {-1, 0, 1}, true},         [LAWS_S3] = {3, {-1, 2, -1}, false},
};

/* Low-pass filters of decomposition. */
static const struct {
    int count;
    double taps[FILTER_MAX_WAVELET];
} wavelet_taps[WAVELETS] = {

#define WAVELET(id, name, ...) {sizeof((double[]){__VA_ARGS__}) / sizeof(double), {__VA_ARGS__}},
#include "base/wavelets.def"
};

/* The high-pass filter has the low-pass taps of the dual wavelet in reverse order, and alternating signs. Orthogonal wavelets
 * are their own duals. */
static enum filter_wavelet
wavelet_dual(enum filter_wavelet wavelet)
{
    const enum filter_wavelet pairs = WAVELET_RBIO1_1 - WAVELET_BIOR1_1;

    return wavelet < WAVELET_BIOR1_1 ? wavelet : wavelet < WAVELET_RBIO1_1 ? wavelet + pairs : wavelet - pairs;
}

int
filter_wavelet_taps(enum filter_wavelet wavelet, bool high, double *taps)
{
    const double *low = wavelet_taps[wavelet].taps, *dual = wavelet_taps[wavelet_dual(wavelet)].taps;
    const int count = wavelet_taps[wavelet].count;

    for (int i = 0; i < count; i++)
        taps[i] = high ? (i % 2 ? 1 : -1) * dual[count - 1 - i] : low[i];
    return count;
}

static double
log_sigma(const struct filter_demand *demand, int axis)
{
    return demand->options.sigma_mm / demand->spacing[axis];
}

static void
taps_of_log(const struct filter_demand *demand, int axis, int base, struct separable_taps *taps)
{
    const double s = log_sigma(demand, axis), per_column = demand->spacing[0] / demand->spacing[axis];
    const double height = 1 / (2.5066282746310002 * s); /* sqrt(2 pi) */

    taps->centre = (int)floor(4 * s + 0.5);
    taps->count = 2 * taps->centre + 1;
    for (int i = 0; i < taps->count; i++) {
        const double square = (double)((i - taps->centre) * (i - taps->centre));
        const double gauss = filter_exp_minus(square / (2 * (s * s))) * height;

        taps->taps[i] =
            base == 0 ? gauss : (square / ((s * s) * (s * s)) - 1 / (s * s)) * (per_column * per_column) * gauss;
    }
}

static void
taps_of(const struct separable_plan *plan, int axis, int base, struct separable_taps *taps)
{
    const struct filter_options *options = &plan->demand.options;

    if (axis == 2 && options->in_slice) {
        *taps = (struct separable_taps){.count = 1, .taps = {1}};
        return;
    }
    if (options->kind == FILTER_LOG) {
        taps_of_log(&plan->demand, axis, base, taps);
        return;
    }
    if (options->kind == FILTER_LAWS) {
        taps->count = laws_kernels[base].count;
        for (int i = 0; i < taps->count; i++)
            taps->taps[i] = laws_kernels[base].taps[i];
    } else {
        taps->count = filter_wavelet_taps(options->wavelet, base != 0, taps->taps);
    }
    taps->centre = taps->count / 2;
}

/* Returns the number of filters along an axis that follow one another. */
static int
separable_stages(const struct separable_plan *plan, int axis)
{
    const bool along = axis < 2 || !plan->demand.options.in_slice;

    return plan->demand.options.kind == FILTER_WAVELET && along ? plan->demand.options.level : 1;
}

/* -------------------------------------------------------------------------------- weights -- */

/* A row of weights in progress: of place `at` - before + i. */
struct separable_window {
    const struct separable_axis *axis;
    enum filter_boundary boundary;
    bool turned;
    int stages;
    const struct separable_taps *bands[FILTER_MAX_LEVEL]; /* of each stage */
};

/* Returns where place p counts that the value at `within` reads, which replaces the one at q beyond the volume. */
static int64_t
separable_image(const struct separable_window *window, int64_t p, int64_t within, int64_t q)
{
    const int64_t side = window->axis->side;
    const int64_t period = q - (q % side + side) % side;

    if (window->boundary == FILTER_NEAREST || q == within)
        return p;
    if (window->boundary == FILTER_PERIODIC || period / side % 2 == 0)
        return p + (q - within);
    return q + within - p;
}

/* Writes the weights of the value at `at` after stages 0 .. stage. */
static void
separable_weigh(const struct separable_window *window, int64_t at, int stage, double *row)
{
    const struct separable_axis *axis = window->axis;
    const struct separable_taps *taps = window->bands[stage];
    const int width = separable_width(axis), apart = 1 << stage;
    double inner[SEPARABLE_WIDTH + 1];

    memset(row, 0, (size_t)width * sizeof(*row));
    for (int t = 0; t < taps->count; t++) {
        const int64_t q = at + apart * (window->turned ? t - taps->centre : taps->centre - t);

        if (stage == 0) {
            row[q - at + axis->before] = taps->taps[t];
            continue;
        }
        const int64_t within = filter_place(q, axis->side, window->boundary);
        if (within < 0)
            continue;
        separable_weigh(window, within, stage - 1, inner);
        for (int i = 0; i < width; i++)
            if (inner[i] != 0)
                row[separable_image(window, within - axis->before + i, within, q) - at + axis->before] +=
                    taps->taps[t] * inner[i];
    }
}

static void
separable_fill_row(const struct separable_plan *plan, int axis, const struct separable_kernel *kernel, int64_t at,
                   double *row)
{
    struct separable_taps low, own;
    struct separable_window window = {
        .axis = &plan->axis[axis],
        .boundary = plan->demand.options.boundary,
        .turned = kernel->turning == SEPARABLE_TURNED,
        .stages = separable_stages(plan, axis),
    };

    taps_of(plan, axis, 0, &low);
    taps_of(plan, axis, kernel->base, &own);
    for (int stage = 0; stage < window.stages; stage++)
        window.bands[stage] = stage < window.stages - 1 ? &low : &own;
    separable_weigh(&window, at, window.stages - 1, row);
    if ((kernel->turning == SEPARABLE_EVEN || kernel->turning == SEPARABLE_ODD) && own.count > 1) {
        double other[SEPARABLE_WIDTH + 1];

        window.turned = true;
        separable_weigh(&window, at, window.stages - 1, other);
        for (int i = 0; i < separable_width(window.axis); i++)
            row[i] = (kernel->turning == SEPARABLE_EVEN ? row[i] + other[i] : row[i] - other[i]) / 2;
    }
}

void
separable_fill(const struct separable_plan *plan, int number, double *weights)
{
    const struct separable_axis *axis = &plan->axis[number];

    for (int k = 0; k < plan->kernel_count; k++)
        for (int64_t r = 0; r < axis->rows; r++)
            separable_fill_row(plan, number, &plan->kernels[k], r <= axis->edge ? r : axis->side - (axis->rows - r),
                               weights + (k * axis->rows + r) * separable_width(axis));
}

/* Returns the sum of absolute taps of a kernel, multiplied by those of the stages before it. */
static double
separable_size(const struct separable_plan *plan, int axis, int base)
{
    struct separable_taps low, own;
    double size[2] = {0, 0};

    taps_of(plan, axis, 0, &low);
    taps_of(plan, axis, base, &own);
    for (int i = 0; i < low.count; i++)
        size[0] += fabs(low.taps[i]);
    for (int i = 0; i < own.count; i++)
        size[1] += fabs(own.taps[i]);
    for (int stage = separable_stages(plan, axis); stage > 1; stage--)
        size[1] *= size[0];
    return size[1];
}

/* ---------------------------------------------------------------------------------- terms -- */

static int8_t
separable_kernel_number(struct separable_plan *plan, int base, enum separable_turning turning)
{
    int k = 0;

    while (k < plan->kernel_count && (plan->kernels[k].base != base || plan->kernels[k].turning != turning))
        k++;
    if (k == plan->kernel_count)
        plan->kernels[plan->kernel_count++] = (struct separable_kernel){base, turning};
    return (int8_t)k;
}

/* Terms with their factors in a sum, or with their signs in an extreme: 1 for +, 2 for -, or both. */
struct separable_sum {
    int count;
    struct separable_term terms[2 * SEPARABLE_TERMS];
    int amount[2 * SEPARABLE_TERMS];
};

static void
sum_add(struct separable_sum *sum, bool extreme, const int8_t kernel[3], int sign)
{
    int i = 0;

    while (i < sum->count && memcmp(sum->terms[i].kernel, kernel, 3) != 0)
        i++;
    if (i == sum->count) {
        memcpy(sum->terms[i].kernel, kernel, 3);
        sum->amount[i] = 0;
        sum->count++;
    }
    if (extreme)
        sum->amount[i] |= sign > 0 ? 1 : 2;
    else
        sum->amount[i] += sign;
}

/* A rotation by right angles: the axis whose kernel comes to each axis, and whether it is turned around. */
struct separable_turn {
    int from[3];
    bool turned[3];
};

static void
turn_of_extreme(struct separable_plan *plan, const int bases[3], const struct separable_turn *turn,
                struct separable_sum *sum)
{
    const int axes = plan->demand.options.in_slice ? 2 : 3;
    const bool laws = plan->demand.options.kind == FILTER_LAWS;
    int8_t kernel[3] = {0};
    int sign = 1;

    for (int axis = 0; axis < axes; axis++) {
        const int base = bases[turn->from[axis]];

        if (laws && turn->turned[axis] && laws_kernels[base].odd)
            sign = -sign;
        kernel[axis] =
            separable_kernel_number(plan, base, turn->turned[axis] && !laws ? SEPARABLE_TURNED : SEPARABLE_PLAIN);
    }
    sum_add(sum, true, kernel, sign);
}

/* A kernel is EVEN + ODD, turned EVEN - ODD: adds all products of these along the axes. */
static void
turn_of_mean(struct separable_plan *plan, const int bases[3], const struct separable_turn *turn,
             struct separable_sum *sum)
{
    const int axes = plan->demand.options.in_slice ? 2 : 3;
    const bool laws = plan->demand.options.kind == FILTER_LAWS;

    for (int odd = 0; odd < 1 << axes; odd++) {
        int8_t kernel[3] = {0};
        bool absent = false;
        int sign = 1;

        for (int axis = 0; axis < axes && !absent; axis++) {
            const int base = bases[turn->from[axis]];
            const bool is_odd = odd >> axis & 1;

            absent = laws && laws_kernels[base].odd != is_odd;
            if (is_odd && turn->turned[axis])
                sign = -sign;
            if (!absent)
                kernel[axis] = separable_kernel_number(plan, base,
                                                       laws     ? SEPARABLE_PLAIN
                                                       : is_odd ? SEPARABLE_ODD
                                                                : SEPARABLE_EVEN);
        }
        if (!absent)
            sum_add(sum, false, kernel, sign);
    }
}

/* Adds the terms of all rotations. Returns their number. */
static int
separable_turns(struct separable_plan *plan, const int bases[3], struct separable_sum *sum)
{
    static const int orders[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const bool odd_orders[6] = {false, true, true, false, false, true};
    const int axes = plan->demand.options.in_slice ? 2 : 3;
    int turns = 0;

    for (int order = 0; order < (axes == 2 ? 2 : 6); order++)
        for (int mirrors = 0; mirrors < 1 << axes; mirrors++) {
            struct separable_turn turn;
            bool odd = odd_orders[order];

            for (int axis = 0; axis < axes; axis++) {
                turn.from[axis] = orders[order][axis];
                turn.turned[axis] = mirrors >> axis & 1;
                odd ^= turn.turned[axis];
            }
            if (odd)
                continue;
            turns++;
            if (plan->extreme)
                turn_of_extreme(plan, bases, &turn, sum);
            else
                turn_of_mean(plan, bases, &turn, sum);
        }
    return turns;
}

/* Sorts the terms into planes. */
static void
separable_sort(struct separable_plan *plan, const struct separable_sum *sum)
{
    for (int i = 0; i < sum->count; i++) {
        struct separable_term term = sum->terms[i];
        int p = 0, at;

        if (sum->amount[i] == 0)
            continue;
        term.sign = plan->extreme ? (sum->amount[i] == 3   ? 0
                                     : sum->amount[i] == 1 ? 1
                                                           : -1)
                                  : (sum->amount[i] > 0 ? 1 : -1);
        while (p < plan->plane_count) {
            const int8_t *other = plan->terms[plan->planes[p].first].kernel;

            if (plan->extreme ? memcmp(other, term.kernel, 2) == 0 : other[2] == term.kernel[2])
                break;
            p++;
        }
        if (p == plan->plane_count)
            plan->planes[plan->plane_count++] = (struct separable_plane){plan->term_count, 0};
        at = plan->planes[p].first + plan->planes[p].count++;
        memmove(plan->terms + at + 1, plan->terms + at, (size_t)(plan->term_count - at) * sizeof(term));
        plan->terms[at] = term;
        plan->term_count++;
        while (++p < plan->plane_count)
            plan->planes[p].first++;
    }
}

static void
separable_terms(struct separable_plan *plan)
{
    const struct filter_options *options = &plan->demand.options;
    const bool along_z = !options->in_slice;
    struct separable_sum sum = {0};
    int8_t kernel[3] = {0};
    int bases[3], turns = 1;

    plan->extreme = options->kind != FILTER_LOG && (options->pooling == FILTER_MAX || options->pooling == FILTER_MIN);
    for (int axis = 0; axis < 3; axis++)
        bases[axis] = options->kind == FILTER_LAWS ? (int)options->laws[axis] : options->high[axis];
    if (options->kind == FILTER_LOG)
        for (int second = 0; second < 2 + along_z; second++) {
            for (int axis = 0; axis < 2 + along_z; axis++)
                kernel[axis] = separable_kernel_number(plan, axis == second, SEPARABLE_PLAIN);
            sum_add(&sum, false, kernel, 1);
        }
    else if (options->pooling == FILTER_ONE) {
        for (int axis = 0; axis < 2 + along_z; axis++)
            kernel[axis] = separable_kernel_number(plan, bases[axis], SEPARABLE_PLAIN);
        sum_add(&sum, false, kernel, 1);
    } else
        turns = separable_turns(plan, bases, &sum);
    separable_sort(plan, &sum);
    for (int i = 0; i < sum.count && !plan->extreme; i++) /* all terms count equally */
        if (sum.amount[i] != 0)
            plan->scale = (double)(sum.amount[i] < 0 ? -sum.amount[i] : sum.amount[i]) / turns;
}

/* ----------------------------------------------------------------------------------- plan -- */

/* Finds the windows of an axis, which hold all of its kernels. Returns -E2BIG if one is too large. */
static int
separable_windows(struct separable_plan *plan, int number, int64_t side)
{
    struct separable_axis *axis = &plan->axis[number];
    const int stages = separable_stages(plan, number);
    /* A mirror turns the earlier stages around, too. */
    const bool turns =
        plan->demand.options.kind == FILTER_WAVELET && (plan->demand.options.pooling != FILTER_ONE || stages > 1);
    struct separable_taps taps;

    if (plan->demand.options.kind == FILTER_LOG && !(log_sigma(&plan->demand, number) <= FILTER_MAX_REACH / 4.0))
        return -E2BIG;
    for (int k = 0; k < plan->kernel_count; k++) {
        taps_of(plan, number, plan->kernels[k].base, &taps);
        const int before = taps.count - 1 - taps.centre, after = taps.centre;

        axis->before = before > axis->before ? before : axis->before;
        axis->after = after > axis->after ? after : axis->after;
    }
    if (turns && axis->before < axis->after)
        axis->before = axis->after;
    axis->edge = axis->after * ((1 << stages) - 2);
    axis->before *= (1 << stages) - 1;
    axis->after *= (1 << stages) - 1;
    axis->side = side;
    axis->rows = side < 2 * axis->edge + 1 ? side : 2 * axis->edge + 1;
    return axis->before > FILTER_MAX_REACH || axis->after > FILTER_MAX_REACH ? -E2BIG : 0;
}

static bool
is_odd_size(int size)
{
    return size >= 1 && size <= FILTER_MAX_SIZE && size % 2 == 1;
}

static bool
separable_possible(const struct filter_demand *demand)
{
    const struct filter_options *options = &demand->options;

    switch (options->kind) {
    case FILTER_MEAN:
        return is_odd_size(options->size);
    case FILTER_LOG:
        return options->sigma_mm > 0 && demand->spacing[0] > 0 && demand->spacing[1] > 0 && demand->spacing[2] > 0;
    case FILTER_LAWS:
        return options->energy == 0 || is_odd_size(options->energy);
    case FILTER_WAVELET:
        return options->level >= 1 && options->level <= FILTER_MAX_LEVEL;
    default:
        return false;
    }
}

/* Sets scale and bound of a filter that is not a mean. All turns of a kernel have the bound of the kernel. */
static void
separable_scale(struct separable_plan *plan)
{
    const struct filter_options *options = &plan->demand.options;
    const int axes = options->in_slice ? 2 : 3;
    int squares = 1;

    for (int axis = 0; axis < axes && options->kind == FILTER_LAWS; axis++) {
        int square = 0;

        for (int i = 0; i < 5; i++)
            square += laws_kernels[options->laws[axis]].taps[i] * laws_kernels[options->laws[axis]].taps[i];
        squares *= square;
    }
    for (int second = 0; second < (options->kind == FILTER_LOG ? axes : 1); second++) {
        double size = 1;

        for (int axis = 0; axis < axes; axis++)
            size *= separable_size(plan, axis,
                                   options->kind == FILTER_LOG    ? axis == second
                                   : options->kind == FILTER_LAWS ? (int)options->laws[axis]
                                                                  : options->high[axis]);
        plan->bound += size;
    }
    plan->largest = plan->bound;
    plan->scale /= sqrt(squares);
    plan->bound /= sqrt(squares);
}

int
separable_plan_make(const struct filter_demand *demand, const struct image_extent *extent, struct separable_plan *plan)
{
    const struct filter_options *options = &plan->demand.options;
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};
    int64_t voxels = 1;
    int rc = 0, size;

    *plan = (struct separable_plan){.demand = *demand, .scale = 1, .bound = 1};
    if (options->kind == FILTER_RIESZ_LOG) /* its Laplacian of Gaussian */
        plan->demand.options.kind = FILTER_LOG;
    if (!separable_possible(&plan->demand))
        return -EINVAL;
    size = options->kind == FILTER_MEAN ? options->size : options->kind == FILTER_LAWS ? options->energy : 0;
    plan->box = options->kind == FILTER_MEAN;
    plan->energy = options->kind == FILTER_LAWS && options->energy > 0;
    for (int axis = 0; axis < (options->in_slice ? 2 : 3); axis++) {
        plan->half[axis] = size / 2;
        voxels *= size > 0 ? size : 1;
    }
    plan->box_scale = 1 / (double)voxels;
    if (plan->box)
        return 0;
    plan->bound = 0;
    separable_terms(plan);
    for (int axis = 0; axis < 3 && rc == 0; axis++)
        rc = separable_windows(plan, axis, sides[axis]);
    if (rc == 0)
        separable_scale(plan);
    return rc;
}

bool
separable_uses(const struct separable_plan *plan, int axis, int kernel)
{
    for (int i = 0; i < plan->term_count; i++)
        if (plan->terms[i].kernel[axis] == kernel)
            return true;
    return false;
}

double
separable_bound(const struct filter_demand *demand)
{
    static const struct image_extent any = {1, 1, 1};
    struct separable_plan plan;

    return separable_plan_make(demand, &any, &plan) ? -1 : plan.bound;
}

void
separable_reach(const struct filter_demand *demand, int32_t reach[3])
{
    static const struct image_extent any = {1, 1, 1};
    struct separable_plan plan;
    const int rc = separable_plan_make(demand, &any, &plan);

    for (int axis = 0; axis < 3; axis++) {
        const struct separable_axis *own = &plan.axis[axis];

        reach[axis] = rc == -E2BIG && axis == 0
                          ? FILTER_MAX_REACH + 1
                          : plan.half[axis] + (own->before > own->after ? own->before : own->after);
    }
}
