/* Whole jobs: their output, and no output if a job is stopped or fails. */
#include "service/pipeline/measure/measure_values.h"
#include "service/pipeline/pipeline.h"

#include "kernels/op.h"
#include "service/common/jobs/job_output.h"
#include "tests/unit/job_sample.h"
#include "tests/unit/pipeline/job_compute.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static struct job_sample sample;
static struct kernels_device *device;
static struct pipeline_compute compute;

static void
set_up(void)
{
    dicom_init();
    signal(SIGXFSZ, SIG_IGN);
    job_sample_make(&sample);
    job_compute_open(&device, &compute);
}

static void
tear_down(void)
{
    job_compute_close(device, &compute);
    job_sample_remove(&sample);
}

/* Runs the sample's job. Clears the report's arrays, but keeps its numbers. */
static struct pipeline_report
run_job(const struct pipeline_watch *watch)
{
    struct pipeline_report report;
    pipeline_run(&sample.spec, &compute, watch, &report);
    pipeline_report_clear(&report);
    return report;
}

static void
assert_ended(enum proto_verdict verdict, enum code code)
{
    struct pipeline_report report = run_job(NULL);
    ck_assert_int_eq(report.error.code, code);
    ck_assert_int_eq(report.verdict, verdict);
    ck_assert_str_ne(report.error.message, "");
    ck_assert_int_le(job_sample_output_entries(&sample), 0);
}

START_TEST(a_successful_job)
{
    struct pipeline_report report;
    pipeline_run(&sample.spec, &compute, NULL, &report);
    ck_assert_msg(report.verdict == PROTO_VERDICT_DONE, "%s", report.error.message);
    ck_assert(!report.empty);
    ck_assert_int_eq(report.error.code, CODE_NONE);
    ck_assert_int_eq(report.voxels, SAMPLE_SLICES * SAMPLE_COLUMNS * SAMPLE_ROWS);
    ck_assert_int_eq(report.segmented_voxels, SAMPLE_BLOCK);
    ck_assert_int_eq(report.segment_count, 1);
    ck_assert_str_eq(report.segments[0].label, "Block");
    ck_assert_double_eq_tol(report.segments[0].millilitres, SAMPLE_BLOCK * 0.5 * 0.75 * 3 / 1000, 1e-9);
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

    pipeline_run(&sample.spec, &compute, NULL, &report);
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
    ck_assert_int_eq(report.error.code, CODE_EMPTY);
    ck_assert_int_eq(report.segmented_voxels, 0);
    ck_assert_int_eq(report.result_count, 0);
    ck_assert_int_eq(job_sample_output_entries(&sample), 2); /* job.json, preview.png */
}

END_TEST

/* ------------------------------------------------------------------- fuzzy connectedness ---- */

#define TYPE "type = { code = \"12738006\"; scheme = \"SCT\"; meaning = \"Brain\"; };"
#define LEVEL_SET                                                                                                      \
    "{ label = \"Block\"; range = [ 0.0, 80.0 ]; shapes = ( { center = { fraction = [ 0.5, 0.5, "                      \
    "0.5 ]; }; radius_voxels = 2.0; } ); " TYPE " }"
#define FUZZY(label, rest)     "{ label = \"" label "\"; method = \"fuzzy-connectedness\"; " rest TYPE " }"
#define IN_BLOCK               "seeds = ( { voxel = [ 12, 10, 3 ]; } ); "
#define IN_AIR                 "seeds = ( { voxel = [ 0, 0, 0 ]; } ); "
#define GAUSSIANS(mean, sigma) "object_mean = " mean "; object_sigma = " sigma "; homogeneity_sigma = " sigma "; "
#define SOFT                   FUZZY("Soft", IN_BLOCK GAUSSIANS("40.0", "10.0") "connectedness_map = true; ")
#define MIXED(first, second)   "name = \"mixed\"; results = [ \"seg\", \"codes\" ]; segments = ( " first ", " second " );"

