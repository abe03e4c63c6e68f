#include "service/web/decide/web_decide.h"

#include "db/report.h"
#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/common/wire/messages.h"
#include "service/web/api/web_api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------- decision ---- */

void
web_decision_free(struct web_decision *decision)
{
    if (decision)
        web_form_free(&decision->form);
    free(decision);
}

void
web_decision_write(const struct web_decision *decision, int64_t token, struct proto_writer *writer)
{
    const struct web_person *person = &decision->person;
    char *const *values = decision->form.values;
    if (decision->upload) {
        message_write_upload(writer, &(struct message_upload){.token = token,
                                                              .job = decision->job,
                                                              .seen = values[FORM_seen],
                                                              .person = person->name,
                                                              .how = person->how,
                                                              .role = person_roles[person->role],
                                                              .address = decision->address});
        return;
    }
    message_write_decide(writer, &(struct message_decide){.token = token,
                                                          .action = values[FORM_action],
                                                          .subject = values[FORM_subject],
                                                          .reason = values[FORM_reason],
                                                          .value = decision->value,
                                                          .seen = values[FORM_seen],
                                                          .person = person->name,
                                                          .how = person->how,
                                                          .role = person_roles[person->role],
                                                          .address = decision->address});
}

void
web_decision_return(const char *back, struct web_reply *answer)
{
    /* the path and values of a page of ours: no other site, no other header */
    static const char characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789?=&._~%+-";
    const bool fits = *back && strlen(back) <= 1000 && back[strspn(back, characters)] == '\0';
    answer->status = HTTP_SEE_OTHER;
    answer->location = strdup(fits ? back : "./"); /* without memory the page says that it is done */
    fputs("done\n", answer->out);
    answer->type = "text/plain; charset=utf-8";
}

/* Returns 0, or -errno with a message. */
static int
decision_check_values(struct web_decision *decision, const struct conf_page *page, struct error *error)
{
    char *const *values = decision->form.values;
    const struct web_person *person = &decision->person;
    const char *name, *value = values[FORM_value];
    const struct decision_rule *rule = decision_find(values[FORM_action], values[FORM_subject], &name);
    if (!rule)
        return error_set(error, -EINVAL, CODE_NONE, "there is no such decision");
    const int rc = decision_check(rule, page, *person->how ? person->name : "", person->role, error);
    if (rc)
        return rc;
    if (rule->has_reason && !*values[FORM_reason])
        return error_set(error, -EINVAL, CODE_NONE, "%s of a %s must have a reason", rule->action, rule->subject);
    if (strlen(values[FORM_reason]) > DECISION_REASON || strlen(values[FORM_seen]) > DECISION_REASON)
        return error_set(error, -EINVAL, CODE_NONE, "the reason and the version must have at most %d bytes each",
                         DECISION_REASON);
    const size_t digits = strspn(value + (*value == '-'), "0123456789");
    if (value[digits + (*value == '-')] || digits > 9 || (strcmp(rule->action, "priority") == 0) != (digits > 0))
        return error_set(error, -EINVAL, CODE_NONE, "value must be the whole number of a priority");
    decision->value = strtoll(value, NULL, 10);
    return 0;
}

/* Makes the form of a filter one of a decision. */
static int
decision_of_filter(struct web_decision *decision, struct error *error)
{
    static char save[] = "save";
    char list[DECISION_LIST], **values = decision->form.values;
    const int length =
        snprintf(decision->subject, sizeof decision->subject, "filter %s %s", values[FORM_list], values[FORM_name]);
    if (length >= (int)sizeof decision->subject || !decision_split_filter(strchr(decision->subject, ' ') + 1, list))
        return error_set(error, -EINVAL, CODE_NONE, "list must be work or deliveries, and name must have 1 to %d bytes",
                         DECISION_FILTER_NAME);
    if (!decision_is_filter(values[FORM_filter]))
        return error_set(error, -EINVAL, CODE_NONE,
                         "filter must be the query of the list's address, at most %d bytes, without text: a text can "
                         "name a patient",
                         DECISION_REASON);
    values[FORM_action] = save;
    values[FORM_subject] = decision->subject;
    values[FORM_reason] = values[FORM_filter];
    return 0;
}

