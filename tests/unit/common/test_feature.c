/* The documents of measurements: they read back, and the database returns the same ones. */
#include "db/report.h"
#include "service/common/jobs/feature_document.h"
#include "tests/unit/db/json.h"
#include "tests/unit/db/sample.h"

#include <float.h>
#include <math.h>

static struct sample s;

static void
set_up(void)
{
    sample_open(&s);
}

static void
tear_down(void)
{
    sample_close(&s);
}

static char *
written(const struct feature_set *set, void (*write)(const struct feature_set *, FILE *))
{
    static char *text; /* static: GCC 12 mistakes a pointer into the text for one into the stack */
    static size_t size;
    FILE *out = open_memstream(&text, &size);
    write(set, out);
    fclose(out);
    return text;
}

static const struct feature usual = {
    .segment = 1,
    .label = "Ventricle, \"left\"\r\nof two \xc3\xa4",
    .family = "glcm",
    .name = "joint_entropy",
    .meaning = "Joint entropy",
    .ibsi = "TU9B",
    .value = 1.0 / 3,
    .unit = "1",
    .missing_reason = "",
    .settings = "aggregation=2d-averaged;aggregation_ibsi_code=BTW3;bin_width=0.1;directions=0,90;"
                "discretisation=fixed-bin-size;distance=2;levels=57;range_high=400.5;"
                "range_low=-1000;symmetric=true",
};

#define MISSING_MEAN                                                                                                   \
    {                                                                                                                  \
        .label = "", .family = "", .name = "mean", .meaning = "", .ibsi = "", .unit = "1",                             \
        .missing_reason = "EMPTY_REGION", .settings = ""                                                               \
    }

START_TEST(csv_follows_rfc_4180)
{
    struct feature features[] = {usual, MISSING_MEAN};
    const struct feature_set set = {.items = features, .count = 2};
    char *text = written(&set, feature_set_to_csv);
    ck_assert_str_eq(text, "segment_number,label,name,meaning,family,ibsi_code,value,reason,unit,aggregation,"
                           "aggregation_ibsi_code,discretisation,levels,bin_width,range_low,range_high,distance,"
                           "symmetric,directions,sigma,alpha,percent,interpolation,isotropic_mm,in_plane_mm,"
                           "rounding,energy_shift,filter,filter_settings,normalise_scale,normalise_sigma,image_type\r\n"
                           "1,\"Ventricle, \"\"left\"\"\r\nof two \xc3\xa4\",joint_entropy,Joint entropy,glcm,TU9B,"
                           "0.3333333333333333,,1,2d-averaged,BTW3,fixed-bin-size,57,0.1,-1000,"
                           "400.5,2,true,\"0,90\",,,,,,,,,,,,,\r\n"
                           "0,,mean,,,,,EMPTY_REGION,1,,,,,,,,,,,,,,,,,,,,,,,\r\n");
    free(text);
}

END_TEST

START_TEST(json_has_null_for_missing_values)
{
    struct feature features[] = {usual, MISSING_MEAN};
    const struct feature_set set = {.items = features, .count = 2};
    char *text = written(&set, feature_set_to_json);
    ck_assert_str_eq(ask_json(text, "SELECT json(?1 -> 1)"),
                     "{\"segment_number\":0,\"label\":null,\"name\":\"mean\",\"meaning\":null,"
                     "\"family\":null,\"ibsi_code\":null,\"value\":null,"
                     "\"reason\":\"EMPTY_REGION\",\"unit\":\"1\",\"aggregation\":null,"
                     "\"aggregation_ibsi_code\":null,\"discretisation\":null,\"levels\":null,"
                     "\"bin_width\":null,\"range\":null,\"distance\":null,\"symmetric\":null,"
                     "\"directions\":null,\"sigma\":null,\"alpha\":null,\"percent\":null,"
                     "\"interpolation\":null,"
                     "\"isotropic_mm\":null,\"in_plane_mm\":null,\"rounding\":null,\"energy_shift\":null,\"filter\":"
                     "null,\"filter_settings\":null,\"normalise_scale\":null,\"normalise_sigma\":null,"
                     "\"image_type\":null}");
    ck_assert_str_eq(ask_json(text, "SELECT json_array_length(?1)"), "2");
    ck_assert_str_eq(ask_json(text, "SELECT ?1 ->> '$[0].label'"), usual.label);
    ck_assert_str_eq(ask_json(text, "SELECT ?1 -> '$[0].symmetric'"), "true");
    ck_assert_str_eq(ask_json(text, "SELECT ?1 -> '$[0].range'"), "[-1000,400.5]");
    free(text);
}

END_TEST

START_TEST(an_empty_set_is_an_empty_document)
{
    const struct feature_set none = {0};
    char *json = written(&none, feature_set_to_json), *csv = written(&none, feature_set_to_csv);
    ck_assert_str_eq(json, "[]\n");
    ck_assert_ptr_eq(strstr(csv, "\r\n"), csv + strlen(csv) - 2);
    free(json);
    free(csv);
}

END_TEST

/* Records the features, as a worker sends them and the daemon writes them (worker.c,
 * outcome_read.c). */
