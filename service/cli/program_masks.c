#include "service/cli/program_masks.h"

#include "base/text.h"
#include "service/cli/cli.h"
#include "service/common/file_ops.h"
#include "service/common/jobs/job_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUT_SHOWN 4096 /* bytes of the end of a failed program's output */

/* One program of a job, while it runs. */
struct masks_run {
    struct mask_maker *maker;
    const struct job_spec *spec;
    struct conf_program *program;
    struct job_mask *mask;
    char *work, *result; /* folders */
    struct program_outcome outcome;
};

/* Prints the end of the output. A terminal must not receive control characters of a program. */
static void
masks_print_output(const struct masks_run *run)
{
    char *path, text[OUTPUT_SHOWN + 1];
    if (asprintf(&path, "%s/" MASKS_OUTPUT, run->result) < 0)
        return;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    free(path);
    if (fd < 0)
        return;
    const off_t size = lseek(fd, 0, SEEK_END);
    const ssize_t count = pread(fd, text, OUTPUT_SHOWN, size > OUTPUT_SHOWN ? size - OUTPUT_SHOWN : 0);
    close(fd);
    text[count > 0 ? count : 0] = '\0';
    if (count <= 0)
        return;
    cli_print_error("end of the output of %s:", run->program->name);
    for (const char *at = text; at < text + count; at++) {
        const size_t length = text_line_length(at);
        if (length > 0)
            fwrite(at, 1, length, stderr);
        else
            fputc(*at == '\n' || *at == '\t' ? *at : '?', stderr);
        at += length > 0 ? length - 1 : 0;
    }
    if (text[count - 1] != '\n')
        fputc('\n', stderr);
}

static void
masks_on_stage(void *context, const char *stage)
{
    const struct masks_run *run = context;
    char title[96];
    (void)stage;
    snprintf(title, sizeof title, "program %s", run->program->name);
    if (run->maker->progress)
        cli_progress_update(run->maker->progress, title, 0);
}

static int
masks_attempt(struct masks_run *run, enum program_as as)
{
    const struct job_spec *spec = run->spec;
    const struct job_mask *mask = run->mask;
    char none[] = "";
    const struct program_order order = {
        .run = ++run->maker->runs,
        .attempt = 1,
        .program = mask->program,
        .identity = mask->identity ? mask->identity : none,
        .pipeline = spec->settings,
        .stack = spec->stack,
        .inputs = spec->inputs,
        .input_count = spec->input_count,
        .sha256 = spec->sha256,
        .accepted = mask->accepted,
        .accepted_count = mask->accepted_count,
        .work = run->work,
        .result = run->result,
        .gpu = run->program->gpu == CONF_GPU_NONE || as == PROGRAM_AS_CPU ? none : run->maker->gpu,
        .as = as,
        .threads = run->maker->threads};
    run->outcome = (struct program_outcome){0};
    return broker_run(run->maker->broker, &order, run->maker->stop, masks_on_stage, run, &run->outcome);
}

/* Sets *as to the next place after a lack of GPU memory. Returns false without another place. */
static bool
masks_next_place(const struct masks_run *run, enum program_as *as)
{
    const enum program_as next = program_next_place(run->program->gpu, run->program->cpu_command_count > 0, *as);
    if (run->outcome.error.code != CODE_PROGRAM_GPU_OUT_OF_MEMORY || next == *as)
        return false;
    *as = next;
    cli_print_error("%s ran out of GPU memory: it runs once more, %s", run->program->name,
                    *as == PROGRAM_AS_CPU ? "with its cpu_command" : "with the whole GPU");
    return true;
}

/* Runs the program until it has ended well or for good. */
static int
masks_run_program(struct masks_run *run, struct error *error)
{
    const struct conf_program *program = run->program;
    enum program_as as = PROGRAM_AS_GIVEN;
    char what[96];
    int rc;
    if (program->gpu != CONF_GPU_NONE && !*run->maker->gpu)
        return error_set(error, -ENODEV, CODE_PROGRAM_UNAVAILABLE, "no GPU of this machine can be used for %s",
                         program->name);
    do
        rc = masks_attempt(run, as);
    while (rc == 0 && run->outcome.end == PROGRAM_END_ILL && masks_next_place(run, &as));
    snprintf(what, sizeof what, "run %s", program->name);
    if (rc)
        return error_set_system(error, rc, what);
    if (run->outcome.end == PROGRAM_END_STOPPED)
        return error_set(error, -ECANCELED, CODE_STOPPED, "the job was stopped");
    if (run->outcome.end == PROGRAM_END_WELL)
        return 0;
    return error_set(error, -EIO, run->outcome.error.code, "%s: %s", program->name, run->outcome.error.message);
}

/* Sets the mask from the outcome, which is also kept beside it. */
static int
masks_take(const struct masks_run *run)
{
    char *path = NULL, *outcome = NULL;
    char *sha256 = strdup(run->outcome.sha256), *identity = strdup(run->outcome.identity);
    int rc = asprintf(&path, "%s/" MASKS_MASK, run->result) < 0 ||
                     asprintf(&outcome, "%s/" MASKS_OUTCOME, run->result) < 0 || !sha256 || !identity
                 ? -ENOMEM
                 : program_outcome_write(&run->outcome, outcome);
    free(outcome);
    free(run->mask->path);
    free(run->mask->sha256);
    free(run->mask->identity);
    run->mask->path = path;
    run->mask->sha256 = sha256;
    run->mask->identity = identity;
    return rc;
}

