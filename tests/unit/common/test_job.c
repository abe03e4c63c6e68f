/* Job specs as files: round trips with hostile strings, and every kind of damage. */
#include "service/common/jobs/job_file.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char path[128];

static void
make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/noctule-job.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/17.job", folder);
}

static void
remove_folder(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* no other file may be there */
}

static void
write_text(const char *text, size_t size)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(text, 1, size, out), size);
    ck_assert_int_eq(fclose(out), 0);
}

static void
assert_same(const struct job_spec *a, const struct job_spec *b)
{
    ck_assert_int_eq(a->slices, b->slices);
    ck_assert_int_eq(a->id, b->id);
    ck_assert_str_eq(a->stack, b->stack);
    ck_assert_str_eq(a->settings, b->settings);
    ck_assert_str_eq(a->output, b->output);
    ck_assert_str_eq(a->device_serial_number, b->device_serial_number);
    ck_assert_uint_eq(a->input_count, b->input_count);
    for (size_t i = 0; i < a->input_count; i++) {
        ck_assert_str_eq(a->inputs[i], b->inputs[i]);
        ck_assert_pstr_eq(a->sha256 ? a->sha256[i] : NULL, b->sha256[i]);
    }
    ck_assert_uint_eq(a->object_count, b->object_count);
    for (size_t i = 0; i < a->object_count; i++)
        ck_assert_str_eq(a->objects[i], b->objects[i]);
    ck_assert_uint_eq(a->mask_count, b->mask_count);
    for (size_t i = 0; i < a->mask_count; i++) {
        ck_assert_str_eq(a->masks[i].program, b->masks[i].program);
        ck_assert_str_eq(a->masks[i].path, b->masks[i].path);
        ck_assert_str_eq(a->masks[i].sha256, b->masks[i].sha256);
        ck_assert_str_eq(a->masks[i].identity, b->masks[i].identity);
        ck_assert_uint_eq(a->masks[i].accepted_count, b->masks[i].accepted_count);
        for (size_t k = 0; k < a->masks[i].accepted_count; k++)
            ck_assert_uint_eq(a->masks[i].accepted[k], b->masks[i].accepted[k]);
    }
    ck_assert_pstr_eq(a->prior, b->prior);
    ck_assert_uint_eq(a->prior_value_count, b->prior_value_count);
    for (size_t i = 0; i < a->prior_value_count; i++)
        ck_assert_str_eq(a->prior_values[i], b->prior_values[i]);
    ck_assert_uint_eq(a->tracked_count, b->tracked_count);
    for (size_t i = 0; i < a->tracked_count; i++)
        ck_assert_str_eq(a->tracked[i], b->tracked[i]);
    ck_assert_uint_eq(a->earlier_count, b->earlier_count);
    for (size_t i = 0; i < a->earlier_count; i++)
        ck_assert_str_eq(a->earlier[i], b->earlier[i]);
}

static void
assert_round_trip(const struct job_spec *spec)
{
    struct job_spec *back;
    struct error error;
    ck_assert_int_eq(job_spec_write(spec, path), 0);
    int rc = job_spec_read(path, &back, &error);
    ck_assert_msg(rc == 0, "%s", error.message);
    assert_same(spec, back);
    job_spec_free(back);
}

/* Returns a spec in which every text is the same hostile one. */
static struct job_spec
spec_of(char *text, char **inputs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        inputs[i] = text;
    return (struct job_spec){.id = 17,
                             .stack = text,
                             .settings = text,
                             .output = text,
                             .device_serial_number = text,
                             .inputs = inputs,
                             .input_count = count};
}

START_TEST(hostile_texts_read_back)
{
    static const char *const texts[] = {
        "",
        " ",
        "\n",
        "\n\n",
        "\t",
        "\n\t",
        "\t\n\t\n",
        "a",
        "a b",
        " leading",
        "trailing ",
        "\\",
        "\\n",
        "\\\\",
        "\\x41",
        "end 0",
        "\nend 3\n",
        "input x\ninput y",
        "\r\n",
        "\x01\x1f\x7f",
        "name = \"head-ct\";\nsegments = (\n\t{ label = \"a\\\"b\"; } );\n",
        "/data/\xc3\xa4\xc3\xb6 \xff\xfe/1.dcm",
        "noctule-job 1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *inputs[3], *text = strdup(texts[i]);
        struct job_spec spec = spec_of(text, inputs, 3);
        assert_round_trip(&spec);
        spec.objects = inputs;
        spec.object_count = 2;
        assert_round_trip(&spec);
        struct job_mask masks[] = {{text, text, text, text, (uint16_t[]){1, 65535}, 2},
                                   {text, text, text, text, NULL, 0}};
        spec.masks = masks;
        spec.mask_count = 2;
        spec.prior = text;
        spec.prior_values = inputs;
        spec.prior_value_count = 3;
        spec.tracked = inputs;
        spec.tracked_count = 2;
        assert_round_trip(&spec);
        free(text);
    }
}

