/* Untrusted text in HTML, alone and in tables. */
#include "service/common/html/html.h"

#include "base/text.h"
#include "db/pull_queue.h"
#include "db/queue/queue_private.h"
#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct text_stream stream;

static void
open_stream(void)
{
    ck_assert_int_eq(text_open(&stream), 0);
}

/* Checks the written text and starts again. */
static void
assert_written(const char *expected)
{
    ck_assert_int_eq(text_close(&stream), 0);
    ck_assert_str_eq(stream.bytes, expected);
    free(stream.bytes);
    open_stream();
}

static void
close_stream(void)
{
    assert_written("");
    ck_assert_int_eq(text_close(&stream), 0);
    free(stream.bytes);
}

START_TEST(text_is_no_markup)
{
    html_text("<b a='1' c=\"2\">&amp;", stream.out);
    assert_written("&#60;b a=&#39;1&#39; c=&#34;2&#34;&#62;&#38;amp;");
    html_text("M\xc3\xbcller \xe2\x80\xae\xff\x1b[2J", stream.out);
    assert_written("M\xc3\xbcller &#xFFFD;&#xFFFD; [2J");
    html_untrusted("a", stream.out);
    assert_written("<bdi>a</bdi>");
    html_untrusted("Left kidney 1.2.826.0.1.3680043.8", stream.out); /* 23 characters in a row */
    assert_written("<bdi>Left kidney 1.2.826.0.1.3680043.8</bdi>");
    html_untrusted("of 1.2.826.0.1.3680043.8.498", stream.out); /* may be broken */
    assert_written("<bdi class=\"long\">of 1.2.826.0.1.3680043.8.498</bdi>");
}

END_TEST

START_TEST(values_in_an_address_are_escaped)
{
    html_query("aZ09-._~", stream.out);
    assert_written("aZ09-._~");
    html_query("&x=1#\"'<>%/? +\xc3\xbc", stream.out);
    assert_written("%26x%3D1%23%22%27%3C%3E%25%2F%3F%20%2B%C3%BC");
}

END_TEST

START_TEST(a_time_is_local_with_utc_as_tooltip)
{
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    html_time("2025-07-28T23:05:09.000Z", stream.out);
    assert_written(
        "<time datetime=\"2025-07-28T23:05:09.000Z\" title=\"2025-07-28 23:05:09 UTC\">29 Jul 2025 01:05</time>");
    /* 29 March and 25 October 2026 in Berlin */
    static const char *const turns[][3] = {{"2026-03-29T00:59:59.000Z", "29 Mar", "01:59"},
                                           {"2026-03-29T01:00:00.000Z", "29 Mar", "03:00"},
                                           {"2026-10-25T00:59:59.000Z", "25 Oct", "02:59"},
                                           {"2026-10-25T01:00:00.000Z", "25 Oct", "02:00"}};
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        char expected[160];
        const time_t now = time(NULL);
        const bool is_this_year = localtime(&now)->tm_year == 2026 - 1900;
        snprintf(expected, sizeof expected, "<time datetime=\"%s\" title=\"%.10s %.8s UTC\">%s%s %s</time>",
                 turns[i][0], turns[i][0], turns[i][0] + 11, turns[i][1], is_this_year ? "" : " 2026", turns[i][2]);
        html_time(turns[i][0], stream.out);
        assert_written(expected);
    }
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    html_time("never", stream.out);
    assert_written("never");
    html_untrusted("3 jobs, 12 at 2025-07-28T23:05Z <b>", stream.out);
    assert_written("<bdi>3 jobs, 12 at <time datetime=\"2025-07-28T23:05:00.000Z\" title=\"2025-07-28 23:05:00 UTC\">"
                   "29 Jul 2025 01:05</time> &#60;b&#62;</bdi>");
}

END_TEST

START_TEST(numbers_have_commas_and_durations_units)
{
    static const struct {
        double seconds;
        const char *text;
    } durations[] = {
        {2.34, "2.3 s"}, {42.0, "42 s"}, {61.0, "1 min 1 s"}, {7300.0, "2 h 1 min"}, {226800.0, "2 d 15 h"}};

    static const struct {
        int64_t count;
        const char *text;
    } counts[] = {{0, "0"}, {999, "999"}, {1000, "1,000"}, {-1234567, "-1,234,567"}};

    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
        html_duration(durations[i].seconds, stream.out);
        assert_written(durations[i].text);
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        html_count(counts[i].count, stream.out);
        assert_written(counts[i].text);
    }
}