static int64_t
voxels_of(const struct pipeline_report *report, int segment)
{
    ck_assert_int_lt(segment, report->segment_count);
    return report->segments[segment].voxels;
}

static struct pipeline_report
run_well(char *settings)
{
    struct pipeline_report report;
    sample.spec.settings = settings;
    pipeline_run(&sample.spec, &compute, NULL, &report);
    ck_assert_msg(report.verdict == PROTO_VERDICT_DONE, "%s", report.error.message);
    return report;
}

START_TEST(methods_are_mixed_in_either_order)
{
    static char level_set_first[] = MIXED(LEVEL_SET, SOFT), fuzzy_first[] = MIXED(SOFT, LEVEL_SET);

    const struct {
        char *settings;
        const char *codes;
    } orders[] = {{level_set_first, "codes-1.nrrd"}, {fuzzy_first, "codes-2.nrrd"}};

    for (int i = 0; i < 2; i++) {
        struct pipeline_report report = run_well(orders[i].settings);
        ck_assert_int_eq(voxels_of(&report, 0), SAMPLE_BLOCK);
        ck_assert_int_eq(voxels_of(&report, 1), SAMPLE_BLOCK);
        ck_assert_str_eq(report.segments[i].label, "Block");
        ck_assert_str_eq(report.segments[1 - i].method, "fuzzy-connectedness");
        ck_assert_double_eq(report.segments[1 - i].numbers[1].value, 10);
        ck_assert_int_eq(report.segmented_voxels, SAMPLE_BLOCK);
        ck_assert_int_eq(report.result_count, 3);
        ck_assert_str_eq(report.results[0].kind, "seg");
        ck_assert_int_eq(report.results[0].frames, 8);
        ck_assert_str_eq(report.results[1].kind, "seg-fractional");
        ck_assert_str_eq(report.results[1].file, "seg-fractional.dcm");
        ck_assert_int_eq(report.results[1].frames, 4);
        ck_assert_str_ne(report.results[1].sop_instance_uid, report.results[0].sop_instance_uid);
        ck_assert_str_eq(report.results[2].file, orders[i].codes);
        ck_assert_str_eq(report.note, "");
        ck_assert_int_eq(job_sample_output_entries(&sample), 5);
        pipeline_report_clear(&report);
    }
}

END_TEST

START_TEST(without_a_map_an_old_fractional_object_is_removed)
{
    static char with[] = "name = \"a\"; segments = ( " SOFT " );";
    static char without[] = "name = \"a\"; segments = ( " FUZZY("Soft", IN_BLOCK GAUSSIANS("40.0", "10.0")) " );";
    struct pipeline_report report = run_well(with);
    ck_assert_int_eq(report.result_count, 2);
    ck_assert_int_eq(job_sample_output_entries(&sample), 4);
    pipeline_report_clear(&report);
    report = run_well(without);
    ck_assert_int_eq(report.result_count, 1);
    ck_assert_int_eq(voxels_of(&report, 0), SAMPLE_BLOCK);
    ck_assert_int_eq(job_sample_output_entries(&sample), 3);
    pipeline_report_clear(&report);
}

END_TEST

START_TEST(missing_parameters_are_measured_and_reported)
{
    static char settings[] =
        "name = \"a\"; segments = ( " FUZZY("Soft", IN_BLOCK "estimate_voxels = 1; homogeneity_sigma = 5.0; ") " );";
    struct pipeline_report report = run_well(settings);
    const struct pipeline_segment *segment = &report.segments[0];
    ck_assert_int_eq(voxels_of(&report, 0), SAMPLE_BLOCK);
    ck_assert_int_eq(segment->measured_voxels, 27);
    ck_assert_double_eq(segment->numbers[0].value, 40);
    ck_assert(segment->numbers[0].measured && !segment->numbers[2].measured);
    ck_assert_str_eq(report.note, "Soft: measured mean 40, sigma 1");
    pipeline_report_clear(&report);
}

END_TEST

/* A wide object also claims the air, unless the air has its own object. */
#define WIDE FUZZY("Wide", IN_BLOCK GAUSSIANS("40.0", "2000.0"))
#define AIR  FUZZY("Air", IN_AIR GAUSSIANS("-1000.0", "50.0"))

