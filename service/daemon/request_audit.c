/* request_audit.c - the audit row of an operator's request. Declared in daemon.h. */
#include "service/daemon/daemon.h"

#include "service/common/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The texts of an audit row. */
struct audited {
    struct queue_audit row;
    char subject[300], value[32];
};

static void
audit_job(struct audited *audited, const char *action, int64_t job)
{
    audited->row.action = action;
    audited->row.job_id = job;
    snprintf(audited->subject, sizeof audited->subject, "job %" PRId64, job);
}

/* Names a delivery instead of a job. 0: the subject stays the job. */
static void
audit_delivery(struct audited *audited, int64_t delivery)
{
    if (delivery)
        snprintf(audited->subject, sizeof audited->subject, "delivery %" PRId64, delivery);
}

static void
audit_resend(struct audited *audited, const struct message_resend *resend)
{
    audit_job(audited, "resend", resend->job);
    audit_delivery(audited, resend->delivery);
    if (!resend->delivery && !resend->job)
        snprintf(audited->subject, sizeof audited->subject, "destination %s", resend->destination);
}

static void
audit_hold(struct audited *audited, const struct control_request *request)
{
    const struct message_hold *hold = &request->message.hold;
    audited->row.action = request->type == PROTO_HOLD ? "hold" : "release";
    audited->row.reason = hold->reason;
    audited->row.job_id = strcmp(hold->kind, "job") == 0 ? strtoll(hold->name, NULL, 10) : 0;
    snprintf(audited->subject, sizeof audited->subject, "%s%s%s", hold->kind, *hold->name ? " " : "", hold->name);
}

/* Returns false if the request is no decision. */
static bool
audit_describe(const struct control_request *request, struct audited *audited)
{
    const union message_any *message = &request->message;
    audited->row.reason = "";
    switch (request->type) {
    case PROTO_ACCEPT:
        audit_job(audited, "accept", message->accept.job);
        audit_delivery(audited, message->accept.delivery);
        audited->row.reason = message->accept.reason;
        return true;
    case PROTO_REJECT:
        audit_job(audited, "reject", message->reject.job);
        audit_delivery(audited, message->reject.delivery);
        audited->row.reason = message->reject.reason;
        return true;
    case PROTO_UNDO:
        audit_job(audited, "undo", message->undo.job);
        return true;
    case PROTO_RETRY:
        audit_job(audited, "retry", message->retry.job);
        return true;
    case PROTO_CANCEL:
        audit_job(audited, "cancel", message->cancel.job);
        return true;
    case PROTO_PRIORITY:
        audit_job(audited, "priority", message->priority.job);
        snprintf(audited->value, sizeof audited->value, "%" PRId64, message->priority.priority);
        audited->row.reason = audited->value;
        return true;
    case PROTO_RESEND:
        audit_resend(audited, &message->resend);
        return true;
    case PROTO_HOLD:
    case PROTO_RELEASE:
        audit_hold(audited, request);
        return true;
    case PROTO_QUARANTINE:
        audited->row.action = message->quarantine.action;
        snprintf(audited->subject, sizeof audited->subject, "file %" PRId64, message->quarantine.number);
        return true;
    case PROTO_DECIDE:
        audited->row.action = message->decide.action;
        audited->row.reason = message->decide.reason;
        snprintf(audited->subject, sizeof audited->subject, "%s", message->decide.subject);
        return true;
    case PROTO_ACK:
        audited->row.action = message->ack.undo ? "unacknowledge" : "acknowledge";
        audited->row.reason = message->ack.reason;
        snprintf(audited->subject, sizeof audited->subject, "alert %s", message->ack.alert);
        return true;
    case PROTO_IDENTITY:
        audited->row.action = "identity";
        snprintf(audited->subject, sizeof audited->subject, "pseudonym %s", message->identity.word);
        return true;
    case PROTO_COMPLETE:
        audited->row.action = "complete";
        snprintf(audited->subject, sizeof audited->subject, "series %s", message->complete.series_uid);
        return true;
    default:
        return false;
    }
}

int
request_audit(struct core *core, const struct control_request *request, const char *by)
{
    struct audited audited = {0};
    if (!audit_describe(request, &audited))
        return 0;
    const struct request_person *person = request->person;
    audited.row.subject = audited.subject;
    audited.row.actor = by;
    audited.row.how = person ? person->how : "command";
    audited.row.role = person ? person->role : "operator";
    audited.row.address = person ? person->address : "";
    audited.row.seen = person ? person->seen : "";
    return queue_add_audit(core->queue, &audited.row, clock_unix_ms());
}
