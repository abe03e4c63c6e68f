/* Transactions: group commit, undo, a full database, another lock, long readers. */
#include "db/queue/queue_private.h"

#include "tests/unit/db/sample.h"

#include <sys/stat.h>

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

START_TEST(a_group_is_seen_when_it_is_committed)
{
    ck_assert_int_eq(queue_begin(s.queue), 0);
    int64_t job = sample_job(s.queue, "1.2.3");
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW), 0);
    ck_assert_int_eq(sample_state(s.queue, job), QUEUE_RUNNING);
    assert_answer(&s, "SELECT count(*) FROM v_series", "0");
    ck_assert_int_eq(queue_commit(s.queue), 0);
    assert_answer(&s, "SELECT state FROM v_jobs", "RUNNING");
}

END_TEST

START_TEST(a_failed_call_leaves_the_group_usable)
{
    ck_assert_int_eq(queue_begin(s.queue), 0);
    int64_t series = sample_series(s.queue, "1.2.3", 3), job;
    ck_assert_int_eq(sample_add_job(s.queue, series, 1, &job), -EAGAIN);
    struct queue_stack twice[] = {{.name = "a", .accepted = true}, {.name = "a", .accepted = true}};
    ck_assert_int_eq(queue_settle(s.queue, series, 1, "", twice, 2, SAMPLE_NOW), -EEXIST);
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 1, &job), 0);
    ck_assert_int_eq(queue_commit(s.queue), 0);
    assert_answer(&s, "SELECT state FROM v_jobs", "READY");
    assert_answer(&s, "SELECT stacks FROM v_series", "1");
}

END_TEST

START_TEST(a_rollback_undoes_all_of_it)
{
    sample_series(s.queue, "1.1", 1);
    ck_assert_int_eq(queue_begin(s.queue), 0);
    sample_series(s.queue, "1.2", 1);
    queue_rollback(s.queue);
    sample_series(s.queue, "1.3", 1);
    assert_answer(&s, "SELECT group_concat(series_uid) FROM v_series", "1.1,1.3");
    queue_rollback(s.queue); /* without a group: no effect */
    assert_answer(&s, "SELECT count(*) FROM v_series", "2");
}

END_TEST

START_TEST(closing_undoes_an_open_group)
{
    ck_assert_int_eq(queue_begin(s.queue), 0);
    sample_series(s.queue, "1.2", 1);
    sample_reopen(&s);
    assert_answer(&s, "SELECT count(*) FROM v_series", "0");
}

END_TEST

START_TEST(groups_do_not_nest)
{
    ck_assert_int_eq(queue_commit(s.queue), -EINVAL);
    ck_assert_int_eq(queue_begin(s.queue), 0);
    ck_assert_int_eq(queue_begin(s.queue), -EALREADY);
    sample_series(s.queue, "1.2", 1);
    ck_assert_int_eq(queue_commit(s.queue), 0);
    assert_answer(&s, "SELECT count(*) FROM v_series", "1");
}

END_TEST

/* Limits the file to its present number of pages, or to `limit`. */
static void
limit_pages(const char *limit)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %s", limit);
    ck_assert_int_eq(sqlite3_exec(s.queue->db.handle, sql, NULL, NULL, NULL), SQLITE_OK);
}

static int
add_until_full(int *added)
{
    enum queue_arrival arrival;
    int64_t id;
    for (*added = 0; *added < 10000; ++*added) {
        int rc = sample_add(s.queue, "1.2.3", *added + 1, &arrival, &id);
        if (rc < 0)
            return rc;
    }
    return 0;
}

START_TEST(a_full_database_is_an_error_and_keeps_confirmed_rows)
{
    int added;
    char expected[16];
    limit_pages("1");
    ck_assert_int_eq(add_until_full(&added), -ENOSPC);
    ck_assert_int_gt(added, 0);
    ck_assert_ptr_nonnull(strstr(queue_reason(s.queue), "full"));
    snprintf(expected, sizeof expected, "%d", added);
    assert_answer(&s, "SELECT instances FROM v_series", expected);
    sample_assert_sound(s.queue);
    limit_pages("1000000");
    enum queue_arrival arrival;
    int64_t id;
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 20000, &arrival, &id), 0);
}

