/*
 * slurm_requests.c - see slurm_role.h. Files in the shared folder are not trusted:
 * service/common/slurm checks them.
 */
#include "service/slurm/slurm_role.h"

#include "base/array.h"
#include "base/test_hook.h"
#include "service/common/file_ops.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/common/slurm/slurm.h"
#include "service/common/slurm/slurm_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MOST 2000 /* per frame */

struct proto_writer *
site_answer(struct site_request *request)
{
    static struct proto_writer nowhere; /* never sent, since the process fails */
    struct proto_writer *grown =
        array_grow(request->answers, &request->room, request->answer_count + 1, sizeof *grown);
    if (!grown) {
        request->out_of_memory = true;
        return &nowhere;
    }
    request->answers = grown;
    return &grown[request->answer_count++];
}

static struct slurm_attempt_id
site_id(int64_t job, int64_t number, const char *nonce)
{
    struct slurm_attempt_id id = {.job = job, .number = number};
    snprintf(id.nonce, sizeof id.nonce, "%s", nonce);
    return id;
}

/* ---------------------------------------------------------------------------- submitting ---- */

static int
site_make_folder(const struct site_request *request, const struct message_task_job *row,
                 struct error *error)
{
    const struct conf *conf = request->site->conf;
    struct job_spec *spec = NULL;
    int rc = job_spec_read(row->job_file, &spec, error);
    if (rc)
        return rc;
    const struct slurm_attempt_order order = {
        .id = site_id(row->job, row->number, request->told.submit_task.nonce),
        .spec = spec,
        .deadline_seconds = row->deadline_seconds,
        .backend = conf->compute.backend,
        .threads = conf->compute.threads,
        .memory_bytes = (int64_t)(conf->jobs.memory_mib * (1 << 20)),
        .shared = conf->compute.slurm.share,
    };
    rc = slurm_folder_make(request->site->folder, &order, &request->site->stop, error);
    job_spec_free(spec);
    return rc;
}

static void
site_tell_unfit(struct site_request *request, int64_t job, const struct error *error)
{
    const struct message_unfit told = {.job = job,
                                       .nonce = request->told.submit_task.nonce,
                                       .code = error->code,
                                       .message = error->message,
                                       .file = error->file[0]};
    message_write_unfit(site_answer(request), &told);
}

/* Returns the path of the attempt's folder. NULL: it could not be made, and UNFIT was added. */
static char *
site_make_attempt(struct site_request *request, const struct message_task_job *row)
{
    struct error error = {0};
    char name[ATTEMPT_NAME_SIZE], *path = NULL;
    const struct slurm_attempt_id id =
        site_id(row->job, row->number, request->told.submit_task.nonce);
    int rc = site_make_folder(request, row, &error);
    slurm_folder_name_write(&id, name);
    if (!rc && asprintf(&path, "%s/%s", request->site->folder, name) < 0)
        rc = error_set_system(&error, -ENOMEM, "name the folder of an attempt");
    if (!rc)
        return path;
    site_tell_unfit(request, row->job, &error);
    return NULL;
}

static int
site_run_sbatch(const struct site_request *request, const char *const *folders, size_t count,
                int64_t *slurm_id, struct error *error)
{
    const struct message_submit_task *told = &request->told.submit_task;
    const struct conf *conf = request->site->conf;
    char *output, *series = NULL;
    if (asprintf(&output, "%s/task-%s.log", request->site->folder, told->nonce) < 0)
        return error_set_system(error, -ENOMEM, "name the log of a Slurm job");
    if (asprintf(&series, "%s/" LAYOUT_SERIES, conf->root) < 0) {
        free(output);
        return error_set_system(error, -ENOMEM, "name the folder of series");
    }
    const struct slurm_order order = {
        .name = request->site->name,
        .comment = told->nonce,
        .exclude = told->exclude,
        .output = output,
        .script = request->site->script,
        .series = slurm_folder_is_shared(conf->compute.slurm.share, series) ? series : "",
        .folders = folders,
        .folder_count = count};
    crash_point("cluster_before_sbatch");
    const int rc = slurm_submit(&conf->compute.slurm, &order, slurm_id, error);
    crash_point("cluster_after_sbatch");
    free(series);
    free(output);
    return rc;
}

/* Submits the attempts that have a folder. Without any, only reports that. */
static void
site_submit_folders(struct site_request *request, const char *const *folders, size_t count)
{
    struct error error = {0};
    int64_t slurm_id = 0;
    const int rc = count ? site_run_sbatch(request, folders, count, &slurm_id, &error) : 0;
    const struct message_submitted told = {.nonce = request->told.submit_task.nonce,
                                           .slurm_id = rc ? 0 : slurm_id,
                                           .unsure = rc && error.code != CODE_SLURM_REFUSED,
                                           .code = error.code,
                                           .message = error.message};
    message_write_submitted(site_answer(request), &told);
}

/* Creates only the last folder: if the share is not mounted, no folder must be created in its
 * place. */
static void
site_make_root(const struct site *site)
{
    if (mkdir(site->folder, 0700) < 0 && errno != EEXIST)
        log_warn("cluster.share", LOG_STR("folder", site->folder),
                 LOG_STR("error", strerror(errno)));
}

void
site_submit(struct site_request *request)
{
    const size_t most = (size_t)request->rows.rows;
    struct message_task_job row;
    size_t count = 0;
    char **folders = calloc(most + 1, sizeof *folders);
    if (!folders) {
        request->out_of_memory = true;
        return;
    }
    site_make_root(request->site);
    while (count < most && message_next_task_job(&request->rows, &row)) {
        folders[count] = site_make_attempt(request, &row);
        count += folders[count] != NULL;
    }
    site_submit_folders(request, (const char *const *)folders, count);
    for (size_t i = 0; i < count; i++)
        free(folders[i]);
    free(folders);
}

