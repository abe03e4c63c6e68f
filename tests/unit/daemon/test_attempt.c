/*
 * Attempts found by id, in the order of their ends, and removed from both lists.
 */
#include "service/daemon/attempt.h"

#include "tests/unit/suite.h"

#include <stdlib.h>

#define COUNT 20000 /* several per bucket */

static void
free_it(struct attempt *attempt)
{
    free(attempt);
}

static const struct attempt_type type = {.subject = "test", .free = free_it};
static struct attempts attempts;

static struct attempt *
add(int64_t id)
{
    struct attempt *attempt = calloc(1, sizeof *attempt);
    ck_assert_ptr_nonnull(attempt);
    attempt_add(&attempts, attempt, id);
    return attempt;
}

static void
make(int64_t count)
{
    attempts = (struct attempts){.type = &type};
    for (int64_t id = 1; id <= count; id++)
        add(id);
}

START_TEST(each_attempt_is_found)
{
    make(COUNT);
    for (int64_t id = 1; id <= COUNT; id++)
        ck_assert_int_eq(attempts_find(&attempts, id)->id, id);
    ck_assert_ptr_null(attempts_find(&attempts, 0));
    ck_assert_ptr_null(attempts_find(&attempts, COUNT + 1));
    attempts_free(&attempts);
}

END_TEST

START_TEST(dropped_attempts_are_freed)
{
    make(COUNT);
    for (int64_t id = 1; id <= COUNT; id += 3)
        attempt_drop(attempts_find(&attempts, id));
    for (int64_t id = 1; id <= COUNT; id++)
        ck_assert_int_eq(attempts_find(&attempts, id) != NULL, id % 3 != 1);
    ck_assert_uint_eq(attempts_count(&attempts), COUNT - (COUNT + 2) / 3);
    attempts_free(&attempts);
    ck_assert_ptr_null(attempts.first);
}

END_TEST

START_TEST(ends_are_in_their_order)
{
    static const int64_t order[] = {4, 1, 5, 2};
    make(5);
    for (size_t i = 0; i < 4; i++)
        attempt_end(attempts_find(&attempts, order[i]));
    attempt_end(attempts_find(&attempts, 1)); /* a second end has no effect */
    attempt_drop(attempts_find(&attempts, 5));
    attempt_drop(attempts_find(&attempts, 3));
    const struct attempt *ended = attempts.ended;
    ck_assert_int_eq(ended->id, 4);
    ck_assert_int_eq(ended->next_ended->id, 1);
    ck_assert_int_eq(ended->next_ended->next_ended->id, 2);
    ck_assert_ptr_null(ended->next_ended->next_ended->next_ended);
    attempts_free(&attempts);
    ck_assert_ptr_null(attempts.ended);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("attempt");
    TCase *tcase = tcase_create("attempt");
    tcase_add_test(tcase, each_attempt_is_found);
    tcase_add_test(tcase, dropped_attempts_are_freed);
    tcase_add_test(tcase, ends_are_in_their_order);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
