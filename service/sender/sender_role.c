/*
 * sender_role.c - the role that connects to destinations and archives: DELIVER, FIND and MOVE arrive over fd 3
 * (pull_archive.h), and their outcomes and reports of storage commitment are sent back.
 *
 * One libuv loop in the main thread owns the channel and one sender per destination in use
 * (sender.h). The senders' threads pass it complete frames. After RELOAD new senders are created
 * with the new destinations and certificates, while the old ones finish their current delivery. The
 * next process repeats a delivery that was unanswered when the pipe ended.
 */
#include "service/common/role.h"

#include "base/text.h"
#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"
#include "service/common/log.h"
#include "service/common/settings.h"
#include "service/common/wire/child.h"
#include "service/sender/pull_archive.h"
#include "service/sender/sender.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A sender in the list. A sender of older settings has been stopped. */
struct sender_entry {
    struct sender_entry *next;
    struct settings *settings;
    const struct conf_destination *destination;
    struct sender *sender;
};

struct sender_frame {
    struct sender_frame *next;
    struct proto_writer frame;
};

struct sender_process {
    struct child child;
    uv_loop_t loop;
    uv_async_t news; /* frames were queued, or a sender ended */
    struct settings *settings;
    struct pseudonym_key key;         /* of de-identified copies */
    char fingerprint[PSEUDONYM_SIZE]; /* "": there is no key */
    struct sender_entry *entries;
    struct pull_archive archive;
    pthread_mutex_t mutex;
    struct sender_frame *first, **last; /* guarded by the mutex, as is out_of_memory */
    bool out_of_memory;
};

/* ------------------------------------------------------------------------------- sending ---- */

/* Called in a sender's thread. */
static void
sender_role_on_frame(void *context, struct proto_writer *frame)
{
    struct sender_process *process = context;
    struct sender_frame *entry = calloc(1, sizeof *entry);
    pthread_mutex_lock(&process->mutex);
    if (entry) {
        entry->frame = *frame;
        *process->last = entry;
        process->last = &entry->next;
    } else {
        process->out_of_memory = true;
    }
    pthread_mutex_unlock(&process->mutex);
    if (!entry)
        proto_release(frame);
    uv_async_send(&process->news);
}

/* Called in a sender's thread. */
static void
sender_role_on_ended(void *context)
{
    struct sender_process *process = context;
    uv_async_send(&process->news);
}

static void
sender_role_end_if_idle(void *context)
{
    struct sender_process *process = context;
    if (process->child.draining && !process->entries && !process->archive.tasks)
        uv_stop(&process->loop);
}

static void
sender_role_on_news(uv_async_t *news)
{
    struct sender_process *process = news->data;
    /* Frees senders that have ended: first, so that the last frames of an ended sender are taken next. */
    for (struct sender_entry **place = &process->entries; *place;) {
        struct sender_entry *entry = *place;
        if (sender_has_ended(entry->sender)) {
            *place = entry->next;
            sender_close(entry->sender);
            settings_drop(entry->settings);
            free(entry);
        } else {
            place = &entry->next;
        }
    }
    pthread_mutex_lock(&process->mutex);
    struct sender_frame *frames = process->first;
    process->first = NULL;
    process->last = &process->first;
    const bool out_of_memory = process->out_of_memory;
    pthread_mutex_unlock(&process->mutex);
    if (out_of_memory)
        child_fail(&process->child, "no memory for a frame");
    if (frames) /* a folder, or the resolver's files, may have changed */
        child_check_places(&process->child, process->settings->conf);
    for (struct sender_frame *frame = frames, *next; frame; frame = next) {
        next = frame->next;
        child_send(&process->child, &frame->frame);
        free(frame);
    }
    sender_role_end_if_idle(process);
}

/* ------------------------------------------------------------------------------ messages ---- */

/* Returns the sender of a destination of the settings in force, created if necessary. */
static int
open_entry(struct sender_process *process, const struct conf_destination *destination, struct sender **out)
{
    struct sender_entry *entry = process->entries;
    while (entry && entry->destination != destination)
        entry = entry->next;
    if (entry) {
        *out = entry->sender;
        return 0;
    }
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return -ENOMEM;
    const struct sender_options options = {
        .destination = destination,
        .conf = process->settings->conf,
        .key = &process->key,
        .root = process->settings->conf->root,
        .dicom = &process->settings->conf->dicom,
        .tls = process->settings->tls,
        .events = {.frame = sender_role_on_frame, .ended = sender_role_on_ended, .context = process}};
    int error = sender_open(&options, &entry->sender);
    if (error) {
        free(entry);
        return error;
    }
    entry->destination = destination;
    entry->settings = settings_keep(process->settings);
    entry->next = process->entries;
    process->entries = entry;
    *out = entry->sender;
    return 0;
}

/* Reports a delivery that did not start. */
static void
send_untried(struct sender_process *process, int64_t delivery, enum proto_delivery outcome, enum code code,
             const char *why)
{
    struct proto_writer writer;
    const struct message_delivered untried = {.delivery = delivery,
                                              .outcome = outcome,
                                              .dimse_status = -1,
                                              .code = code,
                                              .message = why,
                                              .commitment = PROTO_COMMITMENT_NONE};
    message_write_delivered(&writer, &untried);
    child_send(&process->child, &writer);
}

static bool
is_file_name(const char *name)
{
    const size_t length = strlen(name);
    return length > 0 && length < SENDER_NAME && *name != '.' && !strchr(name, '/');
}

