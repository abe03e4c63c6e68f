/* The slots of a worker: jobs through the queue, stopped, returned, and ended by a close. */
#include "service/worker/slots.h"

#include "kernels/cuda/fault.h"
#include "kernels/gpu.h"
#include "tests/unit/job_sample.h"

#include <check.h>
#include <semaphore.h>
#include <time.h>

#ifdef NOCTULE_CUDA
#define CAN_LOSE 1 /* a device: fault.h */
#else
#define CAN_LOSE 0
#endif

enum { JOBS = 12, DEADLINE_SECONDS = 30 };

static struct job_sample sample;
static struct slots *slots;
static sem_t news;
static char files[JOBS + 1][128];

static void
wake(void *context)
{
    sem_post(context);
}

static void
open_slots_that_rest(int count, double rest_seconds)
{
    struct error error = {0};
    const struct slots_options options = {
        .device = "cpu", .threads = 1, .count = count, .rest_seconds = rest_seconds, .wake = wake, .context = &news};
    ck_assert_int_eq(slots_open(&options, &slots, &error), 0);
}

static void
open_slots(int count)
{
    open_slots_that_rest(count, 3600);
}

static void
set_up(void)
{
    dicom_init();
    job_sample_make(&sample);
    ck_assert_int_eq(sem_init(&news, 0, 0), 0);
    for (int i = 1; i <= JOBS; i++) {
        char output[128];
        snprintf(output, sizeof output, "%s/out-%d", sample.folder, i);
        snprintf(files[i], sizeof files[i], "%s/%d.job", sample.folder, i);
        sample.spec.id = i;
        sample.spec.output = output;
        ck_assert_int_eq(job_spec_write(&sample.spec, files[i]), 0);
    }
}

static void
tear_down(void)
{
    slots_close(slots);
    slots = NULL;
    sem_destroy(&news);
    job_sample_remove(&sample);
}

/* The next DONE; fails at the deadline. Clears the report's arrays. */
static struct slots_event
wait_done(void)
{
    struct timespec deadline;
    struct slots_event event;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += DEADLINE_SECONDS;
    for (;;) {
        while (slots_next_event(slots, &event)) {
            if (event.kind == SLOTS_DONE) {
                pipeline_report_clear(&event.report);
                return event;
            }
            ck_assert_ptr_nonnull(event.stage);
        }
        ck_assert_int_eq(sem_timedwait(&news, &deadline), 0);
    }
}

/* The next RESERVED; fails at the deadline. */
static struct slots_event
wait_reserved(void)
{
    struct timespec deadline;
    struct slots_event event;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += DEADLINE_SECONDS;
    for (;;) {
        while (slots_next_event(slots, &event)) {
            if (event.kind == SLOTS_RESERVED)
                return event;
            if (event.kind == SLOTS_DONE)
                pipeline_report_clear(&event.report);
        }
        ck_assert_int_eq(sem_timedwait(&news, &deadline), 0);
    }
}

static char stages[256]; /* in the reported order, with a space after each */

/* On the slot's thread, so that no stage is missed. */
static void
note_stages(void *context)
{
    struct slots_event event;
    while (slots_next_event(slots, &event)) {
        const size_t length = strlen(stages);
        if (event.kind == SLOTS_PROGRESS && event.fraction == 0)
            snprintf(stages + length, sizeof stages - length, "%s ", event.stage);
        if (event.kind != SLOTS_DONE)
            continue;
        pipeline_report_clear(&event.report);
        sem_post(context);
    }
}

/* However short a stage is. */
START_TEST(each_stage_is_reported)
{
    struct error error = {0};
    struct timespec deadline;
    const struct slots_options options = {
        .device = "cpu", .threads = 1, .count = 1, .rest_seconds = 3600, .wake = note_stages, .context = &news};
    ck_assert_int_eq(slots_open(&options, &slots, &error), 0);
    for (int i = 1; i <= 2; i++) {
        stages[0] = '\0';
        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec += DEADLINE_SECONDS;
        ck_assert_int_eq(slots_run(slots, i, files[i]), 0);
        ck_assert_int_eq(sem_timedwait(&news, &deadline), 0);
        ck_assert_ptr_nonnull(strstr(stages, "pixels compute write verify "));
    }
}

END_TEST

START_TEST(every_job_is_done_once)
{
    bool seen[JOBS + 1] = {false};
    open_slots(2);
    ck_assert(slots_idle(slots));
    ck_assert_str_ne(slots_description(slots), "");
    for (int i = 1; i <= JOBS; i++)
        ck_assert_int_eq(slots_run(slots, i, files[i]), 0);
    ck_assert(!slots_idle(slots));
    for (int i = 1; i <= JOBS; i++) {
        struct slots_event event = wait_done();
        ck_assert_msg(event.report.verdict == PROTO_VERDICT_DONE, "%s", event.report.error.message);
        ck_assert_int_eq(event.report.segmented_voxels, SAMPLE_BLOCK);
        ck_assert(event.job >= 1 && event.job <= JOBS && !seen[event.job]);
        seen[event.job] = true;
    }
    ck_assert(slots_idle(slots));
}

