/* Values of sets: the same from any thread. A stopped job must not compute further values. */
#include "service/pipeline/measure/measure_values.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum { SETS = 40, PARTS = 3, FAILS = 7, UNCOUNTED = 9, MOST_THREADS = 9 /* with the caller */ };

static struct valuing *valuing;
static atomic_int counted, valued_sets, formed_parts, formed_clear;

static int
count_one(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error)
{
    atomic_fetch_add(&counted, 1);
    if (region->number == UNCOUNTED && set == FAILS)
        return error_set(error, -EIO, CODE_COMPUTE_FAILED, "not counted");
    const int rc = feature_counts_make(1, counts, error);
    if (rc == 0)
        **counts = set;
    return rc;
}

static int
value_of_count(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    atomic_fetch_add(&valued_sets, 1);
    values[0] = feature_present((double)(*counts + region->number));
    return set == *counts ? 0 : -ENOMEM;
}

/* Stores the number of each part, plus the region's. */
static int
form_part(const struct feature_region *region, size_t part, void *form)
{
    atomic_fetch_add(&formed_parts, 1);
    ((size_t *)form)[part] = part + region->number;
    return region->number == FAILS && part == 1 ? -ENOMEM : 0;
}

static void
form_clear(void *form)
{
    (void)form;
    atomic_fetch_add(&formed_clear, 1);
}

static int
value_of_form(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    const size_t *parts = region->form;
    (void)counts;
    for (size_t part = 0; part < PARTS; part++)
        ck_assert_uint_eq(parts[part], part + region->number);
    values[0] = feature_present((double)set);
    return 0;
}

static const struct feature_family forming = {.name = "third",
                                              .form_size = PARTS * sizeof(size_t),
                                              .form_parts = PARTS,
                                              .form = form_part,
                                              .form_clear = form_clear,
                                              .values = value_of_form};

static const struct feature_family families[2] = {
    {.name = "first", .count = count_one, .values = value_of_count},
    {.name = "second", .count = count_one, .values = value_of_count},
};

/* Returns the number of sets that are counted before it. */
static int
count_last(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error)
{
    const int before = atomic_load(&counted);
    const int rc = count_one(region, set, counts, error);
    if (rc == 0)
        **counts = (uint64_t)before;
    return rc;
}

static int
value_of_last(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    (void)region;
    (void)set;
    values[0] = feature_present((double)*counts);
    return 0;
}

static const struct feature_family last_family = {
    .name = "last", .count = count_last, .counted_last = true, .values = value_of_last};

/* Reports as many features as the set's number modulo 4. */
static int
tell_some(void *context, struct valued *valued)
{
    const struct feature feature = {.segment = (int32_t)valued->measured.set,
                                    .name = valued->measured.family->name,
                                    .value = valued->values[0].value};
    ck_assert_ptr_eq(context, &valuing);
    for (size_t i = 0; i < valued->measured.set % 4; i++)
        if (feature_set_add(&valued->features, &feature))
            return -ENOMEM;
    return valued->measured.set == FAILS ? -ENOMEM : 0;
}

static void
set_up(void)
{
    atomic_store(&counted, 0);
    atomic_store(&valued_sets, 0);
    atomic_store(&formed_parts, 0);
    atomic_store(&formed_clear, 0);
}

static void
tear_down(void)
{
    valuing_close(valuing);
    valuing = NULL;
}

/* Adds sets. If the caller does not count, the threads that compute values count. */
static void
add_sets(size_t number, size_t count, size_t bytes, bool caller_counts)
{
    for (size_t i = 0; i < count; i++) {
        const struct feature_region region = {.number = number};
        struct error error;
        struct valued *valued = valuing_begin(
            valuing, &(struct measured){.region = &region, .family = &families[i % 2], .set = i / 2}, bytes);
        if (caller_counts)
            ck_assert_int_eq(valuing_count(valuing, valued, &error), 0);
        valuing_add(valuing, valued);
    }
}

static void
open_valuing(size_t sets, int threads, bool count)
{
    valuing = valuing_open();
    ck_assert_ptr_nonnull(valuing);
    ck_assert_int_eq(valuing_prepare(valuing, sets, threads, count, (struct valuing_tell){NULL, NULL}), 0);
}

/* The number of threads is half of the case's number. */
START_TEST(each_region_has_ordered_values)
{
    open_valuing(SETS, _i / 2, _i % 2);
    for (size_t region = 0; region < 50; region++) {
        const struct valued *valued;
        size_t i = 0;
        add_sets(region, SETS, 1, region == UNCOUNTED ? false : _i % 2 == 0);
        for (; (valued = valuing_wait(valuing)) != NULL; i++) {
            struct error error = {0};
            const bool fails = region == UNCOUNTED && i / 2 == FAILS;
            ck_assert_int_eq(valuing_count_failed(valued, &error), fails ? -EIO : 0);
            ck_assert_str_eq(error.message, fails ? "not counted" : "");
            ck_assert_int_eq(valued->rc, fails ? -EIO : 0);
            ck_assert_ptr_eq(valued->measured.family, &families[i % 2]);
            ck_assert_double_eq(valued->values[0].value, fails ? 0 : (double)(i / 2 + region));
            valuing_let_go(valuing);
        }
        ck_assert_uint_eq(i, SETS);
        valuing_clear(valuing);
    }
    ck_assert_int_eq(atomic_load(&counted), 50 * SETS / 2); /* two families share each count */
    ck_assert_int_eq(atomic_load(&valued_sets), 50 * SETS - 2);
}

