/*
 * glcm.c - features of grey level co-occurrence matrices, from counts.
 *
 * Lists the nonzero cells of a matrix once, and sums its marginals, in integers. Features iterate
 * over the cells row by row. The order of additions, and thus the last bit, is therefore the same
 * everywhere. Averages exclude matrices without counts and, per feature, matrices for which it is
 * undefined.
 */
#include "kernels/features/matrices/glcm.h"

#include "kernels/features/discretise.h"
#include "kernels/features/matrices/directions.h"
#include "kernels/features/matrices/eigen.h"
#include "kernels/features/matrices/wide.h"
#include "kernels/texture/texture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Limits of the matrices of a set that are computed at the same time. */
#define MATRICES_BYTES ((int64_t)64 << 20)
#define MATRICES_MAX   16

static const struct feature_definition glcm_definitions[GLCM_FEATURES] = {
    {"joint_maximum", "Joint maximum", "GYBY", .unit = "1"},
    {"joint_average", "Joint average", "60VM", .unit = "1"},
    {"joint_variance", "Joint variance", "UR99", .unit = "1"},
    {"joint_entropy", "Joint entropy", "TU9B", .unit = "1"},
    {"difference_average", "Difference average", "TF7R", .unit = "1"},
    {"difference_variance", "Difference variance", "D3YU", .unit = "1"},
    {"difference_entropy", "Difference entropy", "NTRS", .unit = "1"},
    {"sum_average", "Sum average", "ZGXS", .unit = "1"},
    {"sum_variance", "Sum variance", "OEEB", .unit = "1"},
    {"sum_entropy", "Sum entropy", "P6QZ", .unit = "1"},
    {"angular_second_moment", "Angular second moment", "8ZQL", .unit = "1"},
    {"contrast", "Contrast", "ACUI", .unit = "1"},
    {"dissimilarity", "Dissimilarity", "8S9J", .unit = "1"},
    {"inverse_difference", "Inverse difference", "IB1Z", .unit = "1"},
    {"normalised_inverse_difference", "Normalised inverse difference", "NDRX", .unit = "1"},
    {"inverse_difference_moment", "Inverse difference moment", "WF0Z", .unit = "1"},
    {"normalised_inverse_difference_moment", "Normalised inverse difference moment", "1QCO", .unit = "1"},
    {"inverse_variance", "Inverse variance", "E8JP", .unit = "1"},
    {"correlation", "Correlation", "NI2N", .unit = "1"},
    {"autocorrelation", "Autocorrelation", "QWB0", .unit = "1"},
    {"cluster_tendency", "Cluster tendency", "DG8W", .unit = "1"},
    {"cluster_shade", "Cluster shade", "7NFM", .unit = "1"},
    {"cluster_prominence", "Cluster prominence", "AE86", .unit = "1"},
    {"information_correlation_1", "First measure of information correlation", "R8DG", .unit = "1"},
    {"information_correlation_2", "Second measure of information correlation", "JN9H", .unit = "1"},
    {"maximal_correlation_coefficient", "Maximal correlation coefficient", "", .unit = "1"},
};

/* One matrix of n levels: its counts, and its marginals as counts and as probabilities. */
struct matrix {
    int n;
    bool symmetric;
    uint64_t *counts; /* n * n */
    uint64_t total;

    uint64_t *row_counts;        /* n */
    uint64_t *column_counts;     /* n */
    uint64_t *difference_counts; /* n: |i - j| = k, k = 0 .. n - 1 */
    uint64_t *sum_counts;        /* 2 n: i + j + 2 = k, for k = 2 .. 2 n, at k - 2 */
    double *rows, *columns, *differences, *sums;

    int row_levels, column_levels; /* numbers of levels that occur */
    int *places;                   /* 2 n */
    double *transposed, *product;  /* n * n each; only if not symmetric */
    double *work;                  /* 5 n */
};

static void
matrix_close(struct matrix *matrix)
{
    free(matrix->counts);
    free(matrix->row_counts);
    free(matrix->rows);
    free(matrix->places);
    free(matrix->transposed);
}

