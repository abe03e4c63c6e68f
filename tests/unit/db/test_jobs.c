/* Jobs: every call, and every edge from every state: legal ones succeed, others return -EAGAIN. */
#include "tests/unit/db/sample.h"

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

/* ------------------------------------------------------------------------------ the diagram -- */

enum edge { START, DONE, EMPTY, REVIEW, ACCEPT, REJECT, FAIL, DELAY, RETURN, CANCEL, RETRY, EDGE_COUNT };

#define NOWHERE                                                                                                        \
    {                                                                                                                  \
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1                                                                     \
    }

/* The target of each edge; -1: it does not leave this state. */
static const int leads[QUEUE_CANCELLED + 1][EDGE_COUNT] = {
    /* clang-format off */
    /*                   START          DONE        EMPTY        REVIEW        ACCEPT      REJECT          FAIL          DELAY          RETURN       CANCEL           RETRY */
    [QUEUE_READY]     = {QUEUE_RUNNING, -1,         -1,          -1,           -1,         -1,             -1,           -1,            -1,          QUEUE_CANCELLED, -1},
    [QUEUE_RUNNING]   = {-1,            QUEUE_DONE, QUEUE_EMPTY, QUEUE_REVIEW, -1,         -1,             QUEUE_FAILED, QUEUE_DELAYED, QUEUE_READY, QUEUE_CANCELLED, -1},
    [QUEUE_DONE]      = NOWHERE,
    [QUEUE_EMPTY]     = NOWHERE,
    [QUEUE_REVIEW]    = {-1,            -1,         -1,          -1,           QUEUE_DONE, QUEUE_REJECTED, -1,           -1,            -1,          -1,              -1},
    [QUEUE_REJECTED]  = NOWHERE,
    [QUEUE_DELAYED]   = {-1,            -1,         -1,          -1,           -1,         -1,             -1,           -1,            -1,          QUEUE_CANCELLED, QUEUE_READY},
    [QUEUE_FAILED]    = {-1,            -1,         -1,          -1,           -1,         -1,             -1,           -1,            -1,          -1,              QUEUE_READY},
    [QUEUE_CANCELLED] = {-1,            -1,         -1,          -1,           -1,         -1,             -1,           -1,            -1,          -1,              QUEUE_READY},
    /* clang-format on */
};

static int
take(enum edge edge, int64_t job)
{
    bool was_running;
    switch (edge) {
    case START:
        return queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000);
    case DONE:
        return sample_finish(s.queue, job);
    case EMPTY:
        return queue_finish_job(s.queue, job,
                                &(struct queue_finish){QUEUE_EMPTY, &sample_figures, NULL, 0, CODE_EMPTY, "no voxel"},
                                SAMPLE_NOW + 4000);
    case REVIEW:
        return sample_review(s.queue, job);
    case ACCEPT:
        return queue_accept_job(s.queue, job, NULL, NULL, 0, "jane", SAMPLE_NOW + 5000);
    case REJECT:
        return queue_reject_job(s.queue, job, "it is the table", "jane", SAMPLE_NOW + 5000);
    case FAIL:
        return queue_fail_job(s.queue, job, CODE_FILE_UNREADABLE, "a cannot be read", "a", "b", SAMPLE_NOW + 4000);
    case DELAY:
        return queue_delay_job(s.queue, job, SAMPLE_NOW + 9000, true, CODE_DISK_FULL, "disk full", SAMPLE_NOW + 4000);
    case RETURN:
        return queue_return_job(s.queue, job, "drain", SAMPLE_NOW + 4000);
    case CANCEL:
        return queue_cancel_job(s.queue, job, SAMPLE_NOW + 4000, &was_running);
    case RETRY: {
        int64_t same;
        int rc = sample_retry(s.queue, job, false, &same);
        ck_assert(rc < 0 || same == job);
        return rc == -EEXIST ? -EAGAIN : rc; /* it has ended well */
    }
    case EDGE_COUNT:
        break;
    }
    return -EINVAL;
}

/* A job in `state`, by legal edges. */
static int64_t
job_in(enum queue_job_state state, const char *series_uid)
{
    static const enum edge last[QUEUE_CANCELLED + 1] = {
        [QUEUE_DONE] = DONE,     [QUEUE_EMPTY] = EMPTY, [QUEUE_REVIEW] = REVIEW,    [QUEUE_REJECTED] = REVIEW,
        [QUEUE_DELAYED] = DELAY, [QUEUE_FAILED] = FAIL, [QUEUE_CANCELLED] = CANCEL,
    };

    int64_t job = sample_job(s.queue, series_uid);
    if (state != QUEUE_READY)
        ck_assert_int_eq(take(START, job), 0);
    if (state != QUEUE_READY && state != QUEUE_RUNNING)
        ck_assert_int_eq(take(last[state], job), 0);
    if (state == QUEUE_REJECTED)
        ck_assert_int_eq(take(REJECT, job), 0);
    ck_assert_int_eq(sample_state(s.queue, job), state);
    return job;
}

/* Frees the lane for the next job. */
static void
stop_running(int64_t job)
{
    if (sample_state(s.queue, job) == QUEUE_RUNNING)
        ck_assert_int_eq(take(FAIL, job), 0);
}

