/* Runs of programs: each edge with its events and jobs, the guards, restarts, clocks, retention and purge. */
#include "db/program_rows.h"
#include "db/retention_rows.h"

#include "tests/unit/db/sample.h"

#define NOW (SAMPLE_NOW + 10000)

static struct sample s;
static int64_t series;

static void
set_up(void)
{
    sample_open(&s);
    series = sample_series(s.queue, "1.2.3", 3);
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
}

static void
tear_down(void)
{
    sample_close(&s);
}

/* Adds a job of the pipeline, which waits for nothing. */
static int64_t
add_job(const char *pipeline, int32_t priority)
{
    int64_t job;
    struct queue_ids running;
    const struct queue_new_job new_job = {.series_id = series,
                                          .revision = 1,
                                          .stack = "",
                                          .pipeline = pipeline,
                                          .settings = pipeline,
                                          .priority = priority};
    ck_assert_int_eq(queue_add_job(s.queue, &new_job, NOW, &job, &running), 0);
    free(running.at);
    return job;
}

static int64_t
need_for(int64_t of_series, int32_t revision, const char *program, bool revive)
{
    const struct queue_need need = {.series_id = of_series,
                                    .revision = revision,
                                    .stack = "",
                                    .program = program,
                                    .settings = "deadline_seconds = 60;",
                                    .pipeline = "name = \"brain\";",
                                    .grid = "tilt=straighten",
                                    .identity = "abc"};
    struct queue_run run;
    ck_assert_int_eq(queue_need_run(s.queue, &need, revive, NOW, &run), 0);
    const int64_t id = run.id;
    queue_run_clear(&run);
    return id;
}

static int64_t
need(const char *program)
{
    return need_for(series, 1, program, false);
}

/* A READY job waits for these runs; 0: for one of a program without identity. */
static void
await(int64_t job, int64_t run, int64_t other)
{
    ck_assert_int_eq(queue_begin(s.queue), 0);
    if (run)
        ck_assert_int_eq(queue_tie_run(s.queue, job, run, NOW), 0);
    if (other)
        ck_assert_int_eq(queue_tie_run(s.queue, job, other, NOW), 0);
    ck_assert_int_eq(queue_job_awaits_programs(s.queue, job, "It waits.", NOW), 0);
    ck_assert_int_eq(queue_commit(s.queue), 0);
    sample_assert_sound(s.queue);
}

static int64_t
waiting_job(const char *pipeline, int64_t run)
{
    const int64_t job = add_job(pipeline, 5);
    await(job, run, 0);
    return job;
}

static void
start(int64_t run)
{
    ck_assert_int_eq(queue_start_run(s.queue, run, 0, "", "", NOW + 1000), 0);
    sample_assert_sound(s.queue);
}

static const struct queue_run_end well = {.message = "",
                                          .sha256 = "f00d",
                                          .sandbox = "own",
                                          .size = 1000,
                                          .labels = 2,
                                          .labelled = 17,
                                          .peak_bytes = 3 << 20,
                                          .write_seconds = 0.25,
                                          .program_seconds = 4,
                                          .read_seconds = 0.5,
                                          .starts = 1};
static const struct queue_run_end ill = {.code = CODE_PROGRAM_CRASHED,
                                         .message = "signal 11",
                                         .sha256 = "",
                                         .sandbox = "own",
                                         .peak_bytes = -1,
                                         .write_seconds = 0.25,
                                         .program_seconds = 1,
                                         .read_seconds = -1,
                                         .starts = 1};

static int64_t
finish(int64_t run)
{
    int64_t released;
    ck_assert_int_eq(queue_finish_run(s.queue, run, &well, NOW + 6000, &released), 0);
    sample_assert_sound(s.queue);
    return released;
}

static void
assert_run(int64_t run, const char *expected)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT state || ' ' || attempts || ' ' || code FROM v_program_runs WHERE run = %lld",
             (long long)run);
    assert_answer(&s, sql, expected);
}

static void
assert_job(int64_t job, const char *expected)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT state || ' ' || code FROM v_jobs WHERE job = %lld", (long long)job);
    assert_answer(&s, sql, expected);
}

/* The kinds of a run's events, in their order. */
static void
assert_events(int64_t run, const char *expected)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "SELECT group_concat(substr(kind, 9), ' ') FROM (SELECT kind FROM v_events WHERE program_run = %lld "
             "ORDER BY event)",
             (long long)run);
    assert_answer(&s, sql, expected);
}

/* The READY runs in their order, without those of some kinds: "1 2". */
static void
assert_ready_except(int64_t now_ms, const char *except, const char *expected)
{
    struct queue_run *runs;
    size_t count;
    char text[128] = "";
    ck_assert_int_eq(queue_ready_runs(s.queue, now_ms, 0, 8, except, &runs, &count), 0);
    for (size_t i = 0; i < count; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i ? " " : "", (long long)runs[i].id);
        queue_run_clear(&runs[i]);
    }
    free(runs);
    ck_assert_str_eq(text, expected);
}

static void
assert_ready(int64_t now_ms, const char *expected)
{
    assert_ready_except(now_ms, "", expected);
}

static void
cancel(int64_t job)
{
    bool was_running;
    ck_assert_int_eq(queue_cancel_job(s.queue, job, NOW, &was_running), 0);
    sample_assert_sound(s.queue);
}

