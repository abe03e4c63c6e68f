/*
 * test_cuda_enclosed.c - compares enclosed voxels on the GPU with the CPU's, bit for bit.
 *
 *   kernels_test_cuda_enclosed [--quick]    --quick: a selection for compute-sanitizer
 *
 * Exits with 77 ("skipped" for CTest) if there is no GPU.
 */
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/ref_enclosed.h"

static struct error error;

static uint64_t *
take_bits(const struct enclosed_case *each)
{
    uint64_t *bits = calloc(enclosed_words(each), sizeof(*bits));

    ck_assert_ptr_nonnull(bits);
    return bits;
}

/* Frees the case. */
static void
check_case(struct enclosed_case *each, uint64_t seed)
{
    uint64_t *bits[2];

    for (int i = 0; i < 2; i++) {
        bits[i] = take_bits(each);
        ck_assert_msg(enclosed_run_case(lanes[i], each, bits[i], &error) == 0, "%s", error.message);
    }
    ck_assert_msg(memcmp(bits[0], bits[1], enclosed_words(each) * sizeof(*bits[0])) == 0, "case %llu",
                  (unsigned long long)seed);
    free(bits[0]);
    free(bits[1]);
    enclosed_free_case(each);
}

START_TEST(random_cases_are_the_cpus)
{
    const uint64_t count = quick ? 12 : 400;

    for (uint64_t seed = 0; seed < count; seed++) {
        struct enclosed_case each;

        enclosed_make_case(&each, seed);
        check_case(&each, seed);
    }
}

END_TEST

/* Sheets of 1024, 1025, 4096, 4097, 10620 and 4500 words, for each kernel. */
START_TEST(large_sheets_are_the_cpus)
{
    static const struct image_extent extents[] = {{250, 256, 3},         {300, 205, 2},  {512, 512, 2},
                                                  {17 * 64 - 1, 241, 2}, {1250, 531, 1}, {130, 2, 1500}};

    for (uint64_t seed = 0; seed < 3; seed++) {
        struct enclosed_case each;

        enclosed_make_case_of(&each, extents[_i], seed);
        check_case(&each, seed);
    }
}

END_TEST

#ifdef NOCTULE_CUDA

static int
run_job(struct kernels_lane *lane, void *context)
{
    const struct enclosed_case *each = (const struct enclosed_case *)context;
    uint64_t *bits = take_bits(each);
    const int rc = enclosed_run_case(lane, each, bits, &error);

    free(bits);
    return rc;
}

START_TEST(any_call_may_fail)
{
    struct enclosed_case each;

    enclosed_make_case(&each, 3);
    fail_each_call((enum cuda_fault_kind)_i, run_job, &each);
    enclosed_free_case(&each);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_enclosed");

    tcase_add_test(gpu_pair_case(suite, "parity"), random_cases_are_the_cpus);
    if (!quick)
        tcase_add_loop_test(gpu_pair_case(suite, "large"), large_sheets_are_the_cpus, 0, 6);
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
