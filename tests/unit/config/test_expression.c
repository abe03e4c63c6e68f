/*
 * test_expression.c - regular expressions: equal to the C library's POSIX engine, refused where the
 * two would differ, and bounded in time and memory.
 */
#include "config/expression.h"

#include "tests/peak.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct expression *
compile(const char *text)
{
    struct expression *expression;
    char reason[EXPRESSION_REASON] = "";
    ck_assert_msg(expression_compile(text, &expression, reason) == 0, "%s: %s", text, reason);
    return expression;
}

static int
match(const char *text, const char *subject)
{
    struct expression *expression = compile(text);
    const int matches = expression_match(expression, subject);
    expression_free(expression);
    return matches;
}

/* ------------------------------------------------------------------------------ by hand ---- */

/* Expected by POSIX (XBD 9.4) and by the characters of the subject. */
static const struct {
    const char *text, *subject;
    int matches;
} by_hand[] = {
    {"lung", "CT Lung 1mm", 1},
    {"^lung$", "lung", 1},
    {"^lung$", "lungs", 0},
    {"^b$", "a\nb\nc", 0}, /* newlines do not separate lines */
    {"a.b", "a\nb", 1},
    {"a[^x]b", "a\nb", 1},
    {"(Kopf|Hals) +nativ", "HALS   NATIV", 1},
    {"C\\+", "C+", 1},
    {"C[+]", "CC", 0},
    {"[[:digit:]]{2}", "a1b2", 0},
    {"[[:digit:]]{2}", "a12", 1},
    {"[[:upper:]]", "abc", 1}, /* case is ignored */
    {"[]x]", "]", 1},
    {"[^]x]", "]x", 0},
    {"[a-]", "-", 1},
    {"[.]", "x", 0},
    {"[\\d]", "7", 0}, /* within [ ] a backslash is a character */
    {"[\\d]", "D", 1},
    {"[\\]]", "x]", 0},
    {"[\\]]", "\\]", 1},
    {"\\bhead\\b", "CT head-neck", 1},
    {"\\bhead\\b", "forehead", 0},
    {"\\w+\\s\\w+", "a b", 1},
    {"a{2}", "ba", 0},
    {"a{2,}b", "aaab", 1},
    {"^a{1,2}b", "aaab", 0},
    {"", "", 1},
    {"", "x", 1},
    {"()", "", 1},
    {"x*", "", 1},
    {"(|a)b", "b", 1},
    /* M, u umlaut, ller: one character, and its capital. */
    {"^M.ller$", "M\xc3\xbcller", 1},
    {"^M\xc3\x9cLLER$", "M\xc3\xbcller", 1},
    {"^[\xc3\xa4\xc3\xbc]$", "\xc3\xbc", 1},
    {"^[\xc3\xa4\xc3\xbc]$", "\xc3\xb6", 0},
    /* Bytes that are not UTF-8 do not match, but the text around them does. */
    {"a.b",
     "a\xff"
     "b",
     0},
    {"b$",
     "a\xff"
     "b",
     1},
};

START_TEST(matches_as_posix_defines)
{
    ck_assert_msg(match(by_hand[_i].text, by_hand[_i].subject) == by_hand[_i].matches, "\"%s\" and \"%s\"",
                  by_hand[_i].text, by_hand[_i].subject);
}

END_TEST

/* ------------------------------------------------------------------------------ refusals ---- */

static const struct {
    const char *text, *reason;
} refused[] = {
    {"(a)\\1", "character 4, \"\\1\": back-references are not supported"},
    {"\xc3\xbc(a)\\9", "character 5, \"\\9\": back-references are not supported"},
    {"a(?=b)", "character 2, \"(?\": look-around and other groups (?...) are not supported"},
    {"(?<!a)b", "character 1, \"(?\": look-around and other groups (?...) are not supported"},
    {"(?i)a", "character 1, \"(?\": look-around and other groups (?...) are not supported"},
    {"x\\d", "character 2, \"\\d\": write [0-9] for a digit and [^0-9] for another character"},
    {"\\n", "character 1, \"\\n\": this escape is not supported"},
    {"\\x41", "character 1, \"\\x\": this escape is not supported"},
    {"\\pL", "character 1, \"\\p\": this escape is not supported"},
    {"\\<a", "character 1, \"\\<\": this escape is not supported; write \\b for the edge of a word"},
    {"a{,5}", "character 2, \"{\": a repetition must be {n}, {n,} or {n,m}; write \\{ for a brace"},
    {"a{x}", "character 2, \"{\": a repetition must be {n}, {n,} or {n,m}; write \\{ for a brace"},
    {"[[.a.]]", "character 2, \"[.\": collating elements [. .] and [= =] are not supported"},
    {"[[=a=]]", "character 2, \"[=\": collating elements [. .] and [= =] are not supported"},
    {"((a{32}){32})", "character 9, \"{32}\": repetitions may not multiply to more than 1000"},
    {"a{1001}", "character 2, \"{1001}\": repetitions may not multiply to more than 1000"},
    {"(a", "a parenthesis ( is not closed"},
    {"a)", "a parenthesis ) is not open; write \\) for the character"},
    {"[a", "a bracket [ is not closed"},
    {"*a", "character 1, \"*\": the repeat operator has no operand"},
    {"a\\", "the expression ends with a backslash"},
    {"a\xff", "it is not valid UTF-8"},
    {"([\xc3\xa0-\xe9\xbf\xbf]x.y){1000}([\xc3\xa0-\xe9\xbf\xbf]x.y){1000}",
     "it is too large: it may take 1 MiB of memory"},
};

