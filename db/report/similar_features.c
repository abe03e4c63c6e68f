/*
 * similar_features.c - the search by GLCM features: the distance of their values in standard deviations of all regions
 * with the same settings.
 */
#include "db/report/similar_private.h"

#include "base/feature.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------ vectors - */

struct similar_vector *
similar_add_vector(struct similar_vectors *vectors, int64_t job, int32_t segment)
{
    if (vectors->count == vectors->room) {
        const size_t room = vectors->room ? 2 * vectors->room : 64;
        struct similar_vector *grown = realloc(vectors->items, room * sizeof *grown);
        if (!grown)
            return NULL;
        vectors->items = grown;
        vectors->room = room;
    }
    struct similar_vector *vector = &vectors->items[vectors->count++];
    *vector = (struct similar_vector){.job = job, .segment = segment};
    return vector;
}

int
similar_set_key(struct similar_vectors *vectors, struct similar_vector *vector, const char *key)
{
    for (vector->key = 0; vector->key < vectors->key_count; vector->key++)
        if (strcmp(vectors->keys[vector->key], key) == 0)
            return 0;
    char **grown = realloc(vectors->keys, (vectors->key_count + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    vectors->keys = grown;
    grown[vectors->key_count] = strdup(key);
    if (!grown[vectors->key_count])
        return -ENOMEM;
    vectors->key_count++;
    return 0;
}

void
similar_clear_vectors(struct similar_vectors *vectors)
{
    for (size_t i = 0; i < vectors->count; i++)
        free(vectors->items[i].values);
    for (size_t i = 0; i < vectors->key_count; i++)
        free(vectors->keys[i]);
    free(vectors->items);
    free(vectors->keys);
    *vectors = (struct similar_vectors){0};
}

void
similar_standardise(struct similar_vectors *vectors, size_t key)
{
    size_t size = 0, count = 0;
    for (size_t i = 0; i < vectors->count; i++)
        if (vectors->items[i].key == key) {
            size = vectors->items[i].count;
            count++;
        }
    for (size_t value = 0; value < size; value++) {
        double mean = 0, squares = 0;
        for (size_t i = 0; i < vectors->count; i++)
            mean += vectors->items[i].key == key ? vectors->items[i].values[value] / (double)count : 0;
        for (size_t i = 0; i < vectors->count; i++) {
            const double gap = vectors->items[i].key == key ? vectors->items[i].values[value] - mean : 0;
            squares += gap * gap / (double)count;
        }
        for (size_t i = 0; i < vectors->count; i++)
            if (vectors->items[i].key == key) /* a value that all regions share distinguishes none */
                vectors->items[i].values[value] =
                    squares > 0 ? (vectors->items[i].values[value] - mean) / sqrt(squares) : 0;
    }
}

bool
similar_vectors_fit(const struct report_similar_query *query, const struct similar_vectors *vectors,
                    const struct similar_vector *a, const struct similar_vector *b)
{
    return a->key == b->key &&
           (strstr(vectors->keys[a->key], "isotropic_mm=") || similar_grid_fits(query, &a->grid, &b->grid));
}

double
similar_vector_distance(enum report_similar_distance distance, const struct similar_vector *a,
                        const struct similar_vector *b)
{
    double sum = 0, dot = 0, one = 0, other = 0;
    if (distance == SIMILAR_CHI_SQUARE || a->count == 0)
        return NAN; /* of histograms only */
    for (size_t i = 0; i < a->count; i++) {
        const double p = a->values[i], q = b->values[i];
        sum += distance == SIMILAR_L1 ? fabs(p - q) : (p - q) * (p - q);
        dot += p * q;
        one += p * p;
        other += q * q;
    }
    if (distance == SIMILAR_COSINE)
        return one > 0 && other > 0 ? fmax(0, 1 - dot / sqrt(one * other)) : one == other ? 0 : 1;
    return distance == SIMILAR_L1 ? sum / (double)a->count : sqrt(sum / (double)a->count);
}

/* ------------------------------------------------------------------------------------ reading - */

/* Writes the settings of a value. With bins of a fixed width, the number of levels is a result. */
static void
features_write_key(const char *name, const char *settings, FILE *out)
{
    char key[64], value[FEATURE_SETTING];
    const bool fixed_width = strstr(settings, "bin_width=") != NULL;
    fprintf(out, "%s", name);
    while (feature_next_setting(&settings, key, value))
        if (!fixed_width || strcmp(key, "levels") != 0)
            fprintf(out, ";%s=%s", key, value);
    fputc('\n', out);
}

/* Reads the rows of a region from the present one on. Returns 1 at the next region, 0 at the end, or -errno. */
static int
features_read_region(struct report *report, sqlite3_stmt *row, struct similar_vectors *vectors)
{
    struct similar_vector *vector =
        similar_add_vector(vectors, sqlite3_column_int64(row, 0), sqlite3_column_int(row, 1));
    char *key = NULL;
    size_t size = 0, room = 0;
    FILE *out = vector ? open_memstream(&key, &size) : NULL;
    int rc = out ? 1 : -ENOMEM;
    if (vector)
        vector->grid = similar_grid_read(row, 2);
    while (rc == 1 && sqlite3_column_int64(row, 0) == vector->job && sqlite3_column_int(row, 1) == vector->segment) {
        if (vector->count == room) {
            double *grown = realloc(vector->values, (room = room ? 2 * room : 32) * sizeof *grown);
            if (!grown) {
                rc = -ENOMEM;
                break;
            }
            vector->values = grown;
        }
        vector->values[vector->count++] = sqlite3_column_double(row, 7);
        features_write_key(report_text(row, 5), report_text(row, 6), out);
        rc = database_step(&report->db, row);
    }
    if (out && fclose(out) != 0)
        rc = -ENOMEM;
    if (rc >= 0 && similar_set_key(vectors, vector, key) != 0)
        rc = -ENOMEM;
    free(key);
    return rc == -ENOMEM ? database_refuse(&report->db, rc, "out of memory") : rc;
}

int
similar_read_features(struct report *report, const char *pipeline, int64_t job, struct similar_vectors *vectors)
{
    sqlite3_stmt *row;
    int rc = database_start(
        &report->db,
        "SELECT f.job_id, f.segment_number, " SIMILAR_GRID ", d.name, d.settings, f.value "
        "FROM feature f CROSS JOIN feature_definition d ON d.id = f.definition_id "
        "JOIN job j ON j.id = f.job_id WHERE d.family = 'glcm' AND f.value IS NOT NULL AND " SIMILAR_LISTED
        " AND (?1 IS NULL OR j.pipeline = ?1 OR j.id = ?2) "
        "ORDER BY f.job_id, f.segment_number, d.name, d.settings",
        VALUES(value_optional(pipeline), value_int(job)), &row);
    if (rc < 0)
        return rc;
    rc = database_step(&report->db, row);
    while (rc == 1)
        rc = features_read_region(report, row, vectors);
    database_end(row);
    return rc;
}

/* ------------------------------------------------------------------------------------- search - */

static const struct similar_vector *
features_find(const struct similar_vectors *vectors, int64_t job, int32_t segment)
{
    for (size_t i = 0; i < vectors->count; i++)
        if (vectors->items[i].job == job && vectors->items[i].segment == segment)
            return &vectors->items[i];
    return NULL;
}

/* Returns the three features that differ most, in standard deviations. Equal differences are in the order of the features. */
static char *
features_why(const char *key, const struct similar_vector *a, const struct similar_vector *b)
{
    char text[256] = "equal";
    double last_gap = INFINITY;
    for (size_t turn = 0, used = 0, last = 0; turn < 3; turn++) {
        double largest_gap = 0;
        size_t largest = a->count;
        for (size_t i = 0; i < a->count; i++) {
            const double gap = fabs(a->values[i] - b->values[i]);
            if (gap > largest_gap && (gap < last_gap || (gap == last_gap && i > last))) {
                largest_gap = gap;
                largest = i;
            }
        }
        if (largest == a->count)
            break;
        last_gap = largest_gap;
        last = largest;
        const char *name = key;
        for (size_t i = 0; i < largest; i++)
            name = strchr(name, '\n') + 1;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s %+.2f SD", turn ? "; " : "",
                                 (int)strcspn(name, ";\n"), name, b->values[largest] - a->values[largest]);
        if (used >= sizeof text)
            break;
    }
    return strdup(text);
}

static int
features_rank(struct similar_search *search, struct similar_vectors *vectors, const struct similar_vector *own)
{
    int rc = 0;
    similar_standardise(vectors, own->key);
    for (size_t i = 0; i < vectors->count; i++) {
        const struct similar_vector *other = &vectors->items[i];
        if (other->job == own->job)
            continue;
        search->found->other_settings += other->key != own->key;
        if (other->key != own->key)
            continue;
        const bool fits = similar_vectors_fit(search->query, vectors, own, other);
        search->found->other_grid += !fits;
        search->found->searched += fits;
        const double distance = similar_vector_distance(search->distance, own, other);
        if (fits && similar_is_near(search, distance))
            similar_add_hit(search, &(struct similar_hit){distance, other->job, other->segment, NULL});
    }
    for (size_t i = 0; rc == 0 && i < search->hit_count; i++) {
        struct similar_hit *hit = &search->hits[i];
        hit->why = features_why(vectors->keys[own->key], own, features_find(vectors, hit->job, hit->segment));
        rc = hit->why ? 0 : database_refuse(&search->report->db, -ENOMEM, "out of memory");
    }
    return rc;
}

int
similar_by_features(struct similar_search *search)
{
    struct similar_vectors vectors = {0};
    int rc = similar_read_features(search->report, search->query->pipeline, search->job, &vectors);
    const struct similar_vector *own = rc == 0 ? features_find(&vectors, search->job, search->segment) : NULL;
    if (rc == 0 && !own)
        rc = database_refuse(&search->report->db, -ENOENT,
                             "segment %d of job %lld has no GLCM features, or the job is superseded",
                             (int)search->segment, (long long)search->job);
    if (rc == 0) {
        snprintf(search->found->settings, sizeof search->found->settings, "glcm, %zu features in standard deviations",
                 own->count);
        rc = features_rank(search, &vectors, own);
    }
    similar_clear_vectors(&vectors);
    return rc;
}
