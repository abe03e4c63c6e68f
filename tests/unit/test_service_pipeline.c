/* Whole jobs: what comes out, and that nothing comes out when a job is stopped or cannot go on. */
#include "pipeline.h"

#include "job_sample.h"
#include "output.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct job_sample sample;
static struct kernels_device *device;
static struct pipeline_compute compute;

static void
set_up(void)
{
    char reason[KERNELS_REASON];
    const struct kernels_device_options options = {.backend = "cpu", .threads = 2};
    dicom_init();
    signal(SIGXFSZ, SIG_IGN);
    job_sample_make(&sample);
    ck_assert_int_eq(kernels_device_open(&options, &device, reason, sizeof reason), 0);
    compute.device = device;
    compute.threads = 2;
    ck_assert_int_eq(kernels_lane_open(device, &compute.lane, reason, sizeof reason), 0);
}

static void
tear_down(void)
{
    kernels_lane_close(compute.lane);
    kernels_device_close(device);
    job_sample_remove(&sample);
}

/* Runs the sample's job; the report's arrays are cleared, its numbers stay. */
static struct pipeline_report
run_job(const struct pipeline_watch *watch)
{
    struct pipeline_report report;
    if (pipeline_run(&sample.spec, &compute, watch, &report) != 0)
        abort(); /* no assertion: a file may not be able to grow, and Check writes to one */
    pipeline_report_clear(&report);
    return report;
}

static void
assert_ended(enum proto_verdict verdict, const char *code)
{
    struct pipeline_report report = run_job(NULL);
    ck_assert_str_eq(report.fault.code, code);
    ck_assert_int_eq(report.verdict, verdict);
    ck_assert_str_ne(report.fault.sentence, "");
    ck_assert_int_le(job_sample_output_entries(&sample), 0);
}

START_TEST(a_job_that_works)
{
    struct pipeline_report report;
    ck_assert_int_eq(pipeline_run(&sample.spec, &compute, NULL, &report), 0);
    ck_assert_msg(report.verdict == PROTO_VERDICT_DONE, "%s", report.fault.sentence);
    ck_assert(!report.empty);
    ck_assert_str_eq(report.fault.code, "");
    ck_assert_int_eq(report.voxels, SAMPLE_SLICES * SAMPLE_COLUMNS * SAMPLE_ROWS);
    ck_assert_int_eq(report.segmented_voxels, SAMPLE_BLOCK);
    ck_assert_int_eq(report.segment_count, 1);
    ck_assert_str_eq(report.segments[0].label, "Block");
    ck_assert_double_eq_tol(report.segments[0].millilitres, SAMPLE_BLOCK * 0.5 * 0.75 * 3 / 1000,
                            1e-9);
    ck_assert_int_eq(report.result_count, 2);
    ck_assert_str_eq(report.results[0].kind, "seg");
    ck_assert_int_eq(report.results[0].frames, 4);
    ck_assert_str_eq(report.results[1].file, "codes-1.nrrd");
    ck_assert_str_eq(report.series_uid, "1.2.3.4.3");
    ck_assert_str_eq(report.backend, "cpu");
    ck_assert_int_gt(report.peak_bytes, 0);
    ck_assert_double_ge(report.total_seconds, report.read_seconds + report.compute_seconds);
    ck_assert_int_eq(job_sample_output_entries(&sample), 4);
    char first[DICOM_UID_SIZE];
    memcpy(first, report.results[0].sop_instance_uid, sizeof first);
    pipeline_report_clear(&report);

    ck_assert_int_eq(pipeline_run(&sample.spec, &compute, NULL, &report), 0);
    ck_assert_str_eq(report.results[0].sop_instance_uid, first);
    pipeline_report_clear(&report);
    ck_assert_int_eq(job_sample_output_entries(&sample), 4);
}

END_TEST

START_TEST(an_empty_job)
{
    sample.spec.settings = (char[]){SAMPLE_SETTINGS("[ 500.0, 501.0 ]")};
    struct pipeline_report report = run_job(NULL);
    ck_assert_int_eq(report.verdict, PROTO_VERDICT_DONE);
    ck_assert(report.empty);
    ck_assert_str_eq(report.fault.code, "EMPTY");
    ck_assert_int_eq(report.segmented_voxels, 0);
    ck_assert_int_eq(report.result_count, 0);
    ck_assert_int_eq(job_sample_output_entries(&sample), 2); /* job.json, preview.png */
}

END_TEST

/* ------------------------------------------------------------------------------- stopping ---- */

struct stopper {
    const char *stage;
    atomic_bool stop;
    atomic_int told;
};

static void
stop_at(void *context, const char *stage, double fraction)
{
    struct stopper *stopper = context;
    if (fraction >= 0 && fraction <= 1) /* no assertion here: Check is for one thread */
        atomic_fetch_add(&stopper->told, 1);
    if (strcmp(stage, stopper->stage) == 0)
        atomic_store(&stopper->stop, true);
}

START_TEST(a_job_stops_at_every_stage_and_leaves_nothing)
{
    for (size_t i = 0; pipeline_stages[i]; i++) {
        struct stopper stopper = {.stage = pipeline_stages[i]};
        const struct pipeline_watch watch = {stop_at, &stopper, &stopper.stop};
        struct pipeline_report report = run_job(&watch);
        ck_assert_msg(report.verdict == PROTO_VERDICT_STOPPED, "%s", pipeline_stages[i]);
        ck_assert_str_eq(report.fault.code, "STOPPED");
        ck_assert_int_eq(report.result_count, 0);
        ck_assert_int_eq(job_sample_output_entries(&sample), -1);
    }
    /* Nobody stops it: all stages were told of, and the lane is as good as new. */
    struct stopper nobody = {.stage = "none"};
    const struct pipeline_watch watch = {stop_at, &nobody, &nobody.stop};
    ck_assert_int_eq(run_job(&watch).verdict, PROTO_VERDICT_DONE);
    ck_assert_int_eq(nobody.told, 5 + 2 * SAMPLE_SLICES);
}

