/* Components of a mask: the same as by flooding, for any number of bands. */
#include "service/pipeline/components.h"
#include "tests/unit/suite.h"

#include <string.h>

enum { COLUMNS = 70, ROWS_ = 5, SLICES = 9, WORDS = 2, VOXELS = COLUMNS * ROWS_ * SLICES };

static const struct image_extent extent = {COLUMNS, ROWS_, SLICES};
static uint64_t bits[WORDS * ROWS_ * SLICES];

static void
put(int x, int y, int z)
{
    bits[(z * ROWS_ + y) * WORDS + x / 64] |= UINT64_C(1) << (x % 64);
}

static int64_t
count_in_bands(int64_t bands)
{
    const struct image_mask mask = {bits, WORDS, 0};
    struct components *components;
    int64_t count = -1;
    ck_assert_int_eq(components_begin(&extent, &mask, bands, &components), 0);
    ck_assert_int_eq(components_bands(components), bands < SLICES ? bands : SLICES);
    for (int64_t band = components_bands(components) - 1; band >= 0; band--)
        ck_assert_int_eq(components_sweep(components, band), 0);
    ck_assert_int_eq(components_join(components, &count), 0);
    components_free(components);
    return count;
}

static void
assert_components(int64_t expected)
{
    for (int64_t bands = 1; bands <= SLICES + 1; bands++)
        ck_assert_int_eq(count_in_bands(bands), expected);
}

/* Floods from each voxel that no other flood has reached: the plain reference. */
static void
flood(uint8_t *left, int x, int y, int z)
{
    if (x < 0 || y < 0 || z < 0 || x >= COLUMNS || y >= ROWS_ || z >= SLICES || !left[(z * ROWS_ + y) * COLUMNS + x])
        return;
    left[(z * ROWS_ + y) * COLUMNS + x] = 0;
    flood(left, x - 1, y, z);
    flood(left, x + 1, y, z);
    flood(left, x, y - 1, z);
    flood(left, x, y + 1, z);
    flood(left, x, y, z - 1);
    flood(left, x, y, z + 1);
}

static int64_t
count_by_floods(void)
{
    uint8_t left[VOXELS];
    int64_t count = 0;
    for (int i = 0; i < VOXELS; i++)
        left[i] = bits[i / COLUMNS * WORDS + i % COLUMNS / 64] >> (i % COLUMNS % 64) & 1;
    for (int i = 0; i < VOXELS; i++)
        if (left[i]) {
            count++;
            flood(left, i % COLUMNS, i / COLUMNS % ROWS_, i / COLUMNS / ROWS_);
        }
    return count;
}

START_TEST(noise_of_all_densities)
{
    uint32_t random = 1;
    for (int round = 0; round < 400; round++) {
        memset(bits, 0, sizeof bits);
        for (int i = 0; i < VOXELS; i++) {
            random = random * 1664525 + 1013904223;
            if ((int)(random >> 24) % 100 < round / 4)
                put(i % COLUMNS, i / COLUMNS % ROWS_, i / COLUMNS / ROWS_);
        }
        assert_components(count_by_floods());
    }
}

END_TEST

START_TEST(empty_and_full_volumes)
{
    memset(bits, 0, sizeof bits);
    assert_components(0);
    for (int i = 0; i < VOXELS; i++)
        put(i % COLUMNS, i / COLUMNS % ROWS_, i / COLUMNS / ROWS_);
    assert_components(1);
}

END_TEST

/* Two arms through all slices meet in only one: the bands of the other slices must find out. */
START_TEST(arms_joined_in_one_slice)
{
    for (int meeting = 0; meeting < SLICES; meeting++) {
        memset(bits, 0, sizeof bits);
        for (int z = 0; z < SLICES; z++) {
            put(3, 1, z);
            put(66, 1, z);
            put(30, 3, z);
        }
        assert_components(3);
        for (int x = 4; x < 66; x++)
            put(x, 1, meeting);
        assert_components(2);
    }
}

END_TEST

/* One arm goes up, down and up again: a band has three pieces of it in its lowest and highest slices. */
START_TEST(a_bent_arm)
{
    memset(bits, 0, sizeof bits);
    for (int z = 0; z < SLICES; z++)
        for (int arm = 0; arm < 3; arm++)
            put(20 * arm, 2, z);
    assert_components(3);
    for (int x = 1; x < 20; x++)
        put(x, 2, SLICES - 1);
    assert_components(2);
    for (int x = 21; x < 40; x++)
        put(x, 2, 0);
    assert_components(1);
}

END_TEST

int
main(void)
{
    const TTest *const tests[] = {noise_of_all_densities, empty_and_full_volumes, arms_joined_in_one_slice, a_bent_arm};
    Suite *suite = suite_create("components");
    TCase *tcase = tcase_create("components");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