END_TEST

START_TEST(digests_belong_to_their_inputs)
{
    char *inputs[4], text[] = "/in/1.dcm", digest[] = "9f86d081";
    struct job_spec spec = spec_of(text, inputs, 4);
    for (unsigned known = 0; known < 16; known++) {
        char *digests[4];
        for (unsigned i = 0; i < 4; i++)
            digests[i] = known >> i & 1 ? digest : NULL;
        spec.sha256 = digests;
        assert_round_trip(&spec);
    }
}

END_TEST

START_TEST(every_byte_reads_back)
{
    char text[256], *inputs[1];
    for (int i = 1; i < 256; i++)
        text[i - 1] = (char)i;
    text[255] = '\0';
    struct job_spec spec = spec_of(text, inputs, 1);
    assert_round_trip(&spec);
}

END_TEST

START_TEST(many_inputs_read_back)
{
    enum { COUNT = 5000 };

    char **inputs = calloc(COUNT, sizeof *inputs);
    struct job_spec spec = spec_of((char[]){"x"}, inputs, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        ck_assert_int_gt(asprintf(&inputs[i], "/series/1.2.3/%zu.dcm", i), 0);
    assert_round_trip(&spec);
    for (size_t i = 0; i < COUNT; i++)
        free(inputs[i]);
    free(inputs);
}

END_TEST

START_TEST(a_job_without_inputs_reads_back)
{
    struct job_spec spec = spec_of((char[]){"x"}, NULL, 0);
    assert_round_trip(&spec);
}

END_TEST

START_TEST(the_file_is_readable_text)
{
    char *inputs[1] = {(char[]){"/in/1.dcm"}};
    struct job_spec spec = {
        .id = 17,
        .stack = (char[]){"echo 1"},
        .settings = (char[]){"name = \"a\";\nsegments = ();"},
        .output = (char[]){"/out"},
        .device_serial_number = (char[]){"N1"},
        .slices = JOB_SLICES_REVIEW,
        .inputs = inputs,
        .input_count = 1,
        .objects = (char *[]){(char[]){"/in/rs.dcm"}},
        .object_count = 1,
        .corrects = 9,
        .masks = &(struct job_mask){(char[]){"name = \"p\";\ncpus = 2;"}, (char[]){"/programs/12/mask"},
                                    (char[]){"4355"}, (char[]){""}, (uint16_t[]){7}, 1},
        .mask_count = 1,
        .earlier = (char *[]){(char[]){"seg.dcm 2.25.1 2.25.2 1.2.3"},
                              (char[]){"sr.dcm 2.25.4 2.25.5 1.2.3 1.2.34 2.25.6 2.25.7 1.2.3 1.2.22"}},
        .earlier_count = 2};
    char text[400] = "";
    ck_assert_int_eq(job_spec_write(&spec, path), 0);
    FILE *in = fopen(path, "r");
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, in), 0);
    fclose(in);
    ck_assert_str_eq(text, "noctule-job 1\nid 17\nstack echo 1\noutput /out\ndevice N1\nslices review\n"
                           "settings name = \"a\";\n\tsegments = ();\ninput /in/1.dcm\n"
                           "object /in/rs.dcm\ncorrects 9\nprogram name = \"p\";\n\tcpus = 2;\nmask /programs/12/mask\n"
                           "mask_sha256 4355\nmask_identity \nmask_accepts 7\nearlier seg.dcm 2.25.1 2.25.2 1.2.3\n"
                           "earlier sr.dcm 2.25.4 2.25.5 1.2.3 1.2.34 2.25.6 2.25.7 1.2.3 1.2.22\nend 3\n");
    assert_round_trip(&spec);
}

END_TEST

static const char whole[] = "noctule-job 1\nid 17\nstack \noutput /out\ndevice N1\nsettings a\n\tb\n"
                            "input /in/1.dcm\ninput /in/2.dcm\nobject /in/rs.dcm\nobject /in/seg.dcm\n"
                            "program p\nmask /m\nmask_sha256 ab\nmask_identity cd\nend 5\n";

START_TEST(a_file_cut_anywhere_is_refused)
{
    for (size_t size = 0; size < sizeof whole - 1; size++) {
        struct job_spec *spec;
        struct error error;
        write_text(whole, size);
        ck_assert_int_eq(job_spec_read(path, &spec, &error), -EBADMSG);
        ck_assert_ptr_null(spec);
        ck_assert_msg(strncmp(error.message, "line ", 5) == 0, "%s", error.message);
    }
    struct job_spec *spec;
    struct error error;
    write_text(whole, sizeof whole - 1);
    ck_assert_int_eq(job_spec_read(path, &spec, &error), 0);
    ck_assert_str_eq(spec->settings, "a\nb");
    ck_assert_uint_eq(spec->input_count, 2);
    ck_assert_uint_eq(spec->object_count, 2);
    ck_assert_str_eq(spec->objects[1], "/in/seg.dcm");
    ck_assert_uint_eq(spec->mask_count, 1);
    ck_assert_str_eq(spec->masks[0].identity, "cd");
    job_spec_free(spec);
}

