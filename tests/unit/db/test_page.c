/* The lists of the web UI, and metrics. */
#include "db/metrics.h"
#include "db/pull_queue.h"
#include "db/report.h"
#include "db/report_lists.h"

#include "tests/unit/db/sample.h"
#include "tests/unit/suite.h"

#include <time.h>

#define DOCUMENT NOCTULE_SOURCE_DIR "/docs/operations.md"

static int64_t
now_of_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct sample s;
static struct report *report;
static struct error error;

static void
open_sample(void)
{
    sample_open(&s);
    ck_assert_int_eq(report_open(s.path, &report, &error), 0);
}

static void
close_sample(void)
{
    report_close(report);
    sample_close(&s);
}

static void
ask(enum report_list_name name, const struct report_query *asked, struct report_table *list)
{
    const int rc = report_page(report, name, asked, list, &error);
    ck_assert_msg(rc == 0, "%s: %s", report_lists[name].key, error.message);
}

/* The cells of all pages of a list, concatenated; the number of rows. */
static size_t
ask_all(enum report_list_name name, const char *key, size_t pages, char **cells, size_t room)
{
    struct report_table list;
    char after[REPORT_MARK] = "";
    size_t count = 0;
    for (size_t page = 0; page < pages; page++) {
        const struct report_query asked = {.after = after};
        ask(name, &asked, &list);
        for (size_t row = 0; row < list.row_count; row++, count++) {
            ck_assert_uint_lt(count, room);
            cells[count] = strdup(report_cell(&list, row, key));
        }
        ck_assert_int_eq(*list.next != '\0', page + 1 < pages);
        snprintf(after, sizeof after, "%s", list.next);
        report_table_free(&list);
    }
    return count;
}

START_TEST(each_list_can_be_queried)
{
    int64_t job = sample_job(s.queue, "1.2.1");
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    for (int name = PERIOD_COUNT; name < REPORT_LIST_COUNT; name++) {
        struct report_table list;
        const struct report_query asked = {.job = job, .text = {"1.2.1", "h:0"}};
        ask((enum report_list_name)name, &asked, &list);
        ck_assert_str_eq(list.next, "");
        for (size_t i = 0; i < list.list->column_count; i++)
            for (size_t k = 0; k < i; k++)
                ck_assert_str_ne(list.list->columns[i].key, list.list->columns[k].key);
        report_table_free(&list);
    }
}

END_TEST

/* A job that took the usual time is shown almost complete. */
START_TEST(a_running_job_has_a_progress)
{
    struct report_table list;
    int64_t now_ms = now_of_clock(), done = sample_job(s.queue, "1.2.9");
    ck_assert_int_eq(queue_start_job(s.queue, done, "worker-0", 0, now_ms - 1000000), 0);
    ck_assert_int_eq(
        queue_finish_job(s.queue, done,
                         &(struct queue_finish){QUEUE_DONE, &sample_figures, &sample_result, 1, CODE_NONE, ""},
                         now_ms - 900000),
        0);
    int64_t running = sample_job(s.queue, "1.2.1");
    ck_assert_int_eq(queue_start_job(s.queue, running, "worker-0", 0, now_ms - 50000), 0);
    ck_assert_int_eq(queue_set_stage(s.queue, running, "texture", now_ms - 20000), 0);
    ask(WEB_RUNNING, &(struct report_query){0}, &list);
    ck_assert_uint_eq(list.row_count, 1);
    ck_assert_double_eq_tol(report_number(&list, 0, "usual"), 100, 0.1);
    ck_assert_double_eq_tol(report_number(&list, 0, "share"), 0.5, 0.3); /* a slow machine */
    ck_assert_str_eq(report_cell(&list, 0, "stage"), "texture");
    ck_assert_ptr_nonnull(report_cell(&list, 0, "stage_since"));
    report_table_free(&list);
}

END_TEST

START_TEST(a_first_job_has_no_progress)
{
    struct report_table list;
    int64_t job = sample_job(s.queue, "1.2.1");
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    ask(WEB_RUNNING, &(struct report_query){0}, &list);
    ck_assert_uint_eq(list.row_count, 1);
    ck_assert_str_eq(report_cell(&list, 0, "job"), "1");
    ck_assert_ptr_null(report_cell(&list, 0, "share")); /* no job of its pipeline has ended */
    report_table_free(&list);
}

END_TEST

static void
quarantine(int number)
{
    char path[32];
    snprintf(path, sizeof path, "%d.dcm", number);
    const struct queue_quarantine file = {.path = path,
                                          .original_path = "",
                                          .series_uid = "",
                                          .sop_instance_uid = "",
                                          .code = CODE_FILE_UNREADABLE,
                                          .message = "not DICOM"};
    ck_assert_int_ge(queue_add_quarantine(s.queue, &file, SAMPLE_NOW), 0);
}