START_TEST(two_jobs_share_one_run_and_its_end_releases_them)
{
    const int64_t run = need("net");
    ck_assert_int_eq(need("net"), run);
    const int64_t one = waiting_job("brain", run), two = waiting_job("skull", run);
    assert_answer(&s, "SELECT count(*) FROM v_program_runs", "1");
    assert_answer(&s, "SELECT not_before_at IS NULL AND message = 'It waits.' FROM v_jobs WHERE job = 1", "1");
    assert_answer(&s, "SELECT jobs_waiting FROM v_program_runs", "2");
    assert_answer(&s, "SELECT programs_waiting || programs_running FROM v_night", "10");
    assert_ready(NOW, "1");
    start(run);
    assert_ready(NOW, "");
    assert_answer(&s, "SELECT programs_waiting || programs_running FROM v_night", "01");
    ck_assert_int_eq(finish(run), 2);
    assert_job(one, "READY ");
    assert_job(two, "READY ");
    assert_run(run, "DONE 1 ");
    assert_events(run, "PLANNED STARTED DONE");
    assert_answer(&s, "SELECT group_concat(kind, ' ') FROM (SELECT kind FROM v_events WHERE job = 1 ORDER BY event)",
                  "JOB_ADDED JOB_WAITS JOB_MASK_CAME");
    assert_answer(&s, "SELECT programs || program_runs FROM v_jobs WHERE job = 2", "net1");
    assert_answer(&s,
                  "SELECT json_array(mask_path, mask_sha256, output_path, labels, labelled_voxels, peak_mib, sandbox, "
                  "executor, starts, write_seconds, program_seconds, read_seconds, total_seconds, wait_seconds) "
                  "FROM v_program_runs",
                  "[\"programs/1/mask\",\"f00d\",\"programs/1/output.txt\",2,17,3.0,\"own\",\"local\",1,0.25,4.0,0.5,"
                  "4.75,1.0]");
    ck_assert_int_eq(need("net"), run); /* a later job takes the mask */
    assert_run(run, "DONE 1 ");
}

END_TEST

START_TEST(a_need_is_of_one_stack_grid_and_identity)
{
    struct queue_need other = {series, 1, "", "net", "deadline_seconds = 90;", "p", "tilt=straighten", "abc"};
    struct queue_run run;
    const int64_t first = need("net");
    /* A READY run gets the present settings. */
    ck_assert_int_eq(queue_need_run(s.queue, &other, false, NOW, &run), 0);
    ck_assert_int_eq(run.id, first);
    ck_assert_str_eq(run.series_uid, "1.2.3");
    ck_assert_str_eq(run.settings, "deadline_seconds = 90;");
    ck_assert_str_eq(run.pipeline, "p");
    ck_assert_str_eq(run.path, "");
    ck_assert_int_eq(run.state, QUEUE_RUN_READY);
    queue_run_clear(&run);
    other.grid = "tilt=refuse";
    ck_assert_int_eq(queue_need_run(s.queue, &other, false, NOW, &run), 0);
    ck_assert_int_ne(run.id, first);
    queue_run_clear(&run);
    other.identity = "def";
    ck_assert_int_eq(queue_need_run(s.queue, &other, false, NOW, &run), 0);
    queue_run_clear(&run);
    assert_answer(&s, "SELECT count(*) FROM v_program_runs", "3");
    other.revision = 2;
    ck_assert_int_eq(queue_need_run(s.queue, &other, false, NOW, &run), -EAGAIN);
}

END_TEST

