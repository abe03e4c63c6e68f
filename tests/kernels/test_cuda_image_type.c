/*
 * test_cuda_image_type.c - compares image types on the GPU with the CPU's, bit for bit.
 *
 *   kernels_test_cuda_image_type [--quick]    --quick: a selection for compute-sanitizer
 *
 * Exits with 77 ("skipped" for CTest) if there is no GPU.
 */
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/ref_image_type.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <string.h>

static struct error error;

static void
run_both(const struct image_type_case *each, int64_t count, uint64_t seed)
{
    const double *expected[IMAGE_TYPE_BANDS], *responses[IMAGE_TYPE_BANDS];

    ck_assert_msg(image_type_run_case(lanes[0], each, expected, &error) == 0, "%s", error.message);
    ck_assert_msg(image_type_run_case(lanes[1], each, responses, &error) == 0, "%s", error.message);
    for (int64_t i = 0; i < count * image_type_count(&each->demand); i++)
        ck_assert_msg(isnan(expected[0][i]) ? isnan(responses[0][i])
                                            : memcmp(&responses[0][i], &expected[0][i], sizeof(double)) == 0,
                      "case %llu (%s), voxel %lld: %a, not %a", (unsigned long long)seed,
                      filter_kind_names[each->demand.options.kind], (long long)i, responses[0][i], expected[0][i]);
}

/* Half of the cases have all bands of a wavelet, and a box. */
START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < (quick ? 36 : 1800); seed++) {
        struct image_type_case each, box;

        image_type_make_case(&each, seed);
        box = seed / 9 % 2 ? image_type_boxed(&each, seed) : each;
        run_both(&box, seed / 9 % 2 ? image_type_box_voxels(&box) : ref_voxels(each.extent), seed);
        image_type_free_case(&each);
    }
}

END_TEST

START_TEST(every_wavelet)
{
    for (uint64_t wavelet = 0; wavelet < WAVELETS; wavelet += quick ? 9 : 1) {
        struct image_type_case each;

        image_type_make_case(&each, wavelet);
        each.demand.options = (struct filter_options){.kind = FILTER_PYRADIOMICS_WAVELET,
                                                      .wavelet = (enum filter_wavelet)wavelet,
                                                      .high = {true, false, true},
                                                      .level = 1 + (int)(wavelet % 2)};
        run_both(&each, ref_voxels(each.extent), wavelet);
        image_type_free_case(&each);
    }
}

END_TEST

#ifdef NOCTULE_CUDA

static int
run_case(struct kernels_lane *lane, void *context)
{
    const double *responses[IMAGE_TYPE_BANDS];

    return image_type_run_case(lane, (const struct image_type_case *)context, responses, &error);
}

START_TEST(any_call_may_fail)
{
    struct image_type_case each;

    image_type_make_case(&each, FILTER_PYRADIOMICS_LBP_3D - FILTER_PYRADIOMICS_SQUARE);
    fail_each_call((enum cuda_fault_kind)_i, run_case, &each);
    image_type_free_case(&each);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_image_type");
    TCase *parity = gpu_pair_case(suite, "parity");

    tcase_add_test(parity, random_cases);
    tcase_add_test(parity, every_wavelet);
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