START_TEST(every_edge_from_every_state)
{
    for (int state = QUEUE_READY; state <= QUEUE_CANCELLED; state++) {
        for (int edge = START; edge < EDGE_COUNT; edge++) {
            char uid[32], sql[160], before[16], events[16];
            snprintf(uid, sizeof uid, "1.%d.%d", state, edge);
            int64_t job = job_in((enum queue_job_state)state, uid);
            snprintf(before, sizeof before, "%s", sample_ask(&s, "SELECT count(*) FROM v_events"));
            int to = leads[state][edge];
            int rc = take((enum edge)edge, job);
            ck_assert_msg(rc == (to < 0 ? -EAGAIN : 0), "edge %d from %s: %d", edge,
                          queue_job_state_name((enum queue_job_state)state), rc);
            ck_assert_int_eq(sample_state(s.queue, job), to < 0 ? state : to);
            /* One event per change, no event for a refusal. */
            snprintf(events, sizeof events, "%d", atoi(before) + (to >= 0));
            assert_answer(&s, "SELECT count(*) FROM v_events", events);
            if (to >= 0) {
                char expected[64];
                snprintf(sql, sizeof sql,
                         "SELECT from_state || '>' || to_state || '>' || job FROM v_events "
                         "ORDER BY event DESC");
                snprintf(expected, sizeof expected, "%s>%s>%d", queue_job_state_name((enum queue_job_state)state),
                         queue_job_state_name((enum queue_job_state)to), (int)job);
                assert_answer(&s, sql, expected);
            }
            sample_assert_sound(s.queue);
            stop_running(job);
        }
    }
}

END_TEST

START_TEST(all_transitions_of_a_missing_job_fail)
{
    for (int edge = START; edge < EDGE_COUNT; edge++)
        ck_assert_int_eq(take((enum edge)edge, 4711), -ENOENT);
    ck_assert_str_eq(queue_reason(s.queue), "there is no job 4711");
    struct queue_job job;
    ck_assert_int_eq(queue_get_job(s.queue, 4711, &job), -ENOENT);
}

END_TEST

START_TEST(states_have_names)
{
    static const char *const names[] = {"READY",    "RUNNING", "DONE",   "EMPTY",    "REVIEW",
                                        "REJECTED", "DELAYED", "FAILED", "CANCELLED"};
    for (int i = QUEUE_READY; i <= QUEUE_CANCELLED; i++)
        ck_assert_str_eq(queue_job_state_name((enum queue_job_state)i), names[i]);
    ck_assert_str_eq(queue_job_state_name((enum queue_job_state)99), "UNKNOWN");
}

END_TEST

/* ----------------------------------------------------------------------------------- adding -- */

START_TEST(a_job_is_added_once)
{
    int64_t series = sample_series(s.queue, "1.2.3", 3), job, again;
    ck_assert_int_eq(sample_add_job(s.queue, series, 1, &job), -EAGAIN); /* still gathering */
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 1, &job), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 1, &again), -EEXIST);
    ck_assert_int_eq(sample_add_job(s.queue, series, 2, &again), -EAGAIN);
    ck_assert_int_eq(sample_add_job(s.queue, 4711, 1, &again), -ENOENT);
    struct queue_ids running;
    ck_assert_int_eq(queue_add_job(s.queue,
                                   &(struct queue_new_job){series, 1, "no such stack", "head-ct", "", 5, false, NULL,
                                                           false, 0, NULL, CODE_NONE, 0, NULL, 0, 0, 0},
                                   SAMPLE_NOW, &again, &running),
                     -EAGAIN);
    ck_assert_int_eq(queue_add_job(s.queue,
                                   &(struct queue_new_job){series, 1, "", "other", "", 5, false, NULL, false, 0, NULL,
                                                           CODE_NONE, 0, NULL, 0, 0, 0},
                                   SAMPLE_NOW, &again, &running),
                     0);
    ck_assert_ptr_null(running.at);
    ck_assert_uint_eq(running.count, 0);
    assert_answer(&s, "SELECT count(*) FROM v_jobs", "2");
    assert_answer(&s, "SELECT jobs FROM v_series", "2");
}

END_TEST

START_TEST(a_refused_stack_gets_no_job)
{
    int64_t series = sample_series(s.queue, "1.2.3", 3), job;
    struct queue_stack stacks[] = {{.name = "a", .accepted = true}, {.name = "b", .code = CODE_MISSING_SLICE}};
    ck_assert_int_eq(queue_settle(s.queue, series, 1, "", stacks, 2, SAMPLE_NOW), 0);
    struct queue_ids running;
    ck_assert_int_eq(queue_add_job(s.queue,
                                   &(struct queue_new_job){series, 1, "b", "head-ct", "", 0, false, NULL, false, 0,
                                                           NULL, CODE_NONE, 0, NULL, 0, 0, 0},
                                   SAMPLE_NOW, &job, &running),
                     -EAGAIN);
    ck_assert_int_eq(queue_add_job(s.queue,
                                   &(struct queue_new_job){series, 1, "a", "head-ct", "", 0, false, NULL, false, 0,
                                                           NULL, CODE_NONE, 0, NULL, 0, 0, 0},
                                   SAMPLE_NOW, &job, &running),
                     0);
}

END_TEST

START_TEST(a_job_is_read_back)
{
    int64_t id = sample_job(s.queue, "1.2.3");
    struct queue_job job;
    ck_assert_int_eq(queue_get_job(s.queue, id, &job), 0);
    ck_assert_int_eq(job.id, id);
    ck_assert_int_eq(job.revision, 1);
    ck_assert_str_eq(job.series_uid, "1.2.3");
    ck_assert_str_eq(job.stack, "");
    ck_assert_str_eq(job.pipeline, "head-ct");
    ck_assert_str_eq(job.settings, "name = \"head-ct\";");
    ck_assert_int_eq(job.priority, 5);
    ck_assert_int_eq(job.attempts, 0);
    ck_assert_int_eq(job.state, QUEUE_READY);
    ck_assert_int_eq(job.not_before_ms, 0);
    ck_assert(!job.alone);
    queue_job_clear(&job);
    ck_assert_ptr_null(job.settings);
    assert_answer(&s, "SELECT kind || to_state || detail FROM v_events ORDER BY event DESC", "JOB_ADDEDREADYhead-ct");
}

END_TEST

START_TEST(settings_are_stored_once)
{
    sample_job(s.queue, "1.2.3");
    sample_job(s.queue, "1.2.4");
    assert_answer(&s, "SELECT count(*) FROM settings", "1");
}

END_TEST

