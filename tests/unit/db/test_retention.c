/* Rows and files that retention removes, and those that it must keep. */
#include "db/report.h"
#include "db/retention_rows.h"

#include "tests/unit/db/sample.h"
#include "tests/unit/suite.h"

#include <sys/stat.h>
#include <time.h>

#define DAY INT64_C(86400000)

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

/* Marks all that is older. Returns the number of marked rows. */
static size_t
sweep(struct queue_sweep plan, int64_t before_ms, int64_t now_ms)
{
    size_t marked, all = 0;
    for (int i = 0; i < QUEUE_STOCKS; i++)
        plan.before_ms[i] = i == QUEUE_STOCK_ROWS || i == QUEUE_STOCK_OBJECT_ROWS ? plan.before_ms[i] : before_ms;
    plan.why = "old";
    while (!plan.over) {
        ck_assert_int_eq(queue_sweep(s.queue, &plan, 3, now_ms, &marked), 0);
        ck_assert_uint_le(marked, 3);
        all += marked;
    }
    return all;
}

static size_t
sweep_old(void)
{
    return sweep((struct queue_sweep){0}, SAMPLE_NOW + 90 * DAY, SAMPLE_NOW + 91 * DAY);
}

static int64_t
delivery_of(const char *series_uid)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT max(delivery) FROM v_deliveries WHERE series_uid = '%s'", series_uid);
    return atoll(sample_ask(&s, sql));
}

/* A series with a DONE job and one result for an archive. Returns the job. */
static int64_t
done_job(const char *series_uid)
{
    const char *const archive[] = {"archive"};
    char path[64];
    int64_t job = sample_job(s.queue, series_uid);
    struct queue_result result = sample_result;
    snprintf(path, sizeof path, "outbox/%lld/seg.dcm", (long long)job);
    result.path = path;
    result.destinations = archive;
    result.destination_count = 1;
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", (int32_t)job, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, &result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
    return job;
}

static int64_t
start_delivery(const char *series_uid)
{
    const int64_t delivery = delivery_of(series_uid);
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, SAMPLE_NOW + 6000), 0);
    return delivery;
}

static const struct queue_attempt went_well = {.dimse_status = 0, .message = ""};
static const struct queue_attempt went_wrong = {
    .dimse_status = -1, .code = CODE_PEER_UNREACHABLE, .message = "nobody answers"};

static int64_t
delivered_job(const char *series_uid)
{
    const int64_t job = done_job(series_uid);
    const int64_t delivery = start_delivery(series_uid);
    ck_assert_int_eq(queue_delivery_sent(s.queue, delivery, &went_well, "", SAMPLE_NOW + 6000), 0);
    return job;
}

static int
retry(int64_t job, int64_t now_ms, int64_t *made)
{
    struct queue_ids superseded;
    int rc = queue_retry_job(s.queue, &(struct queue_retry){.job_id = job, .again = true}, now_ms, made, &superseded);
    free(superseded.at);
    return rc;
}

START_TEST(delivered_series_are_removed_and_their_history_stays)
{
    delivered_job("1.2");
    ck_assert_uint_eq(sweep_old(), 2);
    assert_answer(&s, "SELECT removed_at FROM v_series", "2026-05-02T02:03:20.000Z");
    assert_answer(&s, "SELECT removed_at FROM v_jobs", "2026-05-02T02:03:20.000Z");
    assert_answer(&s, "SELECT state || instances || frames FROM v_series", "SETTLED33");
    assert_answer(&s, "SELECT state || result_path FROM v_jobs", "DONEoutbox/1/seg.dcm");
    assert_answer(&s, "SELECT count(*) FROM v_instances", "0");
    assert_answer(&s, "SELECT group_concat(path) FROM (SELECT path FROM removal ORDER BY id)", "series/1.2,outbox/1");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'SERIES_REMOVED'", "3 images, 1.5 MiB: old");
    ck_assert_uint_eq(sweep_old(), 0);
}

END_TEST

START_TEST(new_series_stay)
{
    delivered_job("1.2");
    ck_assert_uint_eq(sweep((struct queue_sweep){0}, SAMPLE_NOW, SAMPLE_NOW + 90 * DAY), 0);
    /* The job ended after this, the series was complete before. */
    ck_assert_uint_eq(sweep((struct queue_sweep){0}, SAMPLE_NOW + 3500, SAMPLE_NOW + 90 * DAY), 0);
    /* The result was sent after this. */
    ck_assert_uint_eq(sweep((struct queue_sweep){0}, SAMPLE_NOW + 5500, SAMPLE_NOW + 90 * DAY), 1);
    assert_answer(&s, "SELECT removed_at IS NULL FROM v_jobs", "1");
}

END_TEST

