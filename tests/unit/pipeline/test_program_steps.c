/* The input that a program reads, and each check of the output that it wrote. */
#include "service/pipeline/program/program_steps.h"

#include "dicom/dicom.h"
#include "service/common/volume/mask_file.h"
#include "service/common/volume/volume_grid.h"
#include "tests/unit/job_sample.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { VOXELS = SAMPLE_SLICES * SAMPLE_COLUMNS * SAMPLE_ROWS };

#define PROGRAM(options)                                                                                               \
    "name = \"p\"; command = [ \"/bin/p\", \"{in}\", \"{out}\" ]; algorithm = { name = \"a\"; version = \"1\"; "       \
    "}; " options

static struct job_sample sample;
static char work[128];
static int work_fd;
static uint16_t accepted[] = {1, 5};
static struct program_order order;

/* The grid of the sample, by hand: columns 0.75 mm, rows 0.5 mm, slices 3 mm apart, from the origin. */
static const struct volume_grid box = {.size = {SAMPLE_COLUMNS, SAMPLE_ROWS, SAMPLE_SLICES},
                                       .to_mm = {0.75, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 3, 0}};

static void
set_up(void)
{
    static char pipeline[] = SAMPLE_SETTINGS("[ 0.0, 80.0 ]"), stack[] = "";
    dicom_init();
    job_sample_make(&sample);
    snprintf(work, sizeof work, "%s/work", sample.folder);
    ck_assert_int_eq(mkdir(work, 0755), 0);
    work_fd = open(work, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(mkdirat(work_fd, "out", 0755), 0);
    order = (struct program_order){.pipeline = pipeline,
                                   .stack = stack,
                                   .inputs = sample.inputs,
                                   .input_count = SAMPLE_SLICES,
                                   .accepted = accepted,
                                   .accepted_count = 2,
                                   .work = work,
                                   .threads = 2};
}

static void
tear_down(void)
{
    close(work_fd);
    job_sample_remove(&sample);
}

static struct conf_program *
read_program(const char *text)
{
    struct conf_program *program;
    struct error error = {0};
    ck_assert_msg(conf_program_from_text(text, &program, &error) == 0, "%s", error.message);
    return program;
}

/* ------------------------------------------------------------------------------- the input -- */

static int
write_input(const char *text, struct error *error)
{
    struct conf_program *program = read_program(text);
    *error = (struct error){0};
    const int rc = program_steps.write_input(&order, program, work_fd, error);
    conf_program_free(program);
    return rc;
}

struct read_values {
    double values[VOXELS];
};

static int
keep_values(void *context, int64_t first, double value, int64_t count, struct error *error)
{
    struct read_values *read = context;
    (void)error;
    for (int64_t i = first; i < first + count; i++)
        read->values[i] = value;
    return 0;
}

/* Checks that the file has the sample's grid, the type, and the values at inside and outside of the block. */
static void
assert_input(const char *name, enum volume_format format, enum volume_type type, double inside, double outside)
{
    struct volume_header header;
    struct error error = {0};
    static struct read_values read;
    const int in = openat(work_fd, "in", O_RDONLY | O_DIRECTORY);
    ck_assert_msg(volume_read_header(in, name, format, &header, &error) == 0, "%s", error.message);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(header.grid.size[i], box.size[i]);
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq_tol(header.grid.to_mm[i], box.to_mm[i], 1e-6);
    ck_assert_int_eq(header.type, type);
    ck_assert_double_eq(header.slope, 1);
    ck_assert_int_eq(volume_read(in, name, &header, keep_values, &read, &error), 0);
    for (int i = 0; i < VOXELS; i++) {
        const int x = i % SAMPLE_COLUMNS, y = i / SAMPLE_COLUMNS % SAMPLE_ROWS, z = i / SAMPLE_COLUMNS / SAMPLE_ROWS;
        const bool is_inside = x >= 6 && x < 18 && y >= 5 && y < 15 && z >= 1 && z < 5;
        ck_assert_double_eq(read.values[i], is_inside ? inside : outside);
    }
    close(in);
}

START_TEST(the_volume_is_written_in_real_world_values)
{
    struct error error;
    ck_assert_msg(write_input(PROGRAM("input_file = \"{case}.nii.gz\";"), &error) == 0, "%s", error.message);
    assert_input("case.nii.gz", VOLUME_NIFTI, VOLUME_INT16, 40, -1000);
    ck_assert_int_eq(write_input(PROGRAM("input = \"nrrd\"; input_file = \"{case}_0000.nrrd\";"), &error), 0);
    assert_input("case_0000.nrrd", VOLUME_NRRD, VOLUME_INT16, 40, -1000);
}

END_TEST

static void
rescale_sample(const char *slope, const char *intercept)
{
    for (int z = 0; z < SAMPLE_SLICES; z++)
        job_sample_write_slice(&sample, z, slope, intercept);
}

START_TEST(values_that_16_bits_cannot_hold_are_floats)
{
    struct error error;
    rescale_sample("0.5", "0");
    ck_assert_int_eq(write_input(PROGRAM("input_file = \"half.nii\";"), &error), 0);
    assert_input("half.nii", VOLUME_NIFTI, VOLUME_FLOAT32, 532, 12);
    rescale_sample("100", "0");
    ck_assert_int_eq(write_input(PROGRAM("input_file = \"large.nii\";"), &error), 0);
    assert_input("large.nii", VOLUME_NIFTI, VOLUME_FLOAT32, 106400, 2400);
    rescale_sample("-2", "3");
    ck_assert_int_eq(write_input(PROGRAM("input_file = \"whole.nii\";"), &error), 0);
    assert_input("whole.nii", VOLUME_NIFTI, VOLUME_INT16, -2125, -45);
}

END_TEST

START_TEST(instances_are_copied_in_the_order_of_slices)
{
    struct error error;
    char command[400];
    char *reversed[SAMPLE_SLICES];
    for (int i = 0; i < SAMPLE_SLICES; i++)
        reversed[i] = sample.inputs[SAMPLE_SLICES - 1 - i];
    order.inputs = reversed;
    ck_assert_int_eq(write_input(PROGRAM("input = \"dicom\"; task_file = true; output = \"seg\";"), &error), 0);
    for (int z = 0; z < SAMPLE_SLICES; z++) {
        struct stat status;
        snprintf(command, sizeof command, "cmp -s '%s' '%s/in/%06d.dcm'", sample.input[z], work, z + 1);
        ck_assert_int_eq(system(command), 0);
        ck_assert_int_eq(stat(sample.input[z], &status), 0);
        ck_assert_uint_eq(status.st_nlink, 1); /* no link to the original */
    }
    snprintf(command, sizeof command, "grep -q '\"id\":\"case\"' '%s/in/task.json' && test $(ls '%s/in' | wc -l) = 7",
             work, work);
    ck_assert_int_eq(system(command), 0);
}

END_TEST

START_TEST(input_fails_with_the_codes_of_a_job)
{
    struct error error;
    static char other[] = "echo 2";
    order.stack = other;
    ck_assert_int_lt(write_input(PROGRAM(""), &error), 0);
    ck_assert_int_eq(error.code, CODE_STACK_NOT_FOUND);
    ck_assert_int_eq(unlink(sample.input[2]), 0);
    ck_assert_int_lt(write_input(PROGRAM(""), &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
}

END_TEST

/* ------------------------------------------------------------------------------ the output -- */

static float volume[VOXELS];

/* Label 1 in the sample's block, 5 in its first column of voxels: 12 x 10 x 4 voxels, 10 x 4 of them 5. */
static float
label_at(int64_t x, int64_t y, int64_t z)
{
    const bool inside = x >= 6 && x < 18 && y >= 5 && y < 15 && z >= 1 && z < 5;
    return inside ? (x == 6 ? 5 : 1) : 0;
}

static void
fill_volume(void)
{
    for (int i = 0; i < VOXELS; i++)
        volume[i] = label_at(i % SAMPLE_COLUMNS, i / SAMPLE_COLUMNS % SAMPLE_ROWS, i / SAMPLE_COLUMNS / SAMPLE_ROWS);
}

struct slices {
    const float *values;
    size_t count; /* of one */
};

static void
copy_slice(void *context, int64_t slice, void *values)
{
    const struct slices *slices = context;
    memcpy(values, slices->values + (size_t)slice * slices->count, slices->count * sizeof(float));
}

static void
write_output(const char *name, const struct volume_grid *grid, const float *values)
{
    struct error error = {0};
    struct slices slices = {values, (size_t)(grid->size[0] * grid->size[1])};
    const int out = openat(work_fd, "out", O_RDONLY | O_DIRECTORY);
    ck_assert_msg(volume_write(out, name, VOLUME_NIFTI, grid, VOLUME_FLOAT32, copy_slice, &slices, &error) == 0, "%s",
                  error.message);
    close(out);
}

static int
read_output(const char *text, struct program_outcome *outcome, struct error *error)
{
    struct conf_program *program = read_program(text);
    *error = (struct error){0};
    *outcome = (struct program_outcome){0};
    unlinkat(work_fd, "mask", 0);
    const int rc = program_steps.read_output(&order, program, work_fd, outcome, error);
    conf_program_free(program);
    return rc;
}

/* Checks that the mask has the labels of label_at(). */
static void
assert_mask(const char *text)
{
    char path[200];
    struct program_outcome outcome;
    struct error error;
    struct mask_file *mask;
    ck_assert_msg(read_output(text, &outcome, &error) == 0, "%s", error.message);
    ck_assert_int_eq(outcome.labels, 2);
    ck_assert_int_eq(outcome.labelled, SAMPLE_BLOCK);
    snprintf(path, sizeof path, "%s/mask", work);
    ck_assert_msg(mask_file_read(path, outcome.sha256, &box, &mask, &error) == 0, "%s", error.message);
    for (int label = 1; label <= 5; label += 4) {
        uint64_t bits[SAMPLE_SLICES * SAMPLE_ROWS] = {0};
        mask_file_bits(mask, &label, 1, 1, bits);
        for (int64_t row = 0; row < SAMPLE_SLICES * SAMPLE_ROWS; row++)
            for (int64_t x = 0; x < SAMPLE_COLUMNS; x++)
                ck_assert_int_eq(bits[row] >> x & 1, (int)label_at(x, row % SAMPLE_ROWS, row / SAMPLE_ROWS) == label);
    }
    mask_file_free(mask);
}

/* Checks the code, and that the message has the words. */
static void
assert_refused(const char *text, enum code code, const char *words)
{
    struct program_outcome outcome;
    struct error error;
    ck_assert_int_lt(read_output(text, &outcome, &error), 0);
    ck_assert_msg(error.code == code, "%s: %s", code_name(error.code), error.message);
    ck_assert_msg(strstr(error.message, words) != NULL, "%s", error.message);
    ck_assert_int_ne(faccessat(work_fd, "mask", F_OK, 0), 0);
}

START_TEST(a_label_map_on_the_grid_becomes_the_mask)
{
    fill_volume();
    write_output("case.nii.gz", &box, volume);
    assert_mask(PROGRAM(""));
    assert_mask(PROGRAM("output_file = \"{case}.nii.gz\";"));
}

END_TEST

START_TEST(any_order_and_direction_of_axes_is_the_same_grid)
{
    /* Slices first, columns last and reversed. */
    struct volume_grid turned = {.size = {SAMPLE_SLICES, SAMPLE_ROWS, SAMPLE_COLUMNS},
                                 .to_mm = {0, 0, -0.75, 0.75 * (SAMPLE_COLUMNS - 1), 0, 0.5, 0, 0, 3, 0, 0, 0}};
    for (int i = 0; i < VOXELS; i++) {
        const int z = i % SAMPLE_SLICES, y = i / SAMPLE_SLICES % SAMPLE_ROWS;
        volume[i] = label_at(SAMPLE_COLUMNS - 1 - i / SAMPLE_SLICES / SAMPLE_ROWS, y, z);
    }
    write_output("case.nii", &turned, volume);
    assert_mask(PROGRAM(""));
}

END_TEST

START_TEST(another_grid_is_refused_or_takes_the_nearest_voxel)
{
    struct volume_grid other = box;
    fill_volume();
    other.to_mm[3] = 0.375; /* half a column */
    write_output("case.nii", &other, volume);
    assert_refused(PROGRAM(""), CODE_PROGRAM_GRID_DIFFERS, "0.375");
    /* Twice as fine along columns: both voxels of a pair have its label. */
    static float fine[2 * VOXELS];
    other = box;
    other.size[0] *= 2;
    other.to_mm[0] /= 2;
    other.to_mm[3] = -0.1875;
    for (int i = 0; i < 2 * VOXELS; i++)
        fine[i] = label_at(i / 2 % SAMPLE_COLUMNS, i / 2 / SAMPLE_COLUMNS % SAMPLE_ROWS,
                           i / 2 / SAMPLE_COLUMNS / SAMPLE_ROWS);
    unlinkat(work_fd, "out/case.nii", 0);
    write_output("case.nii", &other, fine);
    assert_refused(PROGRAM(""), CODE_PROGRAM_GRID_DIFFERS, "48");
    assert_mask(PROGRAM("resample = \"nearest\";"));
}

END_TEST

START_TEST(values_that_are_no_labels_are_refused_with_their_voxel)
{
    static const struct {
        float value;
        enum code code;
        const char *words;
    } cases[] = {
        {NAN, CODE_PROGRAM_NOT_FINITE, "voxel (2, 1, 0)"},
        {INFINITY, CODE_PROGRAM_NOT_FINITE, "voxel (2, 1, 0)"},
        {0.5f, CODE_PROGRAM_FRACTIONS, "voxel (2, 1, 0) of the output is 0.5"},
        {-1, CODE_PROGRAM_FRACTIONS, "is -1"},
        {7, CODE_PROGRAM_LABEL_UNKNOWN, "has label 7"},
        {65536, CODE_PROGRAM_LABEL_UNKNOWN, "has label 65536"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fill_volume();
        volume[SAMPLE_COLUMNS + 2] = cases[i].value;
        unlinkat(work_fd, "out/case.nii", 0);
        write_output("case.nii", &box, volume);
        assert_refused(PROGRAM(""), cases[i].code, cases[i].words);
        if (cases[i].code == CODE_PROGRAM_LABEL_UNKNOWN)
            assert_mask(PROGRAM("other_labels = \"ignore\";"));
        else
            assert_refused(PROGRAM("other_labels = \"ignore\";"), cases[i].code, cases[i].words);
    }
}

END_TEST

START_TEST(fractions_become_label_1_by_the_threshold)
{
    struct program_outcome outcome;
    struct error error;
    for (int i = 0; i < VOXELS; i++)
        volume[i] = (float)i / VOXELS;
    write_output("case.nii", &box, volume);
    assert_refused(PROGRAM(""), CODE_PROGRAM_FRACTIONS, "no threshold");
    ck_assert_int_eq(read_output(PROGRAM("threshold = 0.75;"), &outcome, &error), 0);
    ck_assert_int_eq(outcome.labels, 1);
    ck_assert_int_eq(outcome.labelled, VOXELS / 4);
    volume[3] = NAN;
    unlinkat(work_fd, "out/case.nii", 0);
    write_output("case.nii", &box, volume);
    assert_refused(PROGRAM("threshold = 0.75;"), CODE_PROGRAM_NOT_FINITE, "voxel (3, 0, 0)");
}

END_TEST

START_TEST(exactly_one_file_must_be_the_output)
{
    fill_volume();
    assert_refused(PROGRAM(""), CODE_PROGRAM_NO_OUTPUT, ".nii");
    ck_assert_int_eq(mkdirat(work_fd, "out/deep", 0755), 0);
    ck_assert_int_eq(mkdirat(work_fd, "out/deep/er", 0755), 0);
    write_output("deep/er/case.nii", &box, volume);
    assert_refused(PROGRAM(""), CODE_PROGRAM_NO_OUTPUT, ".nii");
    write_output("deep/case.nii", &box, volume);
    write_output("readme.txt", &box, volume);
    assert_mask(PROGRAM(""));
    write_output("second.nii.gz", &box, volume);
    assert_refused(PROGRAM(""), CODE_PROGRAM_OUTPUT_AMBIGUOUS, "2 files");
    assert_mask(PROGRAM("output_file = \"second.nii.gz\";"));
    assert_refused(PROGRAM("output_file = \"third.nii.gz\";"), CODE_PROGRAM_NO_OUTPUT, "third.nii.gz");
}

END_TEST

START_TEST(links_and_pipes_are_no_output)
{
    static const char *const texts[] = {PROGRAM(""), PROGRAM("output = \"seg\";")};
    static const char *const names[] = {"out/case.nii", "out/case.dcm"};
    fill_volume();
    write_output("file", &box, volume);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(symlinkat("file", work_fd, names[i]), 0);
        assert_refused(texts[i], CODE_PROGRAM_OUTPUT_NOT_REGULAR, "");
        ck_assert_int_eq(unlinkat(work_fd, names[i], 0), 0);
        ck_assert_int_eq(mkfifoat(work_fd, names[i], 0644), 0);
        assert_refused(texts[i], CODE_PROGRAM_OUTPUT_NOT_REGULAR, "");
        ck_assert_int_eq(unlinkat(work_fd, names[i], 0), 0);
        ck_assert_int_eq(linkat(work_fd, "out/file", work_fd, names[i], 0), 0);
        assert_refused(texts[i], CODE_PROGRAM_OUTPUT_NOT_REGULAR, "");
        ck_assert_int_eq(unlinkat(work_fd, names[i], 0), 0);
    }
}

END_TEST

START_TEST(files_of_another_kind_are_unreadable)
{
    const int fd = openat(work_fd, "out/case.dcm", O_WRONLY | O_CREAT, 0644);
    ck_assert_int_eq(write(fd, "Name^Patient", 12), 12);
    close(fd);
    assert_refused(PROGRAM("output = \"seg\";"), CODE_PROGRAM_OUTPUT_UNREADABLE, "the output: ");
    assert_refused(PROGRAM("output = \"rtstruct\";"), CODE_PROGRAM_OUTPUT_UNREADABLE, "the output: ");
    ck_assert_int_eq(renameat(work_fd, "out/case.dcm", work_fd, "out/case.nii"), 0);
    assert_refused(PROGRAM(""), CODE_PROGRAM_OUTPUT_UNREADABLE, "");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("pipeline_program_steps");
    TCase *input = tcase_create("input"), *output = tcase_create("output");
    tcase_add_checked_fixture(input, set_up, tear_down);
    tcase_add_checked_fixture(output, set_up, tear_down);
    tcase_add_test(input, the_volume_is_written_in_real_world_values);
    tcase_add_test(input, values_that_16_bits_cannot_hold_are_floats);
    tcase_add_test(input, instances_are_copied_in_the_order_of_slices);
    tcase_add_test(input, input_fails_with_the_codes_of_a_job);
    tcase_add_test(output, a_label_map_on_the_grid_becomes_the_mask);
    tcase_add_test(output, any_order_and_direction_of_axes_is_the_same_grid);
    tcase_add_test(output, another_grid_is_refused_or_takes_the_nearest_voxel);
    tcase_add_test(output, values_that_are_no_labels_are_refused_with_their_voxel);
    tcase_add_test(output, fractions_become_label_1_by_the_threshold);
    tcase_add_test(output, exactly_one_file_must_be_the_output);
    tcase_add_test(output, links_and_pipes_are_no_output);
    tcase_add_test(output, files_of_another_kind_are_unreadable);
    suite_add_tcase(suite, input);
    suite_add_tcase(suite, output);
    return suite_run(suite);
}
