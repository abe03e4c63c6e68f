/*
 * report_similar.h - regions with a similar texture, by the distance of their pattern histograms or GLCM features. It
 * compares measurements only. Similarity is no statement about a disease.
 *
 * Only regions with equal settings are compared: of the patterns or features, and of the pixel grid. Others are counted.
 * Superseded jobs, jobs under review and rejected ones are not listed.
 */
#ifndef NOCTULE_DB_REPORT_SIMILAR_H
#define NOCTULE_DB_REPORT_SIMILAR_H

#include "db/report_lists.h"

#define SIMILAR_LIMIT   1000 /* max rows */
#define SIMILAR_REGIONS 5000 /* max regions of an evaluation */

enum report_similar_by { SIMILAR_LBP, SIMILAR_TLBAP, SIMILAR_LANADP, SIMILAR_PATTERNS, SIMILAR_GLCM };

enum report_similar_distance { SIMILAR_CHI_SQUARE, SIMILAR_L1, SIMILAR_COSINE, SIMILAR_EUCLIDEAN };

/* Their words, up to NULL. */
extern const char *const report_similar_by_words[], *const report_similar_distance_words[];

struct report_similar_query {
    int64_t job;            /* its number, or 0 */
    const char *series;     /* Series Instance UID: its newest job that has values; NULL */
    const char *segment;    /* number or label; NULL: the only one */
    bool first;             /* of several segments without `segment`, the first */
    int by, distance;       /* distance -1: the default */
    const char *pipeline;   /* only regions of this pipeline; of an evaluation, too; NULL: any */
    double spacing_percent; /* max difference of pixel spacings */
    bool any_spacing;
    bool two_threads; /* may read the database twice at once */
    int64_t limit;
};

struct report_similar_found {
    int64_t job, segment; /* of the query */
    char label[128], distance[16];
    char settings[512];     /* of the comparison */
    int64_t searched;       /* regions with the same settings */
    int64_t other_settings; /* regions with other settings, or without these values */
    int64_t other_grid;     /* regions with another pixel spacing, or straightened where the query is not */
};

/*
 * Lists the regions of other jobs, the most similar first. Columns: rank, distance, job, segment, label, volume_ml,
 * pipeline, series_uid, series_description, measured_at, why. Returns -ENOENT if there is no such region, or -EINVAL for
 * a wrong choice, with a message.
 */
int report_similar(struct report *report, const struct report_similar_query *query, struct report_table *table,
                   struct report_similar_found *found, struct error *error);

/* Lists the regions of a job that a search can begin with: segment, label. */
int report_similar_regions(struct report *report, int64_t job, int by, struct report_table *table, struct error *error);

/* A label that the site gives to a job, a series or a patient. */
struct report_similar_label {
    char *key, *label;
};

struct report_similar_evaluation {
    struct report_similar_query what; /* by, distance, pipeline, spacing; segment: only regions with this label */
    const char *column;               /* one of report_similar_columns; of `labels`: the kind of its keys */
    const struct report_similar_label *labels; /* sorted by key; NULL: the column itself is the label */
    size_t label_count;
};

/* Columns of an evaluation, up to NULL: patient, study, series, ... */
extern const char *const report_similar_columns[];

struct report_similar_score {
    int64_t regions;    /* with a label */
    int64_t unlabelled; /* left out: without a label */
    int64_t queries;    /* regions with at least one neighbour of the same label */
    int64_t alone;      /* the others */
    int64_t labels;
    double precision[3], best[3]; /* at 1, 5, 10: found, and possible at most */
    double average;               /* mean average precision */
    double chance; /* share of a query's neighbours that have its label: the expectation of a random order */
    char distance[16];
};

/*
 * Ranks for each region all others of other series (if the label is the series: of other jobs), and counts those of the
 * same label. Returns -ENOENT without a query, -E2BIG for more than SIMILAR_REGIONS regions.
 */
int report_similar_evaluate(struct report *report, const struct report_similar_evaluation *evaluation,
                            struct report_similar_score *score, struct error *error);

#endif