/* The caller must close the matrix, also after an error. */
static int
matrix_open(struct matrix *matrix, int n, bool symmetric)
{
    const size_t size = (size_t)n, square = size * size;

    *matrix = (struct matrix){.n = n, .symmetric = symmetric};
    matrix->counts = malloc(square * sizeof(*matrix->counts));
    matrix->row_counts = malloc(5 * size * sizeof(*matrix->row_counts));
    matrix->rows = malloc(10 * size * sizeof(*matrix->rows));
    matrix->places = malloc(2 * size * sizeof(*matrix->places));
    matrix->transposed = symmetric ? NULL : malloc(2 * square * sizeof(*matrix->transposed));
    matrix->product = symmetric ? NULL : matrix->transposed + square;
    if (!matrix->counts || !matrix->row_counts || !matrix->rows || !matrix->places ||
        !(symmetric || matrix->transposed))
        return -ENOMEM;
    matrix->column_counts = matrix->row_counts + size;
    matrix->difference_counts = matrix->column_counts + size;
    matrix->sum_counts = matrix->difference_counts + size;
    matrix->columns = matrix->rows + size;
    matrix->differences = matrix->columns + size;
    matrix->sums = matrix->differences + size;
    matrix->work = matrix->sums + 2 * size;
    return 0;
}

static void
matrix_add(struct matrix *matrix, const uint64_t *counts)
{
    const int n = matrix->n;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const uint64_t count = counts[i * n + j];

            if (count == 0)
                continue;
            matrix->counts[i * n + j] += count;
            if (matrix->symmetric)
                matrix->counts[j * n + i] += count;
        }
}

/* Sums the marginals exactly, and converts these to probabilities. Returns false if all counts are 0. */
static bool
matrix_normalise(struct matrix *matrix)
{
    const int n = matrix->n;

    matrix->total = 0;
    memset(matrix->row_counts, 0, (size_t)n * 5 * sizeof(*matrix->row_counts)); /* all marginals */
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const uint64_t count = matrix->counts[i * n + j];

            if (count == 0)
                continue;
            matrix->total += count;
            matrix->row_counts[i] += count;
            matrix->column_counts[j] += count;
            matrix->difference_counts[abs(i - j)] += count;
            matrix->sum_counts[i + j] += count;
        }
    if (matrix->total == 0)
        return false;
    for (int i = 0; i < 5 * n; i++)
        matrix->rows[i] = (double)matrix->row_counts[i] / (double)matrix->total;
    matrix->row_levels = matrix->column_levels = 0;
    for (int i = 0; i < n; i++) {
        matrix->row_levels += matrix->row_counts[i] > 0;
        matrix->column_levels += matrix->column_counts[i] > 0;
    }
    return true;
}

static double
entropy(const double *p, int count)
{
    double sum = 0;

    for (int i = 0; i < count; i++)
        if (p[i] > 0)
            sum -= p[i] * log2(p[i]);
    return sum > 0 ? sum : 0; /* not -0 */
}

/* Computes mean and variance of the variable first, first + 1, ... with these probabilities. */
static void
moments(const double *p, int count, int first, double *mean, double *variance)
{
    *mean = *variance = 0;
    for (int k = 0; k < count; k++)
        *mean += (first + k) * p[k];
    for (int k = 0; k < count; k++)
        *variance += (first + k - *mean) * (first + k - *mean) * p[k];
}

/* Computes features of p_{x-y}, which depend only on the distance of the two levels. */
static void
difference_features(const struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    const double *p = matrix->differences, levels = matrix->n;
    double mean, variance, contrast = 0, id = 0, nid = 0, idm = 0, nidm = 0, inverse_variance = 0;

    for (int k = 0; k < matrix->n; k++) {
        const double d = k, d2 = d * d;

        contrast += d2 * p[k];
        id += p[k] / (1 + d);
        nid += p[k] / (1 + d / levels);
        idm += p[k] / (1 + d2);
        nidm += p[k] / (1 + d2 / (levels * levels));
        inverse_variance += k == 0 ? 0 : p[k] / d2;
    }
    moments(p, matrix->n, 0, &mean, &variance);
    values[GLCM_DIFFERENCE_AVERAGE] = feature_present(mean);
    values[GLCM_DIFFERENCE_VARIANCE] = feature_present(variance);
    values[GLCM_DIFFERENCE_ENTROPY] = feature_present(entropy(p, matrix->n));
    values[GLCM_CONTRAST] = feature_present(contrast);
    values[GLCM_DISSIMILARITY] = feature_present(mean);
    values[GLCM_INVERSE_DIFFERENCE] = feature_present(id);
    values[GLCM_NORMALISED_INVERSE_DIFFERENCE] = feature_present(nid);
    values[GLCM_INVERSE_DIFFERENCE_MOMENT] = feature_present(idm);
    values[GLCM_NORMALISED_INVERSE_DIFFERENCE_MOMENT] = feature_present(nidm);
    values[GLCM_INVERSE_VARIANCE] = feature_present(inverse_variance);
}

