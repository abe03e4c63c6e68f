/*
 * test_cuda_peaks.c - compares means of balls on the GPU with the CPU's, bit for bit.
 *
 *   kernels_test_cuda_peaks [--quick]    --quick: a selection for compute-sanitizer
 *
 * Exits with 77 ("skipped" for CTest) if there is no GPU.
 */
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/ref_peaks.h"

static struct error error;

START_TEST(random_cases_are_the_cpus)
{
    const uint64_t count = quick ? 8 : 400;

    for (uint64_t seed = 0; seed < count; seed++) {
        struct peaks_found found[2];
        struct peaks_case each;

        peaks_make_case(&each, seed);
        for (int i = 0; i < 2; i++)
            ck_assert_msg(peaks_run_case(lanes[i], &each, &found[i], &error) == 0, "%s", error.message);
        ck_assert_msg(memcmp(&found[0], &found[1], sizeof(found[0])) == 0,
                      "case %llu: %.17g and %.17g on the CPU, %.17g and %.17g on the GPU", (unsigned long long)seed,
                      found[0].local, found[0].global, found[1].local, found[1].global);
        peaks_free_case(&each);
    }
}

END_TEST

#ifdef NOCTULE_CUDA

static int
run_job(struct kernels_lane *lane, void *context)
{
    struct peaks_found found;

    return peaks_run_case(lane, (const struct peaks_case *)context, &found, &error);
}

START_TEST(any_call_may_fail)
{
    struct peaks_case each;

    peaks_make_case(&each, 3);
    fail_each_call((enum cuda_fault_kind)_i, run_job, &each);
    peaks_free_case(&each);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_peaks");

    tcase_add_test(gpu_pair_case(suite, "parity"), random_cases_are_the_cpus);
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
