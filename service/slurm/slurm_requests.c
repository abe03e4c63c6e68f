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

#define ROWS_MAX 2000 /* per frame */

/* Returns the next frame of the reply, to be filled. All frames are sent when the thread has finished. */
static struct proto_writer *
slurm_request_reply(struct slurm_request *request)
{
    static struct proto_writer nowhere; /* never sent, since the process fails */
    struct proto_writer *grown = array_grow(request->answers, &request->room, request->answer_count + 1, sizeof *grown);
    if (!grown) {
        request->out_of_memory = true;
        return &nowhere;
    }
    request->answers = grown;
    return &grown[request->answer_count++];
}

static struct slurm_attempt_id
slurm_request_id(int64_t job, int64_t number, const char *nonce)
{
    struct slurm_attempt_id id = {.job = job, .number = number};
    snprintf(id.nonce, sizeof id.nonce, "%s", nonce);
    return id;
}

/* ---------------------------------------------------------------------------- submitting ---- */

static int
slurm_request_make_folder(struct slurm_request *request, const struct message_task_job *row, struct error *error)
{
    const struct conf *conf = request->site->conf;
    struct job_spec *spec = NULL;
    int rc = job_spec_read(row->job_file, &spec, error);
    if (rc)
        return rc;
    const struct slurm_attempt_order order = {
        .id = slurm_request_id(row->job, row->number, request->message.submit_task.nonce),
        .spec = spec,
        .deadline_seconds = row->deadline_seconds,
        .backend = conf->compute.backend,
        .threads = conf->compute.threads,
        .memory_bytes = (int64_t)(conf->jobs.memory_mib * (1 << 20)),
        .shared = conf->compute.slurm.share,
    };
    for (size_t i = 0; i < spec->mask_count; i++)
        request->programs |= !*spec->masks[i].path;
    rc = slurm_folder_make(request->site->folder, &order, &request->site->stop, error);
    job_spec_free(spec);
    return rc;
}

/* Returns the path of the attempt's folder. NULL: it could not be made, and UNFIT was added. */
static char *
slurm_request_make_attempt(struct slurm_request *request, const struct message_task_job *row)
{
    struct error error = {0};
    char name[ATTEMPT_NAME_SIZE], *path = NULL;
    const struct slurm_attempt_id id = slurm_request_id(row->job, row->number, request->message.submit_task.nonce);
    int rc = slurm_request_make_folder(request, row, &error);
    slurm_folder_name_write(&id, name);
    if (!rc && asprintf(&path, "%s/%s", request->site->folder, name) < 0)
        rc = error_set_system(&error, -ENOMEM, "name the folder of an attempt");
    if (!rc)
        return path;
    const struct message_unfit message = {.job = row->job,
                                          .nonce = request->message.submit_task.nonce,
                                          .code = error.code,
                                          .message = error.message,
                                          .file = error.file[0]};
    message_write_unfit(slurm_request_reply(request), &message);
    return NULL;
}