START_TEST(a_job_of_two_programs_waits_for_both)
{
    struct queue_run *runs;
    size_t count;
    const int64_t a = need("a"), b = need("b"), job = add_job("brain", 5);
    await(job, b, a);
    start(a);
    ck_assert_int_eq(finish(a), 0);
    assert_job(job, "DELAYED PROGRAM_WAITING");
    ck_assert_int_eq(queue_job_runs(s.queue, job, &runs, &count), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(runs[0].path, "programs/1");
    ck_assert_str_eq(runs[0].sha256, "f00d");
    ck_assert_str_eq(runs[1].path, "");
    for (size_t i = 0; i < count; i++)
        queue_run_clear(&runs[i]);
    free(runs);
    start(b);
    ck_assert_int_eq(finish(b), 1);
    assert_job(job, "READY ");
    assert_answer(&s, "SELECT programs || '; ' || program_runs FROM v_jobs", "a, b; 1, 2");
}

END_TEST

START_TEST(a_failed_run_fails_its_jobs_with_its_code)
{
    int64_t failed;
    const int64_t a = need("a"), b = need("b"), job = add_job("brain", 5);
    await(job, a, b);
    start(a);
    ck_assert_int_eq(queue_fail_run(s.queue, a, &ill, NOW + 3000, &failed), 0);
    sample_assert_sound(s.queue);
    ck_assert_int_eq(failed, 1);
    assert_run(a, "FAILED 1 PROGRAM_CRASHED");
    assert_run(b, "CANCELLED 0 ");
    assert_job(job, "FAILED PROGRAM_CRASHED");
    assert_answer(&s, "SELECT message FROM v_jobs", "signal 11");
    assert_answer(&s, "SELECT output_path || mask_sha256 FROM v_program_runs WHERE run = 1", "programs/1/output.txt");
    assert_events(a, "PLANNED STARTED FAILED");

    /* Another job that meets it fails, and only a retry runs it again. */
    ck_assert_int_eq(need("a"), a);
    const int64_t other = add_job("skull", 5);
    ck_assert_int_eq(queue_begin(s.queue), 0);
    ck_assert_int_eq(queue_job_awaits_programs(s.queue, other, "It waits.", NOW), 0);
    ck_assert_int_eq(queue_fail_waiting(s.queue, other, CODE_PROGRAM_CRASHED, "run 1 of a", NOW), 0);
    ck_assert_int_eq(queue_commit(s.queue), 0);
    assert_job(other, "FAILED PROGRAM_CRASHED");
    assert_answer(&s, "SELECT message FROM v_jobs WHERE job = 2", "run 1 of a");
    assert_run(a, "FAILED 1 PROGRAM_CRASHED");
    ck_assert_int_eq(need_for(series, 1, "a", true), a);
    assert_run(a, "READY 0 ");
    assert_events(a, "PLANNED STARTED FAILED PLANNED");
    ck_assert_int_eq(queue_fail_waiting(s.queue, other, CODE_PROGRAM_CRASHED, "", NOW), -EAGAIN);
}

END_TEST

START_TEST(the_end_of_the_last_job_cancels_a_run)
{
    const int64_t run = need("net"), one = waiting_job("brain", run), two = waiting_job("skull", run);
    cancel(one);
    assert_run(run, "READY 0 ");
    cancel(two);
    assert_run(run, "CANCELLED 0 ");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'PROGRAM_CANCELLED'", "no job needs it any more");
    /* A need revives it. */
    ck_assert_int_eq(need("net"), run);
    assert_run(run, "READY 0 ");
    assert_events(run, "PLANNED CANCELLED PLANNED");
}

END_TEST

START_TEST(a_running_run_without_a_job_is_to_be_stopped)
{
    struct queue_ids runs;
    const int64_t run = need("net"), job = waiting_job("brain", run);
    start(run);
    ck_assert_int_eq(queue_runs_to_stop(s.queue, &runs), 0);
    ck_assert_uint_eq(runs.count, 0);
    free(runs.at);
    cancel(job);
    assert_run(run, "RUNNING 1 ");
    ck_assert_int_eq(queue_runs_to_stop(s.queue, &runs), 0);
    ck_assert_uint_eq(runs.count, 1);
    ck_assert_int_eq(runs.at[0], run);
    free(runs.at);
    /* Its process was stopped, or returned it: no job needs it in both cases. */
    ck_assert_int_eq(queue_return_run(s.queue, run, "stopped", NOW), 0);
    sample_assert_sound(s.queue);
    assert_run(run, "CANCELLED 0 ");
    assert_events(run, "PLANNED STARTED RETURNED CANCELLED");
    ck_assert_int_eq(queue_cancel_run(s.queue, run, "", NOW), -EAGAIN);
}

END_TEST

START_TEST(a_cancelled_run_unties_its_jobs)
{
    struct queue_ids jobs;
    const int64_t run = need("net"), job = waiting_job("brain", run);
    ck_assert_int_eq(queue_jobs_without_run(s.queue, "net", &jobs), 0);
    ck_assert_uint_eq(jobs.count, 0);
    free(jobs.at);
    start(run);
    ck_assert_int_eq(queue_cancel_run(s.queue, run, "the program has changed", NOW), 0);
    sample_assert_sound(s.queue);
    assert_job(job, "DELAYED PROGRAM_WAITING");
    assert_run(run, "CANCELLED 1 ");
    ck_assert_int_eq(queue_jobs_without_run(s.queue, "net", &jobs), 0);
    ck_assert_uint_eq(jobs.count, 1);
    ck_assert_int_eq(jobs.at[0], job);
    free(jobs.at);
    const int64_t other = waiting_job("skull", need("other"));
    ck_assert_int_eq(queue_jobs_without_run(s.queue, NULL, &jobs), 0);
    ck_assert_uint_eq(jobs.count, 2);
    ck_assert_int_eq(jobs.at[1], other);
    free(jobs.at);
    /* In one batch: the tie finds it cancelled. */
    ck_assert_int_eq(queue_tie_run(s.queue, job, run, NOW), 0);
    sample_assert_sound(s.queue);
    assert_run(run, "READY 0 ");
    /* Another run in its place leaves it without a job. */
    const int64_t changed = need_for(series, 1, "net", false);
    ck_assert_int_eq(changed, run);
    struct queue_need newer = {series, 1, "", "net", "s", "p", "tilt=straighten", "new"};
    struct queue_run now;
    ck_assert_int_eq(queue_need_run(s.queue, &newer, false, NOW, &now), 0);
    ck_assert_int_eq(queue_tie_run(s.queue, job, now.id, NOW), 0);
    queue_run_clear(&now);
    sample_assert_sound(s.queue);
    assert_run(run, "CANCELLED 0 ");
}

END_TEST

START_TEST(a_transient_failure_waits_and_becomes_due)
{
    int64_t due;
    const int64_t run = need("net");
    waiting_job("brain", run);
    start(run);
    ck_assert_int_eq(queue_delay_run(s.queue, run, NOW + 60000, "", true, &ill, NOW + 2000), 0);
    sample_assert_sound(s.queue);
    assert_run(run, "DELAYED 1 PROGRAM_CRASHED");
    ck_assert_int_eq(queue_next_run_due(s.queue, &due), 0);
    ck_assert_int_eq(due, NOW + 60000);
    assert_ready(NOW + 59999, "");
    assert_ready(NOW + 60000, "1");
    assert_run(run, "READY 1 PROGRAM_CRASHED");
    ck_assert_int_eq(queue_next_run_due(s.queue, &due), 0);
    ck_assert_int_eq(due, 0);
    /* Out of GPU memory: once more in another way, which does not count. */
    ck_assert_int_eq(queue_start_run(s.queue, run, 0, "GPU-1", "shared", NOW), 0);
    assert_run(run, "RUNNING 2 ");
    ck_assert_int_eq(queue_delay_run(s.queue, run, NOW + 1, "whole", false, &ill, NOW), 0);
    assert_answer(&s, "SELECT attempts || ran_as || gpu || starts FROM v_program_runs", "1wholeGPU-12");
    assert_events(run, "PLANNED STARTED DELAYED DUE STARTED DELAYED");
}

END_TEST

START_TEST(guards_refuse_other_states)
{
    int64_t count, again;
    const int64_t run = need("net"), job = waiting_job("brain", run), other = need("other");
    waiting_job("skull", other);
    ck_assert_int_eq(queue_finish_run(s.queue, run, &well, NOW, &count), -EAGAIN);
    ck_assert_int_eq(queue_fail_run(s.queue, run, &ill, NOW, &count), -EAGAIN);
    ck_assert_int_eq(queue_delay_run(s.queue, run, NOW, "", true, &ill, NOW), -EAGAIN);
    ck_assert_int_eq(queue_return_run(s.queue, run, "", NOW), -EAGAIN);
    ck_assert_int_eq(queue_again_run(s.queue, run, "jane", NOW, &again), -EAGAIN);
    ck_assert_int_eq(queue_start_run(s.queue, 99, 0, "", "", NOW), -ENOENT);
    ck_assert_int_eq(queue_tie_run(s.queue, job, 99, NOW), -ENOENT);
    start(run);
    ck_assert_int_eq(queue_start_run(s.queue, run, 1, "", "", NOW), -EAGAIN);
    ck_assert_int_eq(queue_start_run(s.queue, other, 0, "", "", NOW), -EBUSY);
    ck_assert_str_eq(queue_reason(s.queue), "slot 0 runs a program already");
    ck_assert_int_eq(queue_start_run(s.queue, other, 1, "", "", NOW), 0);
    ck_assert_int_eq(queue_job_awaits_programs(s.queue, job, "", NOW), -EAGAIN);
    finish(run);
    ck_assert_int_eq(queue_cancel_run(s.queue, run, "", NOW), -EAGAIN);
}

END_TEST

START_TEST(a_run_again_supersedes_the_mask)
{
    int64_t again, third;
    const int64_t run = need("net"), done = waiting_job("brain", run), waits = waiting_job("skull", run);
    start(run);
    finish(run);
    ck_assert_int_eq(queue_start_job(s.queue, done, "worker-0", 0, NOW), 0);
    ck_assert_int_eq(queue_again_run(s.queue, run, "jane", NOW, &again), 0);
    sample_assert_sound(s.queue);
    assert_run(again, "READY 0 ");
    assert_events(run, "PLANNED STARTED DONE AGAIN");
    assert_events(again, "PLANNED");
    assert_answer(&s, "SELECT superseded_by || ' ' || removed_at IS NULL FROM v_program_runs WHERE run = 1", "1");
    /* The READY job gets the new one; the RUNNING one has read the old one, whose files stay as long. */
    assert_answer(&s, "SELECT group_concat(job || ':' || program_runs, ' ') FROM v_jobs", "1:1 2:2");
    ck_assert_int_eq(queue_run_has_files(s.queue, run), 1);
    assert_answer(&s, "SELECT count(*) FROM removal", "0");
    ck_assert_int_eq(sample_finish(s.queue, done), 0);
    sample_assert_sound(s.queue);
    ck_assert_int_eq(queue_run_has_files(s.queue, run), 0);
    assert_answer(&s, "SELECT path FROM removal", "programs/1");
    ck_assert_int_eq(queue_again_run(s.queue, run, "jane", NOW, &third), -EAGAIN);
    ck_assert_int_eq(need("net"), again);
    assert_job(waits, "READY ");
    await(waits, 0, 0);
    start(again);
    ck_assert_int_eq(finish(again), 1);
    /* Without a RUNNING job the files go at once. */
    ck_assert_int_eq(queue_again_run(s.queue, again, "jane", NOW, &third), 0);
    assert_answer(&s, "SELECT group_concat(path, ' ') FROM removal", "programs/1 programs/2");
}

END_TEST

START_TEST(a_retry_takes_the_stored_mask)
{
    int64_t next, with_others, again;
    struct queue_ids running;
    const int64_t run = need("net"), job = waiting_job("brain", run);
    start(run);
    finish(run);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, NOW), 0);
    ck_assert_int_eq(sample_finish(s.queue, job), 0);
    ck_assert_int_eq(sample_retry(s.queue, job, true, &next), 0);
    ck_assert_int_ne(next, job);
    assert_answer(&s, "SELECT program_runs FROM v_jobs WHERE job = 2", "1");
    /* Other settings may need another grid. */
    ck_assert_int_eq(queue_retry_job(s.queue, &(struct queue_retry){next, "other", true}, NOW, &with_others, &running),
                     0);
    free(running.at);
    assert_answer(&s, "SELECT program_runs FROM v_jobs WHERE job = 3", "");
    /* A superseded mask is none. */
    ck_assert_int_eq(queue_again_run(s.queue, run, "jane", NOW, &again), 0);
    ck_assert_int_eq(sample_retry(s.queue, job, true, &next), 0);
    assert_answer(&s, "SELECT group_concat(job || ':' || program_runs, ' ') FROM v_jobs", "1:1 2:1 3: 4:");
}