/* All of one time, as after a restart: each is listed exactly once. */
START_TEST(a_list_continues_after_its_mark)
{
    enum { COUNT = 2 * PAGE_ROWS + 1 };

    char *files[COUNT + 1];
    for (int i = 0; i < COUNT; i++)
        quarantine(i + 1);
    ck_assert_uint_eq(ask_all(WEB_QUARANTINED, "number", 3, files, COUNT + 1), COUNT);
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(files[i], files[k]);
    }
    for (int i = 0; i < COUNT; i++)
        free(files[i]);
}

END_TEST

/* Batches of one item each, oldest first; ended ones, all of one time, by descending number. */
START_TEST(batches_of_pulls_continue_after_their_mark)
{
    enum { COUNT = 2 * PAGE_ROWS + 1 };

    const struct queue_pull_wish wish = {QUEUE_PULL_STUDY, "1.2.3", 1};
    char *open[COUNT], *ended[COUNT];
    for (int64_t batch = 1; batch <= COUNT; batch++)
        ck_assert_int_eq(queue_add_pulls(s.queue, batch, "PACS", "jane", &wish, 1, SAMPLE_NOW), 0);
    ck_assert_uint_eq(ask_all(WEB_PULLING, "batch", 3, open, COUNT), COUNT);
    for (int64_t batch = 1; batch <= COUNT; batch++)
        ck_assert_int_eq(queue_end_pull(s.queue, batch, QUEUE_PULL_FAILED, CODE_MOVE_REFUSED, "as it is", SAMPLE_NOW),
                         0);
    ck_assert_uint_eq(ask_all(WEB_UNPULLED, "batch", 3, ended, COUNT), COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(atoi(open[i]), i + 1);
        ck_assert_int_eq(atoi(ended[i]), COUNT - i);
        free(open[i]);
        free(ended[i]);
    }
    ck_assert_uint_eq(ask_all(WEB_PULLING, "batch", 1, open, COUNT), 0);
}

END_TEST

/* A batch: the number of its items, the message of the last attempt, and the ends of others. */
START_TEST(a_batch_of_pulls_is_one_row)
{
    const struct queue_pull_wish wishes[] = {{QUEUE_PULL_STUDY, "1.2.3", 1},
                                             {QUEUE_PULL_STUDY, "1.2.4", 1},
                                             {QUEUE_PULL_STUDY, "1.2.5", 1},
                                             {QUEUE_PULL_STUDY, "1.2.6", 1}};
    struct report_table list;
    ck_assert_int_eq(queue_add_pulls(s.queue, 1, "PACS", "jane", wishes, 4, SAMPLE_NOW), 0);
    for (int64_t id = 1; id <= 3; id++) {
        ck_assert_int_eq(queue_start_pull(s.queue, id, SAMPLE_NOW + id), 0);
        if (id < 3)
            ck_assert_int_eq(queue_delay_pull(s.queue, id, SAMPLE_NOW + 100 * id, true,
                                              id == 1 ? CODE_PEER_ABORTED : CODE_PEER_UNREACHABLE,
                                              id == 1 ? "it broke off" : "nobody is there", SAMPLE_NOW + 10),
                             0);
    }
    ck_assert_int_eq(queue_end_pull(s.queue, 4, QUEUE_PULL_NOT_FOUND, CODE_PULL_NOT_FOUND, "it has none", SAMPLE_NOW),
                     0);
    ask(WEB_PULLING, &(struct report_query){0}, &list);
    ck_assert_uint_eq(list.row_count, 1);
    ck_assert_str_eq(report_cell(&list, 0, "under_way"), "1");
    ck_assert_str_eq(report_cell(&list, 0, "waiting"), "2");
    ck_assert_str_eq(report_cell(&list, 0, "ended"), "1");
    ck_assert_str_eq(report_cell(&list, 0, "message"), "nobody is there");
    report_table_free(&list);
    ask(WEB_UNPULLED, &(struct report_query){0}, &list);
    ck_assert_uint_eq(list.row_count, 1);
    ck_assert_str_eq(report_cell(&list, 0, "items"), "1");
    ck_assert_str_eq(report_cell(&list, 0, "message"), "it has none");
    report_table_free(&list);
}

END_TEST

START_TEST(a_full_last_page_has_no_next_page)
{
    char *files[PAGE_ROWS + 1];
    for (int i = 0; i < PAGE_ROWS; i++)
        quarantine(i + 1);
    ck_assert_uint_eq(ask_all(WEB_QUARANTINED, "number", 1, files, PAGE_ROWS + 1), PAGE_ROWS);
    for (int i = 0; i < PAGE_ROWS; i++)
        free(files[i]);
}

END_TEST

