/* The list of alerts: ids, order, lines, the scope of an acknowledgement. Checks that documents and
 * views have its kinds. */
#include "service/common/alert/alert_list.h"

#include "config/config.h"
#include "db/report.h"
#include "tests/unit/db/sample.h"

#include <time.h>

#define HOUR (INT64_C(3600) * 1000)

static struct sample s;
static const struct conf conf;
static struct alerts list;
static int64_t now_ms;

static void
set_up(void)
{
    sample_open(&s);
    now_ms = (int64_t)time(NULL) * 1000;
}

static void
tear_down(void)
{
    alerts_clear(&list);
    sample_close(&s);
}

/* Collects the list at that time, with the daemon's alerts. */
static void
collect_at(int64_t at_ms, const char *daemon_lines)
{
    struct report *report;
    struct error error;
    alerts_clear(&list);
    alerts_from_lines(&list, daemon_lines);
    ck_assert_int_eq(report_open(s.path, &report, &error), 0);
    ck_assert_int_eq(alerts_collect(&list, &conf, report, at_ms, &error), 0);
    report_close(report);
}

static void
quarantine(const char *path, int64_t at_ms)
{
    const struct queue_quarantine file = {.path = path,
                                          .original_path = "",
                                          .series_uid = "",
                                          .sop_instance_uid = "",
                                          .code = CODE_FILE_UNREADABLE,
                                          .message = "not DICOM"};
    ck_assert_int_ge(queue_add_quarantine(s.queue, &file, at_ms), 0);
}

static void
acknowledge(const char *id, int64_t until_ms)
{
    const struct alert *alert = alerts_find(&list, id);
    ck_assert_ptr_nonnull(alert);
    const struct queue_ack ack = {.alert = id,
                                  .by = "root (jane)",
                                  .reason = "a licence file",
                                  .severity = (int)alert->severity,
                                  .changed_ms = alert->changed_ms,
                                  .size = alert->size,
                                  .until_ms = until_ms,
                                  .from_daemon = alert_row(alert->kind)->from_daemon};
    ck_assert_int_eq(queue_acknowledge(s.queue, &ack, now_ms), 0);
}

static bool
is_known(const char *id)
{
    const struct alert *alert = alerts_find(&list, id);
    ck_assert_ptr_nonnull(alert);
    return alert->ack.by != NULL;
}

START_TEST(lines_carry_a_list)
{
    struct alerts copy = {0};
    alerts_add(&list, ALERT_courier, "PACS", ALERT_BROKEN, 17, "the courier\tfor\n%s", "PACS");
    alerts_append(
        &list,
        &(struct alert){.id = (char[]){"reception"}, .size = 2, .severity = ALERT_ATTENTION, .text = (char[]){""}});
    char *lines = alerts_to_lines(&list);
    ck_assert_str_eq(lines, "2\t17\t0\tcourier:PACS\tthe courier?for?PACS\n1\t0\t2\treception\t\n");
    alerts_from_lines(&copy, lines);
    ck_assert_uint_eq(copy.count, 2);
    ck_assert_int_eq(copy.items[0].kind, ALERT_courier);
    ck_assert_int_eq(copy.items[0].severity, ALERT_BROKEN);
    ck_assert_int_eq(copy.items[0].since_ms, 17);
    ck_assert_int_eq(copy.items[1].size, 2);
    ck_assert_str_eq(copy.items[1].text, "");
    free(lines);
    alerts_clear(&copy);
    /* An alert of another version is kept with its text. */
    alerts_from_lines(&copy, "9\tx\t\tnew_kind:a\ttext\nno line\n");
    ck_assert_uint_eq(copy.count, 1);
    ck_assert_int_eq(copy.items[0].kind, ALERT_KINDS);
    ck_assert_int_eq(copy.items[0].severity, ALERT_ATTENTION);
    ck_assert_str_eq(alert_row(copy.items[0].kind)->message, "");
    alerts_clear(&copy);
}

END_TEST

START_TEST(an_id_has_one_kind)
{
    ck_assert_int_eq(alert_find_kind("disk"), ALERT_disk);
    ck_assert_int_eq(alert_find_kind("disk_filling"), ALERT_disk_filling);
    ck_assert_int_eq(alert_find_kind("disk:x"), ALERT_disk);
    ck_assert_int_eq(alert_find_kind("dis"), ALERT_KINDS);
    ck_assert_int_eq(alert_find_kind("disks"), ALERT_KINDS);
    ck_assert_int_eq(alert_find_kind(""), ALERT_KINDS);
}

END_TEST

