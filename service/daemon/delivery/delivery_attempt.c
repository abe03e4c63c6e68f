#include "service/daemon/delivery/delivery_attempt.h"

#include "base/test_hook.h"
#include "base/text.h"
#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_BYTES 512

struct delivery_attempt *
delivery_attempt_new(struct attempts *attempts, struct queue_delivery *delivery)
{
    struct delivery_attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt)
        return NULL;
    attempt_add(attempts, &attempt->base, delivery->id);
    attempt->delivery = *delivery;
    attempt->delivery.attempts++;
    *delivery = (struct queue_delivery){0};
    return attempt;
}

static void
delivery_attempt_free(struct attempt *base)
{
    struct delivery_attempt *attempt = (struct delivery_attempt *)base;
    queue_delivery_clear(&attempt->delivery);
    free(attempt->frame);
    free(attempt);
}

void
delivery_attempt_set_outcome(struct delivery_attempt *attempt, enum proto_delivery end, enum code code,
                             const char *message)
{
    attempt->end = end;
    attempt->answer = (struct queue_attempt){.dimse_status = -1, .code = code, .message = message};
    attempt->transaction_uid = "";
}

void
delivery_attempt_end(struct delivery_attempt *attempt)
{
    static const char *const names[] = {
        [PROTO_DELIVERY_SENT] = "SENT",
        [PROTO_DELIVERY_TRANSIENT] = "TRANSIENT",
        [PROTO_DELIVERY_PERMANENT] = "PERMANENT",
        [PROTO_DELIVERY_RETURNED] = "RETURNED",
    };
    const struct queue_delivery *delivery = &attempt->delivery;
    attempt_end(&attempt->base);
    log_write(attempt->end == PROTO_DELIVERY_SENT ? LOG_INFO : LOG_WARN, "delivery.ended",
              LOG_FIELDS(LOG_INT("delivery", delivery->id), LOG_INT("job", delivery->job_id),
                         LOG_STR("destination", delivery->destination), LOG_INT("attempt", delivery->attempts),
                         LOG_STR("outcome", names[attempt->end]), LOG_INT("dimse_status", attempt->answer.dimse_status),
                         LOG_STR("code", code_name(attempt->answer.code)),
                         LOG_STR("message", attempt->answer.message)));
}

static bool
is_uid_or_empty(const char *text)
{
    return !*text || text_is_uid(text);
}

static bool
is_for_review(enum code code)
{
    return code == CODE_BURNED_IN_TEXT || code == CODE_ISSUERS_DIFFER;
}

int
delivery_attempt_read(struct delivery_attempt *attempt, struct proto_reader *reader, struct message_delivered *message)
{
    const bool requested = message->commitment == PROTO_COMMITMENT_REQUESTED;
    if (message->outcome < PROTO_DELIVERY_SENT || message->outcome > PROTO_DELIVERY_RETURNED ||
        message->dimse_status < -1 || message->dimse_status > UINT16_MAX ||
        message->commitment < PROTO_COMMITMENT_NONE || message->commitment > PROTO_COMMITMENT_REFUSED ||
        (message->commitment != PROTO_COMMITMENT_NONE && message->outcome != PROTO_DELIVERY_SENT) ||
        requested != (*message->transaction_uid != 0) || !is_uid_or_empty(message->sent_sop_class) ||
        !is_uid_or_empty(message->sent_transfer_syntax) || !is_uid_or_empty(message->sent_sop_instance) ||
        is_for_review(message->code) != (*message->held != '\0'))
        return -EBADMSG;
    attempt->frame = message_keep_delivered(reader, message);
    if (!attempt->frame)
        return -ENOMEM;
    attempt->end = (enum proto_delivery)message->outcome;
    attempt->answer = (struct queue_attempt){
        .dimse_status = (int32_t)message->dimse_status,
        .code = message->code,
        .message = message->message,
        .sent_class = message->sent_sop_class,
        .sent_syntax = message->sent_transfer_syntax,
        .sent_instance = message->sent_sop_instance,
        .held_digest = message->held,
    };
    attempt->transaction_uid = message->transaction_uid;
    attempt->commitment_refused = message->commitment == PROTO_COMMITMENT_REFUSED;
    return 0;
}

