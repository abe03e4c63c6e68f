/* UTF-8 and texts made in memory. */
#include "base/text.h"
#include "tests/unit/starve.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(base_names)
{
    ck_assert_str_eq(text_base_name("/a/b.dcm"), "b.dcm");
    ck_assert_str_eq(text_base_name("b.dcm"), "b.dcm");
    ck_assert_str_eq(text_base_name("/a/"), "");
}

END_TEST

static const struct {
    const char *text;
    size_t length;
} characters[] = {
    {"", 0},
    {"a", 1},
    {"\x7f", 1},
    {"\xc2\x80", 2},
    {"\xdf\xbf", 2},
    {"\xe0\xa0\x80", 3},
    {"\xed\x9f\xbf", 3},
    {"\xef\xbf\xbd", 3},
    {"\xf0\x90\x80\x80", 4},
    {"\xf4\x8f\xbf\xbf", 4},
    /* No characters. */
    {"\x80", 0},
    {"\xc0\xaf", 0}, /* overlong */
    {"\xc1\xbf", 0},
    {"\xe0\x9f\xbf", 0},
    {"\xf0\x8f\xbf\xbf", 0},
    {"\xed\xa0\x80", 0},     /* a surrogate */
    {"\xf4\x90\x80\x80", 0}, /* beyond U+10FFFF */
    {"\xf5\x80\x80\x80", 0},
    {"\xff", 0},
    {"\xc3", 0}, /* cut off */
    {"\xe2\x82", 0},
    {"\xf0\x9f\x92", 0},
    {"\xe2\x82\x41", 0},
};

START_TEST(lengths_of_characters)
{
    ck_assert_uint_eq(text_utf8_length(characters[_i].text), characters[_i].length);
}

END_TEST

START_TEST(characters_are_counted)
{
    ck_assert_uint_eq(text_characters(""), 0);
    ck_assert_uint_eq(text_characters("a\u00e9\u3042\U0001d11e"), 4);
}

END_TEST

START_TEST(ends_are_mended)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"abc", "abc"},
        {"ab\xe2\x82", "ab"},
        {"ab\xc3", "ab"},
        {"ab\xe2\x82\xac", "ab\xe2\x82\xac"},
        {"\x80\x80", "\x80\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[16];
        strcpy(text, cases[i][0]);
        text_utf8_mend_end(text);
        ck_assert_str_eq(text, cases[i][1]);
    }
}

END_TEST

START_TEST(texts_in_memory)
{
    struct text_stream stream;
    ck_assert_int_eq(text_open(&stream), 0);
    fprintf(stream.out, "%d lines\n", 3);
    ck_assert_int_eq(text_close(&stream), 0);
    ck_assert_str_eq(stream.bytes, "3 lines\n");
    ck_assert_uint_eq(stream.size, 8);
    free(stream.bytes);
}

END_TEST

static int
make_text(struct error *error)
{
    struct text_stream stream;
    int rc = text_open(&stream);
    for (int i = 0; rc == 0 && i < 20000; i++)
        fprintf(stream.out, "%d\n", i);
    if (rc == 0)
        rc = text_close(&stream);
    if (rc == 0 && stream.size != 108890)
        abort();
    free(stream.bytes);
    return rc ? error_set(error, rc, CODE_OUT_OF_MEMORY, "no text") : 0;
}

START_TEST(texts_without_memory_are_null)
{
    expect_told(make_text);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("base_text");
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, base_names);
    tcase_add_test(tests, texts_without_memory_are_null);
    tcase_add_loop_test(tests, lengths_of_characters, 0, (int)(sizeof characters / sizeof characters[0]));
    tcase_add_test(tests, characters_are_counted);
    tcase_add_test(tests, ends_are_mended);
    tcase_add_test(tests, texts_in_memory);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
