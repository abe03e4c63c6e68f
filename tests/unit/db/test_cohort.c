/*
 * The features of a pipeline as one table: its regions, its columns and their names, and the
 * dictionary.
 */
#include "db/report.h"
#include "tests/unit/db/sample.h"

static struct sample s;
static struct report *report;
static struct error error;

#define KEYS                                                                                                           \
    "job,study_uid,series_uid,patient,modality,stack,revision,version,configuration,measured_at,"                      \
    "source,straightened,straightened_because,spacing_x_mm,spacing_y_mm,spacing_z_mm,source_x_mm,"                     \
    "source_y_mm,source_step_min_mm,source_step_max_mm,manufacturer,model,kernel,kvp,"                                 \
    "slice_thickness_min_mm,slice_thickness_max_mm,pixel_values,pixel_intensity,spacing_source,segment,label,"

/* sample_figures has it. */
#define VOXELS "inbox:drop,1,2.5 to 5 mm apart,0.5,0.5,2.5,0.5,0.5,2.5,5.0,,,FC13,120.0,2.5,5.0,,,,"

static void
open_sample(void)
{
    sample_open(&s);
    ck_assert_int_eq(report_open(s.path, &report, &error), 0);
}

static void
close_sample(void)
{
    report_close(report);
    report = NULL;
    sample_close(&s);
}

static int64_t
measured(const char *series, const struct feature *features, size_t count, int64_t now)
{
    const struct queue_figures figures = sample_measured(features, count);
    const int64_t job = sample_job(s.queue, series);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      now),
                     0);
    return job;
}

struct told {
    char *table, *dictionary, *reasons, *failed;
    struct report_cohort_counts counts;
    int rc;
};

static struct told
ask(struct report_cohort what)
{
    struct told told = {0};
    size_t sizes[4];
    const struct report_cohort_out out = {
        open_memstream(&told.table, &sizes[0]), open_memstream(&told.dictionary, &sizes[1]),
        open_memstream(&told.reasons, &sizes[2]), open_memstream(&told.failed, &sizes[3])};
    what.pipeline = what.pipeline ? what.pipeline : "head-ct";
    told.rc = report_cohort(report, &what, &out, &told.counts, &error);
    fclose(out.table);
    fclose(out.dictionary);
    fclose(out.reasons);
    fclose(out.failed);
    return told;
}

static void
told_free(struct told *told)
{
    free(told->table);
    free(told->dictionary);
    free(told->reasons);
    free(told->failed);
}

static void
expect_table(const struct report_cohort *what, const char *expected)
{
    struct told told = ask(*what);
    ck_assert_msg(told.rc == 0, "%s", error.message);
    ck_assert_str_eq(told.table, expected);
    told_free(&told);
}

static struct feature
feature_of(const char *name, const char *unit, const char *settings, double value)
{
    return (struct feature){.segment = 1,
                            .label = "Brain",
                            .family = "glcm",
                            .name = name,
                            .meaning = "x",
                            .ibsi = "",
                            .value = value,
                            .missing_reason = "",
                            .unit = unit,
                            .settings = settings};
}

START_TEST(a_region_is_a_row_and_a_feature_a_column)
{
    ck_assert_int_eq(queue_note(s.queue, "START", "noctuled 0.0.9", SAMPLE_NOW - 1000), 0);
    measured("1.2.7", sample_features, SAMPLE_FEATURES, SAMPLE_NOW + 4000);
    ck_assert_int_eq(queue_note(s.queue, "START", "noctuled 0.1.0", SAMPLE_NOW + 5000), 0);
    measured("1.2.8", sample_features, SAMPLE_FEATURES, SAMPLE_NOW + 6000);
    expect_table(&(struct report_cohort){0},
                 KEYS "first_order.mean,glcm.correlation.2d_averaged.fbs0_1.along_0_90.symmetric_"
                      "false,glcm.joint_entropy.3d_merged.fbn32.from_m1000.to_400\r\n"
                      "1,1.2.3,1.2.7,,CT,,1,0.0.9,1,2026-01-31T02:03:24.000Z," VOXELS "1,Brain,31.25,,"
                      "2.1234567890123457\r\n"
                      "1,1.2.3,1.2.7,,CT,,1,0.0.9,1,2026-01-31T02:03:24.000Z," VOXELS "2,\"Ventricle, "
                      "\"\"left\"\"\",,,\r\n"
                      "2,1.2.3,1.2.8,,CT,,1,0.1.0,1,2026-01-31T02:03:26.000Z," VOXELS "1,Brain,31.25,,"
                      "2.1234567890123457\r\n"
                      "2,1.2.3,1.2.8,,CT,,1,0.1.0,1,2026-01-31T02:03:26.000Z," VOXELS "2,\"Ventricle, "
                      "\"\"left\"\"\",,,\r\n");
}

