/* Features and histograms: rows as reported, stored with the job's end and not without it. */
#include "tests/unit/db/sample.h"

#include <float.h>
#include <math.h>

static struct sample s;

static void
open_sample(void)
{
    sample_open(&s);
}

static void
close_sample(void)
{
    sample_close(&s);
}

static int64_t
running_job(const char *series_uid)
{
    int64_t job = sample_job(s.queue, series_uid);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    return job;
}

static int
finish_with(int64_t job, const struct feature *features, size_t count)
{
    const struct queue_figures figures = sample_measured(features, count);
    return queue_finish_job(s.queue, job,
                            &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                            SAMPLE_NOW + 4000);
}

static int64_t
measured_job(const char *series_uid)
{
    int64_t job = running_job(series_uid);
    int rc = sample_finish_measured(s.queue, job);
    ck_assert_msg(rc == 0, "%d: %s", rc, queue_reason(s.queue));
    return job;
}

START_TEST(rows_equal_the_reported_features)
{
    measured_job("1.2.3");
    assert_answer(&s,
                  "SELECT json_group_array(json_array(job, segment, label, family, name, meaning, "
                  "ibsi_code, value, reason, unit)) FROM (SELECT * FROM v_features ORDER BY place)",
                  "[[1,1,\"Brain\",\"first-order\",\"mean\",\"Mean\",\"Q4LE\",31.25,\"\","
                  "\"[hnsf'U]\"],"
                  "[1,1,\"Brain\",\"glcm\",\"joint_entropy\",\"Joint entropy\",\"TU9B\","
                  "2.12345678901235,\"\",\"1\"],"
                  "[1,2,\"Ventricle, \\\"left\\\"\",\"glcm\",\"correlation\",\"Correlation\","
                  "\"NI2N\",null,\"ONE_GREY_LEVEL\",\"1\"]]");
    assert_answer(&s,
                  "SELECT json_group_array(json_array(aggregation, aggregation_ibsi_code, "
                  "discretisation, levels, bin_width, distance, symmetric, range_low, range_high, "
                  "directions)) FROM (SELECT * FROM v_features ORDER BY place)",
                  "[[\"\",\"\",\"\",null,null,null,null,null,null,\"\"],"
                  "[\"3d-merged\",\"IAZD\",\"fixed-bin-number\",32,null,1,1,-1000.0,400.0,\"\"],"
                  "[\"2d-averaged\",\"BTW3\",\"fixed-bin-size\",2,0.1,null,0,null,null,\"0,90\"]]");
    assert_answer(&s,
                  "SELECT json_array(pipeline, stack, series_uid, series_description, revision, "
                  "measured_at, superseded_by) FROM v_features WHERE place = 1",
                  "[\"head-ct\",\"\",\"1.2.3\",\"Head 5 mm\",1,\"2026-01-31T02:03:24.000Z\",null]");
    assert_answer(&s, "SELECT features FROM v_jobs", "3");
}

END_TEST

/* The size of the box follows from the voxels of the job: 0.5 x 0.5 x 2.5 mm. */
START_TEST(every_segment_has_a_row)
{
    measured_job("1.2.3");
    assert_answer(&s,
                  "SELECT json_group_array(json_array(job, segment, label, method, voxels, "
                  "volume_ml, mean, minimum, maximum, unit)) FROM "
                  "(SELECT * FROM v_segments ORDER BY segment)",
                  "[[1,1,\"Brain\",\"level-set\",1000,0.625,31.25,-5.0,80.0,\"[hnsf'U]\"],"
                  "[1,2,\"Ventricle, \\\"left\\\"\",\"range\",0,0.0,null,null,null,\"[hnsf'U]\"]]");
    assert_answer(&s,
                  "SELECT json_group_array(json_array(first_column, last_column, first_row, "
                  "last_row, first_slice, last_slice, width_mm, height_mm, depth_mm, x_mm, y_mm, "
                  "z_mm)) FROM (SELECT * FROM v_segments ORDER BY segment)",
                  "[[10,19,20,29,0,9,5.0,5.0,25.0,-1.5,2.25,100.0],"
                  "[null,null,null,null,null,null,null,null,null,null,null,null]]");
    assert_answer(&s,
                  "SELECT json_array(pipeline, stack, series_uid, series_description, revision, "
                  "state, measured_at, superseded_by) FROM v_segments WHERE segment = 2",
                  "[\"head-ct\",\"\",\"1.2.3\",\"Head 5 mm\",1,\"DONE\","
                  "\"2026-01-31T02:03:24.000Z\",null]");
}