/* Sets the action and the subject that the address has. */
static int
decision_read_path(const struct web_request *request, struct web_decision *decision, struct error *error)
{
    char name[API_VALUE], **values = decision->form.values;
    const struct api_route *route = web_api_find_decision(request->path, name);
    if (!route || !route->subject)
        return 0;
    const char *fault = web_api_decision_fault(route, values[FORM_action], values[FORM_subject]);
    if (fault)
        return error_set(error, -EINVAL, CODE_NONE, "%s", fault);
    const int length = snprintf(decision->subject, sizeof decision->subject, "%s %s", route->subject, name);
    if (length < 0 || (size_t)length >= sizeof decision->subject || !web_form_is_line(name))
        return error_set(error, -EINVAL, CODE_NONE, "the name in the address is too long, or no line of UTF-8");
    values[FORM_subject] = decision->subject;
    if (!route->actions[1]) {
        snprintf(decision->action, sizeof decision->action, "%s", route->actions[0]);
        values[FORM_action] = decision->action;
    }
    return 0;
}

static int
decision_make(struct web *web, const struct web_request *request, bool of_filter, struct web_reply *answer,
              struct error *error)
{
    struct web_decision *decision = calloc(1, sizeof *decision);
    if (!decision)
        return error_set_system(error, -ENOMEM, "decide");
    decision->person = *request->person;
    snprintf(decision->address, sizeof decision->address, "%s", request->address);
    int rc = web_form_read(request, web->report, &decision->form, error);
    if (rc == 0) {
        const char *fault = web_session_fault(&web->access, request, request->person, decision->form.values[FORM_form]);
        if (fault)
            rc = error_set(error, -EACCES, CODE_NONE, "%s", fault);
    }
    if (rc == 0 && of_filter)
        rc = decision_of_filter(decision, error);
    if (rc == 0)
        rc = decision_read_path(request, decision, error);
    if (rc == 0)
        rc = decision_check_values(decision, &web->conf->page, error);
    if (rc == 0 && !web_rate_use(&web->decisions, request->person->name, clock_steady_ms()))
        rc = error_set(error, -EDQUOT, CODE_NONE, "more than %d decisions in a minute: wait", WEB_RATE_BURST);
    if (rc == 0)
        answer->decision = decision;
    else
        web_decision_free(decision);
    return rc;
}

int
web_decide(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    return decision_make(web, request, false, answer, error);
}

int
web_save_filter(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    return decision_make(web, request, true, answer, error);
}

/* ---------------------------------------------------------------------------------- login ---- */

int
web_view_login(const struct web_view *view, struct error *error)
{
    if (!view->web->conf->page.tokens_file)
        return error_set(error, -ENOENT, CODE_NONE, "this web UI has no login (page.tokens_file)");
    fputs("<section class=\"login\"><form method=\"post\" action=\"login\"><label for=\"secret\">Token</label>"
          "<input id=\"secret\" name=\"secret\" type=\"password\" autocomplete=\"current-password\" required "
          "maxlength=\"500\"><button class=\"primary\">Log in</button></form></section>\n",
          view->out);
    return 0;
}

int
web_log_in_as(struct web *web, const struct web_request *request, struct web_person *found, struct web_reply *answer,
              struct error *error)
{
    struct web_form form;
    const char *fault = web_session_foreign(&web->access, request);
    if (fault)
        return error_set(error, -EACCES, CODE_NONE, "%s", fault);
    int rc = web_form_read(request, web->report, &form, error);
    const struct person *person = rc ? NULL : web_session_find(&web->access, form.values[FORM_secret]);
    if (rc == 0 && !person)
        rc = error_set(error, -EPERM, CODE_NONE, "this token is not known");
    if (rc == 0) {
        log_info("page.login", LOG_STR("person", person->name));
        web_session_cookie(&web->access, person, strncmp(request->origin, "https", 5) == 0, answer->cookie,
                           sizeof answer->cookie);
        *found = (struct web_person){.how = "token", .role = person->role};
        memcpy(found->name, person->name, sizeof found->name);
    }
    web_form_free(&form);
    return rc;
}

