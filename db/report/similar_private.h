/*
 * similar_private.h - shared by similar.c (the region of a query, the rows), similar_patterns.c and similar_features.c
 * (the search), and similar_evaluate.c. Private to db/report.
 */
#ifndef NOCTULE_DB_REPORT_SIMILAR_PRIVATE_H
#define NOCTULE_DB_REPORT_SIMILAR_PRIVATE_H

#include "db/pattern_code.h"
#include "db/report/report_private.h"
#include "db/report_similar.h"

/* A pixel grid. Patterns compare neighbours within a slice, so that the distance of slices does not count. */
struct similar_grid {
    double spacing[2]; /* -1: not known */
    int straightened;
};

/* SQL of its three columns, of a job j. */
#define SIMILAR_GRID                                                                                                   \
    "coalesce(round(j.spacing_x_mm, 6), -1), coalesce(round(j.spacing_y_mm, 6), -1), "                                 \
    "coalesce(j.straightened, '') <> ''"

/* Jobs that are listed. */
#define SIMILAR_LISTED "j.state IN ('DONE', 'EMPTY') AND j.superseded_by IS NULL"

struct similar_hit {
    double distance;
    int64_t job;
    int32_t segment;
    char *why; /* malloc'd, or NULL */
};

struct similar_search {
    struct report *report;
    const struct report_similar_query *query;
    struct report_similar_found *found;
    enum report_similar_distance distance;
    int64_t job;
    int32_t segment;
    struct similar_grid grid;
    struct similar_hit *hits; /* sorted; `limit` of them */
    size_t hit_count, limit;
};

struct similar_grid similar_grid_read(sqlite3_stmt *row, int column);
bool similar_grid_fits(const struct report_similar_query *query, const struct similar_grid *a,
                       const struct similar_grid *b);

/* Returns whether a region would be listed: it is as near as the last hit, or there is room. */
bool similar_is_near(const struct similar_search *search, double distance);
/* Adds a hit in its place; the last one falls out. */
void similar_add_hit(struct similar_search *search, const struct similar_hit *hit);

/* Both fill hits and `found`. They return 0 or -errno with a reason. */
int similar_by_patterns(struct similar_search *search);
int similar_by_features(struct similar_search *search);

bool similar_wants_pattern(int by, const char *pattern);

/* Vectors of many regions in memory, for similar_features.c and similar_evaluate.c. */
struct similar_vector {
    int64_t job;
    int32_t segment;
    struct similar_grid grid;
    size_t key; /* its place among the keys: only vectors with equal keys are compared */
    double *values;
    size_t count;
};

struct similar_vectors {
    struct similar_vector *items;
    size_t count, room;
    char **keys; /* the settings of all values */
    size_t key_count;
};

/* Reads the GLCM features of all listed regions, by job and segment: of a pipeline (NULL: of any), and of `job`. */
int similar_read_features(struct report *report, const char *pipeline, int64_t job, struct similar_vectors *vectors);
/* Adds a vector without values. Returns NULL without memory. */
struct similar_vector *similar_add_vector(struct similar_vectors *vectors, int64_t job, int32_t segment);
/* Sets the key. Returns 0 or -ENOMEM. */
int similar_set_key(struct similar_vectors *vectors, struct similar_vector *vector, const char *key);
void similar_clear_vectors(struct similar_vectors *vectors);
/* Subtracts the mean of all vectors with this key from each value, and divides by the standard deviation. */
void similar_standardise(struct similar_vectors *vectors, size_t key);
/* Returns whether two vectors can be compared: equal keys, and grids that fit unless the images were resampled. */
bool similar_vectors_fit(const struct report_similar_query *query, const struct similar_vectors *vectors,
                         const struct similar_vector *a, const struct similar_vector *b);
double similar_vector_distance(enum report_similar_distance distance, const struct similar_vector *a,
                               const struct similar_vector *b);

/* Sets the distance of a query, checks that it fits `by`, and stores its word. */
int similar_choose_distance(struct report *report, const struct report_similar_query *query,
                            enum report_similar_distance *distance, char word[16]);

#endif
