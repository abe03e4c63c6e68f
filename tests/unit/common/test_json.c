/* Written JSON: structure, digits, escapes, bytes that are not UTF-8. */
#include "base/text.h"
#include "service/common/json.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static char *text;
static size_t text_size;
static struct json json;

static void
open_json(void)
{
    json = (struct json){.out = open_memstream(&text, &text_size)};
    ck_assert_ptr_nonnull(json.out);
}

static void
assert_json(const char *expected)
{
    ck_assert_int_eq(fclose(json.out), 0);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(a_document)
{
    open_json();
    json_begin_object(&json, NULL);
    json_integer(&json, "n", -5);
    json_begin_array(&json, "list");
    json_number(&json, NULL, 0.25);
    json_begin_object(&json, NULL);
    json_end_object(&json);
    json_number(&json, NULL, (double)INFINITY);
    json_end_array(&json);
    json_begin_array(&json, "none");
    json_end_array(&json);
    json_boolean(&json, "yes", true);
    json_end_object(&json);
    assert_json("{\n  \"n\": -5,\n  \"list\": [\n    0.25,\n    {},\n    null\n  ],\n"
                "  \"none\": [],\n  \"yes\": true\n}\n");
}

END_TEST

START_TEST(rows)
{
    open_json();
    json_begin_array(&json, NULL);
    json_begin_row(&json, NULL);
    json_integer(&json, NULL, 1);
    json_exact(&json, NULL, 0.5);
    json_end_row(&json);
    json_begin_row(&json, NULL);
    json_end_row(&json);
    json_begin_object(&json, NULL);
    json_integer(&json, "after", 2);
    json_end_object(&json);
    json_end_array(&json);
    assert_json("[\n  [1, 0.5],\n  [],\n  {\n    \"after\": 2\n  }\n]\n");
}

END_TEST

START_TEST(numbers_are_short_and_exact)
{
    static const struct {
        double number;
        const char *written;
    } cases[] = {
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {0, "0"},
        {-2.5, "-2.5"},
        {9558903868, "9558903868"},
        {1e300, "1e+300"},
        {5e-324, "4.94065645841247e-324"},
        {(double)NAN, "nan"},
    };

    char digits[TEXT_DIGITS];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        text_digits(cases[i].number, digits);
        ck_assert_str_eq(digits, cases[i].written);
    }
    srand(11);
    for (int i = 0; i < 100000; i++) {
        double number = ldexp((double)rand() + (double)rand() / RAND_MAX, rand() % 2000 - 1000);
        text_digits(number, digits);
        if (strtod(digits, NULL) != number)
            ck_abort_msg("%a is written %s", number, digits);
    }
    open_json();
    json_exact(&json, NULL, (double)NAN);
    assert_json("null");
}

END_TEST

START_TEST(hostile_texts)
{
    static const struct {
        const char *text, *written;
    } cases[] = {
        {"", "\"\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"\n\t\x01\x7f", "\"\\n\\u0009\\u0001\\u007f\""},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff x", "\"\\ufffd x\""},
        {"\xc3", "\"\\ufffd\""},
        {"\xc0\x80", "\"\\ufffd\\ufffd\""},                       /* overlong */
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},            /* a surrogate */
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* beyond U+10FFFF */
        {"\xe2\x82", "\"\\ufffd\\ufffd\""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_json();
        json_string(&json, NULL, cases[i].text);
        assert_json(cases[i].written);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_json");
    TCase *tests = tcase_create("json");
    tcase_add_test(tests, a_document);
    tcase_add_test(tests, rows);
    tcase_add_test(tests, numbers_are_short_and_exact);
    tcase_add_test(tests, hostile_texts);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