/* ------------------------------------------------------------------------------- superseding - */

static int32_t
late_slice(const char *series_uid, int number)
{
    enum queue_arrival arrival;
    int64_t id;
    struct queue_series series;
    ck_assert_int_eq(sample_add(s.queue, series_uid, number, &arrival, &id), 0);
    ck_assert_int_eq(queue_get_series(s.queue, id, &series), 0);
    int32_t revision = series.revision;
    queue_series_clear(&series);
    return revision;
}

/* One job of revision 1 in each state, then a late slice and the job of revision 2. */
START_TEST(a_new_revision_supersedes_the_older_one)
{
    for (int state = QUEUE_READY; state <= QUEUE_CANCELLED; state++) {
        char uid[32], sql[200], expected[64];
        snprintf(uid, sizeof uid, "1.2.%d", state);
        int64_t old = job_in((enum queue_job_state)state, uid), series, job;
        struct queue_ids running;
        ck_assert_int_eq(late_slice(uid, 9), 2);
        ck_assert_int_eq(queue_find_series(s.queue, uid, &series), 0);
        ck_assert_int_eq(sample_settle(s.queue, series, 2), 0);
        ck_assert_int_eq(queue_add_job(s.queue,
                                       &(struct queue_new_job){series, 2, "", "head-ct", "", 5, false, NULL, false, 0,
                                                               NULL, CODE_NONE, 0, NULL, 0, 0, 0},
                                       SAMPLE_NOW + 5000, &job, &running),
                         0);
        bool unfinished = state == QUEUE_READY || state == QUEUE_RUNNING || state == QUEUE_DELAYED;
        ck_assert_uint_eq(running.count, state == QUEUE_RUNNING);
        if (running.count)
            ck_assert_int_eq(running.at[0], old);
        free(running.at);
        const bool reviewed = state == QUEUE_REVIEW;
        const int then = unfinished ? QUEUE_CANCELLED : reviewed ? QUEUE_REJECTED : state;
        snprintf(sql, sizeof sql,
                 "SELECT state || ' ' || superseded_by || ' ' || (code = 'SUPERSEDED') "
                 "FROM v_jobs WHERE job = %d",
                 (int)old);
        snprintf(expected, sizeof expected, "%s %d %d", queue_job_state_name((enum queue_job_state)then), (int)job,
                 unfinished || reviewed);
        assert_answer(&s, sql, expected);
        ck_assert_int_eq(take(RETRY, old), -ESTALE);
        ck_assert_int_eq(sample_state(s.queue, job), QUEUE_READY);
    }
}

END_TEST

START_TEST(several_running_jobs_are_reported)
{
    int64_t series = sample_series(s.queue, "1.2.3", 3), job;
    struct queue_ids running;
    for (int32_t revision = 1; revision <= 3; revision++) {
        if (revision > 1)
            ck_assert_int_eq(late_slice("1.2.3", 10 + revision), revision);
        ck_assert_int_eq(sample_settle(s.queue, series, revision), 0);
        ck_assert_int_eq(queue_add_job(s.queue,
                                       &(struct queue_new_job){series, revision, "", "head-ct", "", 5, false, NULL,
                                                               false, 0, NULL, CODE_NONE, 0, NULL, 0, 0, 0},
                                       SAMPLE_NOW, &job, &running),
                         0);
        ck_assert_uint_eq(running.count, revision > 1);
        free(running.at);
        ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", revision, SAMPLE_NOW), 0);
    }
    assert_answer(&s, "SELECT group_concat(state || coalesce(superseded_by, ''), ' ') FROM v_jobs",
                  "CANCELLED2 CANCELLED3 RUNNING");
}

END_TEST

/* An image was replaced between the start of the job and its reading: the job of the newer revision reads the new one. */
START_TEST(a_failure_of_an_older_revision_does_not_count)
{
    int64_t old = job_in(QUEUE_RUNNING, "1.2.3");
    ck_assert_int_eq(late_slice("1.2.3", 9), 2);
    ck_assert_int_eq(take(FAIL, old), 0);
    assert_answer(&s, "SELECT state || ' ' || code FROM v_jobs", "CANCELLED SUPERSEDED");
    assert_answer(&s, "SELECT jobs_failed_24h FROM v_night", "0");
}

END_TEST

START_TEST(another_pipeline_is_not_superseded)
{
    int64_t series = sample_series(s.queue, "1.2.3", 3), other, job;
    struct queue_ids running;
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    ck_assert_int_eq(queue_add_job(s.queue,
                                   &(struct queue_new_job){series, 1, "", "other", "", 5, false, NULL, false, 0, NULL,
                                                           CODE_NONE, 0, NULL, 0, 0, 0},
                                   SAMPLE_NOW, &other, &running),
                     0);
    ck_assert_int_eq(take(START, other), 0);
    ck_assert_int_eq(late_slice("1.2.3", 9), 2);
    ck_assert_int_eq(sample_settle(s.queue, series, 2), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 2, &job), 0);
    ck_assert_int_eq(sample_state(s.queue, other), QUEUE_RUNNING);
}

END_TEST

/* ------------------------------------------------------------------------------------- ready - */

static size_t
ready(int64_t now_ms, size_t limit, int64_t *ids, size_t capacity)
{
    struct queue_job *jobs;
    size_t count;
    ck_assert_int_eq(queue_ready(s.queue, now_ms, 0, limit, "", &jobs, &count), 0);
    ck_assert_uint_le(count, capacity);
    for (size_t i = 0; i < count; i++) {
        ids[i] = jobs[i].id;
        ck_assert_int_eq(jobs[i].state, QUEUE_READY);
        queue_job_clear(&jobs[i]);
    }
    free(jobs);
    return count;
}