END_TEST

START_TEST(a_group_on_a_full_database_is_rolled_back)
{
    int added;
    sample_series(s.queue, "1.1", 1);
    ck_assert_int_eq(queue_begin(s.queue), 0);
    limit_pages("1");
    ck_assert_int_eq(add_until_full(&added), -ENOSPC);
    ck_assert_int_gt(added, 0);
    /* Later calls must not seem to succeed. */
    ck_assert_int_eq(queue_note(s.queue, "START", "", SAMPLE_NOW), -ENOSPC);
    ck_assert_ptr_nonnull(strstr(queue_reason(s.queue), "rolled back"));
    ck_assert_int_eq(queue_commit(s.queue), -ENOSPC);
    assert_answer(&s, "SELECT group_concat(series_uid) FROM v_series", "1.1");
    limit_pages("1000000");
    ck_assert_int_eq(queue_begin(s.queue), 0);
    ck_assert_int_eq(add_until_full(&added), 0);
    ck_assert_int_eq(queue_commit(s.queue), 0);
    assert_answer(&s, "SELECT instances FROM v_series WHERE series_uid = '1.2.3'", "10000");
}

END_TEST

START_TEST(another_writer_is_reported_as_busy)
{
    sqlite3 *other;
    enum queue_arrival arrival;
    int64_t id;
    sqlite3_busy_timeout(s.queue->db.handle, 20);
    ck_assert_int_eq(sqlite3_open(s.path, &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sample_add(s.queue, "1.1", 1, &arrival, &id), -EBUSY);
    ck_assert_int_eq(queue_begin(s.queue), -EBUSY);
    ck_assert_int_eq(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    ck_assert_int_eq(sample_add(s.queue, "1.1", 1, &arrival, &id), 0);
}

END_TEST

static off_t
log_size(void)
{
    char path[160];
    struct stat status;
    snprintf(path, sizeof path, "%s-wal", s.path);
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_size;
}

static void
write_notes(int count)
{
    static char detail[4000];
    memset(detail, 'x', sizeof detail - 1);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(queue_note(s.queue, "TEST", detail, SAMPLE_NOW), 0);
}

/*
 * A report that takes all night: the writer continues, the reader keeps its snapshot, and the log
 * is cut when it ends.
 */
START_TEST(a_long_reader_does_not_hold_up_the_writer)
{
    sqlite3 *reader;
    sqlite3_stmt *count;
    ck_assert_int_eq(sqlite3_open_v2(s.path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(reader, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(reader, "SELECT count(*) FROM v_events", -1, &count, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(count), SQLITE_ROW);
    ck_assert_int_eq(sqlite3_column_int(count, 0), 0);
    sqlite3_reset(count);

    write_notes(3000);
    assert_answer(&s, "SELECT count(*) FROM v_events", "3000");
    ck_assert_int_eq(sqlite3_step(count), SQLITE_ROW);
    ck_assert_int_eq(sqlite3_column_int(count, 0), 0);
    sqlite3_finalize(count);
    ck_assert_int_gt(log_size(), 16 << 20);

    ck_assert_int_eq(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(reader);
    write_notes(10);
    ck_assert_int_le(log_size(), 16 << 20);
}

END_TEST

SAMPLE_MAIN("db_group", open_sample, close_sample, a_group_is_seen_when_it_is_committed,
            a_failed_call_leaves_the_group_usable, a_rollback_undoes_all_of_it, closing_undoes_an_open_group,
            groups_do_not_nest, a_full_database_is_an_error_and_keeps_confirmed_rows,
            a_group_on_a_full_database_is_rolled_back, another_writer_is_reported_as_busy,
            a_long_reader_does_not_hold_up_the_writer)