static void
record(const struct feature_set *set, int64_t job)
{
    const struct queue_figures figures = sample_measured(set->items, set->count);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW),
                     0);
}

static int
take(void *context, const struct feature *row)
{
    return feature_set_add(context, row);
}

static void
read_back(int64_t job, struct feature_set *set)
{
    struct report *report;
    struct error error = {0};
    ck_assert_msg(report_open(s.path, &report, &error) == 0, "%s", error.message);
    int rc = report_each_feature(report, job, REPORT_ALL_SEGMENTS, take, set, &error);
    ck_assert_msg(rc == 0, "%d: %s", rc, error.message);
    report_close(report);
}

/* Numbers of all magnitudes, long texts, missing and inapplicable values: both documents must be
 * equal byte by byte. */
START_TEST(the_database_gives_the_same_documents)
{
    static const double values[] = {0.1, 1.0 / 3, -DBL_MAX, DBL_MIN, 1e17 + 16, DBL_TRUE_MIN, -0.0, -1.0 / 7};
    static char settings[600][FEATURE_SETTINGS];
    char long_text[FEATURE_SETTING];
    struct feature features[600];
    const struct feature_set set = {.items = features, .count = 600};
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    for (int i = 0; i < 600; i++) {
        struct feature *feature = &features[i];
        *feature = usual;
        feature->segment = i / 100;
        feature->value = values[i % 8];
        feature->settings = settings[i];
        feature_put_integer(settings[i], FEATURE_distance, 1 + i % 100);
        feature_put_number(settings[i], FEATURE_bin_width, fabs(values[(i + 1) % 8]));
        feature_put_boolean(settings[i], FEATURE_symmetric, i % 2 == 0);
        if (i % 3 == 0 || i == 8) {
            feature_put_number(settings[i], FEATURE_range_low, -1000);
            feature_put_number(settings[i], FEATURE_range_high, i == 8 ? -0.0 : 400.5);
        }
        feature_put_text(settings[i], FEATURE_directions, i == 7 ? long_text : "0,90");
        ck_assert_msg(feature_settings_are_sound(settings[i]), "%s", settings[i]);
    }
    features[7].label = features[7].family = features[7].name = features[7].meaning = features[7].ibsi =
        features[7].unit = long_text;
    features[8].value = 0;
    features[8].missing_reason = long_text;
    features[9] = (struct feature){.label = "",
                                   .family = "",
                                   .name = "voxel_count",
                                   .meaning = "",
                                   .ibsi = "",
                                   .unit = "1",
                                   .missing_reason = "",
                                   .settings = "",
                                   .value = 7};

    int64_t job = sample_job(s.queue, "1.2.3");
    struct feature_set rows = {0};
    record(&set, job);
    read_back(job, &rows);
    ck_assert_uint_eq(rows.count, 600);
    void (*const writers[])(const struct feature_set *, FILE *) = {feature_set_to_json, feature_set_to_csv};
    for (int i = 0; i < 2; i++) {
        char *told = written(&set, writers[i]), *again = written(&rows, writers[i]);
        ck_assert_uint_gt(strlen(told), 50000);
        ck_assert_str_eq(told, again);
        free(told);
        free(again);
    }
    feature_set_clear(&rows);
}

END_TEST

/* Returns the number after a mark, as a reader of the document parses it. */
static double
number_behind(const struct feature_set *set, void (*write)(const struct feature_set *, FILE *), const char *mark)
{
    char *text = written(set, write);
    char *found = strstr(text, mark);
    ck_assert_msg(found != NULL, "no %s in %s", mark, text);
    double number = strtod(found + strlen(mark), NULL);
    free(text);
    return number;
}

START_TEST(numbers_read_back_to_the_last_bit)
{
    static const double values[] = {0.1, 1.0 / 3, -DBL_MAX, DBL_MIN, DBL_TRUE_MIN, 1e17 + 16};
    for (int i = 0; i < 6; i++) {
        struct feature feature = usual;
        const struct feature_set set = {.items = &feature, .count = 1};
        feature.value = values[i];
        double from_json = number_behind(&set, feature_set_to_json, "\"value\": "),
               from_csv = number_behind(&set, feature_set_to_csv, ",TU9B,");
        ck_assert_mem_eq(&from_json, &values[i], sizeof from_json);
        ck_assert_mem_eq(&from_csv, &values[i], sizeof from_csv);
    }
}

END_TEST

static struct feature_cell *
one_cell(void)
{
    struct feature_cell *cell = calloc(1, sizeof *cell);
    ck_assert_ptr_nonnull(cell);
    return cell;
}

/* Adds features as several groups measure them. The order must be by segment, the volume last. */
static void
add_named(struct feature_set *set, int32_t segment, const char *name)
{
    const struct feature feature = {.segment = segment, .name = name, .unit = "1"};
    ck_assert_int_eq(feature_set_add(set, &feature), 0);
}

/* Strings, matrices and histograms must move with them. An empty set must be accepted on both
 * sides. */
