/* web_pages.c - the pages that consist of lists and something else. */
#include "service/web/web_view.h"

#include "db/report.h"

int
web_view_now(const struct web_view *view, struct error *error)
{
    static const enum report_list_name figures[] = {WEB_NOW, WEB_NOW_SERIES, WEB_NOW_DELIVERIES, REPORT_LIST_COUNT};

    static const enum report_list_name lists[] = {WEB_RUNNING, WEB_CONFIGURATION, REPORT_LIST_COUNT};

    fputs("<section id=\"alerts\"><h2>Alerts</h2>", view->out);
    if (view->web->alerts.list.count == 0)
        fputs("<p class=\"dim\">No alert, and no job waits for a condition.</p>", view->out);
    html_alerts(&view->web->alerts.list, NULL, NULL, view->out);
    fputs("</section>\n<div class=\"tiles\">\n", view->out);
    const int rc = web_view_lists(view, figures, error);
    fputs("</div>\n", view->out);
    return rc ? rc : web_view_lists(view, lists, error);
}

int
web_view_devices(const struct web_view *view, struct error *error)
{
    static const enum report_list_name lists[] = {WEB_DEVICES, WEB_DEVICE_EVENTS, WEB_PROGRAMS, REPORT_LIST_COUNT};

    const struct conf_compute *compute = &view->web->conf->compute;
    fputs("<section><h2>Configuration</h2><dl><dt>backend</dt><dd>", view->out);
    html_text(compute->backend, view->out);
    fputs("</dd><dt>devices</dt><dd>", view->out);
    for (size_t i = 0; i < compute->device_count; i++) {
        fputs(i ? ", " : "", view->out);
        html_text(compute->devices[i], view->out);
    }
    fprintf(view->out, "%s</dd><dt>jobs per device</dt><dd>%d</dd></dl></section>\n",
            compute->device_count ? "" : "all", compute->lanes);
    return web_view_lists(view, lists, error);
}

int
web_view_job(const struct web_view *view, struct error *error)
{
    static const enum report_list_name first[] = {WEB_JOB, WEB_JOB_SEGMENTS, WEB_JOB_QUANTITIES, REPORT_LIST_COUNT};

    static const enum report_list_name rest[] = {WEB_JOB_RESULTS, WEB_JOB_DELIVERIES, WEB_JOB_EVENTS,
                                                 REPORT_LIST_COUNT};

    const int rc = web_view_lists(view, first, error);
    if (rc)
        return rc;
    const int64_t job = web_request_number(view->request, REQUEST_id);
    if (!*view->request->values[REQUEST_list] && web_preview_is_there(view->web, job)) {
        fputs("<section class=\"preview\"><h2>Preview</h2>", view->out);
        web_preview_image(view, job);
        fputs("</section>\n", view->out);
    }
    return web_view_lists(view, rest, error);
}
