/*
 * Forecasts: the time until the backlog is done, from measured times, with series that are being
 * received, over windows; and jobs that will be late.
 */
#include "tests/unit/db/sample.h"

#include <math.h>
#include <time.h>

static struct sample s;
static int64_t now;

#define HOUR (INT64_C(3600) * 1000)

/* In the last hours, on two lanes: those of "long" took an hour each, those of "short" twenty minutes. */
static void
run_one(const char *pipeline, int64_t series, int64_t end_ms, int64_t took_ms, int lane)
{
    struct queue_ids running;
    int64_t job;
    const struct queue_new_job new_job = {
        .series_id = series, .revision = 1, .stack = "", .pipeline = pipeline, .settings = "x"};
    ck_assert_int_eq(queue_add_job(s.queue, &new_job, end_ms - took_ms, &job, &running), 0);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", lane, end_ms - took_ms), 0);
    const struct queue_finish finish = {QUEUE_EMPTY, &sample_figures, NULL, 0, CODE_NONE, ""};
    ck_assert_int_eq(queue_finish_job(s.queue, job, &finish, end_ms), 0);
}

static int64_t
settled_series(void)
{
    static int made;
    char uid[32];
    int64_t series;
    snprintf(uid, sizeof uid, "1.2.4.%d", ++made);
    const int64_t first = sample_job(s.queue, uid);
    ck_assert_int_eq(queue_find_series(s.queue, uid, &series), 0);
    ck_assert_int_eq(queue_cancel_job(s.queue, first, now, &(bool){false}), 0);
    return series;
}

static void
open_sample(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    now = (int64_t)time.tv_sec * 1000;
    sample_open(&s);
    const int64_t series = settled_series();
    run_one("long", series, now - 2 * HOUR, HOUR, 0);
    run_one("short", series, now - 2 * HOUR, HOUR / 3, 1);
    /* Not of the last day, so without weight. */
    run_one("long", settled_series(), now - 30 * HOUR, 20 * HOUR, 1);
}

static void
close_sample(void)
{
    sample_close(&s);
}

static int64_t
add(const char *pipeline, int64_t done_by_ms)
{
    struct queue_ids running;
    int64_t job;
    const struct queue_new_job new_job = {.series_id = settled_series(),
                                          .revision = 1,
                                          .stack = "",
                                          .pipeline = pipeline,
                                          .settings = "x",
                                          .done_by_ms = done_by_ms};
    ck_assert_int_eq(queue_add_job(s.queue, &new_job, now, &job, &running), 0);
    return job;
}

/* Within a minute, since the clock continues. */
static void
expect_minutes(const char *sql, double minutes)
{
    const double told = atof(sample_ask(&s, sql)) / 60;
    ck_assert_msg(fabs(told - minutes) < 1, "%s: %g minutes, not %g", sql, told, minutes);
}

static void
set_window(const char *pipeline, double opens_hours, double closes_hours, double share)
{
    const struct queue_window window = {pipeline,
                                        "22:00-06:00",
                                        opens_hours <= 0,
                                        opens_hours > 0 ? now + (int64_t)(opens_hours * (double)HOUR) : 0,
                                        now + (int64_t)(closes_hours * (double)HOUR),
                                        share};
    ck_assert_int_eq(queue_set_windows(s.queue, &window, 1, now), 0);
}

START_TEST(forecasts_use_past_durations_per_pipeline)
{
    assert_answer(&s, "SELECT eta_seconds FROM v_night", "0.0");
    for (int i = 0; i < 4; i++)
        add("long", 0);
    add("short", 0);
    /*
     * Four hours and twenty minutes on two lanes; a pipeline without measurements takes the mean,
     * forty.
     */
    expect_minutes("SELECT eta_seconds FROM v_night", 130);
    add("new", 0);
    expect_minutes("SELECT eta_seconds FROM v_night", 150);
    expect_minutes("SELECT mean_seconds FROM v_backlog WHERE pipeline = 'new'", 40);
    /* The remainder of running jobs; one that takes longer than usual is about to end. */
    ck_assert_int_eq(queue_start_job(s.queue, add("long", 0), "worker-0", 0, now - HOUR / 4), 0);
    expect_minutes("SELECT eta_seconds FROM v_night", 172.5);
    ck_assert_int_eq(queue_start_job(s.queue, add("short", 0), "worker-0", 1, now - HOUR), 0);
    expect_minutes("SELECT eta_seconds FROM v_night", 172.5);
    expect_minutes("SELECT 86400 * (julianday(expected_at) - julianday('now')) FROM v_jobs "
                   "WHERE state = 'RUNNING' AND pipeline = 'long'",
                   45);
}