END_TEST

START_TEST(a_restart_returns_runs_or_fails_them)
{
    int returned;
    int32_t jobs;
    const int64_t run = need("net"), last = need("last"), orphan = need("orphan"), stopped = need("stopped");
    const int64_t one = waiting_job("brain", run), two = waiting_job("skull", last),
                  three = waiting_job("jaw", stopped);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(queue_start_run(s.queue, last, 1, "", "", NOW), 0);
        if (i == 0)
            ck_assert_int_eq(queue_delay_run(s.queue, last, NOW, "", true, &ill, NOW), 0);
        if (i == 0)
            assert_ready(NOW, "1 2 4");
    }
    start(run);
    ck_assert_int_eq(queue_start_run(s.queue, stopped, 2, "", "", NOW), 0);
    cancel(three);
    ck_assert_int_eq(queue_begin(s.queue), 0);
    ck_assert_int_eq(queue_recover(s.queue, 3, NOW, &jobs), 0);
    const struct queue_run_limit limits[] = {{"net", 2}, {"last", 2}, {"orphan", 2}, {"stopped", 2}};
    ck_assert_int_eq(queue_recover_runs(s.queue, limits, 4, NOW, &returned), 0);
    ck_assert_int_eq(queue_commit(s.queue), 0);
    sample_assert_sound(s.queue);
    ck_assert_int_eq(returned, 2);
    assert_run(run, "READY 1 ");
    assert_run(last, "FAILED 2 CRASHED");
    assert_run(orphan, "CANCELLED 0 ");
    assert_run(stopped, "CANCELLED 1 ");
    assert_job(one, "DELAYED PROGRAM_WAITING");
    assert_job(two, "FAILED CRASHED");
    assert_events(run, "PLANNED STARTED RECOVERED");
    assert_events(stopped, "PLANNED STARTED RECOVERED CANCELLED");
}

