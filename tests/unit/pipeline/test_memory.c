/*
 * Compares the memory of segmentation outside of a lane with its prediction. It must not exceed the prediction. If a
 * volume has all possible values, it must not be much less.
 */
#include "service/common/slices/slices.h"
#include "service/pipeline/grid.h"
#include "service/pipeline/results/picture_frames.h"
#include "service/pipeline/segment/segment.h"
#include "service/pipeline/segment/segment_coarse.h"
#include "tests/unit/counted.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    COLUMNS = 200,
    ROWS = 160,
    PLANES = 12,
    VOXELS = COLUMNS * ROWS * PLANES,
    SMALL = 16 << 10, /* bytes of lists of segments, requests and planes */
};

/* -------------------------------------------------------------------------------- a series ---- */

static char names[PLANES][16], label[] = "A", pipeline_name[] = "p";
static struct dicom_frame frames[PLANES];
static struct dicom_instance instances[PLANES];
static struct dicom_instance *pointers[PLANES];
static struct geometry_plane planes[PLANES];
static struct geometry_stack stack;
static struct grid grid;
static struct conf_seed seed;
static struct conf_segment segment;
static struct conf_pipeline pipeline;

static void
make_series(int bits, bool alike)
{
    for (int i = 0; i < PLANES; i++) {
        snprintf(names[i], sizeof names[i], "%d.dcm", i);
        frames[i] = (struct dicom_frame){.has_rescale = true, .slope = alike ? 1 : 1 + 0.0137 * i};
        instances[i] =
            (struct dicom_instance){.path = names[i], .frame_count = 1, .frames = &frames[i], .bits_stored = bits};
        pointers[i] = &instances[i];
        planes[i] = (struct geometry_plane){.instance = i, .position = i};
    }
    stack = (struct geometry_stack){.accepted = true,
                                    .columns = COLUMNS,
                                    .rows = ROWS,
                                    .plane_count = PLANES,
                                    .planes = planes,
                                    .pixel = IMAGE_UINT16,
                                    .has_geometry = true,
                                    .spacing = {1, 1, 1},
                                    .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    grid = (struct grid){.stack = &stack, .source = &stack, .instances = pointers};
    pipeline = (struct conf_pipeline){.name = pipeline_name, .segments = &segment, .segment_count = 1};
    segment.label = label;
}

static void
fill(uint16_t *voxels, int bits)
{
    srand(9);
    for (int i = 0; i < VOXELS; i++)
        voxels[i] = (uint16_t)(((unsigned)rand() ^ (unsigned)rand() << 7) & ((1u << bits) - 1));
}

/* --------------------------------------------------------------------------------- the job ---- */

static void
run_on(struct kernels_lane *lane, struct kernels_lane *coarse_lane, int bits, int64_t *predicted)
{
    struct kernels_demand demand = {.most_bytes = 0};
    struct coarse_volume coarse = {.voxels = NULL};
    const bool is_coarse = coarse_volume_is_wanted(&pipeline);
    struct segmentation segmentation = {.pipeline = &pipeline,
                                        .coarse = is_coarse ? &coarse : NULL,
                                        .instances = pointers,
                                        .stack = &stack,
                                        .grid = &grid};
    const struct image_extent extent = {COLUMNS, ROWS, PLANES};
    struct error error;
    void *voxels;
    int rc = segmentation_prepare(&segmentation, &demand, &error);
    ck_assert_msg(rc == 0, "%s", error.message);
    rc = kernels_volume_begin(lane, extent, IMAGE_UINT16, &demand, &voxels, &error);
    ck_assert_msg(rc == 0, "%s", error.message);
    rc = is_coarse ? coarse_volume_prepare(&coarse, &segmentation, coarse_lane, 0, &error) : 0;
    ck_assert_msg(rc == 0, "%s", error.message);
    fill(voxels, bits);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, PLANES, &error), 0);
    *predicted = demand.beside_bytes + coarse.segmentation.bytes.lasting + coarse.segmentation.bytes.passing;
    count_allocations();
    rc = is_coarse ? coarse_volume_run(&coarse, &segmentation, lane, &error) : 0;
    ck_assert_msg(rc == 0, "%s", error.message);
    rc = segmentation_run(&segmentation, lane, voxels, &error);
    counted.on = false;
    ck_assert_msg(rc == 0, "%s", error.message);
    coarse_volume_release(&coarse);
    segmentation_release(&segmentation);
}