int
web_log_in(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    struct web_person ignored;
    const int rc = web_log_in_as(web, request, &ignored, answer, error);
    if (rc == 0)
        web_decision_return("", answer);
    return rc;
}

int
web_session_leave(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    struct web_form form;
    int rc = web_form_read(request, web->report, &form, error);
    if (rc == 0) {
        const char *fault = web_session_fault(&web->access, request, request->person, form.values[FORM_form]);
        if (fault)
            rc = error_set(error, -EACCES, CODE_NONE, "%s", fault);
    }
    if (rc == 0)
        web_session_cookie(&web->access, NULL, strncmp(request->origin, "https", 5) == 0, answer->cookie,
                           sizeof answer->cookie);
    web_form_free(&form);
    return rc;
}

int
web_log_out(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    const int rc = web_session_leave(web, request, answer, error);
    if (rc == 0)
        web_decision_return("login", answer);
    return rc;
}

/* ---------------------------------------------------------------------------------- forms ---- */

void
web_form_field(FILE *out, const char *name, const char *value)
{
    fprintf(out, "<input type=\"hidden\" name=\"%s\" value=\"", name);
    html_text(value, out);
    fputs("\">", out);
}

bool
web_may(const struct web_view *view, const char *action, const char *subject)
{
    const char *name;
    struct error error;
    const struct web_person *person = view->request->person;
    const struct decision_rule *rule = decision_find(action, subject, &name);
    return rule && person && *person->how &&
           decision_check(rule, &view->web->conf->page, person->name, person->role, &error) == 0;
}

void
web_form_token(const struct web_view *view)
{
    char form[WEB_SESSION_FORM];
    web_session_form(&view->web->access, view->request->person, form);
    web_form_field(view->out, "form", form);
}

bool
web_form_begin(const struct web_view *view, const char *action, const char *subject, const char *back)
{
    const struct web_request *request = view->request;
    if (!web_may(view, action, subject))
        return false;
    fputs("<form class=\"decide\" method=\"post\" action=\"decide\">", view->out);
    web_form_token(view);
    web_form_field(view->out, "action", action);
    web_form_field(view->out, "subject", subject);
    if (back)
        web_form_field(view->out, "back", back);
    else
        fprintf(view->out, "<input type=\"hidden\" name=\"back\" value=\"%s",
                request->path[1] ? request->path + 1 : "./");
    for (int i = 0, count = 0; i < REQUEST_VALUE_COUNT && !back; i++) {
        if (!*request->values[i])
            continue;
        fprintf(view->out, "%s%s=", count++ ? "&amp;" : "?", web_request_value_names[i]);
        html_query(request->values[i], view->out);
    }
    if (!back)
        fputs("\">", view->out);
    return true;
}

void
web_form_write(const struct web_view *view, const char *action, const char *subject, const char *label)
{
    if (web_form_begin(view, action, subject, NULL))
        fprintf(view->out, "<button>%s</button></form>\n", label);
}

void
web_person_write(const struct web *web, const struct web_request *request, FILE *out)
{
    char form[WEB_SESSION_FORM];
    const struct web_person *person = request->person;
    if (person && *person->how) {
        fputs("<span class=\"you\">", out);
        html_untrusted(person->name, out);
        fprintf(out, " (%s)</span>", person_roles[person->role]);
    }
    if (!web->conf->page.tokens_file || !person || *request->authorization)
        return;
    if (strcmp(person->how, "token") == 0) {
        web_session_form(&web->access, person, form);
        fputs("<form class=\"decide\" method=\"post\" action=\"logout\">", out);
        web_form_field(out, "form", form);
        fputs("<button>Log out</button></form>", out);
    } else if (!*person->how) {
        fputs("<a href=\"login\">Log in</a>", out);
    }
}
