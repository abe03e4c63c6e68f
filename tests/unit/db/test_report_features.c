/* The features of a job, for people and one by one. */
#include "db/report.h"
#include "db/report_similar.h"
#include "tests/unit/db/sample.h"

#include <float.h>

static struct sample s;
static struct report *report;
static struct error error;

/* 1 has features, 2 runs, 3 is DONE without texture, 4 has failed, 5 has histograms only. */
static void
open_sample(void)
{
    struct queue_figures figures = sample_measured(sample_features, SAMPLE_FEATURES);
    sample_open(&s);
    for (int number = 1; number <= 5; number++) {
        char series[16], worker[16];
        snprintf(series, sizeof series, "1.2.%d", number);
        snprintf(worker, sizeof worker, "worker-%d", number);
        int64_t job = sample_job(s.queue, series);
        ck_assert_int_eq(queue_start_job(s.queue, job, worker, 0, SAMPLE_NOW + 3000), 0);
    }
    ck_assert_int_eq(queue_finish_job(s.queue, 1,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
    ck_assert_int_eq(sample_finish(s.queue, 3), 0);
    ck_assert_int_eq(queue_fail_job(s.queue, 4, CODE_FILE_UNREADABLE, "it is", "", "", SAMPLE_NOW), 0);
    figures = sample_measured(NULL, 0);
    ck_assert_int_eq(queue_finish_job(s.queue, 5,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
    int rc = report_open(s.path, &report, &error);
    ck_assert_msg(rc == 0, "%s", error.message);
}

static void
close_sample(void)
{
    report_close(report);
    report = NULL;
    sample_close(&s);
}

/* ----------------------------------------------------------------------------- for people -- */

static char *
print(int64_t job, int64_t segment, int *rc)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    *rc = report_features(report, job, segment, out, &error);
    fclose(out);
    return text;
}

static void
assert_printed(int64_t job, int64_t segment, const char *expected)
{
    int rc;
    char *text = print(job, segment, &rc);
    ck_assert_msg(rc == 0, "%d: %s", rc, error.message);
    ck_assert_str_eq(text, expected);
    free(text);
}

#define HISTOGRAMS                                                                                                     \
    "\nPattern histograms\n"                                                                                           \
    "SEGMENT  LABEL  PATTERN  SETTINGS              VOXELS\n"                                                          \
    "      1  Brain  tlbap    threshold=0.9  1099511627781\n"

#define SEGMENT_1                                                                                                      \
    "\nSegment 1, Brain: first-order\n"                                                                                \
    "FEATURE  VALUE  UNIT      IBSI\n"                                                                                 \
    "mean     31.25  [hnsf'U]  Q4LE\n"                                                                                 \
    "\nSegment 1, Brain: glcm, 3d-merged (IAZD), distance 1, symmetric, fixed-bin-number, "                            \
    "32 levels, values from -1000 to 400\n"                                                                            \
    "FEATURE          VALUE  UNIT  IBSI\n"                                                                             \
    "joint_entropy  2.12346  1     TU9B\n"

#define SEGMENT_2                                                                                                      \
    "\nSegment 2, Ventricle, \"left\": glcm, 2d-averaged (BTW3), directions 0,90, directional, "                       \
    "fixed-bin-size, 2 levels, bins of 0.1\n"                                                                          \
    "FEATURE      VALUE  UNIT  IBSI  NO VALUE BECAUSE\n"                                                               \
    "correlation         1     NI2N  ONE_GREY_LEVEL\n"

START_TEST(tables_state_their_common_settings)
{
    assert_printed(1, REPORT_ALL_SEGMENTS, "Job 1, pipeline head-ct: 3 features\n" SEGMENT_1 SEGMENT_2 HISTOGRAMS);
}

END_TEST

START_TEST(one_segment_alone)
{
    assert_printed(1, 1, "Job 1, pipeline head-ct: 3 features\n" SEGMENT_1 HISTOGRAMS);
    assert_printed(1, 2, "Job 1, pipeline head-ct: 3 features\n" SEGMENT_2);
}

END_TEST

START_TEST(a_job_without_features_has_a_reason)
{
    assert_printed(2, REPORT_ALL_SEGMENTS, "Job 2, pipeline head-ct: no features yet, the job is RUNNING\n");
    assert_printed(3, REPORT_ALL_SEGMENTS,
                   "Job 3, pipeline head-ct: no features, it has neither texture nor quantities\n");
    assert_printed(3, 1, "Job 3, pipeline head-ct: no features, it has neither texture nor quantities\n");
    assert_printed(4, REPORT_ALL_SEGMENTS,
                   "Job 4, pipeline head-ct: no features, the job is FAILED (FILE_UNREADABLE)\n");
    assert_printed(5, REPORT_ALL_SEGMENTS, "Job 5, pipeline head-ct: pattern histograms and no features\n" HISTOGRAMS);
}

END_TEST

START_TEST(whole_volume_and_hostile_labels)
{
    static const struct feature features[] = {
        {.segment = 0, .name = "maximum", .family = "first-order", .value = -3024, .unit = "1"},
        {.segment = 9, .name = "energy", .family = "first-order", .value = 1e300, .label = "\x1b[2J"},
    };
    const struct queue_figures figures = sample_measured(features, 2);
    ck_assert_int_eq(queue_finish_job(s.queue, 2,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
    assert_printed(2, 0,
                   "Job 2, pipeline head-ct: 2 features\n"
                   "\nWhole volume: first-order\n"
                   "FEATURE  VALUE  UNIT  IBSI\n"
                   "maximum  -3024  1\n");
    assert_printed(2, 9,
                   "Job 2, pipeline head-ct: 2 features\n"
                   "\nSegment 9,  [2J: first-order\n"
                   "FEATURE   VALUE  UNIT  IBSI\n"
                   "energy   1e+300\n");
}

END_TEST

/* ----------------------------------------------------------------------------- one by one -- */

struct taken {
    struct feature rows[8];
    char settings[8][FEATURE_SETTINGS];
    size_t count;
    int answer;
};

static int
take(void *context, const struct feature *feature)
{
    struct taken *taken = context;
    ck_assert_uint_lt(taken->count, 8);
    snprintf(taken->settings[taken->count], FEATURE_SETTINGS, "%s", feature->settings);
    taken->rows[taken->count++] = *feature;
    return taken->answer;
}

/* All but the texts, which are valid during the call. */
START_TEST(rows_are_ordered_and_exact)
{
    static const double values[] = {0.1, 1.0 / 3, -DBL_MAX, DBL_TRUE_MIN, 0.0, 1e17 + 16};
    struct feature features[6];
    struct taken taken = {0};
    char names[6][8], settings[6][FEATURE_SETTINGS] = {0};
    for (int i = 0; i < 6; i++) {
        snprintf(names[i], sizeof names[i], "f%d", 9 - i);
        feature_put_text(settings[i], FEATURE_aggregation, "3d-merged");
        feature_put_number(settings[i], FEATURE_bin_width, 0.1 * i);
        feature_put_integer(settings[i], FEATURE_levels, i);
        feature_put_number(settings[i], FEATURE_range_high, i / 7.0);
        feature_put_boolean(settings[i], FEATURE_symmetric, i % 2 == 0);
        features[i] =
            (struct feature){.segment = 3 - i / 2, .name = names[i], .value = values[i], .settings = settings[i]};
    }
    const struct queue_figures figures = sample_measured(features, 6);
    ck_assert_int_eq(queue_finish_job(s.queue, 2,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
    ck_assert_int_eq(report_each_feature(report, 2, REPORT_ALL_SEGMENTS, take, &taken, &error), 0);
    ck_assert_uint_eq(taken.count, 6);
    for (int i = 0; i < 6; i++) {
        const struct feature *row = &taken.rows[i];
        ck_assert_mem_eq(&row->value, &values[i], sizeof row->value);
        ck_assert_int_eq(row->segment, features[i].segment);
        ck_assert_str_eq(taken.settings[i], settings[i]);
    }
}

END_TEST

static int
take_texts(void *context, const struct feature *feature)
{
    char *line = context;
    snprintf(line, 512, "%s|%s|%s|%s|%s|%s|%s|%s", feature->label, feature->family, feature->name, feature->meaning,
             feature->ibsi, feature->missing_reason, feature->unit, feature->settings);
    return 0;
}

START_TEST(texts_equal_the_rows)
{
    char line[512];
    ck_assert_int_eq(report_each_feature(report, 1, 2, take_texts, line, &error), 0);
    ck_assert_str_eq(line, "Ventricle, \"left\"|glcm|correlation|Correlation|NI2N|ONE_GREY_LEVEL|1|"
                           "aggregation=2d-averaged;aggregation_ibsi_code=BTW3;bin_width=0.1;"
                           "directions=0,90;discretisation=fixed-bin-size;levels=2;"
                           "symmetric=false");
}

END_TEST

START_TEST(a_failing_sink_ends_the_output)
{
    struct taken taken = {.answer = -ENOMEM};
    ck_assert_int_eq(report_each_feature(report, 1, REPORT_ALL_SEGMENTS, take, &taken, &error), -ENOMEM);
    ck_assert_uint_eq(taken.count, 1);
    ck_assert_str_eq(error.message, "Cannot allocate memory");
    taken = (struct taken){0};
    ck_assert_int_eq(report_each_feature(report, 1, REPORT_ALL_SEGMENTS, take, &taken, &error), 0);
    ck_assert_uint_eq(taken.count, 3);
}

END_TEST

/* ----------------------------------------------------------------------- what is not there -- */

START_TEST(missing_jobs_are_errors)
{
    static const struct {
        int64_t job, segment;
        const char *words;
    } cases[] = {
        {4711, REPORT_ALL_SEGMENTS, "there is no job 4711"}, {4711, 1, "there is no job 4711"},
        {1, 3, "job 1 did not measure a segment 3"},         {1, 0, "job 1 did not measure the whole volume"},
        {5, 2, "job 5 did not measure a segment 2"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rc;
        struct taken taken = {0};
        char *text = print(cases[i].job, cases[i].segment, &rc);
        ck_assert_int_eq(rc, -ENOENT);
        ck_assert_str_eq(error.message, cases[i].words);
        ck_assert_str_eq(text, "");
        free(text);
        error = (struct error){0};
        ck_assert_int_eq(report_each_feature(report, cases[i].job, cases[i].segment, take, &taken, &error), -ENOENT);
        ck_assert_str_eq(error.message, cases[i].words);
        ck_assert_uint_eq(taken.count, 0);
    }
}

END_TEST

/* ------------------------------------------------------------------------------- differences -- */

static void
finish_with_values(int64_t job, const double values[4])
{
    static const char *const names[] = {"contrast", "correlation", "joint_energy", "joint_entropy"};
    struct feature features[4];
    for (int i = 0; i < 4; i++)
        features[i] = (struct feature){
            .segment = 1, .label = "Brain", .family = "glcm", .name = names[i], .value = values[i], .unit = "1"};
    const struct queue_figures figures = sample_measured(features, 4);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
}

/* Of two regions, each feature that differs has the values -1 and 1 standard deviations. */
START_TEST(equal_differences_are_listed)
{
    const struct report_similar_query query = {
        .job = 2, .segment = "1", .by = SIMILAR_GLCM, .distance = -1, .limit = 10};
    struct report_similar_found found;
    struct report_table table;
    const int64_t other = sample_job(s.queue, "1.2.6");
    ck_assert_int_eq(queue_start_job(s.queue, other, "worker-6", 0, SAMPLE_NOW + 3000), 0);
    finish_with_values(2, (const double[]){0, 4, 0, 3});
    finish_with_values(other, (const double[]){1, 4, 2, 1});
    ck_assert_msg(report_similar(report, &query, &table, &found, &error) == 0, "%s", error.message);
    ck_assert_uint_eq(table.row_count, 1);
    ck_assert_str_eq(report_cell_text(&table, 0, "why"),
                     "contrast +2.00 SD; joint_energy +2.00 SD; joint_entropy -2.00 SD");
    report_table_free(&table);
}

END_TEST

SAMPLE_MAIN("db_report_features", open_sample, close_sample, tables_state_their_common_settings, one_segment_alone,
            a_job_without_features_has_a_reason, whole_volume_and_hostile_labels, rows_are_ordered_and_exact,
            texts_equal_the_rows, a_failing_sink_ends_the_output, missing_jobs_are_errors, equal_differences_are_listed)