/* Runs the segment, and compares its memory with the prediction, which may be at most `share` of it. 0: it takes none beside
 * the lanes. */
static void
expect_predicted(int bits, double share)
{
    const struct kernels_device_options options = {.backend = "cpu", .threads = 2};
    struct kernels_device *device;
    struct kernels_lane *lane, *coarse;
    struct error error;
    int64_t predicted = -1;
    ck_assert_int_eq(kernels_device_open(&options, &device, &error), 0);
    ck_assert_int_eq(kernels_lane_open(device, &lane, &error), 0);
    ck_assert_int_eq(kernels_lane_open(device, &coarse, &error), 0);
    run_on(lane, coarse, bits, &predicted);
    kernels_lane_close(lane);
    kernels_lane_close(coarse);
    kernels_device_close(device);
    ck_assert_int_eq(counted.most > SMALL, share > 0);
    ck_assert_msg(predicted + SMALL >= counted.most && (double)predicted <= share * (double)counted.most,
                  "%lld bytes were predicted, and %lld taken", (long long)predicted, (long long)counted.most);
}

START_TEST(planes_of_the_highest_mean)
{
    segment = (struct conf_segment){
        .method = CONF_LEVEL_SET, .range = {.ends = {0, 40000}}, .automatic = CONF_AUTO_HIGHEST, .auto_mm = _i * 3};
    make_series(16, true);
    expect_predicted(16, 1.1);
    segment.method = CONF_FUZZY;
    segment.automatic = CONF_AUTO_LOWEST;
    segment.estimate_voxels = 2;
    segment.weight = segment.threshold = 0.5;
    expect_predicted(16, 1.1);
}

END_TEST

static const struct conf_range ranges[] = {
    {.relative = CONF_PERCENTILE, .percentile = {5, 95}},
    {.relative = CONF_OTSU, .otsu = 2, .has_class = true, .otsu_class = 1},
    {.relative = CONF_OTSU, .otsu = 8, .has_class = true, .otsu_class = 3},
    {.relative = CONF_OF_MAX, .of_max = 0.4},
};

/* One for the volume, and one per plane; with 16 bits a plane has fewer voxels than values. */
START_TEST(histograms_of_relative_ranges)
{
    static const int bits[] = {10, 12, 16};
    for (size_t b = 0; b < sizeof bits / sizeof bits[0]; b++)
        for (int alike = 0; alike < 2; alike++) {
            segment = (struct conf_segment){.method = CONF_RANGE, .range = ranges[_i]};
            make_series(bits[b], alike);
            expect_predicted(bits[b], 1.5);
        }
}

END_TEST

START_TEST(memory_of_sigma)
{
    static struct conf_shape shape = {.kind = CONF_SPHERE,
                                      .center_unit = CONF_FRACTION,
                                      .center = {0.5, 0.5, 0.5},
                                      .radius_unit = CONF_VOXEL,
                                      .radius = {300, 300, 300}};
    segment = (struct conf_segment){
        .method = CONF_LEVEL_SET, .range = {.relative = CONF_SIGMA, .sigma = 2}, .shapes = &shape, .shape_count = 1};
    make_series(12, false);
    expect_predicted(12, 1.2);
}

END_TEST

START_TEST(memory_of_measurements_around_seeds)
{
    seed = (struct conf_seed){CONF_VOXEL, {50, 40, 5}};
    segment = (struct conf_segment){
        .method = CONF_FUZZY, .seeds = &seed, .seed_count = 1, .estimate_voxels = 2, .weight = 0.5, .threshold = 0.5};
    make_series(16, true);
    expect_predicted(16, 1.1);
}

END_TEST

/* They work on a segment that the pipeline has besides: at last, on one with many sections of a voxel. */
START_TEST(lists_of_sections_and_of_growth)
{
    static char all[] = "All";
    static struct conf_segment pair[2];
    segment = (struct conf_segment){.method = _i == 0 ? CONF_LEAK : CONF_SECTIONS, .from = all};
    segment.sections = (struct conf_sections){
        .area_mm2 = {_i == 1 ? 60 : 0, 800}, .box_mm = 45, .aspect = 45, .middle_of = all, .middle_mm = COLUMNS};
    segment.leak = (struct conf_leak){.limits = {0, 100}, .step = 20, .most_ml = 500};
    make_series(16, true);
    pair[0] = segment;
    pair[1] = (struct conf_segment){.label = all, .method = CONF_RANGE, .range = {.ends = {0, _i < 2 ? 60 : 20000}}};
    pipeline.segments = pair;
    pipeline.segment_count = 2;
    expect_predicted(16, 1.1);
}

