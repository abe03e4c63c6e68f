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

START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < (quick ? 24 : 600); seed++) {
        struct spectral_case each;
        const int32_t *codes = NULL;
        int32_t *expected;

        spectral_make_case(&each, seed);
        expected = calloc((size_t)ref_voxels(each.extent), sizeof(*expected));
        ck_assert_ptr_nonnull(expected);
        ck_assert_msg(spectral_expect(lanes[0], &each, expected, &error) == 0, "%s", error.message);
        ck_assert_msg(spectral_run_case(lanes[1], &each, &codes, &error) == 0, "%s", error.message);
        for (int64_t i = 0; i < ref_voxels(each.extent); i++)
            ck_assert_msg(codes[i] == expected[i], "case %llu, voxel %lld: %d, not %d", (unsigned long long)seed,
                          (long long)i, codes[i], expected[i]);
        free(expected);
        spectral_free_case(&each);
    }
}

END_TEST

#ifdef NOCTULE_CUDA

static int
run_case(struct kernels_lane *lane, void *context)
{
    const int32_t *codes;

    return spectral_run_case(lane, (const struct spectral_case *)context, &codes, &error);
}

START_TEST(any_call_may_fail)
{
    struct spectral_case each;

    spectral_make_case(&each, 5);
    fail_each_call((enum cuda_fault_kind)_i, run_case, &each);
    spectral_free_case(&each);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_filter_spectral");
    TCase *parity = gpu_pair_case(suite, "parity");

    tcase_add_test(parity, random_cases);
#ifdef NOCTULE_CUDA
    if (!quick) {
        TCase *faults = tcase_create("faults");

        suite_add_tcase(suite, faults);
        tcase_add_loop_test(faults, any_call_may_fail, CUDA_FAULT_UNKNOWN, CUDA_FAULT_LOST + 1);
    }
#endif
    return suite;
}

int
main(int argc, char **argv)
{
    return gpu_suite_run(argc, argv, make_suite);
}