START_TEST(refuses_with_the_character_and_the_reason)
{
    struct expression *expression;
    char reason[EXPRESSION_REASON] = "";
    ck_assert_int_eq(expression_compile(refused[_i].text, &expression, reason), -EINVAL);
    ck_assert_ptr_null(expression);
    if (strcmp(refused[_i].text, "((a{32}){32})") != 0)
        ck_assert_str_eq(reason, refused[_i].reason);
    else /* the part occurs twice, so the reason names no character */
        ck_assert_str_eq(reason, strstr(refused[_i].reason, "repetitions"));
}

END_TEST

/* ------------------------------------------------------------------------ the C library's ---- */

static uint64_t state = 88172645463325252u;

static unsigned
draw(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state % below);
}

static const char *const atoms[] = {"a",
                                    "b",
                                    "B",
                                    "c",
                                    ".",
                                    "\\.",
                                    "[ab]",
                                    "[^a]",
                                    "[a-c]",
                                    "[]a]",
                                    "[^]b]",
                                    "[\\d]",
                                    "[[:alpha:]]",
                                    "[[:digit:]]",
                                    "^",
                                    "$",
                                    "\\b",
                                    "\\w",
                                    "\\W",
                                    "\\s",
                                    "[a\\]",
                                    "[A-Z_]",
                                    "[[:space:]x]",
                                    "1",
                                    " ",
                                    "-",
                                    "\\(",
                                    "[[:upper:]]",
                                    "()",
                                    "\\S",
                                    "[-a]",
                                    "[a-]",
                                    "[.]",
                                    "\n",
                                    "\\[",
                                    "}",
                                    "]",
                                    "[^[:punct:]]",
                                    "(a|)",
                                    "\\*",
                                    "(a|ab)",
                                    "(b|bc|c)",
                                    "[[:lower:]1-3]",
                                    ","};
static const char *const repeats[] = {"", "", "", "", "*", "+", "?", "{2}", "{0,1}", "{1,}", "{1,3}", "**"};
static const char *const letters[] = {"a", "b", "A", "B",  "c",  "C", "1", " ", "-",
                                      ".", "d", "]", "\\", "\n", "(", "_", "*", "}"};

#define DRAW(list) list[draw((unsigned)(sizeof list / sizeof *(list)))]

static void
draw_pattern(char *text)
{
    int open = 0;
    *text = '\0';
    for (unsigned i = 0, count = 1 + draw(7); i < count; i++) {
        if (draw(6) == 0) {
            strcat(text, "(");
            open++;
        }
        strcat(text, DRAW(atoms));
        strcat(text, DRAW(repeats));
        if (draw(8) == 0)
            strcat(text, "|");
        if (open > 0 && draw(3) == 0) {
            strcat(strcat(text, ")"), DRAW(repeats));
            open--;
        }
    }
    for (; open > 0; open--)
        strcat(text, ")");
}

static void
draw_subject(char *text)
{
    *text = '\0';
    for (unsigned count = draw(12); count > 0; count--)
        strcat(text, DRAW(letters));
}

