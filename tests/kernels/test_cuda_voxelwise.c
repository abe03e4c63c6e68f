/*
 * test_cuda_voxelwise.c - compares maps of features on the GPU with the CPU's, bit for bit.
 *
 *   kernels_test_cuda_voxelwise [--quick]    --quick: a selection for compute-sanitizer
 *
 * Exits with 77 ("skipped" for CTest) if there is no GPU.
 */
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/ref_voxelwise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct error error;

/* Runs a case on both, and compares. */
static void
compare_case(const struct voxelwise_case *each, uint64_t seed)
{
    const int64_t count = each->request.count;
    double *maps[2];

    for (int i = 0; i < 2; i++) {
        maps[i] = ref_allocate(count * each->features + 1, sizeof(*maps[i]));
        ck_assert_msg(voxelwise_run_case(lanes[i], each, maps[i], &error) == 0, "%s", error.message);
    }
    for (int64_t i = 0; i < count * each->features; i++)
        ck_assert_msg(isnan(maps[0][i]) ? isnan(maps[1][i]) : memcmp(&maps[0][i], &maps[1][i], sizeof(double)) == 0,
                      "case %llu, feature %lld, voxel %lld: %a, not %a", (unsigned long long)seed,
                      (long long)(i / count), (long long)(i % count), maps[1][i], maps[0][i]);
    free(maps[0]);
    free(maps[1]);
}

START_TEST(random_cases)
{
    for (uint64_t seed = 0; seed < (quick ? 12 : 400); seed++) {
        struct voxelwise_case each;

        voxelwise_make_case(&each, seed);
        compare_case(&each, seed);
        voxelwise_free_case(&each);
    }
}

END_TEST

/* More voxels than a batch has, in several parts of slices and in several slices. */
START_TEST(several_batches)
{
    struct voxelwise_case each = {.options = {.radius = 1, .features = {0x3, 0xf, 0, 0, 0, 0x1f}}};
    const int64_t side = quick ? 24 : 190, slices = quick ? 24 : 9, all = side * side * slices;
    uint64_t state = 9;

    each.features = voxelwise_count(&each.options);
    each.levels = (uint16_t *)ref_allocate(all, sizeof(*each.levels));
    each.values = (double *)ref_allocate(all, sizeof(*each.values));
    each.voxels = (int64_t *)ref_allocate(all, sizeof(*each.voxels));
    each.request.size[0] = each.request.size[1] = side;
    each.request.size[2] = slices;
    each.request.level_count = 32;
    for (int64_t i = 0; i < all; i++) {
        each.levels[i] = (uint16_t)ref_random_below(&state, 33);
        each.values[i] = each.levels[i];
        if (each.levels[i] > 0 && i / side / side != 3)
            each.voxels[each.request.count++] = i;
    }
    each.request.levels = each.levels;
    each.request.values = each.values;
    each.request.voxels = each.voxels;
    compare_case(&each, 0);
    voxelwise_free_case(&each);
}

END_TEST

/* Windows with as many levels as matrices of each kind have rows, and with one more: noise, blocks and a checkerboard. */
START_TEST(numbers_of_levels)
{
    static const int levels[] = {1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 124};

    for (int i = 0; i < (int)(sizeof(levels) / sizeof(levels[0])); i++)
        for (int kind = 0; kind < 3; kind++) {
            struct voxelwise_case each = {.options = {.radius = 2}};
            uint64_t state = (uint64_t)(i * 3 + kind);

            each.options.features[VOXELWISE_FAMILY_glcm] = (1u << VOXELWISE_glcm_COUNT) - 1;
            each.features = VOXELWISE_glcm_COUNT;
            each.levels = (uint16_t *)ref_allocate(125, sizeof(*each.levels));
            each.voxels = (int64_t *)ref_allocate(125, sizeof(*each.voxels));
            each.request.size[0] = each.request.size[1] = each.request.size[2] = 5;
            each.request.level_count = levels[i];
            for (int voxel = 0; voxel < 125; voxel++) {
                const int sum = voxel % 5 + voxel / 5 % 5 + voxel / 25;
                const int noise = voxel < levels[i] ? voxel : (int)ref_random_below(&state, levels[i]);

                each.levels[voxel] = (uint16_t)(1 + (kind == 0   ? noise
                                                     : kind == 1 ? voxel * levels[i] / 125
                                                                 : sum % 2 * (levels[i] - 1)));
                if (quick ? voxel == 62 || voxel == 60 : voxel % 4 == 2)
                    each.voxels[each.request.count++] = voxel;
            }
            each.request.levels = each.levels;
            each.request.voxels = each.voxels;
            compare_case(&each, (uint64_t)levels[i]);
            voxelwise_free_case(&each);
        }
}

END_TEST

#ifdef NOCTULE_CUDA

static double fault_maps[1 << 17];

static int
run_case(struct kernels_lane *lane, void *context)
{
    return voxelwise_run_case(lane, (const struct voxelwise_case *)context, fault_maps, &error);
}

START_TEST(any_call_may_fail)
{
    struct voxelwise_case each;

    voxelwise_make_case(&each, 2);
    ck_assert(each.request.count * each.features <= 1 << 17);
    fail_each_call((enum cuda_fault_kind)_i, run_case, &each);
    voxelwise_free_case(&each);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_voxelwise");
    TCase *parity = gpu_pair_case(suite, "parity");

    tcase_add_test(parity, random_cases);
    tcase_add_test(parity, several_batches);
    tcase_add_test(parity, numbers_of_levels);
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