START_TEST(a_set_is_appended_to_another)
{
    struct feature_set all = {.items = NULL}, other = {.items = NULL};
    for (int32_t round = 0; round < 3; round++) {
        add_named(&other, round, "a");
        add_named(&other, round, "b");
        other.matrices = calloc(1, sizeof *other.matrices);
        other.histograms = calloc(1, sizeof *other.histograms);
        ck_assert(other.matrices && other.histograms);
        other.matrices[0].feature = 1;
        other.histograms[0].segment = round;
        other.matrix_count = other.histogram_count = 1;
        ck_assert_int_eq(feature_set_append(&all, &other), 0);
        ck_assert(other.count == 0 && !other.items && !other.texts && !other.matrices);
        ck_assert_int_eq(feature_set_append(&all, &other), 0);
    }
    ck_assert_uint_eq(all.count, 6);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_int_eq(all.items[i].segment, (int32_t)i / 2);
        ck_assert_str_eq(all.items[i].name, i % 2 ? "b" : "a");
        ck_assert_str_eq(all.items[i].unit, "1");
    }
    ck_assert(all.matrix_count == 3 && all.histogram_count == 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(all.matrices[i].feature, 2 * i + 1);
        ck_assert_int_eq(all.histograms[i].segment, (int32_t)i);
    }
    feature_set_clear(&all);
}

END_TEST

START_TEST(features_are_ordered_by_region)
{
    static const int32_t segments[] = {1, 2, 0, 1, 2, 0, 300, 1};
    static const size_t order[] = {0, 3, 7, 1, 4, 6, 2, 5};
    struct feature_set set = {0};
    for (size_t i = 0; i < 8; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        struct feature feature = usual;
        feature.segment = segments[i];
        feature.name = name;
        ck_assert_int_eq(feature_set_add(&set, &feature), 0);
    }
    set.matrices = calloc(2, sizeof *set.matrices);
    ck_assert_ptr_nonnull(set.matrices);
    set.matrix_count = 2;
    set.matrices[0] = (struct feature_matrix){.feature = 3, .cells = one_cell()};
    set.matrices[1] = (struct feature_matrix){.feature = 2, .cells = one_cell()};
    ck_assert_int_eq(feature_set_order(&set), 0);
    for (size_t i = 0; i < 8; i++) {
        ck_assert_int_eq(set.items[i].name[0], 'a' + (int)order[i]);
        ck_assert_int_eq(set.items[i].segment, segments[order[i]]);
    }
    ck_assert_uint_eq(set.matrices[0].feature, 1);
    ck_assert_uint_eq(set.matrices[1].feature, 6);
    feature_set_clear(&set);
}

END_TEST

/* Groups of texture repeat features that do not depend on their settings. Other values must not be lost: the database refuses
 * them. */
START_TEST(a_feature_of_several_groups_is_kept_once)
{
    static const struct {
        const char *name, *settings;
        int32_t segment;
        double value;
    } added[] = {{"count", "", 1, 7},   {"mean", "a=1", 1, 2}, {"count", "", 2, 7},   {"count", "", 1, 7},
                 {"mean", "a=2", 1, 2}, {"count", "", 1, 8},   {"mean", "a=1", 1, 2}, {"mean", "a=2", 1, 2}};

    static const size_t kept[] = {0, 1, 4, 5, 2};
    struct feature_set set = {0};
    for (size_t i = 0; i < 8; i++) {
        struct feature feature = usual;
        feature.segment = added[i].segment;
        feature.name = added[i].name;
        feature.settings = added[i].settings;
        feature.value = added[i].value;
        ck_assert_int_eq(feature_set_add(&set, &feature), 0);
    }
    static const size_t of[] = {1, 1, 6, 7};
    set.matrices = calloc(4, sizeof *set.matrices);
    ck_assert_ptr_nonnull(set.matrices);
    set.matrix_count = 4;
    for (int32_t i = 0; i < 4; i++)
        set.matrices[i] = (struct feature_matrix){.feature = of[i], .slice = i, .cells = one_cell()};
    ck_assert_int_eq(feature_set_order(&set), 0);
    ck_assert_uint_eq(set.count, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(set.items[i].name, added[kept[i]].name);
        ck_assert_str_eq(set.items[i].settings, added[kept[i]].settings);
        ck_assert_int_eq(set.items[i].segment, added[kept[i]].segment);
        ck_assert_double_eq(set.items[i].value, added[kept[i]].value);
    }
    ck_assert_uint_eq(set.matrix_count, 3);
    for (int32_t i = 0; i < 3; i++) {
        static const int32_t slices[] = {0, 1, 3};
        ck_assert_int_eq(set.matrices[i].slice, slices[i]);
        ck_assert_uint_eq(set.matrices[i].feature, i < 2 ? 1 : 2);
    }
    feature_set_clear(&set);
}

END_TEST

SAMPLE_MAIN("service_feature", set_up, tear_down, csv_follows_rfc_4180, json_has_null_for_missing_values,
            an_empty_set_is_an_empty_document, the_database_gives_the_same_documents, numbers_read_back_to_the_last_bit,
            a_set_is_appended_to_another, features_are_ordered_by_region, a_feature_of_several_groups_is_kept_once)
