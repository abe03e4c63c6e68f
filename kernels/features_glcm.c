/*
 * features_glcm.c - features of grey level co-occurrence matrices, from counts.
 *
 * A matrix becomes probabilities once; sums run over it row by row, so the order of additions, and
 * with it the last bit, is the same everywhere. An average leaves out matrices without a count, and
 * for each feature those in which it is not defined.
 */
#include "eigen.h"
#include "texture_features.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct feature_definition glcm_feature_definitions[GLCM_FEATURES] = {
    {"joint_maximum", "Joint maximum", "GYBY", "1"},
    {"joint_average", "Joint average", "60VM", "1"},
    {"joint_variance", "Joint variance", "UR99", "1"},
    {"joint_entropy", "Joint entropy", "TU9B", "1"},
    {"difference_average", "Difference average", "TF7R", "1"},
    {"difference_variance", "Difference variance", "D3YU", "1"},
    {"difference_entropy", "Difference entropy", "NTRS", "1"},
    {"sum_average", "Sum average", "ZGXS", "1"},
    {"sum_variance", "Sum variance", "OEEB", "1"},
    {"sum_entropy", "Sum entropy", "P6QZ", "1"},
    {"angular_second_moment", "Angular second moment", "8ZQL", "1"},
    {"contrast", "Contrast", "ACUI", "1"},
    {"dissimilarity", "Dissimilarity", "8S9J", "1"},
    {"inverse_difference", "Inverse difference", "IB1Z", "1"},
    {"normalised_inverse_difference", "Normalised inverse difference", "NDRX", "1"},
    {"inverse_difference_moment", "Inverse difference moment", "WF0Z", "1"},
    {"normalised_inverse_difference_moment", "Normalised inverse difference moment", "1QCO", "1"},
    {"inverse_variance", "Inverse variance", "E8JP", "1"},
    {"correlation", "Correlation", "NI2N", "1"},
    {"autocorrelation", "Autocorrelation", "QWB0", "1"},
    {"cluster_tendency", "Cluster tendency", "DG8W", "1"},
    {"cluster_shade", "Cluster shade", "7NFM", "1"},
    {"cluster_prominence", "Cluster prominence", "AE86", "1"},
    {"information_correlation_1", "First measure of information correlation", "R8DG", "1"},
    {"information_correlation_2", "Second measure of information correlation", "JN9H", "1"},
    {"maximal_correlation_coefficient", "Maximal correlation coefficient", "", "1"},
};

const char *const glcm_aggregation_names[GLCM_AGGREGATIONS] = {
    "2d-averaged", "2d-slice-merged", "2.5d-direction-merged",
    "2.5d-merged", "3d-averaged",     "3d-merged",
};

const char *const glcm_aggregation_codes[GLCM_AGGREGATIONS] = {
    "BTW3", "SUJT", "JJUI", "ZW7Z", "ITBB", "IAZD",
};

const char *
features_absence_name(enum features_absence absence)
{
    switch (absence) {
    case FEATURES_NO_VOXEL:
        return "EMPTY_REGION";
    case FEATURES_NO_PAIR:
        return "NO_NEIGHBOURS";
    case FEATURES_ONE_LEVEL:
        return "ONE_GREY_LEVEL";
    case FEATURES_PRESENT:
        break;
    }
    return "";
}

bool
glcm_aggregation_is_2d(enum glcm_aggregation aggregation)
{
    return aggregation < GLCM_3D_AVERAGED;
}

bool
glcm_aggregation_per_slice(enum glcm_aggregation aggregation)
{
    return aggregation == GLCM_2D_AVERAGED || aggregation == GLCM_2D_SLICE_MERGED;
}

/* Are the directions of a slice added up before features are taken? */
static bool
merges_directions(enum glcm_aggregation aggregation)
{
    return aggregation == GLCM_2D_SLICE_MERGED || aggregation == GLCM_2_5D_MERGED ||
           aggregation == GLCM_3D_MERGED;
}

