/* web_api_rules.c - GET rules/try: the rules of the configuration in force, checked for a described series. */
#include "service/web/api/web_api.h"

#include "service/common/routing/routing_conditions.h"

#include <errno.h>
#include <string.h>

enum { TRY_MODALITY, TRY_BODY_PART, TRY_DESCRIPTION, TRY_SENDER, TRY_CALLED, TRY_INBOX };

const struct api_parameter web_api_rules_parameters[] = {
    [TRY_MODALITY] = {.key = "modality", .help = "Modality"},
    [TRY_BODY_PART] = {.key = "body_part", .help = "Body Part Examined"},
    [TRY_DESCRIPTION] = {.key = "description", .help = "Series Description"},
    [TRY_SENDER] = {.key = "sender", .help = "AE title of the sender"},
    [TRY_CALLED] = {.key = "called", .help = "AE title that it calls"},
    [TRY_INBOX] = {.key = "inbox", .help = "Name or path of the inbox; 404 if it is not configured"},
    {.key = NULL},
};

static void
rules_write_condition(void *context, const struct rules_condition *condition)
{
    struct json *json = context;
    json_begin_object(json, NULL);
    json_string(json, "condition", condition->text);
    json_boolean(json, "holds", !*condition->reason);
    json_string(json, "reason", condition->reason);
    json_end_object(json);
}

static void
rules_write(const struct conf_rule *rule, const struct rules_series *series, struct json *json)
{
    json_begin_object(json, NULL);
    json_integer(json, "rule", rule->number);
    json_string(json, "name", rule->name ? rule->name : "");
    json_string(json, "pipeline", rule->pipeline);
    json_begin_array(json, "conditions");
    const bool holds = conditions_hold(rule, series, NULL, rules_write_condition, json);
    json_end_array(json);
    json_boolean(json, "holds", holds);
    json_boolean(json, "otherwise", rule->otherwise);
    json_boolean(json, "depends_on_images",
                 rule->min_slices || rule->max_slices || rule->study_count > 0 || conditions_need_facts(rule));
    json_end_object(json);
}

int
web_api_rules_try(struct api_call *call, struct error *error)
{
    const struct conf *conf = call->web->conf;
    const char *texts[TRY_INBOX];
    const char *inbox = call->values[TRY_INBOX];
    for (int i = 0; i < TRY_INBOX; i++)
        texts[i] = call->values[i] ? call->values[i] : "";
    struct rules_series series = {.modality = texts[TRY_MODALITY],
                                  .body_part = texts[TRY_BODY_PART],
                                  .description = texts[TRY_DESCRIPTION],
                                  .sender = texts[TRY_SENDER],
                                  .called_ae = texts[TRY_CALLED]};
    for (size_t i = 0; inbox && i < conf->inbox_count && !series.inbox; i++)
        series.inbox = conf_inbox_is(&conf->inboxes[i], inbox) ? &conf->inboxes[i] : NULL;
    if (inbox && !series.inbox)
        return error_set(error, -ENOENT, CODE_NONE, "there is no such inbox");
    struct json json = {.out = call->out};
    json_begin_object(&json, NULL);
    json_begin_array(&json, "items");
    for (size_t i = 0; i < conf->rule_count; i++)
        rules_write(&conf->rules[i], &series, &json);
    json_end_array(&json);
    json_end_object(&json);
    fputc('\n', call->out);
    return 0;
}