START_TEST(ready_is_ordered_by_priority_then_age)
{
    int64_t series = sample_series(s.queue, "1.2.3", 3), ids[64];
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    ck_assert_uint_eq(ready(SAMPLE_NOW, 64, ids, 64), 0);
    for (int i = 0; i < 40; i++) {
        char pipeline[16];
        int64_t job;
        struct queue_ids running;
        snprintf(pipeline, sizeof pipeline, "p%d", i);
        ck_assert_int_eq(queue_add_job(s.queue,
                                       &(struct queue_new_job){series, 1, "", pipeline, "", i % 4, false, NULL, false,
                                                               0, NULL, CODE_NONE, 0, NULL, 0, 0, 0},
                                       SAMPLE_NOW, &job, &running),
                         0);
        ck_assert_int_eq(job, i + 1);
    }
    ck_assert_uint_eq(ready(SAMPLE_NOW, 64, ids, 64), 40);
    for (int i = 0; i < 40; i++) {
        int priority = 3 - i / 10, nth = i % 10;
        ck_assert_int_eq(ids[i], 4 * nth + priority + 1);
    }
    ck_assert_uint_eq(ready(SAMPLE_NOW, 3, ids, 3), 3);
    ck_assert_uint_eq(ready(SAMPLE_NOW, 0, ids, 0), 0);
}

END_TEST

START_TEST(delayed_jobs_become_ready_when_due)
{
    int64_t job = job_in(QUEUE_DELAYED, "1.2.3"), ids[4], due;
    struct queue_job row;
    ck_assert_int_eq(queue_get_job(s.queue, job, &row), 0);
    ck_assert_int_eq(row.not_before_ms, SAMPLE_NOW + 9000);
    ck_assert(row.alone);
    ck_assert_str_eq(row.failed_on, "worker-0");
    ck_assert_int_eq(row.attempts, 1);
    queue_job_clear(&row);
    assert_answer(&s, "SELECT not_before_at || ' ' || code FROM v_jobs", "2026-01-31T02:03:29.000Z DISK_FULL");
    ck_assert_int_eq(queue_next_due(s.queue, &due), 0);
    ck_assert_int_eq(due, SAMPLE_NOW + 9000);
    ck_assert_uint_eq(ready(SAMPLE_NOW + 8999, 4, ids, 4), 0);
    ck_assert_uint_eq(ready(SAMPLE_NOW + 9000, 4, ids, 4), 1);
    ck_assert_int_eq(ids[0], job);
    ck_assert_int_eq(queue_next_due(s.queue, &due), -ENOENT);
    ck_assert_int_eq(take(START, job), 0);
    assert_answer(&s, "SELECT attempts || code FROM v_jobs", "2");
    ck_assert_int_eq(queue_get_job(s.queue, job, &row), 0);
    ck_assert(row.alone);
    ck_assert_str_eq(row.failed_on, "");
    queue_job_clear(&row);
}

END_TEST

START_TEST(next_due_is_the_earliest)
{
    int64_t due;
    for (int i = 0; i < 3; i++) {
        char uid[16];
        snprintf(uid, sizeof uid, "1.%d", i);
        int64_t job = job_in(QUEUE_RUNNING, uid);
        ck_assert_int_eq(queue_delay_job(s.queue, job, SAMPLE_NOW + 5000 - i, false, CODE_NONE, "", SAMPLE_NOW), 0);
    }
    ck_assert_int_eq(queue_next_due(s.queue, &due), 0);
    ck_assert_int_eq(due, SAMPLE_NOW + 4998);
}

END_TEST

START_TEST(a_job_of_an_older_revision_never_starts)
{
    int64_t job = sample_job(s.queue, "1.2.3"), series, ids[4];
    ck_assert_int_eq(late_slice("1.2.3", 9), 2);
    /* The series is being received again: the job waits. */
    ck_assert_uint_eq(ready(SAMPLE_NOW, 4, ids, 4), 0);
    ck_assert_int_eq(take(START, job), -EAGAIN);
    ck_assert_int_eq(sample_state(s.queue, job), QUEUE_READY);
    /* It is complete, and refused this time: no job replaces this one. */
    ck_assert_int_eq(queue_find_series(s.queue, "1.2.3", &series), 0);
    ck_assert_int_eq(queue_settle(s.queue, series, 2, "quiet", NULL, 0, SAMPLE_NOW), 0);
    ck_assert_uint_eq(ready(SAMPLE_NOW, 4, ids, 4), 0);
    assert_answer(&s, "SELECT state || ' ' || code FROM v_jobs", "CANCELLED SUPERSEDED");
    ck_assert_int_eq(take(RETRY, job), -ESTALE);
}

END_TEST

/* ----------------------------------------------------------------------- running and ending -- */

START_TEST(starting_counts_before_it_tries)
{
    int64_t job = job_in(QUEUE_RUNNING, "1.2.3");
    assert_answer(&s, "SELECT state || attempts || started_at FROM v_jobs", "RUNNING12026-01-31T02:03:23.000Z");
    assert_answer(&s, "SELECT wait_seconds FROM v_jobs", "1.0");
    assert_answer(&s, "SELECT kind || ' ' || detail FROM v_events ORDER BY event DESC",
                  "JOB_STARTED worker-0, lane 0, attempt 1");
    ck_assert_int_eq(take(RETURN, job), 0);
    assert_answer(&s, "SELECT state || attempts || (started_at IS NULL) FROM v_jobs", "READY01");
}

END_TEST

START_TEST(a_lane_runs_one_job)
{
    job_in(QUEUE_RUNNING, "1.2.3");
    int64_t other = sample_job(s.queue, "1.2.4");
    ck_assert_int_eq(queue_start_job(s.queue, other, "worker-0", 0, SAMPLE_NOW), -EBUSY);
    ck_assert_int_eq(sample_state(s.queue, other), QUEUE_READY);
    ck_assert_int_eq(queue_start_job(s.queue, other, "worker-0", 1, SAMPLE_NOW), 0);
    int64_t third = sample_job(s.queue, "1.2.5");
    ck_assert_int_eq(queue_start_job(s.queue, third, "worker-1", 0, SAMPLE_NOW), 0);
}