/* ------------------------------------------------------------------------------- polling ---- */

struct site_polled {
    struct site_request *request;
    struct proto_writer *writer; /* NULL: the next row begins a frame */
    size_t rows;
};

static struct proto_writer *
site_begin_tasks(struct site_request *request, bool last, const struct error *error)
{
    struct proto_writer *writer = site_answer(request);
    message_write_tasks(writer, &(struct message_tasks){.number = request->told.poll.number,
                                                        .last = last,
                                                        .code = error->code,
                                                        .message = error->message});
    return writer;
}

static void
site_on_job(void *context, const struct slurm_job *job)
{
    static const struct error none;
    struct site_polled *polled = context;
    if (polled->rows % ROWS_MOST == 0)
        site_begin_tasks(polled->request, false, &none);
    polled->rows++;
    if (polled->request->out_of_memory)
        return;
    const struct message_task row = {.slurm_id = job->id,
                                     .lives = slurm_is_alive(job->state),
                                     .nonce = job->comment,
                                     .state = job->state,
                                     .node = job->node,
                                     .reason = job->reason};
    message_add_task(&polled->request->answers[polled->request->answer_count - 1], &row);
}

void
site_poll(struct site_request *request)
{
    struct error error = {0};
    struct site_polled polled = {.request = request};
    if (slurm_list(request->site->name, site_on_job, &polled, &error) == 0)
        error = (struct error){0};
    site_begin_tasks(request, true, &error);
}

/* ---------------------------------------------------------------------------- collecting ---- */

static void
site_tell_collected(struct site_request *request, bool has_ended, const struct error *error)
{
    const struct message_collect *asked = &request->told.collect;
    const struct message_collected told = {.job = asked->job,
                                           .nonce = asked->nonce,
                                           .has_ended = has_ended,
                                           .code = error->code,
                                           .message = error->message};
    message_write_collected(site_answer(request), &told);
}

static int
site_bring_results(const struct site_request *request, const struct manifest *manifest,
                   struct error *error)
{
    char *output;
    if (asprintf(&output, "%s/" LAYOUT_OUTBOX "/%" PRId64, request->site->conf->root,
                 request->told.collect.job) < 0)
        return error_set_system(error, -ENOMEM, "name the folder of results");
    crash_point("cluster_before_results");
    const int rc = manifest_collect(manifest, output, &request->site->stop, error);
    crash_point("cluster_after_results");
    free(output);
    return rc;
}

static void
site_tell_report(struct site_request *request, struct manifest *manifest)
{
    static const struct error none;
    struct proto_reader frame;
    site_tell_collected(request, true, &none);
    while (manifest_next(manifest, &frame))
        proto_copy(site_answer(request), &frame);
}

void
site_collect(struct site_request *request)
{
    const struct message_collect *asked = &request->told.collect;
    const struct slurm_attempt_id id = site_id(asked->job, asked->number, asked->nonce);
    struct manifest *manifest = NULL;
    struct error error = {0};
    int rc = manifest_read(request->site->folder, &id, &manifest, &error);
    if (!rc)
        rc = site_bring_results(request, manifest, &error);
    if (rc == -ENOENT)
        error = (struct error){0};
    if (rc)
        site_tell_collected(request, false, &error);
    else
        site_tell_report(request, manifest);
    manifest_free(manifest);
}

/* ------------------------------------------------------------------------------ sweeping ---- */

static void
site_remove_log(const struct site *site, const char *nonce)
{
    char *log;
    if (asprintf(&log, "%s/task-%s.log", site->folder, nonce) < 0)
        return;
    unlink(log);
    free(log);
}

void
site_dismiss(struct site_request *request)
{
    struct message_dismissed row;
    while (message_next_dismissed(&request->rows, &row)) {
        if (row.well)
            site_remove_log(request->site, row.nonce);
        const struct slurm_attempt_id id = site_id(row.job, row.number, row.nonce);
        const int rc = slurm_folder_remove(request->site->folder, &id);
        if (rc)
            log_warn("cluster.folder_stays", LOG_INT("job", row.job), LOG_STR("nonce", row.nonce),
                     LOG_STR("error", strerror(-rc)));
    }
}

void
site_cancel(struct site_request *request)
{
    struct error error;
    const int64_t id = request->told.cancel_task.slurm_id;
    if (slurm_cancel(&id, 1, &error))
        log_warn("cluster.not_cancelled", LOG_INT("slurm_id", id),
                 LOG_STR("message", error.message));
}

/* Removes logs of Slurm jobs that are a week old. */
static void
site_sweep_log(int folder, const char *name)
{
    struct stat status;
    if (strncmp(name, "task-", 5) == 0 &&
        fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_mtime < time(NULL) - 7 * 86400)
        unlinkat(folder, name, 0);
}

void
site_list_folders(struct site_request *request)
{
    DIR *directory;
    size_t rows = 0;
    if (file_open_directory(AT_FDCWD, request->site->folder, 0, &directory))
        return; /* not created yet, or the share is not mounted: the next start checks again */
    for (const struct dirent *entry; (entry = readdir(directory)) && !request->out_of_memory;) {
        struct slurm_attempt_id id;
        if (!slurm_folder_name_read(entry->d_name, &id)) {
            site_sweep_log(dirfd(directory), entry->d_name);
            continue;
        }
        if (rows++ % ROWS_MOST == 0)
            message_write_folders(site_answer(request), &(struct message_folders){});
        if (!request->out_of_memory)
            message_add_folder(
                &request->answers[request->answer_count - 1],
                &(struct message_folder){.job = id.job, .number = id.number, .nonce = id.nonce});
    }
    closedir(directory);
}