/* Computes features of p_{x+y}. Its mean, the sum of the marginals' means, is the centre of the
 * cluster features. */
static void
sum_features(const struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    const int count = 2 * matrix->n - 1;
    const double *p = matrix->sums;
    double mean, variance, shade = 0, prominence = 0;

    moments(p, count, 2, &mean, &variance);
    for (int k = 0; k < count; k++) {
        const double from = k + 2 - mean;

        shade += from * from * from * p[k];
        prominence += from * from * from * from * p[k];
    }
    values[GLCM_SUM_AVERAGE] = feature_present(mean);
    values[GLCM_SUM_VARIANCE] = feature_present(variance);
    values[GLCM_SUM_ENTROPY] = feature_present(entropy(p, count));
    values[GLCM_CLUSTER_TENDENCY] = feature_present(variance);
    values[GLCM_CLUSTER_SHADE] = feature_present(shade);
    values[GLCM_CLUSTER_PROMINENCE] = feature_present(prominence);
}

/* Computes features of the matrix itself and of its marginals' moments. */
static void
joint_features(const struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    double row_mean, row_variance, column_mean, column_variance;
    double maximum = 0, squares = 0, product = 0, covariance = 0;

    moments(matrix->rows, matrix->n, 1, &row_mean, &row_variance);
    moments(matrix->columns, matrix->n, 1, &column_mean, &column_variance);
    for (int row = 0; row < matrix->n; row++)
        for (int column = 0; column < matrix->n; column++) {
            const uint64_t count = matrix->counts[row * matrix->n + column];
            const double p = (double)count / (double)matrix->total, i = row + 1, j = column + 1;

            if (count == 0)
                continue;
            maximum = p > maximum ? p : maximum;
            squares += p * p;
            product += i * j * p;
            covariance += (i - row_mean) * (j - column_mean) * p;
        }
    values[GLCM_JOINT_MAXIMUM] = feature_present(maximum);
    values[GLCM_JOINT_AVERAGE] = feature_present(row_mean);
    values[GLCM_JOINT_VARIANCE] = feature_present(row_variance);
    values[GLCM_ANGULAR_SECOND_MOMENT] = feature_present(squares);
    values[GLCM_AUTOCORRELATION] = feature_present(product);
    if (matrix->row_levels > 1 && matrix->column_levels > 1)
        values[GLCM_CORRELATION] = feature_present(covariance / sqrt(row_variance * column_variance));
    else
        values[GLCM_CORRELATION] = feature_absent(FEATURE_ONE_GREY_LEVEL);
}

/*
 * HXY1 and HXY2 both equal HX + HY. HXY1 - HXY and HXY2 - HXY, which the two measures use,
 * therefore equal the mutual information: the sum of p log2(p / (p_i. p_.j)). Computed directly
 * from counts, it stays accurate for nearly independent levels, and is 0 for independent ones.
 */
static void
information_features(const struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    const double of_rows = entropy(matrix->rows, matrix->n);
    const double of_columns = entropy(matrix->columns, matrix->n);
    const double larger = fmax(of_rows, of_columns), smaller = fmin(of_rows, of_columns);
    double joint = 0, mutual = 0;

    for (int i = 0; i < matrix->n; i++)
        for (int j = 0; j < matrix->n; j++) {
            const uint64_t count = matrix->counts[i * matrix->n + j];
            const double p = (double)count / (double)matrix->total;
            const double together = (double)count * (double)matrix->total;
            const double apart = (double)matrix->row_counts[i] * (double)matrix->column_counts[j];

            if (count == 0)
                continue;
            joint -= p * log2(p);
            mutual += p * log2(together / apart);
        }
    mutual = fmin(mutual > 0 ? mutual : 0, smaller); /* rounding may exceed the bounds */
    values[GLCM_JOINT_ENTROPY] = feature_present(joint > 0 ? joint : 0);
    if (larger > 0)
        values[GLCM_INFORMATION_CORRELATION_1] = feature_present(mutual > 0 ? -mutual / larger : 0);
    else
        values[GLCM_INFORMATION_CORRELATION_1] = feature_absent(FEATURE_ONE_GREY_LEVEL);
    values[GLCM_INFORMATION_CORRELATION_2] = feature_present(sqrt(-expm1(-2 * mutual)));
}