END_TEST

/* One that is not configured any more has no limit. */
START_TEST(each_program_has_its_own_limit_at_a_restart)
{
    static const struct queue_run_limit limits[] = {{"once", 1}, {"thrice", 3}};
    int returned;
    const int64_t once = need("once"), thrice = need("thrice"), gone = need("gone");
    const int64_t failed = waiting_job("brain", once);
    waiting_job("skull", thrice);
    waiting_job("jaw", gone);
    ck_assert_int_eq(queue_start_run(s.queue, thrice, 0, "", "", NOW), 0);
    ck_assert_int_eq(queue_delay_run(s.queue, thrice, NOW, "", true, &ill, NOW), 0);
    assert_ready(NOW, "1 2 3");
    ck_assert_int_eq(queue_start_run(s.queue, once, 0, "", "", NOW), 0);
    ck_assert_int_eq(queue_start_run(s.queue, thrice, 1, "", "", NOW), 0);
    ck_assert_int_eq(queue_start_run(s.queue, gone, 2, "", "", NOW), 0);
    ck_assert_int_eq(queue_recover_runs(s.queue, limits, 2, NOW, &returned), 0);
    sample_assert_sound(s.queue);
    ck_assert_int_eq(returned, 2);
    assert_run(once, "FAILED 1 CRASHED");
    assert_run(thrice, "READY 2 ");
    assert_run(gone, "READY 1 ");
    assert_job(failed, "FAILED CRASHED");
}

END_TEST

START_TEST(runs_of_a_kind_that_waits_are_left_out)
{
    const int64_t net = need("net"), light = need("light");
    waiting_job("brain", net);
    waiting_job("skull", light);
    assert_ready(NOW, "1 2");
    assert_ready_except(NOW, "\nnet \n", "2");
    assert_ready_except(NOW, "\nnet shared\n\nlight \n", "1");
    /* One that is to compute elsewhere is of another kind. */
    start(net);
    ck_assert_int_eq(queue_delay_run(s.queue, net, NOW, "cpu", true, &ill, NOW), 0);
    assert_ready_except(NOW, "\nnet \n", "1 2");
    assert_ready_except(NOW, "\nnet cpu\n", "2");
}

END_TEST

