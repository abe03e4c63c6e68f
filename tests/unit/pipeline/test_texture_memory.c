/*
 * Compares the memory of measuring outside of a lane with its prediction. It must not exceed the prediction. For a
 * tall volume, whose slices have a matrix each, it must not be much less.
 */
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/measure/measure_demand.h"
#include "service/pipeline/measure/measure_values.h"
#include "tests/share.h"
#include "tests/unit/counted.h"
#include "tests/unit/suite.h"

#include <check.h>

enum {
    COLUMNS = 32,
    ROWS = 24,
    PLANES = 400,
    SMALL = 128 << 10, /* bytes of features, of tables of planes and of objects made one by one */
};

static struct dicom_frame frames[PLANES];
static struct dicom_instance instances[PLANES];
static struct dicom_instance *pointers[PLANES];
static struct geometry_plane planes[PLANES];
static struct geometry_stack stack;

static void
make_series(bool alike)
{
    for (int i = 0; i < PLANES; i++) {
        frames[i] = (struct dicom_frame){.has_rescale = true, .slope = alike ? 1 : 1 + 0.0137 * i};
        instances[i] = (struct dicom_instance){.frame_count = 1, .frames = &frames[i]};
        pointers[i] = &instances[i];
        planes[i] = (struct geometry_plane){.instance = i, .position = i};
    }
    stack = (struct geometry_stack){.columns = COLUMNS,
                                    .rows = ROWS,
                                    .plane_count = PLANES,
                                    .planes = planes,
                                    .pixel = IMAGE_UINT16,
                                    .spacing = {1, 1, 1},
                                    .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
}

static struct kernels_lane *
open_lane(struct kernels_device **device, const struct texture_options *options)
{
    const struct kernels_device_options cpu = {.backend = "cpu", .threads = 1};
    const struct image_extent extent = {COLUMNS, ROWS, PLANES};
    struct kernels_demand demand = {.most_bytes = 0};
    struct kernels_lane *lane;
    struct error error;
    uint16_t *voxels;
    texture_demand(options, true, &demand);
    ck_assert_int_eq(kernels_device_open(&cpu, device, &error), 0);
    ck_assert_int_eq(kernels_lane_open(*device, &lane, &error), 0);
    ck_assert_int_eq(kernels_volume_begin(lane, extent, stack.pixel, &demand, (void **)&voxels, &error), 0);
    srand(9);
    for (int i = 0; i < COLUMNS * ROWS * PLANES; i++)
        voxels[i] = (uint16_t)(rand() >> 4);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, PLANES, &error), 0);
    return lane;
}

/* Measures two regions: the volume twice. The prediction may be at most `share` of the actual memory. */
static void
expect_predicted(const struct texture_options *options, double share)
{
    static const struct texture_region regions[2] = {{.segment = 1, .label = "A"}, {.label = ""}};
    const struct texture_bytes bytes = texture_bytes(options, pointers, &stack, 2);
    const int64_t predicted = bytes.lasting + bytes.passing;
    struct texture_result result = {.map_count = 0};
    struct kernels_device *device;
    struct error error;
    const struct texture_request request = {.options = options,
                                            .instances = pointers,
                                            .stack = &stack,
                                            .regions = regions,
                                            .region_count = 2,
                                            .maps = true,
                                            .lane = open_lane(&device, options),
                                            .valuing = valuing_open()};
    ck_assert_ptr_nonnull(request.valuing);
    count_allocations();
    const int rc = texture_measure(&request, &result, &error);
    counted.on = false;
    ck_assert_msg(rc == 0, "%s", error.message);
    ck_assert_int_gt(counted.most, 4 * SMALL);
    ck_assert_msg(predicted + SMALL >= counted.most && (double)predicted <= share * (double)counted.most,
                  "%lld bytes were predicted, and %lld taken", (long long)predicted, (long long)counted.most);
    texture_result_clear(&result);
    valuing_close(request.valuing);
    kernels_lane_close(request.lane);
    kernels_device_close(device);
}

