/*
 * feature_rows.c - the features of jobs. The definition of a number is stored once, in
 * feature_definition, for all jobs of a pipeline, so that rows of numbers stay small.
 *
 * The only index is the key, by job. An index by definition was measured with 2.2 million rows (5,000 jobs): one
 * feature of all jobs took 104 ms instead of 355 ms. But writing a job took twice the time, the file was 1.45 times as
 * large, and aggregates over all rows took 5.3 s instead of 0.2 s.
 */
#include "db/queue/queue_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 20 /* of a count, with the comma */

/* All columns of feature_definition but its id, in the order of the table. */
#define DEFINITION_VALUES(f)                                                                                           \
    VALUES(value_text((f)->name), value_text((f)->label), value_text((f)->family), value_text((f)->meaning),           \
           value_text((f)->ibsi), value_text((f)->unit), value_text((f)->settings))

/* Converts a setting by its kind; an unknown setting is text. */
static struct database_value
setting_value(const char *key, const char *text)
{
    for (int i = 0; i < FEATURE_SETTING_COUNT; i++) {
        if (strcmp(feature_setting_rows[i].key, key) != 0)
            continue;
        switch (feature_setting_rows[i].kind) {
        case FEATURE_INTEGER:
            return value_int(strtoll(text, NULL, 10));
        case FEATURE_NUMBER:
            return value_real(strtod(text, NULL));
        case FEATURE_BOOLEAN:
            return value_int(strcmp(text, "true") == 0);
        case FEATURE_TEXT:
            break;
        }
    }
    return value_text(text);
}

/* Finds or adds the row of a definition. Most jobs find it. */
static int
define(struct queue *queue, const struct feature *feature, int64_t *definition)
{
    int found = database_get(&queue->db,
                             "SELECT id FROM feature_definition WHERE name = ? AND label = ? AND family = ? "
                             "AND meaning = ? AND ibsi_code = ? AND unit = ? AND settings = ?",
                             DEFINITION_VALUES(feature), definition);
    if (found == 0) {
        int rc = database_run(&queue->db,
                              "INSERT INTO feature_definition (name, label, family, meaning, "
                              "ibsi_code, unit, settings) VALUES (?, ?, ?, ?, ?, ?, ?)",
                              DEFINITION_VALUES(feature));
        *definition = sqlite3_last_insert_rowid(queue->db.handle);
        const char *settings = feature->settings;
        char key[64], value[FEATURE_SETTING];
        while (rc == 0 && settings && feature_next_setting(&settings, key, value))
            rc = database_run(&queue->db, "INSERT INTO feature_setting (definition_id, key, value) VALUES (?, ?, ?)",
                              VALUES(value_int(*definition), value_text(key), setting_value(key, value)));
        return rc;
    }
    return found < 0 ? found : 0;
}

static int
say_twice(struct queue *queue, const char *what, const char *name, int32_t segment)
{
    return database_refuse(&queue->db, -EEXIST, "the %s %.64s of segment %d is there twice with the same settings",
                           what, name, segment);
}

static int
feature_insert(struct queue *queue, int64_t job_id, const struct feature *feature, size_t place)
{
    bool absent = feature->missing_reason && *feature->missing_reason;
    int64_t definition;
    if (!absent && !isfinite(feature->value))
        return database_refuse(&queue->db, -EINVAL, "the feature %.64s has no finite value", feature->name);
    int rc = define(queue, feature, &definition);
    if (rc < 0)
        return rc;
    rc = database_run(&queue->db,
                      "INSERT INTO feature (job_id, segment_number, definition_id, place, value, reason) "
                      "VALUES (?, ?, ?, ?, ?, ?)",
                      VALUES(value_int(job_id), value_int(feature->segment), value_int(definition),
                             value_int((int64_t)place), absent ? value_null() : value_real(feature->value),
                             value_text(feature->missing_reason)));
    if (rc == -EEXIST)
        return say_twice(queue, "feature", feature->name, feature->segment);
    return rc;
}

