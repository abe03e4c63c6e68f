/* The first bytes of a connection: the size of the message, and invalid data. */
#include "service/receiver/net/preread.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *bytes;
    size_t size;
    bool tls;
    ssize_t expected;
} cases[] = {
    {"", 0, false, 1},
    {"", 0, true, 1},
    {"\1", 1, false, 6},
    {"\1\0\0\0\0", 5, false, 6},
    {"\1\0\0\0\0\104", 6, false, 6 + 68},
    {"\1\377\0\0\0\104", 6, false, 6 + 68}, /* the reserved byte is ignored */
    {"\1\0\0\0\0\103", 6, false, -EPROTO},
    {"\1\0\0\0\1\0", 6, false, 6 + 256},
    {"\1\0\0\0\377\372", 6, false, 0x10000},
    {"\1\0\0\4\0\0", 6, false, 6 + 0x40000}, /* the limit of conformance.md, and beyond */
    {"\1\0\0\4\0\1", 6, false, 6 + 0x40001},
    {"\2", 1, false, -EPROTO},
    {"GET / ", 6, false, -EPROTO},
    {"\26", 1, false, -EPROTO}, /* TLS on the plain port */
    {"\26", 1, true, 5},
    {"\26\3\1\2", 4, true, 5},
    {"\26\3\1\0\1", 5, true, 6},
    {"\26\3\1\2\0", 5, true, 5 + 512},
    {"\26\3\1\100\0\1", 6, true, 5 + 0x4000},
    {"\26\3\1\100\1\1", 6, true, -EPROTO},
    {"\26\3\1\0\0", 5, true, -EPROTO},
    {"\26\2\1\2\0", 5, true, -EPROTO},
    {"\1\0\0\0\0\104", 6, true, -EPROTO}, /* no TLS on the TLS port */
};

START_TEST(the_size_or_the_bytes_needed_are_returned)
{
    ck_assert_int_eq(preread_size((const uint8_t *)cases[_i].bytes, cases[_i].size, cases[_i].tls), cases[_i].expected);
}

END_TEST

START_TEST(the_replies_are_the_standards)
{
    static const uint8_t busy[PREREAD_REPLY] = {3, 0, 0, 0, 0, 4, 0, 2, 3, 2};
    static const uint8_t aborted[PREREAD_REPLY] = {7, 0, 0, 0, 0, 4, 0, 0, 2, 1};
    ck_assert_mem_eq(preread_busy, busy, sizeof busy);
    static const uint8_t unknown_caller[PREREAD_REPLY] = {3, 0, 0, 0, 0, 4, 0, 1, 1, 3};
    static const uint8_t unknown_title[PREREAD_REPLY] = {3, 0, 0, 0, 0, 4, 0, 1, 1, 7};
    ck_assert_mem_eq(preread_unknown_caller, unknown_caller, sizeof unknown_caller);
    ck_assert_mem_eq(preread_unknown_title, unknown_title, sizeof unknown_title);
    ck_assert_mem_eq(preread_abort, aborted, sizeof aborted);
}

END_TEST

START_TEST(titles_are_returned_without_padding)
{
    static const struct {
        const char *bytes, *title;
    } titles[] = {
        {"CT1             ", "CT1"},
        {"  CT 1          ", "CT 1"},
        {"CT1\0\0\0\0\0\0\0\0\0\0\0\0\0", "CT1"},
        {"CT1 \0STRANGER   ", "CT1"},
        {"CT\n\x80            ", "CT??"},
        {"                ", ""},
        {"ABCDEFGHIJKLMNOP", "ABCDEFGHIJKLMNOP"},
    };

    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        uint8_t bytes[PREREAD_TITLES] = {1};
        char called[PREREAD_TITLE], calling[PREREAD_TITLE];
        memcpy(bytes + 10, "NOCTULE         ", 16);
        memcpy(bytes + 26, titles[i].bytes, 16);
        preread_titles(bytes, called, calling);
        ck_assert_str_eq(called, "NOCTULE");
        ck_assert_str_eq(calling, titles[i].title);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("preread");
    TCase *tcase = tcase_create("preread");
    tcase_add_loop_test(tcase, the_size_or_the_bytes_needed_are_returned, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tcase, the_replies_are_the_standards);
    tcase_add_test(tcase, titles_are_returned_without_padding);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
