/*
 * option_program.c - the options of programs of the site, and of the segments that take their output.
 */
#include "base/text.h"
#include "config/options/option_sections.h"

#include <string.h>

static const char *const input_choices[] = {"nifti", "nrrd", "dicom", NULL};
static const char *const output_choices[] = {"nifti", "nrrd", "seg", "rtstruct", NULL};
static const char *const resample_choices[] = {"refuse", "nearest", NULL};
static const char *const others_choices[] = {"refuse", "ignore", NULL};
static const char *const sandbox_choices[] = {"own", "container", NULL};
static const char *const network_choices[] = {"none", "host", NULL};
static const char *const gpu_choices[] = {"none", "shared", "whole", NULL};
static const char *const family_choices[] = {
#define FAMILY(NAME, word, code, meaning) word,
#include "base/algorithm_families.def"
    NULL};

/* ------------------------------------------------------------------------- placeholders ---- */

enum { IN, IN_FILE, DICOM, OUT, OUT_FILE, CASE, GPU, PLACEHOLDERS };

static const char *const placeholder_names[PLACEHOLDERS] = {
    [IN] = "in",     [IN_FILE] = "in_file", [DICOM] = "dicom", [OUT] = "out", [OUT_FILE] = "out_file",
    [CASE] = "case", [GPU] = "gpu"};

#define ANY_INPUT  (1u << IN | 1u << IN_FILE | 1u << DICOM)
#define ANY_OUTPUT (1u << OUT | 1u << OUT_FILE)

