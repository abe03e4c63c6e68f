/* image_type.c - checks of arguments, and plans of image types; see image_type.h and image_type_steps.h. */
#include "kernels/filter/image_type.h"

#include "kernels/filter/fft.h"
#include "kernels/filter/image_type_steps.h"

#include <errno.h>
#include <math.h>
#include <string.h>

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

struct image_type_matrix {
    double at[IMAGE_TYPE_VERTICES][IMAGE_TYPE_VERTICES]; /* column, row */
};

/* Writes the vertices of an icosphere: those of an icosahedron, and the middles of its edges. */
static void
image_type_vertices(double vertices[IMAGE_TYPE_VERTICES][3])
{
    const double golden = (1 + sqrt(5)) / 2;
    int count = 0;

    for (int v = 0; v < 12; v++) { /* (0, +-1, +-golden), and its turns */
        const double one = v & 1 ? -1 : 1, long_one = v & 2 ? -golden : golden;

        vertices[v][v / 4] = 0;
        vertices[v][(v / 4 + 1) % 3] = one;
        vertices[v][(v / 4 + 2) % 3] = long_one;
    }
    count = 12;
    for (int v = 0; v < 12; v++)
        for (int u = 0; u < v; u++) {
            double middle[3], square = 0;

            for (int i = 0; i < 3; i++) {
                const double along = vertices[v][i] - vertices[u][i];

                square += along * along;
                middle[i] = (vertices[v][i] + vertices[u][i]) / 2;
            }
            for (int i = 0; i < 3 && square < 5; i++) /* edges have length 2 */
                vertices[count][i] = middle[i];
            count += square < 5;
        }
    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++) {
        double *at = vertices[v];
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

/* Sets the directions that pyradiomics gives the vertices, with azimuth and polar angle exchanged. */
static void
image_type_directions(double vertices[IMAGE_TYPE_VERTICES][3], double ways[3 * IMAGE_TYPE_VERTICES])
{
    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++) {
        const double *at = vertices[v];
        const double around = sqrt(at[0] * at[0] + at[1] * at[1]);
        /* At the poles pyradiomics has an angle of 0. */
        const double cosine = around > 0 ? at[0] / around : 1, sine = around > 0 ? fabs(at[1]) / around : 0;

        ways[3 * v] = sine * at[2];
        ways[3 * v + 1] = sine * around;
        ways[3 * v + 2] = cosine;
    }
}

/* Sets each column of the matrix that turns bits into a harmonic of this degree. */
static void
image_type_columns(int degree, const double ways[3 * IMAGE_TYPE_VERTICES], struct image_type_matrix *matrix)
{
    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
        for (int u = 0; u < IMAGE_TYPE_VERTICES; u++) {
            const double *a = ways + 3 * v, *b = ways + 3 * u;
            const double angle = a[0] * b[0] - a[1] * b[1] + a[2] * b[2];

            matrix->at[u][v] = (2 * degree + 1) / (4 * 0x1.921fb54442d18p1) * image_type_legendre(degree, angle);
        }
}

static double
image_type_product(const double *a, const double *b)
{
    double sum = 0;

    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
        sum += a[v] * b[v];
    return sum;
}

/*
 * Sets the coordinates of the columns in an orthonormal basis of them. The matrix has a rank of at most 2 n + 1 at degree n, so
 * that sums of a few coordinates have the norms of sums of columns. The longest rest of a column is the next member of the basis.
 */
static void
image_type_coordinates(int degree, const struct image_type_matrix *matrix,
                       double coordinates[IMAGE_TYPE_ORDERS][IMAGE_TYPE_VERTICES])
{
    struct image_type_matrix rest = *matrix;
    double basis[IMAGE_TYPE_ORDERS][IMAGE_TYPE_VERTICES];

    memset(coordinates, 0, IMAGE_TYPE_ORDERS * sizeof(*coordinates));
    for (int order = 0; order < 2 * degree + 1; order++) {
        double *const own = basis[order], longest = 0;

        for (int u = 0; u < IMAGE_TYPE_VERTICES; u++) {
            const double square = image_type_product(rest.at[u], rest.at[u]);

            if (square > longest) {
                longest = square;
                memcpy(own, rest.at[u], sizeof(basis[order]));
            }
        }
        if (longest < 1e-20)
            return;
        for (int before = 0; before < order; before++) {
            const double along = image_type_product(basis[before], own);

            for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
                own[v] -= along * basis[before][v];
        }
        longest = sqrt(image_type_product(own, own));
        for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
            own[v] /= longest;
        for (int u = 0; u < IMAGE_TYPE_VERTICES; u++) {
            const double along = image_type_product(own, rest.at[u]);

            /* Sums of such numbers are exact, so that they do not depend on the order. */
            coordinates[order][u] = rint(image_type_product(own, matrix->at[u]) * 0x1p44) * 0x1p-44;
            for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
                rest.at[u][v] -= along * own[v];
        }
    }
}

