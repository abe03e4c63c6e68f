/* The texture stage of a job: a failing device, a stopped job, absent values. */
#include "kernels/op.h"
#include "service/pipeline/measure/measure_values.h"
#include "service/pipeline/pipeline.h"
#include "tests/unit/job_sample.h"
#include "tests/unit/pipeline/job_compute.h"

#include "kernels/features/first_order.h"
#include "kernels/features/matrices/glcm.h"
#include "kernels/features/shape/shape.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One segment and the volume, two distances, all three patterns. */
static char settings[] = SAMPLE_SETTINGS("[ 0.0, 80.0 ]") "texture = { regions = [ \"segments\", "
                                                          "\"volume\" ]; glcm = { levels = 8; "
                                                          "distances = [ 1, 30 ]; }; patterns = [ "
                                                          "\"lbp\", \"tlbap\", \"lanadp\" ]; };";

static struct job_sample sample;
static struct kernels_device *device;
static struct pipeline_compute compute;

static void
set_up(void)
{
    dicom_init();
    job_sample_make(&sample);
    sample.spec.settings = settings;
    job_compute_open(&device, &compute);
}

static void
tear_down(void)
{
    job_compute_close(device, &compute);
    job_sample_remove(&sample);
}

static const struct feature *
find(const struct pipeline_report *report, int32_t segment, const char *name, int32_t distance)
{
    for (size_t i = 0; i < report->features.count; i++) {
        const struct feature *feature = &report->features.items[i];
        if (feature->segment == segment && strcmp(feature->name, name) == 0 &&
            feature_get_number(feature->settings, FEATURE_distance) == distance)
            return feature;
    }
    ck_abort_msg("segment %d has no %s", segment, name);
    return NULL;
}

START_TEST(reports_of_a_job)
{
    struct pipeline_report report;
    pipeline_run(&sample.spec, &compute, NULL, &report);
    ck_assert_msg(report.verdict == PROTO_VERDICT_DONE, "%s", report.error.message);
    ck_assert_uint_eq(report.features.count, 2 * (SHAPE_FEATURES + FIRST_ORDER_FEATURES + 2 * GLCM_FEATURES));
    ck_assert_uint_eq(report.features.histogram_count, 2 * 3);
    ck_assert_double_eq(find(&report, 1, "voxel_count", 0)->value, SAMPLE_BLOCK);
    ck_assert_double_eq(find(&report, 1, "mean", 0)->value, 40);
    ck_assert_double_eq(find(&report, 0, "minimum", 0)->value, -1000);
    ck_assert_str_eq(find(&report, 1, "correlation", 1)->missing_reason, "ONE_GREY_LEVEL");
    ck_assert_str_eq(find(&report, 0, "correlation", 1)->missing_reason, "");
    /* No two voxels of 24 x 20 x 6 are 30 apart. */
    ck_assert_str_eq(find(&report, 0, "joint_entropy", 30)->missing_reason, "NO_NEIGHBOURS");
    for (size_t i = 0; i < report.features.count; i++) {
        const struct feature *feature = &report.features.items[i];
        ck_assert(isfinite(feature->value));
        ck_assert(feature->missing_reason[0] == '\0' || feature->value == 0);
    }
    pipeline_report_clear(&report);
    ck_assert_uint_eq(report.features.count, 0);
}

END_TEST

/* ------------------------------------------------------------------------ a failing device -- */

static struct kernels_backend broken;

static int
lost_at_run(struct kernels_lane *lane, const void *request, struct error *error)
{
    (void)lane;
    (void)request;
    return error_set(error, -EIO, CODE_COMPUTE_DEVICE_LOST, "unspecified launch failure");
}

START_TEST(loss_of_the_device_at_any_call)
{
    struct pipeline_report report;
    const struct kernels_backend *whole = device->backend;
    broken = *whole;

    const enum kernels_op_id ids[] = {KERNELS_HISTOGRAM, KERNELS_GLCM, KERNELS_PATTERNS};
    struct kernels_op op = *whole->ops[ids[_i]];
    op.run = lost_at_run;
    broken.ops[ids[_i]] = &op;
    device->backend = &broken;
    pipeline_run(&sample.spec, &compute, NULL, &report);
    device->backend = whole;
    ck_assert_int_eq(report.verdict, PROTO_VERDICT_RETRY);
    ck_assert_int_eq(report.error.code, CODE_COMPUTE_DEVICE_LOST);
    ck_assert(report.device_lost);
    ck_assert_uint_eq(report.features.count, 0); /* also without the earlier measurements */
    ck_assert_uint_eq(report.features.histogram_count, 0);
    ck_assert_int_le(job_sample_output_entries(&sample), 0);
    pipeline_report_clear(&report);
}