END_TEST

/* Filtered values, expanded masks, refine, and the union of two segments. */
START_TEST(memory_of_a_coarse_grid)
{
    static char labels[][2] = {"A", "B", "C", "D"}, *both[] = {labels[0], labels[1]};
    static struct conf_refine refine = {.label = labels[0], .band_mm = 2};
    struct conf_segment segments[] = {
        {.label = labels[0], .range = {.ends = {0, 2000}}, .method = CONF_RANGE, .smooth_mm = 1, .grid_mm = 2},
        {.label = labels[1], .range = {.ends = {0, 2000}}, .method = CONF_RANGE, .grid_mm = 2},
        {.label = labels[2],
         .range = {.ends = {0, 2000}},
         .method = CONF_RANGE,
         .smooth_mm = 1,
         .refine = _i ? &refine : NULL},
        {.label = labels[3], .method = CONF_ANY_OF, .any_of = both, .any_of_count = 2},
    };
    make_series(12, true);
    pipeline.segments = segments;
    pipeline.segment_count = sizeof segments / sizeof segments[0];
    expect_predicted(12, 0); /* all masks are in the lanes */
}

END_TEST

/* Slices with rescales of their own: filtered values, means of components, fuzzy connectedness, and means of blocks. */
START_TEST(memory_of_real_values)
{
    static struct conf_step means = {.kind = CONF_STEP_DROP_MEAN_BELOW, .amount = 100, .connectivity = 6};
    static const struct conf_segment segments[] = {
        {.range = {.ends = {0, 2000}}, .method = CONF_RANGE, .smooth_mm = 1},
        {.range = {.ends = {0, 4000}}, .method = CONF_RANGE, .then = &means, .then_count = 1},
        {.method = CONF_FUZZY, .seeds = &seed, .seed_count = 1, .estimate_voxels = 2, .weight = 0.5, .threshold = 0.5},
        {.range = {.ends = {0, 2000}}, .method = CONF_RANGE, .grid_mm = 2},
    };
    seed = (struct conf_seed){CONF_VOXEL, {50, 40, 5}};
    segment = segments[_i];
    make_series(12, false);
    expect_predicted(12, 1.6);
}

END_TEST

/* Of pictures: small slices, slices as they are, and wide ones. Encoding, and reading back, take as much again. */
START_TEST(memory_of_pictures)
{
    enum { NAMES = 12 };

    static const int sides[][2] = {{COLUMNS, ROWS}, {700, 600}, {1500, 300}};
    const int columns = sides[_i][0], rows = sides[_i][1], words = (columns + 63) / 64;
    struct drawing_segment segments[NAMES];
    struct picture_request request = {.only = -1};
    struct picture_frames *made;
    make_series(12, true);
    stack.columns = columns;
    stack.rows = rows;
    uint16_t *voxels = calloc((size_t)columns * (size_t)rows * PLANES, sizeof *voxels);
    uint64_t *bits = calloc((size_t)words * (size_t)rows * PLANES, sizeof *bits);
    ck_assert(voxels && bits);
    memset(bits, 0xF0, (size_t)words * (size_t)rows * PLANES * sizeof *bits);
    const struct image_mask mask = {.bits = bits, .words_per_row = words, .voxels = columns * rows * PLANES / 2};
    for (int i = 0; i < NAMES; i++)
        segments[i] = (struct drawing_segment){.mask = &mask, .label = "Segment with a name"};
    const struct drawing_request drawing = {.instances = pointers,
                                            .stack = &stack,
                                            .voxels = voxels,
                                            .segments = segments,
                                            .segment_count = NAMES,
                                            .note = "",
                                            .window = {40, 80},
                                            .threads = 1};
    ck_assert_int_eq(picture_frames_make(&drawing, 0, &made), 0);
    picture_frames_free(made);
    count_allocations();
    ck_assert_int_eq(picture_frames_make(&drawing, 0, &made), 0);
    picture_frames_fill(made, &request);
    uint8_t *rgb = malloc((size_t)request.columns * (size_t)request.rows * 3 * PICTURE_BATCH);
    ck_assert_int_eq(request.draw(request.context, 0, PICTURE_BATCH, rgb), 0);
    free(rgb);
    request.only = PLANES;
    picture_frames_fill(made, &request);
    rgb = malloc((size_t)request.columns * (size_t)request.rows * 3);
    ck_assert_int_eq(request.draw(request.context, PLANES, 1, rgb), 0);
    counted.on = false;
    free(rgb);
    picture_frames_free(made);
    free(voxels);
    free(bits);
    const int64_t predicted = picture_frames_bytes(&stack, NAMES, 1);
    ck_assert_msg(predicted >= counted.most && (double)predicted <= 6 * (double)counted.most,
                  "%lld bytes were predicted, and %lld taken", (long long)predicted, (long long)counted.most);
}

