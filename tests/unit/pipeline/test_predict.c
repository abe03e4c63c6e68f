/*
 * Predicted times: a job must not be predicted to be faster than one with less work, and slow jobs must be
 * recognized.
 */
#include "service/pipeline/pipeline.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <string.h>

static struct conf_segment segments[2];
static struct texture_options texture;
static struct conf_step steps[3];

static struct conf_pipeline
pipeline_of(enum conf_method method)
{
    memset(&texture, 0, sizeof texture);
    memset(segments, 0, sizeof segments);
    segments[0].method = segments[1].method = method;
    return (struct conf_pipeline){.segments = segments, .segment_count = 1};
}

static double
seconds_of(const struct conf_pipeline *pipeline, int64_t voxels, int threads)
{
    return predict_seconds(pipeline, &(struct predict_size){.voxels = voxels}, threads);
}

/* docs/measurements.md: a brain of 40.4 million voxels took 0.08 s in all on 2 cores. */
START_TEST(small_jobs_end_before_a_gpu_is_open)
{
    const struct conf_pipeline level_set = pipeline_of(CONF_LEVEL_SET);
    ck_assert_double_lt(seconds_of(&level_set, 274 * 384 * 384, 2), PREDICT_OPEN_SECONDS);
    ck_assert_double_gt(seconds_of(&level_set, INT64_C(512) * 512 * 2000, 2), PREDICT_OPEN_SECONDS);
}

END_TEST

/* docs/measurements.md: a map of 34.3 million voxels took 0.75 s on 2 cores, 1.43 s on one. */
START_TEST(predictions_are_no_less_than_measured)
{
    const struct conf_pipeline fuzzy = pipeline_of(CONF_FUZZY);
    ck_assert_double_ge(seconds_of(&fuzzy, 512 * 512 * 131, 2), 0.754);
    ck_assert_double_ge(seconds_of(&fuzzy, 512 * 512 * 131, 1), 1.429);
}

END_TEST

START_TEST(more_work_takes_longer)
{
    struct conf_pipeline pipeline = pipeline_of(CONF_RANGE);
    double last = seconds_of(&pipeline, 1000000, 4);
    ck_assert_double_gt(seconds_of(&pipeline, 1000001, 4), last);
    ck_assert_double_gt(seconds_of(&pipeline, 1000000, 3), last);
    pipeline.segment_count = 2;
    ck_assert_double_gt(seconds_of(&pipeline, 1000000, 4), last);
    last = seconds_of(&pipeline, 1000000, 4);
    segments[0].then = steps;
    segments[0].then_count = 3;
    ck_assert_double_gt(seconds_of(&pipeline, 1000000, 4), last);
    last = seconds_of(&pipeline, 1000000, 4);
    segments[0].smooth_mm = 1;
    ck_assert_double_gt(seconds_of(&pipeline, 1000000, 4), last);
    last = seconds_of(&pipeline, 1000000, 4);
    segments[0].method = CONF_ENCLOSED;
    ck_assert_double_gt(seconds_of(&pipeline, 1000000, 4), last);
    last = seconds_of(&pipeline, 1000000, 4);
    segments[1].automatic = CONF_AUTO_HIGHEST;
    ck_assert_double_gt(seconds_of(&pipeline, 1000000, 4), last);
    last = seconds_of(&pipeline, 1000000, 4);
    pipeline.texture = &texture;
    pipeline.texture_count = 1;
    ck_assert_double_gt(seconds_of(&pipeline, 1000000, 4), last);
}

END_TEST

START_TEST(superlinear_work_has_no_prediction)
{
    struct conf_pipeline pipeline = pipeline_of(CONF_RANGE);
    static struct texture_resample finer;
    pipeline.texture = &texture;
    pipeline.texture_count = 1;
    texture.families = 1u << TEXTURE_FAMILY_spatial_correlation;
    ck_assert(isinf(seconds_of(&pipeline, 1000, 4)));
    texture.families = 1u << TEXTURE_FAMILY_all;
    ck_assert(isinf(seconds_of(&pipeline, 1000, 4)));
    texture.families = 1u << TEXTURE_FAMILY_glcm;
    ck_assert(isfinite(seconds_of(&pipeline, 1000, 4)));
    texture.resample = &finer;
    ck_assert(isinf(seconds_of(&pipeline, 1000, 4)));
}

END_TEST

/* 300 images of 512x512 voxels of 0.8x0.8x1 mm: a block for 2 mm has 3x3x2 of them, because 2.5 is rounded up. */
START_TEST(segments_on_blocks_count_blocks)
{
    struct conf_pipeline pipeline = pipeline_of(CONF_RANGE);
    struct dicom_frame frame = {.has_spacing = true, .pixel_spacing = {0.8, 0.8}, .slice_thickness = 1};
    const struct dicom_instance image = {.columns = 512, .rows = 512, .frame_count = 1, .frames = &frame};
    struct predict_size size = {0}, unknown = {0};
    segments[0].grid_mm = 2;
    for (int i = 0; i < 300; i++)
        predict_add(&pipeline, &image, &size);
    ck_assert_int_eq(size.voxels, 512 * 512 * 300);
    ck_assert_double_eq(size.blocks, 171.0 * 171 * 150);
    const double on_blocks = predict_seconds(&pipeline, &size, 2);
    segments[0].grid_mm = 0;
    ck_assert_double_gt(predict_seconds(&pipeline, &size, 2), on_blocks);
    segments[0].grid_mm = 2;
    frame.has_spacing = false;
    frame.slice_thickness = 0;
    predict_add(&pipeline, &image, &unknown);
    ck_assert_double_eq(unknown.blocks, 512 * 512);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("predict");
    TCase *tcase = tcase_create("predict");
    tcase_add_test(tcase, small_jobs_end_before_a_gpu_is_open);
    tcase_add_test(tcase, predictions_are_no_less_than_measured);
    tcase_add_test(tcase, more_work_takes_longer);
    tcase_add_test(tcase, superlinear_work_has_no_prediction);
    tcase_add_test(tcase, segments_on_blocks_count_blocks);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
