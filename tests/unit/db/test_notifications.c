/* Single events for commands of the site: each once, in order, from the time at which the command was configured. */
#include "db/notification_rows.h"
#include "tests/unit/db/sample.h"

#define ALERTS " ALERT_BEGAN ALERT_ENDED "

static struct sample s;
static const char *const pager[] = {"pager", "mail"};

static void
open_sample(void)
{
    sample_open(&s);
}

static void
close_sample(void)
{
    sample_assert_sound(s.queue);
    sample_close(&s);
}

static void
begin(const char *alert)
{
    ck_assert_int_eq(queue_begin_alert(s.queue, alert, 1, "attention", SAMPLE_NOW), 0);
}

/* The events after `after` as "ALERT STATE; ", and *last. */
static const char *
list_after(int64_t after, size_t limit, int64_t *last)
{
    static char text[512];
    struct queue_notified *events;
    size_t count, used = 0;
    ck_assert_int_eq(queue_list_notified(s.queue, after, ALERTS, limit, &events, &count, last), 0);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s; ", events[i].alert, events[i].state);
    queue_notified_free(events, count);
    return text;
}

START_TEST(a_command_begins_after_the_last_event)
{
    struct queue_notification row;
    int64_t last;
    begin("paused");
    ck_assert_int_eq(queue_read_notification(s.queue, "pager", &row), -ENOENT);
    ck_assert_int_eq(queue_set_notifications(s.queue, pager, 1), 0);
    ck_assert_int_eq(queue_read_notification(s.queue, "pager", &row), 0);
    ck_assert_str_eq(list_after(row.event_id, 9, &last), "");
    begin("quarantine");
    ck_assert_str_eq(list_after(row.event_id, 9, &last), "quarantine attention; ");
    /* Another command begins later; the first one keeps its place. */
    ck_assert_int_eq(queue_set_notifications(s.queue, pager, 2), 0);
    assert_answer(&s, "SELECT group_concat(event > 1, '') FROM v_notifications", "10");
    ck_assert_int_eq(queue_set_notifications(s.queue, pager + 1, 1), 0);
    assert_answer(&s, "SELECT group_concat(name) FROM v_notifications", "mail");
}

END_TEST

START_TEST(other_kinds_are_skipped_and_the_limit_holds)
{
    int64_t last;
    begin("paused");
    ck_assert_int_eq(queue_note(s.queue, "START", "noctuled", SAMPLE_NOW), 0);
    begin("quarantine");
    ck_assert_int_eq(queue_end_alert(s.queue, "paused", SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_end_alert(s.queue, "paused", SAMPLE_NOW), 0); /* it has ended */
    ck_assert_int_eq(queue_note(s.queue, "STOP", "clean", SAMPLE_NOW), 0);
    ck_assert_str_eq(list_after(0, 9, &last), "paused attention; quarantine attention; paused ; ");
    ck_assert_int_eq(last, 5); /* STOP is considered */
    ck_assert_str_eq(list_after(0, 2, &last), "paused attention; quarantine attention; ");
    ck_assert_int_eq(last, 3); /* the third event is not */
    ck_assert_str_eq(list_after(5, 2, &last), "");
    ck_assert_int_eq(last, 5);
}

END_TEST

START_TEST(a_failure_keeps_the_event_and_is_an_alert)
{
    struct queue_notification row;
    ck_assert_int_eq(queue_set_notifications(s.queue, pager, 1), 0);
    for (int i = 1; i <= 2; i++)
        ck_assert_int_eq(queue_end_notification(s.queue, "pager", 7, "no route", SAMPLE_NOW + 1000 * i), 0);
    ck_assert_int_eq(queue_read_notification(s.queue, "pager", &row), 0);
    ck_assert_int_eq(row.event_id, 0);
    ck_assert_int_eq(row.failures, 2);
    ck_assert_int_eq(row.ended_ms, SAMPLE_NOW + 2000);
    assert_answer(&s, "SELECT alert || since_at FROM v_alerts", "notify:pager2026-01-31T02:03:21.000Z");
    assert_answer(&s,
                  "SELECT count(*) FROM event WHERE kind = 'NOTIFICATION_FAILED' "
                  "AND detail = 'pager: no route'",
                  "2");
    ck_assert_int_eq(queue_end_notification(s.queue, "pager", 7, "", SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_read_notification(s.queue, "pager", &row), 0);
    ck_assert_int_eq(row.event_id, 7);
    ck_assert_int_eq(row.failures, 0);
    assert_answer(&s, "SELECT count(*) FROM v_alerts", "0");
    /* An earlier run that is recorded late takes nothing back; neither does a row that is gone. */
    ck_assert_int_eq(queue_skip_notified(s.queue, "pager", 5), 0);
    ck_assert_int_eq(queue_end_notification(s.queue, "mail", 9, "no route", SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT name || event FROM v_notifications", "pager7");
    assert_answer(&s, "SELECT count(*) FROM event WHERE detail LIKE 'mail%'", "0");
}

END_TEST

START_TEST(a_job_and_a_series_have_their_ids_and_codes)
{
    struct queue_notified *events;
    size_t count;
    int64_t last, job = sample_job(s.queue, "1.2.3");
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_fail_job(s.queue, job, CODE_OUT_OF_MEMORY, "no memory", "", "", SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_list_notified(s.queue, 0, " JOB_FAILED ", 9, &events, &count, &last), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(events[0].job_id, job);
    ck_assert_str_eq(events[0].series_uid, "1.2.3");
    ck_assert_str_eq(events[0].pipeline, "head-ct");
    ck_assert_str_eq(events[0].code, "OUT_OF_MEMORY");
    ck_assert_str_eq(events[0].alert, "");
    queue_notified_free(events, count);
}

END_TEST

SAMPLE_MAIN("db_notifications", open_sample, close_sample, a_command_begins_after_the_last_event,
            other_kinds_are_skipped_and_the_limit_holds, a_failure_keeps_the_event_and_is_an_alert,
            a_job_and_a_series_have_their_ids_and_codes)
