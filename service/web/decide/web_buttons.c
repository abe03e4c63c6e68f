/* web_buttons.c - the buttons of pages, for persons who may decide. Declared in web_decide.h. */
#include "service/web/decide/web_decide.h"

#include "db/report.h"

#include <inttypes.h>
#include <string.h>

#define SUBJECT 320

/* Writes a form with a field for a reason, which may stay empty. */
static void
button_with_reason(const struct web_view *view, const char *action, const char *subject, const char *label)
{
    if (!web_form_begin(view, action, subject, NULL))
        return;
    fputs(
        "<input name=\"reason\" maxlength=\"400\" autocomplete=\"off\" placeholder=\"Reason\" aria-label=\"Reason to ",
        view->out);
    html_text(action, view->out);
    fputs(" ", view->out);
    html_text(subject, view->out);
    fprintf(view->out, "\"><button>%s</button></form>\n", label);
}

void
web_alert_buttons(const void *context, const struct alert *alert, FILE *out)
{
    char subject[SUBJECT];
    const struct web_view *view = context;
    (void)out; /* that of the view */
    snprintf(subject, sizeof subject, "alert %s", alert->id);
    if (alert->ack.by)
        web_form_write(view, "unacknowledge", subject, "End acknowledgement");
    else if (alert_row(alert->kind)->may_acknowledge)
        button_with_reason(view, "acknowledge", subject, "Acknowledge");
}

void
web_destination_buttons(const struct web_view *view, const char *destination, bool is_held)
{
    char subject[SUBJECT];
    snprintf(subject, sizeof subject, "destination %s", destination);
    web_form_write(view, is_held ? "release" : "hold", subject, is_held ? "Release" : "Hold");
    if (!is_held)
        web_form_write(view, "resend", subject, "Try now");
}

void
web_delivery_buttons(const struct web_view *view, const char *delivery, const char *version)
{
    char subject[SUBJECT];
    snprintf(subject, sizeof subject, "delivery %.20s", delivery);
    if (web_form_begin(view, "accept", subject, NULL)) {
        web_form_field(view->out, "seen", version);
        fputs("<button class=\"yes\">Send it</button></form>\n", view->out);
    }
    if (web_form_begin(view, "reject", subject, NULL)) {
        web_form_field(view->out, "seen", version);
        fprintf(view->out,
                "<input name=\"reason\" maxlength=\"400\" autocomplete=\"off\" required placeholder=\"Reason\" "
                "aria-label=\"Reason to reject %s\"><button class=\"no\">Reject</button></form>\n",
                subject);
    } else {
        fprintf(view->out, "<span class=\"small dim\">noctule accept --delivery %.20s, or reject</span>", delivery);
    }
}

static void
file_write_buttons(const void *context, const struct report_table *files, size_t row)
{
    char subject[SUBJECT];
    snprintf(subject, sizeof subject, "file %.20s", report_cell(files, row, "number"));
    web_form_write(context, "release", subject, "Release");
    web_form_write(context, "forget", subject, "Forget");
}

int
web_view_quarantine(const struct web_view *view, struct error *error)
{
    const struct html_buttons buttons = {file_write_buttons, view};
    return web_view_list(view, WEB_QUARANTINED, web_may(view, "release", "file 1") ? &buttons : NULL, error);
}

static void
job_priority_form(const struct web_view *view, const char *subject, const char *priority)
{
    if (!web_form_begin(view, "priority", subject, NULL))
        return;
    fprintf(view->out,
            "<label>Priority <input type=\"number\" name=\"value\" min=\"%d\" max=\"%d\" value=\"%s\" required></label>"
            "<button>Set</button></form>\n",
            CONF_MIN_PRIORITY, CONF_MAX_PRIORITY, priority);
}

int
web_job_buttons(const struct web_view *view, int64_t job, struct error *error)
{
    struct report_table table;
    char subject[SUBJECT];
    snprintf(subject, sizeof subject, "job %" PRId64, job);
    if (!web_may(view, "retry", subject))
        return 0;
    const int rc =
        report_page(view->web->report, WEB_JOB_STATE, &(struct report_query){.after = "", .job = job}, &table, error);
    if (rc < 0)
        return rc;
    const char *state = table.row_count > 0 ? report_cell(&table, 0, "state") : "";
    const bool waits = strcmp(state, "READY") == 0 || strcmp(state, "DELAYED") == 0;
    const bool is_over = strcmp(state, "FAILED") == 0 || strcmp(state, "CANCELLED") == 0;
    const bool runs = strcmp(state, "RUNNING") == 0;
    if ((waits || is_over || runs) && report_number(&table, 0, "superseded") == 0) {
        fputs("<section class=\"buttons\"><h2>Decide</h2><div class=\"body\">", view->out);
        if (waits && report_number(&table, 0, "held") != 0)
            web_form_write(view, "release", subject, "Release");
        else if (waits)
            button_with_reason(view, "hold", subject, "Hold");
        if (waits)
            job_priority_form(view, subject, report_cell(&table, 0, "priority"));
        if (is_over || strcmp(state, "DELAYED") == 0)
            web_form_write(view, "retry", subject, "Run again");
        if (waits || runs)
            web_form_write(view, "cancel", subject, "Cancel");
        fputs("</div></section>\n", view->out);
    }
    report_table_free(&table);
    return 0;
}
