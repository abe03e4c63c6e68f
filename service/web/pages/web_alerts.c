#include "service/web/pages/web_alerts.h"

#include "db/iso_time.h"
#include "service/common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRESH_MS 1000

void
web_alerts_receive(struct web_alerts *alerts, struct proto_reader *reader, int64_t now_ms)
{
    struct message_alerts message;
    if (message_read_alerts(reader, &message))
        return;
    char *lines = strdup(message.lines);
    if (!lines)
        return;
    free(alerts->lines);
    alerts->lines = lines;
    alerts->received_ms = now_ms;
}

int
web_alerts_make(struct web_alerts *alerts, const struct conf *conf, struct report *report, int64_t now_ms,
                struct error *error)
{
    if (alerts->made_ms > 0 && now_ms - alerts->made_ms < FRESH_MS)
        return 0;
    alerts_clear(&alerts->list);
    alerts->made_ms = 0;
    if (!alerts->lines || now_ms - alerts->received_ms > 1000 * WEB_ALERTS_SECONDS)
        alerts_add(&alerts->list, ALERT_daemon, "", ALERT_BROKEN, 0, "noctuled has not reported for %d s",
                   WEB_ALERTS_SECONDS);
    else
        alerts_from_lines(&alerts->list, alerts->lines);
    const int rc = alerts_collect(&alerts->list, conf, report, clock_unix_ms(), error);
    if (rc == 0)
        alerts->made_ms = now_ms;
    return rc;
}

void
web_alerts_clear(struct web_alerts *alerts)
{
    free(alerts->lines);
    alerts_clear(&alerts->list);
    *alerts = (struct web_alerts){0};
}

bool
web_alerts_write(const struct alerts *alerts, bool with_subject, FILE *out)
{
    bool is_ready = true;
    for (size_t i = 0; i < alerts->count; i++)
        is_ready = is_ready && alerts->items[i].severity != ALERT_BROKEN;
    if (is_ready)
        fputs("ok\n", out);
    for (size_t i = 0; i < alerts->count; i++) {
        char since[ISO_TIME_SIZE];
        const struct alert *alert = &alerts->items[i];
        const struct alert_row *row = alert_row(alert->kind);
        const bool has_since = alert->since_ms > 0 && iso_time_from_ms(alert->since_ms, since) == 0;
        if (alert->severity == ALERT_WAITS)
            continue;
        fprintf(out, "%s: %s (%s%s%s%s)\n", with_subject ? alert->id : row->name, row->message,
                alert_words[alert->severity], alert->ack.by ? ", acknowledged" : "", has_since ? ", since " : "",
                has_since ? since : "");
    }
    return is_ready;
}
