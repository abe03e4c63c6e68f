/*
 * arrivals.c - handles the receiver's reports: received instances and quarantined files become rows. Declared in
 * series.h.
 *
 * No state here must survive a restart: the receiver reports a row again that could not be committed, because it got no
 * STORED.
 */
#include "service/daemon/series/series.h"

#include "db/pull_queue.h"
#include "service/common/clock.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/common/slurm/slurm_digest.h"
#include "service/common/wire/messages.h"
#include "service/daemon/daemon.h"
#include "service/daemon/delivery/commitments.h"
#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/jobs/awaited.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/jobs/uploads.h"
#include "service/daemon/retention/retention.h"
#include "service/daemon/series/inspection.h"
#include "service/daemon/series/known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* Returns whether the file exists. If it was removed since the receiver saw it, sends GONE instead of STORED, and the
 * receiver imports it again. */
static bool
arrivals_file_exists(struct core *core, int64_t token, const char *path)
{
    struct proto_writer writer;
    char *whole = core_path(core, path);
    const bool there = !whole || access(whole, F_OK) == 0 || errno != ENOENT;
    free(whole);
    if (there)
        return true;
    log_warn("arrival.gone", LOG_INT("token", token));
    message_write_gone(&writer, &(struct message_gone){.token = token});
    pool_send(core->pool, core->receiver, &writer); /* -EPIPE: the next receiver scans again */
    return false;
}

struct receipt {
    struct core *core;
    int64_t token;
};

static void
arrivals_send_stored(void *context, int status)
{
    struct receipt *receipt = context;
    struct core *core = receipt->core;
    if (status == 0) {
        struct proto_writer writer;
        message_write_stored(&writer, &(struct message_stored){.token = receipt->token});
        /* -EPIPE: the next receiver reports it again */
        pool_send(core->pool, core->receiver, &writer);
    }
    free(receipt);
}

static void
arrivals_send_stored_on_commit(struct core *core, int64_t token)
{
    struct receipt *receipt = malloc(sizeof *receipt);
    if (!receipt)
        return; /* without STORED the receiver reports it again */
    *receipt = (struct receipt){core, token};
    batch_on_commit(core->batch, arrivals_send_stored, receipt);
}

/* Returns whether a path stays below the root. Paths come from the receiver, which parses untrusted files. */
static bool
arrivals_path_is_below_root(const char *path)
{
    return *path && *path != '/' && strncmp(path, "../", 3) != 0 && !strstr(path, "/../");
}

/* Makes the job that measures an uploaded mask. The object may have been stored before: the receiver may have been killed,
 * or another sender may have been faster. */
static int
arrivals_correct(struct core *core, int64_t id, const struct queue_object *object, const char *regions,
                 const struct queue_upload *upload, const char *name, bool *is_correction)
{
    int error = queue_is_correction(core->queue, id);
    *is_correction = error == 1;
    if (error == 0)
        error = corrections_object_arrived(core, id, object, regions, upload->job_id, is_correction);
    if (error >= 0 && *name)
        error = queue_end_upload(core->queue, name);
    return error > 0 ? 0 : error;
}

/* Adds an annotation object. It creates no series and no job by itself. */
static void
arrivals_add_object(struct core *core, const struct message_arrived *message)
{
    struct queue_upload upload;
    const char *name;
    const int uploaded = uploads_find(core, message->source, message->sop_instance, &upload, &name);
    char source[160];
    snprintf(source, sizeof source, "web:%s", uploaded == 0 ? upload.person : "");
    if (uploaded < 0 && uploaded != -ENOENT) {
        core_failed(core, uploaded, "find an upload");
        return;
    }
    const struct queue_object object = {
        .sop_instance_uid = message->sop_instance,
        .sop_class_uid = message->sop_class,
        .transfer_syntax_uid = message->transfer_syntax,
        .series_uid = message->series,
        .study_uid = message->study,
        .kind = message->object_kind,
        .label = message->label,
        .description = message->series_description,
        .made = message->made,
        .person = uploaded == 0 && !*message->person ? upload.person : message->person,
        .path = message->path,
        .source = uploaded == 0 ? source : message->source,
        .original_path = core->conf->retention.delete_originals ? message->original : "",
        .sender = message->sender,
        .references = message->references,
        .size = message->size,
        .replaced = core_count(message->replaced),
        .kept = {message->kept_key, message->kept_look},
    };
    enum queue_arrival arrival;
    int64_t id;
    int error = queue_add_object(core->queue, &object, clock_unix_ms(), &arrival, &id);
    bool is_correction = false;
    if (!error && uploaded == 0)
        error = arrivals_correct(core, id, &object, message->regions, &upload, name, &is_correction);
    else if (!error && (arrival == QUEUE_NEW || arrival == QUEUE_REPLACED))
        error = corrections_object_arrived(core, id, &object, message->regions, 0, &is_correction);
    if (!error && arrival != QUEUE_KNOWN && !is_correction)
        error = awaited_object_arrived(core, id, object.kind, object.sender);
    queue_upload_clear(&upload);
    if (core_failed(core, error, "store an object"))
        return;
    log_debug("object.stored", LOG_STR("sop", object.sop_instance_uid), LOG_STR("kind", object.kind),
              LOG_INT("new", arrival == QUEUE_NEW));
    arrivals_send_stored_on_commit(core, message->token);
    inspections_check_later(core->inspections); /* it may reopen a series for a new revision */
}

