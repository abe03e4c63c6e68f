/*
 * test_cuda_smooth.c - compares blocks and ranges of filtered values on the GPU with the plain references, bit for bit.
 *
 *   kernels_test_cuda_smooth [--quick]    --quick: a selection for compute-sanitizer
 *
 * Exits with 77 ("skipped" for CTest) if there is no GPU.
 */
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/ref_coarse.h"
#include "tests/kernels/ref_smooth.h"
#include "tests/kernels/ref_volumes.h"

static struct error error;

START_TEST(random_blocks)
{
    for (uint64_t seed = 0; seed < (quick ? 12 : 600); seed++) {
        struct coarse_case each;

        coarse_make_case(&each, quick ? 17 * seed + 1 : seed);
        const int64_t count = ref_voxels(each.request.grid.extent);
        int16_t *expected = ref_allocate(count, sizeof(*expected)), *blocks = ref_allocate(count, sizeof(*blocks));

        ref_coarse(each.extent, each.pixel, each.voxels, &each.request, expected);
        ck_assert_msg(coarse_run_case(lanes[1], &each, blocks, &error) == 0, "%s", error.message);
        for (int64_t i = 0; i < count; i++)
            ck_assert_msg(blocks[i] == expected[i], "case %llu, block %lld: %d, not %d", (unsigned long long)seed,
                          (long long)i, blocks[i], expected[i]);
        free(expected);
        free(blocks);
        coarse_free_case(&each);
    }
}

END_TEST

START_TEST(random_filters)
{
    for (uint64_t seed = 0; seed < (quick ? 8 : 400); seed++) {
        struct smooth_case each;

        smooth_make_case(&each, quick ? 13 * seed : seed);
        const size_t words = smooth_words(&each), bins = (size_t)each.request.bins;
        struct smooth_request expected = each.request;
        int32_t *filtered = ref_allocate(ref_voxels(each.extent), sizeof(*filtered));

        expected.bits = ref_allocate((int64_t)words, sizeof(*expected.bits));
        expected.histogram = ref_allocate((int64_t)bins, sizeof(*expected.histogram));
        ref_smooth_values(each.extent, each.pixel, each.voxels, each.spacing, &each.request, filtered);
        ref_smooth_results(each.extent, filtered, &expected);
        ck_assert_msg(smooth_run_case(lanes[1], &each, &error) == 0, "%s", error.message);
        ck_assert_msg(memcmp(each.request.bits, expected.bits, words * sizeof(*expected.bits)) == 0,
                      "case %llu: other bits", (unsigned long long)seed);
        ck_assert_msg(memcmp(each.request.histogram, expected.histogram, bins * sizeof(*expected.histogram)) == 0,
                      "case %llu: another histogram", (unsigned long long)seed);
        free(filtered);
        free(expected.bits);
        free(expected.histogram);
        smooth_free_case(&each);
    }
}

END_TEST

#ifdef NOCTULE_CUDA

static int
run_both(struct kernels_lane *lane, void *context)
{
    struct coarse_case blocks;
    int16_t *found;
    int rc = smooth_run_case(lane, (const struct smooth_case *)context, &error);

    if (rc)
        return rc;
    coarse_make_case(&blocks, 3);
    found = ref_allocate(ref_voxels(blocks.request.grid.extent), sizeof(*found));
    rc = coarse_run_case(lane, &blocks, found, &error);
    free(found);
    coarse_free_case(&blocks);
    return rc;
}

START_TEST(any_call_may_fail)
{
    struct smooth_case each;

    smooth_make_case(&each, 3);
    each.request.region = each.region;
    fail_each_call((enum cuda_fault_kind)_i, run_both, &each);
    smooth_free_case(&each);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_smooth");
    TCase *parity = gpu_pair_case(suite, "parity");

    tcase_add_test(parity, random_blocks);
    tcase_add_test(parity, random_filters);
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