/* One matrix as probabilities, its marginals, and room to work; n is the number of levels. */
struct matrix {
    int n;
    bool symmetric;
    uint64_t *counts;    /* n * n */
    double *p;           /* n * n */
    double *rows;        /* n: p_i. */
    double *columns;     /* n: p_.j */
    double *differences; /* n: p_{i-j}(k), k = 0 .. n - 1 */
    double *sums;        /* 2 n: p_{i+j}(k), k = 2 .. 2 n stands at k - 2 */
    double *work;        /* n * n, and 2 n */
};

static int
matrix_open(struct matrix *matrix, int n, bool symmetric)
{
    const size_t size = (size_t)n, square = size * size;

    *matrix = (struct matrix){.n = n, .symmetric = symmetric};
    matrix->counts = malloc(square * sizeof(*matrix->counts));
    matrix->p = malloc((2 * square + 7 * size) * sizeof(*matrix->p));
    if (!matrix->counts || !matrix->p) {
        free(matrix->counts);
        free(matrix->p);
        return -ENOMEM;
    }
    matrix->rows = matrix->p + square;
    matrix->columns = matrix->rows + size;
    matrix->differences = matrix->columns + size;
    matrix->sums = matrix->differences + size;
    matrix->work = matrix->sums + 2 * size;
    return 0;
}

static void
matrix_close(struct matrix *matrix)
{
    free(matrix->counts);
    free(matrix->p);
}

static void
matrix_clear(struct matrix *matrix)
{
    memset(matrix->counts, 0, (size_t)matrix->n * (size_t)matrix->n * sizeof(*matrix->counts));
}

static void
matrix_add(struct matrix *matrix, const uint64_t *counts)
{
    const int n = matrix->n;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            matrix->counts[i * n + j] += counts[i * n + j];
            if (matrix->symmetric)
                matrix->counts[j * n + i] += counts[i * n + j];
        }
}

/* Makes probabilities and marginals of the counts; false when there are none. */
static bool
matrix_normalise(struct matrix *matrix)
{
    const int n = matrix->n;
    uint64_t total = 0;

    for (int i = 0; i < n * n; i++)
        total += matrix->counts[i];
    if (total == 0)
        return false;
    memset(matrix->rows, 0, (size_t)n * 5 * sizeof(*matrix->rows)); /* all marginals */
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double p = (double)matrix->counts[i * n + j] / (double)total;
            matrix->p[i * n + j] = p;
            matrix->rows[i] += p;
            matrix->columns[j] += p;
            matrix->differences[abs(i - j)] += p;
            matrix->sums[i + j] += p;
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
    return sum;
}

/* Mean and variance of the variable first, first + 1, ... with these probabilities. */
static void
moments(const double *p, int count, int first, double *mean, double *variance)
{
    *mean = *variance = 0;
    for (int k = 0; k < count; k++)
        *mean += (first + k) * p[k];
    for (int k = 0; k < count; k++)
        *variance += (first + k - *mean) * (first + k - *mean) * p[k];
}

static void
present(struct feature_value values[GLCM_FEATURES], enum glcm_feature feature, double value)
{
    values[feature] = (struct feature_value){value, FEATURES_PRESENT};
}

static void
absent(struct feature_value values[GLCM_FEATURES], enum glcm_feature feature,
       enum features_absence absence)
{
    values[feature] = (struct feature_value){0, absence};
}

