/*
 * test_programs.c - programs of the site: their options, their texts, and the segments that take their output.
 */
#include "config/config.h"
#include "tests/unit/config/config_files.h"

#include <errno.h>

#define ALGORITHM "algorithm = { name = \"net\"; version = \"1\"; };"
#define COMMAND   "command = [ \"/opt/net\", \"{in}\", \"{out}\" ];"
#define TYPE      "type = { code = \"T\"; scheme = \"99X\"; meaning = \"t\"; };"
/* A program with `rest`, and a pipeline that takes its label 1. */
#define PROGRAM(rest)                                                                                                  \
    "programs = ( { name = \"net\"; " rest " } );\n"                                                                   \
    "pipelines = ( { name = \"a\"; by_hand = true; segments = ( { label = \"A\"; method = \"program\"; "               \
    "program = \"net\"; value = 1; " TYPE " } ); } );\n"
#define LABELS                                                                                                         \
    "labels = ( { value = 5; name = \"liver\"; " TYPE " color = [ 0.0, 0.5, 1.0 ]; },\n"                               \
    "           { value = 7; name = \"spleen\"; " TYPE "\n"                                                            \
    "             modifier = { code = \"7771000\"; scheme = \"SCT\"; meaning = \"Left\"; }; } );"
#define SEGMENT(rest)                                                                                                  \
    "programs = ( { name = \"net\"; " COMMAND ALGORITHM LABELS " } );\n"                                               \
    "pipelines = ( { name = \"a\"; by_hand = true; segments = ( { label = \"A\"; method = \"program\"; " rest " " TYPE \
    " } ); } );\n"
#define PIPELINE(rest)                                                                                                 \
    "programs = ( { name = \"net\"; " COMMAND ALGORITHM LABELS " },\n"                                                 \
    "             { name = \"bare\"; " COMMAND ALGORITHM " } );\n"                                                     \
    "pipelines = ( { name = \"a\"; by_hand = true; " rest " } );\n"
#define CONTAINER "sandbox = \"container\"; " ALGORITHM

static struct conf *
load_text(const char *text)
{
    struct error error = {0};
    struct conf *conf = NULL;
    int rc = conf_load(write_file("programs.conf", text), &conf, &error);
    ck_assert_msg(rc == 0, "%s\n%s", error.message, text);
    return conf;
}

static const char everything[] =
    "programs = ( { name = \"net\"; command = [ \"/opt/net\", \"-i\", \"{in_file}\", \"-o\", \"{out_file}\", \"a b\" "
    "];\n"
    "  cpu_command = [ \"/opt/net\", \"{in}\", \"{out}\", \"--cpu\" ]; environment = [ \"A=1\", \"B={gpu}\" ];\n"
    "  input = \"nrrd\"; task_file = true; output = \"nrrd\"; output_file = \"{case}.nrrd\"; threshold = 0.5;\n"
    "  resample = \"nearest\"; other_labels = \"ignore\"; weights = [ \"/w\" ]; read = [ \"/r\", \"/s\" ];\n"
    "  network = \"host\"; gpu = \"shared\"; gpu_memory_mib = 4000; cpus = 2; memory_mib = 100; processes = 9;\n"
    "  deadline_seconds = 60; silence_seconds = 10; output_mib = 5; output_files = 3; max_attempts = 4;\n"
    "  warm_seconds = 30;\n"
    "  algorithm = { name = \"Net\"; version = \"1.0.2\"; family = \"clusters\"; source = \"https://x\"; };\n" LABELS
    " } );\n"
    "pipelines = ( { name = \"a\"; by_hand = true; segments = (\n"
    "  { label = \"A\"; method = \"program\"; program = \"net\"; value = 5; " TYPE " },\n"
    "  { label = \"B\"; method = \"program\"; program = \"net\"; value = [ 7, 5 ]; " TYPE " } ); } );\n";

