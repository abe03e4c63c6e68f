/*
 * test_host_runtime.c - jobs of a GPU's lane return, where there is no GPU: with a CUDA runtime whose kernels do nothing
 * (host_runtime.cc). Their results are not looked at; that they are right is for machines with a GPU.
 */
#include "tests/kernels/ref_jobs.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECONDS = 60 };

static const struct image_range none = {1, 0};

static void
run_whole(struct kernels_lane *lane, bool is_map, bool is_relative)
{
    const struct image_extent extent = {70, 40, 30};
    const struct kernels_shape shape = {KERNELS_SPHERE, {35, 20, 15}, {9}};
    const struct image_range range = {0, 1500};
    const struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = none};
    const struct kernels_voxel seed = {35, 20, 15};
    const struct kernels_fuzzy_object object = {.seeds = &seed,
                                                .seed_count = 1,
                                                .mean = 1500,
                                                .sigma = 500,
                                                .homogeneity_sigma = 200,
                                                .weight = 0.5,
                                                .threshold = 30000,
                                                .padding = none,
                                                .map = is_map};
    const struct kernels_fuzzy_object objects[] = {object, object};
    uint16_t *voxels = calloc((size_t)ref_voxels(extent), sizeof *voxels);
    const struct ref_whole whole = {.job = {.extent = extent,
                                            .pixel = IMAGE_UINT16,
                                            .voxels = voxels,
                                            .labels = &label,
                                            .label_count = 1,
                                            .threads = 3},
                                    .objects = objects,
                                    .object_count = 2,
                                    .relative = is_relative};
    struct ref_results results;
    struct error error = {0};

    ck_assert_ptr_nonnull(voxels);
    ref_smooth(extent, IMAGE_UINT16, 3000, 1, voxels);
    ck_assert_msg(ref_run(lane, &whole, &results, NULL, &error) == 0, "%s", error.message);
    free(voxels);
}

START_TEST(jobs_return)
{
    const struct kernels_device_options options = {.backend = "cuda", .threads = 2};
    struct kernels_device *device;
    struct kernels_lane *lane;

    ck_assert_int_eq(kernels_device_open(&options, &device, NULL), 0);
    ck_assert_int_eq(kernels_lane_open(device, &lane, NULL), 0);
    alarm(SECONDS); /* whoever waits for himself */
    run_whole(lane, false, false);
    run_whole(lane, true, false);
    run_whole(lane, true, true);
    alarm(0);
    kernels_lane_close(lane);
    kernels_device_close(device);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("host_runtime");
    TCase *tcase = tcase_create("lane");

    tcase_add_test(tcase, jobs_return);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