/* Sets the first place and the weights of a cubic spline at a distance from a voxel. */
static void
image_type_weights(double at, int32_t *place, double weights[IMAGE_TYPE_WEIGHTS])
{
    const double low = floor(at), y = at - low, z = 1 - y;

    *place = (int32_t)low - 1;
    weights[1] = (y * y * (y - 2) * 3 + 4) / 6;
    weights[2] = (z * z * (z - 2) * 3 + 4) / 6;
    weights[0] = z * z * z / 6;
    weights[3] = 1 - weights[0] - weights[1] - weights[2];
}

void
image_type_table_make(const struct image_type_demand *demand, struct image_type_table *table)
{
    const int degree = demand->options.harmonic < LBP_K ? (int)demand->options.harmonic : 0;
    double ways[3 * IMAGE_TYPE_VERTICES], coordinates[IMAGE_TYPE_ORDERS][IMAGE_TYPE_VERTICES];
    struct image_type_matrix matrix;

    image_type_vertices(table->vertices);
    image_type_directions(table->vertices, ways);
    image_type_columns(degree, ways, &matrix);
    image_type_coordinates(degree, &matrix, coordinates);
    for (int part = 0; part < IMAGE_TYPE_PARTS; part++)
        for (int bits = 0; bits < 1 << IMAGE_TYPE_TOGETHER; bits++)
            for (int order = 0; order < IMAGE_TYPE_ORDERS; order++) {
                double *sum = &table->sums[part][bits][order];

                *sum = 0;
                for (int bit = 0; bit < IMAGE_TYPE_TOGETHER; bit++)
                    *sum += bits >> bit & 1 ? coordinates[order][part * IMAGE_TYPE_TOGETHER + bit] : 0;
            }
    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
        for (int axis = 0; axis < 3; axis++) {
            double *at = &table->vertices[v][axis];
            double near;

            *at *= axis == 0 && demand->reversed ? -demand->options.radius : demand->options.radius;
            near = rint(*at * 0x1p40) * 0x1p-40; /* coordinates that differ by rounding have equal weights */
            image_type_weights(near, &table->places[v][axis], table->weights[v][axis]);
        }
}

/* ------------------------------------------------------------------------------------- plan -- */

/* Adds a step that reads the copied values and writes the response in the box. */
static struct image_type_step *
image_type_add(struct image_type_plan *plan, enum image_type_action action)
{
    struct image_type_step *step = &plan->steps[plan->count++];

    *step = (struct image_type_step){
        .action = action, .kind = plan->demand.options.kind, .from = IMAGE_TYPE_VALUES, .to = IMAGE_TYPE_RESPONSES};
    for (int axis = 0; axis < 3; axis++) {
        step->sides[axis] = plan->copies[axis];
        step->first[axis] = plan->demand.first[axis] - plan->copied[axis];
        step->size[axis] = plan->demand.size[axis];
    }
    return step;
}

/* Lets a step filter lines that are in the box along some axes. */
static void
image_type_set_lines(const struct image_type_plan *plan, struct image_type_step *step, int axis, const bool boxed[3])
{
    step->axis = axis;
    for (int i = 0; i < 3; i++) {
        step->added[i] = step->first[i];
        step->adding[i] = step->size[i];
        if (!boxed[i]) {
            step->first[i] = 0;
            step->size[i] = plan->copies[i];
        }
    }
    step->first[axis] = 0;
    step->size[axis] = 1;
}

