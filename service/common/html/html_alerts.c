/* html_alerts.c - the list of alerts as HTML. */
#include "service/common/html/html.h"

static void
html_alert_time(const char *before, int64_t ms, FILE *out)
{
    if (ms <= 0)
        return;
    fputs(before, out);
    html_time_ms(ms, out);
}

static void
html_alert_code(const char *before, const char *text, const char *more, FILE *out)
{
    fprintf(out, "%s<code>", before);
    html_text(text, out);
    html_text(more, out);
    fputs("</code>", out);
}

static void
html_alert_acknowledgement(const struct alert *alert, FILE *out)
{
    fputs("Acknowledged by ", out);
    html_untrusted(alert->ack.by, out);
    html_alert_time(", ", alert->ack.at_ms, out);
    html_alert_time(", until ", alert->ack.until_ms, out);
    fputs(*alert->ack.reason ? ": " : "", out);
    html_untrusted(alert->ack.reason, out);
    html_alert_code(". ", "noctule ack --undo ", alert->id, out);
}

static void
html_alert(const struct alert *alert, FILE *out)
{
    const struct alert_row *row = alert_row(alert->kind);
    fputs("<p>", out);
    html_untrusted(alert->text, out);
    if (alert->severity == ALERT_WAITS) {
        fputs("</p>", out);
        return;
    }
    html_alert_time(", since ", alert->since_ms, out);
    fputs("</p><p class=\"do\">", out);
    if (alert->ack.by) {
        html_alert_acknowledgement(alert, out);
    } else {
        html_text(row->remedy, out);
        if (row->may_acknowledge)
            html_alert_code(*row->remedy ? ". To acknowledge: " : "To acknowledge: ", "noctule ack ", alert->id, out);
    }
    fputs("</p>", out);
}

/* Returns the mark of an alert with its word and the class of its row. */
static enum html_mark
html_alert_mark(const struct alert *alert, const char **word, const char **class)
{
    static const struct {
        const char *word, *class;
        enum html_mark mark;
    } kinds[] = {[ALERT_WAITS] = {"Waits", "waits", MARK_WAITING},
                 [ALERT_ATTENTION] = {"Attention", "attention", MARK_ATTENTION},
                 [ALERT_BROKEN] = {"Broken", "broken", MARK_FAILED}};

    const bool review = alert->kind == ALERT_review;
    *word = alert->ack.by ? "Known" : review ? "Review" : kinds[alert->severity].word;
    *class = alert->ack.by ? "known" : review ? "person" : kinds[alert->severity].class;
    return alert->ack.by ? MARK_NONE : review ? MARK_REVIEW : kinds[alert->severity].mark;
}

void
html_alerts(const struct alerts *alerts, void (*more)(const void *context, const struct alert *alert, FILE *out),
            const void *context, FILE *out)
{
    fputs("<ul class=\"alerts\">\n", out);
    for (size_t i = 0; i < alerts->count; i++) {
        const char *word, *class;
        const struct alert *alert = &alerts->items[i];
        const enum html_mark mark = html_alert_mark(alert, &word, &class);
        fprintf(out, "<li class=\"%s\"", class);
        if (alert->severity != ALERT_WAITS) {
            fputs(" data-alert=\"", out);
            html_text(alert->id, out);
            fputs("\"", out);
        }
        fputs(">", out);
        html_mark(mark, word, out);
        fputs("<div>", out);
        html_alert(alert, out);
        fputs("</div>", out);
        if (more)
            more(context, alert, out);
        fputs("</li>\n", out);
    }
    fputs("</ul>", out);
}
