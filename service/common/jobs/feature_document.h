/*
 * feature_document.h - the measurements of one job: features (base/feature.h), histograms and matrices, and
 * the documents that tell them.
 */
#ifndef NOCTULE_SERVICE_COMMON_JOBS_FEATURE_DOCUMENT_H
#define NOCTULE_SERVICE_COMMON_JOBS_FEATURE_DOCUMENT_H

#include "base/feature.h"
#include "dicom/dicom.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FEATURE_TERM 32

/* How often each code of a local pattern occurs in a region. */
struct feature_histogram {
    int32_t segment;
    char label[DICOM_LO_SIZE];
    char pattern[FEATURE_TERM];  /* "lbp", "tlbap", "lanadp" */
    char settings[FEATURE_TERM]; /* "", "threshold=0.9", "threshold=0.9,strict", "integer" */
    uint64_t counts[256];
};

/* A pair of levels, from 1: that of a voxel and that of its neighbour. */
struct feature_cell {
    int32_t level, neighbour;
    uint64_t count;
};

/* A co-occurrence matrix that features are of, as their aggregation makes it. */
struct feature_matrix {
    size_t feature;    /* the place of the first of these features in the set */
    int32_t slice;     /* from 1; 0: all slices together */
    int32_t offset[3]; /* of the neighbour, by column, row and slice; 0, 0, 0: all directions */
    uint64_t pairs;    /* the sum of counts, not 0 */
    struct feature_cell *cells; /* whose count is not 0, row by row */
    size_t cell_count;
};

struct feature_text;

struct feature_set {
    struct feature *items;
    size_t count;
    size_t room;
    struct feature_text *texts; /* which the items borrow */
    struct feature_histogram *histograms;
    size_t histogram_count;
    struct feature_matrix *matrices;
    size_t matrix_count;
};

/* Adds a copy, with copies of its strings, of which NULL is ""; 0 or -ENOMEM. */
int feature_set_add(struct feature_set *set, const struct feature *feature);

/* Moves what another set has behind what this one has; the other is empty then, but after -ENOMEM, when both are as they
 * were. 0 or -ENOMEM. */
int feature_set_append(struct feature_set *set, struct feature_set *other);

/* Puts features region by region, the whole volume last, else in the order they have; matrices stay
 * with theirs. 0 or -ENOMEM. */
int feature_set_order(struct feature_set *set);

/* Frees the arrays; the set is empty then. */
void feature_set_clear(struct feature_set *set);

/*
 * The documents of a set, written to a stream; the caller checks ferror(). Numbers have as
 * many digits as read back as the same double. What does not apply to a feature is null (CSV: an
 * empty field), as are the value of an absent one and the label of the whole volume, whose number
 * is 0.
 *
 * features.json: an array of objects; features.csv: the same, one feature a record, after a line
 * with the names of the fields (RFC 4180), the range in two fields; patterns.json: an array of
 * objects with segment_number, label, pattern, settings and its histogram of 256; matrices.json: an
 * array of objects with the settings of the features, slice, offset, pairs, and what is not 0 of
 * the matrix: both levels and the count, or the probability.
 */
void feature_set_to_json(const struct feature_set *set, FILE *out);
void feature_set_to_csv(const struct feature_set *set, FILE *out);
void feature_set_to_patterns(const struct feature_set *set, FILE *out);
void feature_set_to_counts(const struct feature_set *set, FILE *out);
void feature_set_to_probabilities(const struct feature_set *set, FILE *out);

#endif
