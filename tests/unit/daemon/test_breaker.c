/*
 * Circuit breaker: stories written as text. f: an attempt fails, s: one succeeds, h: hurry, digits:
 * this many seconds pass; [n]: the room is n with no delivery under way, (n): with one under way.
 * Opening and closing are noted as O and C, in order. Three failures in a row open for 5 seconds;
 * at most 4 are under way.
 */
#include "service/daemon/delivery/breaker.h"

#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *story, *changes;
} cases[] = {
    {"[4](3)", ""},
    {"s[4]", ""},
    {"f[4]f[4](3)", ""},
    {"fff[0](0)", "O"},
    {"ffsff[4]", ""},
    {"ffsfff[0]", "O"},
    {"fff4[0]1[1](0)", "O"},
    {"fff5[1]s[4](3)", "OC"},
    {"fff5[1]f[0]4[0]1[1]", "O"},
    {"fff5f5f5f5s[4]", "OC"},
    {"fff5sff[4]f[0]", "OCO"},
    {"ffff[0]5[1]", "O"},
    {"fff3f4[0]1[1]", "O"}, /* one that was under way when it opened */
    {"fff3s[4]", "OC"},
    {"fffh[1](0)", "O"},
    {"fffhf[0]5[1]", "O"},
    {"h[4]", ""},
};

static void
note(char *changes, enum breaker_change change)
{
    if (change != BREAKER_UNCHANGED)
        strcat(changes, change == BREAKER_OPENED ? "O" : "C");
}

START_TEST(the_table_of_stories)
{
    const struct conf_delivery settings = {.breaker_failures = 3, .breaker_seconds = 5};
    struct breaker breaker = {0};
    uint64_t now_ms = 1000;
    char changes[16] = "";
    for (const char *at = cases[_i].story; *at; at++) {
        if (*at == 'f')
            note(changes, breaker_failed(&breaker, &settings, now_ms));
        else if (*at == 's')
            note(changes, breaker_succeeded(&breaker));
        else if (*at == 'h')
            breaker_probe_now(&breaker);
        else if (isdigit(*at))
            now_ms += 1000u * (unsigned)(*at - '0');
        else {
            size_t under_way = *at == '(';
            ck_assert_msg(breaker_room(&breaker, under_way, 4, now_ms) == (size_t)(at[1] - '0'), "%s, at %s",
                          cases[_i].story, at);
            at += 2;
        }
    }
    ck_assert_str_eq(changes, cases[_i].changes);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_breaker");
    TCase *tests = tcase_create("breaker");
    tcase_add_loop_test(tests, the_table_of_stories, 0, sizeof cases / sizeof cases[0]);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
