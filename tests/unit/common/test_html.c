/* Untrusted text in HTML, alone and in tables. */
#include "service/common/html/html.h"

#include "base/text.h"
#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>

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

static const struct report_column columns[] = {
    {"job", "JOB", REPORT_NUMBER, "job"},
    {"share", "PROGRESS", REPORT_SHARE, "share"},
    {"series_uid", "series", REPORT_TEXT | REPORT_BELOW, "series_uid"},
};
static const struct report_list list = {.heading = "Heading", .columns = columns, .column_count = 3};
static const struct html_link links[] = {{"job", "job?id="}, {"series_uid", "series?uid="}, {NULL, NULL}};

START_TEST(cells_lead_somewhere)
{
    char job[] = "7", share[] = "0.424", uid[] = "1.2\"><b>";
    char *cells[] = {job, share, uid, NULL, NULL, NULL};
    const struct report_table table = {.list = &list, .cells = cells, .row_count = 2};
    html_table(&table, links, stream.out);
    ck_assert_int_eq(text_close(&stream), 0);
    ck_assert_ptr_nonnull(strstr(stream.bytes, "<a href=\"job?id=7\"><bdi>7</bdi></a>"));
    ck_assert_ptr_nonnull(strstr(stream.bytes, "<progress max=\"100\" value=\"42\">42 %</progress>"));
    ck_assert_ptr_nonnull(
        strstr(stream.bytes, "<a href=\"series?uid=1.2%22%3E%3Cb%3E\"><bdi>1.2&#34;&#62;&#60;b&#62;</bdi></a>"));
    ck_assert_ptr_null(strstr(stream.bytes, "<b>"));
    ck_assert_ptr_null(strstr(strstr(stream.bytes, "</tbody>") + 1, "<a ")); /* an unknown value has no link */
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
    tcase_add_test(tests, cells_lead_somewhere);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