/* The levels that occur: their places in the matrix, and the roots of their marginals' counts. */
struct occurring {
    int count;
    int *places;
    double *roots;
};

static void
find_occurring(const uint64_t *counts, int n, struct occurring *levels)
{
    levels->count = 0;
    for (int i = 0; i < n; i++)
        if (counts[i] > 0) {
            levels->places[levels->count] = i;
            levels->roots[levels->count++] = sqrt((double)counts[i]);
        }
}

/* Computes (p_ij - p_i. p_.j) / sqrt(p_i. p_.j) for the levels that occur, from counts, and in their place: none is written
 * before a count that is still to be read. */
static double *
fill_residual(struct matrix *matrix, const struct occurring *rows, const struct occurring *columns)
{
    const double total = (double)matrix->total;
    void *const place = matrix->counts;
    double *residual = place;

    for (int r = 0; r < rows->count; r++)
        for (int c = 0; c < columns->count; c++) {
            const int i = rows->places[r], j = columns->places[c];
            const double together = (double)matrix->counts[i * matrix->n + j] * total;
            const double apart = (double)matrix->row_counts[i] * (double)matrix->column_counts[j];

            residual[r * columns->count + c] = (together - apart) / (total * rows->roots[r] * columns->roots[c]);
        }
    return residual;
}

/* Computes the lower half of the height x width matrix times its transpose. */
static void
multiply_by_transpose(const double *matrix, int height, int width, double *restrict transposed,
                      double *restrict product)
{
    for (int i = 0; i < height; i++)
        for (int j = 0; j < width; j++)
            transposed[j * height + i] = matrix[i * width + j];
    for (int i = 0; i < height; i++) {
        double *row = product + i * height;

        memset(row, 0, (size_t)height * sizeof(*row));
        for (int j = 0; j < width; j++)
            for (int k = 0; k <= i; k++)
                row[k] += matrix[i * width + j] * transposed[j * height + k];
    }
}

/*
 * The root of the second largest eigenvalue of Haralick's Q is the second largest singular value of
 * p_ij / sqrt(p_i. p_.j). The largest one is 1, with the vectors sqrt(p_i.) and sqrt(p_.j).
 * Subtracting it leaves the residual, whose largest singular value is the result. For a symmetric
 * matrix this is the largest magnitude of an eigenvalue, otherwise the root of that of the matrix
 * times its transpose. Small values therefore stay accurate, and independent levels give 0.
 */
static void
maximal_correlation(struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    struct occurring rows = {.places = matrix->places, .roots = matrix->work};
    struct occurring columns = {.places = matrix->places + matrix->n, .roots = matrix->work + matrix->n};
    double *residual, norm;

    if (matrix->row_levels < 2 || matrix->column_levels < 2) {
        values[GLCM_MAXIMAL_CORRELATION_COEFFICIENT] = feature_absent(FEATURE_ONE_GREY_LEVEL);
        return;
    }
    find_occurring(matrix->row_counts, matrix->n, &rows);
    find_occurring(matrix->column_counts, matrix->n, &columns);
    residual = fill_residual(matrix, &rows, &columns);
    if (matrix->symmetric) {
        norm = eigen_spectral_norm(residual, rows.count, matrix->work);
    } else {
        multiply_by_transpose(residual, rows.count, columns.count, matrix->transposed, matrix->product);
        norm = sqrt(eigen_spectral_norm(matrix->product, rows.count, matrix->work));
    }
    values[GLCM_MAXIMAL_CORRELATION_COEFFICIENT] = feature_present(norm < 1 ? norm : 1);
}

/* The features of all matrices, each in the work memory of its part. */
struct matrices {
    const struct glcm_settings *settings;
    const uint64_t *counts;
    int64_t count, merged; /* matrices to compute, and the directions that each merges */
    int64_t parts;
    struct matrix *work;
    struct feature_value (*values)[GLCM_FEATURES];
};

