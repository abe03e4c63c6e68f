#include "service/daemon/jobs/uploads.h"

#include "base/durable.h"
#include "base/limits.h"
#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/common/slurm/slurm_digest.h"
#include "service/common/wire/handed.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define UPLOAD_NAME 20 /* "u" and 16 hexadecimal digits */

struct upload {
    TAILQ_ENTRY(upload) next;
    struct uploads *uploads;
    uv_work_t work;
    int64_t number, token; /* of EXAMINE; of the web UI, -1: it is gone */
    int64_t job, size;
    int source;                   /* -1: copied */
    bool is_copying, is_accepted; /* in the thread; its rows wait for the commit */
    char hidden[UPLOAD_NAME + 1]; /* ".NAME"; the name of the published file begins behind the dot */
    struct digest digest;
    int rc; /* of the copy */
    char *seen, *person, *how, *role, *address;
};

struct uploads {
    struct core *core;
    TAILQ_HEAD(all_uploads, upload) all;
    size_t count;
    int64_t last;
    bool is_closed;
};

static int
upload_open_folder(const struct core *core)
{
    char *path = core_path(core, LAYOUT_RELEASED);
    const int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const int rc = fd >= 0 ? fd : path ? -errno : -ENOMEM;
    free(path);
    return rc;
}

static void
upload_unlink(const struct upload *upload)
{
    const int folder = upload_open_folder(upload->uploads->core);
    if (folder < 0)
        return; /* uploads_sweep() does it */
    unlinkat(folder, upload->hidden, 0);
    close(folder);
}

static void
upload_free(struct upload *upload)
{
    struct uploads *uploads = upload->uploads;
    TAILQ_REMOVE(&uploads->all, upload, next);
    uploads->count--;
    if (upload->source >= 0)
        close(upload->source);
    free(upload->seen);
    free(upload->person);
    free(upload->how);
    free(upload->role);
    free(upload->address);
    free(upload);
    if (uploads->is_closed && uploads->count == 0)
        free(uploads);
}

/* Answers the web UI and frees the upload. */
static void
upload_answer(struct upload *upload, int status, const char *text)
{
    const struct core *core = upload->uploads->core;
    struct proto_writer writer;
    if (upload->token >= 0 && !upload->uploads->is_closed) {
        message_write_decided(&writer,
                              &(struct message_decided){.token = upload->token, .status = status, .message = text});
        pool_send(core->pool, core->web, &writer); /* -EPIPE: its browser gets no reply */
    }
    upload_free(upload);
}

/* Refuses the upload: its file is removed. */
static void
upload_refuse(struct upload *upload, int status, enum code code, const char *why)
{
    char text[1024];
    if (code)
        snprintf(text, sizeof text, "%s: %s. %s.", code_name(code), why, code_remedy(code));
    else
        snprintf(text, sizeof text, "%s", why);
    log_warn("upload.refused", LOG_INT("job", upload->job), LOG_STR("by", upload->person), LOG_STR("reason", text));
    upload_unlink(upload);
    upload_answer(upload, status, text);
}

/* -------------------------------------------------------------------------------- copying ---- */

static void
upload_copy(uv_work_t *work)
{
    struct upload *upload = work->data;
    crash_point("daemon_before_upload_copy");
    const int folder = upload_open_folder(upload->uploads->core);
    bool write_failed = false;
    int rc = folder;
    if (rc >= 0) {
        const int fd = durable_create(folder, upload->hidden, 0640);
        rc = fd < 0 ? fd : digest_file(upload->source, fd, &upload->digest, &write_failed);
        if (fd >= 0)
            rc = durable_finish(fd, rc);
        if (rc == 0)
            rc = durable_sync_folder(folder, ".");
        close(folder);
    }
    crash_point("daemon_after_upload_copy");
    upload->rc = rc;
}

