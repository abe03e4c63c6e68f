/*
 * test_cuda_filter.c - compares responses of separable filters on the GPU with the CPU's, bit for bit.
 *
 *   kernels_test_cuda_filter [--quick]    --quick: a selection for compute-sanitizer
 *
 * Exits with 77 ("skipped" for CTest) if there is no GPU.
 */
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/ref_filter.h"
#include "tests/kernels/ref_volumes.h"

static struct error error;

static void
run_both(const struct filter_case *each, uint64_t seed)
{
    const size_t size = (size_t)ref_voxels(each->extent) * sizeof(int32_t);
    int32_t *codes[2];
    double steps[2];

    for (int i = 0; i < 2; i++) {
        codes[i] = calloc(1, size);
        ck_assert_ptr_nonnull(codes[i]);
        ck_assert_msg(filter_run_case(lanes[i], each, codes[i], &steps[i], &error) == 0, "%s", error.message);
    }
    ck_assert_double_eq(steps[0], steps[1]);
    for (size_t i = 0; i < size / sizeof(int32_t); i++)
        ck_assert_msg(codes[0][i] == codes[1][i], "case %llu, kind %d, pooling %d, voxel %zu: %d, not %d",
                      (unsigned long long)seed, each->demand.options.kind, each->demand.options.pooling, i, codes[1][i],
                      codes[0][i]);
    free(codes[0]);
    free(codes[1]);
}

START_TEST(random_filters)
{
    for (uint64_t seed = 0; seed < (quick ? 30 : 1000); seed++) {
        struct filter_case each;

        filter_make_case(&each, quick ? 13 * seed : seed);
        run_both(&each, seed);
        filter_free_case(&each);
    }
}

END_TEST

START_TEST(every_wavelet)
{
    for (uint64_t wavelet = 0; wavelet < WAVELETS; wavelet += quick ? 9 : 1) {
        struct filter_case each;

        filter_make_case(&each, wavelet);
        each.demand.options = (struct filter_options){.kind = FILTER_WAVELET,
                                                      .wavelet = (enum filter_wavelet)wavelet,
                                                      .boundary = FILTER_MIRROR,
                                                      .pooling = (enum filter_pooling)(wavelet % FILTER_POOLINGS),
                                                      .high = {true, false, true},
                                                      .level = 1 + (int)(wavelet % 2)};
        run_both(&each, wavelet);
        filter_free_case(&each);
    }
}

END_TEST

/* Groups of slices and several tiles along each axis. */
START_TEST(large_volumes)
{
    for (uint64_t seed = 0; seed < (quick ? 1 : 20); seed++) {
        struct filter_case each;

        filter_make_case(&each, seed);
        free(each.voxels);
        each.extent = (struct image_extent){300, quick ? 20 : 90, 70};
        each.demand.values = false;
        each.request.values = NULL;
        each.voxels = calloc((size_t)ref_voxels(each.extent), image_pixel_size(each.pixel));
        ck_assert_ptr_nonnull(each.voxels);
        ref_smooth(each.extent, each.pixel, 200, seed, each.voxels);
        run_both(&each, seed);
        filter_free_case(&each);
    }
}

END_TEST

/* A Laplacian of Gaussian of several widths, by blocks that begin within the volume. */
START_TEST(wide_laplacians)
{
    static const struct image_extent extents[] = {{70, 300, 9}, {21, 18, 300}, {130, 5, 7}};

    for (uint64_t seed = 0; seed < (quick ? 3 : 48); seed++) {
        struct filter_case each;

        filter_make_case(&each, seed);
        free(each.voxels);
        each.extent = extents[seed % 3];
        each.demand.values = false;
        each.request.values = NULL;
        each.demand.options =
            (struct filter_options){.kind = FILTER_LOG, .boundary = (enum filter_boundary)(seed / 3 % 4)};
        each.demand.options.sigma_mm = 1 + (double)(seed / 12) * 0.7; /* 9, 15, 21 and 25 taps */
        each.demand.spacing[0] = each.demand.spacing[1] = 1;
        each.demand.spacing[2] = seed % 2 ? 1 : 2.5;
        each.voxels = calloc((size_t)ref_voxels(each.extent), image_pixel_size(each.pixel));
        ck_assert_ptr_nonnull(each.voxels);
        ref_smooth(each.extent, each.pixel, 200, seed, each.voxels);
        run_both(&each, seed);
        filter_free_case(&each);
    }
}

