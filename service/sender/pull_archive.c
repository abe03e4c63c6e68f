#include "service/sender/pull_archive.h"

#include "base/test_hook.h"
#include "service/common/pull/pull_query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pull_task {
    struct pull_task *next;
    uv_work_t work;
    struct pull_archive *archive;
    struct settings *settings;
    const struct conf_source *source; /* belongs to the settings */
    int64_t pull;
    bool moves;
    char accession_number[DICOM_ACCESSION_SIZE], study_uid[DICOM_UID_SIZE], series_uid[DICOM_UID_SIZE];
    char *file; /* of the series that the earlier study is for; NULL: another key */
    atomic_bool stop;
    /* The outcome. */
    enum proto_pull outcome;
    struct error error;
    struct pull_found found;
};

/* --------------------------------------------------------------------------------- thread --- */

/* Runs in a thread of the pool. */
static void
pull_task_run(uv_work_t *work)
{
    struct pull_task *task = work->data;
    const struct pull_request asking = {task->settings->conf, task->source, task->settings->tls, &task->stop};
    const struct pull_key key = {task->accession_number, task->study_uid, task->series_uid};
    struct dicom_answer answer;
    int rc;
    if (task->moves)
        rc = pull_move(&asking, task->study_uid, task->series_uid, &answer, &task->error);
    else if (task->file)
        rc = pull_find_prior(&asking, task->file, &task->found, &answer, &task->error);
    else
        rc = pull_find(&asking, &key, &task->found, &answer, &task->error);
    crash_point(task->moves ? "courier_after_move" : "courier_after_find");
    if (rc == 0) {
        task->outcome = PROTO_PULL_OK;
        task->error = (struct error){0};
    } else if (atomic_load(&task->stop)) {
        task->outcome = PROTO_PULL_RETURNED;
    } else {
        task->outcome = dicom_outcome_of(task->error.code, &answer) == DICOM_PERMANENT ? PROTO_PULL_PERMANENT
                                                                                       : PROTO_PULL_TRANSIENT;
    }
}

static void
pull_task_send_moved(const struct pull_task *task)
{
    struct proto_writer writer;
    const struct message_moved message = {
        .pull = task->pull, .outcome = task->outcome, .code = task->error.code, .message = task->error.message};
    message_write_moved(&writer, &message);
    child_send(task->archive->child, &writer);
}

static void
pull_task_send_found(const struct pull_task *task)
{
    struct proto_writer writer;
    const struct message_found message = {
        .pull = task->pull, .outcome = task->outcome, .code = task->error.code, .message = task->error.message};
    message_write_found(&writer, &message);
    for (size_t i = 0; task->outcome == PROTO_PULL_OK && i < task->found.count; i++) {
        const struct dicom_match *part = &task->found.parts[i];
        const struct message_part row = {part->study_uid, part->series_uid, part->instances};
        message_add_part(&writer, &row);
    }
    child_send(task->archive->child, &writer);
}

static void
pull_task_free(struct pull_task *task)
{
    settings_drop(task->settings);
    free(task->found.parts);
    free(task->file);
    free(task);
}

static void
pull_task_ended(uv_work_t *work, int status)
{
    struct pull_task *task = work->data;
    struct pull_archive *archive = task->archive;
    struct pull_task **place = &archive->tasks;
    while (*place != task)
        place = &(*place)->next;
    *place = task->next;
    if (status) /* it did not begin */
        task->outcome = PROTO_PULL_RETURNED;
    (task->moves ? pull_task_send_moved : pull_task_send_found)(task);
    pull_task_free(task);
    if (!archive->tasks)
        archive->idle(archive->context);
}

/* -------------------------------------------------------------------------------- frames --- */

/* Copies a string that was read. Returns false for a broken frame. */
static bool
pull_task_copy(char *to, size_t size, const char *text, struct proto_reader *reader)
{
    if (strlen(text) >= size)
        reader->error = -EBADMSG;
    else
        strcpy(to, text);
    return !reader->error;
}

/* Begins a FIND, or a MOVE, which has no accession number. */
static void
pull_archive_begin(struct pull_archive *archive, struct settings *settings, struct proto_reader *reader,
                   const struct message_find *message)
{
    struct pull_task *task = calloc(1, sizeof *task);
    if (task && *message->file && !(task->file = strdup(message->file))) {
        free(task);
        task = NULL;
    }
    if (!task) {
        child_fail(archive->child, "no memory for a pull");
        return;
    }
    task->archive = archive;
    task->settings = settings_keep(settings);
    task->source = conf_find_source(settings->conf, message->source);
    task->pull = message->pull;
    task->moves = reader->type == PROTO_MOVE;
    task->work.data = task;
    atomic_init(&task->stop, false);
    if (!pull_task_copy(task->accession_number, sizeof task->accession_number, message->accession, reader) ||
        !pull_task_copy(task->study_uid, sizeof task->study_uid, message->study, reader) ||
        !pull_task_copy(task->series_uid, sizeof task->series_uid, message->series, reader)) {
        pull_task_free(task);
        return;
    }
    task->next = archive->tasks;
    archive->tasks = task;
    if (task->source && !archive->child->draining &&
        uv_queue_work(archive->child->loop, &task->work, pull_task_run, pull_task_ended) == 0)
        return;
    /* A RELOAD removed its source, or the process is ending. */
    error_set(&task->error, -ECANCELED, CODE_RETURNED,
              "It was not tried: the source is gone, or the courier is ending.");
    pull_task_ended(&task->work, -ECANCELED);
}

void
pull_archive_handle(struct pull_archive *archive, struct settings *settings, struct proto_reader *reader)
{
    struct message_find find;
    struct message_move move;
    struct message_stop_pull stop;
    if (reader->type == PROTO_FIND) {
        if (message_read_find(reader, &find) == 0)
            pull_archive_begin(archive, settings, reader, &find);
    } else if (reader->type == PROTO_MOVE) {
        if (message_read_move(reader, &move) != 0)
            return;
        find = (struct message_find){.pull = move.pull,
                                     .source = move.source,
                                     .accession = "",
                                     .study = move.study,
                                     .series = move.series,
                                     .file = ""};
        pull_archive_begin(archive, settings, reader, &find);
    } else if (message_read_stop_pull(reader, &stop) == 0) {
        for (struct pull_task *task = archive->tasks; task; task = task->next)
            if (task->pull == stop.pull) /* else it has just ended */
                atomic_store(&task->stop, true);
    }
}

void
pull_archive_stop(struct pull_archive *archive)
{
    for (struct pull_task *task = archive->tasks; task; task = task->next)
        atomic_store(&task->stop, true);
}