/* Overwrites the counts of the matrix. */
static void
matrix_features(struct matrix *matrix, enum glcm_one_level one_level, struct feature_value values[GLCM_FEATURES])
{
    if (!matrix_normalise(matrix)) {
        for (int f = 0; f < GLCM_FEATURES; f++)
            values[f] = feature_absent(FEATURE_NO_NEIGHBOURS);
        return;
    }
    difference_features(matrix, values);
    sum_features(matrix, values);
    joint_features(matrix, values);
    information_features(matrix, values);
    maximal_correlation(matrix, values);
    if (one_level != GLCM_ONE_LEVEL_ABSENT && (matrix->row_levels < 2 || matrix->column_levels < 2)) {
        values[GLCM_CORRELATION] = feature_present(1);
        values[GLCM_INFORMATION_CORRELATION_1] = feature_present(0);
        values[GLCM_MAXIMAL_CORRELATION_COEFFICIENT] = feature_present(one_level == GLCM_ONE_LEVEL_OF_ONE ? 1 : 0);
    }
}

static void
matrices_compute(void *context, int64_t part)
{
    const struct matrices *matrices = context;
    struct matrix *matrix = &matrices->work[part];
    const int64_t square = (int64_t)matrix->n * matrix->n;

    for (int64_t m = part; m < matrices->count; m += matrices->parts) {
        memset(matrix->counts, 0, (size_t)square * sizeof(*matrix->counts));
        for (int64_t d = m * matrices->merged; d < (m + 1) * matrices->merged; d++)
            matrix_add(matrix, matrices->counts + d * square);
        matrix_features(matrix, matrices->settings->one_level, matrices->values[m]);
    }
}

/* Averages each feature over the matrices that have it. */
static void
matrices_average(const struct matrices *matrices, struct feature_value values[GLCM_FEATURES])
{
    for (int f = 0; f < GLCM_FEATURES; f++) {
        enum feature_missing missing = FEATURE_NO_NEIGHBOURS;
        double sum = 0;
        int64_t count = 0;

        for (int64_t m = 0; m < matrices->count; m++) {
            const struct feature_value value = matrices->values[m][f];

            if (value.missing == FEATURE_PRESENT) {
                sum += value.value;
                count++;
            } else if (value.missing == FEATURE_ONE_GREY_LEVEL)
                missing = value.missing;
        }
        values[f] = count > 0 ? feature_present(sum / (double)count) : feature_absent(missing);
    }
}

static size_t
matrix_bytes(int levels, bool symmetric)
{
    return (symmetric ? 1 : 3) * (size_t)levels * (size_t)levels * sizeof(uint64_t);
}

/* Returns the max number of matrices to compute at the same time. */
static int64_t
matrices_together(int levels, bool symmetric, int64_t count)
{
    const int64_t fit = MATRICES_BYTES / (int64_t)matrix_bytes(levels, symmetric);
    const int64_t most = count < MATRICES_MAX ? count : MATRICES_MAX;

    return fit < 1 ? 1 : fit < most ? fit : most;
}

int
glcm_features(const struct glcm_settings *settings, const struct kernels_lane *lane, const uint64_t *counts,
              int64_t slices, int64_t directions, struct feature_value values[GLCM_FEATURES])
{
    const bool merges = aggregation_merges(settings->aggregation);
    const int64_t threads = lane ? kernels_lane_threads(lane) : 1;
    struct matrices matrices = {.settings = settings,
                                .counts = counts,
                                .count = merges ? slices : slices * directions,
                                .merged = merges ? directions : 1};
    int rc;

    matrices.parts =
        matrices_together(settings->levels, settings->symmetric, threads < matrices.count ? threads : matrices.count);
    matrices.work = calloc((size_t)matrices.parts, sizeof(*matrices.work));
    matrices.values = malloc((size_t)matrices.count * sizeof(*matrices.values));
    rc = matrices.work && matrices.values ? 0 : -ENOMEM;
    for (int64_t part = 0; part < matrices.parts && rc == 0; part++)
        rc = matrix_open(&matrices.work[part], settings->levels, settings->symmetric);
    if (rc == 0) {
        kernels_lane_for(lane, matrices.parts, matrices_compute, &matrices);
        matrices_average(&matrices, values);
    }
    for (int64_t part = 0; matrices.work && part < matrices.parts; part++)
        matrix_close(&matrices.work[part]);
    free(matrices.work);
    free(matrices.values);
    return rc;
}

/* ---------------------------------------------------------------------------- the family -- */

static bool
glcm_wanted(const struct texture_options *options)
{
    return texture_glcm_options(options) != NULL;
}

static size_t
glcm_sets(const struct texture_options *options)
{
    return directions_sets(texture_glcm_options(options));
}