END_TEST

/* Means and energies of small boxes by each way to read values, on several tiles, with rows of whole groups of columns and
 * others. Values are noise, or extremes. */
START_TEST(small_boxes)
{
    static const struct image_extent extents[] = {{232, 70, 19}, {113, 3, 40}, {4, 131, 17}, {120, 64, 16}, {8, 1, 1}};

    for (uint64_t seed = 0; seed < 240; seed += quick ? 19 : 1) {
        const uint64_t form = seed % 6, at = seed / 12;
        const int half = seed / 6 % 2 ? 7 : (int)(at % 8);
        struct filter_case each;

        filter_make_case(&each, form == 1 ? 4 : 3 * seed + (form > 1 ? form - 2 : 1)); /* 4: int16 */
        free(each.voxels);
        free(each.values);
        each.extent = extents[at % 5];
        each.pixel = form < 2 ? IMAGE_INT16 : (enum image_pixel)(seed % 3);
        each.voxels = calloc((size_t)ref_voxels(each.extent), image_pixel_size(each.pixel));
        each.values = calloc((size_t)ref_voxels(each.extent), sizeof(*each.values));
        ck_assert(each.voxels && each.values);
        for (int64_t i = 0; i < ref_voxels(each.extent); i++) {
            const uint64_t noise = (seed * 7919 + (uint64_t)i + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 20;

            ref_store(each.pixel, each.voxels, i,
                      form == 1 ? (noise % 5 ? INT16_MIN : INT16_MAX) : (int32_t)(noise & 0xFF));
            each.values[i] = seed % 4 ? INT32_MIN + (int32_t)(noise & 0xFFFF) : (int32_t)noise;
        }
        each.demand.options = (struct filter_options){.kind = form == 5 ? FILTER_LAWS : FILTER_MEAN,
                                                      .boundary = (enum filter_boundary)(at / 5),
                                                      .size = 1 + 2 * half,
                                                      .energy = 1 + 2 * half,
                                                      .pooling = FILTER_MAX,
                                                      .in_slice = seed % 11 == 0,
                                                      .laws = {LAWS_E5, LAWS_L5, LAWS_S5}};
        each.demand.values = form == 2 || form == 3;
        each.request.values = each.demand.values ? each.values : NULL;
        each.request.limit = form == 0 ? 200 : form == 1 ? INT16_MAX : form == 2 ? FILTER_MAX_LIMIT : 5000;
        if (form < 2 || each.demand.values) {
            each.request.offset = 0;
            each.request.padding = (struct image_range){1, 0};
        }
        each.request.padded = each.request.padded % each.request.limit;
        run_both(&each, seed);
        filter_free_case(&each);
    }
}

END_TEST

#ifdef NOCTULE_CUDA

static int
run_one(struct kernels_lane *lane, void *context)
{
    const struct filter_case *each = context;
    int32_t *codes = calloc((size_t)ref_voxels(each->extent), sizeof(*codes));
    double step;
    const int rc = filter_run_case(lane, each, codes, &step, &error);

    free(codes);
    return rc;
}

START_TEST(any_call_may_fail)
{
    struct filter_case each;

    filter_make_case(&each, 3);
    each.demand.options =
        (struct filter_options){.kind = FILTER_LAWS, .pooling = FILTER_MAX, .laws = {LAWS_E5, LAWS_L5}, .energy = 3};
    fail_each_call((enum cuda_fault_kind)_i, run_one, &each);
    filter_free_case(&each);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_filter");
    TCase *parity = gpu_pair_case(suite, "parity");

    tcase_add_test(parity, random_filters);
    tcase_add_test(parity, every_wavelet);
    tcase_add_test(gpu_pair_case(suite, "large"), large_volumes);
    tcase_add_test(gpu_pair_case(suite, "wide"), wide_laplacians);
    tcase_add_test(gpu_pair_case(suite, "boxes"), small_boxes);
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