START_TEST(a_program_survives_a_round_trip)
{
    struct error error = {0};
    struct conf *conf = load_text(everything);
    struct conf_program *again = NULL;
    const struct conf_program *program = conf_find_program(conf, "net");
    ck_assert_ptr_eq(program, &conf->programs[0]);
    ck_assert_ptr_null(conf_find_program(conf, "other"));
    char *first = conf_program_to_text(program);
    ck_assert_msg(conf_program_from_text(first, &again, &error) == 0, "%s", error.message);
    char *second = conf_program_to_text(again);
    ck_assert_str_eq(first, second);
    ck_assert_uint_eq(again->command_count, 6);
    ck_assert_str_eq(again->command[5], "a b");
    ck_assert_str_eq(again->cpu_command[3], "--cpu");
    ck_assert_str_eq(again->environment[1], "B={gpu}");
    ck_assert_int_eq(again->input, CONF_NRRD);
    ck_assert_str_eq(again->input_file, "{case}.nrrd");
    ck_assert_int_eq(again->output, CONF_OUTPUT_NRRD);
    ck_assert(again->task_file && again->resample && again->ignore_others && again->host_network);
    ck_assert(!again->container && !again->warm && again->has_threshold);
    ck_assert_double_eq(again->threshold, 0.5);
    ck_assert_int_eq(again->algorithm.family, CONF_FAMILY_CLUSTERS);
    ck_assert_str_eq(again->algorithm.version, "1.0.2");
    ck_assert_uint_eq(again->label_count, 2);
    ck_assert_str_eq(again->labels[1].modifier.meaning, "Left");
    ck_assert_str_eq(again->labels[1].category.value, CONF_CATEGORY);
    ck_assert_str_eq(again->read[1], "/s");
    ck_assert_int_eq(again->gpu, CONF_GPU_SHARED);
    ck_assert_double_eq(again->gpu_memory_mib, 4000);
    ck_assert_int_eq(again->processes, 9);
    ck_assert_double_eq(again->warm_seconds, 30);
    ck_assert_uint_eq(conf->pipelines[0].segments[0].value_count, 1);
    ck_assert_int_eq(conf->pipelines[0].segments[0].values[0], 5);
    ck_assert_int_eq(conf->pipelines[0].segments[1].values[1], 5);
    free(first);
    free(second);
    conf_program_free(again);
    conf_program_free(NULL);
    conf_free(conf);
}

END_TEST

START_TEST(a_program_has_defaults)
{
    struct conf *conf = load_text(PROGRAM(COMMAND ALGORITHM));
    const struct conf_program *program = &conf->programs[0];
    ck_assert_str_eq(program->input_file, "{case}.nii.gz");
    ck_assert_str_eq(program->output_file, "");
    ck_assert_int_eq(program->algorithm.family, CONF_FAMILY_AI);
    ck_assert_str_eq(program->algorithm.source, "");
    ck_assert_int_eq(program->processes, 512);
    ck_assert_int_eq(program->max_attempts, 2);
    ck_assert_double_eq(program->deadline_seconds, 3600);
    ck_assert_double_eq(program->output_mib, 2048);
    ck_assert(!program->has_threshold && !program->resample && !program->host_network);
    ck_assert_int_eq(conf->compute.programs, 1);
    conf_free(conf);
    conf = load_text(PROGRAM("input = \"dicom\"; command = [ \"/opt/net\", \"{dicom}\", \"{out}\" ];" ALGORITHM));
    ck_assert_ptr_null(conf->programs[0].input_file);
    conf_free(conf);
}

END_TEST

/* Masks are kept by this text: a change of it runs all programs again. */
START_TEST(the_identity_has_what_decides_the_output)
{
    struct conf *conf = load_text(PROGRAM(COMMAND ALGORITHM));
    char *identity = conf_program_identity(&conf->programs[0]);
    ck_assert_str_eq(identity, "command = [ \"/opt/net\", \"{in}\", \"{out}\" ];\n"
                               "cpu_command = [  ];\n"
                               "environment = [  ];\n"
                               "input = \"nifti\";\n"
                               "input_file = \"{case}.nii.gz\";\n"
                               "task_file = false;\n"
                               "output = \"nifti\";\n"
                               "output_file = \"\";\n"
                               "resample = \"refuse\";\n"
                               "algorithm = {\n"
                               "  name = \"net\";\n"
                               "  version = \"1\";\n"
                               "  family = \"ai\";\n"
                               "  source = \"\";\n"
                               "};\n");
    free(identity);
    conf_free(conf);
}