static void
image_type_plan_log(struct image_type_plan *plan)
{
    const double sigma = plan->demand.options.sigma_mm;

    for (int axis = 0; axis < 3; axis++)
        plan->none |= plan->own[axis] < 4 || (double)plan->own[axis] < ceil(sigma / plan->demand.spacing[axis]) + 1;
    plan->between = true;
    for (int second = 0; second < 3; second++) {
        bool boxed[3] = {false};

        for (int i = 0; i < 3; i++) {
            struct image_type_step *step = image_type_add(plan, IMAGE_TYPE_RECURSION);
            const double spacing = plan->demand.spacing[second];
            /* The derivative is first, then the other axes. */
            const int axis = i == 0 ? second : i - (i <= second);

            image_type_set_lines(plan, step, axis, boxed);
            boxed[axis] = true;
            step->from = i == 0 ? IMAGE_TYPE_VALUES : i == 1 ? IMAGE_TYPE_FIRST : IMAGE_TYPE_SECOND;
            step->to = i == 1 ? IMAGE_TYPE_SECOND : IMAGE_TYPE_FIRST;
            step->adds = i == 2;
            step->begins = second == 0;
            step->factor = 1.0 / (spacing * spacing);
            image_type_recursion(sigma, plan->demand.spacing[axis], i == 0, &step->recursion);
        }
    }
}

/* Adds a filter along an axis of a volume of these sides, which become those of its result. */
static struct image_type_step *
image_type_add_taps(struct image_type_plan *plan, int axis, bool high, int from, int to, int64_t sides[3])
{
    struct image_type_step *step = image_type_add(plan, IMAGE_TYPE_TAPS);
    const int count = filter_wavelet_taps(plan->demand.options.wavelet, high, step->taps);
    const int64_t turn = (plan->copies[axis] - sides[axis]) / (count - 1) + 1;

    step->axis = axis;
    step->from = from;
    step->to = to;
    step->count = count;
    step->period = plan->periods[axis];
    step->begin = (plan->copied[axis] + turn * (count - 1 - count / 2)) % step->period;
    step->begin += step->begin < 0 ? step->period : 0;
    for (int i = 0; i < 3; i++) {
        step->first[i] = 0;
        step->sides[i] = sides[i];
        step->size[i] = sides[i] -= i == axis ? step->count - 1 : 0;
    }
    return step;
}

/* Adds the filters of all bands that begin with those of `band` along axes before this one. */
static void
image_type_plan_bands(struct image_type_plan *plan, int axis, unsigned band, int from, const int64_t sides[3])
{
    const int last = plan->demand.options.in_slice ? 1 : 2;

    for (unsigned high = 0; high < 2; high++) {
        const unsigned own = band | high << axis, other = (2u << axis) - 1;
        unsigned wanted = 0, before = 0;
        int64_t rest[3] = {sides[0], sides[1], sides[2]};

        for (unsigned b = 0; b < IMAGE_TYPE_BANDS; b++)
            if (plan->demand.bands >> b & 1) {
                wanted |= (b & other) == own;
                before += b < own;
            }
        if (!wanted)
            continue;
        if (axis < last) {
            const int to = axis == 0 ? IMAGE_TYPE_FIRST : IMAGE_TYPE_SECOND;

            image_type_add_taps(plan, axis, high, from, to, rest);
            image_type_plan_bands(plan, axis + 1, own, to, rest);
        } else
            image_type_add_taps(plan, axis, high, from, IMAGE_TYPE_RESPONSES + (int)before, rest)->to_reversed =
                plan->reversed;
    }
}

static void
image_type_plan_wavelet(struct image_type_plan *plan)
{
    const struct filter_options *options = &plan->demand.options;
    const int axes = options->in_slice ? 2 : 3, turns = options->start_level + options->level;
    double taps[FILTER_MAX_WAVELET];
    const int count = filter_wavelet_taps(options->wavelet, false, taps);
    int64_t sides[3];

    plan->between = true;
    plan->reversed = plan->demand.reversed && !options->in_slice;
    for (int axis = 0; axis < 3; axis++) {
        const bool turned = axis == 2 && plan->reversed;

        plan->copied[axis] =
            turned ? plan->own[axis] - plan->demand.first[axis] - plan->demand.size[axis] : plan->demand.first[axis];
        plan->copies[axis] = plan->demand.size[axis];
        if (axis < axes) {
            plan->periods[axis] = plan->own[axis] + plan->own[axis] % 2;
            plan->copied[axis] -= turns * (count - 1 - count / 2);
            plan->copies[axis] += turns * (count - 1);
        }
        sides[axis] = plan->copies[axis];
    }
    for (int turn = 1; turn < turns; turn++)
        for (int axis = 0; axis < axes; axis++)
            image_type_add_taps(plan, axis, false, axis == 0 ? IMAGE_TYPE_VALUES : IMAGE_TYPE_FIRST + (axis - 1) % 2,
                                axis == axes - 1 ? IMAGE_TYPE_VALUES : IMAGE_TYPE_FIRST + axis % 2, sides);
    image_type_plan_bands(plan, 0, 0, IMAGE_TYPE_VALUES, sides);
}

