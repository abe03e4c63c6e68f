/* result_nifti.c: each kind of damage to a NIfTI result is found when it is read back, and overlapping segments are
 * refused. integ.nifti compares the files with other software. */
#include "base/error.h"
#include "service/pipeline/results/row.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { COLUMNS = 70, ROWS = 3, SLICES = 4, VOXELS = COLUMNS * ROWS * SLICES, HEAD = 352, WORDS = 2 };

static int16_t voxels[VOXELS];
static uint64_t bits[2][SLICES * ROWS * WORDS];
static const struct image_mask masks[2] = {{bits[0], WORDS, 0}, {bits[1], WORDS, 0}};
static struct drawing_segment shown[2] = {{.mask = &masks[0]}, {.mask = &masks[1]}};
static struct seg_segment segments[2] = {{.label = "A"}, {.label = "B"}};
static struct geometry_plane planes[SLICES];
static struct dicom_frame frame = {.has_rescale = true, .slope = 1, .intercept = -1000};
static struct dicom_instance instance = {.frames = &frame, .frame_count = 1}, *const instances[] = {&instance};
static const struct geometry_stack stack = {.columns = COLUMNS,
                                            .rows = ROWS,
                                            .plane_count = SLICES,
                                            .planes = planes,
                                            .pixel = IMAGE_INT16,
                                            .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                            .spacing = {0.5, 0.75, 2},
                                            .origin = {-10, 20, 30}};
static const struct grid grid = {.instances = instances, .stack = &stack};
static struct conf_pipeline pipeline;
static const struct results_request request = {.pipeline = &pipeline, .stack = &stack, .grid = &grid, .voxels = voxels};
static struct pipeline_report report;
static const struct results results = {
    .request = &request, .report = &report, .segment_count = 2, .segments = segments, .preview_segments = shown};

typedef int make_file(const struct results *results, struct result_file *file);

static void
setup(void)
{
    scratch_make();
    pipeline.overlap = CONF_OVERLAP_REFUSE;
    frame.slope = 1;
    memset(bits, 0, sizeof bits);
    for (int i = 0; i < VOXELS; i++)
        voxels[i] = (int16_t)(i * 37 % 2000);
    bits[0][0] = 0xff;
    bits[1][5 * WORDS + 1] = 0x30; /* voxels (68, 2, 1) and (69, 2, 1) */
}

/* Writes a file, and returns the code. */
static enum code
write_file(make_file *make, const char *name)
{
    struct result_file file = {.fd = open(scratch_path(name), O_RDWR | O_CREAT | O_TRUNC, 0600)};
    report.error = (struct error){0};
    snprintf(file.name, sizeof file.name, "%s", name);
    const int rc = make(&results, &file);
    ck_assert((rc == 0) == (report.error.code == CODE_NONE));
    close(file.fd);
    return report.error.code;
}

static void
read_back(make_file *make, const char *name, enum code expected, const char *words)
{
    struct result_file file = {.fd = -1};
    char path[300];
    report.error = (struct error){0};
    snprintf(path, sizeof path, "%s", scratch_path(name));
    snprintf(file.name, sizeof file.name, "%s", name);
    file.path = path;
    const int rc = make(&results, &file);
    ck_assert_msg(report.error.code == expected && (rc == 0) == (expected == CODE_NONE), "%d %s", rc,
                  report.error.message);
    ck_assert_msg(!words || strstr(report.error.message, words), "\"%s\" lacks \"%s\"", report.error.message, words);
}

/* The inflated bytes of a file. */
static uint8_t content[HEAD + 4 * VOXELS + 1];
static int content_size;

static void
load(const char *name)
{
    gzFile file = gzopen(scratch_path(name), "rb");
    content_size = gzread(file, content, sizeof content);
    ck_assert_int_gt(content_size, HEAD);
    ck_assert_int_eq(gzclose(file), Z_OK);
}

static void
save(const char *name, int size)
{
    gzFile file = gzopen(scratch_path(name), "wb");
    ck_assert_int_eq(gzwrite(file, content, (unsigned)size), size);
    ck_assert_int_eq(gzclose(file), Z_OK);
}

/* Changes one byte, and expects the difference to be found. */
static void
damage(make_file *make, const char *name, int at, const char *words)
{
    content[at] ^= 1;
    save(name, content_size);
    read_back(make, name, CODE_NIFTI_MISMATCH, words);
    content[at] ^= 1;
}

