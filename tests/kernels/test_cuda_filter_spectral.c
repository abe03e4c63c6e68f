/*
 * test_cuda_filter_spectral.c - compares filters with a transfer function, and Gabor filters, on the GPU with the plain
 * reference, bit for bit.
 *
 *   kernels_test_cuda_filter_spectral [--quick]    --quick: a selection for compute-sanitizer
 *
 * Exits with 77 ("skipped" for CTest) if there is no GPU.
 */
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/spectral_cases.h"

static struct error error;

static void
compare(struct filter_case *each, uint64_t seed)
{
    const int32_t *codes = NULL;
    double step;
    int32_t *expected = calloc((size_t)ref_voxels(each->extent), sizeof(*expected));

    ck_assert_ptr_nonnull(expected);
    ck_assert_msg(spectral_expect(lanes[0], each, expected, &error) == 0, "%s", error.message);
    ck_assert_msg(filter_run_codes(lanes[1], each, &codes, &step, &error) == 0, "%s", error.message);
    for (int64_t i = 0; i < ref_voxels(each->extent); i++)
        ck_assert_msg(codes[i] == expected[i], "case %llu, voxel %lld: %d, not %d", (unsigned long long)seed,
                      (long long)i, codes[i], expected[i]);
    free(expected);
    filter_free_case(each);
}

START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < (quick ? 24 : 600); seed++) {
        struct filter_case each;

        spectral_make_case(&each, seed);
        compare(&each, seed);
    }
}

END_TEST

/* Lines of one, two and four per block, of all forms of the transforms. */
START_TEST(long_cases)
{
    for (uint64_t seed = 0; seed < SPECTRAL_LONG_CASES; seed += quick ? 7 : 1) {
        struct filter_case each;

        spectral_make_long_case(&each, seed);
        compare(&each, seed);
    }
}

END_TEST

#ifdef NOCTULE_CUDA

static int
run_case(struct kernels_lane *lane, void *context)
{
    const int32_t *codes;
    double step;

    return filter_run_codes(lane, (const struct filter_case *)context, &codes, &step, &error);
}

START_TEST(any_call_may_fail)
{
    struct filter_case each;

    spectral_make_case(&each, 5);
    fail_each_call((enum cuda_fault_kind)_i, run_case, &each);
    filter_free_case(&each);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_filter_spectral");
    TCase *parity = gpu_pair_case(suite, "parity");

    tcase_add_test(parity, random_cases);
    tcase_add_test(parity, long_cases);
#ifdef NOCTULE_CUDA
    gpu_add_faults(suite, any_call_may_fail);
#endif
    return suite;
}

int
main(int argc, char **argv)
{
    return gpu_suite_run(argc, argv, make_suite);
}