START_TEST(undelivered_series_stay)
{
    const int64_t job = done_job("1.2");
    ck_assert_uint_eq(sweep_old(), 0);
    const int64_t delivery = start_delivery("1.2");
    ck_assert_uint_eq(sweep_old(), 0);
    ck_assert_int_eq(queue_fail_delivery(s.queue, delivery, &went_wrong, SAMPLE_NOW + 6000), 0);
    ck_assert_uint_eq(sweep_old(), 0);
    int64_t count;
    ck_assert_int_eq(queue_resend(s.queue, &(struct queue_resend){.job_id = job}, SAMPLE_NOW + 6500, &count), 0);
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, SAMPLE_NOW + 7000), 0);
    ck_assert_int_eq(queue_delivery_sent(s.queue, delivery, &went_well, "2.25.1", SAMPLE_NOW + 8000), 0);
    ck_assert_uint_eq(sweep_old(), 0); /* not committed */
    ck_assert_int_eq(queue_delivery_committed(s.queue, "2.25.1", sample_result.sop_instance_uid, true, CODE_NONE, "",
                                              SAMPLE_NOW + 9000),
                     0);
    ck_assert_uint_eq(sweep_old(), 2);
}

END_TEST

START_TEST(delivery_to_the_fallback_counts)
{
    done_job("1.2");
    const int64_t delivery = start_delivery("1.2");
    ck_assert_int_eq(queue_redirect_delivery(s.queue, delivery, "shelf", &went_wrong, SAMPLE_NOW + 6000), 0);
    ck_assert_uint_eq(sweep_old(), 0); /* not yet */
    const int64_t second = start_delivery("1.2");
    ck_assert_int_ne(second, delivery);
    ck_assert_int_eq(queue_delivery_sent(s.queue, second, &went_well, "", SAMPLE_NOW + 7000), 0);
    ck_assert_uint_eq(sweep_old(), 2);
}

END_TEST

START_TEST(results_without_a_destination_stay)
{
    const int64_t job = sample_job(s.queue, "1.2");
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(sample_finish(s.queue, job), 0);
    ck_assert_uint_eq(sweep_old(), 1);
    assert_answer(&s, "SELECT removed_at IS NULL FROM v_jobs", "1");
    assert_answer(&s, "SELECT removed_at IS NULL FROM v_series", "0");
}

END_TEST

START_TEST(outputs_of_empty_jobs_are_removed_with_their_series)
{
    const int64_t job = sample_job(s.queue, "1.2");
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_EMPTY, &sample_figures, NULL, 0, CODE_EMPTY, "none"},
                                      SAMPLE_NOW + 4000),
                     0);
    ck_assert_uint_eq(sweep_old(), 1);
    assert_answer(&s, "SELECT removed_at IS NULL FROM v_jobs", "0");
    assert_answer(&s, "SELECT group_concat(path) FROM (SELECT path FROM removal ORDER BY path)", "outbox/1,series/1.2");
}

END_TEST

/* Not by age, by lack of space, or by a purge. */
START_TEST(results_under_review_stay)
{
    const char *const archive[] = {"archive"};
    const int64_t job = sample_job(s.queue, "1.2");
    struct queue_purged purged;
    const struct queue_purge purge = {.series_uid = "1.2", .before = "", .undelivered = true};
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(sample_review(s.queue, job), 0);
    ck_assert_uint_eq(sweep_old(), 0);
    ck_assert_uint_eq(sweep((struct queue_sweep){.for_space = true}, SAMPLE_NOW + 90 * DAY, SAMPLE_NOW + 91 * DAY), 0);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW + 5000, &purged), -EAGAIN);
    ck_assert_str_eq(queue_reason(s.queue), "job 1 of the series is under review: noctule accept or reject it");
    /* From the decision on it has that age. */
    ck_assert_int_eq(queue_accept_job(s.queue, job, archive, NULL, 1, "jane", SAMPLE_NOW + 100 * DAY), 0);
    const int64_t delivery = delivery_of("1.2");
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, SAMPLE_NOW + 100 * DAY), 0);
    ck_assert_int_eq(queue_delivery_sent(s.queue, delivery, &went_well, "", SAMPLE_NOW + 100 * DAY), 0);
    ck_assert_uint_eq(sweep_old(), 0);
    ck_assert_uint_eq(sweep((struct queue_sweep){0}, SAMPLE_NOW + 101 * DAY, SAMPLE_NOW + 102 * DAY), 2);
}

END_TEST

START_TEST(rejected_results_are_removed_with_their_series)
{
    const int64_t job = sample_job(s.queue, "1.2");
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(sample_review(s.queue, job), 0);
    ck_assert_int_eq(queue_reject_job(s.queue, job, "a name", "jane", SAMPLE_NOW + 5000), 0);
    ck_assert_uint_eq(sweep_old(), 1);
    assert_answer(&s, "SELECT group_concat(path) FROM (SELECT path FROM removal ORDER BY path)", "outbox/1,series/1.2");
    assert_answer(&s, "SELECT state || (removed_at IS NULL) FROM v_jobs", "REJECTED0");
}

END_TEST

START_TEST(a_purge_removes_the_reason_of_a_rejection)
{
    const int64_t job = sample_job(s.queue, "1.2");
    struct queue_purged purged;
    const struct queue_purge purge = {.series_uid = "1.2", .before = ""};
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(sample_review(s.queue, job), 0);
    ck_assert_int_eq(queue_reject_job(s.queue, job, "a name", "jane", SAMPLE_NOW + 5000), 0);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW + 6000, &purged), 0);
    assert_answer(&s, "SELECT message FROM v_jobs", "");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'JOB_REJECTED'", "purged");
}

