/*
 * pattern_code.c - see pattern_code.h. The loops over the codes have 16 sums each, so that the compiler can vectorise them
 * without a change of the result.
 */
#include "db/pattern_code.h"

#include <errno.h>
#include <math.h>

#define LANES 16
/* Errors of sums of 256 terms in single precision are below 1e-5 of the sum; of the query's parts, below 1e-6. */
#define RELATIVE 1e-4
#define ABSOLUTE 2e-5

int
pattern_read(const char *counts, double parts[PATTERN_CODES])
{
    double sum = 0;
    if (*counts != '[')
        return -EBADMSG;
    for (int i = 0; i < PATTERN_CODES; i++) {
        int64_t count = 0;
        const char *digit = ++counts;
        for (; *digit >= '0' && *digit <= '9' && digit - counts < 18; digit++)
            count = 10 * count + (*digit - '0');
        if (digit == counts || *digit != (i + 1 < PATTERN_CODES ? ',' : ']'))
            return -EBADMSG;
        counts = digit;
        parts[i] = (double)count;
        sum += parts[i];
    }
    for (int i = 0; sum > 0 && i < PATTERN_CODES; i++)
        parts[i] /= sum;
    return sum > 0 ? 0 : -ENODATA;
}

/* ------------------------------------------------------------------------------- distances ---- */

static double
pattern_sum(const double sums[LANES])
{
    double sum = 0;
    for (int lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    return sum;
}

static double
distance_chi_square(const double *a, const double *b)
{
    double sums[LANES] = {0};
    for (int i = 0; i < PATTERN_CODES; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const double p = a[i + lane], q = b[i + lane], both = p + q;
            sums[lane] += both > 0 ? (p - q) * (p - q) / both : 0;
        }
    return 0.5 * pattern_sum(sums);
}

static double
distance_l1(const double *a, const double *b)
{
    double sums[LANES] = {0};
    for (int i = 0; i < PATTERN_CODES; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += fabs(a[i + lane] - b[i + lane]);
    return pattern_sum(sums);
}

static double
distance_cosine(const double *a, const double *b)
{
    double dot[LANES] = {0}, one[LANES] = {0}, other[LANES] = {0};
    for (int i = 0; i < PATTERN_CODES; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            dot[lane] += a[i + lane] * b[i + lane];
            one[lane] += a[i + lane] * a[i + lane];
            other[lane] += b[i + lane] * b[i + lane];
        }
    return fmax(0, 1 - pattern_sum(dot) / sqrt(pattern_sum(one) * pattern_sum(other)));
}

double
pattern_distance(enum pattern_distance distance, const double a[PATTERN_CODES], const double b[PATTERN_CODES])
{
    return distance == PATTERN_CHI_SQUARE ? distance_chi_square(a, b)
           : distance == PATTERN_L1       ? distance_l1(a, b)
                                          : distance_cosine(a, b);
}

/* ---------------------------------------------------------------------------------- bounds ---- */

static double
pattern_metric(enum pattern_distance distance, double value)
{
    return distance == PATTERN_CHI_SQUARE ? sqrt(value) : distance == PATTERN_L1 ? value : sqrt(2 * value);
}

void
pattern_encode(const double parts[PATTERN_CODES], struct pattern_record *record)
{
    double coded[PATTERN_CODES];
    for (int i = 0; i < PATTERN_CODES; i++) {
        record->code[i] = (uint8_t)lround(255 * sqrt(parts[i]));
        const double root = record->code[i] / 255.0;
        coded[i] = root * root;
    }
    for (int d = 0; d < PATTERN_DISTANCES; d++) {
        const double error =
            pattern_metric((enum pattern_distance)d, pattern_distance((enum pattern_distance)d, parts, coded));
        record->error[d] = (float)(error * (1 + RELATIVE) + 1e-6); /* rounded up */
    }
}

void
pattern_prepare(const double parts[PATTERN_CODES], struct pattern_query *query)
{
    double squares = 0;
    for (int i = 0; i < PATTERN_CODES; i++) {
        query->parts[i] = (float)parts[i];
        squares += parts[i] * parts[i];
    }
    query->norm = (float)sqrt(squares);
}

static float
bound_sum(const float sums[LANES])
{
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    return sum;
}

static double
bound_chi_square(const float *q, const uint8_t *code)
{
    float sums[LANES] = {0};
    for (int i = 0; i < PATTERN_CODES; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const float root = (float)code[i + lane] * (1.0F / 255), p = root * root, gap = p - q[i + lane];
            sums[lane] += gap * gap / (p + q[i + lane] + 1e-30F);
        }
    return 0.5 * bound_sum(sums);
}

static double
bound_l1(const float *q, const uint8_t *code)
{
    float sums[LANES] = {0};
    for (int i = 0; i < PATTERN_CODES; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const float root = (float)code[i + lane] * (1.0F / 255);
            sums[lane] += fabsf(root * root - q[i + lane]);
        }
    return bound_sum(sums);
}

static double
bound_cosine(const struct pattern_query *query, const uint8_t *code)
{
    float dot[LANES] = {0}, squares[LANES] = {0};
    for (int i = 0; i < PATTERN_CODES; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const float root = (float)code[i + lane] * (1.0F / 255), p = root * root;
            dot[lane] += p * query->parts[i + lane];
            squares[lane] += p * p;
        }
    return 1 - (double)bound_sum(dot) / (sqrt((double)bound_sum(squares)) * (double)query->norm);
}

double
pattern_bound(enum pattern_distance distance, const struct pattern_query *query, const struct pattern_record *record)
{
    const double value = distance == PATTERN_CHI_SQUARE ? bound_chi_square(query->parts, record->code)
                         : distance == PATTERN_L1       ? bound_l1(query->parts, record->code)
                                                        : bound_cosine(query, record->code);
    const double metric = pattern_metric(distance, fmax(0, value * (1 - RELATIVE) - ABSOLUTE));
    const double bound = fmax(0, metric - (double)record->error[distance]);
    return distance == PATTERN_CHI_SQUARE ? bound * bound : distance == PATTERN_L1 ? bound : bound * bound / 2;
}
