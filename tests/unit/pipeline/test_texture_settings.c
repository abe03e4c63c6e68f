/* Conversion of texture options to offsets, and to the texts of a measurement. */
#include "service/pipeline/measure/measure.h"

#include "kernels/features/matrices/directions.h"
#include "kernels/features/patterns.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct glcm_options glcm;
static int distances[2] = {1, 7};
static int angles[4] = {0, 45, 90, 135};
static struct directions directions;

static void
set_up(void)
{
    glcm = (struct glcm_options){.distances = distances, .distance_count = 2, .angles = angles, .angle_count = 4};
}

static void
make(size_t index)
{
    directions_make(&glcm, index, &directions);
}

static void
assert_offset(size_t index, int x, int y, int z)
{
    const struct texture_offset *offset = &directions.offsets[index];
    ck_assert_msg(offset->x == x && offset->y == y && offset->z == z, "%zu is (%d, %d, %d), not (%d, %d, %d)", index,
                  offset->x, offset->y, offset->z, x, y, z);
}

static bool
are_alike(const struct texture_offset *a, const struct texture_offset *b, int sign)
{
    return a->x == sign * b->x && a->y == sign * b->y && a->z == sign * b->z;
}

/* Checks that there is one of each pair of opposite neighbours `distance` away along their farthest axis. */
static void
assert_directions(size_t count, int distance)
{
    ck_assert_uint_eq(directions.count, count);
    ck_assert_int_eq(directions.distance, distance);
    for (size_t i = 0; i < count; i++) {
        const struct texture_offset *a = &directions.offsets[i];
        ck_assert(a->x == 0 || abs(a->x) == distance);
        ck_assert(a->y == 0 || abs(a->y) == distance);
        ck_assert(a->z == 0 || (a->z == distance && count == 13));
        ck_assert(a->x || a->y || a->z);
        for (size_t j = 0; j < i; j++)
            ck_assert(!are_alike(a, &directions.offsets[j], 1) && !are_alike(a, &directions.offsets[j], -1));
    }
}

START_TEST(directions_of_every_aggregation_and_distance)
{
    glcm.aggregation = (enum aggregation)_i;
    ck_assert_uint_eq(directions_sets(&glcm), 2);
    for (size_t i = 0; i < 2; i++) {
        make(i);
        assert_directions(_i < AGGREGATION_3D_AVERAGED ? 4 : 13, distances[i]);
        assert_offset(0, distances[i], 0, 0);
        assert_offset(1, distances[i], -distances[i], 0);
        assert_offset(2, 0, -distances[i], 0);
        assert_offset(3, -distances[i], -distances[i], 0);
    }
    char text[DIRECTIONS_TEXT] = "x";
    directions_name(&glcm, text);
    ck_assert_str_eq(text, "");
}

END_TEST

START_TEST(some_angles)
{
    char text[DIRECTIONS_TEXT];
    int some[] = {135, 0};
    glcm.aggregation = AGGREGATION_2_5D_MERGED;
    glcm.angles = some;
    glcm.angle_count = 2;
    make(1);
    ck_assert_uint_eq(directions.count, 2);
    assert_offset(0, -7, -7, 0);
    assert_offset(1, 7, 0, 0);
    directions_name(&glcm, text);
    ck_assert_str_eq(text, "135,0");
}

END_TEST

START_TEST(offsets_of_the_pipeline)
{
    char text[DIRECTIONS_TEXT];
    struct texture_offset own[] = {{3, 0, -1}, {0, -2, 0}};
    glcm.aggregation = AGGREGATION_3D_MERGED;
    glcm.offsets = own;
    glcm.offset_count = 2;
    ck_assert_uint_eq(directions_sets(&glcm), 1);
    make(0);
    ck_assert_uint_eq(directions.count, 2);
    ck_assert_int_eq(directions.distance, 0);
    assert_offset(0, 3, 0, -1);
    assert_offset(1, 0, -2, 0);
    directions_name(&glcm, text);
    ck_assert_str_eq(text, "(3,0,-1)(0,-2,0)");
}

END_TEST

START_TEST(the_maximum_number_of_offsets_is_named)
{
    char text[DIRECTIONS_TEXT];
    struct texture_offset own[16];
    for (int i = 0; i < 16; i++)
        own[i] = (struct texture_offset){-255, -254, -240 - i};
    glcm.offsets = own;
    glcm.offset_count = 16;
    directions_name(&glcm, text);
    ck_assert_uint_eq(strlen(text), 16 * strlen("(-255,-254,-240)"));
    ck_assert_str_eq(strrchr(text, '('), "(-255,-254,-255)");
}