static void
image_type_plan_lbp_3d(struct image_type_plan *plan)
{
    static const bool boxed[3];
    struct image_type_step *step;

    plan->between = true;
    for (int axis = 0; axis < 3; axis++) {
        step = image_type_add(plan, IMAGE_TYPE_SPLINE);
        image_type_set_lines(plan, step, axis, boxed);
        step->from = axis == 0 ? IMAGE_TYPE_VALUES : axis == 1 ? IMAGE_TYPE_FIRST : IMAGE_TYPE_SECOND;
        step->to = axis == 1 ? IMAGE_TYPE_SECOND : IMAGE_TYPE_FIRST;
    }
    step = image_type_add(plan, IMAGE_TYPE_LBP_3D);
    step->from = IMAGE_TYPE_FIRST;
    step->harmonic = plan->demand.options.harmonic;
    step->whole = plan->demand.whole;
    step->is_unsigned = plan->demand.is_unsigned;
}

static void
image_type_plan_lbp_2d(struct image_type_plan *plan)
{
    const struct filter_options *options = &plan->demand.options;
    struct image_type_step *step = image_type_add(plan, IMAGE_TYPE_LBP_2D);

    step->method = options->method;
    step->count = options->points;
    for (int i = 0; i < options->points; i++) {
        const struct fft_value turn = image_type_turn(2 * 0x1.921fb54442d18p1 * i / options->points);

        /* Rounded to five decimals. */
        step->taps[i] = rint(options->radius * turn.im * 1e5) / 1e5;
        step->taps[FILTER_MAX_POINTS + i] = rint(options->radius * turn.re * 1e5) / 1e5;
        step->low[i] = (int)floor(step->taps[i]);
        step->low[FILTER_MAX_POINTS + i] = (int)floor(step->taps[FILTER_MAX_POINTS + i]);
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

uint8_t
image_type_bands(const struct image_type_demand *demand)
{
    const bool *high = demand->options.high;

    if (demand->options.kind != FILTER_PYRADIOMICS_WAVELET)
        return 1;
    if (demand->bands)
        return demand->bands;
    return (uint8_t)(1u << (high[0] + 2 * high[1] + (demand->options.in_slice ? 0 : 4 * high[2])));
}

int
image_type_count(const struct image_type_demand *demand)
{
    return __builtin_popcount(image_type_bands(demand));
}

int
image_type_plan_make(const struct image_type_demand *demand, const struct image_extent *extent,
                     struct image_type_plan *plan)
{
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};
    const bool is_whole = demand->size[0] == 0;
    struct image_type_step *step;

    *plan = (struct image_type_plan){.demand = *demand};
    if (!image_type_possible(demand))
        return -EINVAL;
    plan->demand.bands = image_type_bands(demand);
    plan->responses = image_type_count(demand);
    for (int axis = 0; axis < 3; axis++) {
        plan->own[axis] = plan->copies[axis] = sides[axis];
        plan->demand.first[axis] = is_whole ? 0 : demand->first[axis];
        plan->demand.size[axis] = is_whole ? sides[axis] : demand->size[axis];
    }
    switch (demand->options.kind) {
    case FILTER_PYRADIOMICS_LOG:
        image_type_plan_log(plan);
        break;
    case FILTER_PYRADIOMICS_WAVELET:
        image_type_plan_wavelet(plan);
        break;
    case FILTER_PYRADIOMICS_LBP_2D:
        image_type_plan_lbp_2d(plan);
        break;
    case FILTER_PYRADIOMICS_LBP_3D:
        image_type_plan_lbp_3d(plan);
        break;
    case FILTER_PYRADIOMICS_GRADIENT:
        step = image_type_add(plan, IMAGE_TYPE_GRADIENT);
        for (int axis = 0; axis < 3; axis++)
            step->per[axis] = demand->options.use_spacing ? 1.0 / demand->spacing[axis] * 0.5 : 0.5;
        break;
    default:
        for (int axis = 0; axis < 3; axis++) {
            plan->copied[axis] = plan->demand.first[axis];
            plan->copies[axis] = plan->demand.size[axis];
        }
        image_type_add(plan, IMAGE_TYPE_POINT);
        break;
    }
    return 0;
}

/* Returns the place in the lane's volume of a copied voxel. */
static int64_t
image_type_source(const struct image_type_plan *plan, int axis, int64_t copy)
{
    const int64_t side = plan->own[axis], period = plan->periods[axis];
    int64_t place = plan->copied[axis] + copy;

    if (period > 0) {
        place = place % period;
        place = place < 0 ? place + period : place;
        place = place < side ? place : 0;
    }
    return axis == 2 && plan->reversed ? side - 1 - place : place;
}

void
image_type_copy(const struct image_type_plan *plan, const struct image_type_request *request, int64_t row,
                double *values)
{
    const int64_t z = request->at[2] + image_type_source(plan, 2, row / plan->copies[1]);
    const int64_t y = request->at[1] + image_type_source(plan, 1, row % plan->copies[1]);
    const double *from = request->values + (z * request->sides[1] + y) * request->sides[0] + request->at[0];
    double *to = values + row * plan->copies[0];
    const int64_t first = plan->copied[0], before = first < 0 ? -first : 0;
    const int64_t end = plan->own[0] - first < plan->copies[0] ? plan->own[0] - first : plan->copies[0];
    const double none = request->none;

    for (int64_t x = before; x < end; x++)
        to[x] = isnan(from[first + x]) ? none : from[first + x];
    for (int64_t x = 0; x < plan->copies[0]; x++)
        if (x < before || x >= end) {
            const double value = from[image_type_source(plan, 0, x)];

            to[x] = isnan(value) ? none : value;
        }
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
    if (plan->steps[0].action == IMAGE_TYPE_POINT)
        plan->steps[0].factor = image_type_factor(plan->steps[0].kind, task->peak);
}

/* ---------------------------------------------------------------------------------- requests -- */

void
image_type_reach(const struct image_type_demand *demand, int32_t reach[3])
{
    const struct filter_options *options = &demand->options;
    int32_t most = INT32_MAX;

    if (image_type_has_peak(options->kind))
        most = 0;
    else if (options->kind == FILTER_PYRADIOMICS_GRADIENT)
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

enum { PEAK_PARTS = 32 }; /* of the rows, which threads take in turn */

struct image_type_peaks {
    const struct image_type_request *request;
    const struct image_extent *extent;
    double of[PEAK_PARTS];
};

static void
image_type_peak_of_part(void *context, int64_t part)
{
    struct image_type_peaks *peaks = context;
    const struct image_type_request *request = peaks->request;
    const struct image_extent *extent = peaks->extent;
    const int64_t rows = extent->rows * extent->slices, end = rows * (part + 1) / PEAK_PARTS;
    double peak = 0;

    for (int64_t row = rows * part / PEAK_PARTS; row < end; row++) {
        const int64_t z = request->at[2] + row / extent->rows, y = request->at[1] + row % extent->rows;
        const double *from = request->values + (z * request->sides[1] + y) * request->sides[0] + request->at[0];

        for (int64_t x = 0; x < extent->columns; x++) {
            const double size = fabs(isnan(from[x]) ? request->none : from[x]);

            peak = size > peak ? size : peak;
        }
    }
    peaks->of[part] = peak;
}

/* Returns the largest absolute value. */
static double
image_type_peak(const struct kernels_lane *lane, const struct image_type_request *request)
{
    struct image_type_peaks peaks = {.request = request, .extent = &lane->extent};
    double peak = 0;

    kernels_lane_for(lane, PEAK_PARTS, image_type_peak_of_part, &peaks);
    for (int part = 0; part < PEAK_PARTS; part++)
        peak = peaks.of[part] > peak ? peaks.of[part] : peak;
    return peak;
}

int
image_type_run(struct kernels_lane *lane, const struct image_type_request *request,
               const double *responses[IMAGE_TYPE_BANDS], struct error *error)
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
        task.peak = request->peak > 0 ? request->peak : image_type_peak(lane, request);
    return kernels_op_run(lane, KERNELS_IMAGE_TYPE, &task, error);
}