static void
upload_on_copied(uv_work_t *work, int status)
{
    struct upload *upload = work->data;
    const struct core *core = upload->uploads->core;
    struct proto_writer writer;
    char path[sizeof LAYOUT_RELEASED + sizeof upload->hidden];
    upload->is_copying = false;
    close(upload->source);
    upload->source = -1;
    if (status == 0)
        status = upload->rc;
    if (upload->token < 0) {
        upload_unlink(upload);
        upload_free(upload);
        return;
    }
    if (status) {
        char why[200];
        snprintf(why, sizeof why, "the file cannot be stored: %s", strerror(-status));
        upload_refuse(upload, status == -ENOSPC || status == -EDQUOT ? -ENOSPC : -EIO, CODE_NONE, why);
        return;
    }
    snprintf(path, sizeof path, LAYOUT_RELEASED "/%s", upload->hidden);
    message_write_examine(&writer, &(struct message_examine){.number = upload->number, .path = path});
    if (pool_send(core->pool, core->receiver, &writer))
        upload_refuse(upload, -EBUSY, CODE_NONE, "the receiver is not ready: upload the file again");
}

/* Returns why the web UI's descriptor is no file in memory that it cannot change any more, or NULL. */
static const char *
upload_fault(struct upload *upload)
{
    struct stat status;
    const int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    const int seals = fcntl(upload->source, F_GET_SEALS);
    if (seals < 0 || (seals & needed) != needed || fstat(upload->source, &status) < 0)
        return "the file of the upload can still change";
    if (status.st_size <= 0 || status.st_size > (int64_t)LIMIT_PAGE_UPLOAD_MIB << 20)
        return "the file of the upload is empty or too large";
    upload->size = status.st_size;
    return NULL;
}

static int
upload_check_space(const struct core *core, int64_t size, struct error *error)
{
    double free_mib = 0;
    const int rc = spool_free_mib(core->root, &free_mib);
    if (rc == 0 && !core->disk_low && free_mib >= core->conf->min_free_mib + (double)size / (1 << 20))
        return 0;
    return error_set(error, -ENOSPC, CODE_NONE, "the disk of the service has too little free space (min_free_mib)");
}

static int
upload_check_job(struct core *core, int64_t job, const char *seen, struct error *error)
{
    const int rc = queue_check_correctable(core->queue, job, seen);
    return rc ? error_set(error, rc, CODE_NONE, "%s", queue_reason(core->queue)) : 0;
}

static struct upload *
upload_new(struct uploads *uploads, const struct message_upload *message)
{
    uint64_t random;
    struct upload *upload = calloc(1, sizeof *upload);
    if (!upload || getrandom(&random, sizeof random, 0) != sizeof random) {
        free(upload);
        return NULL;
    }
    *upload = (struct upload){.uploads = uploads,
                              .work.data = upload,
                              .number = ++uploads->last,
                              .token = message->token,
                              .job = message->job,
                              .source = -1,
                              .seen = strdup(message->seen),
                              .person = strdup(message->person),
                              .how = strdup(message->how),
                              .role = strdup(message->role),
                              .address = strdup(message->address)};
    snprintf(upload->hidden, sizeof upload->hidden, ".u%016" PRIx64, random);
    TAILQ_INSERT_TAIL(&uploads->all, upload, next);
    uploads->count++;
    if (upload->seen && upload->person && upload->how && upload->role && upload->address)
        return upload;
    upload_free(upload);
    return NULL;
}

int
uploads_begin(struct uploads *uploads, const struct message_upload *message, struct error *error)
{
    struct core *core = uploads->core;
    const int source = handed_take(pool_handed(core->pool, core->web), message->token);
    if (source < 0)
        return error_set(error, -EIO, CODE_NONE, "the file of the upload did not arrive");
    struct upload *upload = uploads->count < LIMIT_PAGE_UPLOADS ? upload_new(uploads, message) : NULL;
    if (!upload) {
        close(source);
        return error_set(error, -EDQUOT, CODE_NONE, "other uploads are being stored: wait");
    }
    upload->source = source;
    const char *fault = upload_fault(upload);
    int rc = fault ? error_set(error, -EINVAL, CODE_NONE, "%s", fault)
             : core_closed(core)
                 ? error_set(error, -EBUSY, CODE_NONE, "the service begins no work now: upload the file later")
                 : 0;
    if (rc == 0)
        rc = upload_check_job(core, upload->job, upload->seen, error);
    if (rc == 0)
        rc = upload_check_space(core, upload->size, error);
    if (rc == 0 && (rc = uv_queue_work(&core->loop, &upload->work, upload_copy, upload_on_copied)))
        error_set(error, rc, CODE_NONE, "the file cannot be stored: %s", strerror(-rc));
    upload->is_copying = rc == 0;
    if (rc)
        upload_free(upload);
    return rc;
}