/* Those that are one pass of weights over the matrix. */
static void
weighted_features(const struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    const int n = matrix->n;
    const double levels = n;
    double maximum = 0, squares = 0, contrast = 0, dissimilarity = 0, product = 0;
    double id = 0, nid = 0, idm = 0, nidm = 0, inverse_variance = 0;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const double p = matrix->p[i * n + j];
            const double d = abs(i - j), d2 = d * d;

            if (p == 0)
                continue;
            maximum = p > maximum ? p : maximum;
            squares += p * p;
            contrast += d2 * p;
            dissimilarity += d * p;
            product += (double)(i + 1) * (double)(j + 1) * p;
            id += p / (1 + d);
            nid += p / (1 + d / levels);
            idm += p / (1 + d2);
            nidm += p / (1 + d2 / (levels * levels));
            inverse_variance += i == j ? 0 : p / d2;
        }
    present(values, GLCM_JOINT_MAXIMUM, maximum);
    present(values, GLCM_ANGULAR_SECOND_MOMENT, squares);
    present(values, GLCM_CONTRAST, contrast);
    present(values, GLCM_DISSIMILARITY, dissimilarity);
    present(values, GLCM_AUTOCORRELATION, product);
    present(values, GLCM_INVERSE_DIFFERENCE, id);
    present(values, GLCM_NORMALISED_INVERSE_DIFFERENCE, nid);
    present(values, GLCM_INVERSE_DIFFERENCE_MOMENT, idm);
    present(values, GLCM_NORMALISED_INVERSE_DIFFERENCE_MOMENT, nidm);
    present(values, GLCM_INVERSE_VARIANCE, inverse_variance);
}

static void
marginal_features(const struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    const int n = matrix->n;
    double mean, variance;

    moments(matrix->differences, n, 0, &mean, &variance);
    present(values, GLCM_DIFFERENCE_AVERAGE, mean);
    present(values, GLCM_DIFFERENCE_VARIANCE, variance);
    present(values, GLCM_DIFFERENCE_ENTROPY, entropy(matrix->differences, n));
    moments(matrix->sums, 2 * n - 1, 2, &mean, &variance);
    present(values, GLCM_SUM_AVERAGE, mean);
    present(values, GLCM_SUM_VARIANCE, variance);
    present(values, GLCM_SUM_ENTROPY, entropy(matrix->sums, 2 * n - 1));
}

/* Those about the means of the marginals. */
static void
centred_features(const struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    const int n = matrix->n;
    double row_mean, row_variance, column_mean, column_variance;
    double covariance = 0, tendency = 0, shade = 0, prominence = 0;

    moments(matrix->rows, n, 1, &row_mean, &row_variance);
    moments(matrix->columns, n, 1, &column_mean, &column_variance);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const double p = matrix->p[i * n + j];
            const double from_row = i + 1 - row_mean, from_column = j + 1 - column_mean;
            const double both = from_row + from_column;

            if (p == 0)
                continue;
            covariance += from_row * from_column * p;
            tendency += both * both * p;
            shade += both * both * both * p;
            prominence += both * both * both * both * p;
        }
    present(values, GLCM_JOINT_AVERAGE, row_mean);
    present(values, GLCM_JOINT_VARIANCE, row_variance);
    present(values, GLCM_CLUSTER_TENDENCY, tendency);
    present(values, GLCM_CLUSTER_SHADE, shade);
    present(values, GLCM_CLUSTER_PROMINENCE, prominence);
    if (row_variance > 0 && column_variance > 0)
        present(values, GLCM_CORRELATION, covariance / sqrt(row_variance * column_variance));
    else
        absent(values, GLCM_CORRELATION, FEATURES_ONE_LEVEL);
}

static void
information_features(const struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    const int n = matrix->n;
    const double joint = entropy(matrix->p, n * n);
    const double of_rows = entropy(matrix->rows, n), of_columns = entropy(matrix->columns, n);
    const double larger = of_rows > of_columns ? of_rows : of_columns;
    double first = 0, second = 0;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const double apart = matrix->rows[i] * matrix->columns[j];

            if (apart == 0)
                continue;
            first -= matrix->p[i * n + j] * log2(apart);
            second -= apart * log2(apart);
        }
    present(values, GLCM_JOINT_ENTROPY, joint);
    if (larger > 0)
        present(values, GLCM_INFORMATION_CORRELATION_1, (joint - first) / larger);
    else
        absent(values, GLCM_INFORMATION_CORRELATION_1, FEATURES_ONE_LEVEL);
    /* Rounding may leave the difference just below 0 where levels are independent. */
    present(values, GLCM_INFORMATION_CORRELATION_2,
            second > joint ? sqrt(1 - exp(-2 * (second - joint))) : 0);
}