END_TEST

START_TEST(the_dictionary_describes_all_columns)
{
    measured("1.2.7", sample_features, SAMPLE_FEATURES, SAMPLE_NOW + 4000);
    struct told told = ask((struct report_cohort){0});
    ck_assert_int_eq(told.rc, 0);
    ck_assert_ptr_nonnull(strstr(told.dictionary, "column,family,name,meaning,ibsi_code,unit,"
                                                  "settings\r\njob,,,Number of the job,,,\r\n"));
    ck_assert_ptr_nonnull(strstr(told.dictionary, "\r\nfirst_order.mean,first-order,mean,Mean,Q4LE,[hnsf'U],\r\n"));
    ck_assert_ptr_nonnull(strstr(told.dictionary, "Correlation,NI2N,1,\"aggregation=2d-averaged;aggregation_ibsi_"
                                                  "code=BTW3;bin_width=0.1;directions=0,90;discretisation=fixed-bin-"
                                                  "size;symmetric=false\"\r\n"));
    told_free(&told);
}

END_TEST

/* The number of levels that a region needed does not define a feature. */
START_TEST(levels_by_width_share_one_column)
{
    const struct feature features[] = {feature_of("a", "1", "bin_width=25;discretisation=fixed-bin-size;levels=7", 1),
                                       feature_of("a", "1", "bin_width=25;discretisation=fixed-bin-size;levels=9", 2),
                                       feature_of("a", "1", "bin_width=25;discretisation=pyradiomics-bin-width", 3)};
    measured("1.2.7", &features[0], 1, SAMPLE_NOW);
    measured("1.2.8", &features[1], 1, SAMPLE_NOW);
    measured("1.2.9", &features[2], 1, SAMPLE_NOW);
    struct told told = ask((struct report_cohort){0});
    ck_assert_ptr_nonnull(strstr(told.table, "label,glcm.a.fbs25,glcm.a.pyradiomics25\r\n"));
    ck_assert_ptr_nonnull(strstr(told.table, ",Brain,1,\r\n"));
    ck_assert_ptr_nonnull(strstr(told.table, ",Brain,2,\r\n"));
    ck_assert_ptr_nonnull(strstr(told.table, ",Brain,,3\r\n"));
    told_free(&told);
}

END_TEST

/* Hounsfield units and counts must not share a column. */
START_TEST(each_unit_has_a_separate_column)
{
    const struct feature features[] = {feature_of("mean", "[hnsf'U]", "", 1), feature_of("mean", "Bq/ml", "", 2)};
    measured("1.2.7", &features[0], 1, SAMPLE_NOW);
    measured("1.2.8", &features[1], 1, SAMPLE_NOW);
    struct told told = ask((struct report_cohort){0});
    ck_assert_ptr_nonnull(strstr(told.table, "label,glcm.mean.in_Bq_ml,glcm.mean.in_hnsf_U\r\n"));
    ck_assert_ptr_nonnull(strstr(told.table, ",Brain,,1\r\n"));
    ck_assert_ptr_nonnull(strstr(told.table, ",Brain,2,\r\n"));
    told_free(&told);
}

END_TEST

START_TEST(settings_with_equal_column_names_are_refused)
{
    const struct feature features[] = {feature_of("a-b", "1", "", 1), feature_of("a_b", "1", "", 2),
                                       feature_of("c", "1", "bin_width=2;levels=3", 2),
                                       feature_of("c", "1", "bin_width=2;levels=4", 2)};
    measured("1.2.7", &features[0], 2, SAMPLE_NOW);
    struct told told = ask((struct report_cohort){0});
    ck_assert_int_eq(told.rc, -EEXIST);
    ck_assert_str_eq(error.message, "two features would be the column glcm.a_b.in_1");
    told_free(&told);
    measured("1.2.8", &features[2], 2, SAMPLE_NOW + 9000);
    told = ask((struct report_cohort){.since = "2026-01-31T02:03:29"});
    ck_assert_int_eq(told.rc, -EEXIST);
    ck_assert_str_eq(error.message, "job 2 has two values of glcm.c.width_2 in its segment 1");
    told_free(&told);
}

END_TEST