END_TEST

START_TEST(done_stores_figures_and_results)
{
    int64_t job = job_in(QUEUE_RUNNING, "1.2.3");
    struct queue_result results[] = {
        {.kind = "codes", .path = "outbox/1/codes.bin", .size = 786432},
        sample_result,
    };
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, results, 2, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
    assert_answer(&s,
                  "SELECT state || ' ' || ended_at || ' ' || read_seconds || ' ' || "
                  "compute_seconds || ' ' || write_seconds || ' ' || (verify_seconds IS NULL) || "
                  "' ' || total_seconds || ' ' || voxels || ' ' || segmented_voxels || ' ' || "
                  "peak_mib || ' ' || backend || ' ' || result_path || ' ' || "
                  "result_sop_instance_uid FROM v_jobs",
                  "DONE 2026-01-31T02:03:24.000Z 0.25 0.5 0.125 1 1.0 786432 1000 100.0 cpu "
                  "outbox/1/seg.dcm 2.25.1");
    assert_answer(&s,
                  "SELECT spacing_x_mm || ' ' || spacing_y_mm || ' ' || spacing_z_mm || ' ' || "
                  "source_x_mm || ' ' || source_y_mm || ' ' || source_step_min_mm || ' ' || "
                  "source_step_max_mm || ' ' || straightened || ' ' || straightened_because "
                  "|| ' ' || kernel || ' ' || kvp || ' ' || slice_thickness_min_mm || ' ' || slice_thickness_max_mm "
                  "FROM v_jobs",
                  "0.5 0.5 2.5 0.5 0.5 2.5 5.0 1 2.5 to 5 mm apart FC13 120.0 2.5 5.0");
    assert_answer(&s,
                  "SELECT group_concat(kind || ' ' || path || ' ' || size_bytes || ' ' || frames, "
                  "';') FROM (SELECT * FROM v_results ORDER BY path)",
                  "codes outbox/1/codes.bin 786432 0;seg outbox/1/seg.dcm 4096 3");
    assert_answer(&s,
                  "SELECT job || series_uid || sop_class_uid || sop_instance_uid || "
                  "result_series_uid FROM v_results WHERE kind = 'seg'",
                  "11.2.31.2.840.10008.5.1.4.1.1.66.42.25.12.25.2");
    assert_answer(&s, "SELECT jobs || jobs_done FROM v_series", "11");
}

END_TEST

/* Compares the objects that the results of a job replace, one per line. */
static void
expect_earlier(int64_t job, const char *expected)
{
    char **earlier, text[400] = "";
    size_t count;
    ck_assert_int_eq(queue_earlier_results(s.queue, job, &earlier, &count), 0);
    for (size_t i = 0; i < count; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s\n", earlier[i]);
        free(earlier[i]);
    }
    free(earlier);
    ck_assert_str_eq(text, expected);
}

/* Runs a DONE job again, up to its start. */
static int64_t
run_again(int64_t job)
{
    int64_t next;
    struct queue_ids running;
    const struct queue_retry retry = {.job_id = job, .again = true};
    ck_assert_int_eq(queue_retry_job(s.queue, &retry, SAMPLE_NOW, &next, &running), 0);
    free(running.at);
    expect_earlier(next, "seg.dcm 2.25.1 2.25.2 1.2.3 1.2.840.10008.5.1.4.1.1.66.4\n");
    ck_assert_int_eq(queue_start_job(s.queue, next, "worker-0", 0, SAMPLE_NOW), 0);
    return next;
}

START_TEST(a_result_replaces_an_earlier_one)
{
    int64_t first = job_in(QUEUE_RUNNING, "1.2.3");
    expect_earlier(first, "");
    ck_assert_int_eq(sample_finish(s.queue, first), 0);

    int64_t empty = run_again(first);
    ck_assert_int_eq(
        queue_finish_job(s.queue, empty,
                         &(struct queue_finish){QUEUE_EMPTY, &sample_figures, NULL, 0, CODE_EMPTY, "no voxel"},
                         SAMPLE_NOW),
        0);
    int64_t review = run_again(empty);
    ck_assert_int_eq(sample_review(s.queue, review), 0);
    int64_t second = run_again(review);
    struct queue_result results[] = {sample_result, sample_result};
    char path[2][40];
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "outbox/%lld/%s", (long long)second, i == 0 ? "seg.dcm" : "sr.dcm");
        results[i].path = path[i];
        results[i].sop_instance_uid = i == 0 ? "2.25.3" : "2.25.5";
        results[i].series_uid = i == 0 ? "2.25.4" : "2.25.6";
    }
    results[0].replaces = "2.25.1";
    results[1].sop_class_uid = "1.2.840.10008.5.1.4.1.1.88.34";
    ck_assert_int_eq(queue_finish_job(s.queue, second,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, results, 2, CODE_NONE, ""},
                                      SAMPLE_NOW),
                     0);
    assert_answer(&s,
                  "SELECT group_concat(sop_instance_uid || ' ' || replaces || ' ' || replaced_by, "
                  "'; ') FROM (SELECT * FROM v_results WHERE state = 'DONE' ORDER BY job, path)",
                  "2.25.1  2.25.3; 2.25.3 2.25.1 ; 2.25.5  ");
    int64_t third;
    struct queue_ids running;
    const struct queue_retry retry = {.job_id = second, .again = true};
    ck_assert_int_eq(queue_retry_job(s.queue, &retry, SAMPLE_NOW, &third, &running), 0);
    free(running.at);
    expect_earlier(third, "seg.dcm 2.25.3 2.25.4 1.2.3 1.2.840.10008.5.1.4.1.1.66.4 "
                          "2.25.1 2.25.2 1.2.3 1.2.840.10008.5.1.4.1.1.66.4\n"
                          "sr.dcm 2.25.5 2.25.6 1.2.3 1.2.840.10008.5.1.4.1.1.88.34\n");
    expect_earlier(sample_job(s.queue, "1.2.4"), "");
}

