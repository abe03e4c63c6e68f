/* The order in which jobs start: by deadline, by priority, by age; and windows. */
#include "tests/unit/db/sample.h"

static struct sample s;
static int made;

#define HOUR (INT64_C(3600) * 1000)

static void
open_sample(void)
{
    made = 0;
    sample_open(&s);
}

static void
close_sample(void)
{
    sample_close(&s);
}

/* Numbers are given from 1, each job a series of its own. */
static void
add(const char *pipeline, int priority, int64_t made_ms, int64_t done_by_ms)
{
    char uid[32];
    struct queue_ids running;
    int64_t series, first, job;
    snprintf(uid, sizeof uid, "1.2.3.%d", ++made);
    first = sample_job(s.queue, uid);
    ck_assert_int_eq(queue_find_series(s.queue, uid, &series), 0);
    ck_assert_int_eq(queue_cancel_job(s.queue, first, made_ms, &(bool){false}), 0);
    const struct queue_new_job new_job = {.series_id = series,
                                          .revision = 1,
                                          .stack = "",
                                          .pipeline = pipeline,
                                          .settings = "x",
                                          .priority = priority,
                                          .done_by_ms = done_by_ms};
    ck_assert_int_eq(queue_add_job(s.queue, &new_job, made_ms, &job, &running), 0);
    ck_assert_int_eq(job, first + 1);
}

/* "1 3 2": the jobs as they were added, in the order in which they start. */
static const char *
order(int64_t now_ms, int64_t ageing_ms, size_t limit)
{
    static char text[256];
    struct queue_job *jobs;
    size_t count, used = 0;
    ck_assert_int_eq(queue_ready(s.queue, now_ms, ageing_ms, limit, "", &jobs, &count), 0);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i ? " " : "", (int)jobs[i].id / 2);
        queue_job_clear(&jobs[i]);
    }
    free(jobs);
    return text;
}

START_TEST(waiting_raises_the_rank_of_a_job)
{
    const int64_t now = SAMPLE_NOW + 100 * HOUR;
    add("a", 0, now - 50 * HOUR, 0);
    add("b", 3, now - 1 * HOUR, 0);
    add("a", 2, now - 2 * HOUR, 0);
    add("a", 0, now - 40 * HOUR, 0);
    add("b", -2, now - 99 * HOUR, 0);
    ck_assert_str_eq(order(now, 0, 64), "2 3 1 4 5");
    ck_assert_str_eq(order(now, 24 * HOUR, 64), "2 5 1 3 4"); /* 3.04 2.13 2.08 2.08 1.67 */
    ck_assert_str_eq(order(now, 10 * HOUR, 64), "5 1 4 2 3"); /* 7.9 5 4 3.1 2.2 */
    /* With any limit, the foremost may have any priority. */
    ck_assert_str_eq(order(now, 10 * HOUR, 1), "5");
    ck_assert_str_eq(order(now, 10 * HOUR, 3), "5 1 4");
    ck_assert_str_eq(order(now, 0, 1), "2");
}

END_TEST