START_TEST(relative_connectedness_gives_each_voxel_one_owner)
{
    static char apart[] = "name = \"a\"; segments = ( " WIDE ", " AIR " );";
    static char relative[] =
        "name = \"a\"; relative_connectedness = true; segments = ( " WIDE ", " LEVEL_SET ", " AIR " );";
    const int64_t all = SAMPLE_SLICES * SAMPLE_COLUMNS * SAMPLE_ROWS;
    struct pipeline_report report = run_well(apart);
    ck_assert_int_eq(voxels_of(&report, 0), all);
    ck_assert_int_eq(voxels_of(&report, 1), all - SAMPLE_BLOCK);
    pipeline_report_clear(&report);
    report = run_well(relative);
    ck_assert_int_eq(voxels_of(&report, 0), SAMPLE_BLOCK);
    ck_assert_int_eq(voxels_of(&report, 1), SAMPLE_BLOCK);
    ck_assert_int_eq(voxels_of(&report, 2), all - SAMPLE_BLOCK);
    ck_assert_int_eq(report.segmented_voxels, all);
    pipeline_report_clear(&report);
}

END_TEST

START_TEST(objects_with_equal_connectedness_are_empty)
{
    sample.spec.settings = (char[]){"name = \"a\"; relative_connectedness = true; segments = ( " SOFT
                                    ", " FUZZY("Twin", IN_BLOCK GAUSSIANS("40.0", "10.0")) " );"};
    struct pipeline_report report = run_job(NULL);
    ck_assert_int_eq(report.verdict, PROTO_VERDICT_DONE);
    ck_assert(report.empty);
    ck_assert_int_eq(report.error.code, CODE_EMPTY);
    ck_assert_int_eq(report.result_count, 0);
    ck_assert_int_eq(job_sample_output_entries(&sample), 2); /* no map of an empty object */
}

END_TEST

/* The block is in range. The air is not, so a level set that starts from the air ends empty. */
START_TEST(a_level_set_starts_from_an_object)
{
    static char settings[] =
        "name = \"a\"; results = [ \"seg\", \"codes\" ]; segments = ( " SOFT ", " AIR
        ", { label = \"Grown\"; range = [ 0.0, 80.0 ]; from = \"Soft\"; " TYPE
        " }, { label = \"Other\"; range = [ 0.0, 80.0 ]; from = \"Air\"; " TYPE " }, " LEVEL_SET " );";
    const int64_t all = SAMPLE_SLICES * SAMPLE_COLUMNS * SAMPLE_ROWS;
    struct pipeline_report report = run_well(settings);
    ck_assert_int_eq(voxels_of(&report, 0), SAMPLE_BLOCK);
    ck_assert_int_eq(voxels_of(&report, 1), all - SAMPLE_BLOCK);
    ck_assert_int_eq(voxels_of(&report, 2), SAMPLE_BLOCK);
    ck_assert_int_eq(voxels_of(&report, 3), 0);
    ck_assert_int_eq(voxels_of(&report, 4), SAMPLE_BLOCK);
    ck_assert_int_eq(report.segmented_voxels, all);
    ck_assert_int_eq(report.result_count, 5);
    ck_assert_str_eq(report.results[1].kind, "seg-fractional");
    ck_assert_str_eq(report.results[2].file, "codes-3.nrrd");
    pipeline_report_clear(&report);
}

END_TEST

START_TEST(series_refused_by_fuzzy_connectedness)
{
    sample.spec.settings =
        (char[]){"name = \"a\"; segments = ( " FUZZY("Soft", "seeds = ( { voxel = [ 12, 10, 6 ]; } ); ") " );"};
    assert_ended(PROTO_VERDICT_REJECT, CODE_SEED_OUTSIDE);
    sample.spec.settings =
        (char[]){"name = \"a\"; segments = ( " FUZZY("Soft", "seeds = ( { mm = [ 0.0, 0.0, 99.0 ]; } ); ") " );"};
    assert_ended(PROTO_VERDICT_REJECT, CODE_SEED_OUTSIDE);
}

