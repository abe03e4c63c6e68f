/* test_folder_sync.c - every caller must get its result from a sync that began after its call,
 * however many callers share it. */
#include "service/receiver/spool/store.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8
#define FOLDERS 2
#define RUNS    500

/* A simulated disk: names are in memory, and become durable by a later sync that succeeds. */
static struct folder {
    atomic_int names[THREADS], durable[THREADS];
    atomic_int syncs, running;
} folders[FOLDERS];
static struct folder_sync *sync_of_all;
static atomic_int calls, wrong, refused;
static int fail_every; /* every n-th call fails, or 0 */

static int
sync_one(int base, const char *name)
{
    struct folder *folder = &folders[name[0] - 'a'];
    int seen[THREADS];
    if (base != 7 || atomic_fetch_add(&folder->running, 1) != 0)
        atomic_fetch_add(&wrong, 1); /* concurrent syncs would not be shared */
    for (int i = 0; i < THREADS; i++)
        seen[i] = atomic_load(&folder->names[i]);
    usleep(100);
    const int number = atomic_fetch_add(&calls, 1) + 1;
    const bool fails = fail_every > 0 && number % fail_every == 0;
    for (int i = 0; i < THREADS && !fails; i++)
        atomic_store(&folder->durable[i], seen[i]);
    atomic_fetch_sub(&folder->running, 1);
    return fails ? -EIO : 0;
}

static void *
rename_and_sync(void *argument)
{
    const int self = (int)(intptr_t)argument;
    struct folder *folder = &folders[self % FOLDERS];
    const char name[2] = {(char)('a' + self % FOLDERS), '\0'};
    for (int run = 1; run <= RUNS; run++) {
        atomic_store(&folder->names[self], run);
        const int error = folder_sync_run(sync_of_all, name);
        if (error == -EIO)
            atomic_fetch_add(&refused, 1);
        else if (error || atomic_load(&folder->durable[self]) < run)
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static void
run_all(void)
{
    pthread_t threads[THREADS];
    memset(folders, 0, sizeof folders);
    calls = wrong = refused = 0;
    ck_assert_int_eq(folder_sync_open(7, sync_one, &sync_of_all), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, rename_and_sync, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    folder_sync_close(sync_of_all);
    ck_assert_int_eq(wrong, 0);
}

START_TEST(every_result_is_of_a_later_sync)
{
    fail_every = 0;
    run_all();
    ck_assert_int_eq(refused, 0);
    ck_assert_int_lt(calls, THREADS * RUNS); /* some calls were shared */
}

END_TEST

START_TEST(a_failure_is_returned_to_all_sharers)
{
    fail_every = 3;
    run_all();
    ck_assert_int_ge(refused, calls / fail_every);
}

END_TEST

START_TEST(long_names_are_refused)
{
    char name[NAME_MAX + 2];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(folder_sync_open(7, sync_one, &sync_of_all), 0);
    ck_assert_int_eq(folder_sync_run(sync_of_all, name), -ENAMETOOLONG);
    folder_sync_close(sync_of_all);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("folder_sync");
    TCase *tests = tcase_create("rounds");
    tcase_add_test(tests, every_result_is_of_a_later_sync);
    tcase_add_test(tests, a_failure_is_returned_to_all_sharers);
    tcase_add_test(tests, long_names_are_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