END_TEST

START_TEST(failed_jobs_keep_their_series_on_a_full_disk)
{
    const int64_t job = sample_job(s.queue, "1.2");
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_fail_job(s.queue, job, CODE_CRASHED, "it failed", "", "", SAMPLE_NOW + 4000), 0);
    ck_assert_uint_eq(sweep((struct queue_sweep){.for_space = true}, SAMPLE_NOW + 90 * DAY, SAMPLE_NOW + 91 * DAY), 0);
    ck_assert_uint_eq(sweep_old(), 1);
}

END_TEST

/* It may only lack instances that its sender will send again. */
START_TEST(refused_series_stay_on_a_full_disk)
{
    const struct queue_stack stack = {.code = CODE_INCOMPLETE_SERIES, .message = "one is missing"};
    const int64_t series = sample_series(s.queue, "1.2", 3);
    ck_assert_int_eq(queue_settle(s.queue, series, 1, "quiet", &stack, 1, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT state FROM v_series", "REFUSED");
    ck_assert_uint_eq(sweep((struct queue_sweep){.for_space = true}, SAMPLE_NOW + 90 * DAY, SAMPLE_NOW + 91 * DAY), 0);
    ck_assert_uint_eq(sweep_old(), 1);
}

END_TEST

START_TEST(series_with_kept_inbox_files_stay)
{
    const char *const sources[] = {"inbox:elsewhere", "inbox:drop"};
    const struct queue_sweep kept = {.sources = sources, .source_count = 2};
    delivered_job("1.2");
    ck_assert_uint_eq(sweep(kept, SAMPLE_NOW + 90 * DAY, SAMPLE_NOW + 91 * DAY), 1);
    assert_answer(&s, "SELECT removed_at IS NULL FROM v_series", "1");
    const struct queue_sweep other = {.sources = sources, .source_count = 1};
    ck_assert_uint_eq(sweep(other, SAMPLE_NOW + 90 * DAY, SAMPLE_NOW + 91 * DAY), 1);
    assert_answer(&s, "SELECT removed_at IS NULL FROM v_series", "0");
}

END_TEST

/* The receiver reports their originals when it finds them again. */
START_TEST(removable_originals_are_removed_with_their_series)
{
    const char *const sources[] = {"inbox:/inbox"};
    const struct queue_sweep kept = {.sources = sources, .source_count = 1};
    struct queue_instance instance = {.sop_instance_uid = "1.2.1",
                                      .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2",
                                      .series_uid = "1.2",
                                      .path = "series/1.2/1.2.1.dcm",
                                      .source = QUEUE_SOURCE_RECOVERED,
                                      .size = 4711,
                                      .frames = 1};
    enum queue_arrival arrival;
    int64_t series;
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &series), 0);
    instance.source = "inbox:/inbox";
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &series), 0);
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    assert_answer(&s, "SELECT source FROM v_instances", "inbox:/inbox");
    ck_assert_uint_eq(sweep(kept, SAMPLE_NOW + 90 * DAY, SAMPLE_NOW + 91 * DAY), 0);
    instance.original_path = "/inbox/im1";
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &series), 0);
    ck_assert_int_eq(arrival, QUEUE_KNOWN);
    ck_assert_uint_eq(sweep(kept, SAMPLE_NOW + 90 * DAY, SAMPLE_NOW + 91 * DAY), 1);
    assert_answer(&s, "SELECT path || ' ' || size_bytes || ' ' || taken_at FROM removal ORDER BY id",
                  "/inbox/im1 4711 2026-01-31T02:03:20.000Z");
}

END_TEST

START_TEST(a_removed_series_may_be_received_again)
{
    enum queue_arrival arrival;
    int64_t series, job;
    delivered_job("1.2");
    sweep_old();
    ck_assert_int_eq(sample_add(s.queue, "1.2", 1, &arrival, &series), 0);
    ck_assert_int_eq(arrival, QUEUE_NEW);
    assert_answer(&s, "SELECT state || revision || instances FROM v_series WHERE removed_at IS NULL", "GATHERING21");
    assert_answer(&s, "SELECT count(*) FROM removal WHERE path = 'series/1.2'", "0");
    ck_assert_int_eq(sample_settle(s.queue, series, 2), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 2, &job), 0);
}

END_TEST

