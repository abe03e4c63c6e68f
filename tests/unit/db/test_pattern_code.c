/* Distances of histograms by hand counts, and bounds that never exceed the distance. */
#include "db/pattern_code.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes counts with these values at the given codes, and 0 elsewhere. */
static void
write_counts(char text[4096], const int (*pairs)[2], size_t count)
{
    size_t used = 0;
    for (int i = 0; i < PATTERN_CODES; i++) {
        int value = 0;
        for (size_t k = 0; k < count; k++)
            value += pairs[k][0] == i ? pairs[k][1] : 0;
        used += (size_t)snprintf(text + used, 4096 - used, "%c%d", i ? ',' : '[', value);
    }
    snprintf(text + used, 4096 - used, "]");
}

START_TEST(counts_are_read_as_parts)
{
    char text[4096];
    double parts[PATTERN_CODES];
    write_counts(text, (const int[][2]){{0, 1}, {7, 2}, {255, 5}}, 3);
    ck_assert_int_eq(pattern_read(text, parts), 0);
    ck_assert_double_eq(parts[0], 0.125);
    ck_assert_double_eq(parts[7], 0.25);
    ck_assert_double_eq(parts[255], 0.625);
    ck_assert_double_eq(parts[8], 0);
    write_counts(text, NULL, 0);
    ck_assert_int_eq(pattern_read(text, parts), -ENODATA);
    const char *const wrong[] = {"", "[", "[1,2]", "[-1,2]", "[1,,2]", "1,2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(pattern_read(wrong[i], parts), -EBADMSG);
    write_counts(text, (const int[][2]){{0, 1}}, 1);
    text[strlen(text) - 1] = ',';
    ck_assert_int_eq(pattern_read(text, parts), -EBADMSG);
}

END_TEST

/*
 * p = (1/2, 1/2, 0), q = (1/4, 1/4, 1/2). Chi-square: (1/16 / 3/4 + 1/16 / 3/4 + 1/2) / 2 = 1/3. L1: 1/4 + 1/4 + 1/2 = 1.
 * Cosine: 1 - (1/4) / (sqrt(1/2) sqrt(3/8)) = 1 - 1 / sqrt(3).
 */
START_TEST(distances_equal_hand_counts)
{
    double p[PATTERN_CODES] = {0}, q[PATTERN_CODES] = {0}, r[PATTERN_CODES] = {0};
    p[3] = p[200] = 0.5;
    q[3] = q[200] = 0.25;
    q[17] = 0.5;
    r[90] = 1;
    ck_assert_double_eq_tol(pattern_distance(PATTERN_CHI_SQUARE, p, q), 1.0 / 3.0, 1e-15);
    ck_assert_double_eq_tol(pattern_distance(PATTERN_L1, p, q), 1.0, 1e-15);
    ck_assert_double_eq_tol(pattern_distance(PATTERN_COSINE, p, q), 1 - 1 / sqrt(3), 1e-15);
    for (int d = 0; d < PATTERN_DISTANCES; d++)
        ck_assert_double_eq_tol(pattern_distance((enum pattern_distance)d, p, p), 0, 1e-15);
    ck_assert_double_eq(pattern_distance(PATTERN_CHI_SQUARE, p, r), 1);
    ck_assert_double_eq(pattern_distance(PATTERN_L1, p, r), 2);
    ck_assert_double_eq(pattern_distance(PATTERN_COSINE, p, r), 1);
}

END_TEST

static uint64_t
random_bits(void)
{
    static uint64_t state = 88172645463325252U;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Makes a histogram: of `kind` 0 even, 1 with a few high codes, 2 with most codes empty, 3 of one code, 4 near `other`. */
static void
make_parts(int kind, const double *other, double parts[PATTERN_CODES])
{
    double sum = 0;
    for (int i = 0; i < PATTERN_CODES; i++) {
        const double part = (double)(random_bits() % 1000000) / 1e6;
        parts[i] = kind == 0   ? part
                   : kind == 1 ? pow(part, 40)
                   : kind == 2 ? (random_bits() % 16 == 0 ? part : 0)
                   : kind == 3 ? 0
                               : fmax(0, other[i] + (part - 0.5) * 1e-5);
    }
    if (kind == 3)
        parts[random_bits() % PATTERN_CODES] = 1;
    for (int i = 0; i < PATTERN_CODES; i++)
        sum += parts[i];
    for (int i = 0; i < PATTERN_CODES; i++)
        parts[i] = sum > 0 ? parts[i] / sum : i == 0;
}

START_TEST(bounds_are_below_the_distance_and_near_it)
{
    double p[PATTERN_CODES], q[PATTERN_CODES], gap[PATTERN_DISTANCES] = {0};
    int far = 0;
    struct pattern_record record;
    struct pattern_query query;
    for (int turn = 0; turn < 40000; turn++) {
        make_parts(turn % 4, NULL, p);
        make_parts(turn / 4 % 5, p, q);
        pattern_encode(p, &record);
        pattern_prepare(q, &query);
        for (int d = 0; d < PATTERN_DISTANCES; d++) {
            const double distance = pattern_distance((enum pattern_distance)d, p, q);
            const double bound = pattern_bound((enum pattern_distance)d, &query, &record);
            ck_assert_msg(bound <= distance && bound >= 0, "turn %d, distance %d: %.17g <= %.17g", turn, d, bound,
                          distance);
            gap[d] = fmax(gap[d], distance - bound);
        }
        far += pattern_distance(PATTERN_CHI_SQUARE, p, q) > 0.1 &&
               pattern_bound(PATTERN_CHI_SQUARE, &query, &record) < 0.5 * pattern_distance(PATTERN_CHI_SQUARE, p, q);
    }
    ck_assert_int_eq(far, 0); /* of regions that are not near, the bound tells that */
    for (int d = 0; d < PATTERN_DISTANCES; d++)
        ck_assert_double_lt(gap[d], 0.15);
}

END_TEST

/* The roots of chi-square are a metric, also between parts that do not sum to 1. */
START_TEST(metrics_have_the_triangle_inequality)
{
    double a[PATTERN_CODES], b[PATTERN_CODES], c[PATTERN_CODES];
    for (int turn = 0; turn < 20000; turn++) {
        make_parts(turn % 4, NULL, a);
        make_parts(turn / 4 % 5, a, b);
        make_parts(turn / 20 % 5, b, c);
        const double scale = (double)(random_bits() % 1000) / 100;
        for (int i = 0; i < PATTERN_CODES; i++)
            b[i] *= scale;
        ck_assert_double_le(sqrt(pattern_distance(PATTERN_CHI_SQUARE, a, c)),
                            sqrt(pattern_distance(PATTERN_CHI_SQUARE, a, b)) +
                                sqrt(pattern_distance(PATTERN_CHI_SQUARE, b, c)) + 1e-12);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("db_pattern_code");
    TCase *tests = tcase_create("pattern_code");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, counts_are_read_as_parts);
    tcase_add_test(tests, distances_equal_hand_counts);
    tcase_add_test(tests, bounds_are_below_the_distance_and_near_it);
    tcase_add_test(tests, metrics_have_the_triangle_inequality);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