END_TEST

/* --------------------------------------------------------------------- devices that fail ---- */

/* The CPU's backend with one failing call, under another name. */
static struct kernels_backend broken;
static struct kernels_op broken_op;

static int
no_memory(struct kernels_lane *lane, struct kernels_memory *memory, void **voxels, struct error *error)
{
    (void)lane;
    (void)memory;
    (void)voxels;
    return error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "needs 12.3 GiB of device memory, 8.1 are free");
}

static int
lost(struct error *error)
{
    return error_set(error, -EIO, CODE_COMPUTE_DEVICE_LOST, "unspecified launch failure");
}

static int
lost_at_begin(struct kernels_lane *lane, struct kernels_memory *memory, void **voxels, struct error *error)
{
    (void)lane;
    (void)memory;
    (void)voxels;
    return lost(error);
}

static int
lost_at_ready(struct kernels_lane *lane, int64_t first, int64_t count, struct error *error)
{
    (void)lane;
    (void)first;
    (void)count;
    return lost(error);
}

static int
lost_at_run(struct kernels_lane *lane, const void *request, struct error *error)
{
    (void)lane;
    (void)request;
    return lost(error);
}

START_TEST(jobs_beyond_gpu_memory_run_on_the_cpu)
{
    struct error error = {0};
    struct kernels_device *second;
    struct kernels_lane *lane;
    const struct kernels_device_options options = {.backend = "cpu", .threads = 1};
    broken = *device->backend;
    broken.name = "cuda";
    broken.volume_begin = no_memory;
    device->backend = &broken;
    assert_ended(PROTO_VERDICT_RETRY, CODE_OUT_OF_MEMORY); /* there is no other device */

    ck_assert_int_eq(kernels_device_open(&options, &second, &error), 0);
    ck_assert_int_eq(kernels_lane_open(second, &lane, &error), 0);
    compute.fallback_device = second;
    compute.fallback_lane = lane;
    struct pipeline_report report = run_job(NULL);
    ck_assert_msg(report.verdict == PROTO_VERDICT_DONE, "%s", report.error.message);
    ck_assert_int_eq(report.segmented_voxels, SAMPLE_BLOCK);
    ck_assert_str_eq(report.backend, "cpu");
    ck_assert_str_eq(report.note, "ran on the CPU: needs 12.3 GiB of device memory, 8.1 are free");
    ck_assert(!report.device_lost);
    ck_assert_int_eq(job_sample_output_entries(&sample), 4);
    kernels_lane_close(lane);
    kernels_device_close(second);
}

END_TEST

static void
assert_device_lost(void)
{
    struct pipeline_report report = run_job(NULL);
    ck_assert_int_eq(report.verdict, PROTO_VERDICT_RETRY);
    ck_assert_int_eq(report.error.code, CODE_COMPUTE_DEVICE_LOST);
    ck_assert(report.device_lost);
    ck_assert_str_eq(report.backend, "cuda");
    ck_assert_int_le(job_sample_output_entries(&sample), 0);
}

START_TEST(a_device_that_fails_at_any_call_is_lost)
{
    sample.spec.settings = (char[]){MIXED(LEVEL_SET, SOFT)};
    const struct kernels_backend *whole = device->backend;

    static const enum kernels_op_id ids[] = {KERNELS_LEVEL_SET, KERNELS_FUZZY, KERNELS_LEVEL_SET_CODES};

    for (int call = 0; call < 5; call++) {
        broken = *whole;
        broken.name = "cuda";
        broken.volume_begin = call == 0 ? lost_at_begin : whole->volume_begin;
        broken.rows_ready = call == 1 ? lost_at_ready : whole->rows_ready;
        if (call >= 2) {
            broken_op = *whole->ops[ids[call - 2]];
            broken_op.run = lost_at_run;
            broken.ops[ids[call - 2]] = &broken_op;
        }
        device->backend = &broken;
        assert_device_lost();
    }
    device->backend = whole;
    ck_assert_int_eq(run_job(NULL).verdict, PROTO_VERDICT_DONE);
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
    if (fraction >= 0 && fraction <= 1) /* no assertion here: Check needs a single thread */
        atomic_fetch_add(&stopper->told, 1);
    if (strcmp(stage, stopper->stage) == 0)
        atomic_store(&stopper->stop, true);
}