END_TEST

START_TEST(unmeasured_values_are_null)
{
    int64_t job = job_in(QUEUE_RUNNING, "1.2.3");
    struct queue_figures none = {.read_seconds = NAN,
                                 .compute_seconds = INFINITY,
                                 .write_seconds = -1,
                                 .verify_seconds = -1,
                                 .total_seconds = 0,
                                 .voxels = -1,
                                 .segmented_voxels = 0,
                                 .peak_bytes = -1};
    ck_assert_int_eq(
        queue_finish_job(s.queue, job,
                         &(struct queue_finish){QUEUE_EMPTY, &none, NULL, 0, CODE_EMPTY, "no voxel in range"},
                         SAMPLE_NOW),
        0);
    assert_answer(&s,
                  "SELECT (read_seconds IS NULL) || (compute_seconds IS NULL) || "
                  "(write_seconds IS NULL) || total_seconds || (voxels IS NULL) || "
                  "segmented_voxels || (peak_mib IS NULL) || (result_path IS NULL) || code || "
                  "(source_step_min_mm IS NULL) || (straightened IS NULL) || straightened_because || "
                  "kernel || (kvp IS NULL) || (slice_thickness_min_mm IS NULL) || (slice_thickness_max_mm IS NULL) "
                  "FROM v_jobs",
                  "1110.01011EMPTY11111");
}

END_TEST

START_TEST(an_end_must_fit_its_results)
{
    int64_t job = job_in(QUEUE_RUNNING, "1.2.3");
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, NULL, 0, CODE_NONE, ""},
                                      SAMPLE_NOW),
                     -EINVAL);
    ck_assert_int_eq(
        queue_finish_job(s.queue, job,
                         &(struct queue_finish){QUEUE_EMPTY, &sample_figures, &sample_result, 1, CODE_NONE, ""},
                         SAMPLE_NOW),
        -EINVAL);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_FAILED, &sample_figures, NULL, 0, CODE_NONE, ""},
                                      SAMPLE_NOW),
                     -EINVAL);
    struct queue_result twice[] = {sample_result, sample_result};
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, twice, 2, CODE_NONE, ""},
                                      SAMPLE_NOW),
                     -EEXIST);
    ck_assert_int_eq(sample_state(s.queue, job), QUEUE_RUNNING);
    assert_answer(&s, "SELECT count(*) FROM v_results", "0");
}

END_TEST

START_TEST(failing_names_the_files)
{
    job_in(QUEUE_FAILED, "1.2.3");
    assert_answer(&s,
                  "SELECT state || ' ' || code || ' ' || message || file_a || file_b "
                  "FROM v_jobs",
                  "FAILED FILE_UNREADABLE a cannot be readab");
    assert_answer(&s, "SELECT kind || ' ' || detail FROM v_events ORDER BY event DESC",
                  "JOB_FAILED FILE_UNREADABLE: a cannot be read");
}

END_TEST

START_TEST(cancel_returns_whether_the_job_ran)
{
    int64_t ready_job = sample_job(s.queue, "1.1"), running = job_in(QUEUE_RUNNING, "1.2"),
            delayed = sample_job(s.queue, "1.3");
    ck_assert_int_eq(queue_start_job(s.queue, delayed, "worker-0", 1, SAMPLE_NOW), 0);
    ck_assert_int_eq(take(DELAY, delayed), 0);

    const struct {
        int64_t job;
        bool was_running;
    } cases[] = {{ready_job, false}, {running, true}, {delayed, false}};

    for (size_t i = 0; i < 3; i++) {
        bool was_running = !cases[i].was_running;
        ck_assert_int_eq(queue_cancel_job(s.queue, cases[i].job, SAMPLE_NOW + 9000, &was_running), 0);
        ck_assert_int_eq(was_running, cases[i].was_running);
    }
    assert_answer(&s,
                  "SELECT group_concat(DISTINCT state || ' ' || code || ' ' || message) "
                  "FROM v_jobs",
                  "CANCELLED CANCELLED cancelled by an operator");
}

END_TEST

START_TEST(a_retry_resets_the_job)
{
    int64_t job = job_in(QUEUE_FAILED, "1.2.3");
    ck_assert_int_eq(take(RETRY, job), 0);
    assert_answer(&s,
                  "SELECT state || attempts || (ended_at IS NULL) || code || message || file_a "
                  "FROM v_jobs",
                  "READY01");
    ck_assert_int_eq(take(START, job), 0);
    ck_assert_int_eq(take(DONE, job), 0);
    assert_answer(&s, "SELECT result_sop_instance_uid FROM v_jobs", "2.25.1");
}

END_TEST

/* ------------------------------------------------------------------------------------- again - */

#define ROWS "SELECT group_concat(state || coalesce(superseded_by, ''), ' ') FROM v_jobs"

static struct queue_new_job
new_job(const char *series_uid, const char *settings, bool again)
{
    struct queue_new_job job = {.revision = 1,
                                .stack = "",
                                .pipeline = "head-ct",
                                .settings = settings,
                                .priority = 5,
                                .again = again,
                                .asked = "submitted by jane"};
    ck_assert_int_eq(queue_find_series(s.queue, series_uid, &job.series_id), 0);
    return job;
}

static int
add(const char *series_uid, const char *settings, bool again, int64_t *job)
{
    struct queue_ids running;
    const struct queue_new_job wanted = new_job(series_uid, settings, again);
    int rc = queue_add_job(s.queue, &wanted, SAMPLE_NOW + 6000, job, &running);
    free(running.at);
    return rc;
}

#define SAME    "name = \"head-ct\";"
#define CHANGED "name = \"head-ct\"; min_slices = 3;"