/* It was made in a future that the clock was set back from. */
/* Jobs of another executor, in any number, must not hide those that are requested. */
START_TEST(pipelines_can_be_left_out)
{
    struct queue_job *jobs;
    size_t count;
    for (int i = 0; i < 5; i++)
        add("a", 9, SAMPLE_NOW, 0);
    add("ab", 0, SAMPLE_NOW, 0);
    ck_assert_int_eq(queue_ready(s.queue, SAMPLE_NOW, 0, 1, "\na\n\nb\n", &jobs, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(jobs->pipeline, "ab");
    queue_job_clear(jobs);
    free(jobs);
    ck_assert_int_eq(queue_ready(s.queue, SAMPLE_NOW, 0, 9, "\na\n\nab\n", &jobs, &count), 0);
    ck_assert_uint_eq(count, 0);
    free(jobs);
}

END_TEST

START_TEST(a_job_from_the_future_has_not_waited)
{
    add("a", 0, SAMPLE_NOW + 1000 * HOUR, 0);
    add("a", 0, SAMPLE_NOW + HOUR, 0);
    add("a", 1, SAMPLE_NOW + HOUR, 0);
    ck_assert_str_eq(order(SAMPLE_NOW + 2 * HOUR, HOUR, 64), "3 2 1");
}

END_TEST

START_TEST(jobs_with_a_deadline_start_first_until_the_deadline)
{
    const int64_t now = SAMPLE_NOW + 100 * HOUR;
    add("a", 900, now, 0);
    add("a", -5, now, now + 2 * HOUR);
    add("b", 0, now, now + 1 * HOUR);
    add("b", 7, now, now + 1 * HOUR);
    add("b", 1000, now, now + 3 * HOUR);
    ck_assert_str_eq(order(now, 24 * HOUR, 64), "4 3 2 5 1");
    ck_assert_str_eq(order(now, 24 * HOUR, 2), "4 3");
    /* A late job does not delay others. */
    ck_assert_str_eq(order(now + HOUR, 0, 64), "2 5 1 4 3");
    ck_assert_str_eq(order(now + 4 * HOUR, 0, 64), "5 1 4 3 2");
    assert_answer(&s, "SELECT group_concat(done_by_at IS NULL, '') FROM v_jobs WHERE state = 'READY'", "10000");
}

END_TEST

static void
set_windows(bool a_is_open, size_t count)
{
    const struct queue_window windows[] = {
        {"a", "22:00-06:00", a_is_open, a_is_open ? 0 : SAMPLE_NOW + HOUR, SAMPLE_NOW + 9 * HOUR, 0.33},
        {"b", "00:00-24:00", true, 0, 0, 1}};
    ck_assert_int_eq(queue_set_windows(s.queue, windows, count, SAMPLE_NOW), 0);
}

START_TEST(a_closed_window_delays_jobs)
{
    add("a", 5, SAMPLE_NOW, SAMPLE_NOW + 5 * HOUR);
    add("b", 0, SAMPLE_NOW, 0);
    add("c", 0, SAMPLE_NOW, 0);
    ck_assert_str_eq(order(SAMPLE_NOW, 0, 64), "1 2 3");
    set_windows(false, 2);
    ck_assert_str_eq(order(SAMPLE_NOW, 0, 64), "2 3");
    assert_answer(&s,
                  "SELECT group_concat(coalesce(window_closed, '-'), ' ') FROM v_jobs "
                  "WHERE state = 'READY'",
                  "22:00-06:00 - -");
    assert_answer(&s, "SELECT window_opens_at FROM v_jobs WHERE window_closed <> ''", "2026-01-31T03:03:20.000Z");
    assert_answer(&s, "SELECT text FROM v_troubles WHERE text LIKE '%window%'",
                  "1 job of a for its window, 22:00-06:00, which opens at 2026-01-31T03:03:20.000Z");
    sample_reopen(&s); /* a restart */
    ck_assert_str_eq(order(SAMPLE_NOW, 0, 64), "2 3");
    set_windows(true, 2);
    ck_assert_str_eq(order(SAMPLE_NOW, 0, 64), "1 2 3");
    set_windows(true, 2);
    set_windows(false, 1);
    set_windows(false, 0); /* it no longer has a window */
    ck_assert_str_eq(order(SAMPLE_NOW, 0, 64), "1 2 3");
    assert_answer(&s, "SELECT count(*) FROM v_windows", "0");
    assert_answer(&s,
                  "SELECT group_concat(kind || ': ' || detail, '; ') FROM v_events "
                  "WHERE kind LIKE 'WINDOW_%'",
                  "WINDOW_CLOSED: a, 22:00-06:00; WINDOW_OPENED: a, 22:00-06:00; "
                  "WINDOW_CLOSED: a, 22:00-06:00");
}

END_TEST

SAMPLE_MAIN("db_order", open_sample, close_sample, waiting_raises_the_rank_of_a_job, pipelines_can_be_left_out,
            a_job_from_the_future_has_not_waited, jobs_with_a_deadline_start_first_until_the_deadline,
            a_closed_window_delays_jobs)
