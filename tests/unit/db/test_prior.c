/* Earlier studies from an archive: the jobs that order one, the limit of their wait, and its end. */
#include "db/pull_queue.h"
#include "db/retention_rows.h"
#include "tests/unit/db/sample.h"

#define WAIT 60000

static struct sample s;
static int64_t job;

static void
run(const char *format, ...)
{
    char sql[512];
    va_list arguments;
    sqlite3 *db;
    va_start(arguments, format);
    vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* Makes a READY job of a study of its own. */
static int64_t
job_of(const char *series_uid, const char *patient, const char *date)
{
    const int64_t made = sample_job(s.queue, series_uid);
    run("UPDATE series SET study_uid = '%s.9', patient_id = '%s', study_date = '%s' WHERE series_uid = '%s'",
        series_uid, patient, date, series_uid);
    return made;
}

static void
open_sample(void)
{
    sample_open(&s);
    job = job_of("1.2.1", "h:1", "20250301");
    ck_assert_int_eq(queue_order_prior(s.queue, job, "PACS", SAMPLE_NOW + 3000), 0);
}

static void
close_sample(void)
{
    sample_close(&s);
}

/* Checks whether the job may start at that time. */
static enum queue_prior_state
state_at(int64_t of, int64_t after_ms)
{
    enum queue_prior_state state;
    ck_assert_int_eq(queue_await_prior(s.queue, of, WAIT, SAMPLE_NOW + after_ms, &state), 0);
    return state;
}

static size_t
ready(void)
{
    struct queue_ids jobs;
    ck_assert_int_eq(queue_priors_ready(s.queue, &jobs), 0);
    ck_assert_int_eq(queue_resume_priors(s.queue, &jobs, SAMPLE_NOW + 9000), 0);
    free(jobs.at);
    return jobs.count;
}

/* Lets the archive have the study of that series. */
static void
found(int64_t item, char *study_uid)
{
    const struct queue_pull_part part = {study_uid, (char[]){""}, 3, 0, 0};
    ck_assert_int_eq(queue_start_pull(s.queue, item, SAMPLE_NOW + 4000), 0);
    ck_assert_int_eq(queue_pull_found(s.queue, item, &part, 1, SAMPLE_NOW + 4000), 0);
}

static void
end(int64_t item, enum queue_pull_state state)
{
    ck_assert_int_eq(queue_end_pull(s.queue, item, state, CODE_NONE, "", SAMPLE_NOW + 5000), 0);
}

START_TEST(a_job_asks_once)
{
    ck_assert_int_eq(queue_order_prior(s.queue, job, "PACS", SAMPLE_NOW + 3000), 0);
    assert_answer(&s, "SELECT group_concat(item || key || identifier || source || asked_by || state) FROM v_pulls",
                  "1prior1.2.1PACSjob 1WAITING");
    assert_answer(&s, "SELECT prior_item FROM v_jobs", "1");
    /* There is no key for a query: no patient, no date, and a date that is none. */
    ck_assert_int_eq(queue_order_prior(s.queue, job_of("1.2.2", "", "20250301"), "PACS", SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_order_prior(s.queue, job_of("1.2.3", "h:1", ""), "PACS", SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_order_prior(s.queue, job_of("1.2.4", "h:1", "20251301"), "PACS", SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT count(*) FROM v_pulls", "1");
    ck_assert_int_eq(state_at(2, 9000), QUEUE_PRIOR_READY);
}

END_TEST

START_TEST(the_wait_has_one_limit)
{
    ck_assert_int_eq(state_at(job, 5000), QUEUE_PRIOR_AWAITED);
    assert_answer(&s,
                  "SELECT state || ' ' || code || ' ' || (not_before_at = strftime('%Y-%m-%dT%H:%M:%fZ', created_at, "
                  "'+63 seconds')) FROM v_jobs",
                  "DELAYED PRIOR_WAITING 1");
    ck_assert_uint_eq(ready(), 0);
    /* It is due by its limit, and starts without another wait, also after a retry. */
    struct queue_job *jobs;
    size_t count;
    ck_assert_int_eq(queue_ready(s.queue, SAMPLE_NOW + 5000 + WAIT, 0, 9, "", &jobs, &count), 0);
    ck_assert_uint_eq(count, 1);
    queue_job_clear(jobs);
    free(jobs);
    ck_assert_int_eq(state_at(job, 5000 + WAIT), QUEUE_PRIOR_MISSED);
    ck_assert_int_eq(state_at(job, 5000 + WAIT - 1), QUEUE_PRIOR_AWAITED);
    sample_assert_sound(s.queue);
    int64_t next;
    ck_assert_int_eq(sample_retry(s.queue, job, false, &next), 0); /* at 5000 */
    ck_assert_int_eq(state_at(job, 5000), QUEUE_PRIOR_MISSED);
}

END_TEST

START_TEST(a_wait_follows_the_clock)
{
    ck_assert_int_eq(state_at(job, 5000), QUEUE_PRIOR_AWAITED);
    ck_assert_int_eq(queue_clock_was_set(s.queue, 3600000), 0);
    int64_t next;
    ck_assert_int_eq(queue_next_due(s.queue, &next), 0);
    ck_assert_int_eq(next, SAMPLE_NOW + 5000 + WAIT + 3600000);
    assert_answer(&s, "SELECT prior_until_at = not_before_at FROM job", "1");
}

END_TEST

START_TEST(the_earlier_study_ends_the_wait)
{
    int64_t earlier;
    ck_assert_int_eq(state_at(job, 5000), QUEUE_PRIOR_AWAITED);
    found(1, (char[]){"1.2.8.9"});
    ck_assert_uint_eq(ready(), 0);
    const int64_t series = sample_series(s.queue, "1.2.8", 3);
    run("UPDATE series SET study_uid = '1.2.8.9', patient_id = 'h:1', study_date = '20240301', "
        "first_seen_at = '2027-01-01T00:00:00.000Z' WHERE series_uid = '1.2.8'");
    end(1, QUEUE_PULL_DONE);
    ck_assert_uint_eq(ready(), 0); /* the series is being received */
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 1, &earlier), 0);
    ck_assert_uint_eq(ready(), 0); /* its job is open */
    /* It was fetched as an earlier study, and orders none. */
    ck_assert_int_eq(queue_order_prior(s.queue, earlier, "PACS", SAMPLE_NOW + 6000), 0);
    assert_answer(&s, "SELECT count(*) FROM v_pulls", "1");
    run("UPDATE job SET pipeline = 'other' WHERE id = %d", (int)earlier);
    ck_assert_uint_eq(ready(), 1); /* a job of another pipeline does not count */
    run("UPDATE job SET pipeline = 'head-ct' WHERE id = %d", (int)earlier);
    ck_assert_int_eq(state_at(job, 9000), QUEUE_PRIOR_AWAITED);
    bool was_running;
    ck_assert_int_eq(queue_cancel_job(s.queue, earlier, SAMPLE_NOW, &was_running), 0);
    ck_assert_uint_eq(ready(), 1);
    ck_assert_int_eq(state_at(job, 9000), QUEUE_PRIOR_READY);
    sample_assert_sound(s.queue);
}

END_TEST

START_TEST(other_ends_of_an_item)
{
    static const struct {
        enum queue_pull_state end;
        enum queue_prior_state state;
    } ends[] = {{QUEUE_PULL_NOT_FOUND, QUEUE_PRIOR_READY},
                {QUEUE_PULL_PARTIAL, QUEUE_PRIOR_MISSED},
                {QUEUE_PULL_FAILED, QUEUE_PRIOR_MISSED},
                {QUEUE_PULL_CANCELLED, QUEUE_PRIOR_MISSED}};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (i > 0) {
            close_sample();
            open_sample();
        }
        ck_assert_int_eq(state_at(job, 5000), QUEUE_PRIOR_AWAITED);
        end(1, ends[i].end);
        ck_assert_uint_eq(ready(), 1);
        assert_answer(&s, "SELECT state || code || message FROM v_jobs", "READY");
        assert_answer(&s, "SELECT count(*) FROM v_events WHERE kind = 'JOB_PRIOR_CAME'", "1");
        ck_assert_int_eq(state_at(job, 9000), ends[i].state);
        /* The rows of ended items are removed by age; then the stored studies decide. */
        size_t swept;
        ck_assert_int_eq(queue_sweep_events(s.queue, SAMPLE_NOW + 86400000, 100, &swept), 0);
        assert_answer(&s, "SELECT prior_item IS NULL FROM job", "1");
        ck_assert_int_eq(state_at(job, 9000), QUEUE_PRIOR_READY);
    }
}

END_TEST

START_TEST(items_of_jobs_come_first)
{
    const struct queue_pull_wish wish = {QUEUE_PULL_STUDY, "1.5", 1};
    struct queue_pull pull;
    int64_t due_ms, batch;
    char *path;
    ck_assert_int_eq(queue_next_batch(s.queue, &batch), 0);
    ck_assert_int_eq(queue_add_pulls(s.queue, batch, "PACS", "jane", &wish, 1, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_next_pull(s.queue, "PACS", &pull, &due_ms), 0);
    ck_assert_int_eq(pull.id, 1);
    ck_assert_int_eq(pull.key, QUEUE_PULL_PRIOR);
    queue_pull_clear(&pull);
    ck_assert_int_eq(queue_prior_file(s.queue, 1, &path), 0);
    ck_assert_str_eq(path, "series/1.2.1/1.2.1.1.dcm");
    free(path);
    run("UPDATE instance SET missing = 1 WHERE path = 'series/1.2.1/1.2.1.1.dcm'");
    ck_assert_int_eq(queue_prior_file(s.queue, 1, &path), 0);
    ck_assert_str_eq(path, "series/1.2.1/1.2.1.2.dcm");
    free(path);
    run("UPDATE instance SET missing = 0");
    /* One that is tried again later gives way; one of an ended job wants no file. */
    run("UPDATE pull SET due_at = '9999-01-01T00:00:00.000Z' WHERE id = 1");
    ck_assert_int_eq(queue_next_pull(s.queue, "PACS", &pull, &due_ms), 0);
    ck_assert_int_eq(pull.id, 2);
    queue_pull_clear(&pull);
    bool was_running;
    ck_assert_int_eq(queue_cancel_job(s.queue, job, SAMPLE_NOW, &was_running), 0);
    ck_assert_int_eq(queue_prior_file(s.queue, 1, &path), 1);
}

END_TEST

START_TEST(a_missed_study_is_no_earlier_result)
{
    struct queue_prior prior;
    run("UPDATE job SET prior_id = id");
    ck_assert_int_eq(queue_find_prior(s.queue, job, true, &prior), 0);
    ck_assert_int_eq(prior.job, 0);
    assert_answer(&s, "SELECT prior_id IS NULL FROM job", "1");
    queue_prior_clear(&prior);
}

END_TEST

SAMPLE_MAIN("db_prior", open_sample, close_sample, a_job_asks_once, the_wait_has_one_limit, a_wait_follows_the_clock,
            the_earlier_study_ends_the_wait, other_ends_of_an_item, items_of_jobs_come_first,
            a_missed_study_is_no_earlier_result)
