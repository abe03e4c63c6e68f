/* Loops shared by threads: each iteration must run once, and the same one must fail in every
 * run. */
#include "service/common/parallel.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5000 };

struct tally {
    atomic_int times[ROUNDS];
    atomic_bool stop;
    int64_t fails_from; /* iterations from here on fail, or -1 */
    int64_t stops_at;
    atomic_llong lowest_failed;
};

static struct tally tally;

static void
note_failure(int64_t index)
{
    long long lowest = atomic_load(&tally.lowest_failed);
    while (index < lowest && !atomic_compare_exchange_weak(&tally.lowest_failed, &lowest, (long long)index))
        continue;
}

static void
count(struct parallel *loop, void *context)
{
    int64_t index;
    (void)context;
    while (parallel_take(loop, &index)) {
        atomic_fetch_add(&tally.times[index], 1);
        if (index == tally.stops_at)
            atomic_store(&tally.stop, true);
        if (tally.fails_from >= 0 && index >= tally.fails_from) {
            note_failure(index);
            parallel_fail(loop);
        }
    }
}

static struct parallel
run_rounds(int threads, int64_t fails_from, int64_t stops_at)
{
    memset(&tally, 0, sizeof tally);
    tally.fails_from = fails_from;
    tally.stops_at = stops_at;
    tally.lowest_failed = ROUNDS;
    struct parallel loop = {.count = ROUNDS, .stop = &tally.stop, .body = count, .context = &tally};
    parallel_run(&loop, threads);
    return loop;
}

static int
rounds_done(void)
{
    int done = 0;
    for (int i = 0; i < ROUNDS; i++) {
        ck_assert_int_le(tally.times[i], 1);
        done += tally.times[i];
    }
    return done;
}

START_TEST(every_round_once)
{
    static const int threads[] = {1, 2, 7, 100000, 0, -3};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        struct parallel loop = run_rounds(threads[i], -1, -1);
        ck_assert_int_eq(rounds_done(), ROUNDS);
        ck_assert(!parallel_stopped(&loop));
    }
}

END_TEST

START_TEST(the_lowest_failure_is_always_met)
{
    for (int again = 0; again < 50; again++) {
        run_rounds(8, 100, -1);
        ck_assert_int_eq(tally.lowest_failed, 100);
        ck_assert_int_le(rounds_done(), 100 + 8 + 1);
    }
}

END_TEST

START_TEST(a_stop_ends_the_loop)
{
    struct parallel loop = run_rounds(4, -1, 50);
    ck_assert(parallel_stopped(&loop));
    ck_assert_int_lt(rounds_done(), ROUNDS);
}

END_TEST

START_TEST(no_rounds)
{
    struct parallel loop = {.count = 0, .body = count, .context = &tally};
    memset(&tally, 0, sizeof tally);
    parallel_run(&loop, 4);
    ck_assert_int_eq(rounds_done(), 0);
    ck_assert_int_ge(parallel_processors(), 1);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_parallel");
    TCase *tests = tcase_create("parallel");
    tcase_add_test(tests, every_round_once);
    tcase_add_test(tests, the_lowest_failure_is_always_met);
    tcase_add_test(tests, a_stop_ends_the_loop);
    tcase_add_test(tests, no_rounds);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