END_TEST

START_TEST(broken_expectations_are_columns)
{
    ck_assert_int_eq(sample_review(s.queue, running_job("1.2.3")), 0);
    assert_answer(&s,
                  "SELECT json_group_array(json_array(job, place, segment, label, expectation, "
                  "found, low, high, text, state)) FROM (SELECT * FROM v_breaches ORDER BY place)",
                  "[[1,1,1,\"Brain\",\"volume_ml\",0.625,900.0,1900.0,"
                  "\"Brain: volume 0.625 ml, expected 900 to 1900 ml\",\"REVIEW\"],"
                  "[1,2,0,\"Skull\",\"touches\",null,null,null,"
                  "\"Skull: reaches the edge of the volume\",\"REVIEW\"]]");
    assert_answer(&s,
                  "SELECT json_array(broken_expectation, broken_label, broken_found, broken_low, "
                  "broken_high) FROM v_jobs",
                  "[\"volume_ml\",\"Brain\",0.625,900.0,1900.0]");
}

END_TEST

START_TEST(a_segment_twice_is_refused_with_the_whole_job)
{
    const struct queue_segment twice[] = {sample_segments[0], sample_segments[0]};
    struct queue_figures figures = sample_figures;
    const int64_t job = running_job("1.2.3");
    figures.segments = twice;
    figures.segment_count = 2;
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     -EEXIST);
    ck_assert_str_eq(queue_reason(s.queue), "segment 1 is there twice");
    assert_answer(&s, "SELECT state || (SELECT count(*) FROM v_segments) FROM v_jobs", "RUNNING0");
}

END_TEST

