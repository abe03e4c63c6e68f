/*
 * web_report.c - the report of the last 24 hours or of a recorded period, and the list of recorded
 * periods.
 */
#include "service/web/web_view.h"

#include "service/common/clock.h"

#include <errno.h>

#define DAY_MS (24 * 3600 * 1000LL)

/* Finds the recorded period that ended on a date, by local time. Returns 0 or -errno with a
 * message. */
static int
web_report_span(const struct web_view *view, const char *day, int64_t *since_ms, int64_t *until_ms,
                struct error *error)
{
    struct page_list list;
    const struct page_asked query = {.text = {day}};
    int rc = report_page_list(view->web->report, PAGE_NIGHT, &query, &list, error);
    if (rc < 0)
        return rc;
    if (list.table.row_count == 0 ||
        iso_time_to_ms(night_cell(&list.table, 0, "since"), since_ms) != 0 ||
        iso_time_to_ms(night_cell(&list.table, 0, "until"), until_ms) != 0)
        rc = error_set(error, -ENOENT, CODE_NONE,
                       "no report period that ended on this date is recorded");
    page_list_free(&list);
    return rc;
}

static void
web_report_print(const struct web_view *view, const struct night *night)
{
    char since[SHOWN_TIME], until[SHOWN_TIME];
    shown_time(night->since, since);
    shown_time(night->until, until);
    fprintf(view->out, "<p>%s to %s</p>\n", since, until);
    html_report_figures(night, view->out);
    html_report_tables(night, web_view_links, view->out);
}

int
web_view_report(const struct web_view *view, struct error *error)
{
    const char *day = view->request->values[REQUEST_day];
    struct night *night = NULL;
    int64_t until_ms = clock_unix_ms(), since_ms = until_ms - DAY_MS;
    int rc = *day ? web_report_span(view, day, &since_ms, &until_ms, error) : 0;
    if (rc == 0)
        rc = report_night(view->web->report, since_ms, until_ms, &night, error);
    if (rc == 0)
        web_report_print(view, night);
    night_free(night);
    const struct page_asked query = web_view_query(view, PAGE_NIGHTS);
    return rc ? rc : web_view_list(view, PAGE_NIGHTS, NULL, &query, error);
}