static int
slurm_request_run_sbatch(const struct slurm_request *request, const char *const *folders, size_t count,
                         int64_t *slurm_id, struct error *error)
{
    const struct message_submit_task *message = &request->message.submit_task;
    const struct conf *conf = request->site->conf;
    char *output, *series = NULL;
    if (asprintf(&output, "%s/task-%s.log", request->site->folder, message->nonce) < 0)
        return error_set_system(error, -ENOMEM, "name the log of a Slurm job");
    if (asprintf(&series, "%s/" LAYOUT_SERIES, conf->root) < 0) {
        free(output);
        return error_set_system(error, -ENOMEM, "name the folder of series");
    }
    const struct slurm_order order = {.name = request->site->name,
                                      .comment = message->nonce,
                                      .exclude = message->exclude,
                                      .output = output,
                                      .script = request->site->script,
                                      .series = slurm_folder_is_shared(conf->compute.slurm.share, series) ? series : "",
                                      .programs = request->programs,
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
void
slurm_request_submit(struct slurm_request *request)
{
    const struct slurm_site *site = request->site;
    const size_t limit = (size_t)request->rows.rows;
    struct message_task_job row;
    struct error error = {0};
    int64_t slurm_id = 0;
    size_t count = 0;
    int rc = 0;
    char **folders = calloc(limit + 1, sizeof *folders);
    if (!folders) {
        request->out_of_memory = true;
        return;
    }
    /* Create only the last folder: if the share is not mounted, none must take its place. */
    if (mkdir(site->folder, 0700) < 0 && errno != EEXIST)
        log_warn("cluster.share", LOG_STR("folder", site->folder), LOG_STR("error", strerror(errno)));
    while (count < limit && message_next_task_job(&request->rows, &row)) {
        folders[count] = slurm_request_make_attempt(request, &row);
        count += folders[count] != NULL;
    }
    if (count > 0)
        rc = slurm_request_run_sbatch(request, (const char *const *)folders, count, &slurm_id, &error);
    const struct message_submitted message = {.nonce = request->message.submit_task.nonce,
                                              .slurm_id = rc ? 0 : slurm_id,
                                              .unsure = rc && error.code != CODE_SLURM_REFUSED,
                                              .code = error.code,
                                              .message = error.message};
    message_write_submitted(slurm_request_reply(request), &message);
    for (size_t i = 0; i < count; i++)
        free(folders[i]);
    free(folders);
}

/* ------------------------------------------------------------------------------- polling ---- */

struct slurm_polled {
    struct slurm_request *request;
    struct proto_writer *writer; /* NULL: the next row begins a frame */
    size_t rows;
};

static struct proto_writer *
slurm_request_begin_tasks(struct slurm_request *request, bool last, const struct error *error)
{
    struct proto_writer *writer = slurm_request_reply(request);
    message_write_tasks(writer, &(struct message_tasks){.number = request->message.poll.number,
                                                        .last = last,
                                                        .code = error->code,
                                                        .message = error->message});
    return writer;
}

static void
slurm_request_on_job(void *context, const struct slurm_job *job)
{
    static const struct error none;
    struct slurm_polled *polled = context;
    if (polled->rows % ROWS_MAX == 0)
        slurm_request_begin_tasks(polled->request, false, &none);
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
slurm_request_poll(struct slurm_request *request)
{
    struct error error = {0};
    struct slurm_polled polled = {.request = request};
    if (slurm_list(request->site->name, slurm_request_on_job, &polled, &error) == 0)
        error = (struct error){0};
    slurm_request_begin_tasks(request, true, &error);
}

/* ---------------------------------------------------------------------------- collecting ---- */

void
slurm_request_collect(struct slurm_request *request)
{
    const struct message_collect *message = &request->message.collect;
    const struct slurm_attempt_id id = slurm_request_id(message->job, message->number, message->nonce);
    struct manifest *manifest = NULL;
    struct proto_reader frame;
    struct error error = {0};
    char *output;
    int rc = manifest_read(request->site->folder, &id, &manifest, &error);
    if (!rc && asprintf(&output, "%s/" LAYOUT_OUTBOX "/%" PRId64, request->site->conf->root, message->job) < 0)
        rc = error_set_system(&error, -ENOMEM, "name the folder of results");
    if (!rc) {
        crash_point("cluster_before_results");
        rc = manifest_collect(manifest, output, &request->site->stop, &error);
        crash_point("cluster_after_results");
        free(output);
    }
    if (rc == 0 || rc == -ENOENT)
        error = (struct error){0};
    const struct message_collected collected = {.job = message->job,
                                                .nonce = message->nonce,
                                                .has_ended = rc == 0,
                                                .code = error.code,
                                                .message = error.message};
    message_write_collected(slurm_request_reply(request), &collected);
    while (rc == 0 && manifest_next(manifest, &frame))
        proto_copy(slurm_request_reply(request), &frame);
    manifest_free(manifest);
}

/* ------------------------------------------------------------------------------ sweeping ---- */

void
slurm_request_dismiss(struct slurm_request *request)
{
    struct message_dismissed row;
    while (message_next_dismissed(&request->rows, &row)) {
        char *log;
        if (row.well && asprintf(&log, "%s/task-%s.log", request->site->folder, row.nonce) >= 0) {
            unlink(log);
            free(log);
        }
        const struct slurm_attempt_id id = slurm_request_id(row.job, row.number, row.nonce);
        const int rc = slurm_folder_remove(request->site->folder, &id);
        if (rc)
            log_warn("cluster.folder_stays", LOG_INT("job", row.job), LOG_STR("nonce", row.nonce),
                     LOG_STR("error", strerror(-rc)));
    }
}

void
slurm_request_cancel(struct slurm_request *request)
{
    struct error error;
    const int64_t id = request->message.cancel_task.slurm_id;
    if (slurm_cancel(id, &error))
        log_warn("cluster.not_cancelled", LOG_INT("slurm_id", id), LOG_STR("message", error.message));
}

/* Also removes logs of Slurm jobs that are a week old. */
void
slurm_request_list_folders(struct slurm_request *request)
{
    const time_t old = time(NULL) - 7 * 86400;
    struct stat status;
    DIR *directory;
    size_t rows = 0;
    if (file_open_directory(AT_FDCWD, request->site->folder, 0, &directory))
        return; /* not created yet, or the share is not mounted: the next start checks again */
    for (const struct dirent *entry; (entry = readdir(directory)) && !request->out_of_memory;) {
        struct slurm_attempt_id id;
        if (!slurm_folder_name_read(entry->d_name, &id)) {
            const int folder = dirfd(directory);
            if (strncmp(entry->d_name, "task-", 5) == 0 &&
                fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_mtime < old)
                unlinkat(folder, entry->d_name, 0);
            continue;
        }
        if (rows++ % ROWS_MAX == 0)
            message_write_folders(slurm_request_reply(request), &(struct message_folders){});
        if (!request->out_of_memory)
            message_add_folder(&request->answers[request->answer_count - 1],
                               &(struct message_folder){.job = id.job, .number = id.number, .nonce = id.nonce});
    }
    closedir(directory);
}