END_TEST

START_TEST(each_state_has_a_shape_and_a_word)
{
    html_state("GATHERING", stream.out);
    assert_written("<span class=\"mark receiving\"><svg class=\"i\" aria-hidden=\"true\"><use "
                   "href=\"#i-receiving\"/></svg>Receiving</span>");
    html_state("<x>", stream.out);
    assert_written("<bdi>&#60;x&#62;</bdi>");
    html_sprite(stream.out);
    ck_assert_int_eq(text_close(&stream), 0);
    for (int mark = MARK_DONE; mark <= MARK_NONE; mark++) {
        char id[64];
        snprintf(id, sizeof id, "<symbol id=\"i-%s\"", html_mark_class((enum html_mark)mark));
        ck_assert_msg(strstr(stream.bytes, id) != NULL, "%s", id);
    }
    for (int i = 0; i <= QUEUE_CANCELLED; i++)
        ck_assert_msg(html_find_state(queue_job_states[i]) != NULL, "%s", queue_job_states[i]);
    for (int i = 0; i <= QUEUE_DELIVERY_CANCELLED; i++)
        ck_assert_msg(html_find_state(queue_delivery_states[i]) != NULL, "%s", queue_delivery_states[i]);
    for (int i = 0; i <= QUEUE_PULL_CANCELLED; i++)
        ck_assert_msg(html_find_state(queue_pull_states[i]) != NULL, "%s", queue_pull_states[i]);
    free(stream.bytes);
    open_stream();
}

END_TEST

static const struct report_column columns[] = {
    {"job", "JOB", REPORT_NUMBER, "job"},
    {"share", "PROGRESS", REPORT_SHARE, "share"},
    {"series_uid", "series", REPORT_TEXT | REPORT_BELOW, "series_uid"},
};
static const struct report_list list = {.key = "list", .heading = "Heading", .columns = columns, .column_count = 3};
static const struct html_link links[] = {
    {"job", "job?id=", NULL}, {"series_uid", "series?uid=", NULL}, {NULL, NULL, NULL}};

START_TEST(cells_lead_somewhere)
{
    char job[] = "7", share[] = "0.424", uid[] = "1.2\"><b>";
    char *cells[] = {job, share, uid, NULL, NULL, NULL};
    const struct report_table table = {.list = &list, .cells = cells, .row_count = 2};
    html_table(&table, links, NULL, stream.out);
    ck_assert_int_eq(text_close(&stream), 0);
    ck_assert_ptr_nonnull(strstr(stream.bytes, "<a href=\"job?id=7\"><bdi>7</bdi></a>"));
    ck_assert_ptr_nonnull(
        strstr(stream.bytes, "<progress max=\"100\" value=\"42\" aria-label=\"42 %\">42 %</progress>"));
    ck_assert_ptr_nonnull(
        strstr(stream.bytes, "<a href=\"series?uid=1.2%22%3E%3Cb%3E\"><bdi>1.2&#34;&#62;&#60;b&#62;</bdi></a>"));
    ck_assert_ptr_null(strstr(stream.bytes, "<b>"));
    ck_assert_ptr_null(strstr(strstr(stream.bytes, "</tr>\n<tr>"), "<a ")); /* an unknown value has no link */
    free(stream.bytes);
    open_stream();
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("common_html");
    TCase *tests = tcase_create("html");
    tcase_add_checked_fixture(tests, open_stream, close_stream);
    tcase_add_test(tests, text_is_no_markup);
    tcase_add_test(tests, values_in_an_address_are_escaped);
    tcase_add_test(tests, a_time_is_local_with_utc_as_tooltip);
    tcase_add_test(tests, numbers_have_commas_and_durations_units);
    tcase_add_test(tests, each_state_has_a_shape_and_a_word);
    tcase_add_test(tests, cells_lead_somewhere);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
