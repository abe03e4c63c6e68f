/*
 * test_cuda_resample.c - compares resampling on the GPU with the CPU's, voxel for voxel.
 *
 *   kernels_test_cuda_resample [--quick]    --quick: a selection for compute-sanitizer
 *
 * The case small alone (CK_RUN_CASE) is small enough for racecheck. Exits with 77 ("skipped" for CTest) if there is
 * no GPU.
 */
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/resample_cases.h"

static struct error error;

/* Noise everywhere, or only in a ball. Outside it, all voxels are 0, or have the same value. */
enum content { NOISE, NOISE_IN_NOTHING, NOISE_IN_SAME, CONTENTS };

static bool
is_noise(enum content content, const struct image_extent *extent, int64_t i)
{
    const double at[3] = {(double)(i % extent->columns) / (double)extent->columns - 0.5,
                          (double)(i / extent->columns % extent->rows) / (double)extent->rows - 0.5,
                          (double)(i / extent->columns / extent->rows) / (double)extent->slices - 0.5};

    return content == NOISE || at[0] * at[0] + at[1] * at[1] + at[2] * at[2] < 0.03;
}

/* Runs a whole job. Returns its first error. */
static int
resample_content_in(struct kernels_lane *lane, const struct resample_case *each, enum content content, uint64_t seed,
                    const void **resampled)
{
    const struct resample_demand demand = resample_demand_of(each);
    const struct kernels_demand asked = {.of = {[KERNELS_RESAMPLE] = &demand}};
    struct resample_request request = resample_request_of(each);
    const struct image_range range = image_pixel_range(each->pixel);
    const struct image_extent *extent = &each->planes.extent;
    uint64_t random = seed;
    void *voxels;
    int rc = kernels_volume_begin(lane, *extent, each->pixel, &asked, &voxels, &error);

    for (int64_t i = 0; !rc && i < image_voxels(extent); i++) {
        const int32_t noise = range.lo + (int32_t)ref_random_below(&random, (int64_t)range.hi - range.lo + 1);

        ref_store(each->pixel, voxels, i,
                  is_noise(content, extent, i)  ? noise
                  : content == NOISE_IN_NOTHING ? 0
                                                : (int32_t)(seed % 200));
    }
    double *samples = rc ? NULL : resample_give_samples(each, voxels, &request);

    if (!rc)
        rc = kernels_volume_ready(lane, 0, extent->slices, &error);
    if (!rc)
        rc = kernels_resample(lane, &request, resampled, &error);
    free(samples);
    return rc;
}

static void
expect_the_cpus_of(const struct resample_case *each, enum content content, uint64_t seed)
{
    const int64_t voxels = image_voxels(&each->grid.extent);
    const void *resampled[2];

    for (int i = 0; i < 2; i++)
        ck_assert_msg(resample_content_in(lanes[i], each, content, seed, &resampled[i]) == 0, "%s", error.message);
    for (int64_t i = 0; i < voxels; i++)
        if (!resample_equal(each, resampled[0], resampled[1], i))
            ck_abort_msg("case %llu, order %d, values %d: voxel %lld differs on the GPU", (unsigned long long)seed,
                         each->order, each->values, (long long)i);
}

static void
expect_the_cpus(const struct resample_case *each, uint64_t seed)
{
    expect_the_cpus_of(each, NOISE, seed);
}

static const int orders[] = {RESAMPLE_NEAREST, RESAMPLE_LINEAR, RESAMPLE_CUBIC};

START_TEST(random_cases_are_the_cpus)
{
    const uint64_t count = quick ? 6 : 300;

    for (uint64_t seed = 0; seed < count; seed++) {
        struct resample_case each;
        resample_make_case(&each, seed, orders[_i]);
        expect_the_cpus(&each, seed);
        resample_make_real(&each, seed);
        expect_the_cpus(&each, seed);
    }
}

END_TEST

