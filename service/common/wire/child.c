#include "service/common/wire/child.h"

#include "service/common/log.h"
#include "service/common/role.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define ALIVE_MS 5000

static void
child_log(const struct child *child, enum log_level level, const char *what, const char *why)
{
    char event[32];
    snprintf(event, sizeof event, "%s.%s", child->role->name, what);
    log_write(level, event, LOG_FIELDS(LOG_STR("why", why)));
}

static void
child_end(struct child *child)
{
    if (child->role->end)
        child->role->end(child->context);
    else
        uv_stop(child->loop);
}

void
child_fail(struct child *child, const char *why)
{
    child_log(child, LOG_ERROR, "protocol", why);
    child->failed = true;
    child_end(child);
}

void
child_note_failure(struct child *child, int error)
{
    child_log(child, LOG_ERROR, "protocol", strerror(-error));
    child->error = error;
    child->failed = true;
}

/* Transient errors: the process or the machine lacks a resource at present. */
int
child_start_status(int error)
{
    switch (-error) {
    case 0:
        return EXIT_SUCCESS;
    case ENOMEM:
    case ENOBUFS:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
        return EX_TEMPFAIL;
    default:
        return EXIT_FAILURE;
    }
}

int
child_status(const struct child *child)
{
    return child->failed && child->error == 0 ? EXIT_FAILURE : child_start_status(child->error);
}

/* A frame that cannot reach a daemon that exited is no failure: the end of the pipe is reported next. */
void
child_send(struct child *child, struct proto_writer *writer)
{
    const int error = channel_send(child->channel, writer);
    if (error && error != -EPIPE) {
        child_note_failure(child, error);
        child_end(child);
    }
}

/* Sends RENEW and logs the reason as ROLE.renew. DRAIN follows. */
static void
child_renew(struct child *child, const char *why)
{
    struct proto_writer writer;
    child_log(child, LOG_INFO, "renew", why); /* routine: another process replaces this one */
    message_write_renew(&writer, &(struct message_renew){.why = why});
    child_send(child, &writer);
}

static void
child_on_check(uv_work_t *check)
{
    struct child *child = check->data;
    child->missing = confine_lacks(&child->needed);
}

static void
child_after_check(uv_work_t *check, int status)
{
    struct child *child = check->data;
    child->checking = false;
    if (status == 0 && child->missing && !child->draining && !child->hung_up) {
        child->renewing = true;
        child_renew(child, "it needs access to a new folder");
    }
    places_free(&child->needed);
}

void
child_check_places(struct child *child, const struct conf *conf)
{
    if (child->checking || child->renewing || places_of(child->role->confined, conf, &child->needed) != 0)
        return;
    child->checking = true;
    child->check.data = child;
    if (uv_queue_work(child->loop, &child->check, child_on_check, child_after_check) != 0)
        child_after_check(&child->check, UV_ECANCELED); /* the next reload checks again */
}

static void
child_on_frame(void *context, struct channel *channel, struct proto_reader *reader)
{
    struct child *child = context;
    struct message_reload reload;
    (void)channel;
    if (reader->type == PROTO_RELOAD && message_read_reload(reader, &reload) == 0) {
        struct error error;
        struct conf *conf;
        int rc = conf_from_text(reload.config, &conf, &error);
        if (rc == 0) {
            log_set_level(conf->log_level);
            if (child->role->reload)
                rc = child->role->reload(child->context, conf, &error);
            else
                conf_free(conf);
        }
        if (rc)
            child_renew(child, error.message);
    } else if (reader->type != PROTO_DRAIN || proto_end(reader)) {
        child->role->message(child->context, reader);
    } else if (!child->draining) {
        child->draining = true;
        if (child->role->drain)
            child->role->drain(child->context);
        else
            uv_stop(child->loop);
    }
    if (proto_end(reader) && !child->failed)
        child_fail(child, message_name(reader->type));
}

static void
child_on_end(void *context, struct channel *channel, int status)
{
    struct child *child = context;
    (void)channel;
    child->hung_up = true;
    if (status && status != -ECONNRESET)
        child_note_failure(child, status);
    child_end(child);
}

static void
child_on_alive(uv_timer_t *timer)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_ALIVE);
    child_send(timer->data, &writer);
}

int
child_open(struct child *child, uv_loop_t *loop, const struct child_role *role, void *context)
{
    const struct channel_events events = {.frame = child_on_frame, .end = child_on_end, .context = child};
    const struct message_hello hello = {.role = role->name, .build_id = proto_build_id()};
    struct proto_writer writer;
    *child = (struct child){.role = role, .context = context, .loop = loop};
    int error = channel_open(loop, ROLE_FD, &events, &child->channel);
    if (error)
        return error;
    uv_timer_init(loop, &child->alive); /* cannot fail */
    child->alive.data = child;
    uv_timer_start(&child->alive, child_on_alive, ALIVE_MS, ALIVE_MS);
    message_write_hello(&writer, &hello);
    child_send(child, &writer);
    return 0;
}

void
child_close(struct child *child)
{
    channel_close(child->channel);
    uv_close((uv_handle_t *)&child->alive, NULL);
}

void
child_write_commitment(struct proto_writer *writer, int64_t token, const char *ae_title, const char *destination,
                       const struct dicom_commitment *commitment)
{
    const struct message_committed message = {.token = token,
                                              .ae_title = ae_title,
                                              .destination = destination,
                                              .transaction_uid = commitment->transaction_uid};
    message_write_committed(writer, &message);
    for (size_t i = 0; i < commitment->count; i++) {
        const struct dicom_commitment_reference *reference = &commitment->references[i];
        const struct message_reference row = {.sop_instance = reference->sop_instance_uid,
                                              .ok = reference->failure_reason == 0,
                                              .failure_reason = reference->failure_reason};
        message_add_reference(writer, &row);
    }
}