END_TEST

/* Six slots for an hour, in which each took twenty minutes on its node: two were computed at once. */
START_TEST(slurm_slots_do_not_count_as_lanes)
{
    struct queue_figures figures = sample_figures;
    const struct queue_finish finish = {QUEUE_EMPTY, &figures, NULL, 0, CODE_NONE, ""};
    figures.total_seconds = 1200;
    for (int i = 0; i < 6; i++) {
        const struct queue_lane lane = {"slurm", i, "slurm", "aa"};
        const int64_t job = add("far", 0);
        ck_assert_int_eq(queue_start_at(s.queue, job, &lane, now - 3 * HOUR), 0);
        ck_assert_int_eq(queue_finish_job(s.queue, job, &finish, now - 2 * HOUR), 0);
    }
    assert_answer(&s, "SELECT lanes || ' ' || jobs FROM v_measured WHERE pipeline = ''", "4 8");
    expect_minutes("SELECT mean_seconds FROM v_measured WHERE pipeline = 'far'", 20);
    /* A job that waits in Slurm for long still has its twenty minutes to run. */
    const struct queue_lane lane = {"slurm", 0, "slurm", "bb"};
    ck_assert_int_eq(queue_start_at(s.queue, add("far", 0), &lane, now - HOUR), 0);
    expect_minutes("SELECT work_seconds FROM v_backlog WHERE pipeline = 'far'", 20);
    assert_answer(&s, "SELECT count(expected_at) FROM v_jobs WHERE state = 'RUNNING'", "0");
}

END_TEST

START_TEST(series_being_received_count)
{
    sqlite3_exec(s.queue->db.handle,
                 "UPDATE series SET settled_at = strftime('%Y-%m-%dT%H:%M:%fZ', "
                 "'now', '-1 hour') WHERE settled_at IS NOT NULL",
                 NULL, NULL, NULL);
    /* Two complete series made two jobs today: one each, of forty minutes. */
    for (int i = 0; i < 6; i++) {
        char uid[16];
        snprintf(uid, sizeof uid, "9.%d", i);
        sample_series(s.queue, uid, 1);
    }
    assert_answer(&s, "SELECT jobs_expected FROM v_backlog WHERE pipeline = ''", "6.0");
    expect_minutes("SELECT eta_seconds FROM v_night", 120);
    assert_answer(&s, "SELECT jobs_expected || ' ' || backlog_jobs FROM v_night", "6.0 0");
}

END_TEST

START_TEST(windows_are_waited_for)
{
    for (int i = 0; i < 4; i++)
        add("long", 0);
    set_window("long", 5, 13, 1.0 / 3);
    expect_minutes("SELECT eta_seconds FROM v_night", 300 + 120);
    /* Jobs that may start now take longer than until then. */
    for (int i = 0; i < 40; i++)
        add("short", 0);
    expect_minutes("SELECT eta_seconds FROM v_backlog WHERE pipeline = 'short'", 400);
    expect_minutes("SELECT eta_seconds FROM v_backlog WHERE pipeline = 'long'", 300 + 120 + 100);
    /* The window is too short: the remaining jobs have a third of the time afterwards. */
    set_window("long", 5, 6, 1.0 / 3);
    expect_minutes("SELECT eta_seconds FROM v_backlog WHERE pipeline = 'long'", 300 + 60 + 3 * (120 + 100 - 60));
}

END_TEST

START_TEST(held_jobs_have_no_forecast)
{
    add("long", 0);
    add("short", 0);
    const struct queue_hold pipeline = {"pipeline", "long", "jane", ""}, all = {"jobs", "", "jane", ""};
    ck_assert_int_eq(queue_hold(s.queue, &pipeline, now), 0);
    expect_minutes("SELECT eta_seconds FROM v_night", 10);
    assert_answer(&s, "SELECT eta_seconds IS NULL FROM v_backlog WHERE pipeline = 'long'", "1");
    ck_assert_int_eq(queue_hold(s.queue, &all, now), 0);
    assert_answer(&s, "SELECT eta_seconds IS NULL FROM v_night", "1");
}