START_TEST(a_job_in_slurm_carries_its_run)
{
    const struct queue_lane node = {"slurm", 0, "slurm", "n1"};
    struct queue_run *runs;
    struct queue_ids to_stop;
    size_t count;
    int returned;
    const int64_t run = need("net"), carrier = add_job("brain", 5), other = waiting_job("skull", run);
    ck_assert_int_eq(queue_tie_run(s.queue, carrier, run, NOW), 0);
    ck_assert_int_eq(queue_start_at(s.queue, carrier, &node, NOW), 0);
    ck_assert_int_eq(queue_carry_run(s.queue, run, carrier, NOW), 0);
    sample_assert_sound(s.queue);
    ck_assert_int_eq(queue_job_runs(s.queue, carrier, &runs, &count), 0);
    ck_assert_int_eq(runs[0].carrier, carrier);
    queue_run_clear(&runs[0]);
    free(runs);
    /* It outlives the daemon. */
    ck_assert_int_eq(queue_recover_runs(s.queue, &(struct queue_run_limit){"net", 1}, 1, NOW, &returned), 0);
    ck_assert_int_eq(returned, 0);
    ck_assert_int_eq(queue_runs_to_stop(s.queue, &to_stop), 0);
    ck_assert_uint_eq(to_stop.count, 0);
    free(to_stop.at);
    assert_run(run, "RUNNING 1 ");
    /* Its attempt failed: the run waits for the next one, or for a process here. */
    ck_assert_int_eq(queue_delay_job(s.queue, carrier, NOW + 1, false, CODE_CRASHED, "", NOW), 0);
    sample_assert_sound(s.queue);
    assert_run(run, "READY 1 ");
    ck_assert_int_eq(queue_next_due(s.queue, &(int64_t){0}), 0);
    assert_ready(NOW, "1");
    cancel(other);
    assert_run(run, "READY 1 ");
    cancel(carrier);
    assert_run(run, "CANCELLED 1 ");
    assert_events(run, "PLANNED STARTED RETURNED CANCELLED");
}

END_TEST

START_TEST(a_carrier_that_ends_well_leaves_a_mask)
{
    const struct queue_lane node = {"slurm", 0, "slurm", "n1"};
    const int64_t run = need("net"), carrier = add_job("brain", 5);
    ck_assert_int_eq(queue_tie_run(s.queue, carrier, run, NOW), 0);
    ck_assert_int_eq(queue_start_at(s.queue, carrier, &node, NOW), 0);
    ck_assert_int_eq(queue_carry_run(s.queue, run, carrier, NOW), 0);
    const int64_t other = waiting_job("skull", run);
    ck_assert_int_eq(finish(run), 1);
    ck_assert_int_eq(sample_finish(s.queue, carrier), 0);
    sample_assert_sound(s.queue);
    assert_job(other, "READY ");
    assert_answer(&s, "SELECT executor || state FROM v_program_runs", "slurmDONE");
}

END_TEST

static void
hold(const char *kind, const char *name, bool releases)
{
    const struct queue_hold held = {kind, name, "jane", ""};
    ck_assert_int_eq((releases ? queue_release : queue_hold)(s.queue, &held, NOW), 0);
}

START_TEST(runs_start_in_the_order_of_their_jobs)
{
    const int64_t low = need("low"), high = need("high"), soon = need("soon"), both = need("both");
    const int64_t one = add_job("a", 1), two = add_job("b", 9);
    await(one, low, both);
    await(two, high, 0);
    int64_t three;
    struct queue_ids running;
    const struct queue_new_job new_job = {
        .series_id = series, .revision = 1, .stack = "", .pipeline = "c", .settings = "c", .done_by_ms = NOW + 3600000};
    ck_assert_int_eq(queue_add_job(s.queue, &new_job, NOW, &three, &running), 0);
    await(three, soon, 0);
    assert_ready(NOW, "3 2 4 1"); /* of one job: by the name of the program */
    hold("pipeline", "c", false);
    assert_ready(NOW, "2 4 1");
    hold("job", "2", false);
    assert_ready(NOW, "4 1");
    await(add_job("d", 7), high, 0); /* another job needs it */
    assert_ready(NOW, "2 4 1");
    hold("queue", "", false);
    assert_ready(NOW, "");
    hold("queue", "", true);
    const struct queue_window windows[] = {{.pipeline = "a", .text = "22:00-06:00"}};
    ck_assert_int_eq(queue_set_windows(s.queue, windows, 1, NOW), 0);
    assert_ready(NOW, "2");
}

END_TEST

START_TEST(late_slices_supersede_waiting_jobs_and_runs)
{
    enum queue_arrival arrival;
    int64_t id, failed, next;
    const int64_t ready = need("net"), runs = need("runs");
    const int64_t one = waiting_job("brain", ready), two = waiting_job("skull", runs);
    start(runs);
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 4, &arrival, &id), 0);
    sample_assert_sound(s.queue);
    assert_ready(NOW, ""); /* until the series is complete */
    ck_assert_int_eq(queue_start_run(s.queue, ready, 1, "", "", NOW), -EAGAIN);
    assert_run(ready, "READY 0 ");
    ck_assert_int_eq(sample_settle(s.queue, series, 2), 0);
    assert_ready(NOW, "");
    assert_job(one, "CANCELLED SUPERSEDED");
    assert_run(ready, "CANCELLED 0 ");
    ck_assert_int_eq(queue_fail_run(s.queue, runs, &ill, NOW, &failed), 0);
    assert_job(two, "CANCELLED SUPERSEDED");
    ck_assert_int_eq(sample_add_job(s.queue, series, 2, &next), 0);
    const int64_t of_new = need_for(series, 2, "net", false);
    ck_assert_int_ne(of_new, ready);
    await(next, of_new, 0);
    assert_ready(NOW, "3");
}

END_TEST

