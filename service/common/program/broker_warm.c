/*
 * broker_warm.c - programs that stay for the next case.
 *
 * Such a program reads one line "IN OUT" per case on its standard input, and answers "OK" or "ERROR text" on its
 * standard output. Its sandbox contains the folder "warm-SLOT-NAME", which is next to the work folders. The folders of
 * a case are moved there, and the output is moved back.
 */
#include "service/common/program/broker_case.h"

#include "service/common/clock.h"
#include "service/common/file_ops.h"
#include "service/common/log.h"
#include "service/common/program/work_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct broker_warm {
    struct broker_warm *next;
    char *name, *settings, *gpu; /* conf_program_to_text; UUID */
    char identity[65];
    char *folder; /* "in", "out", "tmp" */
    double warm_seconds, idle_since;
    pid_t keeper;
    struct broker_pipes pipes;
};

static void
warm_free(struct broker_warm *warm)
{
    case_close_pipes(&warm->pipes);
    free(warm->name);
    free(warm->settings);
    free(warm->gpu);
    free(warm->folder);
    free(warm);
}

/* Ends the processes, unless they have ended, and removes the folder. */
static void
warm_end(struct broker_process *process, struct broker_warm *warm)
{
    struct broker_warm **at = &process->warm;
    while (*at && *at != warm)
        at = &(*at)->next;
    if (*at)
        *at = warm->next;
    if (warm->keeper > 0) {
        kill(warm->keeper, SIGTERM);
        while (waitpid(warm->keeper, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    const int rc = work_folder_remove(warm->folder);
    if (rc)
        log_warn("program.leftover", LOG_STR("folder", warm->folder), LOG_STR("error", strerror(-rc)));
    log_debug("program.cold", LOG_STR("program", warm->name));
    broker_answer_cold(process, warm->name);
    warm_free(warm);
}

int
broker_warm_end(struct broker_process *process, const char *name)
{
    int ended = 0;
    for (struct broker_warm *warm = process->warm, *next; warm; warm = next) {
        next = warm->next;
        if (name[0] && strcmp(name, warm->name) != 0)
            continue;
        warm_end(process, warm);
        ended++;
    }
    return ended;
}

/* Returns whether the configuration has the same program. */
static bool
warm_is_configured(const struct broker_warm *warm, const struct conf *conf)
{
    const struct conf_program *program = conf_find_program(conf, warm->name);
    char *settings = program ? conf_program_to_text(program) : NULL;
    const bool same = settings && strcmp(settings, warm->settings) == 0;
    free(settings);
    return same;
}

void
broker_warm_check(struct broker_process *process, const struct conf *conf)
{
    char bytes[4096];
    for (struct broker_warm *warm = process->warm, *next; warm; warm = next) {
        next = warm->next;
        for (int i = 0; i < 2; i++) /* output without a case is dropped, so that the program does not block */
            while (read(warm->pipes.outputs[i], bytes, sizeof bytes) > 0)
                ;
        if (waitpid(warm->keeper, NULL, WNOHANG) != 0)
            warm->keeper = 0;
        if (warm->keeper == 0 || clock_seconds() - warm->idle_since > warm->warm_seconds ||
            (conf && !warm_is_configured(warm, conf)))
            warm_end(process, warm);
    }
}

/* ------------------------------------------------------------------------------ starting ---- */

static struct broker_warm *
warm_new(struct broker_case *run)
{
    struct broker_warm *warm = calloc(1, sizeof *warm);
    char *above = strdup(run->order->work);
    if (warm) {
        warm->pipes = (struct broker_pipes){.input = -1, .outputs = {-1, -1}};
        warm->name = strdup(run->program->name);
        warm->settings = strdup(run->order->program);
        warm->gpu = strdup(run->order->gpu);
        warm->warm_seconds = run->program->warm_seconds;
        memcpy(warm->identity, run->outcome->identity, sizeof warm->identity);
    }
    const bool named =
        warm && above && asprintf(&warm->folder, "%s/warm-%d-%s", dirname(above), run->order->slot, warm->name) >= 0;
    free(above);
    if (named && warm->settings && warm->gpu)
        return warm;
    if (warm && !named)
        warm->folder = NULL;
    if (warm)
        warm_free(warm);
    error_set_system(&run->outcome->error, -ENOMEM, "start the program");
    return NULL;
}

static int
warm_start(struct broker_case *run, struct broker_warm **started)
{
    struct error *error = &run->outcome->error;
    struct broker_warm *warm = warm_new(run);
    struct program_words words;
    if (!warm)
        return -ENOMEM;
    int rc = 0;
    if (strchr(warm->folder, ' '))
        rc = error_set(error, -EINVAL, CODE_PROGRAM_SANDBOX, "a warm program needs a root folder without spaces");
    else if ((rc = work_folder_remove(warm->folder)) != 0 || (rc = work_folder_make(warm->folder)) != 0)
        error_set_system(error, rc, "make the folder of a warm program");
    if (rc) {
        warm_free(warm);
        return rc;
    }
    rc = program_words_make(run->program, warm->folder, warm->gpu, false, &words);
    if (rc)
        error_set_system(error, rc, "start the program");
    else
        warm->keeper = case_start(run, &words, true, &warm->pipes);
    program_words_clear(&words);
    if (rc || warm->keeper < 0) {
        rc = rc ? rc : (int)warm->keeper;
        work_folder_remove(warm->folder);
        warm_free(warm);
        return rc;
    }
    warm->next = run->process->warm;
    run->process->warm = warm;
    *started = warm;
    return 0;
}

/* Finds the program's process. One that is dead, or was started for another identity, is ended. */
static struct broker_warm *
warm_find(struct broker_case *run)
{
    broker_warm_check(run->process, NULL);
    struct broker_warm *warm = run->process->warm;
    while (warm && strcmp(warm->name, run->program->name) != 0)
        warm = warm->next;
    if (warm && (strcmp(warm->settings, run->order->program) != 0 || strcmp(warm->gpu, run->order->gpu) != 0 ||
                 strcmp(warm->identity, run->outcome->identity) != 0)) {
        warm_end(run->process, warm);
        warm = NULL;
    }
    return warm;
}

/* -------------------------------------------------------------------------------- a case ---- */

/* The folders of a case. The name is that of its work folder. */
struct warm_paths {
    char *work_in, *work_out, *in, *out;
};

static int
warm_paths_make(const struct broker_case *run, const struct broker_warm *warm, struct warm_paths *paths)
{
    const char *name = strrchr(run->order->work, '/') + 1;
    *paths = (struct warm_paths){.work_in = NULL};
    if (asprintf(&paths->work_in, "%s/in", run->order->work) < 0)
        paths->work_in = NULL;
    if (asprintf(&paths->work_out, "%s/out", run->order->work) < 0)
        paths->work_out = NULL;
    if (asprintf(&paths->in, "%s/in/%s", warm->folder, name) < 0)
        paths->in = NULL;
    if (asprintf(&paths->out, "%s/out/%s", warm->folder, name) < 0)
        paths->out = NULL;
    return paths->work_in && paths->work_out && paths->in && paths->out ? 0 : -ENOMEM;
}

/* Sends the case, and waits for the answer. Sets *ended if the program has ended. */
static int
warm_talk(struct broker_case *run, struct broker_warm *warm, const struct warm_paths *paths, bool *ended)
{
    struct broker_reply reply = {.there = false};
    struct broker_watch watch = {.pid = warm->keeper,
                                 .end_signal = SIGTERM,
                                 .tail = &run->tail,
                                 .check = case_check,
                                 .context = run,
                                 .reply = &reply};
    struct error *error = &run->outcome->error;
    memcpy(watch.outputs, warm->pipes.outputs, sizeof watch.outputs);
    run->started = clock_seconds();
    run->folder = warm->folder;
    dprintf(warm->pipes.input, "%s %s\n", paths->in, paths->out); /* a program that has ended is found below */
    int rc = broker_await(run->process, &watch, error);
    *ended = !reply.there || rc != 0;
    if (!rc && *ended)
        rc = case_judge_end(run, &watch);
    if (!rc && *ended)
        rc = error_set(error, -EIO, CODE_PROGRAM_FAILED, "the program ended without an answer");
    if (!rc && !reply.well)
        rc = error_set(error, -EIO, CODE_PROGRAM_FAILED, "the program answered ERROR");
    if (!rc)
        rc = case_check(run, &watch, error);
    run->outcome->peak_bytes = watch.peak_bytes;
    return rc;
}

/* Removes the entries that a case left in a folder of the program. */
static void
warm_clear(const struct broker_warm *warm, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", warm->folder, name) < 0)
        return;
    DIR *directory;
    if (file_open_directory(AT_FDCWD, path, O_NOFOLLOW, &directory) == 0) {
        for (const struct dirent *entry; (entry = readdir(directory));)
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                file_remove(dirfd(directory), entry->d_name, NULL);
        closedir(directory);
    }
    free(path);
}

int
broker_warm_run(struct broker_case *run)
{
    struct error *error = &run->outcome->error;
    struct warm_paths paths = {.work_in = NULL};
    bool ended = false;
    struct broker_warm *warm = warm_find(run);
    int rc = warm ? 0 : warm_start(run, &warm);
    if (rc)
        return rc;
    rc = warm_paths_make(run, warm, &paths);
    if (rc) {
        error_set_system(error, rc, "run a program");
    } else if (rename(paths.work_in, paths.in) < 0 || mkdir(paths.out, 0750) < 0) {
        rc = error_set_system(error, -errno, "give the input to a warm program");
    } else {
        rc = warm_talk(run, warm, &paths, &ended);
        /* Fails if the program has replaced its folder by something else. */
        if (!rc && rename(paths.out, paths.work_out) < 0)
            rc = error_set(error, -errno, CODE_PROGRAM_NO_OUTPUT, "the program removed its output folder");
        warm_clear(warm, "in");
        warm_clear(warm, "out");
    }
    free(paths.work_in);
    free(paths.work_out);
    free(paths.in);
    free(paths.out);
    warm->idle_since = clock_seconds();
    if (ended)
        warm->keeper = 0;
    if (ended || (rc && error->code != CODE_PROGRAM_FAILED))
        warm_end(run->process, warm);
    return rc;
}