static void
glcm_describe(const struct texture_options *options, size_t set, char settings[FEATURE_SETTINGS])
{
    const struct glcm_options *glcm = texture_glcm_options(options);
    struct directions directions;
    char name[DIRECTIONS_TEXT];

    directions_make(glcm, set, &directions);
    directions_name(glcm, name);
    feature_put_text(settings, FEATURE_aggregation, aggregation_names[glcm->aggregation]);
    feature_put_text(settings, FEATURE_aggregation_ibsi_code, aggregation_codes[glcm->aggregation]);
    feature_put_integer(settings, FEATURE_distance, directions.distance);
    feature_put_boolean(settings, FEATURE_symmetric, glcm->symmetric);
    feature_put_text(settings, FEATURE_directions, name);
}

/* Returns the number of slices with their own matrices. */
static size_t
glcm_slices(const struct feature_region *region)
{
    const struct feature_volume *volume = region->volume;

    return aggregation_per_slice(texture_glcm_options(volume->options)->aggregation) ? (size_t)volume->slices : 1;
}

/* Returns the number of counts of all matrices in a set. */
static size_t
glcm_size(const struct feature_region *region, size_t set)
{
    struct directions directions;

    directions_make(texture_glcm_options(region->volume->options), set, &directions);
    return glcm_slices(region) * directions.count * (size_t)region->levels * (size_t)region->levels;
}

/* Returns the memory of the counts, of the features of each matrix, and of the matrices that are computed at the same time. */
static size_t
glcm_bytes(const struct feature_region *largest, size_t set)
{
    const struct glcm_options *options = texture_glcm_options(largest->volume->options);
    const size_t matrices = glcm_size(largest, set) / ((size_t)largest->levels * (size_t)largest->levels);
    const int64_t together = matrices_together(largest->levels, options->symmetric, (int64_t)matrices);

    return matrices * (matrix_bytes(largest->levels, true) + GLCM_FEATURES * sizeof(struct feature_value)) +
           (size_t)together * matrix_bytes(largest->levels, options->symmetric);
}

static int
glcm_count(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error)
{
    const struct glcm_options *options = texture_glcm_options(region->volume->options);
    struct directions directions;
    int rc;

    directions_make(options, set, &directions);
    const struct texture_glcm request = {
        .levels = {region->levels, region->level_of, region->volume->tables},
        .region = region->bits,
        .offsets = directions.offsets,
        .offset_count = directions.count,
        .per_slice = aggregation_per_slice(options->aggregation),
    };
    rc = feature_counts_make(glcm_size(region, set), counts, error);
    if (rc == 0 && region->wide) {
        wide_glcm(region, &request, *counts);
        return 0;
    }
    return rc ? rc : texture_glcm_run(region->volume->lane, &request, *counts, error);
}

static enum glcm_one_level
glcm_one_level_of(const struct feature_region *region)
{
    const struct texture_options *options = region->volume->options;
    const double lo = region->extremes[0], hi = region->extremes[1];
    const struct discretise_rule rule = discretise_rule_of(&options->levels, lo, hi);

    if (options->names != TEXTURE_NAMES_PYRADIOMICS)
        return GLCM_ONE_LEVEL_ABSENT;
    if (options->levels.kind == DISCRETISATION_STORED_256) /* has no level of a value */
        return lo < hi ? GLCM_ONE_LEVEL_OF_SEVERAL : GLCM_ONE_LEVEL_OF_ONE;
    return discretise_value(&rule, lo) < discretise_value(&rule, hi) ? GLCM_ONE_LEVEL_OF_SEVERAL
                                                                     : GLCM_ONE_LEVEL_OF_ONE;
}

static int
glcm_values(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    const struct glcm_options *options = texture_glcm_options(region->volume->options);
    const struct glcm_settings settings = {region->levels, options->aggregation, options->symmetric,
                                           glcm_one_level_of(region)};
    struct directions directions;

    directions_make(options, set, &directions);
    return glcm_features(&settings, region->volume->lane, counts, (int64_t)glcm_slices(region),
                         (int64_t)directions.count, values);
}

const struct feature_family family_glcm = {
    .name = "glcm",
    .definitions = glcm_definitions,
    .definition_count = GLCM_FEATURES,
    .needs = FEATURE_NEEDS_LEVELS,
    .keeps = FEATURE_KEEPS_MATRICES,
    .wanted = glcm_wanted,
    .sets = glcm_sets,
    .describe = glcm_describe,
    .op = KERNELS_GLCM,
    .count = glcm_count,
    .bytes = glcm_bytes,
    .values = glcm_values,
};
