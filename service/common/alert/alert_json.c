/* alert_json.c - the list of alerts as JSON. */
#include "service/common/alert/alert_list.h"

#include "service/common/json.h"

void
alerts_to_json(const struct alerts *alerts, const char *key, struct json *json)
{
    json_begin_array(json, key);
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        json_begin_object(json, NULL);
        json_string(json, "id", alert->id);
        json_string(json, "severity", alert_words[alert->severity]);
        json_time(json, "since", alert->since_ms);
        json_string(json, "text", alert->text);
        json_string(json, "remedy", alert_row(alert->kind)->remedy);
        json_boolean(json, "may_acknowledge", alert_row(alert->kind)->may_acknowledge);
        if (alert->ack.by) {
            json_begin_object(json, "acknowledged");
            json_time(json, "at", alert->ack.at_ms);
            json_string(json, "by", alert->ack.by);
            json_string(json, "reason", alert->ack.reason);
            json_time(json, "until", alert->ack.until_ms);
            json_end_object(json);
        } else {
            json_null(json, "acknowledged");
        }
        json_end_object(json);
    }
    json_end_array(json);
}