START_TEST(each_empty_cell_has_a_reason)
{
    measured("1.2.7", sample_features, SAMPLE_FEATURES, SAMPLE_NOW + 4000);
    struct told told = ask((struct report_cohort){0});
    ck_assert_int_eq(told.rc, 0);
#define CORRELATION "glcm.correlation.2d_averaged.fbs0_1.along_0_90.symmetric_false"
#define UNMEASURED  ",NOT_MEASURED,The settings of the job (column configuration) do not measure this of the region.\r\n"
    ck_assert_str_eq(
        told.reasons,
        "job,series_uid,patient,segment,label,column,code,message\r\n"
        "1,1.2.7,,1,Brain," CORRELATION UNMEASURED "1,1.2.7,,2,\"Ventricle, \"\"left\"\"\",first_order.mean" UNMEASURED
        "1,1.2.7,,2,\"Ventricle, \"\"left\"\"\"," CORRELATION
        ",ONE_GREY_LEVEL,This is not defined for a region of one value or grey level.\r\n"
        "1,1.2.7,,2,\"Ventricle, \"\"left\"\"\",glcm.joint_entropy.3d_merged.fbn32.from_m1000.to_400" UNMEASURED);
    told_free(&told);
}

END_TEST

/* Adds a series of this patient, that is being received. */
static int64_t
patient_series(const char *series, const char *modality, const char *patient)
{
    struct series_about about = {0};
    enum queue_arrival arrival;
    int64_t id;
    snprintf(about.patient_id, sizeof about.patient_id, "%s", patient);
    const struct queue_instance instance = {.sop_instance_uid = series,
                                            .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2",
                                            .transfer_syntax_uid = "1.2.840.10008.1.2.1",
                                            .series_uid = series,
                                            .study_uid = "1.2.3",
                                            .modality = modality,
                                            .body_part = "",
                                            .series_description = "",
                                            .about = &about,
                                            .path = series,
                                            .source = "scu:CT1",
                                            .frames = 1};
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &id), 0);
    return id;
}

/* Makes a job that runs; with `measure` it ends well, else it fails. */
static void
patient_job(const char *series, const char *patient, bool measure)
{
    const struct queue_figures figures = sample_measured(sample_features, SAMPLE_FEATURES);
    int64_t job, id = patient_series(series, "CT", patient);
    ck_assert_int_eq(sample_settle(s.queue, id, 1), 0);
    ck_assert_int_eq(sample_add_job(s.queue, id, 1, &job), 0);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    const struct queue_finish done = {QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""};
    ck_assert_int_eq(
        measure ? queue_finish_job(s.queue, job, &done, SAMPLE_NOW + 4000)
                : queue_fail_job(s.queue, job, CODE_ROI_NOT_FOUND, "no such region", "a.dcm", "", SAMPLE_NOW + 4000),
        0);
}

#define PSEUDONYM "h:0123456789abcdef01234567"
#define FAILED    "patient,source,study_uid,series_uid,modality,stack,job,state,code,message,file\r\n"

START_TEST(jobs_and_series_without_a_row_are_listed)
{
    const struct queue_stack refused = {.name = "b 0",
                                        .code = CODE_MISSING_SLICE,
                                        .message = "1 slice is missing",
                                        .file_a = "x.dcm",
                                        .file_b = "y.dcm"};
    patient_job("1.1", "A", true);       /* in the table */
    patient_job("1.2", PSEUDONYM, true); /* in the table */
    patient_job("1.3", "A", false);      /* a failed job of a patient in the table */
    patient_job("1.4", "B", false);      /* the only job of its patient */
    patient_series("1.5", "CT", "A");    /* being received, of a patient in the table: not listed */
    patient_series("1.6", "MR", "C");    /* another modality: not listed */
    patient_series("1.7", "CT", "D");    /* being received */
    ck_assert_int_eq(queue_settle(s.queue, patient_series("1.8", "CT", "D"), 1, "", &refused, 1, SAMPLE_NOW), 0);
    const struct queue_quarantine files[] = {
        {.path = "quarantine/1",
         .original_path = "",
         .series_uid = "",
         .code = CODE_FILE_TRUNCATED,
         .message = "short"},
        {.path = "quarantine/2", .original_path = "", .series_uid = "", .code = CODE_NOT_DICOM, .message = "text"},
        {.path = "quarantine/3", .original_path = "", .series_uid = "1.1", .code = CODE_TAG_MISSING, .message = "tag"}};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(queue_add_quarantine(s.queue, &files[i], SAMPLE_NOW), 0);
    struct told told = ask((struct report_cohort){0});
    ck_assert_msg(told.rc == 0, "%s", error.message);
    ck_assert_str_eq(told.failed, FAILED ",,,,,,,UNREADABLE,FILE_TRUNCATED,short,quarantine/1\r\n"
                                         "A,scu:CT1,1.2.3,1.3,CT,,3,FAILED,ROI_NOT_FOUND,no such region,a.dcm\r\n"
                                         "B,scu:CT1,1.2.3,1.4,CT,,4,FAILED,ROI_NOT_FOUND,no such region,a.dcm\r\n"
                                         "D,scu:CT1,1.2.3,1.7,CT,,,GATHERING,,The series is still being received.,\r\n"
                                         "D,scu:CT1,1.2.3,1.8,CT,,,REFUSED,MISSING_SLICE,1 slice is missing,x.dcm\r\n");
    ck_assert_str_eq(told.counts.states, "1 UNREADABLE, 2 FAILED, 1 GATHERING, 1 REFUSED");
    ck_assert_int_eq(told.counts.failed, 5);
    ck_assert_int_eq(told.counts.missing, 2);
    ck_assert_int_eq(told.counts.jobs, 2);
    ck_assert_int_eq(told.counts.patients, 2);
    ck_assert_int_eq(told.counts.hashed, 1);
    ck_assert_int_eq(told.counts.plain, 1);
    ck_assert_int_eq(told.counts.unnamed, 0);
    told_free(&told);
    told = ask((struct report_cohort){.modality = "MR"}); /* no job has values; C is missing */
    ck_assert_int_eq(told.rc, -ENOENT);
    ck_assert_str_eq(told.failed,
                     FAILED "C,scu:CT1,1.2.3,1.6,MR,,,GATHERING,,The series is still being received.,\r\n");
    told_free(&told);
}