/* The exact number, not fifteen digits of it. */
START_TEST(values_are_kept_to_the_last_bit)
{
    static const double values[] = {0.1, 1.0 / 3, -DBL_MAX, DBL_TRUE_MIN, 0.0, 1e17 + 16};
    struct feature features[6];
    char names[6][8];
    sqlite3 *db;
    sqlite3_stmt *rows;
    for (int i = 0; i < 6; i++) {
        snprintf(names[i], sizeof names[i], "f%d", i);
        features[i] = (struct feature){.name = names[i], .value = values[i]};
    }
    ck_assert_int_eq(finish_with(running_job("1.2.3"), features, 6), 0);
    ck_assert_int_eq(sqlite3_open_v2(s.path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT value FROM v_features ORDER BY place", -1, &rows, NULL), SQLITE_OK);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(sqlite3_step(rows), SQLITE_ROW);
        double value = sqlite3_column_double(rows, 0);
        ck_assert_int_eq(sqlite3_column_type(rows, 0), SQLITE_FLOAT);
        ck_assert_mem_eq(&value, &values[i], sizeof value);
    }
    sqlite3_finalize(rows);
    sqlite3_close(db);
}

END_TEST

START_TEST(histograms_are_json)
{
    measured_job("1.2.3");
    assert_answer(&s,
                  "SELECT json_array(job, segment, label, pattern, settings, pipeline, "
                  "series_uid, json_array_length(counts), counts ->> 0, counts ->> 1, "
                  "counts ->> 255) FROM v_pattern_histograms",
                  "[1,1,\"Brain\",\"tlbap\",\"threshold=0.9\",\"head-ct\",\"1.2.3\",256,5,0,"
                  "1099511627776]");
    assert_answer(&s, "SELECT sum(c.value) FROM v_pattern_histograms h, json_each(h.counts) c", "1099511627781");
}

END_TEST

START_TEST(counts_of_any_size_fit)
{
    int64_t counts[QUEUE_CODES];
    for (int i = 0; i < QUEUE_CODES; i++)
        counts[i] = INT64_MAX;
    struct queue_histogram histogram = sample_histogram;
    histogram.counts = counts;
    struct queue_figures figures = sample_figures;
    figures.histograms = &histogram;
    figures.histogram_count = 1;
    ck_assert_int_eq(queue_finish_job(s.queue, running_job("1.2.3"),
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
    assert_answer(&s, "SELECT counts ->> 255 FROM v_pattern_histograms", "9223372036854775807");
}

END_TEST

/* A definition is stored once for all jobs that measure it. */
START_TEST(definitions_are_shared)
{
    measured_job("1.2.3");
    measured_job("1.2.4");
    assert_answer(&s, "SELECT count(*) FROM v_features", "6");
    assert_answer(&s, "SELECT count(*) FROM feature_definition", "3");
    assert_answer(&s, "SELECT count(DISTINCT name || job) FROM v_features", "6");
}

END_TEST

/* Each setting on its own makes another feature of the same name. */
START_TEST(every_setting_defines)
{
    static const char *const settings[] = {
        "aggregation=3d-averaged",
        "aggregation_ibsi_code=ITBB",
        "discretisation=stored-256",
        "levels=64",
        "bin_width=0.5",
        "distance=2",
        "symmetric=false",
        "range_high=-999",
        "range_low=-999",
        "directions=(1,0,0)",
        "of_later_versions=7",
    };
    struct feature features[18];
    for (int i = 0; i < 18; i++) {
        features[i] = sample_features[1];
        if (i > 6)
            features[i].settings = settings[i - 7];
    }
    features[1].segment = 2;
    features[2].label = "Other";
    features[3].family = "shape";
    features[4].name = "joint_maximum";
    features[5].meaning = "Other";
    features[6].ibsi = "GYBY";
    features[17].unit = "mm";
    ck_assert_int_eq(finish_with(running_job("1.2.3"), features, 18), 0);
    assert_answer(&s, "SELECT count(*) FROM v_features", "18");
    assert_answer(&s, "SELECT name FROM v_features WHERE settings = 'of_later_versions=7'", "joint_entropy");
}

END_TEST

static void
assert_refused(const struct feature *features, size_t count, int expected, const char *words)
{
    static int number;
    char series_uid[32];
    snprintf(series_uid, sizeof series_uid, "9.%d", ++number);
    int64_t job = running_job(series_uid);
    ck_assert_int_eq(finish_with(job, features, count), expected);
    ck_assert_msg(strstr(queue_reason(s.queue), words), "%s", queue_reason(s.queue));
    ck_assert_int_eq(sample_state(s.queue, job), QUEUE_RUNNING);
    assert_answer(&s,
                  "SELECT (SELECT count(*) FROM v_features) + (SELECT count(*) FROM v_results) + "
                  "(SELECT count(*) FROM feature_definition)",
                  "0");
    ck_assert_int_eq(queue_fail_job(s.queue, job, CODE_CRASHED, "", "", "", SAMPLE_NOW + 5000), 0);
}

START_TEST(an_invalid_feature_is_refused_with_the_whole_job)
{
    struct feature features[] = {sample_features[0], sample_features[1]};
    features[1] = features[0];
    assert_refused(features, 2, -EEXIST, "mean of segment 1 is there twice");
    features[1].name = "x";
    features[1].value = NAN;
    assert_refused(features, 2, -EINVAL, "x has no finite value");
    features[1].value = -INFINITY;
    assert_refused(features, 2, -EINVAL, "x has no finite value");
    features[1].value = 0;
    features[1].segment = -1;
    assert_refused(features, 2, -EINVAL, "CHECK");
    features[1].segment = 0;
    features[1].name = "";
    assert_refused(features, 2, -EINVAL, "CHECK");
}

END_TEST

START_TEST(an_empty_job_has_features_too)
{
    const struct queue_figures figures = sample_measured(sample_features, SAMPLE_FEATURES);
    ck_assert_int_eq(queue_finish_job(s.queue, running_job("1.2.3"),
                                      &(struct queue_finish){QUEUE_EMPTY, &figures, NULL, 0, CODE_EMPTY, "no voxel"},
                                      SAMPLE_NOW + 4000),
                     0);
    assert_answer(&s, "SELECT count(*) FROM v_features", "3");
    assert_answer(&s, "SELECT state || features FROM v_jobs", "EMPTY3");
}

END_TEST

/* As results do. */
START_TEST(a_retry_keeps_old_features_and_adds_new_ones)
{
    int64_t job = measured_job("1.2.3"), next;
    ck_assert_int_eq(sample_retry(s.queue, job, true, &next), 0);
    assert_answer(&s, "SELECT count(*) || ' ' || min(job) FROM v_features", "3 1");
    assert_answer(&s, "SELECT features IS NULL FROM v_jobs WHERE job = 2", "1");
    ck_assert_int_eq(queue_start_job(s.queue, next, "worker-0", 0, SAMPLE_NOW + 6000), 0);
    ck_assert_int_eq(finish_with(next, sample_features + 1, 1), 0);
    assert_answer(&s,
                  "SELECT count(*) || min(name) || min(place) FROM v_features "
                  "WHERE superseded_by IS NULL",
                  "1joint_entropy1");
    assert_answer(&s, "SELECT count(*) FROM v_features WHERE superseded_by = 2", "3");
}

END_TEST

START_TEST(features_of_a_superseded_job_stay_and_are_marked)
{
    enum queue_arrival arrival;
    int64_t series, later;
    measured_job("1.2.3");
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 9, &arrival, &series), 0);
    ck_assert_int_eq(sample_settle(s.queue, series, 2), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 2, &later), 0);
    assert_answer(&s, "SELECT group_concat(DISTINCT superseded_by) FROM v_features", "2");
    assert_answer(&s, "SELECT count(*) FROM v_features", "3");
    assert_answer(&s, "SELECT superseded_by FROM v_pattern_histograms", "2");
    ck_assert_int_eq(queue_start_job(s.queue, later, "worker-0", 0, SAMPLE_NOW + 6000), 0);
    ck_assert_int_eq(sample_finish_measured(s.queue, later), 0);
    assert_answer(&s, "SELECT count(*) || max(revision) FROM v_features WHERE superseded_by IS NULL", "32");
}