static void
arrivals_add_instance(struct core *core, const struct message_arrived *message, struct series_about *about)
{
    const struct queue_instance instance = {
        .sop_instance_uid = message->sop_instance,
        .sop_class_uid = message->sop_class,
        .transfer_syntax_uid = message->transfer_syntax,
        .series_uid = message->series,
        .study_uid = message->study,
        .modality = message->modality,
        .body_part = message->body_part,
        .series_description = message->series_description,
        .about = about,
        .frame_of_reference = message->frame_of_reference,
        .path = message->path,
        .sha256 = message->sha256,
        .source = message->source,
        .original_path = core->conf->retention.delete_originals ? message->original : "",
        .called_ae = message->called_ae,
        .sender = message->sender,
        .size = message->size,
        .frames = core_count(message->frames),
        .expected_instances = core_count(message->expected),
        .replaced = core_count(message->replaced),
        .kept = {message->kept_key, message->kept_look},
    };
    enum queue_arrival arrival;
    int64_t series_id;
    int error = pseudonym_of_series(&core->pseudonym_key, core->conf->identifiers, about);
    if (!error)
        error = queue_add_instance(core->queue, &instance, clock_unix_ms(), &arrival, &series_id);
    if (core_failed(core, error, "store an instance"))
        return;
    log_debug("instance.stored", LOG_STR("sop", instance.sop_instance_uid), LOG_STR("series", instance.series_uid),
              LOG_INT("new", arrival == QUEUE_NEW));
    arrivals_send_stored_on_commit(core, message->token);
    if (arrival != QUEUE_KNOWN)
        inspections_check_later(core->inspections);
}

/* Gives a released file the origin of its first arrival, and removes it from quarantine. */
static int
arrivals_take_released(struct core *core, struct message_arrived *message, struct released *released)
{
    int error = quarantine_release_find(core, message->source, released);
    if (error || !released->id)
        return error;
    message->source = released->source;
    message->sender = released->sender;
    message->called_ae = released->called_ae;
    error = queue_release_quarantine(core->queue, released->id, NULL, clock_unix_ms());
    if (error)
        quarantine_release_clear(released);
    else
        retention_sweep_now(core->retention);
    return error;
}

static void
arrivals_handle_arrived(struct core *core, struct proto_reader *reader)
{
    struct message_arrived message;
    struct series_about about;
    if (message_read_arrived(reader, &message))
        return;
    if (!arrivals_path_is_below_root(message.path) || (*message.sha256 && !digest_is_sha256(message.sha256)) ||
        (!*message.object_kind && !series_about_split(message.about, &about))) {
        reader->error = -EBADMSG;
        return;
    }
    if (!arrivals_file_exists(core, message.token, message.path) || !core_change(core))
        return;
    struct released released;
    const int error = arrivals_take_released(core, &message, &released);
    if (core_failed(core, error, "find a released file"))
        return;
    if (*message.object_kind)
        arrivals_add_object(core, &message);
    else
        arrivals_add_instance(core, &message, &about);
    quarantine_release_clear(&released);
}

/* Notes on the job that its uploaded mask cannot be used. Returns 0 or -errno. */
static int
arrivals_lose_upload(struct core *core, const struct message_quarantined *message)
{
    struct queue_upload upload;
    const char *name = strrchr(message->original, '/');
    int error = !name || !strstr(message->original, "/" LAYOUT_RELEASED "/")
                    ? -ENOENT
                    : queue_find_upload(core->queue, name + 1, "", &upload);
    if (error)
        return error == -ENOENT ? 0 : error;
    error = queue_refuse_correction(core->queue, upload.job_id, 0, message->code, message->message, clock_unix_ms());
    queue_upload_clear(&upload);
    return error ? error : queue_end_upload(core->queue, name + 1);
}

