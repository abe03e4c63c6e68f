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
    fputs("<span class=\"dim\">", out);
    html_alert_time(" since ", alert->since_ms, out);
    fputs("</span></p><p class=\"do\">", out);
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

    static const struct {
        enum alert_kind kind;
        const char *word;
        enum html_mark mark;
    } waits[] = {{ALERT_held, "Held", MARK_HELD},
                 {ALERT_window, "Window", MARK_WAITING},
                 {ALERT_receiving, "Receiving", MARK_RECEIVING},
                 {ALERT_pulls, "Retrieval", MARK_RUNNING}};

    const bool review = alert->kind == ALERT_review;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (waits[i].kind == alert->kind) {
            *word = waits[i].word;
            *class = "waits";
            return waits[i].mark;
        }
    *word = alert->ack.by ? "Known" : review ? "Review" : kinds[alert->severity].word;
    *class = alert->ack.by ? "known" : review ? "person" : kinds[alert->severity].class;
    return alert->ack.by ? MARK_NONE : review ? MARK_REVIEW : kinds[alert->severity].mark;
}

size_t
html_alerts(const struct alerts *alerts, bool waits, html_alert_more *more, const void *context, FILE *out)
{
    size_t count = 0;
    for (size_t i = 0; i < alerts->count; i++) {
        const char *word, *class;
        const struct alert *alert = &alerts->items[i];
        if ((alert->severity == ALERT_WAITS) != waits)
            continue;
        const enum html_mark mark = html_alert_mark(alert, &word, &class);
        fprintf(out, "%s<li class=\"%s\"", count++ ? "" : "<ul class=\"alerts\">\n", class);
        if (!waits) {
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
    fputs(count ? "</ul>" : "", out);
    return count;
}
