/*
 * feature.h - the measurements of one job: what a feature row, features.json, features.csv and the
 * report tell, each with all settings that define it.
 */
#ifndef NOCTULE_FEATURE_H
#define NOCTULE_FEATURE_H

#include "dicom/dicom.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FEATURE_NAME       48
#define FEATURE_TERM       32  /* family, aggregation, discretisation, unit, reason */
#define FEATURE_DIRECTIONS 264 /* as many offsets as a pipeline may name, whole */

/* One number, or the reason why there is none. Settings that do not concern it are "", 0 or false.
 */
struct feature {
    int32_t segment;                   /* Segment Number, from 1; 0: the whole volume */
    char label[DICOM_LO_SIZE];         /* of the segment; "" for the whole volume */
    char family[FEATURE_TERM];         /* "first-order", "shape", "glcm" */
    char name[FEATURE_NAME];           /* "joint_entropy" (features.h) */
    char meaning[FEATURE_NAME + 16];   /* "Joint entropy" */
    char ibsi[8];                      /* "TU9B"; "" where IBSI has no code */
    double value;                      /* finite; 0 when absent */
    char absence[FEATURE_TERM];        /* "": there is a value; else "EMPTY_REGION" ... */
    char unit[FEATURE_TERM];           /* UCUM */
    char aggregation[FEATURE_TERM];    /* "3d-merged" */
    char aggregation_ibsi[8];          /* "IAZD" */
    char discretisation[FEATURE_TERM]; /* "fixed-bin-number" */
    int32_t levels;   /* grey levels of the matrix; 0 where there is no discretisation */
    double bin_width; /* real-world units; 0 where bins are not of a fixed width */
    int32_t distance; /* Chebyshev; 0 with offsets of the pipeline's own */
    bool symmetric;
    bool has_range;                      /* re-segmentation */
    double range[2];                     /* real-world units */
    char directions[FEATURE_DIRECTIONS]; /* where not all of the aggregation's: "0,90" degrees, or
                                            "(1,0,0)(2,1,0)" */
};

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

struct feature_set {
    struct feature *items;
    size_t count;
    struct feature_histogram *histograms;
    size_t histogram_count;
    struct feature_matrix *matrices;
    size_t matrix_count;
};

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