START_TEST(removed_series_cannot_be_processed)
{
    int64_t count, series, made;
    const int64_t job = delivered_job("1.2");
    sweep_old();
    ck_assert_int_eq(queue_find_series(s.queue, "1.2", &series), 0);
    ck_assert_int_eq(retry(job, SAMPLE_NOW, &made), -ESTALE);
    ck_assert_str_eq(queue_reason(s.queue), "SERIES_REMOVED: the files of series 1.2 are removed; send them again");
    const struct queue_complete word = {"1.2", true, "jane"};
    ck_assert_int_eq(queue_request_complete(s.queue, &word, SAMPLE_NOW), -ESTALE);
    const struct queue_new_job other = {
        .series_id = series, .revision = 1, .stack = "", .pipeline = "other", .settings = "text"};
    struct queue_ids superseded;
    ck_assert_int_eq(queue_add_job(s.queue, &other, SAMPLE_NOW, &made, &superseded), -ESTALE);
    const struct queue_resend one = {.delivery_id = delivery_of("1.2")};
    ck_assert_int_eq(queue_resend(s.queue, &one, SAMPLE_NOW, &count), -ESTALE);
    ck_assert_ptr_nonnull(strstr(queue_reason(s.queue), "RESULTS_REMOVED"));
    const struct queue_resend all = {.job_id = job};
    ck_assert_int_eq(queue_resend(s.queue, &all, SAMPLE_NOW, &count), 0);
    ck_assert_int_eq(count, 0);
}

END_TEST

START_TEST(a_retry_makes_removed_results_again)
{
    const int64_t job = delivered_job("1.2");
    const char *const sources[] = {"inbox:drop"};
    const struct queue_sweep kept = {.sources = sources, .source_count = 1};
    ck_assert_uint_eq(sweep(kept, SAMPLE_NOW + 90 * DAY, SAMPLE_NOW + 91 * DAY), 1);
    int64_t made;
    ck_assert_int_eq(sample_retry(s.queue, job, false, &made), 0); /* there is no file to keep */
    assert_answer(&s, "SELECT state FROM v_jobs WHERE removed_at IS NULL", "READY");
}

END_TEST

START_TEST(replaced_results_stay_until_their_replacement_is_delivered)
{
    int64_t old = delivered_job("1.2"), next;
    ck_assert_int_eq(retry(old, SAMPLE_NOW + 7000, &next), 0);
    const char *const archive[] = {"archive"};
    struct queue_result result = sample_result;
    result.path = "outbox/2/seg.dcm";
    result.sop_instance_uid = "2.25.42";
    result.destinations = archive;
    result.destination_count = 1;
    ck_assert_int_eq(queue_start_job(s.queue, next, "w", 0, SAMPLE_NOW + 8000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, next,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, &result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 9000),
                     0);
    sweep_old();
    assert_answer(&s, "SELECT count(*) FROM v_jobs WHERE removed_at IS NULL", "2");
    const int64_t delivery = delivery_of("1.2");
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, SAMPLE_NOW + 10000), 0);
    ck_assert_int_eq(queue_delivery_sent(s.queue, delivery, &went_well, "", SAMPLE_NOW + 10000), 0);
    sweep_old();
    assert_answer(&s, "SELECT count(*) FROM v_jobs WHERE removed_at IS NULL", "0");
}

END_TEST

START_TEST(a_removed_quarantined_file_may_be_received_again)
{
    const struct queue_quarantine file = {
        .path = "quarantine/20260131/a", .original_path = "/inbox/a", .code = CODE_NOT_DICOM, .message = "none"};
    ck_assert_int_eq(queue_add_quarantine(s.queue, &file, SAMPLE_NOW), 0);
    ck_assert_uint_eq(sweep_old(), 1);
    assert_answer(&s, "SELECT group_concat(path) FROM (SELECT path FROM removal ORDER BY id)",
                  "quarantine/20260131/a,quarantine/20260131/a.reason.json");
    ck_assert_int_eq(queue_add_quarantine(s.queue, &file, SAMPLE_NOW + 91 * DAY), 0);
    assert_answer(&s, "SELECT quarantined_at FROM v_quarantine WHERE removed_at IS NULL", "2026-05-02T02:03:20.000Z");
    assert_answer(&s, "SELECT count(*) FROM removal", "0");
}

END_TEST