static void
arrivals_handle_quarantined(struct core *core, struct proto_reader *reader)
{
    struct message_quarantined message;
    if (message_read_quarantined(reader, &message))
        return;
    if (*message.path && !arrivals_path_is_below_root(message.path)) {
        reader->error = -EBADMSG;
        return;
    }
    if ((*message.path && !arrivals_file_exists(core, message.token, message.path)) || !core_change(core))
        return;
    struct released released;
    int error = quarantine_release_find(core, message.original, &released);
    if (core_failed(core, error, "find a released file"))
        return;
    const struct queue_quarantine file = {.path = message.path,
                                          .original_path = message.original,
                                          .series_uid = message.series,
                                          .sop_instance_uid = message.sop_instance,
                                          .called_ae = message.called_ae,
                                          .code = message.code,
                                          .message = message.message,
                                          .released = released.id};
    quarantine_release_clear(&released);
    error = queue_add_quarantine(core->queue, &file, clock_unix_ms());
    if (core_failed(core, error, "record a quarantined file"))
        return;
    if (core_failed(core, arrivals_lose_upload(core, &message), "note a quarantined upload"))
        return;
    /* The file name may be a patient's name: store it in the row, not in the log. */
    log_warn("file.quarantined", LOG_STR("code", code_name(message.code)), LOG_STR("series", message.series));
    arrivals_send_stored_on_commit(core, message.token);
    inspections_check_later(core->inspections); /* a series may lack this file */
}

static void
arrivals_handle_unwanted(struct core *core, struct proto_reader *reader)
{
    struct message_unwanted message;
    if (message_read_unwanted(reader, &message) || !core_change(core))
        return;
    const struct queue_unwanted instance = {.sop_instance_uid = message.sop_instance,
                                            .sop_class_uid = message.sop_class,
                                            .series_uid = message.series,
                                            .study_uid = message.study};
    if (core_failed(core, queue_add_unwanted(core->queue, &instance), "record an unwanted instance"))
        return;
    log_debug("instance.unwanted", LOG_STR("sop", message.sop_instance), LOG_STR("class", message.sop_class));
    arrivals_send_stored_on_commit(core, message.token);
}

static void
arrivals_handle_receiving(struct core *core, struct proto_reader *reader)
{
    struct message_receiving message;
    struct receiver_state *reception = &core->reception;
    if (message_read_receiving(reader, &message))
        return;
    reception->open = message.open != 0;
    reception->awaited = false;
    reception->since_ms = clock_unix_ms();
    snprintf(reception->problem, sizeof reception->problem, "%s", message.problem);
    if (*message.problem)
        log_error("reception.trouble", LOG_INT("open", reception->open), LOG_STR("why", reception->problem));
}

void
arrivals_frame(struct core *core, struct proto_reader *reader)
{
    if (reader->type == PROTO_ARRIVED)
        arrivals_handle_arrived(core, reader);
    else if (reader->type == PROTO_QUARANTINED)
        arrivals_handle_quarantined(core, reader);
    else if (reader->type == PROTO_UNWANTED)
        arrivals_handle_unwanted(core, reader);
    else if (reader->type == PROTO_CALLERS)
        callers_frame(core, reader);
    else if (reader->type == PROTO_EXAMINED)
        uploads_frame(core->uploads, reader);
    else if (reader->type == PROTO_INSPECTED)
        inspections_frame(core->inspections, reader);
    else if (reader->type == PROTO_ASK_KNOWN || reader->type == PROTO_FORGET)
        known_frame(core->known, reader);
    else if (reader->type == PROTO_RECEIVING)
        arrivals_handle_receiving(core, reader);
    else if (reader->type == PROTO_COMMITTED)
        commitments_handle(core->commitments, reader, true);
    else
        reader->error = -EBADMSG;
}

void
arrivals_receiver_ready(struct core *core)
{
    core->receiver_paused = false;
    inspections_listening(core->inspections, true);
    arrivals_pause_or_resume(core, "the daemon is not ready for more");
    inspections_check(core->inspections);
}

void
arrivals_receiver_gone(struct core *core, const struct pool_gone *gone)
{
    core->reception = (struct receiver_state){.since_ms = clock_unix_ms()};
    commitments_receiver_gone(core->commitments);
    inspections_listening(core->inspections, false);
    /* A lack of resources is not the fault of the files that it read. */
    inspections_receiver_gone(core->inspections, gone->exit_status != EX_TEMPFAIL);
    known_receiver_gone(core->known);
}

void
arrivals_pause_or_resume(struct core *core, const char *why)
{
    bool pause = core->disk_low || core->db_failed;
    if (core->receiver < 0 || pause == core->receiver_paused || !pool_ready(core->pool, core->receiver))
        return;
    core->receiver_paused = pause;
    inspections_listening(core->inspections, !pause);
    struct proto_writer writer;
    if (pause)
        message_write_pause(&writer, &(struct message_pause){.why = why});
    else
        proto_start(&writer, PROTO_RESUME);
    core_send_receiver(core, &writer);
    if (!pause)
        inspections_check(core->inspections);
}
