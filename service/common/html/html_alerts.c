/* html_alerts.c - the list of alerts as HTML. */
#include "service/common/html/html.h"

#include "db/iso_time.h"

#include <string.h>

static void
html_alert_time(const char *before, int64_t ms, FILE *out)
{
    char at[ISO_TIME_SIZE], shown[SHOWN_TIME];
    if (ms <= 0 || iso_time_from_ms(ms, at) != 0)
        return;
    shown_time(at, shown);
    fprintf(out, "%s<time datetime=\"%s\" title=\"%s\">%s</time>", before, at, at, shown);
}

static void
html_alert_code(const char *before, const char *text, const char *more, FILE *out)
{
    fprintf(out, "%s<code>", before);
    html_text(text, out);
    html_text(more, out);
    fputs("</code>", out);
}

void
html_alerts(const struct alerts *alerts, FILE *out)
{
    static const char *const words[][2] = {{"waits", "Waits"}, {"attention", "Attention"}, {"broken", "Broken"}};

    fputs("<ul class=\"alerts\">\n", out);
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        fprintf(out, "<li class=\"%s\"><span class=\"level\">%s</span> <div>",
                alert->ack.by ? "known" : words[alert->severity][0],
                alert->ack.by ? "Known" : words[alert->severity][1]);
        html_untrusted(alert->text, out);
        if (alert->severity != ALERT_WAITS) {
            html_alert_time(", since ", alert->since_ms, out);
            html_alert_code("<div class=\"small faint\">", alert->id, "", out);
            fputs(" ", out);
            const struct alert_row *row = alert_row(alert->kind);
            if (alert->ack.by) {
                fputs("Acknowledged by ", out);
                html_untrusted(alert->ack.by, out);
                html_alert_time(", ", alert->ack.at_ms, out);
                html_alert_time(", until ", alert->ack.until_ms, out);
                fputs(*alert->ack.reason ? ": " : "", out);
                html_untrusted(alert->ack.reason, out);
                html_alert_code(". ", "noctule ack --undo ", alert->id, out);
            } else {
                html_text(row->remedy, out);
                if (row->may_acknowledge)
                    html_alert_code(*row->remedy ? ". To acknowledge: " : "If it is known: ", "noctule ack ", alert->id,
                                    out);
            }
            fputs("</div>", out);
        }
        fputs("</div></li>\n", out);
    }
    fputs("</ul>", out);
}