END_TEST

/* --------------------------------------------------------------------------- a stopped job -- */

static const struct kernels_backend *counted;
static int histograms, matrices;

static int
count_histogram(struct kernels_lane *lane, const void *request, struct error *error)
{
    histograms++;
    return counted->ops[KERNELS_HISTOGRAM]->run(lane, request, error);
}

static int
count_matrices(struct kernels_lane *lane, const void *request, struct error *error)
{
    matrices++;
    return counted->ops[KERNELS_GLCM]->run(lane, request, error);
}

static void
stop_within(void *context, const char *stage, double fraction)
{
    if (strcmp(stage, "texture") == 0 && fraction > 0)
        atomic_store((atomic_bool *)context, true);
}

/* Stops the job when it reports the second region. The job must not count any of that region. */
START_TEST(a_job_stopped_within_a_region)
{
    atomic_bool stop = false;
    const struct pipeline_watch watch = {stop_within, &stop, &stop};
    struct pipeline_report report;
    counted = device->backend;
    broken = *counted;
    struct kernels_op histogram = *counted->ops[KERNELS_HISTOGRAM];
    struct kernels_op glcm = *counted->ops[KERNELS_GLCM];
    histogram.run = count_histogram;
    glcm.run = count_matrices;
    broken.ops[KERNELS_HISTOGRAM] = &histogram;
    broken.ops[KERNELS_GLCM] = &glcm;
    device->backend = &broken;
    histograms = matrices = 0;
    pipeline_run(&sample.spec, &compute, &watch, &report);
    device->backend = counted;
    ck_assert_int_eq(report.verdict, PROTO_VERDICT_STOPPED);
    ck_assert_int_eq(histograms, 1);
    ck_assert_int_eq(matrices, 2);
    ck_assert_uint_eq(report.features.count, 0);
    ck_assert_int_eq(job_sample_output_entries(&sample), -1);
    pipeline_report_clear(&report);
}

END_TEST

/* ---------------------------------------------------------------- families that share counts -- */

static int neighbourhoods, zones;

static int
count_neighbourhoods(struct kernels_lane *lane, const void *request, struct error *error)
{
    neighbourhoods++;
    return counted->ops[KERNELS_NEIGHBOURS]->run(lane, request, error);
}

static int
count_zones(struct kernels_lane *lane, const void *request, struct error *error)
{
    zones++;
    return counted->ops[KERNELS_ZONES]->run(lane, request, error);
}

#define FAMILIES(more)                                                                                                 \
    SAMPLE_SETTINGS("[ 0.0, 80.0 ]")                                                                                   \
    "texture = { regions = [ \"segments\", \"volume\" ]; families = [ \"all\" ];" more " };"

/* Two regions. Neighbours must be read once at one distance, and twice at two. */
START_TEST(families_share_counted_matrices)
{
    static char together[] = FAMILIES(""), apart[] = FAMILIES("ngldm_distance = 2;");
    struct pipeline_report report;
    counted = device->backend;
    broken = *counted;
    struct kernels_op neighbours_op = *counted->ops[KERNELS_NEIGHBOURS];
    struct kernels_op zones_op = *counted->ops[KERNELS_ZONES];
    neighbours_op.run = count_neighbourhoods;
    zones_op.run = count_zones;
    broken.ops[KERNELS_NEIGHBOURS] = &neighbours_op;
    broken.ops[KERNELS_ZONES] = &zones_op;
    device->backend = &broken;
    neighbourhoods = zones = 0;
    sample.spec.settings = _i == 0 ? together : apart;
    pipeline_run(&sample.spec, &compute, NULL, &report);
    device->backend = counted;
    ck_assert_msg(report.verdict == PROTO_VERDICT_DONE, "%s", report.error.message);
    ck_assert_int_eq(neighbourhoods, _i == 0 ? 2 : 4);
    ck_assert_int_eq(zones, 2);
    pipeline_report_clear(&report);
}

END_TEST

/* ----------------------------------------------------------- groups that share measurements -- */

static int pairs;

static int
count_pairs(struct kernels_lane *lane, const void *request, struct error *error)
{
    pairs++;
    return counted->ops[KERNELS_LAGS]->run(lane, request, error);
}

#define GROUP(more) "{ families = [ \"all\" ]; " more " }"
#define GROUPS(...) SAMPLE_SETTINGS("[ 0.0, 80.0 ]") "texture = ( " __VA_ARGS__ " );"