START_TEST(what_a_job_lacks_may_change_while_it_waits)
{
    struct queue_job job;
    const int64_t id = waiting_job("brain", need("net"));
    ck_assert_int_eq(queue_get_job(s.queue, id, &job), 0);
    ck_assert(job.awaits && job.awaits_program && !job.awaits_study);
    queue_job_clear(&job);
    /* An object is missing again: the job fails, since its patience counted from its creation. */
    ck_assert_int_eq(queue_job_lacks(s.queue, id, CODE_OBJECT_WAITING, "It waits for a SEG.", NOW), 0);
    assert_answer(&s, "SELECT code || not_before_at FROM v_jobs", "OBJECT_WAITING2026-01-31T02:03:30.000Z");
    ck_assert_int_eq(queue_job_lacks(s.queue, id, CODE_PROGRAM_WAITING, "It waits again.", NOW), 0);
    assert_answer(&s, "SELECT code || not_before_at IS NULL FROM v_jobs", "1");
    assert_ready(NOW, "1");
}

END_TEST

START_TEST(a_clock_that_is_set_moves_only_limits)
{
    int64_t due;
    const int64_t run = need("net");
    waiting_job("brain", run);
    start(run);
    ck_assert_int_eq(queue_delay_run(s.queue, run, NOW + 60000, "", true, &ill, NOW), 0);
    ck_assert_int_eq(queue_clock_was_set(s.queue, -3600000), 0);
    ck_assert_int_eq(queue_next_run_due(s.queue, &due), 0);
    ck_assert_int_eq(due, NOW + 60000 - 3600000);
    ck_assert_int_eq(queue_bound_waits(s.queue, NOW - 7200000, NOW), 0);
    ck_assert_int_eq(queue_next_run_due(s.queue, &due), 0);
    ck_assert_int_eq(due, NOW - 7200000);
    ck_assert_int_eq(queue_next_due(s.queue, &due), -ENOENT);
    assert_answer(&s, "SELECT state || code FROM v_jobs", "DELAYEDPROGRAM_WAITING");
}

END_TEST

/* Ends a job with the mask of a run, and leaves a failed run, so that the series may be removed. */
static void
work_on_series(void)
{
    int64_t failed;
    const int64_t run = need("net"), job = waiting_job("brain", run), bad = need("bad");
    waiting_job("skull", bad);
    start(run);
    finish(run);
    start(bad);
    ck_assert_int_eq(queue_fail_run(s.queue, bad, &ill, NOW, &failed), 0);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, NOW), 0);
    const struct queue_finish empty = {QUEUE_EMPTY, &sample_figures, NULL, 0, CODE_NONE, ""};
    ck_assert_int_eq(queue_finish_job(s.queue, job, &empty, NOW), 0);
}

START_TEST(retention_removes_masks_with_the_images)
{
    size_t count;
    work_on_series();
    struct queue_sweep sweep = {.why = "90 days old"};
    sweep.before_ms[QUEUE_STOCK_SERIES] = NOW + 3600000;
    ck_assert_int_eq(queue_sweep(s.queue, &sweep, 100, NOW + 3600000, &count), 0);
    sample_assert_sound(s.queue);
    assert_answer(&s, "SELECT group_concat(path, ' ') FROM (SELECT path FROM removal WHERE path LIKE 'programs/%')",
                  "programs/1 programs/2");
    assert_answer(&s, "SELECT count(*) FROM v_program_runs WHERE removed_at IS NOT NULL AND mask_path IS NULL", "2");
    ck_assert_int_eq(queue_run_has_files(s.queue, 1), 0);
    /* The rows go last. */
    sweep = (struct queue_sweep){.why = "old"};
    sweep.before_ms[QUEUE_STOCK_ROWS] = NOW + 36000000;
    ck_assert_int_eq(queue_sweep(s.queue, &sweep, 100, NOW + 3600000, &count), 0);
    sample_assert_sound(s.queue);
    assert_answer(&s,
                  "SELECT (SELECT count(*) FROM program_run) || (SELECT count(*) FROM job_mask) || "
                  "(SELECT count(*) FROM v_jobs) || (SELECT count(*) FROM v_series)",
                  "0000");
}

END_TEST

START_TEST(purge_waits_for_a_running_program_and_removes_masks)
{
    struct queue_purged purged;
    const struct queue_purge purge = {.series_uid = "1.2.3", .before = "", .by = "jane"};
    const int64_t run = need("net"), job = waiting_job("brain", run);
    ck_assert_int_eq(queue_purge(s.queue, &purge, NOW, &purged), -EAGAIN);
    start(run);
    cancel(job);
    ck_assert_int_eq(queue_purge(s.queue, &purge, NOW, &purged), -EAGAIN);
    ck_assert_str_eq(queue_reason(s.queue), "run 1 of a program on the series ends: wait");
    finish(run);
    ck_assert_int_eq(queue_purge(s.queue, &purge, NOW, &purged), 0);
    sample_assert_sound(s.queue);
    ck_assert_int_eq(purged.bytes, 3 * 525312 + 1000);
    assert_answer(&s, "SELECT count(*) FROM removal WHERE path = 'programs/1'", "1");
    assert_answer(&s, "SELECT removed_at IS NOT NULL FROM v_program_runs", "1");
}

END_TEST