END_TEST

/* A stopped job must only wait for values in progress. */
START_TEST(unrequested_values_are_not_computed)
{
    open_valuing(SETS, 0, false);
    add_sets(0, SETS, 1, _i == 0);
    ck_assert_double_eq(valuing_wait(valuing)->values[0].value, 0);
    ck_assert_int_eq(atomic_load(&valued_sets), 1);
    valuing_clear(valuing);
    ck_assert_int_eq(atomic_load(&valued_sets), 1);
    ck_assert_int_eq(atomic_load(&counted), _i == 0 ? SETS / 2 : 1);
    add_sets(1, 1, 1, _i == 0);
    ck_assert_double_eq(valuing_wait(valuing)->values[0].value, 1);
    valuing_let_go(valuing);
    ck_assert_ptr_null(valuing_wait(valuing));
    ck_assert_int_eq(atomic_load(&valued_sets), 2);
}

END_TEST

/* Then the lane is free, while values may still be computed. */
START_TEST(all_sets_are_counted_before_their_values)
{
    const struct valued *valued;
    size_t i = 0;
    open_valuing(SETS, _i / 2, _i % 2);
    valuing_wait_for_counts(valuing); /* of no set */
    add_sets(1, SETS, 1, _i % 2 == 0);
    valuing_wait_for_counts(valuing);
    ck_assert_int_eq(atomic_load(&counted), SETS / 2);
    for (; (valued = valuing_wait(valuing)) != NULL; i++) {
        ck_assert_double_eq(valued->values[0].value, (double)(i / 2 + 1));
        valuing_let_go(valuing);
    }
    ck_assert_uint_eq(i, SETS);
    ck_assert_int_eq(atomic_load(&counted), SETS / 2);
    ck_assert_int_eq(atomic_load(&valued_sets), SETS);
}

END_TEST

/* The thread that computes the values reports them before the set is returned, and starts again for the next region. */
START_TEST(each_set_reports_its_own_values)
{
    struct valued *valued;
    valuing = valuing_open();
    ck_assert_ptr_nonnull(valuing);
    ck_assert_int_eq(valuing_prepare(valuing, SETS, _i / 2, _i % 2, (struct valuing_tell){tell_some, &valuing}), 0);
    for (size_t region = 1; region < 4; region++) {
        size_t i = 0;
        add_sets(region, SETS, 1, _i % 2 == 0);
        for (; (valued = valuing_wait(valuing)) != NULL; i++) {
            ck_assert_int_eq(valued->rc, i / 2 == FAILS ? -ENOMEM : 0);
            ck_assert_uint_eq(valued->features.count, i / 2 % 4);
            for (size_t f = 0; f < valued->features.count; f++) {
                ck_assert_int_eq(valued->features.items[f].segment, (int32_t)i / 2);
                ck_assert_str_eq(valued->features.items[f].name, families[i % 2].name);
                ck_assert_double_eq(valued->features.items[f].value, (double)(i / 2 + region));
            }
            if (i + 3 == SETS) /* a job that ends early */
                break;
            valuing_let_go(valuing);
        }
        ck_assert_uint_eq(i + 3, SETS);
        valuing_clear(valuing);
    }
}

END_TEST

/* Threads count this set last, but the caller must get it in its turn. */
START_TEST(matrices_counted_last_are_reported)
{
    struct error error;
    const struct feature_region region = {.number = 1};
    open_valuing(SETS + 1, _i / 2, _i % 2);
    for (int round = 0; round < 20; round++) {
        size_t sets = 0;
        atomic_store(&counted, 0);
        struct valued *last = valuing_begin(valuing, &(struct measured){.region = &region, .family = &last_family}, 1);
        if (_i % 2 == 0)
            ck_assert_int_eq(valuing_count(valuing, last, &error), 0);
        valuing_add(valuing, last);
        add_sets(1, SETS, 1, _i % 2 == 0);
        ck_assert_ptr_eq(valuing_wait(valuing), last);
        /* Threads may have begun one other set each, but no more. */
        ck_assert_double_ge(last->values[0].value, _i % 2 ? SETS / 2 - MOST_THREADS : 0);
        ck_assert_double_le(last->values[0].value, _i % 2 ? SETS / 2 : 0);
        for (; valuing_wait(valuing); sets++)
            valuing_let_go(valuing);
        ck_assert_uint_eq(sets, SETS + 1);
        valuing_clear(valuing);
    }
}