END_TEST

/* They join the group's transaction, and are rolled back with it. */
START_TEST(features_are_written_together_with_the_end)
{
    int64_t job = running_job("1.2.3");
    ck_assert_int_eq(queue_begin(s.queue), 0);
    ck_assert_int_eq(sample_finish_measured(s.queue, job), 0);
    assert_answer(&s, "SELECT count(*) FROM v_features", "0");
    queue_rollback(s.queue);
    assert_answer(&s, "SELECT state || (SELECT count(*) FROM v_features) FROM v_jobs", "RUNNING0");
    ck_assert_int_eq(queue_begin(s.queue), 0);
    ck_assert_int_eq(sample_finish_measured(s.queue, job), 0);
    ck_assert_int_eq(queue_commit(s.queue), 0);
    assert_answer(&s, "SELECT state || (SELECT count(*) FROM v_features) FROM v_jobs", "DONE3");
}

END_TEST

/* The tables keep the promises of the views for any writer. */
START_TEST(the_tables_refuse_invalid_rows)
{
    static const char *const wrong[] = {
        "INSERT INTO feature VALUES (1, 3, 1, 9, NULL, '')",
        "INSERT INTO feature VALUES (1, 3, 1, 9, 1.5, 'EMPTY_REGION')",
        "INSERT INTO feature VALUES (1, 3, 1, 9, 9e999, '')",
        "INSERT INTO feature VALUES (1, 3, 1, 9, 'high', '')",
        "INSERT INTO feature VALUES (1, 3, 99, 9, 1.5, '')",
        "INSERT INTO feature VALUES (99, 3, 1, 9, 1.5, '')",
        "INSERT INTO feature VALUES (1, 1, 1, 9, 1.5, '')",
        "UPDATE feature_definition SET name = ''",
        "INSERT INTO feature_setting VALUES (1, '', 1)",
        "INSERT INTO feature_setting VALUES (1, 'levels', NULL)",
        "INSERT INTO feature_setting VALUES (99, 'levels', 1)",
        "UPDATE feature_setting SET key = 'levels' WHERE definition_id = 2",
        "UPDATE pattern_histogram SET counts = '1, 2'",
        "UPDATE pattern_histogram SET counts = '[1,2]'",
        "UPDATE pattern_histogram SET counts = replace(counts, '[5,0', '[5,,')",
        "UPDATE pattern_histogram SET counts = replace(counts, '[5,', '[-5,')",
        "UPDATE pattern_histogram SET counts = replace(counts, '[5,', '[,5')",
        "DELETE FROM feature_definition",
        "DELETE FROM job",
    };
    measured_job("1.2.3");
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(sqlite3_exec(db, wrong[i], NULL, NULL, NULL) == SQLITE_CONSTRAINT, "%s: %s", wrong[i],
                      sqlite3_errmsg(db));
    ck_assert_int_eq(sqlite3_exec(db, "INSERT INTO feature VALUES (1, 3, 1, 9, 1.5, '')", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

END_TEST

START_TEST(features_of_an_unsuccessful_job_are_found)
{
    struct error error;
    measured_job("1.2.3");
    int64_t other = running_job("1.2.4");
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "UPDATE feature SET job_id = 2 WHERE place = 1", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(queue_check(s.queue, &error), -EUCLEAN);
    ck_assert_str_eq(error.message, "job 2: it has features or segments and has not ended well");
    ck_assert_int_eq(sqlite3_exec(db, "DELETE FROM feature WHERE job_id = 2", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    ck_assert_int_eq(sample_state(s.queue, other), QUEUE_RUNNING);
}

END_TEST

/* Looks up a job among many by the key, without a scan. */
START_TEST(looking_up_a_job_needs_no_scan)
{
    static const char *const views[] = {"v_features", "v_pattern_histograms"};
    for (int i = 0; i < 2; i++) {
        char sql[96];
        snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN SELECT * FROM %s WHERE job = 1", views[i]);
        sqlite3 *db;
        sqlite3_stmt *plan;
        ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &plan, NULL), SQLITE_OK);
        int steps = 0;
        for (; sqlite3_step(plan) == SQLITE_ROW; steps++)
            ck_assert_ptr_null(strstr((const char *)sqlite3_column_text(plan, 3), "SCAN"));
        ck_assert_int_ge(steps, 3);
        sqlite3_finalize(plan);
        sqlite3_close(db);
    }
}

END_TEST

SAMPLE_MAIN("db_features", open_sample, close_sample, rows_equal_the_reported_features, every_segment_has_a_row,
            broken_expectations_are_columns, a_segment_twice_is_refused_with_the_whole_job,
            values_are_kept_to_the_last_bit, histograms_are_json, counts_of_any_size_fit, definitions_are_shared,
            every_setting_defines, an_invalid_feature_is_refused_with_the_whole_job, an_empty_job_has_features_too,
            a_retry_keeps_old_features_and_adds_new_ones, features_of_a_superseded_job_stay_and_are_marked,
            features_are_written_together_with_the_end, the_tables_refuse_invalid_rows,
            features_of_an_unsuccessful_job_are_found, looking_up_a_job_needs_no_scan)