static char measuring[] =
    SAMPLE_SETTINGS("[ 0.0, 80.0 ]") "texture = { glcm = { levels = 8; }; patterns = [ \"lbp\" ]; };";

START_TEST(a_job_stopped_at_any_stage_leaves_no_file)
{
    char *settings = sample.spec.settings;
    sample.spec.settings = measuring;
    for (size_t i = 0; pipeline_stages[i]; i++) {
        struct stopper stopper = {.stage = pipeline_stages[i]};
        const struct pipeline_watch watch = {stop_at, &stopper, &stopper.stop};
        struct pipeline_report report = run_job(&watch);
        ck_assert_msg(report.verdict == PROTO_VERDICT_STOPPED, "%s", pipeline_stages[i]);
        ck_assert_int_eq(report.error.code, CODE_STOPPED);
        ck_assert_int_eq(report.result_count, 0);
        ck_assert_int_eq(job_sample_output_entries(&sample), -1);
    }
    sample.spec.settings = settings;
    /* Without a stop, the watcher must see all stages, and the lane must stay usable. */
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

/* Must not assert under the limit: Check writes each assertion to a file, which is also limited. */
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

START_TEST(a_full_disk_at_any_write_leaves_no_file)
{
    int refused = 0;
    bool done = false;
    sample.spec.settings = (char[]){MIXED(LEVEL_SET, SOFT)};
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
        ck_assert_int_eq(report.error.code, CODE_DISK_FULL);
        ck_assert_int_eq(job_sample_output_entries(&sample), -1);
    }
    ck_assert_int_gt(refused, 10);
    ck_assert_int_eq(job_sample_output_entries(&sample), 5);
}

END_TEST

static atomic_int syncs = -1; /* number that succeed before one fails; below 0: all */

/* These two replace libc's functions in this program. */
int
fsync(int fd)
{
    if (atomic_fetch_sub(&syncs, 1) != 0)
        return (int)syscall(SYS_fsync, fd);
    errno = EIO;
    return -1;
}

int
fdatasync(int fd)
{
    return fsync(fd);
}

/* Files are synced concurrently, so that any of them may fail. */
START_TEST(a_failed_sync_leaves_no_file)
{
    bool done = false;
    int refused = 0;
    sample.spec.settings = (char[]){MIXED(LEVEL_SET, SOFT)};
    for (int count = 0; !done; count++) {
        ck_assert_int_lt(count, 20);
        atomic_store(&syncs, count);
        struct pipeline_report report = run_job(NULL);
        done = report.verdict == PROTO_VERDICT_DONE;
        refused += !done;
        if (!done) {
            ck_assert_int_eq(report.verdict, PROTO_VERDICT_RETRY);
            ck_assert_int_eq(job_sample_output_entries(&sample), -1);
        }
    }
    /* Two segmentations, codes, preview, record; the folder's entry, and its own. */
    ck_assert_int_eq(refused, 7);
    ck_assert_int_eq(job_sample_output_entries(&sample), 5);
}

END_TEST

START_TEST(missing_descriptors_are_a_transient_error)
{
    bool done = false;
    for (rlim_t count = 3; !done; count++) {
        ck_assert_uint_lt(count, 100);
        struct rlimit before = limit(RLIMIT_NOFILE, count);
        struct pipeline_report report = run_job(NULL);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        done = report.verdict == PROTO_VERDICT_DONE;
        if (!done) {
            ck_assert_msg(report.verdict == PROTO_VERDICT_RETRY, "%s: %s", code_name(report.error.code),
                          report.error.message);
            ck_assert_int_eq(job_sample_output_entries(&sample), -1);
        }
    }
}