/*
 * The root of the second largest eigenvalue of Haralick's Q is the second largest singular value of
 * p_ij / sqrt(p_i. p_.j). For a symmetric matrix that is an eigenvalue's magnitude; else the matrix
 * times its transpose is taken.
 */
static void
maximal_correlation(const struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    const int n = matrix->n;
    double *scaled = matrix->work, *eigenvalues = scaled + n * n, *rest = eigenvalues + n;
    double largest = 0, second = 0;
    int rows = 0;

    for (int i = 0; i < n; i++)
        rows += matrix->rows[i] > 0;
    if (rows < 2) {
        absent(values, GLCM_MAXIMAL_CORRELATION_COEFFICIENT, FEATURES_ONE_LEVEL);
        return;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;

            if (matrix->symmetric) {
                double apart = matrix->rows[i] * matrix->columns[j];
                sum = apart > 0 ? matrix->p[i * n + j] / sqrt(apart) : 0;
            } else {
                double apart = matrix->rows[i] * matrix->rows[j];
                for (int k = 0; k < n && apart > 0; k++)
                    if (matrix->columns[k] > 0)
                        sum += matrix->p[i * n + k] * matrix->p[j * n + k] / matrix->columns[k];
                sum = apart > 0 ? sum / sqrt(apart) : 0;
            }
            scaled[i * n + j] = scaled[j * n + i] = sum;
        }
    eigenvalues_symmetric(scaled, n, eigenvalues, rest);
    for (int i = 0; i < n; i++) {
        double size = fabs(eigenvalues[i]);

        if (size > largest) {
            second = largest;
            largest = size;
        } else if (size > second) {
            second = size;
        }
    }
    second = matrix->symmetric ? second : sqrt(second);
    present(values, GLCM_MAXIMAL_CORRELATION_COEFFICIENT, second < 1 ? second : 1);
}

static void
features_of(const struct matrix *matrix, struct feature_value values[GLCM_FEATURES])
{
    weighted_features(matrix, values);
    marginal_features(matrix, values);
    centred_features(matrix, values);
    information_features(matrix, values);
    maximal_correlation(matrix, values);
}

/* Sums of values, and how many matrices had one. */
struct average {
    double sum[GLCM_FEATURES];
    int64_t count[GLCM_FEATURES];
    int64_t matrices;
};

static void
average_add(struct average *average, struct matrix *matrix)
{
    struct feature_value values[GLCM_FEATURES];

    if (!matrix_normalise(matrix))
        return;
    features_of(matrix, values);
    average->matrices++;
    for (int f = 0; f < GLCM_FEATURES; f++)
        if (values[f].absence == FEATURES_PRESENT) {
            average->sum[f] += values[f].value;
            average->count[f]++;
        }
}

static void
average_take(const struct average *average, struct feature_value values[GLCM_FEATURES])
{
    for (int f = 0; f < GLCM_FEATURES; f++) {
        if (average->count[f] > 0)
            present(values, (enum glcm_feature)f, average->sum[f] / (double)average->count[f]);
        else
            absent(values, (enum glcm_feature)f,
                   average->matrices > 0 ? FEATURES_ONE_LEVEL : FEATURES_NO_PAIR);
    }
}

int
glcm_features(const struct glcm_settings *settings, const uint64_t *counts, int64_t slices,
              int64_t directions, struct feature_value values[GLCM_FEATURES])
{
    const int64_t square = (int64_t)settings->levels * settings->levels;
    const bool merges = merges_directions(settings->aggregation);
    struct average average = {.matrices = 0};
    struct matrix matrix;

    if (matrix_open(&matrix, settings->levels, settings->symmetric))
        return -ENOMEM;
    for (int64_t z = 0; z < slices; z++) {
        matrix_clear(&matrix);
        for (int64_t d = 0; d < directions; d++) {
            matrix_add(&matrix, counts + (z * directions + d) * square);
            if (!merges || d + 1 == directions) {
                average_add(&average, &matrix);
                matrix_clear(&matrix);
            }
        }
    }
    average_take(&average, values);
    matrix_close(&matrix);
    return 0;
}