END_TEST

/* Pages that the process has mapped. */
static long
memory_mapped(void)
{
    FILE *statm = fopen("/proc/self/statm", "r");
    long pages = 0;
    ck_assert(statm && fscanf(statm, "%ld", &pages) == 1);
    fclose(statm);
    return pages;
}

/* Before the first job, and after it for longer than other memory is kept. */
START_TEST(reserved_memory_is_allocated_at_once_and_kept)
{
    const long page = sysconf(_SC_PAGESIZE), kept = (64L << 20) / page;
    const struct slots_options options = {.device = "cpu",
                                          .threads = 1,
                                          .keep_bytes = 64 << 20,
                                          .count = 1,
                                          .rest_seconds = 0.1,
                                          .wake = wake,
                                          .context = &news};
    struct error error = {0};
    const time_t deadline = time(NULL) + DEADLINE_SECONDS;
    open_slots(1);
    const long without = memory_mapped();
    slots_close(slots);
    ck_assert_int_eq(slots_open(&options, &slots, &error), 0);
    while (memory_mapped() < without + kept / 2) {
        ck_assert_int_lt(time(NULL), deadline);
        usleep(1000);
    }
    const long before = memory_mapped();
    for (int i = 1; i <= 2; i++) {
        ck_assert_int_eq(slots_run(slots, i, files[i]), 0);
        ck_assert_int_eq(wait_done().report.verdict, PROTO_VERDICT_DONE);
        usleep(300000); /* it rests meanwhile, or the next job is its first */
        ck_assert_int_ge(memory_mapped(), before - kept / 4);
    }
}

END_TEST

/* A lane returns its grown memory when no job arrives, and the next job still has enough. */
START_TEST(an_idle_slot_returns_its_memory)
{
    open_slots_that_rest(1, 1);
    for (int i = 1; i <= 2; i++) {
        ck_assert_int_eq(slots_run(slots, i, files[i]), 0);
        ck_assert_int_eq(wait_done().report.verdict, PROTO_VERDICT_DONE);
        const long done = memory_mapped();
        const time_t deadline = time(NULL) + DEADLINE_SECONDS;
        while (memory_mapped() >= done) {
            ck_assert_int_lt(time(NULL), deadline);
            usleep(1000);
        }
    }
}

END_TEST

START_TEST(a_job_without_its_file_may_be_tried_again)
{
    open_slots(1);
    ck_assert_int_eq(slots_run(slots, 4, "/nowhere/4.job"), 0);
    struct slots_event event = wait_done();
    ck_assert_int_eq(event.job, 4);
    ck_assert_int_eq(event.report.verdict, PROTO_VERDICT_RETRY);
    ck_assert_int_eq(event.report.error.code, CODE_JOB_FILE_UNREADABLE);
}

END_TEST

START_TEST(queued_jobs_are_returned_and_running_ones_finish)
{
    int done = 0, given_back = 0;
    open_slots(1);
    for (int i = 1; i <= JOBS; i++)
        ck_assert_int_eq(slots_run(slots, i, files[i]), 0);
    slots_return_queued(slots);
    for (int i = 1; i <= JOBS; i++) {
        struct slots_event event = wait_done();
        done += event.report.verdict == PROTO_VERDICT_DONE;
        given_back += event.report.verdict == PROTO_VERDICT_STOPPED;
    }
    ck_assert_int_eq(done + given_back, JOBS);
    ck_assert_int_gt(given_back, 0);
    ck_assert(slots_idle(slots));
}

END_TEST

START_TEST(any_job_can_be_stopped)
{
    open_slots(1);
    for (int i = 1; i <= JOBS; i++)
        ck_assert_int_eq(slots_run(slots, i, files[i]), 0);
    slots_stop(slots, JOBS);
    slots_stop(slots, 3);
    slots_stop(slots, 4711); /* not known: it may have just ended */
    bool stopped[JOBS + 1] = {false};
    for (int i = 1; i <= JOBS; i++) {
        struct slots_event event = wait_done();
        stopped[event.job] = event.report.verdict == PROTO_VERDICT_STOPPED;
    }
    ck_assert(stopped[JOBS]);
    for (int i = 1; i < JOBS; i++)
        ck_assert(!stopped[i] || i == 3);
}

END_TEST

START_TEST(closing_leaves_no_unfinished_job)
{
    open_slots(2);
    for (int i = 1; i <= JOBS; i++)
        ck_assert_int_eq(slots_run(slots, i, files[i]), 0);
    slots_close(slots);
    slots = NULL;
    char command[256];
    snprintf(command, sizeof command, "test -z \"$(find '%s' -name '*.part')\"", sample.folder);
    ck_assert_int_eq(system(command), 0);
}

