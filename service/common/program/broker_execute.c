/* broker_execute.c - one attempt at a run of a program: its input, the program in its sandbox, its output. */
#include "service/common/program/broker_case.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/common/program/sandbox.h"
#include "service/common/program/work_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB          (1024.0 * 1024.0)
#define STEP_SECONDS 600.0 /* min limit of a step of our own */
#define FULL_SHARE   0.9   /* of the memory limit: a failure beyond it counts as lack of memory */

/* --------------------------------------------------------------------------------- steps ---- */

/* Writes the input, or reads the output. */
static void
case_convert(const void *context, struct broker_result *result)
{
    const struct broker_case *run = context;
    const struct program_steps *steps = run->process->steps;
    const int work = open(run->order->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (work < 0)
        result->rc = error_set_system(&result->error, -errno, "open the work folder");
    else if (run->reads)
        result->rc = steps->read_output(run->order, run->program, work, &result->of.outcome, &result->error);
    else
        result->rc = steps->write_input(run->order, run->program, work, &result->error);
}

static int
case_run_convert(struct broker_case *run, bool reads, struct broker_result *result)
{
    const double deadline = run->program->deadline_seconds;
    const struct broker_step made = {.name = reads ? "reads the output" : "writes the input",
                                     .inputs = run->order->inputs,
                                     .input_count = run->order->input_count,
                                     .output = run->order->work,
                                     .limit_seconds = deadline > STEP_SECONDS ? deadline : STEP_SECONDS,
                                     .run = case_convert,
                                     .context = run};
    run->reads = reads;
    return broker_run_step(run->process, &made, result, &run->outcome->error);
}

/* -------------------------------------------------------------------------------- limits ---- */

static int
case_over(struct error *error, enum code code, const char *what, double limit)
{
    return error_set(error, -EOVERFLOW, code, "the program exceeded %s (%g)", what, limit);
}

/* Checks the files that the program wrote. Their growth counts as a sign of life. */
static int
case_check_files(struct broker_case *run, struct broker_watch *watch, struct error *error)
{
    const struct conf_program *program = run->program;
    struct work_usage usage;
    work_folder_measure(run->folder, program->output_files, &usage);
    if (usage.bytes != run->size)
        watch->last_sign = clock_seconds();
    run->size = usage.bytes;
    if ((double)usage.bytes > program->output_mib * MIB)
        return case_over(error, CODE_PROGRAM_OUTPUT_TOO_LARGE, "output_mib", program->output_mib);
    if (usage.unbounded || usage.entries > program->output_files)
        return case_over(error, CODE_PROGRAM_OUTPUT_TOO_LARGE, "output_files", program->output_files);
    return 0;
}

int
case_check(void *context, struct broker_watch *watch, struct error *error)
{
    struct broker_case *run = context;
    const struct conf_program *program = run->program;
    const int64_t limit = (int64_t)(program->memory_mib * MIB);
    const bool is_own = run->kind != SANDBOX_CONTAINER; /* the processes of an engine are not those of the program */
    struct process_usage usage;
    process_tree_measure(watch->pid, limit, &usage);
    if (usage.bytes > watch->peak_bytes)
        watch->peak_bytes = usage.bytes;
    if (is_own && usage.tasks > program->processes + sandbox_own_tasks(run->kind))
        return case_over(error, CODE_PROGRAM_TOO_MANY_PROCESSES, "processes", program->processes);
    if (is_own && limit > 0 && usage.bytes > limit)
        return case_over(error, CODE_PROGRAM_OUT_OF_MEMORY, "memory_mib", program->memory_mib);
    const int rc = case_check_files(run, watch, error);
    if (rc)
        return rc;
    const double now = clock_seconds();
    if (now - run->started > program->deadline_seconds)
        return case_over(error, CODE_PROGRAM_TOO_LONG, "deadline_seconds", program->deadline_seconds);
    if (program->silence_seconds > 0 && now - watch->last_sign > program->silence_seconds)
        return case_over(error, CODE_PROGRAM_SILENT, "silence_seconds", program->silence_seconds);
    return 0;
}

/* ------------------------------------------------------------------------------- the end ---- */

/* Returns whether the program wrote that the memory of a GPU did not suffice. */
static bool
case_lacked_gpu_memory(const struct broker_case *run)
{
    static const char *const signs[] = {"CUDA out of memory", "cudaErrorMemoryAllocation", "OutOfMemoryError",
                                        "CUDA_ERROR_OUT_OF_MEMORY", "CUDNN_STATUS_ALLOC_FAILED"};
    char *text = run->order->gpu[0] ? malloc(LIMIT_PROGRAM_OUTPUT_BYTES + 1) : NULL;
    bool found = false;
    if (text)
        output_tail_copy(&run->tail, text);
    for (size_t i = 0; text && i < sizeof signs / sizeof *signs; i++)
        found = found || strstr(text, signs[i]);
    free(text);
    return found;
}

int
case_judge_end(struct broker_case *run, const struct broker_watch *watch)
{
    struct error *error = &run->outcome->error;
    const double limit = run->program->memory_mib * MIB;
    struct sandbox_end end;
    struct broker_watch ended = *watch;
    sandbox_end_of(watch->status, &end);
    if (end.failed) {
        char *reason = malloc(LIMIT_PROGRAM_OUTPUT_BYTES + 1); /* the only output, since the program did not begin */
        if (reason) {
            output_tail_copy(&run->tail, reason);
            reason[strcspn(reason, "\n")] = '\0';
        }
        error_set(error, -EIO, CODE_PROGRAM_SANDBOX, "the sandbox (%s) could not be made: %.200s",
                  sandbox_name(run->kind), reason ? reason : "");
        free(reason);
        return -EIO;
    }
    const int rc = case_check_files(run, &ended, error); /* a limit of the kernel may have ended it first */
    if (rc)
        return rc;
    if (end.exit_code == 0 && end.signal == 0)
        return 0;
    if (case_lacked_gpu_memory(run))
        return error_set(error, -EIO, CODE_PROGRAM_GPU_OUT_OF_MEMORY, "the program lacked memory of the GPU");
    if (limit > 0 && (double)watch->peak_bytes >= FULL_SHARE * limit)
        return case_over(error, CODE_PROGRAM_OUT_OF_MEMORY, "memory_mib", run->program->memory_mib);
    if (end.signal)
        return error_set(error, -EIO, CODE_PROGRAM_CRASHED, "the program was ended by signal %d", end.signal);
    return error_set(error, -EIO, CODE_PROGRAM_FAILED, "the program ended with exit status %d", end.exit_code);
}

/* --------------------------------------------------------------------------- the program ---- */

/* Lists the folders that the program may read and execute, up to a NULL. The strings are borrowed, except the folders of
 * commands in `owned`. Returns NULL without memory. */
static const char **
case_given(const struct conf_program *program, char *owned[2])
{
    char *const commands[2] = {program->command[0], program->cpu_command_count ? program->cpu_command[0] : NULL};
    const char **given = calloc(program->weights_count + program->read_count + 3, sizeof *given);
    size_t count = 0;
    for (size_t i = 0; given && i < program->weights_count; i++)
        given[count++] = program->weights[i];
    for (size_t i = 0; given && i < program->read_count; i++)
        given[count++] = program->read[i];
    for (size_t i = 0; given && i < 2; i++) {
        owned[i] = commands[i] ? strdup(commands[i]) : NULL;
        if (owned[i])
            given[count++] = dirname(owned[i]);
    }
    return given;
}

/* Starts the program with these descriptors. Returns the keeper, or -errno. */
static pid_t
case_start_with(struct broker_case *run, const struct program_words *words, int input, const int outputs[2])
{
    const struct conf_program *program = run->program;
    char *owned[2] = {NULL, NULL};
    const char **given = case_given(program, owned);
    const bool has_gpu = run->order->gpu[0] != '\0';
    const struct sandbox_order order = {
        .kind = run->kind,
        .host_proc = run->process->probe.host_proc,
        .host_network = program->host_network,
        .argv = words->argv,
        .environment = words->environment,
        .places = {.root = run->process->root,
                   .in = words->in,
                   .out = words->out,
                   .temporary = words->temporary,
                   .shared = words->shared,
                   .given = given,
                   .gpu = has_gpu},
        .input = input,
        .output = outputs[0],
        .errors = outputs[1],
        /* The sum over the processes is measured; this limit ends a process that grows between two measurements. */
        .limits = {.data_bytes = has_gpu ? 0 : (int64_t)(4 * program->memory_mib * MIB),
                   .file_bytes = (int64_t)((program->output_mib + 1) * MIB),
                   .processes = program->processes,
                   .cpus = program->cpus,
                   .slot = run->order->slot},
    };
    const pid_t keeper = given ? sandbox_start(&order, &run->outcome->error)
                               : error_set_system(&run->outcome->error, -ENOMEM, "start the program");
    free(given);
    free(owned[0]);
    free(owned[1]);
    return keeper;
}

void
case_close_pipes(struct broker_pipes *pipes)
{
    const int fds[] = {pipes->input, pipes->outputs[0], pipes->outputs[1]};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

pid_t
case_start(struct broker_case *run, const struct program_words *words, bool talks, struct broker_pipes *pipes)
{
    int ends[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}; /* input, output, error output */
    int rc =
        pipe2(ends[1], O_CLOEXEC) < 0 || (talks && (pipe2(ends[0], O_CLOEXEC) < 0 || pipe2(ends[2], O_CLOEXEC) < 0))
            ? -errno
            : 0;
    *pipes = (struct broker_pipes){.input = ends[0][1], .outputs = {ends[1][0], ends[2][0]}};
    for (int i = 0; rc == 0 && i < 2; i++)
        if (pipes->outputs[i] >= 0 && fcntl(pipes->outputs[i], F_SETFL, O_NONBLOCK) < 0)
            rc = -errno;
    const int outputs[] = {ends[1][1], talks ? ends[2][1] : ends[1][1]};
    const pid_t keeper = rc ? error_set_system(&run->outcome->error, rc, "start the program")
                            : case_start_with(run, words, ends[0][0], outputs);
    const int given[] = {ends[0][0], ends[1][1], ends[2][1]};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i] >= 0)
            close(given[i]);
    run->outcome->starts = keeper > 0;
    return keeper;
}

