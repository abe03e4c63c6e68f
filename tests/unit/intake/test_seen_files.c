/* The table of known files against a plain one, and the settle test with simulated time. */
#include "service/receiver/inbox/inbox_seen.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE 2000

START_TEST(a_single_scan_never_completes_a_file)
{
    struct seen_file file = {0};
    ck_assert(!seen_file_is_complete(&file, 7, false, 1000000, SETTLE));
    ck_assert_int_eq(file.since_ms, 1000000);
    struct seen_file at_once = {0};
    ck_assert(!seen_file_is_complete(&at_once, 7, false, 5, 0));
    ck_assert(seen_file_is_complete(&at_once, 7, false, 5, 0));
}

END_TEST

START_TEST(a_file_must_not_change_during_the_settle_time)
{
    struct seen_file file = {0};
    ck_assert(!seen_file_is_complete(&file, 7, false, 1000, SETTLE));
    ck_assert(!seen_file_is_complete(&file, 7, false, 2999, SETTLE));
    ck_assert(seen_file_is_complete(&file, 7, false, 3000, SETTLE));
}

END_TEST

START_TEST(a_change_restarts_the_wait)
{
    struct seen_file file = {0};
    ck_assert(!seen_file_is_complete(&file, 7, false, 1000, SETTLE));
    ck_assert(!seen_file_is_complete(&file, 8, false, 3500, SETTLE));
    ck_assert_int_eq(file.since_ms, 3500);
    ck_assert(!seen_file_is_complete(&file, 8, false, 5499, SETTLE));
    /* A return to an older state is a change. */
    ck_assert(!seen_file_is_complete(&file, 7, false, 5500, SETTLE));
    ck_assert(seen_file_is_complete(&file, 7, false, 7500, SETTLE));
}

END_TEST

START_TEST(renamed_into_place_is_complete)
{
    struct seen_file file = {0};
    ck_assert(seen_file_is_complete(&file, 7, true, 1000, SETTLE));
    ck_assert_uint_eq(file.look, 7);
    struct seen_file waiting = {0};
    ck_assert(!seen_file_is_complete(&waiting, 7, false, 1000, SETTLE));
    ck_assert(seen_file_is_complete(&waiting, 8, true, 1001, SETTLE));
}

END_TEST

START_TEST(each_field_of_a_stamp_counts)
{
    const struct file_stamp stamp = {1, 2, 3, 4, 5};
    struct file_stamp others[] = {{9, 2, 3, 4, 5}, {1, 9, 3, 4, 5}, {1, 2, 9, 4, 5}, {1, 2, 3, 9, 5}, {1, 2, 3, 4, 9}};
    ck_assert_uint_eq(seen_file_look(&stamp), seen_file_look(&(struct file_stamp){1, 2, 3, 4, 5}));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert_uint_ne(seen_file_look(&stamp), seen_file_look(&others[i]));
        ck_assert(!file_stamp_equal(&stamp, &others[i]));
    }
    ck_assert_uint_ne(file_key("a/b"), file_key("a/c"));
    ck_assert_uint_ne(file_key(""), 0);
}

END_TEST

START_TEST(an_entry_stays_small)
{
    ck_assert_uint_eq(sizeof(struct seen_file), 32);
}

END_TEST

#define KEYS 3000

/* Returns keys that collide in the low bits, which the table uses. */
static uint64_t
key_of(int i)
{
    return (uint64_t)(i % 40 + 1) | (uint64_t)(i / 40 + 1) << 40;
}

START_TEST(the_table_equals_a_reference_table)
{
    static bool there[KEYS];
    struct seen_files *seen_files;
    size_t count = 0;
    unsigned state = 12345;
    ck_assert_int_eq(seen_files_open(&seen_files), 0);
    memset(there, 0, sizeof there);
    for (int step = 0; step < 60000; step++) {
        state = state * 1103515245u + 12345u;
        int i = (int)(state >> 8) % KEYS;
        if (state >> 30 == 0) {
            seen_files_remove(seen_files, key_of(i));
            count -= there[i];
            there[i] = false;
        } else if (state >> 30 == 1) {
            struct seen_file *file = seen_files_add(seen_files, key_of(i));
            ck_assert_ptr_nonnull(file);
            ck_assert_int_eq(file->since_ms, there[i] ? i : 0);
            file->since_ms = i;
            count += !there[i];
            there[i] = true;
        } else {
            const struct seen_file *file = seen_files_find(seen_files, key_of(i));
            ck_assert(!file == !there[i]);
            if (file)
                ck_assert(file->key == key_of(i) && file->since_ms == i);
        }
        ck_assert_uint_eq(seen_files_count(seen_files), count);
    }
    seen_files_close(seen_files);
}

END_TEST

START_TEST(files_missing_from_a_sweep_are_forgotten)
{
    struct seen_files *seen_files;
    ck_assert_int_eq(seen_files_open(&seen_files), 0);
    for (int i = 0; i < KEYS; i++) {
        struct seen_file *file = seen_files_add(seen_files, key_of(i));
        file->sweep = i % 3 ? 7 : 6;
        file->state = (uint8_t)(i % 4);
    }
    uint64_t keys[100];
    size_t forgotten = 0, count;
    do {
        count = seen_files_forget_unmet(seen_files, 7, keys, 100);
        for (size_t i = 0; i < count; i++)
            ck_assert_ptr_null(seen_files_find(seen_files, keys[i]));
        forgotten += count;
    } while (count == 100);
    ck_assert_uint_eq(forgotten, KEYS - seen_files_count(seen_files));
    ck_assert_uint_eq(forgotten, KEYS / 6);
    for (int i = 0; i < KEYS; i++) {
        const bool at_rest = i % 4 == SEEN_LEFT || i % 4 == SEEN_LATER;
        ck_assert_msg(!seen_files_find(seen_files, key_of(i)) == (i % 3 == 0 && at_rest), "key %d", i);
    }
    seen_files_close(seen_files);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_inbox_known");
    TCase *tests = tcase_create("seen_files");
    tcase_add_test(tests, a_single_scan_never_completes_a_file);
    tcase_add_test(tests, a_file_must_not_change_during_the_settle_time);
    tcase_add_test(tests, a_change_restarts_the_wait);
    tcase_add_test(tests, renamed_into_place_is_complete);
    tcase_add_test(tests, each_field_of_a_stamp_counts);
    tcase_add_test(tests, an_entry_stays_small);
    tcase_add_test(tests, the_table_equals_a_reference_table);
    tcase_add_test(tests, files_missing_from_a_sweep_are_forgotten);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