END_TEST

START_TEST(processors_have_no_memory_for_programs)
{
    open_slots(1);
    slots_leave(slots, 3, 1);
    const struct slots_event event = wait_reserved();
    ck_assert_int_eq(event.token, 3);
    ck_assert(!event.enough);
    ck_assert_int_eq(event.free_bytes, 0);
}

END_TEST

#if CAN_LOSE

START_TEST(memory_is_left_to_programs)
{
    const struct slots_options options = {
        .device = "0", .threads = 1, .count = 2, .rest_seconds = 3600, .wake = wake, .context = &news};
    const int64_t gib = 1 << 30;
    struct kernels_gpu gpu;
    struct error error = {0};
    if (kernels_gpus(&gpu, 1) == 0)
        return;
    ck_assert_int_eq(slots_open(&options, &slots, &error), 0);
    for (int i = 1; i <= JOBS; i++)
        ck_assert_int_eq(slots_run(slots, i, files[i]), 0);
    slots_leave(slots, 1, gpu.memory_bytes - gib);
    struct slots_event event = wait_reserved();
    ck_assert(event.token == 1 && event.enough);
    ck_assert_int_ge(event.free_bytes, gpu.memory_bytes - gib);
    slots_leave(slots, 2, gpu.memory_bytes); /* more than can ever be free */
    event = wait_reserved();
    ck_assert(event.token == 2 && !event.enough);
    slots_leave(slots, 3, 0);
    event = wait_reserved();
    ck_assert(event.token == 3 && event.enough);
    while (!slots_idle(slots))
        wait_done();
    ck_assert_int_eq(slots_run(slots, 1, files[1]), 0);
    ck_assert_int_eq(wait_done().report.verdict, PROTO_VERDICT_DONE);
}

END_TEST

/* With a GPU, or the emulator's. */
START_TEST(jobs_of_a_lost_device_are_returned)
{
    const struct slots_options options = {.device = "0", .threads = 1, .count = 2, .wake = wake, .context = &news};
    struct error error = {0};
    int lost = 0, given_back = 0;

    if (kernels_gpus(NULL, 0) == 0)
        return;
    ck_assert_int_eq(slots_open(&options, &slots, &error), 0);
    ck_assert_int_eq(slots_run(slots, 1, files[1]), 0);
    ck_assert_int_eq(wait_done().report.verdict, PROTO_VERDICT_DONE);
    cuda_fault_at(1, CUDA_FAULT_LOST);
    for (int i = 2; i < JOBS; i++)
        ck_assert_int_eq(slots_run(slots, i, files[i]), 0);
    for (int i = 2; i < JOBS; i++) {
        struct slots_event event = wait_done();
        given_back += event.report.verdict == PROTO_VERDICT_STOPPED;
        lost += event.report.device_lost;
        ck_assert(!event.report.device_lost || slots_device_lost(slots));
        pipeline_report_clear(&event.report);
    }
    ck_assert_int_ge(lost, 1); /* the other slot may have begun another before it was known */
    ck_assert_int_eq(lost + given_back, JOBS - 2);
    ck_assert_int_ge(given_back, JOBS - 2 - 4);
    ck_assert_int_eq(slots_run(slots, JOBS, files[JOBS]), 0);
    ck_assert_int_eq(wait_done().report.verdict, PROTO_VERDICT_STOPPED);
    ck_assert(slots_idle(slots));
    cuda_fault_at(0, CUDA_FAULT_UNKNOWN);
}

END_TEST

#endif

START_TEST(a_missing_backend_is_an_error)
{
    struct error error = {0};
    const struct slots_options options = {
        .device = "GPU-abacus", .threads = 1, .count = 1, .wake = wake, .context = &news};
    ck_assert_int_lt(slots_open(&options, &slots, &error), 0);
    ck_assert_ptr_null(slots);
    ck_assert_str_ne(error.message, "");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_slots");
    TCase *tests = tcase_create("slots");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_stage_is_reported);
    tcase_add_test(tests, every_job_is_done_once);
    tcase_add_test(tests, reserved_memory_is_allocated_at_once_and_kept);
    tcase_add_test(tests, an_idle_slot_returns_its_memory);
    tcase_add_test(tests, a_job_without_its_file_may_be_tried_again);
    tcase_add_test(tests, queued_jobs_are_returned_and_running_ones_finish);
    tcase_add_test(tests, any_job_can_be_stopped);
    tcase_add_test(tests, closing_leaves_no_unfinished_job);
    tcase_add_test(tests, processors_have_no_memory_for_programs);
#if CAN_LOSE
    tcase_add_test(tests, memory_is_left_to_programs);
    tcase_add_test(tests, jobs_of_a_lost_device_are_returned);
#endif
    tcase_add_test(tests, a_missing_backend_is_an_error);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