START_TEST(a_successful_job_is_repeated_as_a_new_job)
{
    static const enum edge ends[] = {DONE, EMPTY};

    for (size_t i = 0; i < 2; i++) {
        char uid[16];
        snprintf(uid, sizeof uid, "1.%zu", i);
        int64_t old = job_in(i ? QUEUE_EMPTY : QUEUE_DONE, uid), job;
        ck_assert_int_eq(sample_retry(s.queue, old, false, &job), -EEXIST);
        ck_assert_int_eq(sample_retry(s.queue, old, true, &job), 0);
        ck_assert_int_gt(job, old);
        ck_assert_int_eq(sample_state(s.queue, job), QUEUE_READY);
        ck_assert_int_eq(sample_state(s.queue, old), ends[i] == DONE ? QUEUE_DONE : QUEUE_EMPTY);
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM v_results WHERE job = %d", (int)old);
        assert_answer(&s, sql, i ? "0" : "1");
        ck_assert_int_eq(take(START, job), 0);
        snprintf(sql, sizeof sql, "SELECT superseded_by FROM v_jobs WHERE job = %d", (int)old);
        assert_answer(&s, sql, "");
        ck_assert_int_eq(take(ends[i], job), 0);
        ck_assert_int_eq(atoi(sample_ask(&s, sql)), job);
        ck_assert_int_eq(sample_retry(s.queue, old, true, &job), -ESTALE);
    }
}

END_TEST

START_TEST(a_dry_run_changes_no_row)
{
    for (int state = QUEUE_READY; state <= QUEUE_CANCELLED; state++) {
        char uid[16], before[16];
        snprintf(uid, sizeof uid, "1.%d", state);
        int64_t old = job_in((enum queue_job_state)state, uid), job;
        struct queue_ids running;
        struct queue_new_job wanted = new_job(uid, CHANGED, false);
        wanted.dry_run = true;
        snprintf(before, sizeof before, "%s", sample_ask(&s, "SELECT count(*) FROM v_events"));
        ck_assert_int_eq(queue_add_job(s.queue, &wanted, SAMPLE_NOW + 6000, &job, &running), 0);
        ck_assert_int_eq(job, 0);
        wanted.settings = SAME;
        ck_assert_int_eq(queue_add_job(s.queue, &wanted, SAMPLE_NOW + 6000, &job, &running), -EEXIST);
        ck_assert_int_eq(job, old);
        ck_assert_uint_eq(running.count, 0);
        assert_answer(&s, "SELECT count(*) FROM v_events", before);
        stop_running(old);
    }
}

END_TEST

/* The earlier result is kept. */
START_TEST(a_cancelled_or_failed_repetition_keeps_the_old_result)
{
    int64_t old = job_in(QUEUE_DONE, "1.2.3"), job, again;
    ck_assert_int_eq(sample_retry(s.queue, old, true, &job), 0);
    ck_assert_int_eq(take(CANCEL, job), 0);
    assert_answer(&s, ROWS, "DONE CANCELLED");
    assert_answer(&s, "SELECT count(*) FROM v_results WHERE superseded_by IS NULL", "1");
    ck_assert_int_eq(take(RETRY, job), 0);
    ck_assert_int_eq(take(START, job), 0);
    ck_assert_int_eq(take(FAIL, job), 0);
    assert_answer(&s, ROWS, "DONE FAILED");
    /* The old job has the result of these settings; another attempt replaces the failed one. */
    ck_assert_int_eq(add("1.2.3", SAME, false, &again), -EEXIST);
    ck_assert_int_eq(again, old);
    ck_assert_int_eq(sample_retry(s.queue, old, true, &again), 0);
    assert_answer(&s, ROWS, "DONE FAILED3 READY");
    ck_assert_int_eq(take(RETRY, job), -ESTALE);
    ck_assert_int_eq(take(START, again), 0);
    ck_assert_int_eq(take(DONE, again), 0);
    assert_answer(&s, ROWS, "DONE3 FAILED3 DONE");
}

END_TEST

START_TEST(a_repeated_request_makes_no_second_job)
{
    for (int state = QUEUE_READY; state <= QUEUE_CANCELLED; state++) {
        char uid[16];
        snprintf(uid, sizeof uid, "1.%d", state);
        int64_t old = job_in((enum queue_job_state)state, uid), job;
        const bool unfinished = state == QUEUE_READY || state == QUEUE_RUNNING || state == QUEUE_DELAYED;
        ck_assert_int_eq(add(uid, SAME, false, &job), -EEXIST);
        ck_assert_int_eq(job, old);
        ck_assert_int_eq(add(uid, SAME, true, &job), unfinished ? -EEXIST : 0);
        ck_assert(unfinished ? job == old : job > old);
        ck_assert_int_eq(sample_state(s.queue, old), state);
        stop_running(old);
    }
}

END_TEST

START_TEST(other_settings_replace_queued_and_running_jobs)
{
    for (int state = QUEUE_READY; state <= QUEUE_CANCELLED; state++) {
        char uid[16], sql[128];
        snprintf(uid, sizeof uid, "1.%d", state);
        int64_t old = job_in((enum queue_job_state)state, uid), job;
        const bool unfinished = state == QUEUE_READY || state == QUEUE_RUNNING || state == QUEUE_DELAYED;
        const bool stays = state == QUEUE_DONE || state == QUEUE_EMPTY || state == QUEUE_REVIEW;
        struct queue_ids running;
        const struct queue_new_job wanted = new_job(uid, CHANGED, false);
        ck_assert_int_eq(queue_add_job(s.queue, &wanted, SAMPLE_NOW + 6000, &job, &running), 0);
        ck_assert_uint_eq(running.count, state == QUEUE_RUNNING);
        free(running.at);
        ck_assert_int_eq(sample_state(s.queue, old), unfinished ? QUEUE_CANCELLED : (int)state);
        snprintf(sql, sizeof sql, "SELECT coalesce(superseded_by, 0) FROM v_jobs WHERE job = %d", (int)old);
        ck_assert_int_eq(atoi(sample_ask(&s, sql)), stays ? 0 : job);
        assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'JOB_ADDED' ORDER BY event DESC",
                      "head-ct, submitted by jane");
        /* The earlier job becomes current in the same way. */
        ck_assert_int_eq(add(uid, SAME, false, &job), 0);
    }
}

