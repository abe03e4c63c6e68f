/* Whole jobs with segments from the mask of a program. */
#include "service/pipeline/measure/measure_values.h"
#include "service/pipeline/pipeline.h"

#include "service/common/volume/mask_file.h"
#include "tests/unit/job_sample.h"
#include "tests/unit/pipeline/job_compute.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>

enum { VOXELS = SAMPLE_SLICES * SAMPLE_COLUMNS * SAMPLE_ROWS };

#define PROGRAM                                                                                                        \
    "name = \"p\"; command = [ \"/bin/p\", \"{in}\", \"{out}\" ]; algorithm = { name = \"Net\"; version = \"1.2\"; "   \
    "source = \"https://net\"; };"
#define TYPE "type = { code = \"12738006\"; scheme = \"SCT\"; meaning = \"Brain\"; };"
#define SEGMENT(label, values, rest)                                                                                   \
    "{ label = \"" label "\"; method = \"program\"; program = \"p\"; value = " values "; " rest TYPE " }"
#define PIPELINE(rest, segments) "name = \"a\"; results = [ \"seg\" ]; " rest "segments = ( " segments " );"
#define UNREVIEWED               "unreviewed = true; "

static struct job_sample sample;
static struct kernels_device *device;
static struct pipeline_compute compute;
static char mask_path[128], mask_sha256[65], identity[65], program[] = PROGRAM;
static struct job_mask mask;
static const struct volume_grid box = {.size = {SAMPLE_COLUMNS, SAMPLE_ROWS, SAMPLE_SLICES},
                                       .to_mm = {0.75, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 3, 0}};

/* Writes a mask of two layers: label 1 in a block of 12 x 10 x 4 voxels, label 5 in `columns` columns of it. */
static void
write_mask(const struct volume_grid *grid, int columns)
{
    static uint16_t maps[2 * VOXELS];
    struct mask_label_list labels;
    struct error error = {0};
    int64_t size;
    memset(maps, 0, sizeof maps);
    for (int i = 0; i < VOXELS; i++) {
        const int x = i % SAMPLE_COLUMNS, y = i / SAMPLE_COLUMNS % SAMPLE_ROWS, z = i / SAMPLE_COLUMNS / SAMPLE_ROWS;
        const bool inside = x >= 6 && x < 18 && y >= 5 && y < 15 && z >= 1 && z < 5;
        maps[i] = inside;
        maps[VOXELS + i] = inside && x < 6 + columns ? 5 : 0;
    }
    unlink(mask_path);
    ck_assert_msg(mask_file_write(AT_FDCWD, mask_path, grid, 2, maps, &size, mask_sha256, &labels, &error) == 0, "%s",
                  error.message);
    free(labels.items);
}

static void
set_up(void)
{
    dicom_init();
    job_sample_make(&sample);
    job_compute_open(&device, &compute);
    snprintf(mask_path, sizeof mask_path, "%s/mask", sample.folder);
    memset(identity, 'c', sizeof identity - 1);
    mask = (struct job_mask){.program = program, .path = mask_path, .sha256 = mask_sha256, .identity = identity};
    sample.spec.masks = &mask;
    sample.spec.mask_count = 1;
    write_mask(&box, 2);
}

static void
tear_down(void)
{
    job_compute_close(device, &compute);
    job_sample_remove(&sample);
}

static struct pipeline_report
run_job(const char *settings)
{
    struct pipeline_report report;
    sample.spec.settings = (char *)(uintptr_t)settings;
    pipeline_run(&sample.spec, &compute, NULL, &report);
    return report;
}

static struct pipeline_report
run_well(const char *settings)
{
    struct pipeline_report report = run_job(settings);
    ck_assert_msg(report.verdict == PROTO_VERDICT_DONE, "%s", report.error.message);
    return report;
}

static void
assert_refused(const char *settings, enum code code, const char *words)
{
    struct pipeline_report report = run_job(settings);
    ck_assert_int_eq(report.verdict, PROTO_VERDICT_REJECT);
    ck_assert_msg(report.error.code == code, "%s", report.error.message);
    ck_assert_msg(strstr(report.error.message, words) != NULL, "%s", report.error.message);
    ck_assert_int_le(job_sample_output_entries(&sample), 0);
    pipeline_report_clear(&report);
}

START_TEST(segments_take_their_labels)
{
    struct pipeline_report report =
        run_well(PIPELINE(UNREVIEWED, SEGMENT("One", "1", "") ", " SEGMENT("Five", "5", "") ", " SEGMENT(
                                          "Both", "[ 1, 5 ]", "") ", " SEGMENT("None", "9", "")));
    ck_assert_str_eq(report.segments[0].method, "program");
    ck_assert_int_eq(report.segments[0].voxels, SAMPLE_BLOCK);
    ck_assert_int_eq(report.segments[1].voxels, 2 * 10 * 4);
    ck_assert_int_eq(report.segments[2].voxels, SAMPLE_BLOCK);
    ck_assert_int_eq(report.segments[3].voxels, 0);
    ck_assert_int_eq(report.segmented_voxels, SAMPLE_BLOCK);
    ck_assert(!report.review);
    pipeline_report_clear(&report);
}

END_TEST

START_TEST(steps_and_other_segments_apply)
{
    struct pipeline_report report = run_well(
        PIPELINE(UNREVIEWED, SEGMENT("One", "1", "then = ( { shrink_mm = 0.8; } ); ") ", " SEGMENT(
                                 "Rest", "1", "minus = [ \"Five\" ]; ") ", " SEGMENT("Five", "5", "hidden = true; ")));
    ck_assert_int_lt(report.segments[0].voxels, SAMPLE_BLOCK);
    ck_assert_int_gt(report.segments[0].voxels, 0);
    ck_assert_int_eq(report.segments[1].voxels, SAMPLE_BLOCK - 2 * 10 * 4);
    pipeline_report_clear(&report);
}

