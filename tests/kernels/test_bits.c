/*
 * test_bits.c - compares the innermost loops of each available instruction set, and the bit volumes made by them,
 * with plain loops. Buffers end at the end of their allocation, so that a sanitizer detects any read beyond it.
 */
#include "kernels/cpu/bits.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char *const isa_names[] = {"scalar", "AVX2", "AVX-512"};

/* Returns the instruction set of the loop index, or the best one if the machine does not have it. */
static const struct isa *
isa_of(int index)
{
    const struct isa *isa = isa_find(isa_names[index]);

    return isa ? isa : isa_find(NULL);
}

static void *
allocate(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);

    ck_assert_ptr_nonnull(memory);
    return memory;
}

static struct isa_interval
random_interval(uint64_t *random, int64_t values)
{
    struct isa_interval interval = {(uint16_t)ref_random_below(random, values),
                                    (uint16_t)ref_random_below(random, values)};

    if (ref_random_below(random, 4) == 0)
        interval.span = ref_random_below(random, 2) ? 0 : (uint16_t)(values - 1);
    return interval;
}

static bool
holds(struct isa_interval interval, int64_t value, int64_t values)
{
    return (value - interval.low + values) % values <= interval.span;
}

/* Checks bits, padding and number of runs of one packed row. */
static void
check_packed(const uint64_t *bits, int64_t runs, const bool *in, int64_t count)
{
    int64_t expected = 0, wrong = 0;

    for (int64_t i = 0; i < (count + 63) / 64 * 64; i++)
        wrong += (bits[i / 64] >> i % 64 & 1) != (i < count && in[i]);
    ck_assert_int_eq(wrong, 0);
    for (int64_t i = 0; i < count; i++)
        expected += in[i] && (i == 0 || !in[i - 1]);
    ck_assert_int_eq(runs, expected);
}

START_TEST(packing_equals_plain_loops)
{
    const struct isa *isa = isa_of(_i);
    uint64_t random = 5;

    for (int64_t count = 1; count < 300; count++) {
        uint8_t *small = allocate(count, 1);
        uint16_t *large = allocate(count, 2);
        uint64_t *bits = allocate((count + 63) / 64, 8);
        bool *in = allocate(count, 1);
        struct isa_interval pass8[2] = {random_interval(&random, 256), random_interval(&random, 256)};
        struct isa_interval pass16[2] = {random_interval(&random, 65536), random_interval(&random, 65536)};

        for (int64_t i = 0; i < count; i++) {
            small[i] = (uint8_t)ref_random(&random);
            in[i] = holds(pass8[0], small[i], 256) || holds(pass8[1], small[i], 256);
        }
        check_packed(bits, isa->pack8(small, count, pass8, bits), in, count);
        for (int64_t i = 0; i < count; i++) {
            large[i] = (uint16_t)ref_random(&random);
            in[i] = holds(pass16[0], large[i], 65536) || holds(pass16[1], large[i], 65536);
        }
        check_packed(bits, isa->pack16(large, count, pass16, bits), in, count);
        free(small);
        free(large);
        free(bits);
        free(in);
    }
}

END_TEST

START_TEST(new_bits_are_counted)
{
    const struct isa *isa = isa_of(_i);
    uint64_t random = 6;

    for (int64_t words = 0; words < 40; words++) {
        uint64_t *line = allocate(words + 1, 8), *before = allocate(words + 1, 8);
        int64_t expected = 0;

        for (int64_t i = 0; i < words; i++) {
            line[i] = ref_random(&random);
            before[i] = ref_random(&random);
            for (int b = 0; b < 64; b++)
                expected += (line[i] >> b & 1) && !(before[i] >> b & 1);
        }
        ck_assert_int_eq(isa->count_new(line, before, words), expected);
        free(line);
        free(before);
    }
}

END_TEST

static bool
bit_at(const struct bits_matrix *matrix, int64_t row, int64_t column)
{
    return matrix->words[row * matrix->stride + column / 64] >> column % 64 & 1;
}

static void
check_transpose(const struct isa *isa, int64_t rows, int64_t columns, uint64_t *random)
{
    struct bits_matrix source = {NULL, rows, columns, (columns + 63) / 64 + 3};
    struct bits_matrix target = {NULL, columns, rows, (rows + 63) / 64 + 1};
    int64_t wrong = 0;

    source.words = allocate(rows * source.stride, 8);
    target.words = allocate(columns * target.stride, 8);
    memset(target.words, 0xFF, (size_t)(columns * target.stride) * 8);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            source.words[r * source.stride + c / 64] |= (ref_random(random) & 1) << c % 64;
    bits_transpose(isa, &source, &target);
    for (int64_t r = 0; r < columns; r++) {
        for (int64_t c = 0; c < (rows + 63) / 64 * 64; c++)
            wrong += bit_at(&target, r, c) != (c < rows && bit_at(&source, c, r));
        wrong += target.words[r * target.stride + target.stride - 1] != UINT64_MAX;
    }
    ck_assert_int_eq(wrong, 0);
    free(source.words);
    free(target.words);
}

START_TEST(matrices_are_transposed)
{
    static const int64_t sizes[] = {1, 2, 63, 64, 65, 200, 511, 512, 513, 700};
    uint64_t random = 8;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++)
            check_transpose(isa_of(_i), sizes[i], sizes[j], &random);
}

END_TEST

START_TEST(bits_are_set_once)
{
    for (int64_t first = 0; first < 200; first++) {
        for (int64_t last = first - 1; last < 200; last++) {
            uint64_t row[4] = {0, UINT64_C(1) << 6, 0, 0};
            bool had = first <= 70 && 70 <= last;
            int64_t wrong = 0;

            ck_assert_int_eq(bits_set(row, first, last), last - first + 1 - had);
            for (int64_t x = 0; x < 256; x++)
                wrong += (row[x / 64] >> x % 64 & 1) != (x == 70 || (first <= x && x <= last));
            ck_assert_int_eq(wrong, 0);
        }
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("bits");
    TCase *all = tcase_create("all");
    SRunner *runner = srunner_create(suite);

    tcase_add_loop_test(all, packing_equals_plain_loops, 0, 3);
    tcase_add_loop_test(all, new_bits_are_counted, 0, 3);
    tcase_add_loop_test(all, matrices_are_transposed, 0, 3);
    tcase_add_test(all, bits_are_set_once);
    suite_add_tcase(suite, all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