static int
masks_make_one(struct mask_maker *maker, const struct job_spec *spec, struct job_mask *mask, struct error *error)
{
    struct masks_run run = {.maker = maker, .spec = spec, .mask = mask};
    int rc = conf_program_from_text(mask->program, &run.program, error);
    if (rc)
        return rc;
    if (mkdir(maker->folder, 0700) != 0 && errno != EEXIST)
        rc = error_set_system(error, -errno, "make the folder of programs");
    if (rc == 0 && (asprintf(&run.result, "%s/%s", maker->folder, run.program->name) < 0 ||
                    asprintf(&run.work, "%s/%s.work", maker->folder, run.program->name) < 0))
        rc = error_set_system(error, -ENOMEM, "name the folder of a program");
    if (rc == 0) {
        rc = masks_run_program(&run, error);
        if (maker->progress)
            cli_progress_clear(maker->progress);
        if (rc && rc != -ECANCELED)
            masks_print_output(&run);
    }
    if (rc == 0) {
        rc = masks_take(&run);
        if (rc)
            error_set_system(error, rc, "keep the mask of a program");
    }
    free(run.work);
    free(run.result);
    conf_program_free(run.program);
    return rc;
}

int
masks_make(struct mask_maker *maker, struct job_spec *spec, struct error *error)
{
    int rc = 0;
    for (size_t i = 0; i < spec->mask_count && rc == 0; i++)
        if (!spec->masks[i].path || !*spec->masks[i].path)
            rc = masks_make_one(maker, spec, &spec->masks[i], error);
    return rc;
}

enum proto_verdict
masks_verdict(int rc, const struct error *error)
{
    if (rc == -ECANCELED)
        return PROTO_VERDICT_STOPPED;
    return code_passing(error->code) ? PROTO_VERDICT_RETRY : PROTO_VERDICT_REJECT;
}

/* ------------------------------------------------------------------------------- keeping ---- */

static bool
masks_is_made(const struct mask_maker *maker, const struct job_mask *mask)
{
    const size_t length = maker->folder ? strlen(maker->folder) : 0;
    return length > 0 && mask->path && strncmp(mask->path, maker->folder, length) == 0 && mask->path[length] == '/';
}

/* Copies a file of the mask's folder, or the mask itself. */
static int
masks_keep_file(struct output *output, const struct job_mask *mask, const char *program, const char *file,
                const char *ending)
{
    char *path = NULL, name[96];
    bool read_failed;
    int to;
    const int folder = (int)(text_base_name(mask->path) - mask->path);
    snprintf(name, sizeof name, "%s.%s", program, ending);
    if (asprintf(&path, "%.*s%s", folder, mask->path, file) < 0)
        return -ENOMEM;
    const int from = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    free(path);
    if (from < 0)
        return -errno;
    int rc = output_create(output, name, &to);
    if (rc == 0)
        rc = file_copy(from, to, &read_failed);
    if (rc == 0)
        output_finish(output, to);
    close(from);
    return rc;
}

static int
masks_keep_one(struct output *output, const struct job_mask *mask, bool with_outcome)
{
    struct conf_program *program;
    struct error error;
    int rc = conf_program_from_text(mask->program, &program, &error);
    if (rc)
        return rc;
    rc = masks_keep_file(output, mask, program->name, text_base_name(mask->path), "mask");
    if (rc == 0 && with_outcome)
        rc = masks_keep_file(output, mask, program->name, MASKS_OUTCOME, "outcome");
    if (rc == 0 && with_outcome)
        rc = masks_keep_file(output, mask, program->name, MASKS_OUTPUT, MASKS_OUTPUT);
    conf_program_free(program);
    return rc == -ENOENT ? 0 : rc; /* it wrote no file */
}

int
masks_keep(const struct mask_maker *maker, const struct job_spec *spec, const char *folder, bool with_outcome,
           struct error *error)
{
    struct output *output = NULL;
    size_t kept = 0;
    int rc = 0;
    for (size_t i = 0; i < spec->mask_count && rc == 0; i++) {
        if (with_outcome && !masks_is_made(maker, &spec->masks[i]))
            continue;
        if (kept++ == 0)
            rc = output_open(folder, !with_outcome, &output);
        if (rc == 0)
            rc = masks_keep_one(output, &spec->masks[i], with_outcome);
    }
    if (rc == 0 && output)
        rc = output_publish(output, NULL);
    output_close(output);
    return rc ? error_set_system(error, rc, "write the masks of programs") : 0;
}

void
masks_forget(const struct mask_maker *maker, struct job_mask *masks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!masks_is_made(maker, &masks[i]))
            continue;
        *strrchr(masks[i].path, '/') = '\0';
        file_remove(AT_FDCWD, masks[i].path, NULL);
        free(masks[i].path);
        free(masks[i].sha256);
        free(masks[i].identity);
        masks[i].path = masks[i].sha256 = masks[i].identity = NULL;
    }
}
