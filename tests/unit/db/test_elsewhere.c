/* Attempts on other machines: their rows, over restarts, and results that come too late. */
#include "db/report.h"
#include "db/report_lists.h"
#include "tests/unit/db/sample.h"

#include <errno.h>
#include <stdlib.h>

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
job_elsewhere(const char *uid, int32_t lane, const char *nonce)
{
    int64_t job = sample_job(s.queue, uid);
    const struct queue_lane lane_of = {"slurm", lane, "slurm", nonce};
    ck_assert_int_eq(queue_start_at(s.queue, job, &lane_of, SAMPLE_NOW + 3000), 0);
    return job;
}

START_TEST(remote_attempts_outlive_the_daemon)
{
    int32_t returned = 0;
    int64_t here = sample_job(s.queue, "1.1"), there = job_elsewhere("1.2", 0, "aa");
    ck_assert_int_eq(queue_start_job(s.queue, here, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    assert_answer(&s, "SELECT group_concat(executor || ' ' || slurm_state, ',') FROM v_jobs",
                  "local ,slurm SUBMITTING");
    ck_assert_int_eq(queue_submitted(s.queue, there, "aa", 42, SAMPLE_NOW + 4000), 0);
    ck_assert_int_eq(queue_placed(s.queue, there, "aa", "node-1", ""), 0);
    ck_assert_int_eq(queue_recover(s.queue, 1, SAMPLE_NOW + 5000, &returned), 0);
    ck_assert_int_eq(returned, 0); /* the local one had one attempt, and is FAILED */
    ck_assert_int_eq(sample_state(s.queue, here), QUEUE_FAILED);
    assert_answer(&s,
                  "SELECT state || slurm_state || slurm_id || node || submitted_at FROM v_jobs "
                  "WHERE executor = 'slurm'",
                  "RUNNINGSUBMITTED42node-12026-01-31T02:03:24.000Z");
    assert_answer(&s, "SELECT stage || ' ' || stage_since FROM v_jobs WHERE executor = 'slurm'",
                  "in Slurm 2026-01-31T02:03:24.000Z");

    struct queue_elsewhere *list;
    size_t count;
    ck_assert_int_eq(queue_elsewhere(s.queue, &list, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(list->job_id, there);
    ck_assert_int_eq(list->slurm_id, 42);
    ck_assert_int_eq(list->submitted_ms, SAMPLE_NOW + 4000);
    ck_assert_str_eq(list->nonce, "aa");
    queue_elsewhere_clear(list);
    free(list);
}

END_TEST

START_TEST(an_old_nonce_is_void)
{
    int64_t job = job_elsewhere("1.2", 0, "aa");
    ck_assert_int_eq(queue_submitted(s.queue, job, "bb", 42, SAMPLE_NOW + 4000), -EAGAIN);
    ck_assert_int_eq(queue_placed(s.queue, job, "bb", "node-1", ""), -EAGAIN);
    ck_assert_int_eq(queue_return_job(s.queue, job, "Slurm does not know it", SAMPLE_NOW + 5000), 0);
    ck_assert_int_eq(queue_submitted(s.queue, job, "aa", 42, SAMPLE_NOW + 6000), -EAGAIN);
    const struct queue_lane next = {"slurm", 0, "slurm", "cc"};
    ck_assert_int_eq(queue_start_at(s.queue, job, &next, SAMPLE_NOW + 7000), 0);
    ck_assert_int_eq(queue_submitted(s.queue, job, "aa", 42, SAMPLE_NOW + 8000), -EAGAIN);
    assert_answer(&s, "SELECT attempts || slurm_state || coalesce(slurm_id, 'none') FROM v_jobs", "1SUBMITTINGnone");
}

END_TEST

START_TEST(a_local_attempt_clears_the_remote_place)
{
    int64_t job = job_elsewhere("1.2", 0, "aa");
    ck_assert_int_eq(queue_submitted(s.queue, job, "aa", 42, SAMPLE_NOW + 4000), 0);
    ck_assert_int_eq(queue_placed(s.queue, job, "aa", "node-1", "Resources"), 0);
    ck_assert_int_eq(queue_return_job(s.queue, job, "cut", SAMPLE_NOW + 5000), 0);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 6000), 0);
    assert_answer(&s,
                  "SELECT executor || slurm_state || coalesce(slurm_id, 'none') || node || "
                  "slurm_reason FROM v_jobs",
                  "localnone");
}

END_TEST

START_TEST(the_mean_duration_is_that_of_successful_jobs)
{
    double seconds = -1;
    ck_assert_int_eq(queue_mean_seconds(s.queue, "head-ct", &seconds), 0);
    ck_assert_double_eq(seconds, 0);
    int64_t job = job_elsewhere("1.2", 0, "aa");
    const struct queue_figures figures = {.total_seconds = 2.5, .backend = "cpu", .note = ""};
    const struct queue_finish finish = {.state = QUEUE_EMPTY, .figures = &figures, .message = ""};
    ck_assert_int_eq(queue_finish_job(s.queue, job, &finish, SAMPLE_NOW + 9000), 0);
    ck_assert_int_eq(queue_mean_seconds(s.queue, "head-ct", &seconds), 0);
    ck_assert_double_eq_tol(seconds, 2.5, 1e-6);
}

END_TEST

/* The list of jobs, one of them, and the web UI. */
START_TEST(views_show_the_place_of_a_job)
{
    static const struct report_filter all = {0};
    struct report *report;
    struct error error;
    char *text = NULL;
    size_t size;
    const int64_t job = job_elsewhere("1.2", 0, "aa");
    ck_assert_int_eq(queue_submitted(s.queue, job, "aa", 42, SAMPLE_NOW + 4000), 0);
    ck_assert_int_eq(queue_placed(s.queue, job, "aa", "node-1", ""), 0);
    ck_assert_int_eq(report_open(s.path, &report, &error), 0);
    FILE *out = open_memstream(&text, &size);
    ck_assert_int_eq(report_list(report, &report_jobs, &all, out, false, &error), 0);
    ck_assert_int_eq(report_job(report, job, out, false, &error), 0);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_msg(strstr(text, "slurm 42 on node-1") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "\nslurm_id                  42\nnode                      node-1\n") != NULL, "%s",
                  text);
    free(text);
    for (size_t i = 0; i < 2; i++) {
        struct report_table list;
        const struct report_query asked = {.job = job, .text = {"", ""}};
        ck_assert_int_eq(report_page(report, i ? WEB_JOB : WEB_RUNNING, &asked, &list, &error), 0);
        ck_assert_str_eq(report_cell(&list, 0, "executor"), "slurm");
        ck_assert_str_eq(report_cell(&list, 0, "slurm_id"), "42");
        ck_assert_str_eq(report_cell(&list, 0, "node"), "node-1");
        report_table_free(&list);
    }
    report_close(report);
}

END_TEST

SAMPLE_MAIN("db_elsewhere", open_sample, close_sample, remote_attempts_outlive_the_daemon, an_old_nonce_is_void,
            a_local_attempt_clears_the_remote_place, the_mean_duration_is_that_of_successful_jobs,
            views_show_the_place_of_a_job)