START_TEST(the_worst_is_first)
{
    quarantine("quarantine/1", now_ms - HOUR);
    collect_at(now_ms, "0\t0\t0\tjobs_ready\twait\n2\t0\t0\tcompute\tno job can run\n");
    acknowledge("quarantine", 0);
    quarantine("quarantine/2", now_ms - 2 * HOUR); /* older than the other one */
    collect_at(now_ms, "0\t0\t0\tjobs_ready\twait\n1\t0\t0\tworker:1\tdied\n2\t0\t0\tcompute\tno\n");
    static const char *const ids[] = {"compute", "worker:1", "quarantine", "jobs_ready"};
    ck_assert_uint_eq(list.count, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(list.items[i].id, ids[i]);
    ck_assert_int_eq(alerts_worst(&list), ALERT_BROKEN);
    ck_assert(alerts_is_acknowledged(&list, ALERT_quarantine));
    ck_assert(!alerts_is_acknowledged(&list, ALERT_worker));
    ck_assert(!alerts_is_acknowledged(&list, ALERT_disk));
}

END_TEST

START_TEST(an_acknowledgement_has_a_scope)
{
    quarantine("quarantine/1", now_ms - 2 * HOUR);
    collect_at(now_ms, "");
    ck_assert_int_eq(alerts_worst(&list), ALERT_ATTENTION);
    const struct alert *alert = alerts_find(&list, "quarantine");
    ck_assert_int_eq(alert->since_ms, now_ms - 2 * HOUR);
    acknowledge("quarantine", now_ms + HOUR);
    collect_at(now_ms, "");
    ck_assert_int_eq(alerts_worst(&list), ALERT_WAITS);
    alert = alerts_find(&list, "quarantine");
    ck_assert_str_eq(alert->ack.by, "root (jane)");
    ck_assert_str_eq(alert->ack.reason, "a licence file");
    ck_assert_int_eq(alert->ack.at_ms, now_ms);
    ck_assert_int_eq(alert->ack.until_ms, now_ms + HOUR);
    collect_at(now_ms + HOUR - 1, "");
    ck_assert(is_known("quarantine"));
    collect_at(now_ms + HOUR, "");
    ck_assert(!is_known("quarantine"));
    sample_reopen(&s); /* a restart */
    collect_at(now_ms, "");
    ck_assert(is_known("quarantine"));
    quarantine("quarantine/2", now_ms - HOUR); /* it occurs again */
    collect_at(now_ms, "");
    ck_assert(!is_known("quarantine"));
    acknowledge("quarantine", 0);
    collect_at(now_ms, "");
    ck_assert(is_known("quarantine"));
    ck_assert_int_eq(queue_end_ack(s.queue, "quarantine", "jane", "", now_ms), 0);
    ck_assert_int_eq(queue_end_ack(s.queue, "quarantine", "jane", "", now_ms), -ENOENT);
    collect_at(now_ms, "");
    ck_assert(!is_known("quarantine"));
    assert_answer(&s,
                  "SELECT group_concat(kind || ' ' || detail, '; ') FROM v_events "
                  "WHERE kind LIKE '%ACKNOWLEDGE%'",
                  "ALERT_ACKNOWLEDGED quarantine, by root (jane): a licence file; "
                  "ALERT_ACKNOWLEDGED quarantine, by root (jane): a licence file; "
                  "ACKNOWLEDGEMENT_ENDED quarantine, by jane");
}

END_TEST

START_TEST(a_worse_alert_loses_its_acknowledgement)
{
    collect_at(now_ms, "1\t1\t0\tworker:0\tdied\n2\t1\t1\treception\tport 104 is not open\n");
    acknowledge("worker:0", 0);
    acknowledge("reception", 0);
    collect_at(now_ms, "1\t9\t0\tworker:0\tdied\n2\t9\t1\treception\tport 104 is not open\n");
    ck_assert(is_known("worker:0")); /* a restarted daemon reports another time */
    ck_assert(is_known("reception"));
    collect_at(now_ms, "2\t1\t0\tworker:0\tdied\n2\t1\t2\treception\tport 104; port 2762\n");
    ck_assert(!is_known("worker:0"));
    ck_assert(!is_known("reception"));
    /* An alert of a kind that must not be acknowledged never is. */
    collect_at(now_ms, "2\t1\t0\tdisk\tlow\n");
    acknowledge("disk", 0);
    collect_at(now_ms, "2\t1\t0\tdisk\tlow\n");
    ck_assert(!is_known("disk"));
}

END_TEST

START_TEST(cleared_alerts_lose_their_acknowledgement)
{
    char found[QUEUE_ALERT];
    quarantine("quarantine/1", now_ms);
    collect_at(now_ms, "1\t1\t0\tworker:0\tdied\n");
    acknowledge("worker:0", 0);
    acknowledge("quarantine", 0);
    ck_assert_int_eq(queue_find_cleared_ack(s.queue, "\nworker:0\n", true, found), 0);
    ck_assert_int_eq(queue_find_cleared_ack(s.queue, "\nworker:01\n", true, found), 1);
    ck_assert_str_eq(found, "worker:0");
    ck_assert_int_eq(queue_find_cleared_ack(s.queue, "\nworker:0\n", false, found), 1);
    ck_assert_str_eq(found, "quarantine");
    ck_assert_int_eq(queue_find_cleared_ack(s.queue, "\nquarantine\nworker:0\n", false, found), 0);
}

END_TEST

/* A failed job that was retried successfully needs no action. */
START_TEST(a_failed_job_is_an_alert_until_it_is_replaced)
{
    const int64_t job = sample_job(s.queue, "1.2.3");
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, now_ms - HOUR), 0);
    ck_assert_int_eq(queue_fail_job(s.queue, job, CODE_PIXELS_UNDECODABLE, "no pixels", "", "", now_ms - HOUR), 0);
    collect_at(now_ms, "");
    const struct alert *alert = alerts_find(&list, "jobs_failed");
    ck_assert_ptr_nonnull(alert);
    ck_assert_str_eq(alert->text, "1 job failed in the last 24 h");
    ck_assert_int_eq(alert->changed_ms, now_ms - HOUR);
    acknowledge("jobs_failed", 0);
    collect_at(now_ms, "");
    ck_assert(is_known("jobs_failed"));
    struct queue_ids running;
    int64_t again;
    ck_assert_int_eq(queue_retry_job(s.queue, &(struct queue_retry){job, NULL, false}, now_ms, &again, &running), 0);
    collect_at(now_ms, "");
    ck_assert_ptr_null(alerts_find(&list, "jobs_failed"));
    ck_assert_int_eq(queue_start_job(s.queue, again, "worker-0", 0, now_ms), 0);
    ck_assert_int_eq(queue_fail_job(s.queue, again, CODE_PIXELS_UNDECODABLE, "no pixels", "", "", now_ms + 1), 0);
    collect_at(now_ms, "");
    ck_assert(!is_known("jobs_failed")); /* it failed once more */
}

