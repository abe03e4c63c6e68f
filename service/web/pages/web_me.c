/* web_me.c - the person of a request and its session, for programs. Declared in web_api.h. */
#include "service/web/api/web_api.h"

#include "db/report.h"
#include "service/web/decide/web_decide.h"
#include "service/web/server/web_session.h"

static void
me_write(const struct web *web, const struct web_person *person, FILE *out)
{
    struct json json = {.out = out};
    struct error ignored;
    char form[WEB_SESSION_FORM] = "";
    json_begin_object(&json, NULL);
    if (*person->how) {
        json_string(&json, "name", person->name);
        web_session_form(&web->access, person, form);
    } else {
        json_null(&json, "name");
    }
    json_string(&json, "role", person_roles[person->role]);
    json_string(&json, "how", *person->how ? person->how : *web->access.token ? "token_file" : "none");
    json_begin_array(&json, "may");
    for (size_t i = 0; i < decision_rule_count; i++) {
        const struct decision_rule *rule = &decision_rules[i];
        if (!*person->how || decision_check(rule, &web->conf->page, person->name, person->role, &ignored) != 0)
            continue;
        json_begin_object(&json, NULL);
        json_string(&json, "action", rule->action);
        json_string(&json, "subject", rule->subject);
        json_boolean(&json, "needs_reason", rule->has_reason);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_string(&json, "form", form);
    json_end_object(&json);
    fputc('\n', out);
}

int
web_api_me(struct api_call *call, struct error *error)
{
    (void)error;
    me_write(call->web, call->request->person, call->out);
    return 0;
}

static void
me_answer(struct web *web, const struct web_person *person, struct web_reply *answer)
{
    answer->type = "application/json";
    me_write(web, person, answer->out);
}

/* The filters of this person only. */
int
web_api_views(struct api_call *call, struct error *error)
{
    const struct report_list *list = &report_browsed[BROWSE_FILTERS];
    char next[REPORT_MARK];
    call->browse.values[report_field_place(list, "person")] = call->request->person->name;
    call->browse.limit = API_LIMIT;
    fputs("{\"items\": ", call->out);
    const int rc = report_browse_print(call->web->report, list, &call->browse, REPORT_JSON, call->out, next, error);
    fputs("}\n", call->out);
    return rc;
}

int
web_api_log_in(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    struct web_person person = {.how = ""};
    const int rc = web_log_in_as(web, request, &person, answer, error);
    if (rc == 0)
        me_answer(web, &person, answer);
    return rc;
}

int
web_api_log_out(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    const int rc = web_session_leave(web, request, answer, error);
    if (rc == 0)
        me_answer(web, &(struct web_person){.how = ""}, answer);
    return rc;
}