END_TEST

/* Values and masks of noise, which need the most bytes; each thread has its share of a batch. */
START_TEST(memory_of_the_file_of_the_slice_viewer)
{
    static const int threads[] = {1, 3, 2, 1};
    static const int segments[] = {12, 1, 0, 200};
    const int count = segments[_i];
    const int32_t size[3] = {300, 150, 40}, words = (size[0] + 63) / 64;
    const size_t voxels = (size_t)size[0] * (size_t)size[1] * (size_t)size[2];
    const size_t bits_words = (size_t)words * (size_t)size[1] * (size_t)size[2];
    struct image_rescale rescales[40];
    struct slices_segment *named = calloc((size_t)count + 1, sizeof *named);
    const struct image_mask **masks = calloc((size_t)count + 1, sizeof *masks);
    uint16_t *values = malloc(voxels * sizeof *values);
    uint64_t *bits = malloc(bits_words * sizeof *bits);
    ck_assert(named && masks && values && bits);
    srand(3);
    for (size_t i = 0; i < voxels; i++)
        values[i] = (uint16_t)(rand() >> 4);
    for (size_t i = 0; i < bits_words; i++)
        bits[i] = (uint64_t)rand() << 40 ^ (uint64_t)rand() << 20 ^ (uint64_t)rand();
    const struct image_mask mask = {.bits = bits, .words_per_row = words, .voxels = (int64_t)voxels / 2};
    for (int i = 0; i < count; i++) {
        masks[i] = &mask;
        snprintf(named[i].label, sizeof named[i].label, "Segment");
    }
    for (int i = 0; i < 40; i++)
        rescales[i] = (struct image_rescale){1 + i, 0};
    const struct slices_volume volume = {.size = {size[0], size[1], size[2]},
                                         .pixel = IMAGE_UINT16,
                                         .spacing = {1, 1, 1},
                                         .window = {0, 1},
                                         .rescale_count = 40,
                                         .rescales = rescales,
                                         .segment_count = count,
                                         .segments = named};
    const struct slices_request request = {&volume, values, masks, threads[_i]};
    const int fd = memfd_create("slices", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    count_allocations();
    ck_assert_int_eq(slices_write(&request, fd), 0);
    counted.on = false;
    close(fd);
    free(values);
    free(bits);
    free(masks);
    free(named);
    const int64_t predicted = slices_write_bytes(size, (size_t)count, threads[_i]);
    ck_assert_msg(predicted >= counted.most && (double)predicted <= 1.5 * (double)counted.most,
                  "%lld bytes were predicted, and %lld taken", (long long)predicted, (long long)counted.most);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("pipeline_memory");
    TCase *tcase = tcase_create("memory");
    tcase_add_loop_test(tcase, planes_of_the_highest_mean, 0, 4);
    tcase_add_loop_test(tcase, histograms_of_relative_ranges, 0, (int)(sizeof ranges / sizeof ranges[0]));
    tcase_add_test(tcase, memory_of_sigma);
    tcase_add_test(tcase, memory_of_measurements_around_seeds);
    tcase_add_loop_test(tcase, lists_of_sections_and_of_growth, 0, 3);
    tcase_add_loop_test(tcase, memory_of_a_coarse_grid, 0, 2);
    tcase_add_loop_test(tcase, memory_of_real_values, 0, 4);
    tcase_add_loop_test(tcase, memory_of_pictures, 0, 3);
    tcase_add_loop_test(tcase, memory_of_the_file_of_the_slice_viewer, 0, 4);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
