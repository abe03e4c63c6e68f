/* Log lines: one line per event for any values, levels, cutting, errno. */
#include "service/common/log.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *captured;
static int saved_stderr;

static void
capture(void)
{
    unsetenv("JOURNAL_STREAM");
    log_open("daemon", "info");
    captured = tmpfile();
    ck_assert_ptr_nonnull(captured);
    saved_stderr = dup(STDERR_FILENO);
    dup2(fileno(captured), STDERR_FILENO);
}

static void
release(void)
{
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    fclose(captured);
}

static char *
output(void)
{
    static char text[1 << 16];
    ssize_t size = pread(fileno(captured), text, sizeof text - 1, 0);
    ck_assert_int_ge(size, 0);
    text[size] = 0;
    return text;
}

START_TEST(a_line_has_time_level_role_event_and_fields)
{
    log_info("job.done", LOG_INT("job", 17), LOG_NUM("seconds", 0.41), LOG_STR("uid", "1.2.3"));
    const char *text = output();
    int year, month, day, hour, minute, second, millis, end = 0;
    ck_assert_int_eq(sscanf(text,
                            "ts=%4d-%2d-%2dT%2d:%2d:%2d.%3dZ level=info role=daemon "
                            "event=job.done job=17 seconds=0.41 uid=1.2.3\n%n",
                            &year, &month, &day, &hour, &minute, &second, &millis, &end),
                     7);
    ck_assert_int_eq(end, (int)strlen(text));
}

END_TEST

START_TEST(values_are_quoted_if_required)
{
    static const struct {
        const char *value, *written;
    } cases[] = {
        {"plain", " v=plain\n"},
        {"", " v=\"\"\n"},
        {NULL, " v=\"\"\n"},
        {"two words", " v=\"two words\"\n"},
        {"a=b", " v=\"a=b\"\n"},
        {"say \"x\"", " v=\"say \\\"x\\\"\"\n"},
        {"back\\slash", " v=\"back\\\\slash\"\n"},
        {"line\nlevel=error", " v=\"line\\nlevel=error\"\n"},
        {"tab\tbell\a\x7f", " v=\"tab\\tbell\\x07\\x7f\"\n"},
        {"L\xc3\xa4nge", " v=L\xc3\xa4nge\n"},
        {"L\xc3\xa4nge \xc2\x9b"
         "31m",
         " v=\"L\xc3\xa4nge \\xc2\\x9b31m\"\n"}, /* C1: CSI */
        {"\x9b"
         "31m\xff",
         " v=\"\\x9b31m\\xff\"\n"},
        {"a\xc2\xa0"
         "b",
         " v=a\xc2\xa0"
         "b\n"},
    };

    size_t at = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        log_warn("e", LOG_STR("v", cases[i].value));
        const char *text = output() + at;
        const char *field = strstr(text, " v=");
        ck_assert_ptr_nonnull(field);
        ck_assert_str_eq(field, cases[i].written);
        at += strlen(text);
    }
}

END_TEST

START_TEST(levels_below_the_threshold_are_silent)
{
    log_debug("hidden", LOG_INT("n", 1));
    log_set_level("error");
    log_warn("hidden", LOG_INT("n", 1));
    log_set_level("no such level");
    log_info("hidden", LOG_INT("n", 1));
    ck_assert_str_eq(output(), "");
    log_error("shown", LOG_INT("n", 1));
    log_set_level("debug");
    log_debug("shown", LOG_INT("n", 1));
    ck_assert_ptr_nonnull(strstr(output(), "level=error"));
    ck_assert_ptr_nonnull(strstr(output(), "level=debug"));
    ck_assert_ptr_null(strstr(output(), "hidden"));
}

END_TEST

START_TEST(a_long_line_is_cut_and_marked)
{
    char *value = malloc(10001);
    ck_assert_ptr_nonnull(value);
    memset(value, '\n', 10000); /* grows by its escapes */
    value[10000] = 0;
    log_info("long", LOG_STR("v", value), LOG_INT("after", 1));
    free(value);
    const char *text = output();
    size_t size = strlen(text);
    ck_assert_uint_le(size, 4096);
    ck_assert_str_eq(text + size - strlen(" cut=1\n"), " cut=1\n");
    ck_assert_ptr_eq(strchr(text, '\n'), text + size - 1);
}

END_TEST

START_TEST(errno_is_kept)
{
    errno = ENOSPC;
    log_info("e", LOG_INT("n", 1));
    ck_assert_int_eq(errno, ENOSPC);
    dup2(saved_stderr, STDERR_FILENO);
    close(STDERR_FILENO);
    log_info("nobody hears", LOG_INT("n", 1));
    ck_assert_int_eq(errno, ENOSPC);
    dup2(fileno(captured), STDERR_FILENO);
}

END_TEST

static void *
chatter(void *argument)
{
    const char *text = argument;
    for (int i = 0; i < 100; i++)
        log_info("chatter", LOG_STR("v", text), LOG_STR("end", "here"));
    return NULL;
}

START_TEST(lines_of_threads_do_not_mix)
{
    /* Uses a pipe, as in production. A file would need O_APPEND. */
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, chatter, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    pthread_create(&threads[1], NULL, chatter, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    dup2(fileno(captured), STDERR_FILENO);
    close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    char line[512];
    int lines = 0;
    while (fgets(line, sizeof line, in)) {
        ck_assert_int_eq(strncmp(line, "ts=", 3), 0);
        ck_assert_ptr_nonnull(strstr(line, " end=here\n"));
        ck_assert(!strchr(strstr(line, " v="), 'a') || !strstr(strstr(line, " v="), "bb"));
        lines++;
    }
    fclose(in);
    ck_assert_int_eq(lines, 200);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_log");
    TCase *tests = tcase_create("lines");
    tcase_add_checked_fixture(tests, capture, release);
    tcase_add_test(tests, a_line_has_time_level_role_event_and_fields);
    tcase_add_test(tests, values_are_quoted_if_required);
    tcase_add_test(tests, levels_below_the_threshold_are_silent);
    tcase_add_test(tests, a_long_line_is_cut_and_marked);
    tcase_add_test(tests, errno_is_kept);
    tcase_add_test(tests, lines_of_threads_do_not_mix);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
