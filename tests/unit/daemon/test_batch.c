/*
 * Group commit: callbacks run after the commit, in order, and also after a loss.
 */
#include "service/daemon/batch.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], path[96];
static uv_loop_t loop;
static struct queue *queue;
static struct batch *batch;

static struct {
    int ending, ended;
    int last_status;
    char calls[4096]; /* "1:0 2:-28 " */
} seen;

static void
on_ending(void *context)
{
    (void)context;
    seen.ending++;
}

static void
on_ended(void *context, int status)
{
    (void)context;
    seen.ended++;
    seen.last_status = status;
}

static void
on_told(void *context, int status)
{
    size_t used = strlen(seen.calls);
    snprintf(seen.calls + used, sizeof seen.calls - used, "%d:%d ", *(const int *)context, status);
}

static void
set_up(void)
{
    static const struct batch_events events = {on_ending, on_ended, NULL};
    struct error error;
    strcpy(folder, "/tmp/noctule-test-batch-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/q.db", folder);
    ck_assert_msg(queue_open(path, &queue, &error) == 0, "%s", error.message);
    memset(&seen, 0, sizeof seen);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(batch_open(&loop, queue, &events, &batch), 0);
}

static void
tear_down(void)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    batch_close(batch);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    queue_close(queue);
    for (size_t i = 0; i < 3; i++) {
        char file[128];
        snprintf(file, sizeof file, "%s%s", path, endings[i]);
        unlink(file);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

static void
note(const char *kind)
{
    ck_assert_int_eq(batch_begin(batch), 0);
    ck_assert_int_eq(queue_note(queue, kind, "", 1), 0);
}

static void
wait_for_commit(int *number)
{
    ck_assert_int_eq(batch_on_commit(batch, on_told, number), 0);
}

static int one = 1, two = 2, three = 3;

START_TEST(callbacks_follow_one_commit_per_turn)
{
    note("A");
    wait_for_commit(&one);
    note("B");
    wait_for_commit(&two);
    ck_assert_str_eq(seen.calls, "");
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_str_eq(seen.calls, "1:0 2:0 ");
    ck_assert_int_eq(seen.ended, 1);
    ck_assert_int_ge(seen.ending, 1);
}

END_TEST

START_TEST(an_empty_batch_has_callbacks_but_no_event)
{
    wait_for_commit(&one);
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_str_eq(seen.calls, "1:0 ");
    ck_assert_int_eq(seen.ended, 0);
}

END_TEST

static void
change_in_timer(uv_timer_t *timer)
{
    (void)timer;
    note("T");
    wait_for_commit(&three);
}

/* The prepare hook: changes made by timers are committed before the loop sleeps. */
START_TEST(changes_by_a_timer_are_committed_before_the_loop_sleeps)
{
    static uv_timer_t timer, later; /* closed by one turn of the loop in tear_down() */
    uv_timer_init(&loop, &timer);
    uv_timer_init(&loop, &later);
    uv_timer_start(&timer, change_in_timer, 0, 0);
    uv_timer_start(&later, change_in_timer, 60000, 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_str_eq(seen.calls, "3:0 ");
    uv_close((uv_handle_t *)&timer, NULL);
    uv_close((uv_handle_t *)&later, NULL);
}

END_TEST

START_TEST(an_aborted_batch_calls_all_callbacks)
{
    note("A");
    wait_for_commit(&one);
    wait_for_commit(&two);
    batch_abort(batch, -ENOSPC);
    ck_assert_str_eq(seen.calls, "1:-28 2:-28 ");
    ck_assert_int_eq(seen.last_status, -ENOSPC);
    note("B");
    wait_for_commit(&three);
    ck_assert_int_eq(batch_commit(batch), 0);
    ck_assert_str_eq(seen.calls, "1:-28 2:-28 3:0 ");
}

END_TEST

START_TEST(a_long_batch_is_cut)
{
    for (int i = 0; i < 1300; i++)
        note("X");
    ck_assert_int_eq(seen.ended, 2);
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(seen.ended, 3);
}

END_TEST

START_TEST(closing_commits_the_open_batch)
{
    static const struct batch_events none = {0};
    note("A");
    wait_for_commit(&one);
    batch_close(batch);
    ck_assert_str_eq(seen.calls, "1:0 ");
    ck_assert_int_eq(batch_open(&loop, queue, &none, &batch), 0);
    ck_assert_int_eq(queue_begin(queue), 0); /* no transaction was left open */
    ck_assert_int_eq(queue_commit(queue), 0);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_batch");
    TCase *tests = tcase_create("batch");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, callbacks_follow_one_commit_per_turn);
    tcase_add_test(tests, an_empty_batch_has_callbacks_but_no_event);
    tcase_add_test(tests, changes_by_a_timer_are_committed_before_the_loop_sleeps);
    tcase_add_test(tests, an_aborted_batch_calls_all_callbacks);
    tcase_add_test(tests, a_long_batch_is_cut);
    tcase_add_test(tests, closing_commits_the_open_batch);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