/* A damaged instance of a removed series does not reopen it. */
START_TEST(a_damaged_file_does_not_change_a_removed_series)
{
    delivered_job("1.2");
    sweep_old();
    const struct queue_quarantine file = {.path = "quarantine/a",
                                          .original_path = "/inbox/a",
                                          .series_uid = "1.2",
                                          .sop_instance_uid = "1.2.9",
                                          .code = CODE_FILE_TRUNCATED,
                                          .message = "cut off"};
    ck_assert_int_eq(queue_add_quarantine(s.queue, &file, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT state FROM v_series", "SETTLED");
}

END_TEST

START_TEST(removals_are_listed_until_finished)
{
    struct queue_removal *removals;
    size_t count;
    delivered_job("1.2");
    sweep_old();
    sample_reopen(&s);
    ck_assert_int_eq(queue_removals(s.queue, 0, 1, &removals, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(removals[0].path, "series/1.2");
    ck_assert_int_eq(queue_removed(s.queue, removals[0].id), 0);
    const int64_t first = removals[0].id;
    queue_removal_clear(&removals[0]);
    free(removals);
    ck_assert_int_eq(queue_removals(s.queue, first, 9, &removals, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(removals[0].path, "outbox/1");
    queue_removal_clear(&removals[0]);
    free(removals);
}

END_TEST

static size_t
sweep_rows(int64_t before_ms)
{
    struct queue_sweep plan = {.before_ms[QUEUE_STOCK_ROWS] = before_ms};
    return sweep(plan, 0, before_ms + DAY);
}

START_TEST(rows_are_removed_after_a_long_time_without_events)
{
    size_t count;
    delivered_job("1.2");
    delivered_job("1.3");
    assert_answer(&s, "SELECT (SELECT count(*) FROM segment) || ' ' || (SELECT count(*) FROM breach)", "4 4");
    ck_assert_int_eq(queue_note(s.queue, "START", "old", SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_note(s.queue, "DISK_LOW", "old", SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_note(s.queue, "START", "old, but the last", SAMPLE_NOW), 0);
    ck_assert_uint_eq(sweep_rows(SAMPLE_NOW + 900 * DAY), 0); /* their files exist */
    ck_assert_uint_eq(sweep_old(), 4);
    ck_assert_uint_eq(sweep_rows(SAMPLE_NOW + 91 * DAY), 0);  /* they were removed that day */
    ck_assert_uint_eq(sweep_rows(SAMPLE_NOW + 900 * DAY), 4); /* two jobs, two series */
    ck_assert_int_eq(queue_sweep_events(s.queue, SAMPLE_NOW + 900 * DAY, 100, &count), 0);
    ck_assert_uint_eq(count, 2);
    assert_answer(&s,
                  "SELECT (SELECT count(*) FROM series) + (SELECT count(*) FROM job) + "
                  "(SELECT count(*) FROM delivery) + (SELECT count(*) FROM result) + "
                  "(SELECT count(*) FROM stack) + (SELECT count(*) FROM segment) + "
                  "(SELECT count(*) FROM breach)",
                  "0");
    assert_answer(&s, "SELECT group_concat(kind || ' ' || detail) FROM event", "START old, but the last");
}

END_TEST

START_TEST(new_events_cannot_be_deleted)
{
    size_t count;
    sqlite3 *db;
    ck_assert_int_eq(queue_note(s.queue, "DISK_LOW", "new", SAMPLE_NOW + 2 * DAY), 0);
    ck_assert_int_eq(queue_note(s.queue, "DISK_LOW", "old", SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_sweep_events(s.queue, SAMPLE_NOW + DAY, 100, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "DELETE FROM event", NULL, NULL, NULL), SQLITE_CONSTRAINT);
    sqlite3_close(db);
    assert_answer(&s, "SELECT detail FROM event", "new");
}

END_TEST

START_TEST(a_purge_waits_for_running_jobs_and_deliveries)
{
    struct queue_purged purged;
    struct queue_purge purge = {.series_uid = "1.2", .undelivered = true, .by = "jane"};
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), -ENOENT);
    const int64_t series = sample_series(s.queue, "1.2", 2);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), -EAGAIN);
    int64_t job;
    bool was_running;
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 1, &job), 0);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), -EAGAIN);
    ck_assert_int_eq(queue_cancel_job(s.queue, job, SAMPLE_NOW, &was_running), 0);
    purge.dry_run = true;
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    ck_assert_int_eq(purged.images, 2);
    assert_answer(&s, "SELECT removed_at IS NULL FROM v_series", "1");
    purge.dry_run = false;
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    assert_answer(&s, "SELECT removed_at IS NULL OR series_description <> '' FROM v_series", "0");
}

END_TEST

/*
 * Files that cannot be moved yet stay in their place: the search for files without rows finds them.
 */
START_TEST(removable_originals_are_not_received_again)
{
    int64_t id;
    enum queue_arrival arrival;
    struct queue_purged purged;
    const struct queue_purge purge = {.series_uid = "1.2", .by = "jane"};
    struct queue_instance found = {.sop_instance_uid = "1.2.1",
                                   .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2",
                                   .transfer_syntax_uid = "1.2.840.10008.1.2.1",
                                   .series_uid = "1.2",
                                   .study_uid = "1.2.3",
                                   .modality = "CT",
                                   .body_part = "",
                                   .series_description = "",
                                   .path = "series/1.2/1.2.1.dcm",
                                   .source = QUEUE_SOURCE_RECOVERED};
    const int64_t series = sample_series(s.queue, "1.2", 2);
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    ck_assert_int_eq(queue_add_instance(s.queue, &found, SAMPLE_NOW, &arrival, &id), 0);
    ck_assert_int_eq(arrival, QUEUE_KNOWN);
    ck_assert_int_eq(id, series);
    assert_answer(&s, "SELECT removed_at IS NULL FROM v_series", "0");
    assert_answer(&s, "SELECT count(*) FROM instance", "0");
    assert_answer(&s, "SELECT path FROM removal", "series/1.2");
    /* A new transmission is accepted. */
    ck_assert_int_eq(sample_add(s.queue, "1.2", 1, &arrival, &id), 0);
    ck_assert_int_eq(arrival, QUEUE_NEW);
    assert_answer(&s, "SELECT removed_at IS NULL FROM v_series", "1");
    assert_answer(&s, "SELECT count(*) FROM removal", "0");
}

END_TEST

START_TEST(a_purge_ends_undelivered_items)
{
    struct queue_purged purged;
    struct queue_purge purge = {.series_uid = "1.2", .by = "jane"};
    done_job("1.2");
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), -EPERM);
    const int64_t delivery = start_delivery("1.2");
    purge.undelivered = true;
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), -EAGAIN);
    ck_assert_int_eq(queue_delivery_sent(s.queue, delivery, &went_well, "2.25.7", SAMPLE_NOW + 7000), 0);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    ck_assert_int_eq(purged.undelivered, 1); /* it was not committed */
    assert_answer(&s, "SELECT state || code FROM v_deliveries", "FAILEDPURGED");
    assert_answer(&s, "SELECT group_concat(path) FROM (SELECT path FROM removal ORDER BY path)", "outbox/1,series/1.2");
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0); /* again: no effect */
    ck_assert_int_eq(purged.images + purged.results + purged.undelivered, 0);
}