END_TEST

/* Late slices made a new revision. */
START_TEST(replaced_results_are_left_out)
{
    const struct feature features[] = {feature_of("a", "1", "", 1), feature_of("b", "1", "", 2)};
    enum queue_arrival arrival;
    int64_t series, job;
    measured("1.2.7", &features[0], 1, SAMPLE_NOW);
    ck_assert_int_eq(sample_add(s.queue, "1.2.7", 4, &arrival, &series), 0);
    ck_assert_int_eq(sample_settle(s.queue, series, 2), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 2, &job), 0);
    struct told told = ask((struct report_cohort){0});
    ck_assert_int_eq(told.rc, -ENOENT);
    ck_assert_str_eq(error.message, "no selected job of pipeline head-ct has features");
    told_free(&told);
    const struct queue_figures figures = sample_measured(&features[1], 1);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW),
                     0);
    expect_table(&(struct report_cohort){0},
                 KEYS "glcm.b\r\n2,1.2.3,1.2.7,,CT,,2,,1,2026-01-31T02:03:20.000Z," VOXELS "1,Brain,2\r\n");
    expect_table(&(struct report_cohort){.all_revisions = true},
                 KEYS "glcm.a,glcm.b\r\n"
                      "1,1.2.3,1.2.7,,CT,,1,,1,2026-01-31T02:03:20.000Z," VOXELS "1,Brain,1,\r\n"
                      "2,1.2.3,1.2.7,,CT,,2,,1,2026-01-31T02:03:20.000Z," VOXELS "1,Brain,,2\r\n");
}

END_TEST

START_TEST(missing_data_is_reported)
{
    struct told told = ask((struct report_cohort){.pipeline = "other"});
    ck_assert_int_eq(told.rc, -ENOENT);
    ck_assert_str_eq(error.message, "there is no job of pipeline other");
    told_free(&told);
    measured("1.2.7", sample_features, SAMPLE_FEATURES, SAMPLE_NOW);
    told = ask((struct report_cohort){.modality = "MR"});
    ck_assert_int_eq(told.rc, -ENOENT);
    told_free(&told);
}

END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("cohort");
    tcase_add_checked_fixture(tcase, open_sample, close_sample);
    tcase_add_test(tcase, a_region_is_a_row_and_a_feature_a_column);
    tcase_add_test(tcase, the_dictionary_describes_all_columns);
    tcase_add_test(tcase, levels_by_width_share_one_column);
    tcase_add_test(tcase, each_unit_has_a_separate_column);
    tcase_add_test(tcase, settings_with_equal_column_names_are_refused);
    tcase_add_test(tcase, each_empty_cell_has_a_reason);
    tcase_add_test(tcase, jobs_and_series_without_a_row_are_listed);
    tcase_add_test(tcase, replaced_results_are_left_out);
    tcase_add_test(tcase, missing_data_is_reported);
    Suite *suite = suite_create("db_cohort");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