END_TEST

START_TEST(a_segment_without_expect_is_held_for_review)
{
    static const char *const held[] = {
        PIPELINE("", SEGMENT("One", "1", "")),
        PIPELINE("", SEGMENT("One", "1", "expect = { volume_ml = [ 0.1, 1000.0 ]; }; ") ", " SEGMENT("None", "9", "")),
        PIPELINE("review = \"deliver\"; ", SEGMENT("One", "1", "")),
    };
    for (int i = 0; i < 3; i++) {
        struct pipeline_report report = run_well(held[i]);
        ck_assert(report.review);
        ck_assert_uint_eq(report.breaches.count, 1);
        ck_assert_str_eq(report.breaches.at[0].expectation, "trust");
        pipeline_report_clear(&report);
    }
    struct pipeline_report report =
        run_well(PIPELINE("", SEGMENT("One", "1", "expect = { volume_ml = [ 0.1, 1000.0 ]; }; ")));
    ck_assert(!report.review);
    ck_assert_uint_eq(report.breaches.count, 0);
    pipeline_report_clear(&report);
}

END_TEST

START_TEST(no_voxel_with_the_label_is_an_empty_result)
{
    struct pipeline_report report = run_well(PIPELINE(UNREVIEWED, SEGMENT("None", "9", "")));
    ck_assert(report.empty && !report.review);
    ck_assert_int_eq(report.error.code, CODE_EMPTY);
    pipeline_report_clear(&report);
}

END_TEST

/* Returns the bytes of the SEG; the caller must free them. */
static char *
read_seg(size_t *size)
{
    char path[200];
    snprintf(path, sizeof path, "%s/seg.dcm", sample.output);
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    char *bytes = calloc(1, 1 << 20);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static bool
has_text(const char *bytes, size_t size, const char *text)
{
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

START_TEST(the_same_mask_gives_the_same_bytes_and_another_one_others)
{
    static const char settings[] = PIPELINE(UNREVIEWED, SEGMENT("One", "1", ""));
    char *bytes[3], first_mask[65];
    size_t sizes[3];
    char uids[3][DICOM_UID_SIZE];
    memcpy(first_mask, mask_sha256, sizeof first_mask);
    for (int i = 0; i < 3; i++) {
        struct pipeline_report report = run_well(settings);
        memcpy(uids[i], report.results[0].sop_instance_uid, sizeof uids[i]);
        pipeline_report_clear(&report);
        bytes[i] = read_seg(&sizes[i]);
        if (i == 1)
            write_mask(&box, 3); /* another mask with equal voxels of label 1 */
    }
    ck_assert_uint_eq(sizes[0], sizes[1]);
    ck_assert_int_eq(memcmp(bytes[0], bytes[1], sizes[0]), 0);
    ck_assert_str_eq(uids[0], uids[1]);
    ck_assert_str_ne(uids[0], uids[2]);
    ck_assert_str_ne(first_mask, mask_sha256);
    ck_assert(has_text(bytes[2], sizes[2], mask_sha256));
    const char *const texts[] = {"Net",    "1.2",      "https://net", "123110",  "AUTOMATIC",
                                 "109102", first_mask, identity,      "label 1", "\"{out}\""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(has_text(bytes[0], sizes[0], texts[i]), "%s", texts[i]);
    for (int i = 0; i < 3; i++)
        free(bytes[i]);
}

END_TEST

START_TEST(a_mask_that_is_not_the_job_s_is_refused)
{
    static const char settings[] = PIPELINE(UNREVIEWED, SEGMENT("One", "1", ""));
    static char other[] =
        "name = \"q\"; command = [ \"/bin/q\", \"{in}\", \"{out}\" ]; algorithm = { name = \"a\"; version "
        "= \"1\"; };",
                broken[] = "name = ";
    struct volume_grid shifted = box;
    shifted.to_mm[11] = 0.02;
    mask_sha256[0] = mask_sha256[0] == '0' ? '1' : '0';
    assert_refused(settings, CODE_PROGRAM_MASK_DAMAGED, "");
    write_mask(&shifted, 2);
    assert_refused(settings, CODE_PROGRAM_MASK_DAMAGED, "");
    unlink(mask_path);
    assert_refused(settings, CODE_PROGRAM_MASK_DAMAGED, "");
    write_mask(&box, 2);
    mask.sha256 = (char[]){""};
    assert_refused(settings, CODE_PROGRAM_MASK_DAMAGED, "digest");
    mask.sha256 = mask_sha256;
    mask.program = other;
    assert_refused(settings, CODE_PROGRAM_MASK_DAMAGED, "mask of program p");
    mask.program = broken;
    assert_refused(settings, CODE_PROGRAM_UNKNOWN, "");
    sample.spec.mask_count = 0;
    assert_refused(settings, CODE_PROGRAM_MASK_DAMAGED, "segment \"One\"");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("pipeline_program_segments");
    TCase *tests = tcase_create("segments");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, segments_take_their_labels);
    tcase_add_test(tests, steps_and_other_segments_apply);
    tcase_add_test(tests, a_segment_without_expect_is_held_for_review);
    tcase_add_test(tests, no_voxel_with_the_label_is_an_empty_result);
    tcase_add_test(tests, the_same_mask_gives_the_same_bytes_and_another_one_others);
    tcase_add_test(tests, a_mask_that_is_not_the_job_s_is_refused);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