END_TEST

START_TEST(missed_deadlines_are_reported)
{
    /* Two lanes: earlier deadlines go first, so the fourth is done after 2.5 hours. */
    for (int i = 0; i < 4; i++)
        add("long", now + 2 * HOUR + i * HOUR / 60);
    assert_answer(&s, "SELECT group_concat(is_late, '') FROM v_wanted", "0001");
    expect_minutes("SELECT 86400 * (julianday(max(expected_at)) - julianday('now')) FROM v_wanted", 150);
    assert_answer(&s, "SELECT jobs_late FROM v_night", "1");
    assert_answer(&s, "SELECT group_concat(late_why, '') FROM v_wanted", "QUEUE");
    assert_answer(&s, "SELECT level || ': ' || substr(text, 1, 37) FROM v_troubles WHERE text LIKE '%late%'",
                  "attention: 1 job of long will be late: wanted by");
    /* Its window opens too late. */
    add("short", now + 4 * HOUR);
    set_window("short", 5, 13, 1.0 / 3);
    assert_answer(&s, "SELECT is_late FROM v_wanted WHERE pipeline = 'short'", "1");
    /* The elapsed time of a running job. */
    ck_assert_int_eq(queue_start_job(s.queue, add("new", now - HOUR), "worker-0", 0, now), 0);
    assert_answer(&s, "SELECT is_late FROM v_wanted WHERE pipeline = 'new'", "1");
    assert_answer(&s, "SELECT count(*) FROM v_troubles WHERE text LIKE '1 job of new not done by %, when wanted'", "1");
}

END_TEST

/* An hour each on two lanes, in a window that is open for 45 minutes: the last two start later. */
START_TEST(a_closing_window_delays_jobs)
{
    for (int i = 0; i < 4; i++)
        add("long", now + 3 * HOUR);
    assert_answer(&s, "SELECT group_concat(late_why) FROM v_wanted", ",,,");
    set_window("long", 0, 0.75, 1.0 / 3);
    assert_answer(&s, "SELECT group_concat(late_why) FROM v_wanted", ",,,WINDOW");
    assert_answer(&s, "SELECT jobs_late || ' ' || jobs_unfit FROM v_backlog", "1 0");
    assert_answer(&s,
                  "SELECT text LIKE '1 job of long will be late: wanted by %; its window closes "
                  "before its turn' FROM v_troubles WHERE level = 'attention'",
                  "1");
    /* Its turn would come 45 minutes after the closing: three times as long, by the window's share. */
    expect_minutes("SELECT 86400 * (julianday(expected_at) - julianday('now')) FROM v_wanted "
                   "WHERE late_why <> '' ORDER BY job LIMIT 1",
                   45 + 3 * 45 + 60);
}

END_TEST

/* A job of an hour with a deadline half an hour after its window opens. */
START_TEST(jobs_longer_than_their_window_are_reported)
{
    add("long", now + 2 * HOUR);
    set_window("long", 1.5, 9, 1.0 / 3);
    assert_answer(&s,
                  "SELECT late_why || ' ' || round(mean_seconds / 60) || ' ' || round(room_seconds / 60) "
                  "FROM v_wanted",
                  "ALONE 60.0 30.0");
    assert_answer(&s, "SELECT jobs_late || ' ' || jobs_unfit FROM v_backlog", "1 1");
    assert_answer(&s,
                  "SELECT text LIKE '1 job of long cannot be done by %, even first: one takes about "
                  "60.0 min, and there are % min from when it may start; see its window and done_by' "
                  "FROM v_troubles WHERE level = 'attention'",
                  "1");
    /* It fits if the window opens an hour earlier. */
    set_window("long", 0.5, 9, 1.0 / 3);
    assert_answer(&s, "SELECT count(*) FROM v_troubles WHERE level = 'attention'", "0");
}

END_TEST

SAMPLE_MAIN("db_backlog", open_sample, close_sample, forecasts_use_past_durations_per_pipeline,
            slurm_slots_do_not_count_as_lanes, series_being_received_count, windows_are_waited_for,
            held_jobs_have_no_forecast, missed_deadlines_are_reported, a_closing_window_delays_jobs,
            jobs_longer_than_their_window_are_reported)