END_TEST

START_TEST(a_job_stopped_before_it_began)
{
    struct stopper stopper = {.stage = "none", .stop = true};
    const struct pipeline_watch watch = {stop_at, &stopper, &stopper.stop};
    ck_assert_int_eq(run_job(&watch).verdict, PROTO_VERDICT_STOPPED);
    ck_assert_int_eq(job_sample_output_entries(&sample), -1);
}

END_TEST

/* -------------------------------------------------------------------------------- failing ---- */

/* Asserts nothing under the limit: Check writes down each assertion, in a file like any other. */
static struct rlimit
limit(__rlimit_resource_t resource, rlim_t soft)
{
    struct rlimit before, after;
    ck_assert_int_eq(getrlimit(resource, &before), 0);
    after = before;
    after.rlim_cur = soft;
    if (setrlimit(resource, &after) != 0)
        abort();
    return before;
}

START_TEST(a_full_disk_at_any_place_leaves_nothing)
{
    int refused = 0;
    bool done = false;
    for (rlim_t bytes = 0; !done; bytes += 256) {
        ck_assert_uint_lt(bytes, 1u << 20);
        struct rlimit before = limit(RLIMIT_FSIZE, bytes);
        struct pipeline_report report = run_job(NULL);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
        done = report.verdict == PROTO_VERDICT_DONE;
        if (done)
            break;
        refused++;
        ck_assert_int_eq(report.verdict, PROTO_VERDICT_RETRY);
        ck_assert_str_eq(report.fault.code, "DISK_FULL");
        ck_assert_int_eq(job_sample_output_entries(&sample), -1);
    }
    ck_assert_int_gt(refused, 10);
    ck_assert_int_eq(job_sample_output_entries(&sample), 4);
}

END_TEST

START_TEST(too_few_descriptors_are_no_fault_of_the_input)
{
    bool done = false;
    for (rlim_t count = 3; !done; count++) {
        ck_assert_uint_lt(count, 100);
        struct rlimit before = limit(RLIMIT_NOFILE, count);
        struct pipeline_report report = run_job(NULL);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        done = report.verdict == PROTO_VERDICT_DONE;
        if (!done) {
            ck_assert_msg(report.verdict == PROTO_VERDICT_RETRY, "%s: %s", report.fault.code,
                          report.fault.sentence);
            ck_assert_int_eq(job_sample_output_entries(&sample), -1);
        }
    }
}

END_TEST

START_TEST(an_output_that_is_no_folder)
{
    int fd = open(sample.output, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    assert_ended(PROTO_VERDICT_RETRY, "OUTPUT_UNWRITABLE");
}

END_TEST

START_TEST(an_output_that_another_job_holds)
{
    struct output *other;
    ck_assert_int_eq(output_open(sample.output, &other), 0);
    assert_ended(PROTO_VERDICT_RETRY, "OUTPUT_BUSY");
    output_close(other);
    ck_assert_int_eq(run_job(NULL).verdict, PROTO_VERDICT_DONE);
}

END_TEST

START_TEST(an_input_that_is_gone_or_cut_off)
{
    ck_assert_int_eq(truncate(sample.input[3], 900), 0);
    assert_ended(PROTO_VERDICT_REJECT, "FILE_TRUNCATED");
    ck_assert_int_eq(truncate(sample.input[2], 0), 0);
    assert_ended(PROTO_VERDICT_REJECT, "FILE_EMPTY");
    ck_assert_int_eq(unlink(sample.input[1]), 0);
    assert_ended(PROTO_VERDICT_REJECT, "FILE_UNREADABLE");
}

END_TEST

START_TEST(a_slice_that_is_missing)
{
    for (int z = 2; z < SAMPLE_SLICES - 1; z++)
        sample.inputs[z] = sample.inputs[z + 1];
    sample.spec.input_count--;
    assert_ended(PROTO_VERDICT_REJECT, "MISSING_SLICE");
}

END_TEST

START_TEST(a_job_that_makes_no_sense)
{
    sample.spec.stack = (char[]){"echo 7"};
    assert_ended(PROTO_VERDICT_REJECT, "STACK_NOT_FOUND");
    sample.spec.input_count = 0;
    assert_ended(PROTO_VERDICT_REJECT, "NO_INPUT");
    sample.spec.settings = (char[]){"name = "};
    assert_ended(PROTO_VERDICT_REJECT, "PIPELINE_INVALID");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_pipeline");
    TCase *tests = tcase_create("pipeline");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_job_that_works);
    tcase_add_test(tests, an_empty_job);
    tcase_add_test(tests, a_job_stops_at_every_stage_and_leaves_nothing);
    tcase_add_test(tests, a_job_stopped_before_it_began);
    tcase_add_test(tests, a_full_disk_at_any_place_leaves_nothing);
    tcase_add_test(tests, too_few_descriptors_are_no_fault_of_the_input);
    tcase_add_test(tests, an_output_that_is_no_folder);
    tcase_add_test(tests, an_output_that_another_job_holds);
    tcase_add_test(tests, an_input_that_is_gone_or_cut_off);
    tcase_add_test(tests, a_slice_that_is_missing);
    tcase_add_test(tests, a_job_that_makes_no_sense);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