END_TEST

/* Returns the text of a source file. */
static char *
read_source(const char *path)
{
    char *text = NULL, name[512];
    size_t size = 0;
    snprintf(name, sizeof name, NOCTULE_SOURCE_DIR "/%s", path);
    FILE *file = fopen(name, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(getdelim(&text, &size, '\0', file), 0);
    fclose(file);
    return text;
}

START_TEST(each_kind_is_in_the_documents)
{
    char *text = read_source("docs/operations.md");
    char row[512];
    for (int i = 0; i < ALERT_KINDS; i++) {
        const struct alert_row *kind = alert_row((enum alert_kind)i);
        snprintf(row, sizeof row, "\n| `%s` | %s | ", kind->name, kind->may_acknowledge ? "yes" : "no");
        char *found = strstr(text, row);
        ck_assert_msg(found, "docs/operations.md, Alerts: the row of %s", kind->name);
        /* The row must end with the message, which begins with a capital, and the remedy. */
        snprintf(row, sizeof row, "%s | %s |", kind->message + 1, kind->remedy);
        char *end = strchr(found + 1, '\n');
        ck_assert_msg(end - found > (long)strlen(row) && strncmp(end - strlen(row), row, strlen(row)) == 0,
                      "docs/operations.md, Alerts: %s is not \"%s\"", kind->name, row);
    }
    free(text);
}

END_TEST

START_TEST(each_alert_of_the_view_has_a_kind)
{
    char *text = read_source("db/views.sql");
    int arms = 0;
    char *view = strstr(text, "CREATE VIEW v_alerts"), *end = strstr(view, ";\n");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    for (char *at = view; (at = strstr(at, "\nSELECT '")) != NULL; arms++) {
        at += strlen("\nSELECT '");
        at[strcspn(at, "':")] = '\0';
        ck_assert_msg(alert_find_kind(at) != ALERT_KINDS, "v_alerts: %s has no row", at);
        ck_assert_msg(!alert_row(alert_find_kind(at))->from_daemon, "v_alerts: %s", at);
        at += strlen(at) + 1;
    }
    ck_assert_int_gt(arms, 15);
    free(text);
}

END_TEST

SAMPLE_MAIN("common_alerts", set_up, tear_down, lines_carry_a_list, an_id_has_one_kind, the_worst_is_first,
            an_acknowledgement_has_a_scope, a_worse_alert_loses_its_acknowledgement,
            cleared_alerts_lose_their_acknowledgement, a_failed_job_is_an_alert_until_it_is_replaced,
            each_kind_is_in_the_documents, each_alert_of_the_view_has_a_kind)
