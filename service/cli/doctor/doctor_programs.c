/* doctor_programs.c - checks programs of the site: their files, and the sandbox that they run in. */
#include "db/report.h"
#include "db/report_lists.h"
#include "kernels/gpu.h"
#include "service/cli/cli.h"
#include "service/cli/doctor/doctor.h"

#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
program_expect_command(struct examination *examination, const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        doctor_failed(examination, errno, path, "correct command in programs");
    else if (!S_ISREG(status.st_mode))
        doctor_find(examination, DOCTOR_BROKEN, "%s is no file: correct command in programs", path);
    else if (access(path, X_OK) < 0)
        doctor_find(examination, DOCTOR_BROKEN, "%s: make it executable for the service's user", path);
}

/* Finds the first file or folder below the path that cannot be read. */
static void
program_expect_readable(struct examination *examination, char *path)
{
    static const char remedy[] = "let the service's user read it";
    char *const paths[] = {path, NULL};
    FTS *walk = fts_open(paths, FTS_COMFOLLOW | FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk) {
        doctor_failed(examination, errno, path, remedy);
        return;
    }
    bool reads = true;
    for (FTSENT *entry; reads && (entry = fts_read(walk));) {
        const bool failed = entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR;
        reads = !failed && (entry->fts_info != FTS_F || access(entry->fts_path, R_OK) == 0);
        if (!reads)
            doctor_failed(examination, failed ? entry->fts_errno : errno, entry->fts_path, remedy);
    }
    fts_close(walk);
}

/* The sandbox of a program, or the reason why it cannot run. */
struct program_state {
    char sandbox[16], message[512];
    enum code code;
};

static const char *
state_cell(const struct report_table *table, size_t row, const char *key)
{
    const char *text = report_cell(table, row, key);
    return text ? text : "";
}

/* Reads the state that the running daemon recorded: its unit may deny more than this shell. Returns false if there is
 * none. */
static bool
program_read_state(const struct doctor *doctor, const char *name, struct program_state *state)
{
    struct report *report = NULL;
    struct report_table table;
    struct error error;
    size_t row = 0;
    if (strcmp(doctor->daemon_state, "running") != 0 || cli_try_report(doctor->conf, &report, &error) < 0)
        return false;
    const bool read = report_page(report, WEB_PROGRAMS, &(struct report_query){0}, &table, &error) == 0;
    while (read && row < table.row_count && strcmp(state_cell(&table, row, "program"), name) != 0)
        row++;
    const bool found = read && row < table.row_count && strcmp(state_cell(&table, row, "state"), "WAITING") != 0;
    if (found) {
        snprintf(state->sandbox, sizeof state->sandbox, "%s", state_cell(&table, row, "sandbox"));
        snprintf(state->message, sizeof state->message, "%s", state_cell(&table, row, "message"));
        state->code = code_find(state_cell(&table, row, "code"));
    }
    if (read)
        report_table_free(&table);
    report_close(report);
    return found;
}

/* Derives the state from a probe of this process. */
static void
program_probe_state(const struct sandbox_probe *probe, const struct conf_program *program, struct program_state *state)
{
    const enum sandbox_kind kind = program->container ? SANDBOX_CONTAINER : probe->kind;
    snprintf(state->sandbox, sizeof state->sandbox, "%s", sandbox_name(kind));
    snprintf(state->message, sizeof state->message, "%s", probe->why);
    if (kind == SANDBOX_NONE || (kind != SANDBOX_CONTAINER && !program->host_network && !probe->no_network))
        state->code = CODE_PROGRAM_SANDBOX;
}

enum doctor_verdict
doctor_explain_program_gpu(const struct conf *conf, const struct conf_program *program, int gpus,
                           char text[DOCTOR_TEXT])
{
    const bool on_cpu = strcmp(conf->compute.backend, "cpu") == 0;
    if (program->gpu == CONF_GPU_NONE || (gpus > 0 && !on_cpu) || conf->compute.executor == CONF_EXECUTOR_SLURM)
        return DOCTOR_OK;
    snprintf(text, DOCTOR_TEXT, "it needs a GPU, and %s: %s, or set gpu = \"none\" of the program",
             on_cpu ? "compute.backend is \"cpu\"" : "no GPU of this machine can be used",
             on_cpu ? "use another backend" : "see \"devices\"");
    return conf_uses_slurm(conf) ? DOCTOR_ATTENTION : DOCTOR_BROKEN; /* jobs in Slurm run it on their node */
}

static void
program_expect_gpu(struct examination *examination, const struct conf_program *program)
{
    struct kernels_gpu gpu;
    char text[DOCTOR_TEXT];
    const int gpus = program->gpu == CONF_GPU_NONE ? 0 : kernels_gpus(&gpu, 1);
    const enum doctor_verdict verdict = doctor_explain_program_gpu(examination->doctor->conf, program, gpus, text);
    if (verdict != DOCTOR_OK)
        doctor_find(examination, verdict, "%s", text);
}

void
doctor_check_program(struct examination *examination)
{
    const struct doctor *doctor = examination->doctor;
    const struct conf_program *program = &doctor->conf->programs[examination->index];
    struct program_state state = {.code = CODE_NONE};
    program_expect_command(examination, program->command[0]);
    if (program->cpu_command_count > 0)
        program_expect_command(examination, program->cpu_command[0]);
    for (size_t i = 0; i < program->weights_count; i++)
        program_expect_readable(examination, program->weights[i]);
    for (size_t i = 0; i < program->read_count; i++)
        program_expect_readable(examination, program->read[i]);
    program_expect_gpu(examination, program);
    if (!program_read_state(doctor, program->name, &state))
        program_probe_state(&doctor->sandbox, program, &state);
    if (state.code != CODE_NONE && examination->count == 0)
        doctor_find(examination, DOCTOR_BROKEN, "%s%s%s: %s", code_name(state.code), state.message[0] ? ": " : "",
                    state.message, code_remedy(state.code));
    if (strcmp(state.sandbox, sandbox_name(SANDBOX_WEAK)) == 0)
        doctor_find(
            examination, DOCTOR_ATTENTION,
            "its sandbox has no namespaces of its own: install bubblewrap, and the drop-in programs.conf of the unit");
    doctor_fine(examination, "%s: %s %s; sandbox \"%s\"", program->name, program->algorithm.name,
                program->algorithm.version, state.sandbox);
}