/* Runs the program in its sandbox, until none of its processes is left or a warm one has answered. */
static int
case_run_program(struct broker_case *run)
{
    const struct program_order *order = run->order;
    struct error *error = &run->outcome->error;
    struct broker_watch watch = {.end_signal = SIGTERM, .tail = &run->tail, .check = case_check, .context = run};
    struct broker_pipes pipes;
    struct program_words words;
    const bool cpu = order->as == PROGRAM_AS_CPU && run->program->cpu_command_count > 0;
    if (run->program->warm && order->as == PROGRAM_AS_GIVEN)
        return broker_warm_run(run);
    broker_warm_end(run->process, run->program->name); /* it may hold memory that this start needs */
    int rc = program_words_make(run->program, order->work, order->gpu, cpu, &words);
    if (rc) {
        program_words_clear(&words);
        return error_set_system(error, rc, "start the program");
    }
    run->started = clock_seconds();
    watch.pid = case_start(run, &words, false, &pipes);
    memcpy(watch.outputs, pipes.outputs, sizeof watch.outputs);
    rc = watch.pid < 0 ? (int)watch.pid : broker_await(run->process, &watch, error);
    if (!rc)
        rc = case_judge_end(run, &watch);
    case_close_pipes(&pipes);
    run->outcome->peak_bytes = watch.peak_bytes;
    program_words_clear(&words);
    return rc;
}