END_TEST

START_TEST(a_retry_with_other_settings)
{
    for (int state = QUEUE_READY; state <= QUEUE_CANCELLED; state++) {
        char uid[16];
        snprintf(uid, sizeof uid, "1.%d", state);
        int64_t old = job_in((enum queue_job_state)state, uid), job;
        struct queue_ids running;
        struct queue_job row;
        ck_assert_int_eq(
            queue_retry_job(s.queue, &(struct queue_retry){old, CHANGED, false}, SAMPLE_NOW + 6000, &job, &running), 0);
        ck_assert_uint_eq(running.count, state == QUEUE_RUNNING);
        free(running.at);
        ck_assert_int_gt(job, old);
        ck_assert_int_eq(queue_get_job(s.queue, job, &row), 0);
        ck_assert_str_eq(row.settings, CHANGED);
        ck_assert_int_eq(row.priority, 5);
        queue_job_clear(&row);
    }
}

END_TEST

/* -------------------------------------------------------------------------------- the restart */

START_TEST(recovery)
{
    int64_t once = sample_job(s.queue, "1.1"), often = sample_job(s.queue, "1.2"), done = job_in(QUEUE_DONE, "1.3");
    for (int attempt = 1; attempt <= 3; attempt++) {
        ck_assert_int_eq(queue_start_job(s.queue, often, "worker-0", 1, SAMPLE_NOW), 0);
        if (attempt < 3)
            ck_assert_int_eq(queue_delay_job(s.queue, often, SAMPLE_NOW, false, CODE_NONE, "", SAMPLE_NOW), 0);
        int64_t ids[4];
        ready(SAMPLE_NOW, 4, ids, 4);
    }
    ck_assert_int_eq(queue_start_job(s.queue, once, "worker-0", 0, SAMPLE_NOW), 0);
    sample_reopen(&s);
    int32_t returned;
    ck_assert_int_eq(queue_recover(s.queue, 3, SAMPLE_NOW + 60000, &returned), 0);
    ck_assert_int_eq(returned, 1);
    ck_assert_int_eq(sample_state(s.queue, once), QUEUE_READY);
    ck_assert_int_eq(sample_state(s.queue, often), QUEUE_FAILED);
    ck_assert_int_eq(sample_state(s.queue, done), QUEUE_DONE);
    assert_answer(&s,
                  "SELECT group_concat(attempts || code, ' ') FROM "
                  "(SELECT * FROM v_jobs ORDER BY job LIMIT 2)",
                  "1 3CRASHED");
    ck_assert_int_eq(queue_recover(s.queue, 3, SAMPLE_NOW + 60000, &returned), 0);
    ck_assert_int_eq(returned, 0);
}

END_TEST

/* --------------------------------------------------------------------------------- the check - */

static void
make_one_of_each(void)
{
    job_in(QUEUE_DONE, "1.1");
    job_in(QUEUE_FAILED, "1.2");
    int64_t series = sample_series(s.queue, "1.3", 1);
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
}

static void
damage(const char *sql)
{
    sqlite3 *db;
    char *error = NULL;
    ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK, "%s: %s", sql, error);
    sqlite3_close(db);
}

START_TEST(the_check_notices)
{
    static const struct {
        const char *damage, *words;
    } cases[] = {
        {"UPDATE series SET instances = 7 WHERE id = 1", "counters"},
        {"UPDATE stack SET accepted = 0, code = 'X' WHERE series_id = 1", "stack"},
        {"DELETE FROM result", "results"},
        {"UPDATE job SET superseded_by = 2 WHERE id = 1", "succeed"},
        {"UPDATE job SET state = 'READY', started_at = NULL, ended_at = NULL WHERE id = 2", "last event"},
        {"UPDATE series SET state = 'REFUSED' WHERE id = 3", "state"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = {0};
        make_one_of_each();
        sample_assert_sound(s.queue);
        damage(cases[i].damage);
        ck_assert_msg(queue_check(s.queue, &error) == -EUCLEAN, "%s", cases[i].damage);
        ck_assert_msg(strstr(error.message, cases[i].words), "%s: %s", cases[i].damage, error.message);
        sample_unwatch();
        queue_close(s.queue);
        s.queue = NULL;
        sample_close(&s);
        sample_open(&s);
    }
}

END_TEST

SAMPLE_MAIN("db_jobs", open_sample, close_sample, every_edge_from_every_state, all_transitions_of_a_missing_job_fail,
            states_have_names, a_job_is_added_once, a_refused_stack_gets_no_job, a_job_is_read_back,
            settings_are_stored_once, a_new_revision_supersedes_the_older_one, several_running_jobs_are_reported,
            a_failure_of_an_older_revision_does_not_count, another_pipeline_is_not_superseded,
            ready_is_ordered_by_priority_then_age, delayed_jobs_become_ready_when_due, next_due_is_the_earliest,
            a_job_of_an_older_revision_never_starts, starting_counts_before_it_tries, a_lane_runs_one_job,
            done_stores_figures_and_results, a_result_replaces_an_earlier_one, unmeasured_values_are_null,
            an_end_must_fit_its_results, failing_names_the_files, cancel_returns_whether_the_job_ran,
            a_retry_resets_the_job, a_successful_job_is_repeated_as_a_new_job,
            a_cancelled_or_failed_repetition_keeps_the_old_result, a_repeated_request_makes_no_second_job,
            a_dry_run_changes_no_row, other_settings_replace_queued_and_running_jobs, a_retry_with_other_settings,
            recovery, the_check_notices)