END_TEST

START_TEST(the_identity_of_a_pipeline_has_program_and_value)
{
    struct conf *conf = load_text(everything);
    char *identity = conf_pipeline_identity(&conf->pipelines[0]);
    ck_assert_ptr_nonnull(strstr(identity, "program = \"net\";\n  value = [ 5 ];\n"));
    ck_assert_ptr_nonnull(strstr(identity, "program = \"net\";\n  value = [ 7, 5 ];\n"));
    free(identity);
    conf_free(conf);
}

END_TEST

START_TEST(pipelines_with_equal_grid_options_have_equal_grid_texts)
{
    static const char text[] =
        "pipelines = ( { name = \"a\"; segments = ( { label = \"A\"; method = \"range\"; range = [ 0, 1 ]; " TYPE
        " } ); },\n"
        "  { name = \"b\"; series_number = 7; segments = ( { label = \"B\"; method = \"range\"; range = [ 5, 6 ]; " TYPE
        " } ); },\n"
        "  { name = \"c\"; grid = { mm = 2.0; }; derived = true; segments = ( { label = \"B\"; method = \"range\"; "
        "range "
        "= [ 5, 6 ]; " TYPE " } ); } );\n";
    struct conf *conf = load_text(text);
    char *a = conf_grid_text(&conf->pipelines[0]), *b = conf_grid_text(&conf->pipelines[1]);
    char *c = conf_grid_text(&conf->pipelines[2]);
    ck_assert_str_eq(a, b);
    ck_assert_str_eq(a, "min_slices = 3;\nspacing_tolerance = 0.03;\n");
    ck_assert_str_eq(c, "min_slices = 3;\nspacing_tolerance = 0.03;\ngrid = {\n  mm = 2.0;\n};\nderived = true;\n");
    free(a);
    free(b);
    free(c);
    conf_free(conf);
}

END_TEST