static int
add_histogram(struct queue *queue, int64_t job_id, const struct queue_histogram *histogram)
{
    char counts[QUEUE_CODES * (DIGITS + 1) + 2];
    size_t length = 0;
    for (int i = 0; i < QUEUE_CODES; i++)
        length += (size_t)snprintf(counts + length, sizeof counts - length, "%c%lld", i ? ',' : '[',
                                   (long long)histogram->counts[i]);
    snprintf(counts + length, sizeof counts - length, "]");
    int rc = database_run(&queue->db,
                          "INSERT INTO pattern_histogram (job_id, segment_number, label, pattern, settings, counts) "
                          "VALUES (?, ?, ?, ?, ?, ?)",
                          VALUES(value_int(job_id), value_int(histogram->segment), value_text(histogram->label),
                                 value_text(histogram->pattern), value_text(histogram->settings), value_text(counts)));
    if (rc == -EEXIST)
        return say_twice(queue, "histogram", histogram->pattern, histogram->segment);
    return rc;
}

static struct database_value
value_measured(double value)
{
    return isfinite(value) ? value_real(value) : value_null();
}

/* NULL if the segment has no voxel. */
static struct database_value
value_box(const struct queue_segment *segment, const int64_t corner[3], int axis)
{
    return segment->voxels > 0 ? value_int(corner[axis]) : value_null();
}

static int
features_add_segment(struct queue *queue, int64_t job_id, const struct queue_segment *segment)
{
    const struct queue_segment *s = segment;
    int rc = database_run(
        &queue->db,
        "INSERT INTO segment (job_id, number, label, method, voxels, volume_ml, mean, minimum, "
        "maximum, unit, first_column, first_row, first_slice, last_column, last_row, last_slice, "
        "x_mm, y_mm, z_mm, tracking_uid, prior_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "(SELECT id FROM job WHERE id = ?))",
        VALUES(value_int(job_id), value_int(s->number), value_text(s->label), value_text(s->method),
               value_int(s->voxels), value_measured(s->millilitres), value_measured(s->mean),
               value_measured(s->minimum), value_measured(s->maximum), value_text(s->unit), value_box(s, s->first, 0),
               value_box(s, s->first, 1), value_box(s, s->first, 2), value_box(s, s->last, 0), value_box(s, s->last, 1),
               value_box(s, s->last, 2), value_measured(s->centroid[0]), value_measured(s->centroid[1]),
               value_measured(s->centroid[2]), value_text(s->tracking_uid ? s->tracking_uid : ""),
               value_int(s->prior)));
    if (rc == -EEXIST)
        return database_refuse(&queue->db, -EEXIST, "segment %d is there twice", s->number);
    return rc;
}

int
queue_add_features(struct queue *queue, int64_t job_id, const struct queue_figures *figures)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < figures->feature_count; i++)
        rc = feature_insert(queue, job_id, &figures->features[i], i + 1);
    for (size_t i = 0; rc == 0 && i < figures->histogram_count; i++)
        rc = add_histogram(queue, job_id, &figures->histograms[i]);
    for (size_t i = 0; rc == 0 && i < figures->segment_count; i++)
        rc = features_add_segment(queue, job_id, &figures->segments[i]);
    for (size_t i = 0; rc == 0 && i < figures->breach_count; i++) {
        const struct queue_breach *b = &figures->breaches[i];
        rc = database_run(&queue->db,
                          "INSERT INTO breach (job_id, place, segment_number, label, expectation, found, low, "
                          "high, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                          VALUES(value_int(job_id), value_int((int64_t)i + 1), value_int(b->segment),
                                 value_text(b->label), value_text(b->expectation), value_measured(b->found),
                                 value_measured(b->allowed[0]), value_measured(b->allowed[1]), value_text(b->text)));
    }
    return rc;
}
