/*
 * pattern_code.h - histograms of local patterns: distances, and their form with 8 bits per code. Private to db/.
 *
 * A search compares coded histograms first. Each distance has a metric m: the root of chi-square, L1 itself, and the
 * chord of the two directions for cosine. A record has the error m(p, c) between its histogram p and its code c. The
 * triangle inequality gives a lower bound for a query q: m(p, q) >= m(c, q) - m(p, c). So a region whose bound exceeds
 * the distance of the last listed one cannot be listed, and the result does not depend on the code.
 */
#ifndef NOCTULE_DB_PATTERN_CODE_H
#define NOCTULE_DB_PATTERN_CODE_H

#include <stdint.h>

#define PATTERN_CODES 256
#define PATTERN_KINDS 3 /* patterns of a search */

enum pattern_distance {
    PATTERN_CHI_SQUARE, /* half the sum of (p - q)^2 / (p + q): 0 to 1 */
    PATTERN_L1,         /* the sum of |p - q|: 0 to 2 */
    PATTERN_COSINE,     /* 1 - p.q / (|p| |q|): 0 to 1 */
    PATTERN_DISTANCES
};

/* A region of a block: pattern_block.data with the term 0. Blocks are written and read on machines of one byte order. */
struct pattern_region {
    int64_t job;
    int32_t segment, pipeline; /* pipeline: its term */
    double spacing[2];         /* as in v_jobs; -1: not known */
    int64_t straightened;
};

/* A histogram of a block: pattern_block.data of a pattern. */
struct pattern_record {
    uint32_t region; /* its place in the block */
    float error[PATTERN_DISTANCES];
    uint8_t code[PATTERN_CODES]; /* round(255 * sqrt(part)) */
};

/* Reads "[0,17,...]" as parts of their sum. Returns 0; -ENODATA if the sum is 0; -EBADMSG. */
int pattern_read(const char *counts, double parts[PATTERN_CODES]);

/* Sets code and error of the record. */
void pattern_encode(const double parts[PATTERN_CODES], struct pattern_record *record);

double pattern_distance(enum pattern_distance distance, const double a[PATTERN_CODES], const double b[PATTERN_CODES]);

/* A query in the form that bounds need. */
struct pattern_query {
    float parts[PATTERN_CODES];
    float norm;
};

void pattern_prepare(const double parts[PATTERN_CODES], struct pattern_query *query);
/* Returns a lower bound of the distance of the histogram that the record was made of. */
double pattern_bound(enum pattern_distance distance, const struct pattern_query *query,
                     const struct pattern_record *record);

#endif
