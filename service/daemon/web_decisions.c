/*
 * web_decisions.c - decisions of persons in the web UI: checks the person again and handles each as the request of a
 * command. The web process is not trusted: it talks to browsers. Declared in daemon.h.
 */
#include "service/daemon/daemon.h"

#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/decisions/decisions.h"
#include "service/common/log.h"
#include "service/daemon/jobs/uploads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sets the role that the person has now. Returns 0 or -errno with a text. */
static int
web_find_role(const struct conf_page *page, const char *name, const char *how, enum person_role *role,
              struct error *error)
{
    struct persons persons;
    if (strcmp(how, "proxy") == 0 && page->user_header && person_is_name(name)) {
        *role = person_proxy_role(page, name);
        return 0;
    }
    if (strcmp(how, "token") != 0 || !page->tokens_file)
        return error_set(error, -EACCES, CODE_NONE, "the configuration in force does not authenticate this person");
    int rc = persons_read(page->tokens_file, &persons, error);
    if (rc)
        return rc;
    const struct person *person = persons_find(&persons, name);
    if (person)
        *role = person->role;
    else
        rc = error_set(error, -EACCES, CODE_NONE, "page.tokens_file has no person of this name any more");
    persons_free(&persons);
    return rc;
}

/* The number in a subject such as "job 12"; 0: none. */
static int64_t
web_number(const char *name)
{
    const size_t length = strlen(name);
    return length < 19 && strspn(name, "0123456789") == length ? strtoll(name, NULL, 10) : 0;
}

/* Fills the request of a command that makes a decision on a job, or on a delivery under review. Returns false if there
 * is none. */
static bool
web_fill_job(const struct message_decide *decide, const char *name, bool is_delivery, struct control_request *request)
{
    const int64_t number = web_number(name), job = is_delivery ? 0 : number, delivery = is_delivery ? number : 0;
    union message_any *message = &request->message;
    const char *action = decide->action;
    if (strcmp(action, "accept") == 0) {
        request->type = PROTO_ACCEPT;
        message->accept =
            (struct message_accept){.job = job, .delivery = delivery, .reason = decide->reason, .login = ""};
    } else if (strcmp(action, "reject") == 0) {
        request->type = PROTO_REJECT;
        message->reject =
            (struct message_reject){.job = job, .delivery = delivery, .reason = decide->reason, .login = ""};
    } else if (strcmp(action, "undo") == 0) {
        request->type = PROTO_UNDO;
        message->undo = (struct message_undo){.job = job, .login = ""};
    } else if (strcmp(action, "retry") == 0) {
        request->type = PROTO_RETRY;
        message->retry = (struct message_retry){.job = job};
    } else if (strcmp(action, "cancel") == 0) {
        request->type = PROTO_CANCEL;
        message->cancel = (struct message_cancel){.job = job};
    } else if (strcmp(action, "priority") == 0) {
        request->type = PROTO_PRIORITY;
        message->priority = (struct message_priority){.job = job, .priority = decide->value, .login = ""};
    } else {
        return false;
    }
    return number > 0;
}

static bool
web_fill(const struct message_decide *decide, const struct decision_rule *rule, const char *name,
         struct control_request *request)
{
    union message_any *message = &request->message;
    const bool releases = strcmp(rule->action, "release") == 0;
    if (strcmp(rule->subject, "filter") == 0) {
        request->type = PROTO_DECIDE;
        message->decide = *decide;
        return true;
    }
    if (strcmp(rule->subject, "file") == 0) {
        request->type = PROTO_QUARANTINE;
        message->quarantine =
            (struct message_quarantine){.action = rule->action, .number = web_number(name), .login = ""};
        return message->quarantine.number > 0;
    }
    if (strcmp(rule->subject, "alert") == 0) {
        request->type = PROTO_ACK;
        message->ack = (struct message_ack){
            .alert = name, .undo = strcmp(rule->action, "unacknowledge") == 0, .reason = decide->reason, .login = ""};
        return true;
    }
    if (strcmp(rule->subject, "series") == 0) {
        request->type = PROTO_COMPLETE;
        message->complete = (struct message_complete){.series_uid = name, .login = ""};
        return true;
    }
    if (releases || strcmp(rule->action, "hold") == 0) {
        request->type = releases ? PROTO_RELEASE : PROTO_HOLD;
        message->hold =
            (struct message_hold){.kind = rule->subject, .name = name, .reason = decide->reason, .login = ""};
        return true;
    }
    if (strcmp(rule->action, "resend") == 0) {
        const bool one = strcmp(rule->subject, "delivery") == 0;
        request->type = PROTO_RESEND;
        message->resend = (struct message_resend){
            .delivery = one ? web_number(name) : 0, .destination = one ? "" : name, .not_arrived = !one};
        return !one || message->resend.delivery > 0;
    }
    return web_fill_job(decide, name, strcmp(rule->subject, "delivery") == 0, request);
}

