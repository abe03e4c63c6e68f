/* Contrast: two different values anywhere, without padding. */
#include "service/pipeline/volume.h"

#include <check.h>

#define COUNT 1000

static const struct image_range no_padding = {1, 0};
static int32_t value;

START_TEST(two_values_at_any_position)
{
    int16_t voxels[COUNT];
    for (int other = 0; other < COUNT; other++) {
        for (int i = 0; i < COUNT; i++)
            voxels[i] = i == other ? -1024 : -1023;
        ck_assert_int_eq(volume_find_contrast(voxels, IMAGE_INT16, COUNT, no_padding, &value), CONTRAST_SOME);
    }
}

END_TEST

START_TEST(one_value_is_named)
{
    uint8_t bytes[COUNT];
    int16_t words[COUNT];
    uint16_t unsigned_words[COUNT];
    for (int i = 0; i < COUNT; i++) {
        bytes[i] = 200;
        words[i] = -1024;
        unsigned_words[i] = 65535;
    }
    ck_assert_int_eq(volume_find_contrast(bytes, IMAGE_UINT8, COUNT, no_padding, &value), CONTRAST_ONE_VALUE);
    ck_assert_int_eq(value, 200);
    ck_assert_int_eq(volume_find_contrast(words, IMAGE_INT16, COUNT, no_padding, &value), CONTRAST_ONE_VALUE);
    ck_assert_int_eq(value, -1024);
    ck_assert_int_eq(volume_find_contrast(unsigned_words, IMAGE_UINT16, COUNT, no_padding, &value), CONTRAST_ONE_VALUE);
    ck_assert_int_eq(value, 65535);
}

END_TEST

START_TEST(padding_is_no_value)
{
    const struct image_range padding = {-2000, -1990};
    int16_t voxels[COUNT];
    for (int i = 0; i < COUNT; i++)
        voxels[i] = (int16_t)(-2000 + i % 11);
    ck_assert_int_eq(volume_find_contrast(voxels, IMAGE_INT16, COUNT, padding, &value), CONTRAST_NO_VALUE);
    voxels[500] = -1989;
    ck_assert_int_eq(volume_find_contrast(voxels, IMAGE_INT16, COUNT, padding, &value), CONTRAST_ONE_VALUE);
    ck_assert_int_eq(value, -1989);
    voxels[COUNT - 1] = -2001;
    ck_assert_int_eq(volume_find_contrast(voxels, IMAGE_INT16, COUNT, padding, &value), CONTRAST_SOME);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_contrast");
    TCase *tests = tcase_create("contrast");
    tcase_add_test(tests, two_values_at_any_position);
    tcase_add_test(tests, one_value_is_named);
    tcase_add_test(tests, padding_is_no_value);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