/* Groups, and the number of counts of pairs of voxels. */
static struct {
    char settings[1024];
    int pairs;
} shared_groups[] = {
    {GROUPS(GROUP("")), 1},
    {GROUPS(GROUP("") "," GROUP("levels = 8; aggregation = \"2d-averaged\";")), 1},
    {GROUPS(GROUP("range = [ 10.0, 40.0 ];") "," GROUP("range = [ 10.0, 40.0 ]; levels = 8;")), 1},
    {GROUPS(GROUP("range = [ 10.0, 40.0 ];") "," GROUP("range = [ 10.0, 41.0 ];") "," GROUP("")), 3},
    {GROUPS(GROUP("sigma = 3.0;") "," GROUP("sigma = 2.0;") "," GROUP("levels = 8; sigma = 3.0;")), 2},
    {GROUPS(GROUP("resample = { isotropic_mm = 2.0; };") "," GROUP("") "," GROUP(
         "resample = { isotropic_mm = 2.0; }; levels = 8;")),
     2},
    {GROUPS(GROUP("resample = { isotropic_mm = 2.0; };") "," GROUP(
         "resample = { in_plane_mm = "
         "2.0; };") "," GROUP("resample = { isotropic_mm = 1.9; };") "," GROUP("resample = { "
                                                                               "isotropic_mm = "
                                                                               "2.0; "
                                                                               "interpolation = "
                                                                               "\"cubic\"; };")),
     4},
    {GROUPS(GROUP("") "," GROUP("regions = [ \"segments\", \"volume\" ]; levels = 8;")), 2},
};

START_TEST(groups_share_results_that_do_not_depend_on_levels)
{
    struct pipeline_report report;
    struct kernels_op lags_op = *device->backend->ops[KERNELS_LAGS];
    counted = device->backend;
    broken = *counted;
    lags_op.run = count_pairs;
    broken.ops[KERNELS_LAGS] = &lags_op;
    device->backend = &broken;
    pairs = 0;
    sample.spec.settings = shared_groups[_i].settings;
    pipeline_run(&sample.spec, &compute, NULL, &report);
    device->backend = counted;
    ck_assert_msg(report.verdict == PROTO_VERDICT_DONE, "%s", report.error.message);
    ck_assert_int_eq(pairs, shared_groups[_i].pairs);
    pipeline_report_clear(&report);
}

END_TEST

/* ------------------------------------------------------------------------------ a job's memory -- */

#define MATRICES(mib, more)                                                                                            \
    SAMPLE_SETTINGS("[ 0.0, 80.0 ]")                                                                                   \
    "memory_mib = " mib "; texture = { " more " levels = 256; families = [ \"glcm\" ]; regions = [ \"volume\" ]; };"

/*
 * Matrices of 256 levels in four directions, 2 MiB, or as much for each of six slices; on the job's voxels or on
 * others.
 */
START_TEST(matrices_count_as_memory)
{
    static struct {
        char settings[1024];
        int verdict;
    } jobs[] = {
        {MATRICES("12.0", "aggregation = \"2.5d-merged\";"), PROTO_VERDICT_DONE},
        {MATRICES("12.0", "aggregation = \"2d-averaged\";"), PROTO_VERDICT_REJECT},
        {MATRICES("12.0", "aggregation = \"2.5d-merged\"; resample = { in_plane_mm = 2.0; };"), PROTO_VERDICT_DONE},
        {MATRICES("12.0", "aggregation = \"2d-averaged\"; resample = { in_plane_mm = 2.0; };"), PROTO_VERDICT_REJECT},
    };
    struct pipeline_report report;
    sample.spec.settings = jobs[_i].settings;
    pipeline_run(&sample.spec, &compute, NULL, &report);
    ck_assert_int_eq(report.verdict, jobs[_i].verdict);
    if (report.verdict != PROTO_VERDICT_DONE)
        ck_assert_int_eq(report.error.code, CODE_JOB_TOO_LARGE);
    pipeline_report_clear(&report);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("texture step");
    TCase *tcase = tcase_create("texture step");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, reports_of_a_job);
    tcase_add_loop_test(tcase, loss_of_the_device_at_any_call, 0, 3);
    tcase_add_test(tcase, a_job_stopped_within_a_region);
    tcase_add_loop_test(tcase, families_share_counted_matrices, 0, 2);
    tcase_add_loop_test(tcase, groups_share_results_that_do_not_depend_on_levels, 0,
                        (int)(sizeof shared_groups / sizeof shared_groups[0]));
    tcase_add_loop_test(tcase, matrices_count_as_memory, 0, 4);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