/* ------------------------------------------------------------------------------- the run ---- */

static void
case_report_stage(const struct broker_case *run, const char *stage)
{
    struct broker_answer answer = {.event = BROKER_STAGE, .run = run->process->run};
    snprintf(answer.stage, sizeof answer.stage, "%s", stage);
    broker_answer(run->process, &answer);
}

/* Compares the program's files with those for which the run was planned. */
static int
case_check_identity(struct broker_case *run)
{
    struct program_outcome *outcome = run->outcome;
    struct program_digest digest;
    int rc = broker_digest(run->process, run->program, &digest, &outcome->error);
    if (rc)
        return rc;
    memcpy(outcome->identity, digest.identity, sizeof outcome->identity);
    memcpy(outcome->program_sha256, digest.program_sha256, sizeof outcome->program_sha256);
    memcpy(outcome->weights_sha256, digest.weights_sha256, sizeof outcome->weights_sha256);
    if (run->order->identity[0] && strcmp(run->order->identity, digest.identity) != 0)
        return error_set(&outcome->error, -ESTALE, CODE_PROGRAM_CHANGED,
                         "the program or its weights changed since the run was planned");
    rc = broker_choose_sandbox(run->process, run->program, &run->kind, &outcome->error);
    if (!rc)
        snprintf(outcome->sandbox, sizeof outcome->sandbox, "%s", sandbox_name(run->kind));
    return rc;
}