/* Reports words in braces that are not `allowed` (bit n for placeholder n). Returns the placeholders in the text. */
static unsigned
check_placeholders(const char *text, unsigned allowed, const char *option, const struct option_spot *spot)
{
    unsigned used = 0;
    for (const char *open = text; open && (open = strchr(open, '{')); open++) {
        const int length = (int)strspn(open + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (length == 0 || open[1 + length] != '}')
            continue;
        unsigned i = 0;
        while (i < PLACEHOLDERS &&
               (strncmp(placeholder_names[i], open + 1, (size_t)length) != 0 || placeholder_names[i][length] != '\0'))
            i++;
        if (i < PLACEHOLDERS && (allowed & 1u << i))
            used |= 1u << i;
        else if (allowed == 1u << CASE)
            option_refuse(spot, option, "{%.*s} is not allowed here: use {case}", length, open + 1);
        else
            option_refuse(spot, option,
                          "{%.*s} is no placeholder: use {in}, {out}, {in_file}, {out_file}, {dicom}, {case} or {gpu}",
                          length, open + 1);
    }
    return used;
}

static unsigned
check_words(char *const *words, size_t count, const char *option, const struct option_spot *spot)
{
    unsigned used = 0;
    for (size_t i = 0; i < count; i++)
        used |= check_placeholders(words[i], ~0u, ELEMENT(option, i, ""), spot);
    return used;
}

/* Checks a command. `used` has the placeholders of the environment. */
static void
check_command(const struct conf_program *program, char *const *words, size_t count, unsigned used, const char *option,
              const struct option_spot *spot)
{
    if (count == 0)
        return;
    used |= check_words(words, count, option, spot);
    if (words[0][0] != '/')
        option_refuse(spot, option, "the first word must be an absolute path: no shell and no PATH is used");
    if ((used & 1u << DICOM) && program->input != CONF_DICOM)
        option_refuse(spot, option, "{dicom} requires input = \"dicom\"");
    if ((used & 1u << IN_FILE) && program->input == CONF_DICOM)
        option_refuse(spot, option, "{in_file} is not allowed with input = \"dicom\": use {in} or {dicom}");
    if ((used & 1u << OUT_FILE) && !program->output_file[0])
        option_refuse(spot, option, "{out_file} requires output_file");
    if (program->warm && (used & (ANY_INPUT | ANY_OUTPUT)))
        option_refuse(
            spot, option,
            "with warm = true, the folders of each case are a line on standard input: remove their placeholders");
    if (!program->warm && !(used & ANY_INPUT))
        option_refuse(spot, option, "needs {in}, {in_file} or {dicom}, or warm = true");
    if (!program->warm && !(used & ANY_OUTPUT))
        option_refuse(spot, option, "needs {out} or {out_file}, or warm = true");
}

/* ------------------------------------------------------------------ one program's checks ---- */

static void
check_environment(const struct conf_program *program, const struct option_spot *spot)
{
    for (size_t i = 0; i < program->environment_count; i++) {
        const char *text = program->environment[i];
        const size_t name = strcspn(text, "=");
        if (name == 0 || !text[name])
            option_refuse(spot, ELEMENT("environment", i, ""), "\"%s\" is not NAME=VALUE", text);
        else if (name == strlen("CUDA_VISIBLE_DEVICES") && strncmp(text, "CUDA_VISIBLE_DEVICES", name) == 0)
            option_refuse(spot, ELEMENT("environment", i, ""), "CUDA_VISIBLE_DEVICES is set by Noctule: remove it");
    }
}

/* Checks the name of a file that the program reads or writes. `endings`: two of a format; NULL: any. */
static void
check_file_name(const char *name, const char *const *endings, const char *option, const struct option_spot *spot)
{
    if (!name || !name[0])
        return;
    if (strchr(name, '/') || name[0] == '.')
        option_refuse(spot, option, "must be a file name without / and without a dot at its start");
    else if (endings && !text_ends_in(name, endings[0]) && !text_ends_in(name, endings[1]))
        option_refuse(spot, option, "must end in %s or %s", endings[0], endings[1]);
    check_placeholders(name, 1u << CASE, option, spot);
}

static void
check_files(const struct conf_program *program, const struct option_spot *spot)
{
    static const char *const nifti[] = {".nii.gz", ".nii"}, *const nrrd[] = {".nrrd", ".nhdr"};
    if (!LOST(spot, program->input))
        check_file_name(program->input_file, program->input == CONF_NIFTI ? nifti : nrrd, "input_file", spot);
    if (!LOST(spot, program->output) && !LOST(spot, program->output_file))
        check_file_name(program->output_file,
                        program->output == CONF_OUTPUT_NIFTI  ? nifti
                        : program->output == CONF_OUTPUT_NRRD ? nrrd
                                                              : NULL,
                        "output_file", spot);
}

static bool
command_has(const struct conf_program *program, const char *word)
{
    size_t i = 0;
    while (i < program->command_count && strcmp(program->command[i], word) != 0)
        i++;
    return i < program->command_count;
}

/* Returns whether the digest of the image is part of the identity: in the command, or as a file of `weights`. */
static bool
has_image_digest(const struct conf_program *program)
{
    bool has = false;
    for (size_t i = 0; i < program->command_count; i++)
        has = has || strstr(program->command[i], "@sha256:");
    for (size_t i = 0; i < program->weights_count; i++)
        has = has || command_has(program, program->weights[i]);
    return has;
}

static void
check_container(const struct conf_program *program, const struct option_spot *spot)
{
    const char *slash = strrchr(program->command[0], '/'), *name = slash ? slash + 1 : program->command[0];
    bool closed = command_has(program, "--network=none");
    for (size_t i = 0; i + 1 < program->command_count; i++)
        closed =
            closed || (strcmp(program->command[i], "--network") == 0 && strcmp(program->command[i + 1], "none") == 0);
    if (strcmp(name, "podman") != 0 && strcmp(name, "docker") != 0 && strcmp(name, "apptainer") != 0)
        option_refuse(spot, "command",
                      "with sandbox = \"container\", the first word must be podman, docker or apptainer");
    if (!closed && !program->host_network && !LOST(spot, program->host_network))
        option_refuse(spot, "command", "needs --network none, or network = \"host\"");
    if (!LOST(spot, program->weights) && !has_image_digest(program))
        option_refuse(spot, "command",
                      "needs an image with its digest, IMAGE@sha256:..., or an image file that is also in weights");
    if (program->warm)
        option_refuse(spot, "warm", "is not allowed with sandbox = \"container\"");
}

static void
check_labels(const struct conf_program *program, const struct option_spot *spot)
{
    for (size_t i = 0; i < program->label_count; i++)
        for (size_t j = 0; j < i; j++) {
            const struct conf_label *label = &program->labels[i], *earlier = &program->labels[j];
            if (label->value == earlier->value && !LOST(spot, label->value) && !LOST(spot, earlier->value))
                option_refuse(spot, ELEMENT("labels", i, ".value"), "%d is the value of an earlier label",
                              label->value);
        }
}

static void
check_program(const void *object, const struct option_spot *spot)
{
    const struct conf_program *program = object;
    const struct option_named labels = NAMED(spot, "labels", program->labels, program->label_count);
    check_files(program, spot);
    check_labels(program, spot);
    option_refuse_duplicates(&labels, ".name", "the name of an earlier label");
    if (program->warm && program->gpu == CONF_GPU_WHOLE)
        option_refuse(spot, "warm", "is not allowed with gpu = \"whole\": jobs would never get the GPU back");
    if (program->cpu_command_count > 0 && program->gpu == CONF_GPU_NONE && !LOST(spot, program->gpu))
        option_refuse(spot, "cpu_command", "requires gpu = \"shared\" or \"whole\"");
    if (LOST(spot, program->environment) || LOST(spot, program->command) || LOST(spot, program->cpu_command) ||
        LOST(spot, program->input) || LOST(spot, program->output_file) || LOST(spot, program->warm))
        return;
    check_environment(program, spot);
    const unsigned used = check_words(program->environment, program->environment_count, "environment", spot);
    check_command(program, program->command, program->command_count, used, "command", spot);
    check_command(program, program->cpu_command, program->cpu_command_count, used, "cpu_command", spot);
    if (program->container)
        check_container(program, spot);
}

/* --------------------------------------------------------------------------------- rows ---- */

static const struct option_row algorithm_rows[] = {
    {ROW(conf_algorithm, text, name), NULL, LIMITS(1, 64), .form = &form_dicom,
     .help = "Algorithm Name (0066,0036) in results"},
    {ROW(conf_algorithm, text, version), NULL, LIMITS(1, 64), .form = &form_dicom,
     .help = "Algorithm Version (0066,0031) in results"},
    {ROW(conf_algorithm, choice, family), "\"ai\"", .choices = family_choices,
     .help = "Algorithm Family Code (0066,002F), by CID 7162 of PS3.16; \"ai\" is Artificial Intelligence"},
    {ROW(conf_algorithm, text, source), "\"\"", LIMITS(0, 64), .form = &form_dicom,
     .help = "Algorithm Source (0024,0202) in results, such as a URI; empty: none"},
};

static const struct option_section algorithm_section = {SECTION(algorithm_rows, conf_algorithm)};

static const struct option_row label_rows[] = {
    {ROW(conf_label, integer, value), NULL, LIMITS(1, 65535), .help = "value in the output"},
    {ROW(conf_label, text, name), NULL, LIMITS(1, 64), .form = &form_dicom,
     .help = "label of the segment with segments = \"all labels\"; unique in the program"},
    {ROW(conf_label, group, category),
     "{ code = \"" CONF_CATEGORY "\"; scheme = \"SCT\"; meaning = \"Anatomical Structure\"; }", .section = &option_code,
     .help = "category of the segment"},
    {ROW(conf_label, group, type), "", .section = &option_code,
     .help = "type of the segment; required for segments = \"all labels\""},
    {ROW(conf_label, group, modifier), "", .section = &option_code, .help = "type modifier of the segment"},
    {ROW(conf_label, group, region), "", .section = &option_code, .help = "anatomic region of the segment"},
    {ROW(conf_label, numbers, color), "[ 0.9, 0.3, 0.2 ]", LIMITS(0, 1), .array = {.count = 3},
     .help = "display color of the segment: red, green and blue"},
};

static const struct option_section label_section = {SECTION(label_rows, conf_label)};

#define WORDS(name_, fallback_, low, high, help_)                                                                      \
    {                                                                                                                  \
        ROW(conf_program, strings, name_), (fallback_), LIMITS(low, high), MANY(struct conf_program, name_##_count),   \
            .help = (help_)                                                                                            \
    }
#define PATHS(name_, help_)                                                                                            \
    {                                                                                                                  \
        ROW(conf_program, strings, name_), "[ ]", LIMITS(0, 16), MANY(struct conf_program, name_##_count),             \
            .form = &form_absolute, .help = (help_)                                                                    \
    }

/* The rows from `command` to `algorithm` decide the output: conf_program_identity() has them, and no others. A new row
 * among them must be .later. */
static const struct option_row program_rows[] = {
    {ROW(conf_program, text, name), NULL, LIMITS(1, 64), .form = &form_name,
     .help = "name for segments, noctule programs and v_programs"},
    {"profile", &option_profile, .offset = 0, .fallback = "", LIMITS(1, 64), .form = &form_name,
     .help = "name of a profile with initial settings: \"nnunet\", \"totalsegmentator\", \"mercure\", \"podman\", or "
             "a file profiles/NAME.conf in the folder of this file; settings of the group override it"},
    WORDS(command, NULL, 1, 64,
          "the program and its arguments, without a shell; the first word is an absolute path; {in} and {out} are the "
          "folders of a case, {in_file} and {out_file} its files, {dicom} the folder of DICOM files, {case} the word "
          "\"case\", {gpu} the UUID of the GPU"),
    WORDS(cpu_command, "[ ]", 0, 64,
          "command for a further attempt without a GPU after the memory of a whole GPU did not suffice; empty: none"),
    WORDS(environment, "[ ]", 0, 64,
          "environment, as \"NAME=VALUE\" with the placeholders of command; besides PATH, HOME, TMPDIR, LANG and "
          "CUDA_VISIBLE_DEVICES, the program gets no other"),
    {ROW(conf_program, choice, input), "\"nifti\"", .choices = input_choices,
     .help =
         "form of the input: \"nifti\" or \"nrrd\", a file without identifiers of the patient; \"dicom\", the files "
         "of the series with all their attributes"},
    {ROW(conf_program, text, input_file), "", LIMITS(1, 128), ONLY_WITH("input", 1u << CONF_NIFTI | 1u << CONF_NRRD),
     .help = "name of the file in {in}; by default \"{case}.nii.gz\" or \"{case}.nrrd\""},
    {ROW(conf_program, boolean, task_file), "false",
     .help = "also write task.json to {in}, which modules of mercure read"},
    {ROW(conf_program, choice, output), "\"nifti\"", .choices = output_choices,
     .help =
         "form of the output: a label map, or a DICOM \"seg\" or \"rtstruct\", whose Segment Numbers or ROI Numbers "
         "are the label values"},
    {ROW(conf_program, text, output_file), "\"\"", LIMITS(0, 128),
     .help = "name of the file in {out}; empty: the only file of the form there"},
    {ROW(conf_program, number, threshold), "", LIMITS(-1e9, 1e9), GIVEN(struct conf_program, has_threshold),
     .help = "for an output of fractions: voxels of at least this value have label 1; without it, fractions are "
             "rejected with PROGRAM_FRACTIONS"},
    {ROW(conf_program, switch, resample), "\"refuse\"", .choices = resample_choices,
     .help = "handling of an output on another grid: \"refuse\" it with PROGRAM_GRID_DIFFERS, or take the \"nearest\" "
             "voxel"},
    {ROW(conf_program, group, algorithm), NULL, .section = &algorithm_section,
     .help = "the algorithm, as results state it; a new version makes new masks"},
    {ROW(conf_program, list, labels), MANY(struct conf_program, label_count), .fallback = "( )", LIMITS(0, 255),
     .section = &label_section, .help = "label values of the output, for segments = \"all labels\" and for checks"},
    {"other_labels", &option_switch, AT(struct conf_program, ignore_others), "\"refuse\"", .choices = others_choices,
     .help = "label values that neither labels nor a segment names: \"refuse\" the output with PROGRAM_LABEL_UNKNOWN, "
             "or \"ignore\" them"},
    PATHS(weights,
          "files and folders of the model, read-only for the program; their digest is part of results. Name the "
          "folder of a script here, too"),
    PATHS(read, "further files and folders, read-only for the program, such as a virtual environment"),
    {"sandbox", &option_switch, AT(struct conf_program, container), "\"own\"", .choices = sandbox_choices,
     .help =
         "\"own\": bubblewrap, or namespaces, Landlock and seccomp; \"container\": the command is podman, docker or "
         "apptainer, which isolates the program"},
    {"network", &option_switch, AT(struct conf_program, host_network), "\"none\"", .choices = network_choices,
     .help = "network access of the program: \"none\", or that of the \"host\""},
    {ROW(conf_program, choice, gpu), "\"none\"", .choices = gpu_choices,
     .help = "\"none\"; \"shared\": gpu_memory_mib of a GPU, beside jobs; \"whole\": a GPU without jobs"},
    {ROW(conf_program, number, gpu_memory_mib), NULL, LIMITS(1, 4194304), ONLY_WITH("gpu", 1u << CONF_GPU_SHARED),
     .help = "GPU memory that the program takes"},
    {ROW(conf_program, integer, cpus), "0", LIMITS(0, 1024), .help = "max processors; 0: no limit"},
    {ROW(conf_program, number, memory_mib), "0.0", LIMITS(0, 16777216),
     .help = "max memory; above it, the run ends with PROGRAM_OUT_OF_MEMORY; 0: no limit"},
    {ROW(conf_program, integer, processes), "512", LIMITS(1, 32768), .help = "max processes and threads"},
    {ROW(conf_program, number, deadline_seconds), "3600.0", LIMITS(1, 604800),
     .help = "max duration of a run; then the program is stopped"},
    {ROW(conf_program, number, silence_seconds), "0.0", LIMITS(0, 604800),
     .help = "max time without output to a stream or to {out}; then the program is stopped; 0: no limit"},
    {ROW(conf_program, number, output_mib), "2048.0", LIMITS(1, 1048576), .help = "max size of all files in {out}"},
    {ROW(conf_program, integer, output_files), "256", LIMITS(1, 100000), .help = "max number of files in {out}"},
    {ROW(conf_program, integer, max_attempts), "2", LIMITS(1, 100),
     .help = "number of attempts after which a run has failed"},
    {ROW(conf_program, boolean, warm), "false",
     .help = "keep the program for further cases: it reads a line \"IN OUT\" per case and answers \"OK\" or \"ERROR "
             "text\""},
    {ROW(conf_program, number, warm_seconds), "600.0", LIMITS(1, 604800),
     .help = "time without a case after which a warm program is ended"},
};

const struct option_section option_program = {SECTION(program_rows, conf_program), .check = check_program};

/* --------------------------------------------------------------- checks across sections ---- */

static bool
program_has_label(const struct conf_program *program, int value)
{
    size_t i = 0;
    while (i < program->label_count && program->labels[i].value != value)
        i++;
    return i < program->label_count;
}

/* Checks a segment of the program against its list of labels, if it has one. */
static void
check_values(const struct conf_program *program, const struct conf_segment *segment, const char *option,
             const struct option_spot *spot)
{
    if (program->label_count == 0 || LOST(spot, program->labels) ||
        option_lost(spot, program->labels, program->label_count * sizeof(program->labels[0])))
        return;
    for (size_t i = 0; i < segment->value_count; i++)
        if (!program_has_label(program, segment->values[i]))
            option_refuse(spot, option, "\"%s\" has no label %d", program->name, segment->values[i]);
}

static void
program_check_segments(const struct conf *conf, size_t pipeline, const struct option_spot *spot)
{
    const struct option_named programs = NAMED(spot, "programs", conf->programs, conf->program_count);
    const struct conf_pipeline *of = &conf->pipelines[pipeline];
    for (size_t i = 0; i < of->segment_count; i++) {
        const struct conf_segment *segment = &of->segments[i];
        char option[96];
        if (segment->method != CONF_PROGRAM || !segment->program)
            continue;
        const size_t at = option_find_name(&programs, segment->program);
        snprintf(option, sizeof(option), "pipelines.[%zu].segments.[%zu].%s", pipeline, i,
                 at < conf->program_count ? "value" : "program");
        if (at < conf->program_count)
            check_values(&conf->programs[at], segment, option, spot);
        else if (option_lacks(&programs, segment->program))
            option_refuse(spot, option, "there is no program \"%s\": name one of programs", segment->program);
    }
}

void
option_check_programs(const struct conf *conf, const struct option_spot *spot)
{
    const struct option_named named = NAMED(spot, "programs", conf->programs, conf->program_count);
    const char *backend = conf->compute.backend;
    option_refuse_duplicates(&named, ".name", "the name of an earlier program");
    for (size_t i = 0; i < conf->program_count; i++) {
        if (conf->programs[i].warm && conf->root && strchr(conf->root, ' '))
            option_refuse(spot, ELEMENT("programs", i, ".warm"),
                          "requires a root without blanks: each case is a line with two paths");
        if (conf->programs[i].gpu != CONF_GPU_NONE && backend && strcmp(backend, "cpu") == 0)
            option_refuse(spot, ELEMENT("programs", i, ".gpu"),
                          "compute.backend is \"cpu\", so that no GPU is used: set \"auto\"");
    }
    for (size_t i = 0; i < conf->pipeline_count && !LOST(spot, conf->pipelines); i++)
        program_check_segments(conf, i, spot);
}

void
option_warn_programs(const struct conf *conf, const struct option_spot *spot)
{
    for (size_t i = 0; i < conf->program_count; i++)
        if (conf->programs[i].input == CONF_DICOM)
            option_warn(
                spot, ELEMENT("programs", i, ".input"),
                "the program gets the patient's name and identifiers: use \"nifti\" or \"nrrd\" unless it needs them");
    for (size_t i = 0; i < conf->pipeline_count; i++) {
        const struct conf_pipeline *pipeline = &conf->pipelines[i];
        size_t bare = 0;
        for (size_t j = 0; j < pipeline->segment_count; j++)
            bare += pipeline->segments[j].method == CONF_PROGRAM && !pipeline->segments[j].expect;
        if (bare > 0)
            option_warn(spot, ELEMENT("pipelines", i, pipeline->unreviewed ? ".unreviewed" : ".segments"),
                        "%zu segment%s of a program without expect: results are %s", bare, bare == 1 ? "" : "s",
                        pipeline->unreviewed ? "delivered unchecked" : "held for REVIEW");
    }
}
