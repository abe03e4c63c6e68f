#include "service/common/slurm/slurm.h"

#include "base/durable.h"
#include "service/common/slurm/slurm_program.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------- submitting ---- */

int
slurm_write_script(const char *path)
{
    static const char script[] = "#!/bin/sh\nexec \"$@\"\n";
    return durable_write(AT_FDCWD, path, script, strlen(script), 0700, DURABLE_REPLACE);
}

/* An argv under construction. It owns the strings that it composed. */
struct slurm_line {
    const char **arguments;
    size_t count;
    char *own[10];
    size_t own_count;
    bool out_of_memory;
};

static void
slurm_line_add(struct slurm_line *line, const char *argument)
{
    line->arguments[line->count++] = argument;
}

/* Adds "--name=value", unless the value is "". */
static void
slurm_line_option(struct slurm_line *line, const char *name, const char *value)
{
    char *text = NULL;
    if (!*value)
        return;
    if (asprintf(&text, "--%s=%s", name, value) < 0) {
        line->out_of_memory = true;
        return;
    }
    line->own[line->own_count++] = text;
    slurm_line_add(line, text);
}

static void
slurm_line_free(struct slurm_line *line)
{
    for (size_t i = 0; i < line->own_count; i++)
        free(line->own[i]);
    free(line->arguments);
}

/* Starts with "sbatch", one argument and the site's options, and reserves `more` arguments. */
static int
slurm_line_begin(struct slurm_line *line, const struct conf_slurm *conf, const char *first, size_t more)
{
    char minutes[16];
    *line = (struct slurm_line){0};
    line->arguments = calloc(conf->argument_count + more + 10, sizeof *line->arguments);
    if (!line->arguments)
        return -ENOMEM;
    slurm_line_add(line, "sbatch");
    slurm_line_add(line, first);
    /* Must not use --signal: a step that is signalled before its time limit ends early, and Slurm reports FAILED
     * instead of TIMEOUT. Without it the step is signalled at the limit and has Slurm's KillWait to end. */
    snprintf(minutes, sizeof minutes, "%d", conf->time_minutes);
    slurm_line_add(line, "--no-requeue");
    slurm_line_add(line, "--chdir=/");
    slurm_line_option(line, "time", minutes);
    slurm_line_option(line, "partition", conf->partition);
    slurm_line_option(line, "gres", conf->gres);
    for (size_t i = 0; i < conf->argument_count; i++)
        slurm_line_add(line, conf->arguments[i]);
    return 0;
}

static int
slurm_line_make(const struct conf_slurm *conf, const struct slurm_order *order, struct slurm_line *line)
{
    const int rc = slurm_line_begin(line, conf, "--parsable", order->folder_count + 12);
    if (rc)
        return rc;
    slurm_line_option(line, "job-name", order->name);
    slurm_line_option(line, "comment", order->comment);
    slurm_line_option(line, "output", order->output);
    slurm_line_option(line, "exclude", order->exclude);
    slurm_line_add(line, order->script);
    slurm_line_add(line, conf->program);
    slurm_line_add(line, "run-job");
    slurm_line_option(line, "series", order->series);
    if (order->programs)
        slurm_line_add(line, "--programs");
    for (size_t i = 0; i < order->folder_count; i++)
        slurm_line_add(line, order->folders[i]);
    return line->out_of_memory ? -ENOMEM : 0;
}

/* Reads "1234" or "1234;cluster". */
static int
slurm_read_id(const char *text, int64_t *id)
{
    char *end;
    errno = 0;
    *id = strtoll(text, &end, 10);
    return errno || end == text || *id <= 0 || (*end && !strchr(";\n", *end)) ? -EBADMSG : 0;
}

/* Returns whether a command failed because Slurm is unreachable, rather than because it rejected
 * the job. If the command was killed, Slurm may have processed the request. */
static bool
slurm_is_unreachable(const struct program_output *output)
{
    static const char *const texts[] = {"Unable to contact",
                                        "Unable to establish",
                                        "Connection refused",
                                        "timed out",
                                        "Zero Bytes",
                                        "Protocol authentication",
                                        "Munge",
                                        "backup controller"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strstr(output->words, texts[i]))
            return true;
    return output->status > 128;
}

static int
slurm_refused(const char *program, const struct program_output *output, struct error *error)
{
    const bool unreachable = slurm_is_unreachable(output);
    return error_set(error, unreachable ? -EAGAIN : -EINVAL, unreachable ? CODE_SLURM_UNAVAILABLE : CODE_SLURM_REFUSED,
                     "%s ended with status %d: %s", program, output->status,
                     *output->words ? output->words : "no message");
}