/* ------------------------------------------------------------------------------ accepting ---- */

/* The row is on disk: the receiver may import the file. */
static void
upload_on_committed(void *context, int status)
{
    struct upload *upload = context;
    if (status) {
        upload_refuse(upload, -EIO, CODE_NONE, "the database cannot be written, so the file was not kept");
        return;
    }
    crash_point("daemon_after_upload_commit");
    const int folder = upload_open_folder(upload->uploads->core);
    if (folder < 0 || renameat(folder, upload->hidden, folder, upload->hidden + 1) < 0) /* the next start does it */
        log_error("upload.delayed", LOG_INT("job", upload->job), LOG_STR("error", strerror(errno)));
    if (folder >= 0)
        close(folder);
    crash_point("daemon_after_upload_publish");
    upload_answer(upload, 0, "the masks are received; a new job measures them, and comes under review");
}

/* Adds the rows of an upload. Returns 0 or -errno. */
static int
upload_add(const struct upload *upload, const struct queue_object *object)
{
    struct queue *queue = upload->uploads->core->queue;
    const int64_t now_ms = clock_unix_ms();
    char subject[32], reason[320];
    snprintf(subject, sizeof subject, "job %" PRId64, upload->job);
    snprintf(reason, sizeof reason, "%s %s, %" PRId64 " bytes, SHA-256 %s", object->kind, object->sop_instance_uid,
             upload->digest.size, upload->digest.sha256);
    const struct queue_audit row = {.action = "correct",
                                    .subject = subject,
                                    .job_id = upload->job,
                                    .reason = reason,
                                    .actor = upload->person,
                                    .how = upload->how,
                                    .role = upload->role,
                                    .address = upload->address,
                                    .seen = upload->seen};
    const int rc =
        queue_add_upload(queue, upload->hidden + 1, upload->job, upload->person, object->sop_instance_uid, now_ms);
    return rc ? rc : queue_add_audit(queue, &row, now_ms);
}

static void
upload_accept(struct upload *upload, const struct message_examined *examined)
{
    struct core *core = upload->uploads->core;
    struct error error = {0};
    const struct queue_object object = {.sop_instance_uid = examined->sop_instance,
                                        .sop_class_uid = examined->sop_class,
                                        .transfer_syntax_uid = examined->transfer_syntax,
                                        .series_uid = examined->series,
                                        .study_uid = examined->study,
                                        .kind = examined->object_kind,
                                        .label = examined->label,
                                        .description = examined->description,
                                        .made = examined->made,
                                        .person = *examined->person ? examined->person : upload->person,
                                        .path = upload->hidden,
                                        .source = RELEASED_SOURCE,
                                        .sender = "",
                                        .references = examined->references,
                                        .size = examined->size};
    if (!core_change(core)) {
        upload_refuse(upload, -EIO, CODE_NONE, "the database cannot be written: upload the file later");
        return;
    }
    int rc = upload_check_job(core, upload->job, upload->seen, &error);
    if (rc == 0)
        rc = corrections_try(core, &object, examined->regions, upload->job, &error);
    if (rc == 0)
        rc = upload_add(upload, &object);
    if (rc == 0) {
        log_info("upload.accepted", LOG_INT("job", upload->job), LOG_STR("by", upload->person),
                 LOG_STR("sop", object.sop_instance_uid), LOG_INT("bytes", upload->digest.size));
        upload->is_accepted = true;
        batch_on_commit(core->batch, upload_on_committed, upload);
        return;
    }
    if (error.code == CODE_NONE && !*error.message)
        core_failed(core, rc, "store an upload");
    upload_refuse(upload,
                  error.code == CODE_CORRECTION_LATE ? -ESTALE
                  : error.code                       ? -EBADMSG
                                                     : rc,
                  error.code, *error.message ? error.message : queue_reason(core->queue));
}