START_TEST(slow_queries_are_interrupted)
{
    struct report_table list;
    for (int i = 0; i < 40; i++)
        quarantine(i + 1);
    report_bound(report, 0);
    int rc = 0;
    for (int i = 0; rc == 0 && i < 1000; i++) { /* progress is checked every so many steps */
        rc = report_page(report, WEB_QUARANTINED, &(struct report_query){0}, &list, &error);
        if (rc == 0)
            report_table_free(&list);
    }
    ck_assert_int_eq(rc, -ETIMEDOUT);
    report_release(report);
    ask(WEB_QUARANTINED, &(struct report_query){0}, &list);
    report_table_free(&list);
}

END_TEST

static size_t
find(const char *text)
{
    struct report_table list;
    ask(WEB_FOUND, &(struct report_query){.text = {text, ""}}, &list);
    const size_t count = list.row_count;
    report_table_free(&list);
    return count;
}

START_TEST(a_series_is_found_by_each_stored_attribute)
{
    struct report_table list;
    sample_series(s.queue, "1.2.7", 2);
    ck_assert_uint_eq(find("1.2.7"), 1);
    ck_assert_uint_eq(find("1.2"), 0);
    ck_assert_uint_eq(find("%"), 0);
    ck_assert_uint_eq(find("' OR 1=1 --"), 0);
    ask(WEB_SERIES, &(struct report_query){.text = {"1.2.7", ""}}, &list);
    const char *study = report_cell(&list, 0, "study_uid");
    struct report_table of_study;
    ask(WEB_FOUND_STUDY, &(struct report_query){.text = {study, ""}}, &of_study);
    ck_assert_uint_eq(of_study.row_count, 1);
    report_table_free(&of_study);
    report_table_free(&list);
}

END_TEST

/* -------------------------------------------------------------------------------- metrics ---- */

struct sum {
    double value;
    int rows;
};

static int
add(void *context, const char *label, double value)
{
    struct sum *sum = context;
    ck_assert_ptr_nonnull(label);
    sum->value += value;
    sum->rows++;
    return 0;
}

START_TEST(each_metric_can_be_queried)
{
    int64_t before, after;
    ck_assert_int_eq(report_last_event(report, &before, &error), 0);
    int64_t job = sample_job(s.queue, "1.2.1");
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(sample_finish(s.queue, job), 0);
    ck_assert_int_eq(report_last_event(report, &after, &error), 0);
    for (int name = 0; name < METRIC_COUNT; name++) {
        struct sum sum = {0};
        const int rc = report_each_sample(report, (enum metric_name)name, before, after, add, &sum, &error);
        ck_assert_msg(rc == 0, "%s: %s", metric_table[name].name, error.message);
        if (name == METRIC_noctule_jobs_ended_total || name == METRIC_noctule_job_seconds ||
            name == METRIC_noctule_job_wait_seconds)
            ck_assert_msg(sum.rows == 1 && sum.value > 0, "%s", metric_table[name].name);
    }
    struct sum sum = {0};
    ck_assert_int_eq(report_each_sample(report, METRIC_noctule_jobs_ended_total, after, after, add, &sum, &error), 0);
    ck_assert_int_eq(sum.rows, 0);
}

END_TEST

START_TEST(the_document_is_the_table)
{
    static const char *const types[] = {"gauge", "counter", "histogram", "gauge", "counter", "histogram"};
    char line[2048], expected[2048];
    FILE *document = fopen(DOCUMENT, "r");
    ck_assert_ptr_nonnull(document);
    bool found = false;
    while (!found && fgets(line, sizeof line, document))
        found = strcmp(line, "| Metric | Type | Label | Is |\n") == 0;
    ck_assert(found && fgets(line, sizeof line, document));
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric *metric = &metric_table[i];
        const char *tick = *metric->label ? "`" : "";
        snprintf(expected, sizeof expected, "| `%s` | %s | %s%s%s | %s |\n", metric->name, types[metric->kind], tick,
                 metric->label, tick, metric->help);
        ck_assert_ptr_nonnull(fgets(line, sizeof line, document));
        ck_assert_str_eq(line, expected);
    }
    ck_assert(!fgets(line, sizeof line, document) || line[0] != '|');
    fclose(document);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("db_page");
    TCase *tests = tcase_create("page");
    tcase_add_checked_fixture(tests, open_sample, close_sample);
    tcase_add_test(tests, each_list_can_be_queried);
    tcase_add_test(tests, a_running_job_has_a_progress);
    tcase_add_test(tests, a_first_job_has_no_progress);
    tcase_add_test(tests, a_list_continues_after_its_mark);
    tcase_add_test(tests, batches_of_pulls_continue_after_their_mark);
    tcase_add_test(tests, a_batch_of_pulls_is_one_row);
    tcase_add_test(tests, a_full_last_page_has_no_next_page);
    tcase_add_test(tests, slow_queries_are_interrupted);
    tcase_add_test(tests, a_series_is_found_by_each_stored_attribute);
    tcase_add_test(tests, each_metric_can_be_queried);
    tcase_add_test(tests, the_document_is_the_table);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