static void
handle_deliver(struct sender_process *process, struct proto_reader *reader)
{
    struct message_deliver message;
    struct error reason;
    struct sender *sender;
    if (message_read_deliver(reader, &message) != 0)
        return;
    const struct conf_destination *destination = conf_find_destination(process->settings->conf, message.destination);
    const bool is_object = text_is_uid(message.sop_class) && text_is_uid(message.sop_instance);
    const bool is_images = strcmp(message.kind, CONF_KIND_IMAGES) == 0;
    const bool is_file = is_file_name(message.name) && is_file_name(message.source);
    if (message.confirmed < 0 || message.issuers < 0 || *message.file != '/' ||
        (!is_object && !is_file)) { /* the UID becomes a file name */
        reader->error = -EBADMSG;
        return;
    }
    /* RELOAD removed its destination, or replaced a folder by an AE, or the process is ending. */
    if (!destination || (!is_object && !is_images && !destination->folder) || process->child.draining) {
        send_untried(process, message.delivery, PROTO_DELIVERY_RETURNED, CODE_RETURNED,
                     "It was not tried: the destination is gone, or the courier is ending.");
    } else if (destination->deidentify && (!*process->fingerprint || strcmp(process->fingerprint, message.key) != 0)) {
        pseudonym_refuse_key(&reason);
        send_untried(process, message.delivery, PROTO_DELIVERY_TRANSIENT, reason.code, reason.message);
    } else if (open_entry(process, destination, &sender) != 0 || sender_deliver(sender, &message) != 0) {
        child_fail(&process->child, "no memory or thread for a delivery");
    }
}

static void
sender_role_on_message(void *context, struct proto_reader *reader)
{
    struct sender_process *process = context;
    switch (reader->type) {
    case PROTO_DELIVER:
        handle_deliver(process, reader);
        break;
    case PROTO_FIND:
    case PROTO_MOVE:
    case PROTO_STOP_PULL:
        pull_archive_handle(&process->archive, process->settings, reader);
        break;
    default:
        reader->error = -EBADMSG;
    }
}

static void
stop_entries(struct sender_process *process)
{
    for (struct sender_entry *entry = process->entries; entry; entry = entry->next)
        sender_stop(entry->sender);
}

static int
sender_role_on_reload(void *context, struct conf *conf, struct error *error)
{
    struct sender_process *process = context;
    struct settings *settings;
    int rc = settings_open_all(conf, false, &settings, error);
    if (rc)
        return rc;
    stop_entries(process);
    settings_drop(process->settings);
    process->settings = settings;
    child_check_places(&process->child, settings->conf);
    return 0;
}

static void
sender_role_on_drain(void *context)
{
    struct sender_process *process = context;
    stop_entries(process);
    pull_archive_stop(&process->archive);
    sender_role_end_if_idle(process);
}

static const struct child_role sender_child_role = {.name = "courier",
                                                    .confined = CONFINE_COURIER,
                                                    .message = sender_role_on_message,
                                                    .reload = sender_role_on_reload,
                                                    .drain = sender_role_on_drain};

/* ---------------------------------------------------------------------------- the process ---- */

/* Serves until the daemon ends it. After DRAIN it waits for senders that are in an association with
 * a slow peer. After a hang-up it exits at once, since their outcomes cannot be sent. */
static int
sender_role_run(struct sender_process *process)
{
    struct child *child = &process->child;
    int error = uv_loop_init(&process->loop);
    if (error)
        return error;
    process->news.data = process;
    error = uv_async_init(&process->loop, &process->news, sender_role_on_news);
    if (error == 0) {
        error = call_filter_install(CONFINE_COURIER);
        if (error == 0)
            error = child_open(child, &process->loop, &sender_child_role, process);
        if (error == 0) {
            uv_run(&process->loop, UV_RUN_DEFAULT);
            if (child->hung_up || child->failed)
                _exit(child_status(child));
            child_close(child);
        }
        uv_close((uv_handle_t *)&process->news, NULL);
    }
    uv_run(&process->loop, UV_RUN_DEFAULT);
    uv_loop_close(&process->loop);
    return error;
}

int
sender_main(const struct role_args *args)
{
    struct sender_process process = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    process.last = &process.first;
    process.archive = (struct pull_archive){&process.child, NULL, sender_role_end_if_idle, &process};
    dicom_init();
    struct conf *conf;
    struct error reason;
    int error = conf_load(args->config_file, &conf, &reason);
    if (error) {
        log_error("courier.config", LOG_STR("error", reason.message));
        return child_start_status(error);
    }
    log_set_level(conf->log_level);
    error = settings_open(conf, false, &process.settings, &reason);
    if (error)
        return child_start_status(error);
    if (reason.code != CODE_NONE) /* unusable certificates affect only destinations with TLS */
        log_error("courier.tls", LOG_STR("code", code_name(reason.code)), LOG_STR("message", reason.message));
    /* Before the process is confined: no role may open the key later. */
    if (pseudonym_key_read(process.settings->conf->root, &process.key) != 0 ||
        pseudonym_key_fingerprint(&process.key, process.fingerprint) != 0)
        process.fingerprint[0] = '\0';
    error = confine_self(CONFINE_COURIER, process.settings->conf);
    if (!error)
        error = sender_role_run(&process);
    settings_drop(process.settings);
    if (error)
        log_error("courier.start", LOG_STR("error", strerror(-error)));
    return child_start_status(error);
}
