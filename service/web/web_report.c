/*
 * web_report.c - the report of the last 24 hours or of a recorded period, and the list of recorded
 * periods.
 */
#include "service/web/web_view.h"

#include "service/common/clock.h"

#include <errno.h>

#define DAY_MS (24 * 3600 * 1000LL)

int
web_view_report(const struct web_view *view, struct error *error)
{
    const char *day = view->request->values[REQUEST_day];
    struct report_period *period = NULL;
    int64_t until_ms = clock_unix_ms(), since_ms = until_ms - DAY_MS;
    int rc = 0;
    if (*day) { /* the recorded period that ended on this date, by local time */
        struct report_table list;
        const struct report_query query = {.text = {day}};
        rc = report_page(view->web->report, WEB_NIGHT, &query, &list, error);
        if (rc < 0)
            return rc;
        if (list.row_count == 0 || iso_time_to_ms(report_cell(&list, 0, "since"), &since_ms) != 0 ||
            iso_time_to_ms(report_cell(&list, 0, "until"), &until_ms) != 0)
            rc = error_set(error, -ENOENT, CODE_NONE, "no report period that ended on this date is recorded");
        report_table_free(&list);
    }
    if (rc == 0)
        rc = report_period_read(view->web->report, since_ms, until_ms, &period, error);
    if (rc)
        return rc;
    fputs("<span class=\"dim\">", view->beside);
    html_time(period->since, view->beside);
    fputs(" to ", view->beside);
    html_time(period->until, view->beside);
    fputs("</span>", view->beside);
    html_report_figures(period, view->out);
    html_report_tables(period, web_view_links, view->out);
    report_period_free(period);
    return web_view_list(view, WEB_NIGHTS, error);
}