END_TEST

START_TEST(settings_that_distinguish_patterns)
{
    static const struct {
        struct texture_options texture;
        const char *words[TEXTURE_PATTERNS];
        int32_t millionths;
    } cases[] = {
        {{.patterns = 7, .tlbap_threshold = 0.9}, {"", "threshold=0.9", ""}, 900000},
        {{.patterns = 7, .tlbap_threshold = 0.123457, .tlbap_strict = true, .lanadp_integer = true},
         {"", "threshold=0.123457,strict", "integer"},
         123457},
        {{.patterns = 7, .tlbap_threshold = 1}, {"", "threshold=1", ""}, 1000000},
        {{.patterns = 7, .tlbap_threshold = 0.000001}, {"", "threshold=1e-06", ""}, 1},
        {{.patterns = 7, .tlbap_threshold = 0}, {"", "threshold=0", ""}, 0},
    };

    struct feature_title title;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int p = 0; p < TEXTURE_PATTERNS; p++) {
            family_patterns.title(&cases[i].texture, (size_t)p, &title);
            ck_assert_str_eq(title.word, texture_pattern_names[p]);
            ck_assert_str_eq(title.settings, cases[i].words[p]);
        }
        struct texture_patterns patterns = patterns_request(&cases[i].texture);
        ck_assert_int_eq(patterns.threshold_millionths, cases[i].millionths);
        ck_assert(patterns.strict == cases[i].texture.tlbap_strict);
        ck_assert(patterns.integer_average == cases[i].texture.lanadp_integer);
        ck_assert(patterns.wanted[0] && patterns.wanted[1] && patterns.wanted[2]);
    }
}

END_TEST

START_TEST(each_requested_pattern_is_a_set)
{
    const struct texture_options some = {.patterns = 1u << TEXTURE_LBP | 1u << TEXTURE_LANADP};
    const struct texture_options none = {.patterns = 0};
    struct feature_title title;
    ck_assert_uint_eq(family_patterns.sets(&some), 2);
    family_patterns.title(&some, 1, &title);
    ck_assert_str_eq(title.word, "lanadp");
    ck_assert_str_eq(title.quantity.value, "LANADP");
    ck_assert_int_eq(title.place, TEXTURE_LANADP);
    ck_assert(family_patterns.wanted(&some) && !family_patterns.wanted(&none));
    struct texture_patterns patterns = patterns_request(&none);
    ck_assert(!patterns.wanted[0] && !patterns.wanted[1] && !patterns.wanted[2]);
}

END_TEST

START_TEST(units_of_values)
{
    struct dicom_instance slices[2] = {{.value_unit = "Bq/ml"}, {.value_unit = "Bq/ml"}};
    struct dicom_instance *instances[] = {&slices[0], &slices[1]};
    struct geometry_plane planes[] = {{.instance = 0}, {.instance = 1}};
    const struct geometry_stack stack = {.planes = planes, .plane_count = 2};
    char unit[FEATURE_TERM];
    value_unit_raise(value_unit_of(instances, &stack), 1, unit);
    ck_assert_str_eq(unit, "Bq/ml");
    value_unit_raise(value_unit_of(instances, &stack), 2, unit);
    ck_assert_str_eq(unit, "(Bq/ml)2");
    strcpy(slices[1].value_unit, "g/ml"); /* no unit is right for both */
    value_unit_raise(value_unit_of(instances, &stack), 1, unit);
    ck_assert_str_eq(unit, "1");
    strcpy(slices[0].value_unit, "[hnsf'U]");
    strcpy(slices[1].value_unit, "[hnsf'U]");
    value_unit_raise(value_unit_of(instances, &stack), 2, unit);
    ck_assert_str_eq(unit, "[hnsf'U]2");
    slices[0].value_unit[0] = slices[1].value_unit[0] = '\0';
    value_unit_raise(value_unit_of(instances, &stack), 2, unit);
    ck_assert_str_eq(unit, "1");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("texture settings");
    TCase *tcase = tcase_create("texture settings");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_loop_test(tcase, directions_of_every_aggregation_and_distance, 0, AGGREGATIONS);
    tcase_add_test(tcase, some_angles);
    tcase_add_test(tcase, offsets_of_the_pipeline);
    tcase_add_test(tcase, the_maximum_number_of_offsets_is_named);
    tcase_add_test(tcase, settings_that_distinguish_patterns);
    tcase_add_test(tcase, each_requested_pattern_is_a_set);
    tcase_add_test(tcase, units_of_values);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