static int
case_run_stages(struct broker_case *run)
{
    struct broker_result result;
    struct program_outcome *outcome = run->outcome;
    int rc = case_check_identity(run);
    const double start = clock_seconds();
    if (!rc) {
        case_report_stage(run, "write");
        rc = case_run_convert(run, false, &result);
    }
    const double written = clock_seconds();
    outcome->write_seconds = written - start;
    if (!rc) {
        case_report_stage(run, "run");
        rc = case_run_program(run);
    }
    const double ran = clock_seconds();
    outcome->program_seconds = ran - written;
    if (!rc) {
        case_report_stage(run, "read");
        rc = case_run_convert(run, true, &result);
    }
    if (!rc) { /* only the step's own members */
        snprintf(outcome->sha256, sizeof outcome->sha256, "%.64s", result.of.outcome.sha256);
        outcome->size = result.of.outcome.size;
        outcome->labels = result.of.outcome.labels;
        outcome->labelled = result.of.outcome.labelled;
    }
    outcome->read_seconds = clock_seconds() - ran;
    return rc;
}

/* Runs a case in its work folder, and removes that. */
static int
case_run_in_folder(struct broker_case *run)
{
    const struct program_order *order = run->order;
    int rc = work_folder_make(order->work);
    if (rc)
        return error_set_system(&run->outcome->error, rc, "make the work folder");
    rc = case_run_stages(run);
    if (rc != -ECANCELED) {
        const int finished = work_folder_finish(order->work, order->result, rc == 0, &run->tail);
        if (finished && rc == 0)
            rc = error_set_system(&run->outcome->error, finished, "store the mask");
    }
    const int removed = work_folder_remove(order->work);
    if (removed)
        log_warn("program.leftover", LOG_STR("folder", order->work), LOG_STR("error", strerror(-removed)));
    return rc;
}

void
broker_execute(struct broker_process *process, const struct program_order *order, struct program_outcome *outcome)
{
    struct broker_case *run = calloc(1, sizeof *run);
    struct error error = {0};
    int rc = run ? 0 : error_set_system(&outcome->error, -ENOMEM, "run a program");
    if (!rc) {
        *run = (struct broker_case){.process = process, .order = order, .outcome = outcome, .folder = order->work};
        rc = conf_program_from_text(order->program, &run->program, &error);
        if (rc)
            error_set(&outcome->error, rc, CODE_PIPELINE_INVALID, "the program cannot be read: %s", error.message);
    }
    if (!rc)
        rc = case_run_in_folder(run);
    outcome->end = rc == 0 ? PROGRAM_END_WELL : rc == -ECANCELED ? PROGRAM_END_STOPPED : PROGRAM_END_ILL;
    if (outcome->end == PROGRAM_END_ILL)
        error_normalise(&outcome->error, rc);
    if (run)
        conf_program_free(run->program);
    free(run);
}