/* Uses enough voxels to fill a GPU, and more rows and slices than blocks. */
START_TEST(large_cases_are_the_cpus)
{
    static const struct image_extent extents[] = {{300, 260, 70}, {2, 70000, 1}, {1, 3, 66000}};
    const double mm[3] = {0.9, 0.8, 0.7};
    double *origins = calloc(3 * 66000, sizeof(*origins));

    ck_assert_ptr_nonnull(origins);
    for (int z = 0; z < 66000; z++)
        origins[3 * z + 2] = z;
    for (size_t i = 0; i < sizeof(extents) / sizeof(extents[0]); i++) {
        struct resample_case each = {.order = orders[_i], .pixel = IMAGE_INT16, .result = IMAGE_INT16};
        each.planes = (struct image_planes){extents[i], {1, 0, 0, 0, 1, 0}, {1, 1}, 1, origins};
        resample_spaced(&each.planes, mm, &each.grid);
        expect_the_cpus(&each, i);
    }
    free(origins);
}

END_TEST

/*
 * Long stretches without noise, in which a recursion from another start does not converge; and places that are
 * closer, or farther apart, than samples.
 */
START_TEST(uniform_stretches_equal_the_cpu)
{
    static const struct image_extent extents[] = {{200, 170, 150}, {150, 203, 161}};
    static const double spacings[][3] = {{1, 1, 1}, {0.4, 1.3, 0.2}, {1.7, 0.3, 0.9}};
    double origins[3 * 200] = {0};

    for (int z = 0; z < 200; z++)
        origins[3 * z + 2] = z;
    for (size_t i = 0; i < sizeof(spacings) / sizeof(spacings[0]); i++)
        for (int content = 0; content < CONTENTS; content++) {
            struct resample_case each = {.order = orders[_i], .pixel = IMAGE_INT16, .result = IMAGE_INT16};

            each.planes = (struct image_planes){extents[i % 2], {1, 0, 0, 0, 1, 0}, {1, 1}, 1, origins};
            resample_spaced(&each.planes, spacings[i], &each.grid);
            expect_the_cpus_of(&each, (enum content)content, 100 + i);
            each.values = RESAMPLE_REAL;
            expect_the_cpus_of(&each, (enum content)content, 100 + i);
        }
}

END_TEST

START_TEST(a_small_case_is_the_cpus)
{
    struct resample_case each;
    resample_make_case(&each, 2, orders[_i]);
    expect_the_cpus(&each, 2);
    resample_make_real(&each, 2);
    expect_the_cpus(&each, 2);
}

END_TEST

#ifdef NOCTULE_CUDA

static int
resample_in(struct kernels_lane *lane, const struct resample_case *each, uint64_t seed, const void **resampled)
{
    return resample_content_in(lane, each, NOISE, seed, resampled);
}

static int
resample_small(struct kernels_lane *lane, void *context)
{
    const struct resample_case *each = context;
    const void *resampled;

    return resample_in(lane, each, 2, &resampled);
}

START_TEST(any_call_may_fail)
{
    struct resample_case each;

    resample_make_case(&each, 2, _i % 2 ? RESAMPLE_CUBIC : RESAMPLE_LINEAR);
    fail_each_call((enum cuda_fault_kind)(_i / 2), resample_small, &each);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_resample");
    TCase *parity = gpu_pair_case(suite, "parity"), *small = gpu_pair_case(suite, "small");

    tcase_add_loop_test(parity, random_cases_are_the_cpus, 0, 3);
    if (!quick) {
        tcase_add_loop_test(parity, large_cases_are_the_cpus, 0, 3);
        tcase_add_loop_test(parity, uniform_stretches_equal_the_cpu, 0, 3);
    }
    tcase_add_loop_test(small, a_small_case_is_the_cpus, 0, 3);
#ifdef NOCTULE_CUDA
    TCase *faults = tcase_create("faults");

    suite_add_tcase(suite, faults);
    tcase_add_loop_test(faults, any_call_may_fail, 0, 2 * (CUDA_FAULT_LOST + 1));
#endif
    return suite;
}

int
main(int argc, char **argv)
{
    return gpu_suite_run(argc, argv, make_suite);
}