/* Compares the two with eight subjects. Returns false if one refuses the pattern. */
static bool
compare_one(const char *pattern)
{
    struct expression *expression;
    char reason[EXPRESSION_REASON], subject[64];
    regex_t posix;
    if (regcomp(&posix, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
        return false;
    const bool both = expression_compile(pattern, &expression, reason) == 0;
    for (int i = 0; i < 8 && both; i++) {
        draw_subject(subject);
        /* glibc 2.36 takes the start of a line for that of the subject, without REG_NEWLINE. */
        if (strchr(subject, '\n') && strpbrk(pattern, "^$"))
            continue;
        const int expected = regexec(&posix, subject, 0, NULL, 0) == 0;
        ck_assert_msg(expression_match(expression, subject) == expected, "pattern \"%s\", subject \"%s\": POSIX %d",
                      pattern, subject, expected);
    }
    expression_free(expression);
    regfree(&posix);
    return both;
}

START_TEST(equals_the_c_library_where_both_accept)
{
    char pattern[512];
    int compared = 0, drawn = 0;
    for (; drawn < 40000; drawn++) {
        draw_pattern(pattern);
        compared += compare_one(pattern);
    }
    ck_assert_int_gt(compared, drawn / 2); /* most of the corpus is of both */
}

END_TEST

/* ---------------------------------------------------------------------------------- cost ---- */

static const char *const evil[] = {
    "(a|b)*a(a|b){60}c",
    "(a|b)*a(a|b){999}c",
    "(a*)*c",
    "(a|a)*c",
    "(a|aa)+$x",
    "(a*a*|a?a+)*(a*a*|a?a+)*(a*a*|a?a+)*(a*a*|a?a+)*(a*a*|a?a+)*(a*a*|a?a+)*c",
    "a?{999}c",
    "(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x",
    "(((.{10}){10}){9}x)",
    ".*.*.*.*.*.*.*.*.*.*.*.*.*=.*c",
    "([ab]*){2}c",
    "([\xc3\xa0-\xe9\xbf\xbf]x.){1000}",
    ".{1000}.{1}",
    "(.?){1000}[\xc3\xa0-\xe9\xbf\xbf]",
};

static double
cpu_seconds(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
}

/* A sender's comment of 1,000 characters, which never matches. The C library took 70 MiB and did
 * not return, or 2.8 GiB. */
START_TEST(the_cost_is_bounded)
{
    char comment[1001];
    const long before_kib = peak_kib();
    const double before = cpu_seconds();
    for (size_t i = 0; i < 1000; i++)
        comment[i] = "ab"[draw(2)];
    comment[1000] = '\0';
    for (size_t i = 0; i < sizeof evil / sizeof *evil; i++) {
        struct expression *expression = compile(evil[i]);
        for (int again = 0; again < 3; again++)
            ck_assert_msg(expression_match(expression, comment) == 0, "%s", evil[i]);
        expression_free(expression);
    }
    ck_assert_double_lt(cpu_seconds() - before, 60);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_int_lt(peak_kib() - before_kib, 32 * 1024);
#else
    (void)before_kib;
#endif
}

END_TEST

/* -------------------------------------------------------------------------------- memory ---- */

bool starved_new(void); /* starved_new.cc */

static int countdown; /* calls until an allocation fails; 0: never */
static bool hit;

bool
starved_new(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    return hit = true;
}

/* Compiles and matches. Returns 0 or -ENOMEM. */
static int
use_expression(void)
{
    struct expression *expression;
    char reason[EXPRESSION_REASON] = "";
    int rc = expression_compile("^(lung|thorax)[^x]{3}[[:digit:]]+$", &expression, reason);
    if (rc == 0) {
        rc = expression_match(expression, "thoraxabc123");
        ck_assert_msg(rc == 1 || rc == -ENOMEM, "%d", rc);
        rc = rc == 1 ? 0 : rc;
        expression_free(expression);
    }
    ck_assert_str_eq(reason, "");
    return rc;
}

START_TEST(memory_that_runs_out_is_reported)
{
    int n = 0, told = 0;
    ck_assert_int_eq(use_expression(), 0);
    do {
        countdown = ++n;
        hit = false;
        const int rc = use_expression();
        countdown = 0;
        ck_assert_msg(rc == (hit ? -ENOMEM : 0) || (hit && rc == 0), "allocation %d: %d", n, rc);
        told += rc == -ENOMEM;
    } while (hit);
    ck_assert_int_gt(told, 10);
}

END_TEST

int
main(void)
{
    TCase *tests = tcase_create("expression");
    tcase_add_loop_test(tests, matches_as_posix_defines, 0, sizeof by_hand / sizeof *by_hand);
    tcase_add_loop_test(tests, refuses_with_the_character_and_the_reason, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tests, equals_the_c_library_where_both_accept);
    tcase_add_test(tests, the_cost_is_bounded);
    tcase_add_test(tests, memory_that_runs_out_is_reported);
    Suite *suite = suite_create("config_expression");
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