END_TEST

START_TEST(an_output_path_of_a_file_is_refused)
{
    int fd = open(sample.output, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    assert_ended(PROTO_VERDICT_RETRY, CODE_OUTPUT_UNWRITABLE);
}

END_TEST

START_TEST(an_output_locked_by_another_job_is_refused)
{
    struct output *other;
    ck_assert_int_eq(output_open(sample.output, true, &other), 0);
    assert_ended(PROTO_VERDICT_RETRY, CODE_OUTPUT_BUSY);
    output_close(other);
    ck_assert_int_eq(run_job(NULL).verdict, PROTO_VERDICT_DONE);
}

END_TEST

START_TEST(a_missing_or_truncated_input_fails_the_job)
{
    ck_assert_int_eq(truncate(sample.input[3], 900), 0);
    assert_ended(PROTO_VERDICT_REJECT, CODE_FILE_TRUNCATED);
    ck_assert_int_eq(truncate(sample.input[2], 0), 0);
    assert_ended(PROTO_VERDICT_REJECT, CODE_FILE_EMPTY);
    ck_assert_int_eq(unlink(sample.input[1]), 0);
    assert_ended(PROTO_VERDICT_REJECT, CODE_FILE_UNREADABLE);
}

END_TEST

/* Jobs exist only for stacks that admission or an operator accepted. The grid of the job fills the gap. */
START_TEST(a_missing_slice_fails_the_job)
{
    for (int z = 2; z < SAMPLE_SLICES - 1; z++)
        sample.inputs[z] = sample.inputs[z + 1];
    sample.spec.input_count--;
    struct pipeline_report report = run_job(NULL);
    ck_assert_int_eq(report.verdict, PROTO_VERDICT_DONE);
    ck_assert_ptr_nonnull(strstr(report.note, "straightened"));
}

END_TEST

START_TEST(an_invalid_job_is_refused)
{
    sample.spec.stack = (char[]){"echo 7"};
    assert_ended(PROTO_VERDICT_REJECT, CODE_STACK_NOT_FOUND);
    sample.spec.input_count = 0;
    assert_ended(PROTO_VERDICT_REJECT, CODE_NO_INPUT);
    sample.spec.settings = (char[]){"name = "};
    assert_ended(PROTO_VERDICT_REJECT, CODE_PIPELINE_INVALID);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_pipeline");
    TCase *tests = tcase_create("pipeline");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_successful_job);
    tcase_add_test(tests, an_empty_job);
    tcase_add_test(tests, methods_are_mixed_in_either_order);
    tcase_add_test(tests, without_a_map_an_old_fractional_object_is_removed);
    tcase_add_test(tests, missing_parameters_are_measured_and_reported);
    tcase_add_test(tests, relative_connectedness_gives_each_voxel_one_owner);
    tcase_add_test(tests, objects_with_equal_connectedness_are_empty);
    tcase_add_test(tests, a_level_set_starts_from_an_object);
    tcase_add_test(tests, series_refused_by_fuzzy_connectedness);
    tcase_add_test(tests, jobs_beyond_gpu_memory_run_on_the_cpu);
    tcase_add_test(tests, a_device_that_fails_at_any_call_is_lost);
    tcase_add_test(tests, a_job_stopped_at_any_stage_leaves_no_file);
    tcase_add_test(tests, a_job_stopped_before_it_began);
    tcase_add_test(tests, a_full_disk_at_any_write_leaves_no_file);
    tcase_add_test(tests, a_failed_sync_leaves_no_file);
    tcase_add_test(tests, missing_descriptors_are_a_transient_error);
    tcase_add_test(tests, an_output_path_of_a_file_is_refused);
    tcase_add_test(tests, an_output_locked_by_another_job_is_refused);
    tcase_add_test(tests, a_missing_or_truncated_input_fails_the_job);
    tcase_add_test(tests, a_missing_slice_fails_the_job);
    tcase_add_test(tests, an_invalid_job_is_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