END_TEST

static void
add_quarantined(const char *path, const char *series_uid, int64_t at_ms)
{
    const struct queue_quarantine file = {.path = path,
                                          .original_path = "/inbox/Doe^Jane.dcm",
                                          .series_uid = series_uid,
                                          .code = CODE_NOT_DICOM,
                                          .message = "It is no DICOM file."};
    ck_assert_int_eq(queue_add_quarantine(s.queue, &file, at_ms), 0);
}

START_TEST(a_purge_of_files_without_a_known_series)
{
    struct queue_purged purged;
    struct queue_purge purge = {.series_uid = "", .before = "2026-01-31T02:03:21.000Z", .dry_run = true, .by = "jane"};
    sample_series(s.queue, "1.2", 1);
    add_quarantined("quarantine/1/old", "", SAMPLE_NOW);
    add_quarantined("quarantine/1/older", "1.9", SAMPLE_NOW - DAY);
    add_quarantined("", "", SAMPLE_NOW);
    add_quarantined("quarantine/1/known", "1.2", SAMPLE_NOW);
    add_quarantined("quarantine/2/new", "", SAMPLE_NOW + 2000);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    ck_assert_int_eq(purged.quarantined, 2);
    assert_answer(&s, "SELECT count(*) FROM removal", "0");
    purge.dry_run = false;
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    ck_assert_int_eq(purged.quarantined, 2);
    assert_answer(&s, "SELECT group_concat(path) FROM (SELECT path FROM removal ORDER BY path)",
                  "quarantine/1/old,quarantine/1/old.reason.json,quarantine/1/older,"
                  "quarantine/1/older.reason.json");
    assert_answer(&s, "SELECT count(*) FROM quarantine WHERE original_path LIKE '%Jane%'", "2");
    assert_answer(&s, "SELECT count(*) FROM event WHERE detail LIKE '%/old%'", "0");
    assert_answer(&s, "SELECT count(*) FROM event WHERE detail LIKE '%/new%'", "1");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'QUARANTINE_REMOVED'",
                  "2 of no known series: purged by jane");
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    ck_assert_int_eq(purged.quarantined, 0);
}

END_TEST

/* ------------------------------------------------------------------------- any world ------- */

static uint32_t dice;

static uint32_t
roll(uint32_t sides)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % sides;
}

static void
deliver_somehow(const char *series_uid, int64_t now_ms)
{
    const int64_t delivery = delivery_of(series_uid);
    char transaction[32];
    snprintf(transaction, sizeof transaction, "2.25.%lld", (long long)delivery);
    if (roll(6) == 0)
        return;
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, now_ms), 0);
    switch (roll(6)) {
    case 0:
        break;
    case 1:
        queue_fail_delivery(s.queue, delivery, &went_wrong, now_ms);
        break;
    case 2:
        queue_delay_delivery(s.queue, delivery, now_ms + DAY, &went_wrong, now_ms);
        break;
    case 3:
        queue_redirect_delivery(s.queue, delivery, "shelf", &went_wrong, now_ms);
        if (roll(2) == 0)
            break;
        queue_start_delivery(s.queue, delivery_of(series_uid), now_ms);
        queue_delivery_sent(s.queue, delivery_of(series_uid), &went_well, "", now_ms);
        break;
    case 4:
        queue_delivery_sent(s.queue, delivery, &went_well, transaction, now_ms);
        if (roll(2) == 0)
            queue_delivery_committed(s.queue, transaction, sample_result.sop_instance_uid, roll(2) == 0,
                                     CODE_COMMITMENT_FAILED, "no", now_ms);
        break;
    default:
        queue_delivery_sent(s.queue, delivery, &went_well, "", now_ms);
    }
}

