/* alert_json.c - the list of alerts as JSON. */
#include "service/common/alert/alert_list.h"

#include "db/iso_time.h"
#include "service/common/json.h"

static void
alert_json_time(struct json *json, const char *key, int64_t ms)
{
    char text[ISO_TIME_SIZE];
    if (ms > 0 && iso_time_from_ms(ms, text) == 0)
        json_string(json, key, text);
    else
        json_null(json, key);
}

void
alerts_to_json(const struct alerts *alerts, const char *key, struct json *json)
{
    static const char *const words[] = {"waits", "attention", "broken"};

    json_begin_array(json, key);
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        json_begin_object(json, NULL);
        json_string(json, "id", alert->id);
        json_string(json, "severity", words[alert->severity]);
        alert_json_time(json, "since", alert->since_ms);
        json_string(json, "text", alert->text);
        json_string(json, "remedy", alert_row(alert->kind)->remedy);
        json_boolean(json, "may_acknowledge", alert_row(alert->kind)->may_acknowledge);
        if (alert->ack.by) {
            json_begin_object(json, "acknowledged");
            alert_json_time(json, "at", alert->ack.at_ms);
            json_string(json, "by", alert->ack.by);
            json_string(json, "reason", alert->ack.reason);
            alert_json_time(json, "until", alert->ack.until_ms);
            json_end_object(json);
        } else {
            json_null(json, "acknowledged");
        }
        json_end_object(json);
    }
    json_end_array(json);
}