static struct texture_options
options_of(unsigned families, enum aggregation aggregation)
{
    return (struct texture_options){
        .families = families,
        .levels = {.kind = DISCRETISATION_FIXED_BIN_NUMBER, .levels = 12},
        .aggregation = aggregation,
        .ngtdm_distance = 1,
        .ngldm_distance = 1,
        .tlbap_threshold = 0.9,
    };
}

static const unsigned families[] = {
    1u << TEXTURE_FAMILY_glcm,
    1u << TEXTURE_FAMILY_glrlm,
    1u << TEXTURE_FAMILY_ngtdm,
    1u << TEXTURE_FAMILY_ngldm,
    1u << TEXTURE_FAMILY_ngtdm | 1u << TEXTURE_FAMILY_ngldm,
    1u << TEXTURE_FAMILY_glcm | 1u << TEXTURE_FAMILY_glrlm | 1u << TEXTURE_FAMILY_ngtdm,
};

START_TEST(matrices_of_each_slice)
{
    struct texture_options options = options_of(families[_i], AGGREGATION_2D_AVERAGED);
    make_series(true);
    expect_predicted(&options, 1.5);
    options.ngldm_distance = 2;
    expect_predicted(&options, 1.5);
}

END_TEST

/* Zones may have many sizes, but have few here. All slices together take little memory. */
START_TEST(never_less)
{
    struct texture_options options =
        options_of(1u << TEXTURE_FAMILY_glszm | 1u << TEXTURE_FAMILY_gldzm, AGGREGATION_2D_AVERAGED);
    make_series(true);
    expect_predicted(&options, 100);
    options = options_of(1u << TEXTURE_FAMILY_all, AGGREGATION_3D_MERGED);
    expect_predicted(&options, 100);
}

END_TEST

START_TEST(bins_of_a_width)
{
    struct texture_options options = options_of(1u << TEXTURE_FAMILY_glcm, AGGREGATION_2D_SLICE_MERGED);
    make_series(true);
    options.levels = (struct discretisation_options){
        .kind = DISCRETISATION_FIXED_BIN_SIZE, .bin_width = 700, .has_range = _i, .range = {100, 60000}};
    expect_predicted(&options, 1.5);
    options.levels.kind = DISCRETISATION_PYRADIOMICS_BIN_WIDTH;
    expect_predicted(&options, 1.5);
}

END_TEST

/* Matrices that are results, and a table of values and levels per slice. */
START_TEST(memory_of_kept_results)
{
    struct glcm_options glcm = {.aggregation = AGGREGATION_2D_AVERAGED,
                                .distances = (int[]){1, 2},
                                .distance_count = 2,
                                .matrices = GLCM_COUNTS};
    struct texture_options options = options_of(0, AGGREGATION_2D_AVERAGED);
    make_series(true);
    options.glcm = &glcm;
    options.levels.levels = 8; /* all pairs of these occur */
    expect_predicted(&options, 1.5);
    options.glcm = NULL;
    options.first_order = true;
    make_series(false);
    expect_predicted(&options, 1.5);
}

END_TEST

/* Sets that together exceed the limit of sets in progress. */
START_TEST(memory_of_the_maximum_in_progress)
{
    struct glcm_options glcm = {
        .aggregation = AGGREGATION_2D_AVERAGED, .distances = (int[]){1, 2, 3, 4, 5, 6}, .distance_count = 6};
    struct texture_options options = options_of(0, AGGREGATION_2D_AVERAGED);
    options.glcm = &glcm;
    options.levels.levels = 64; /* 50 MiB per distance */
    make_series(true);
    ck_assert_int_le(texture_bytes(&options, pointers, &stack, 2).passing, (int64_t)VALUING_HELD + (1 << 20));
    expect_predicted(&options, 1.5);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("pipeline_texture_memory");
    TCase *tcase = tcase_create("memory");
    tcase_add_loop_test(tcase, matrices_of_each_slice, 0, (int)(sizeof families / sizeof families[0]));
    if (test_share() == 1) { /* the same code, but slower */
        tcase_add_test(tcase, never_less);
        tcase_add_loop_test(tcase, bins_of_a_width, 0, 2);
        tcase_add_test(tcase, memory_of_kept_results);
        tcase_add_test(tcase, memory_of_the_maximum_in_progress);
    }
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