START_TEST(a_volume)
{
    ck_assert_int_eq(write_file(nifti_make_volume, "volume.nii.gz"), CODE_NONE);
    load("volume.nii.gz");
    ck_assert_int_eq(content_size, HEAD + 2 * VOXELS);
    for (int i = 0; i < VOXELS; i++) {
        int16_t value;
        memcpy(&value, content + HEAD + 2 * i, sizeof value);
        ck_assert_int_eq(value, voxels[i] - 1000);
    }
    read_back(nifti_make_volume, "volume.nii.gz", CODE_NONE, NULL);
    damage(nifti_make_volume, "volume.nii.gz", HEAD, "other voxels");
    damage(nifti_make_volume, "volume.nii.gz", content_size - 1, "other voxels");
    damage(nifti_make_volume, "volume.nii.gz", 42, "another grid");    /* columns */
    damage(nifti_make_volume, "volume.nii.gz", 70, "volume.nii.gz");   /* type */
    damage(nifti_make_volume, "volume.nii.gz", 115, "type of values"); /* slope */
    damage(nifti_make_volume, "volume.nii.gz", 295, "another grid");   /* sform */
    damage(nifti_make_volume, "volume.nii.gz", 344, "cannot be read back");
    save("volume.nii.gz", content_size - 1);
    read_back(nifti_make_volume, "volume.nii.gz", CODE_NIFTI_MISMATCH, "other voxels");
    save("volume.nii.gz", content_size + 1);
    read_back(nifti_make_volume, "volume.nii.gz", CODE_NIFTI_MISMATCH, "other voxels");
    ck_assert_int_eq(truncate(scratch_path("volume.nii.gz"), 500), 0);
    read_back(nifti_make_volume, "volume.nii.gz", CODE_NIFTI_MISMATCH, "other voxels than written: ");
    unlink(scratch_path("volume.nii.gz"));
    read_back(nifti_make_volume, "volume.nii.gz", CODE_NIFTI_MISMATCH, "cannot be read back");
}

END_TEST

START_TEST(fractions_are_single_precision)
{
    frame.slope = 0.3;
    ck_assert_int_eq(write_file(nifti_make_volume, "volume.nii.gz"), CODE_NONE);
    load("volume.nii.gz");
    ck_assert_int_eq(content_size, HEAD + 4 * VOXELS);
    for (int i = 0; i < VOXELS; i++) {
        float value;
        memcpy(&value, content + HEAD + 4 * i, sizeof value);
        ck_assert(value == (float)(0.3 * voxels[i] - 1000));
    }
    read_back(nifti_make_volume, "volume.nii.gz", CODE_NONE, NULL);
}

END_TEST

START_TEST(labels)
{
    ck_assert_int_eq(write_file(nifti_make_labels, "labels.nii.gz"), CODE_NONE);
    load("labels.nii.gz");
    ck_assert_int_eq(content_size, HEAD + VOXELS);
    for (int i = 0; i < VOXELS; i++) {
        const int second = (1 * ROWS + 2) * COLUMNS + 68;
        ck_assert_int_eq(content[HEAD + i], i < 8 ? 1 : i == second || i == second + 1 ? 2 : 0);
    }
    read_back(nifti_make_labels, "labels.nii.gz", CODE_NONE, NULL);
    damage(nifti_make_labels, "labels.nii.gz", HEAD + 100, "other voxels");
}

END_TEST

/* The first voxel in the order of the file is named. */
START_TEST(overlapping_segments)
{
    bits[0][5 * WORDS + 1] = 0x20;
    bits[0][SLICES * ROWS * WORDS - 2] = bits[1][SLICES * ROWS * WORDS - 2] = 1;
    ck_assert_int_eq(write_file(nifti_make_labels, "labels.nii.gz"), CODE_SEGMENTS_OVERLAP);
    ck_assert(strstr(report.error.message, "Voxel (69, 2, 1) is in the segments \"A\" and \"B\""));
    pipeline.overlap = CONF_OVERLAP_LAST;
    ck_assert_int_eq(write_file(nifti_make_labels, "labels.nii.gz"), CODE_NONE);
    load("labels.nii.gz");
    ck_assert_int_eq(content[HEAD + 5 * COLUMNS + 69], 2);
    read_back(nifti_make_labels, "labels.nii.gz", CODE_NONE, NULL);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("result_nifti");
    TCase *tests = tcase_create("result_nifti");
    tcase_add_checked_fixture(tests, setup, scratch_remove);
    tcase_add_test(tests, a_volume);
    tcase_add_test(tests, fractions_are_single_precision);
    tcase_add_test(tests, labels);
    tcase_add_test(tests, overlapping_segments);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