END_TEST

/* Runs jobs in turn, with more sets and with fewer. */
START_TEST(threads_stay_for_the_next_job)
{
    open_valuing(SETS, 2, true);
    for (size_t job = 0; job < 20; job++) {
        const size_t sets = job % 2 == 0 ? SETS : 2;
        size_t ended = 0;
        ck_assert_int_eq(valuing_prepare(valuing, sets, 2, true, (struct valuing_tell){NULL, NULL}), 0);
        add_sets(job, sets, 1, false);
        for (const struct valued *valued; (valued = valuing_wait(valuing)) != NULL; ended++) {
            ck_assert_double_eq(valued->values[0].value, (double)(ended / 2 + job));
            valuing_let_go(valuing);
        }
        ck_assert_uint_eq(ended, sets);
        valuing_clear(valuing);
    }
}

END_TEST

/* The number of threads is the case's number. Each set must find the whole form of its family. */
START_TEST(forms_are_made_before_their_values)
{
    open_valuing(2, _i, _i % 2);
    for (size_t number = 0; number < 50; number++) {
        const struct feature_region region = {.number = number};
        const struct valued *valued;
        size_t sets = 0;
        ck_assert_int_eq(valuing_form(valuing, &forming, &region), 0);
        for (size_t set = 0; set < 2; set++)
            valuing_add(
                valuing,
                valuing_begin(valuing, &(struct measured){.region = &region, .family = &forming, .set = set}, 0));
        for (; (valued = valuing_wait(valuing)) != NULL; sets++) {
            ck_assert_int_eq(valued->rc, number == FAILS ? -ENOMEM : 0);
            ck_assert_double_eq(valued->values[0].value, number == FAILS ? 0 : (double)sets);
            valuing_let_go(valuing);
        }
        ck_assert_uint_eq(sets, 2);
        valuing_clear(valuing);
        ck_assert_int_eq(atomic_load(&formed_clear), (int)number + 1);
    }
    ck_assert_int_eq(atomic_load(&formed_parts), 50 * PARTS);
}

END_TEST

START_TEST(unrequested_forms_are_released)
{
    const struct feature_region region = {.number = 1};
    open_valuing(1, _i, false);
    ck_assert_int_eq(valuing_form(valuing, &forming, &region), 0);
    valuing_clear(valuing);
    ck_assert_int_eq(atomic_load(&formed_clear), 1);
    if (_i == 0)
        ck_assert_int_eq(atomic_load(&formed_parts), 0);
}

END_TEST

static bool
has_room(size_t set, size_t bytes)
{
    return valuing_has_room(valuing, &(struct measured){.family = &families[1], .set = set}, bytes);
}

/*
 * One set may exceed the limit. A second set must wait, unless it uses the same counts, which then stay after the
 * release of the first.
 */
START_TEST(released_forms_make_room)
{
    open_valuing(SETS, 0, false);
    ck_assert(has_room(0, 3 * VALUING_HELD));
    add_sets(1, 1, 3 * VALUING_HELD, _i == 0);
    ck_assert(has_room(0, 3 * VALUING_HELD));
    ck_assert(has_room(1, 0));
    ck_assert(!has_room(1, 1));
    valuing_clear(valuing);
    add_sets(1, 2, VALUING_HELD / 2, _i == 0);
    ck_assert(has_room(1, VALUING_HELD / 2)); /* both sets share it */
    ck_assert(!has_room(1, VALUING_HELD / 2 + 1));
    for (int i = 0; i < 2; i++) {
        ck_assert(has_room(0, 3 * VALUING_HELD));
        ck_assert(!has_room(1, VALUING_HELD / 2 + 1));
        ck_assert_double_eq(valuing_wait(valuing)->values[0].value, 1);
        valuing_let_go(valuing);
    }
    ck_assert(has_room(1, 3 * VALUING_HELD));
    ck_assert_int_eq(atomic_load(&counted), _i == 0 ? 2 : 1);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("valuing");
    TCase *tests = tcase_create("sets");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, each_region_has_ordered_values, 0, 8);
    tcase_add_loop_test(tests, unrequested_values_are_not_computed, 0, 2);
    tcase_add_loop_test(tests, all_sets_are_counted_before_their_values, 0, 10);
    tcase_add_test(tests, threads_stay_for_the_next_job);
    tcase_add_loop_test(tests, each_set_reports_its_own_values, 0, 10);
    tcase_add_loop_test(tests, matrices_counted_last_are_reported, 0, 10);
    tcase_add_loop_test(tests, forms_are_made_before_their_values, 0, 5);
    tcase_add_loop_test(tests, unrequested_forms_are_released, 0, 5);
    tcase_add_loop_test(tests, released_forms_make_room, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