int
slurm_submit(const struct conf_slurm *conf, const struct slurm_order *order, int64_t *id, struct error *error)
{
    struct program_output output = {0};
    struct slurm_line line;
    int rc = slurm_line_make(conf, order, &line);
    if (rc)
        error_set_system(error, rc, "compose the arguments of sbatch");
    else
        rc = program_run(line.arguments, SLURM_SECONDS, &output, error);
    slurm_line_free(&line);
    if (!rc && output.status)
        rc = slurm_refused("sbatch", &output, error);
    else if (!rc && slurm_read_id(output.text, id))
        rc = error_set(error, -EBADMSG, CODE_SLURM_UNAVAILABLE, "sbatch printed \"%.100s\" instead of a job number",
                       output.text);
    free(output.text);
    return rc;
}

/* ------------------------------------------------------------------------------ the site ---- */

int
slurm_try(const struct conf_slurm *conf, struct error *error)
{
    struct program_output output = {0};
    struct slurm_line line;
    int rc = slurm_line_begin(&line, conf, "--test-only", 1);
    if (rc) {
        error_set_system(error, rc, "compose the arguments of sbatch");
    } else {
        slurm_line_add(&line, "--wrap=true");
        rc = program_run(line.arguments, SLURM_TRY_SECONDS, &output, error);
    }
    slurm_line_free(&line);
    if (!rc && output.status)
        rc = slurm_refused("sbatch", &output, error);
    free(output.text);
    return rc;
}

/* Reads a line such as "MinJobAge               = 300 sec". Returns -1 if it is missing. */
static int64_t
slurm_setting(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    const char *value = line ? strchr(line, '=') : NULL;
    return value ? strtoll(value + 1, NULL, 10) : -1;
}

int
slurm_settings(int64_t *min_job_age, int64_t *max_job_count, struct error *error)
{
    static const char *const arguments[] = {"scontrol", "show", "config", NULL};
    struct program_output output;
    int rc = program_run(arguments, SLURM_TRY_SECONDS, &output, error);
    if (!rc && output.status)
        rc = slurm_refused("scontrol", &output, error);
    if (!rc) {
        *min_job_age = slurm_setting(output.text, "\nMinJobAge");
        *max_job_count = slurm_setting(output.text, "\nMaxJobCount");
    }
    free(output.text);
    return rc;
}

/* ------------------------------------------------------------------------------ the queue ---- */

/* Parses the lines of squeue. Modifies `text`. */
static int
slurm_read_list(char *text, void (*take)(void *context, const struct slurm_job *job), void *context,
                struct error *error)
{
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        struct slurm_job job;
        char *at = line, *fields[5];
        if (!*line)
            continue;
        for (size_t i = 0; i < 5; i++)
            fields[i] = i < 4 ? strsep(&at, "|") : at;
        if (!fields[4] || slurm_read_id(fields[0], &job.id) || !*fields[1])
            return error_set(error, -EBADMSG, CODE_SLURM_UNAVAILABLE,
                             "squeue printed a line that is not a job: \"%.100s\"", line);
        job.state = fields[1];
        job.comment = fields[2];
        job.node = fields[3];
        job.reason = strcmp(fields[4], "None") == 0 ? "" : fields[4];
        take(context, &job);
    }
    return 0;
}

int
slurm_list(const char *name, void (*take)(void *context, const struct slurm_job *job), void *context,
           struct error *error)
{
    char named[SLURM_NAME_SIZE + 16];
    struct program_output output;
    snprintf(named, sizeof named, "--name=%s", name);
    const char *const arguments[] = {"squeue", "--noheader", "--states=all", named, "--format=%i|%T|%k|%N|%r", NULL};
    int rc = program_run(arguments, SLURM_SECONDS, &output, error);
    if (!rc && output.status)
        rc = slurm_refused("squeue", &output, error);
    if (!rc)
        rc = slurm_read_list(output.text, take, context, error);
    free(output.text);
    return rc;
}

/* An unknown state comes from a newer release and means that the job is waiting or starting
 * (POWER_UP_NODE, EXPEDITING). A job that has ended disappears after MinJobAge. */
bool
slurm_is_alive(const char *state)
{
    static const char *const ended[] = {"COMPLETED",     "FAILED",    "CANCELLED", "TIMEOUT",   "DEADLINE",
                                        "OUT_OF_MEMORY", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED"};
    for (size_t i = 0; i < sizeof ended / sizeof *ended; i++)
        if (strcmp(state, ended[i]) == 0)
            return false;
    return true;
}

int
slurm_cancel(int64_t id, struct error *error)
{
    char text[24];
    const char *const arguments[] = {"scancel", "--quiet", text, NULL};
    struct program_output output;
    snprintf(text, sizeof text, "%" PRId64, id);
    int rc = program_run(arguments, SLURM_SECONDS, &output, error);
    if (!rc && output.status && slurm_is_unreachable(&output))
        rc = slurm_refused("scancel", &output, error);
    free(output.text);
    return rc;
}