START_TEST(checks_of_programs_are_stored_and_noted)
{
    struct queue_program programs[] = {
        {.name = "net", .identity = "", .program_sha256 = "", .weights_sha256 = "", .sandbox = "", .message = ""},
        {.name = "old", .identity = "1", .program_sha256 = "2", .weights_sha256 = "", .sandbox = "own", .message = ""},
    };
    ck_assert_int_eq(queue_set_programs(s.queue, programs, 2, NOW), 0);
    assert_answer(&s, "SELECT group_concat(program || ' ' || state, ', ') FROM v_programs", "net WAITING, old READY");
    programs[0].identity = "abc";
    programs[0].code = CODE_PROGRAM_UNAVAILABLE;
    programs[0].message = "/opt/net is absent";
    programs[0].weights_bytes = 3 << 19;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(queue_set_programs(s.queue, programs, 1, NOW + 1000 + i), 0);
    assert_answer(&s, "SELECT program || state || code || since_at || weights_mib FROM v_programs",
                  "netBROKENPROGRAM_UNAVAILABLE2026-01-31T02:03:31.000Z1.5");
    assert_answer(&s, "SELECT alert || ' ' || text FROM v_alerts WHERE alert LIKE 'program%'",
                  "program_broken:net program net cannot run: /opt/net is absent");
    programs[0].code = CODE_NONE;
    programs[0].message = "";
    ck_assert_int_eq(queue_set_programs(s.queue, programs, 1, NOW + 2000), 0);
    assert_answer(&s, "SELECT count(*) FROM v_alerts WHERE alert LIKE 'program%'", "0");
    assert_answer(&s, "SELECT group_concat(kind || ' ' || detail, '; ') FROM v_events WHERE kind LIKE 'PROGRAM_%'",
                  "PROGRAM_READY net; PROGRAM_READY old; PROGRAM_BROKEN net, PROGRAM_UNAVAILABLE; PROGRAM_READY net");
    assert_answer(&s, "SELECT identity FROM v_programs", "abc");
}

END_TEST

/* Five runs of today: 1, 2, 4 and 8 s DONE, one FAILED, with two starts. */
START_TEST(figures_of_a_program_are_as_counted_by_hand)
{
    const struct queue_program program = {
        .name = "net", .identity = "abc", .program_sha256 = "", .weights_sha256 = "", .sandbox = "own", .message = ""};
    char uid[32];
    ck_assert_int_eq(queue_set_programs(s.queue, &program, 1, NOW), 0);
    for (int i = 0; i < 5; i++) {
        struct queue_run_end end = i < 4 ? well : ill;
        int64_t count, run, job;
        end.write_seconds = 0.25;
        end.program_seconds = (1 << i) - 0.75;
        end.starts = i == 0 || i == 4;
        end.peak_bytes = (int64_t)(i + 1) << 20;
        snprintf(uid, sizeof uid, "1.2.3.%d", i);
        job = sample_job(s.queue, uid);
        series = i + 2;
        run = need("net");
        await(job, run, 0);
        ck_assert_int_eq(queue_start_run(s.queue, run, 0, "", i == 3 ? "cpu" : "", NOW), 0);
        if (i < 4)
            ck_assert_int_eq(queue_finish_run(s.queue, run, &end, NOW, &count), 0);
        else
            ck_assert_int_eq(queue_fail_run(s.queue, run, &end, NOW, &count), 0);
        if (i == 4)
            need("other");
    }
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "UPDATE program_run SET ended_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', "
                                  "(id - 10) || ' seconds') WHERE ended_at IS NOT NULL",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_answer(&s,
                  "SELECT json_array(waiting, running, runs, failed, starts, cases_per_start, mean_seconds, "
                  "median_seconds, max_seconds, mean_write_seconds, mean_read_seconds, max_peak_mib, whole_runs, "
                  "cpu_runs, last_code, last_ended_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) FROM v_programs",
                  "[0,0,5,1,2,2.5,3.75,3.0,8.0,0.25,0.5,5.0,0,1,\"PROGRAM_CRASHED\",1]");
}

END_TEST

SAMPLE_MAIN("db_programs", set_up, tear_down, two_jobs_share_one_run_and_its_end_releases_them,
            a_need_is_of_one_stack_grid_and_identity, a_job_of_two_programs_waits_for_both,
            a_failed_run_fails_its_jobs_with_its_code, the_end_of_the_last_job_cancels_a_run,
            a_running_run_without_a_job_is_to_be_stopped, a_cancelled_run_unties_its_jobs,
            a_transient_failure_waits_and_becomes_due, guards_refuse_other_states, a_run_again_supersedes_the_mask,
            a_retry_takes_the_stored_mask, a_restart_returns_runs_or_fails_them,
            each_program_has_its_own_limit_at_a_restart, runs_of_a_kind_that_waits_are_left_out,
            a_job_in_slurm_carries_its_run, a_carrier_that_ends_well_leaves_a_mask,
            runs_start_in_the_order_of_their_jobs, late_slices_supersede_waiting_jobs_and_runs,
            what_a_job_lacks_may_change_while_it_waits, a_clock_that_is_set_moves_only_limits,
            retention_removes_masks_with_the_images, purge_waits_for_a_running_program_and_removes_masks,
            checks_of_programs_are_stored_and_noted, figures_of_a_program_are_as_counted_by_hand)