START_TEST(accepted_labels_are_those_of_the_program_and_of_segments)
{
    static const char text[] =
        "programs = ( { name = \"net\"; " COMMAND ALGORITHM " }, { name = \"other\"; " COMMAND ALGORITHM LABELS
        " } );\n"
        "pipelines = ( { name = \"a\"; segments = (\n"
        "  { label = \"A\"; method = \"program\"; program = \"net\"; value = [ 65535, 2 ]; " TYPE " },\n"
        "  { label = \"B\"; method = \"program\"; program = \"other\"; value = 7; " TYPE " } ); },\n"
        "  { name = \"b\"; segments = ( { label = \"A\"; method = \"program\"; program = \"net\"; value = [ 2, 1 "
        "]; " TYPE " } ); } );\n";
    struct conf *conf = load_text(text);
    uint16_t *values;
    size_t count;
    ck_assert_int_eq(conf_accepted_labels(conf, &conf->programs[0], &values, &count), 0);
    ck_assert_uint_eq(count, 3);
    ck_assert(values[0] == 1 && values[1] == 2 && values[2] == 65535);
    free(values);
    ck_assert_int_eq(conf_accepted_labels(conf, &conf->programs[1], &values, &count), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert(values[0] == 5 && values[1] == 7);
    free(values);
    ck_assert(conf_pipeline_names_program(&conf->pipelines[0], "other"));
    ck_assert(!conf_pipeline_names_program(&conf->pipelines[1], "other"));
    ck_assert(conf_pipeline_names_program(&conf->pipelines[1], NULL));
    conf_free(conf);
}

END_TEST

START_TEST(all_labels_are_a_segment_each)
{
    struct error error = {0};
    struct conf *conf = load_text(PIPELINE("segments = \"all labels\"; program = \"net\";")), *again = NULL;
    const struct conf_pipeline *pipeline = &conf->pipelines[0];
    ck_assert_uint_eq(pipeline->segment_count, 2);
    ck_assert_str_eq(pipeline->segments[0].label, "liver");
    ck_assert_int_eq(pipeline->segments[0].method, CONF_PROGRAM);
    ck_assert_str_eq(pipeline->segments[0].program, "net");
    ck_assert_int_eq(pipeline->segments[0].values[0], 5);
    ck_assert_double_eq(pipeline->segments[0].color[1], 0.5);
    ck_assert_str_eq(pipeline->segments[1].modifier.meaning, "Left");
    ck_assert_str_eq(pipeline->segments[1].type.value, "T");
    char *text = conf_to_text(conf);
    ck_assert_ptr_null(strstr(text, "all labels"));
    ck_assert_msg(conf_from_text(text, &again, &error) == 0, "%s", error.message);
    char *second = conf_to_text(again);
    ck_assert_str_eq(text, second);
    free(text);
    free(second);
    conf_free(again);
    conf_free(conf);
}

END_TEST

static const struct {
    const char *text, *message;
} refused[] = {
    {PROGRAM("command = [ \"net\", \"{in}\", \"{out}\" ];" ALGORITHM),
     "programs[0].command: the first word must be an absolute path: no shell and no PATH is used"},
    {PROGRAM("command = [ \"/net\", \"{input}\", \"{in}\", \"{out}\" ];" ALGORITHM),
     "programs[0].command[1]: {input} is no placeholder: use {in}, {out}, {in_file}, {out_file}, {dicom}, {case} or "
     "{gpu}"},
    {PROGRAM("command = [ \"/net\", \"{out}\" ];" ALGORITHM),
     "programs[0].command: needs {in}, {in_file} or {dicom}, or warm = true"},
    {PROGRAM("command = [ \"/net\", \"{in}\" ];" ALGORITHM),
     "programs[0].command: needs {out} or {out_file}, or warm = true"},
    {PROGRAM("command = [ \"/net\", \"{in}\", \"{out}\" ]; warm = true;" ALGORITHM),
     "programs[0].command: with warm = true, the folders of each case are a line on standard input: remove their "
     "placeholders"},
    {PROGRAM("command = [ \"/net\", \"{dicom}\", \"{out}\" ];" ALGORITHM),
     "programs[0].command: {dicom} requires input = \"dicom\""},
    {PROGRAM("command = [ \"/net\", \"{in_file}\", \"{out}\" ]; input = \"dicom\";" ALGORITHM),
     "programs[0].command: {in_file} is not allowed with input = \"dicom\": use {in} or {dicom}"},
    {PROGRAM("command = [ \"/net\", \"{in}\", \"{out_file}\" ];" ALGORITHM),
     "programs[0].command: {out_file} requires output_file"},
    {PROGRAM(COMMAND "cpu_command = [ \"/net\", \"{in}\" ]; gpu = \"whole\";" ALGORITHM),
     "programs[0].cpu_command: needs {out} or {out_file}, or warm = true"},
    {PROGRAM(COMMAND "cpu_command = [ \"/net\", \"{in}\", \"{out}\" ];" ALGORITHM),
     "programs[0].cpu_command: requires gpu = \"shared\" or \"whole\""},
    {PROGRAM(COMMAND "environment = [ \"A=1\", \"PATH\" ];" ALGORITHM),
     "programs[0].environment[1]: \"PATH\" is not NAME=VALUE"},
    {PROGRAM(COMMAND "environment = [ \"CUDA_VISIBLE_DEVICES=0\" ];" ALGORITHM),
     "programs[0].environment[0]: CUDA_VISIBLE_DEVICES is set by Noctule: remove it"},
    {PROGRAM(COMMAND "input_file = \"a/b.nii\";" ALGORITHM),
     "programs[0].input_file: must be a file name without / and without a dot at its start"},
    {PROGRAM(COMMAND "input_file = \"b.nrrd\";" ALGORITHM), "programs[0].input_file: must end in .nii.gz or .nii"},
    {PROGRAM(COMMAND "input = \"dicom\"; input_file = \"b.nrrd\";" ALGORITHM),
     "programs[0].input_file: is only allowed with input = \"nifti\" or \"nrrd\""},
    {PROGRAM(COMMAND "output = \"nrrd\"; output_file = \"b.nii\";" ALGORITHM),
     "programs[0].output_file: must end in .nrrd or .nhdr"},
    {PROGRAM(COMMAND "output_file = \"{in}.nii\";" ALGORITHM),
     "programs[0].output_file: {in} is not allowed here: use {case}"},
    {PROGRAM(COMMAND "gpu = \"shared\";" ALGORITHM), "programs[0]: gpu_memory_mib is missing"},
    {PROGRAM(COMMAND "gpu = \"whole\"; gpu_memory_mib = 5;" ALGORITHM),
     "programs[0].gpu_memory_mib: is only allowed with gpu = \"shared\""},
    {"compute = { backend = \"cpu\"; };" PROGRAM(COMMAND "gpu = \"whole\";" ALGORITHM),
     "programs[0].gpu: compute.backend is \"cpu\", so that no GPU is used: set \"auto\""},
    {"root = \"/a b\";" PROGRAM("command = [ \"/net\" ]; warm = true;" ALGORITHM),
     "programs[0].warm: requires a root without blanks: each case is a line with two paths"},
    {PROGRAM(COMMAND "sandbox = \"container\"; weights = [ \"w\" ];" ALGORITHM),
     "programs[0].weights[0]: must be an absolute path"},
    {PROGRAM("command = [ \"/net\" ]; gpu = \"whole\"; warm = true;" ALGORITHM),
     "programs[0].warm: is not allowed with gpu = \"whole\": jobs would never get the GPU back"},
    {PROGRAM("command = [ \"/bin/podman\", \"--network=none\", \"i@sha256:00\" ]; warm = true;" CONTAINER),
     "programs[0].warm: is not allowed with sandbox = \"container\""},
    {PROGRAM("command = [ \"/bin/sh\", \"--network=none\", \"i@sha256:00\", \"{in}\", \"{out}\" ];" CONTAINER),
     "programs[0].command: with sandbox = \"container\", the first word must be podman, docker or apptainer"},
    {PROGRAM("command = [ \"/bin/podman\", \"run\", \"i@sha256:00\", \"{in}\", \"{out}\" ];" CONTAINER),
     "programs[0].command: needs --network none, or network = \"host\""},
    {PROGRAM(
         "command = [ \"/bin/podman\", \"run\", \"--network\", \"none\", \"i:1\", \"{in}\", \"{out}\" ];" CONTAINER),
     "programs[0].command: needs an image with its digest, IMAGE@sha256:..., or an image file that is also in weights"},
    {PROGRAM(COMMAND ALGORITHM "labels = ( { value = 3; name = \"a\"; }, { value = 3; name = \"b\"; } );"),
     "programs[0].labels[1].value: 3 is the value of an earlier label"},
    {PROGRAM(COMMAND ALGORITHM "labels = ( { value = 3; name = \"a\"; }, { value = 4; name = \"a\"; } );"),
     "programs[0].labels[1].name: \"a\" is the name of an earlier label"},
    {PROGRAM(COMMAND), "programs[0]: algorithm is missing"},
    {PROGRAM(COMMAND ALGORITHM "weights = [ \"w\" ];"), "programs[0].weights[0]: must be an absolute path"},
    {PROGRAM(COMMAND ALGORITHM "profile = \"none-such\";"), "programs[0].profile: cannot be read: "},
    {"programs = ( { name = \"net\"; " COMMAND ALGORITHM " }, { name = \"net\"; " COMMAND ALGORITHM " } );",
     "programs[1].name: \"net\" is the name of an earlier program"},
    {SEGMENT("program = \"none\"; value = 5;"),
     "pipelines[0].segments[0].program: there is no program \"none\": name one of programs"},
    {SEGMENT("program = \"net\"; value = 6;"), "pipelines[0].segments[0].value: \"net\" has no label 6"},
    {SEGMENT("program = \"net\"; value = [ 5, 70000 ];"),
     "pipelines[0].segments[0].value[1]: 70000 is not within 1 .. 65535"},
    {SEGMENT("program = \"net\"; value = 1.5;"), "pipelines[0].segments[0].value: must be an integer"},
    {SEGMENT("program = \"net\";"), "pipelines[0].segments[0]: value is missing"},
    {SEGMENT("value = 5;"), "pipelines[0].segments[0]: program is missing"},
    {PIPELINE("segments = ( { label = \"A\"; method = \"range\"; range = [ 0, 1 ]; program = \"net\"; " TYPE " } );"),
     "pipelines[0].segments[0].program: is only allowed with method = \"program\""},
    {PIPELINE("segments = \"all labels\";"), "pipelines[0].segments: requires program, whose labels are the segments"},
    {PIPELINE("segments = \"all labels\"; program = \"x\";"),
     "pipelines[0].program: there is no program \"x\": name one of programs"},
    {PIPELINE("segments = \"all labels\"; program = \"bare\";"),
     "pipelines[0].program: \"bare\" has no labels: list them in programs"},
    {PIPELINE("segments = \"all\"; program = \"net\";"),
     "pipelines[0].program: is only allowed with segments = \"all labels\""},
    {"programs = ( { name = \"net\"; " COMMAND ALGORITHM "\n labels = ( { value = 3; name = \"a\"; } ); } );\n"
     "pipelines = ( { name = \"a\"; segments = \"all labels\"; program = \"net\"; } );",
     "programs.conf:2: pipelines[0].segments[0]: type: is missing"},
};

START_TEST(a_wrong_program_is_refused)
{
    struct error error = {0};
    struct conf *conf = NULL;
    ck_assert_int_eq(conf_load(write_file("programs.conf", refused[_i].text), &conf, &error), -EINVAL);
    ck_assert_msg(strstr(error.message, refused[_i].message), "%s\nnot: %s", error.message, refused[_i].message);
}

END_TEST

static const struct {
    const char *text, *message;
} warned[] = {
    {PROGRAM("input = \"dicom\"; command = [ \"/net\", \"{in}\", \"{out}\" ];" ALGORITHM),
     "programs[0].input: the program gets the patient's name"},
    {PROGRAM(COMMAND ALGORITHM),
     "pipelines[0].segments: 1 segment of a program without expect: results are held for REVIEW"},
    {PIPELINE("segments = \"all labels\"; program = \"net\"; unreviewed = true;"),
     "pipelines[0].unreviewed: 2 segments of a program without expect: results are delivered unchecked"},
    {SEGMENT("program = \"net\"; value = 5; expect = { volume_ml = [ 1, 2 ]; };"), NULL},
};

START_TEST(doubtful_programs_are_named)
{
    struct error error = {0};
    struct conf *conf = NULL;
    struct conf_findings findings;
    ck_assert_int_eq(conf_load_all(write_file("programs.conf", warned[_i].text), NULL, &conf, &findings, &error), 0);
    bool found = !warned[_i].message && findings.count == 0;
    for (size_t i = 0; i < findings.count && warned[_i].message; i++)
        found = found || strstr(findings.items[i].message, warned[_i].message);
    ck_assert_msg(found, "%s", findings.count > 0 ? findings.items[0].message : "no warning");
    conf_findings_free(&findings);
    conf_free(conf);
}

END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("programs");
    tcase_add_unchecked_fixture(tcase, make_test_folder, remove_test_folder);
    tcase_add_test(tcase, a_program_survives_a_round_trip);
    tcase_add_test(tcase, a_program_has_defaults);
    tcase_add_test(tcase, the_identity_has_what_decides_the_output);
    tcase_add_test(tcase, the_identity_of_a_pipeline_has_program_and_value);
    tcase_add_test(tcase, pipelines_with_equal_grid_options_have_equal_grid_texts);
    tcase_add_test(tcase, accepted_labels_are_those_of_the_program_and_of_segments);
    tcase_add_test(tcase, all_labels_are_a_segment_each);
    tcase_add_loop_test(tcase, a_wrong_program_is_refused, 0, sizeof(refused) / sizeof(refused[0]));
    tcase_add_loop_test(tcase, doubtful_programs_are_named, 0, sizeof(warned) / sizeof(warned[0]));
    return run_case(tcase, "config_programs");
}