static void
run_somehow(const char *series_uid, int64_t job, int64_t now_ms)
{
    bool was_running;
    if (roll(6) == 0)
        return;
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", (int32_t)job, now_ms), 0);
    switch (roll(7)) {
    case 0:
        break;
    case 1:
        queue_fail_job(s.queue, job, CODE_CRASHED, "it failed", "", "", now_ms);
        break;
    case 2:
        queue_delay_job(s.queue, job, now_ms + DAY, false, CODE_CRASHED, "later", now_ms);
        break;
    case 3:
        queue_cancel_job(s.queue, job, now_ms, &was_running);
        break;
    default: {
        const char *const archive[] = {"archive"};
        char path[64];
        snprintf(path, sizeof path, "outbox/%lld/seg.dcm", (long long)job);
        struct queue_result result = sample_result;
        result.path = path;
        result.destinations = archive;
        result.destination_count = roll(4) > 0;
        ck_assert_int_eq(
            queue_finish_job(s.queue, job,
                             &(struct queue_finish){QUEUE_DONE, &sample_figures, &result, 1, CODE_NONE, ""}, now_ms),
            0);
        if (result.destination_count)
            deliver_somehow(series_uid, now_ms + (int64_t)roll(3) * DAY);
    }
    }
}

static void
make_series_somehow(int number)
{
    char uid[16];
    enum queue_arrival arrival;
    int64_t series, job;
    snprintf(uid, sizeof uid, "1.2.%d", number);
    series = sample_series(s.queue, uid, 2);
    if (roll(8) == 0)
        return;
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    if (roll(8) == 0 || sample_add_job(s.queue, series, 1, &job) != 0)
        return;
    run_somehow(uid, job, SAMPLE_NOW + 3000 + (int64_t)roll(4) * DAY);
    if (roll(4) > 0)
        return;
    ck_assert_int_eq(sample_add(s.queue, uid, 3, &arrival, &series), 0);
    if (roll(3) == 0)
        return;
    ck_assert_int_eq(sample_settle(s.queue, series, 2), 0);
    if (roll(3) > 0 && sample_add_job(s.queue, series, 2, &job) == 0)
        run_somehow(uid, job, SAMPLE_NOW + 3000 + (int64_t)roll(4) * DAY);
}

/* The conditions for removal, as a second formulation: by their obstacles. */
#define HELD_DELIVERY                                                                                                  \
    "(state IN ('PENDING', 'SENDING', 'DELAYED') OR commitment IN ('REQUESTED', 'FAILED') "                            \
    " OR state = 'FAILED' AND NOT redirected)"
static const char held_series[] =
    "SELECT group_concat(id) FROM (SELECT id FROM series WHERE state <> 'GATHERING' "
    "AND id NOT IN (SELECT series_id FROM job WHERE state IN ('READY', 'RUNNING', 'DELAYED') "
    "  OR ended_at >= '%1$s' OR %2$d AND state = 'FAILED') "
    "AND id NOT IN (SELECT series_id FROM job JOIN delivery ON job_id = job.id "
    "  WHERE delivery.id IN (SELECT id FROM delivery WHERE " HELD_DELIVERY ")) "
    "AND settled_at < '%1$s' ORDER BY id)";
static const char held_results[] =
    "SELECT group_concat(id) FROM (SELECT id FROM job WHERE state = 'DONE' AND ended_at < '%1$s' "
    "AND id NOT IN (SELECT job_id FROM delivery WHERE " HELD_DELIVERY " OR sent_at >= '%1$s' "
    "  OR since_at >= '%1$s') "
    "AND (id IN (SELECT job_id FROM delivery WHERE state = 'SENT') "
    "  OR superseded_by IS NOT NULL AND id IN (SELECT job_id FROM delivery)) ORDER BY id)";

static void
expect_removed(const char *table, const char *expected)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "SELECT group_concat(id) FROM (SELECT id FROM %s WHERE removed_at IS NOT NULL "
             "%s ORDER BY id)",
             table, strcmp(table, "job") == 0 ? "AND state = 'DONE'" : "");
    assert_answer(&s, sql, expected);
}

START_TEST(held_items_are_never_removed)
{
    dice = 20261122u + (uint32_t)_i;
    for (int i = 0; i < 12; i++)
        make_series_somehow(i);
    static const char *const dates[] = {"2026-01-31T12:00:00.000Z", "2026-02-01T12:00:00.000Z",
                                        "2026-02-02T12:00:00.000Z", "2026-02-05T12:00:00.000Z"};
    static const int64_t times[] = {INT64_C(1769860800000), INT64_C(1769947200000), INT64_C(1770033600000),
                                    INT64_C(1770292800000)};
    const uint32_t when = roll(4);
    const bool for_space = roll(2) == 0;
    char sql[1200], series[400], results[400];
    snprintf(sql, sizeof sql, held_series, dates[when], for_space);
    snprintf(series, sizeof series, "%s", sample_ask(&s, sql));
    snprintf(sql, sizeof sql, held_results, dates[when]);
    snprintf(results, sizeof results, "%s", sample_ask(&s, sql));
    sweep((struct queue_sweep){.for_space = for_space}, times[when], SAMPLE_NOW + 91 * DAY);
    expect_removed("series", series);
    expect_removed("job", results);
}

END_TEST

static int
count_disk_alerts(void *context, const struct report_alert *alert)
{
    *(int *)context += strcmp(alert->id, "disk_filling") == 0 && alert->severity == 1 &&
                       alert->size == 3 && /* 7, less the remaining days */
                       strstr(alert->text, "the disk is full in 4.0 days") == alert->text;
    return 0;
}