void
uploads_frame(struct uploads *uploads, struct proto_reader *reader)
{
    struct message_examined examined;
    if (message_read_examined(reader, &examined))
        return;
    struct upload *upload = TAILQ_FIRST(&uploads->all);
    while (upload && upload->number != examined.number)
        upload = TAILQ_NEXT(upload, next);
    if (!upload || upload->is_copying || upload->is_accepted)
        return;
    crash_point("daemon_at_examined");
    if (upload->token < 0) {
        upload_unlink(upload);
        upload_free(upload);
    } else if (examined.code) {
        upload_refuse(upload, -EBADMSG, examined.code, examined.message);
    } else {
        upload_accept(upload, &examined);
    }
}

/* --------------------------------------------------------------------------- start and end ---- */

void
uploads_receiver_gone(struct uploads *uploads)
{
    for (struct upload *upload = TAILQ_FIRST(&uploads->all), *next; upload; upload = next) {
        next = TAILQ_NEXT(upload, next);
        if (!upload->is_copying && !upload->is_accepted)
            upload_refuse(upload, -EBUSY, CODE_NONE, "the receiver has started again: upload the file again");
    }
}

void
uploads_web_gone(struct uploads *uploads)
{
    for (struct upload *upload = TAILQ_FIRST(&uploads->all); upload; upload = TAILQ_NEXT(upload, next))
        upload->token = -1;
}

int
uploads_open(struct core *core, struct uploads **opened)
{
    struct uploads *uploads = calloc(1, sizeof *uploads);
    if (!uploads)
        return -ENOMEM;
    uploads->core = core;
    TAILQ_INIT(&uploads->all);
    *opened = uploads;
    return 0;
}

void
uploads_close(struct uploads *uploads)
{
    if (!uploads)
        return;
    uploads->is_closed = true;
    uploads->count++; /* the last upload_free() frees it, which may follow later */
    for (struct upload *upload = TAILQ_FIRST(&uploads->all), *next; upload; upload = next) {
        next = TAILQ_NEXT(upload, next);
        upload->token = -1;
        if (upload->is_copying)
            continue; /* its callback frees it */
        upload_unlink(upload);
        upload_free(upload);
    }
    if (--uploads->count == 0)
        free(uploads);
}

void
uploads_sweep(struct core *core)
{
    struct queue_upload upload;
    const int folder = upload_open_folder(core);
    DIR *directory = folder < 0 ? NULL : fdopendir(folder);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        const bool is_hidden = *entry->d_name == '.';
        const char *name = entry->d_name + is_hidden;
        if (*name != 'u')
            continue;
        const int rc = queue_find_upload(core->queue, name, "", &upload);
        if (rc == 0 && is_hidden)
            renameat(folder, entry->d_name, folder, name);
        else if (rc == -ENOENT) /* never acknowledged, or stored already */
            unlinkat(folder, entry->d_name, 0);
        queue_upload_clear(&upload);
    }
    if (directory)
        closedir(directory);
    else if (folder >= 0)
        close(folder);
}

int
uploads_find(struct core *core, const char *source, const char *sop_instance_uid, struct queue_upload *upload,
             const char **name)
{
    const size_t length = strlen(RELEASED_SOURCE);
    const bool is_recovered = strcmp(source, QUEUE_SOURCE_RECOVERED) == 0;
    *upload = (struct queue_upload){0};
    *name = strncmp(source, RELEASED_SOURCE, length) == 0 ? source + length : "";
    return !is_recovered && !**name
               ? -ENOENT
               : queue_find_upload(core->queue, *name, is_recovered ? sop_instance_uid : "", upload);
}
