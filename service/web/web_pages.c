/* web_pages.c - the pages that consist of lists. */
#include "service/web/web_view.h"

#include "db/report.h"

/* Adds a list, from the row that the request continues with. */
static int
lists_add(const struct web_view *view, enum page_list_name name, const char *empty,
          struct error *error)
{
    const struct page_asked query = web_view_query(view, name);
    return web_view_list(view, name, empty, &query, error);
}

struct lists_part {
    enum page_list_name name;
    const char *empty; /* text without rows; NULL: leave the list out */
};

static int
lists_add_all(const struct web_view *view, const struct lists_part *parts, size_t count,
              struct error *error)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = lists_add(view, parts[i].name, parts[i].empty, error);
    return rc;
}

#define ADD_ALL(parts) lists_add_all(view, (parts), sizeof(parts) / sizeof *(parts), error)

/* ------------------------------------------------------------------------------------- now ---- */

static void
now_list_alerts(const struct web_view *view)
{
    const struct alerts *alerts = &view->web->alerts.list;
    const enum alert_severity worst = alerts_worst(alerts);
    fprintf(view->out, "<section class=\"verdict%s\"><h2>Alerts</h2>",
            worst == ALERT_BROKEN      ? " bad"
            : worst == ALERT_ATTENTION ? " warn"
                                       : "");
    if (worst == ALERT_WAITS)
        fputs("<p>No alert needs attention.</p>", view->out);
    html_alerts(alerts, view->out);
    fputs("</section>\n", view->out);
}

int
web_view_now(const struct web_view *view, struct error *error)
{
    static const struct lists_part parts[] = {{PAGE_RUNNING, "no running jobs"},
                                              {PAGE_CONFIGURATION, NULL}};

    static const enum page_list_name figures[] = {PAGE_NOW, PAGE_NOW_SERIES, PAGE_NOW_DELIVERIES};

    int rc = 0;
    now_list_alerts(view);
    fputs("<div class=\"ones\">\n", view->out);
    for (size_t i = 0; rc == 0 && i < sizeof figures / sizeof *figures; i++)
        rc = web_view_figures(view, figures[i], error);
    fputs("</div>\n", view->out);
    return rc ? rc : ADD_ALL(parts);
}

/* ---------------------------------------------------------------------------------- others ---- */

int
web_view_queue(const struct web_view *view, struct error *error)
{
    static const struct lists_part parts[] = {{PAGE_HOLDS, NULL},
                                              {PAGE_RUNNING, "no running jobs"},
                                              {PAGE_WAITING, "no waiting jobs"},
                                              {PAGE_GATHERING, "no series is being received"},
                                              {PAGE_PULLING, NULL}};
    return ADD_ALL(parts);
}

int
web_view_failures(const struct web_view *view, struct error *error)
{
    static const struct lists_part parts[] = {{PAGE_FAILED, "no failed jobs"},
                                              {PAGE_REFUSED, "no refused series"},
                                              {PAGE_QUARANTINED, "no files in quarantine"},
                                              {PAGE_UNPULLED, NULL},
                                              {PAGE_CALLERS, NULL}};
    return ADD_ALL(parts);
}

int
web_view_deliveries(const struct web_view *view, struct error *error)
{
    static const struct lists_part parts[] = {{PAGE_DESTINATIONS, "no deliveries yet"},
                                              {PAGE_UNDELIVERED, "no undelivered results"},
                                              {PAGE_DELIVERED, NULL}};
    return ADD_ALL(parts);
}

static void
devices_print_settings(const struct web_view *view)
{
    const struct conf_compute *compute = &view->web->conf->compute;
    fputs("<section><h2>Configuration</h2><dl class=\"below\"><dt>backend</dt><dd>", view->out);
    html_text(compute->backend, view->out);
    fputs("</dd><dt>devices</dt><dd>", view->out);
    for (size_t i = 0; i < compute->device_count; i++) {
        fputs(i ? ", " : "", view->out);
        html_text(compute->devices[i], view->out);
    }
    fprintf(view->out, "%s</dd><dt>jobs per device</dt><dd>%d</dd></dl></section>\n",
            compute->device_count ? "" : "all", compute->lanes);
}

int
web_view_devices(const struct web_view *view, struct error *error)
{
    static const struct lists_part parts[] = {{PAGE_DEVICES, "no jobs in the last 24 hours"},
                                              {PAGE_DEVICE_EVENTS, NULL}};
    devices_print_settings(view);
    return ADD_ALL(parts);
}

int
web_view_job(const struct web_view *view, struct error *error)
{
    static const struct lists_part parts[] = {
        {PAGE_JOB_RESULTS, NULL}, {PAGE_JOB_DELIVERIES, NULL}, {PAGE_JOB_EVENTS, NULL}};
    const struct page_asked query = web_view_query(view, PAGE_JOB);
    const int rc = web_view_details(view, PAGE_JOB, &query, error);
    if (rc)
        return rc;
    const int listed = lists_add(view, PAGE_JOB_SEGMENTS, NULL, error);
    if (listed)
        return listed;
    web_preview_section(view, query.job);
    return ADD_ALL(parts);
}

int
web_view_series(const struct web_view *view, struct error *error)
{
    static const struct lists_part parts[] = {{PAGE_SERIES_JOBS, "no jobs"},
                                              {PAGE_SERIES_STACKS, NULL}};
    const struct page_asked query = web_view_query(view, PAGE_SERIES);
    const int rc = web_view_details(view, PAGE_SERIES, &query, error);
    return rc ? rc : ADD_ALL(parts);
}