/* As `noctule status` and its --check report it. */
static int
disk_alerts(void)
{
    struct report *report;
    struct error error = {0};
    int count = 0;
    ck_assert_int_eq(report_open(s.path, &report, &error), 0);
    ck_assert_int_eq(report_each_alert(report, count_disk_alerts, &count, &error), 0);
    report_close(report);
    return count;
}

START_TEST(a_filling_disk_is_reported)
{
    assert_answer(&s, "SELECT free_mib IS NULL AND disk_full_days IS NULL FROM v_night", "1");
    const int64_t now_ms = (int64_t)time(NULL) * 1000;
    ck_assert_int_eq(queue_note_disk(s.queue, 9e9, now_ms - 20 * DAY), 0);
    ck_assert_int_eq(queue_note_disk(s.queue, 5000, now_ms - DAY / 2), 0);
    ck_assert_int_eq(queue_note_disk(s.queue, 4000, now_ms), 0);
    assert_answer(&s, "SELECT count(*) FROM disk", "2"); /* the first is too old */
    /* half a day is too short */
    assert_answer(&s, "SELECT disk_full_days IS NULL FROM v_night", "1");
    ck_assert_int_eq(disk_alerts(), 0);
    ck_assert_int_eq(queue_note_disk(s.queue, 8000, now_ms - 4 * DAY), 0);
    assert_answer(&s, "SELECT free_mib || ' ' || disk_full_days FROM v_night", "4000.0 4.0");
    ck_assert_int_eq(disk_alerts(), 1);
    ck_assert_int_eq(queue_note_disk(s.queue, 8000, now_ms + 1000), 0); /* it was emptied */
    assert_answer(&s, "SELECT disk_full_days IS NULL FROM v_night", "1");
    /* Measurements since the last hourly sample count. */
    ck_assert_int_eq(queue_measure_disk(s.queue, 9000.25, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_measure_disk(s.queue, 4000.25, now_ms + 2000), 0);
    assert_answer(&s, "SELECT free_mib || ' ' || disk_full_days FROM v_night", "4000.25 4.0");
    assert_answer(&s,
                  "SELECT (free_at = (SELECT max(at) FROM v_disk)) || (SELECT count(*) FROM "
                  "v_disk) FROM v_night",
                  "15");
}

END_TEST

/* Rows come and go for long; the file and its log must not grow. */
START_TEST(the_file_stays_flat)
{
    long long largest = 0;
    for (int round = 0; round < 9; round++) {
        char uid[16];
        for (int i = 0; i < 4; i++) {
            snprintf(uid, sizeof uid, "1.%d.%d", round, i);
            delivered_job(uid);
        }
        sweep_old();
        sweep_rows(SAMPLE_NOW + 900 * DAY);
        ck_assert_int_eq(queue_tidy(s.queue, 100), 0);
        const long long pages = atoll(sample_ask(&s, "PRAGMA page_count"));
        if (round == 2)
            largest = pages;
        ck_assert_msg(round <= 2 || pages <= largest, "%lld pages, %lld in the beginning", pages, largest);
    }
    assert_answer(&s, "SELECT count(*) FROM series", "0");
    char log[128];
    struct stat status;
    snprintf(log, sizeof log, "%s-wal", s.path);
    ck_assert_int_eq(stat(log, &status), 0);
    ck_assert_int_le(status.st_size, 16 << 20);
}

END_TEST

#define WORLDS 16

int
main(void)
{
    const TTest *const tests[] = {delivered_series_are_removed_and_their_history_stays,
                                  new_series_stay,
                                  undelivered_series_stay,
                                  delivery_to_the_fallback_counts,
                                  results_without_a_destination_stay,
                                  outputs_of_empty_jobs_are_removed_with_their_series,
                                  results_under_review_stay,
                                  rejected_results_are_removed_with_their_series,
                                  a_purge_removes_the_reason_of_a_rejection,
                                  refused_series_stay_on_a_full_disk,
                                  failed_jobs_keep_their_series_on_a_full_disk,
                                  series_with_kept_inbox_files_stay,
                                  removable_originals_are_removed_with_their_series,
                                  a_removed_series_may_be_received_again,
                                  removed_series_cannot_be_processed,
                                  replaced_results_stay_until_their_replacement_is_delivered,
                                  a_retry_makes_removed_results_again,
                                  a_removed_quarantined_file_may_be_received_again,
                                  a_damaged_file_does_not_change_a_removed_series,
                                  removals_are_listed_until_finished,
                                  rows_are_removed_after_a_long_time_without_events,
                                  new_events_cannot_be_deleted,
                                  a_purge_waits_for_running_jobs_and_deliveries,
                                  a_purge_of_files_without_a_known_series,
                                  removable_originals_are_not_received_again,
                                  a_purge_ends_undelivered_items,
                                  a_filling_disk_is_reported,
                                  the_file_stays_flat};
    Suite *suite = suite_create("db_retention");
    TCase *tcase = tcase_create("retention");
    tcase_add_checked_fixture(tcase, open_sample, close_sample);
    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    tcase_add_loop_test(tcase, held_items_are_never_removed, 0, WORLDS);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