/* Returns 0 if the person may make this decision now, or -errno with a text. */
static int
web_check_person(const struct core *core, const struct decision_rule *rule, const char *person, const char *how,
                 const char *claimed, struct error *error)
{
    enum person_role role = PERSON_VIEWER;
    const struct conf_page *page = &core->conf->page;
    int rc = web_find_role(page, person, how, &role, error);
    if (rc == 0 && role != (enum person_role)person_role_of(claimed))
        rc = error_set(error, -EACCES, CODE_NONE, "the role of %s has changed: log in again", person);
    return rc ? rc : decision_check(rule, page, person, role, error);
}

/* Returns 0 with the request, or -errno with a text. */
static int
web_check(const struct core *core, const struct message_decide *decide, struct control_request *request,
          struct error *error)
{
    const char *name;
    const struct decision_rule *rule = decision_find(decide->action, decide->subject, &name);
    if (!rule || !web_fill(decide, rule, name, request))
        return error_set(error, -EINVAL, CODE_NONE, "there is no such decision");
    return web_check_person(core, rule, decide->person, decide->how, decide->role, error);
}

/* Answers a decision that is not made. */
static void
web_refuse_decision(const struct core *core, int64_t token, int status, const char *action, const char *person,
                    const char *why)
{
    struct proto_writer writer;
    log_warn("page.refused", LOG_STR("action", action), LOG_STR("by", person), LOG_STR("reason", why));
    message_write_decided(&writer, &(struct message_decided){.token = token, .status = status, .message = why});
    pool_send(core->pool, core->web, &writer);
}

static void
web_upload(struct core *core, struct proto_reader *reader)
{
    const char *name;
    struct message_upload upload;
    struct error error = {0};
    if (message_read_upload(reader, &upload))
        return;
    crash_point("daemon_at_upload");
    int rc = web_check_person(core, decision_find("correct", "job 1", &name), upload.person, upload.how, upload.role,
                              &error);
    if (rc == 0)
        rc = uploads_begin(core->uploads, &upload, &error);
    if (rc)
        web_refuse_decision(core, upload.token, rc, "correct", upload.person, error.message);
}

/* Stores that a person has looked at a job. The web process cannot invent persons that the configuration lacks. */
static void
web_looked(struct core *core, struct proto_reader *reader)
{
    struct message_looked looked;
    struct error error = {0};
    enum person_role role = PERSON_VIEWER;
    if (message_read_looked(reader, &looked))
        return;
    if (web_find_role(&core->conf->page, looked.person, looked.how, &role, &error) != 0) {
        log_warn("page.refused", LOG_STR("action", "looked"), LOG_STR("by", looked.person),
                 LOG_STR("reason", error.message));
        return;
    }
    const struct queue_audit audit = {.job_id = looked.job,
                                      .actor = looked.person,
                                      .how = looked.how,
                                      .role = person_roles[role],
                                      .address = looked.address};
    if (core_change(core))
        core_failed(core, queue_add_look(core->queue, &audit, clock_unix_ms()), "note who looked at a job");
}

void
web_decisions_frame(struct core *core, struct proto_reader *reader)
{
    if (reader->type == PROTO_LOOKED) {
        web_looked(core, reader);
        return;
    }
    if (reader->type == PROTO_UPLOAD) {
        web_upload(core, reader);
        return;
    }
    struct message_decide decide;
    struct control_request request = {0};
    struct error error = {0};
    if (message_read_decide(reader, &decide))
        return; /* kept in the reader, as for every other message: the web UI must not send it */
    crash_point("daemon_at_decision");
    const struct request_person person = {decide.person, decide.how, decide.role, decide.address, decide.seen};
    const int rc = web_check(core, &decide, &request, &error);
    request.person = &person;
    if (rc == 0) {
        request_handle(core, NULL, decide.token, &request);
        return;
    }
    web_refuse_decision(core, decide.token, rc, decide.action, decide.person, error.message);
}