END_TEST

START_TEST(damage_is_refused_with_its_line)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"noctule-job 2\n", "line 1: not a file of this version"},
        {"noctule-job 1\nid 1\nid 2\n", "line 3: a duplicate key"},
        {"noctule-job 1\nid x\n", "line 2: not a number"},
        {"noctule-job 1\nid -1\n", "line 2: not a number"},
        {"noctule-job 1\nid 99999999999999999999\n", "line 2: not a number"},
        {"noctule-job 1\nstack a\nstack b\n", "line 3: a duplicate key"},
        {"noctule-job 1\nstack\n", "line 2: neither"},
        {"noctule-job 1\n\tx\n", "line 2: neither"},
        {"noctule-job 1\nslices some\nid 1\n", "line 3: slices is not"},
        {"noctule-job 1\ncolour red\n", "line 2: an unknown key"},
        {"noctule-job 1\nearlier seg.dcm 2.25.1 2.25.2\n", "line 2: not a file name"},
        {"noctule-job 1\nearlier seg.dcm 2.25.1 2.25.2 1.2 1.2.34 2.25.3\n", "line 2: not a file name"},
        {"noctule-job 1\nstack a\\\n", "line 2: an invalid escape"},
        {"noctule-job 1\nstack a\\x0\n", "line 2: an invalid escape"},
        {"noctule-job 1\nstack a\\x00\n", "line 2: an invalid escape"},
        {"noctule-job 1\nstack a\\q\n", "line 2: an invalid escape"},
        {"noctule-job 1\ninput a\nend 2\n", "line 3: the number of files"},
        {"noctule-job 1\ninput a\nobject b\nend 1\n", "line 4: the number of files"},
        {"noctule-job 1\nsha256 a\n", "line 2: a digest"},
        {"noctule-job 1\ninput a\nsha256 a\nsha256 a\n", "line 4: a digest"},
        {"noctule-job 1\nobject\n", "line 2: neither"},
        {"noctule-job 1\nmask /m\n", "line 2: a mask without a program"},
        {"noctule-job 1\nprogram p\nmask /m\nmask /n\n", "line 4: a duplicate key"},
        {"noctule-job 1\nprogram p\nmask_color red\n", "line 3: an unknown key"},
        {"noctule-job 1\nprogram p\nmask_accepts 65536\n", "line 3: not a label"},
        {"noctule-job 1\nprogram p\nend 0\n", "line 3: the number of files"},
        {"noctule-job 1\nid 1\nstack \noutput /o\ndevice N\nsettings a\nprogram p\nmask /m\nmask_sha256 a\nend 1\n",
         "line 10: the path, digest or identity"},
        {"noctule-job 1\nid 1\nstack \noutput /o\ndevice N\nsettings a\ncorrects 7\nend 0\n",
         "line 8: the object with"},
        {"noctule-job 1\nend 0\nid 1\n", "line 3: data after"},
        {"noctule-job 1\nid 1\nend 0\n", "line 3: id, stack"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_spec *spec;
        struct error error;
        write_text(cases[i].text, strlen(cases[i].text));
        ck_assert_int_eq(job_spec_read(path, &spec, &error), -EBADMSG);
        ck_assert_msg(strncmp(error.message, cases[i].reason, strlen(cases[i].reason)) == 0, "%s", error.message);
    }
    struct job_spec *spec;
    struct error error;
    write_text("noctule-job 1\nstack a\0b\n", 24);
    ck_assert_int_eq(job_spec_read(path, &spec, &error), -EBADMSG);
}

END_TEST

START_TEST(failures_are_reported_and_leave_no_file)
{
    struct job_spec *spec, out = spec_of((char[]){"x"}, NULL, 0);
    char below[200];
    struct error error;
    ck_assert_int_eq(job_spec_read(path, &spec, &error), -ENOENT);
    ck_assert_str_ne(error.message, "");
    snprintf(below, sizeof below, "%s/none/1.job", folder);
    ck_assert_int_eq(job_spec_write(&out, below), -ENOENT);
    /* The name is a folder: the rename must fail, and the .part must be gone (remove_folder). */
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_lt(job_spec_write(&out, path), 0);
    ck_assert_int_eq(rmdir(path), 0);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_job");
    TCase *tests = tcase_create("job");
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, hostile_texts_read_back);
    tcase_add_test(tests, digests_belong_to_their_inputs);
    tcase_add_test(tests, every_byte_reads_back);
    tcase_add_test(tests, many_inputs_read_back);
    tcase_add_test(tests, a_job_without_inputs_reads_back);
    tcase_add_test(tests, the_file_is_readable_text);
    tcase_add_test(tests, a_file_cut_anywhere_is_refused);
    tcase_add_test(tests, damage_is_refused_with_its_line);
    tcase_add_test(tests, failures_are_reported_and_leave_no_file);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