int
delivery_try_later(struct core *core, const struct queue_delivery *delivery, const struct queue_attempt *answer)
{
    const struct conf_delivery *settings = &core->conf->delivery;
    int64_t now_ms = clock_unix_ms();
    double age_seconds = (double)(now_ms - delivery->since_ms) / 1000;
    if (age_seconds >= settings->give_up_seconds) {
        char message[MESSAGE_BYTES];
        snprintf(message, sizeof message, "%s%sgiven up after %.1f hours", answer->message,
                 *answer->message ? "; " : "", age_seconds / 3600);
        const struct queue_attempt last = {
            .dimse_status = answer->dimse_status, .code = answer->code, .message = message};
        return queue_fail_delivery(core->queue, delivery->id, &last, now_ms);
    }
    int64_t wait_ms =
        backoff_ms(settings->retry_seconds, settings->retry_max_seconds, delivery->attempts, delivery->id);
    return queue_delay_delivery(core->queue, delivery->id, now_ms + wait_ms, answer, now_ms);
}

static int
delivery_attempt_fail(struct attempt *base, enum code code, const char *message)
{
    const struct queue_attempt answer = {.dimse_status = -1, .code = code, .message = message};
    return queue_fail_delivery(base->all->core->queue, base->id, &answer, clock_unix_ms());
}

/* Returns the destination of an object that this one cannot store, or NULL if no destination takes its kind. */
static const char *
delivery_fallback(const struct conf *conf, const struct queue_delivery *delivery)
{
    const struct conf_destination *destination = conf_find_destination(conf, delivery->destination);
    const struct conf_destination *fallback =
        destination && destination->fallback ? conf_find_destination(conf, destination->fallback) : NULL;
    char takes[CONF_TAKES], kind[CONF_TAKES];
    if (!fallback)
        return NULL;
    conf_takes(fallback, takes);
    snprintf(kind, sizeof kind, " %s ", delivery->kind);
    return takes[0] && !strstr(takes, kind) ? NULL : fallback->name;
}

static int
delivery_attempt_write(struct attempt *base)
{
    const struct delivery_attempt *attempt = (const struct delivery_attempt *)base;
    struct core *core = base->all->core;
    const char *fallback = delivery_fallback(core->conf, &attempt->delivery);
    const int64_t now_ms = clock_unix_ms();
    int rc = attempt->confirmed ? queue_confirm_images(core->queue, base->id, attempt->confirmed, attempt->digest) : 0;
    if (rc)
        return rc;
    switch (attempt->end) {
    case PROTO_DELIVERY_SENT:
        rc = queue_delivery_sent(core->queue, base->id, &attempt->answer, attempt->transaction_uid, now_ms);
        if (rc == 0 && attempt->commitment_refused)
            rc = queue_commitment_refused(core->queue, base->id, &attempt->answer, now_ms);
        break;
    case PROTO_DELIVERY_TRANSIENT:
        rc = delivery_try_later(core, &attempt->delivery, &attempt->answer);
        break;
    case PROTO_DELIVERY_PERMANENT:
        if (attempt->answer.code == CODE_NO_PRESENTATION_CONTEXT && fallback) {
            log_info("delivery.redirected", LOG_INT("delivery", base->id),
                     LOG_STR("destination", attempt->delivery.destination), LOG_STR("fallback", fallback));
            rc = queue_redirect_delivery(core->queue, base->id, fallback, &attempt->answer, now_ms);
        } else if (is_for_review(attempt->answer.code)) {
            rc = queue_hold_delivery(core->queue, base->id, &attempt->answer, now_ms);
        } else {
            rc = queue_fail_delivery(core->queue, base->id, &attempt->answer, now_ms);
        }
        break;
    case PROTO_DELIVERY_RETURNED:
        rc = queue_return_delivery(core->queue, base->id, attempt->answer.message, now_ms);
        break;
    }
    if (!rc)
        crash_point("daemon_after_delivered_before_commit");
    return rc;
}

static void
delivery_attempt_recorded(struct attempt *base)
{
    due_now(&base->all->core->deliveries_due);
}

const struct attempt_type delivery_attempt_type = {
    .subject = "delivery",
    .child = "courier",
    .action = "record how a delivery ended",
    .write = delivery_attempt_write,
    .fail = delivery_attempt_fail,
    .recorded = delivery_attempt_recorded,
    .free = delivery_attempt_free,
};
