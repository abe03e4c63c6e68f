/* feature_document.h - the measurements of one job (features of base/feature.h, histograms and
 * matrices), and the documents written from them. */
#ifndef NOCTULE_SERVICE_COMMON_JOBS_FEATURE_DOCUMENT_H
#define NOCTULE_SERVICE_COMMON_JOBS_FEATURE_DOCUMENT_H

#include "base/feature.h"
#include "dicom/dicom.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FEATURE_TERM 32

/* A histogram of the codes of a local pattern in a region. */
struct feature_histogram {
    int32_t segment;
    char label[DICOM_LO_SIZE];
    char pattern[FEATURE_TERM];  /* "lbp", "tlbap", "lanadp" */
    char settings[FEATURE_TERM]; /* "", "threshold=0.9", "threshold=0.9,strict", "integer" */
    uint64_t counts[256];
};

/* A pair of levels, from 1: of a voxel and of its neighbour. */
struct feature_cell {
    int32_t level, neighbour;
    uint64_t count;
};

/* A co-occurrence matrix of one or more features, as their aggregation makes it. */
struct feature_matrix {
    size_t feature;             /* index of its first feature in the set */
    int32_t slice;              /* from 1; 0: all slices together */
    int32_t offset[3];          /* to the neighbour, in columns, rows and slices; 0, 0, 0: all directions */
    uint64_t pairs;             /* the sum of counts, not 0 */
    struct feature_cell *cells; /* cells whose count is not 0, row by row */
    size_t cell_count;
};

struct feature_text;

struct feature_set {
    struct feature *items;
    size_t count;
    size_t room;
    struct feature_text *texts; /* strings that the items borrow */
    struct feature_histogram *histograms;
    size_t histogram_count;
    struct feature_matrix *matrices;
    size_t matrix_count;
};

/* Adds a copy with copies of its strings; a NULL string counts as "". Returns 0 or -ENOMEM. */
int feature_set_add(struct feature_set *set, const struct feature *feature);

/* Moves the items of `other` to the end of `set`; `other` is empty then. Returns 0, or -ENOMEM with
 * both sets unchanged. */
int feature_set_append(struct feature_set *set, struct feature_set *other);

/* Sorts features by region, the whole volume last. Within a region the order is kept. Drops later features that have
 * the definition and the value of an earlier one: several groups of texture may measure it. Matrices stay with their
 * features. Returns 0 or -ENOMEM. */
int feature_set_order(struct feature_set *set);

/* Frees the contents; the set is empty then. */
void feature_set_clear(struct feature_set *set);

/*
 * Write the documents of a set to a stream. The caller must check ferror(). Numbers have as many digits as are needed
 * to read back the same double. A field that does not apply to a feature is null (CSV: empty). So are the value of a
 * missing feature and the label of the whole volume, whose segment number is 0.
 *
 * - features.json: an array of objects.
 * - features.csv: the same, one record per feature, after a header line (RFC 4180). The range takes
 *   two fields.
 * - patterns.json: an array of objects with segment_number, label, pattern, settings and a
 *   histogram of 256 counts.
 * - matrices.json: an array of objects with the settings of the features, slice, offset, pairs, and
 *   the cells that are not 0. Each cell has both levels and its count or probability.
 */
void feature_set_to_json(const struct feature_set *set, FILE *out);
void feature_set_to_csv(const struct feature_set *set, FILE *out);
void feature_set_to_patterns(const struct feature_set *set, FILE *out);
void feature_set_to_counts(const struct feature_set *set, FILE *out);
void feature_set_to_probabilities(const struct feature_set *set, FILE *out);

#endif
