/* Finds the name that a misspelt word resembles. */
#include "base/nearest.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <string.h>

static const char *const names[] = {"status", "jobs", "show", "retry", "release", "review", "run"};

static const struct {
    const char *word, *meant;
} words[] = {
    {"stauts", "status"}, /* two letters swapped */
    {"statu", "status"},  {"statuss", "status"}, {"stats", "status"}, {"sttus", "status"},    {"job", "jobs"},
    {"jops", "jobs"},     {"sohw", "show"},      {"rnu", "run"},      {"relaese", "release"}, {"reviw", "review"},
    {"x", NULL},          {"ps", NULL},          {"", NULL},          {"stopped", NULL},      {"josb2x", NULL},
    {"rn", NULL},
};

START_TEST(the_nearest_of_names)
{
    struct nearest nearest = nearest_of(words[_i].word);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        nearest_try(&nearest, names[i]);
    if (words[_i].meant)
        ck_assert_str_eq(nearest.name ? nearest.name : "", words[_i].meant);
    else
        ck_assert_msg(!nearest.name, "%s", nearest.name);
}

END_TEST

START_TEST(long_words_have_no_suggestion)
{
    char word[200];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    struct nearest nearest = nearest_of(word);
    nearest_try(&nearest, word);
    ck_assert_ptr_null(nearest.name);
    nearest = nearest_of("aaaa");
    nearest_try(&nearest, word);
    ck_assert_ptr_null(nearest.name);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("base_nearest");
    TCase *tests = tcase_create("nearest");
    tcase_add_loop_test(tests, the_nearest_of_names, 0, sizeof words / sizeof *words);
    tcase_add_test(tests, long_words_have_no_suggestion);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
