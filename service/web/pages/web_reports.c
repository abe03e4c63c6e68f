/*
 * web_reports.c - the page Reports: how is it going? The recorded periods as a calendar and a list, the trend of 30
 * days, and the last 7 days by pipeline and by scanner. With a day: the report of the period that ended on it.
 */
#include "service/web/pages/web_view.h"

#include "service/common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS (24 * 3600 * 1000LL)

/* ------------------------------------------------------------------------------ one period ---- */

/* Finds the recorded period that ended on a date of local time. */
static int
reports_find_period(const struct web_view *view, const char *day, int64_t *since_ms, int64_t *until_ms,
                    struct error *error)
{
    struct report_table list;
    int rc = report_page(view->web->report, WEB_NIGHT, &(struct report_query){.text = {day}}, &list, error);
    if (rc < 0)
        return rc;
    if (list.row_count == 0 || iso_time_to_ms(report_cell(&list, 0, "since"), since_ms) != 0 ||
        iso_time_to_ms(report_cell(&list, 0, "until"), until_ms) != 0)
        rc = error_set(error, -ENOENT, CODE_NONE, "no report period that ended on this date is recorded");
    report_table_free(&list);
    return rc;
}

/* Numbers of a report are links to the lists that they count: an address with both times of the period and the rest. */
#define ENDED       "work?ended_since=", "&amp;ended_before="
#define ARRIVED     "arrivals?settled_since=", "&amp;settled_before="
#define FILED       "quarantine?since=", "&amp;before="
#define SENDER      "sender&station&manufacturer&model&site"
#define STATE(name) "&amp;state=" #name
#define OF(name)    "&amp;" #name "="

static const struct reports_link {
    enum report_list_name table;
    const char *key, *begin, *between, *rest, *of;
} reports_counts[] = {
    {PERIOD_SERIES, "settled", ARRIVED, STATE(SETTLED), ""},
    {PERIOD_SERIES, "refused", ARRIVED, STATE(REFUSED), ""},
    {PERIOD_SERIES, "in_part", ARRIVED, STATE(SETTLED) "&amp;refused=yes", ""},
    {PERIOD_SERIES, "unruled", ARRIVED, "&amp;unruled=yes", ""},
    {PERIOD_JOBS, "done", ENDED, STATE(DONE), ""},
    {PERIOD_JOBS, "empty", ENDED, STATE(EMPTY), ""},
    {PERIOD_JOBS, "review", ENDED, STATE(REVIEW), ""},
    {PERIOD_JOBS, "rejected", ENDED, STATE(REJECTED), ""},
    {PERIOD_JOBS, "failed", ENDED, STATE(FAILED), ""},
    {PERIOD_JOBS, "cancelled", ENDED, STATE(CANCELLED), ""},
    {PERIOD_FILES, "quarantined", FILED, "", ""},
    {PERIOD_FAILED, "jobs", ENDED, STATE(FAILED) OF(code), "code"},
    {PERIOD_UNDELIVERED, "results", NULL, NULL,
     "deliveries?destination=", "destination&state&code&tried_since&tried_before"},
    {PERIOD_REFUSED, "series", ARRIVED, "&amp;refused=yes" OF(code), "code"},
    {PERIOD_REFUSED, "in_part", ARRIVED, STATE(SETTLED) "&amp;refused=yes" OF(code), "code"},
    {PERIOD_QUARANTINED, "files", FILED, OF(code), "code"},
    {PERIOD_SENDERS, "refused", ARRIVED, "&amp;refused=yes" OF(sender), SENDER},
    {PERIOD_SENDERS, "series", ARRIVED, OF(sender), SENDER},
    {PERIOD_UNRULED, "series", ARRIVED, "&amp;unruled=yes" OF(modality), "modality&body_part&sender"},
    {PERIOD_PIPELINES, "pipeline", NULL, NULL, "work?pipeline=", NULL},
    {PERIOD_PIPELINES, "done", ENDED, STATE(DONE) OF(pipeline), "pipeline"},
    {PERIOD_PIPELINES, "empty", ENDED, STATE(EMPTY) OF(pipeline), "pipeline"},
    {PERIOD_PIPELINES, "review", ENDED, STATE(REVIEW) OF(pipeline), "pipeline"},
    {PERIOD_PIPELINES, "failed", ENDED, STATE(FAILED) OF(pipeline), "pipeline"},
    {PERIOD_COMPUTE, "jobs", ENDED, OF(backend), "backend"},
};

enum { COUNTS = sizeof reports_counts / sizeof *reports_counts, ADDRESS = 200 };

static void
reports_write(const struct report_period *period, FILE *out)
{
    char addresses[COUNTS][ADDRESS];
    struct html_link all[COUNTS + PERIOD_COUNT * WEB_VIEW_LINKS];
    size_t count = 0;
    html_report_links links;
    for (int table = 0; table < PERIOD_COUNT; table++) {
        links[table] = &all[count];
        for (size_t i = 0; i < COUNTS; i++) {
            const struct reports_link *link = &reports_counts[i];
            if ((int)link->table != table)
                continue;
            snprintf(addresses[i], ADDRESS, "%s%s%s%s%s", link->begin ? link->begin : "",
                     link->begin ? period->since : "", link->begin ? link->between : "",
                     link->begin ? period->until : "", link->rest);
            all[count++] = (struct html_link){link->key, addresses[i], link->of};
        }
        for (size_t i = 0; i < WEB_VIEW_LINKS; i++) /* with their end */
            all[count++] = web_view_links[i];
    }
    html_report_figures(period, (const html_report_links *)&links, out);
    html_report_tables(period, (const html_report_links *)&links, out);
}

static int
reports_period(const struct web_view *view, const char *day, struct error *error)
{
    struct report_period *period = NULL;
    int64_t until_ms = clock_unix_ms(), since_ms = until_ms - DAY_MS;
    int rc = strcmp(day, "now") == 0 ? 0 : reports_find_period(view, day, &since_ms, &until_ms, error);
    if (rc == 0)
        rc = report_period_read(view->web->report, since_ms, until_ms, &period, error);
    if (rc)
        return rc;
    fputs("<span class=\"dim\">", view->beside);
    html_time(period->since, view->beside);
    fputs(" to ", view->beside);
    html_time(period->until, view->beside);
    fputs("</span>", view->beside);
    reports_write(period, view->out);
    report_period_free(period);
    return 0;
}

/* --------------------------------------------------------------------------------- calendar ---- */

#define WEEKS 26
#define CELL  22 /* pixels */

/* Returns the class of a day's colour by its number of jobs, in quarters of the largest. */
static int
reports_shade(double jobs, double max)
{
    if (jobs <= 0.0)
        return 0;
    const int quarter = 1 + (int)(4.0 * jobs / (max * 1.0001));
    return quarter > 4 ? 4 : quarter;
}

/* Returns the days from 1970-01-01 to a date "2026-01-31", or -1. */
static int64_t
reports_day_number(const char *date)
{
    char text[ISO_TIME_SIZE];
    int64_t ms;
    snprintf(text, sizeof text, "%.10sT00:00:00.000Z", date);
    return iso_time_to_ms(text, &ms) == 0 ? ms / DAY_MS : -1;
}

static void
reports_draw_day(const struct report_table *nights, size_t row, int64_t first, double max, FILE *out)
{
    const char *night = report_cell(nights, row, "night");
    const int64_t day = reports_day_number(night) - first;
    const double jobs = report_number(nights, row, "jobs"), failed = report_number(nights, row, "failed");
    if (day < 0 || day >= 7 * WEEKS)
        return;
    const int x = 40 + (int)(day / 7) * CELL, y = 20 + (int)(day % 7) * CELL;
    fprintf(
        out,
        "<a href=\"reports?day=%.10s\"><title>%.10s: %g jobs, %g failed</title><rect class=\"h%d\" x=\"%d\" y=\"%d\" "
        "width=\"%d\" height=\"%d\" rx=\"3\"/>",
        night, night, jobs, failed, reports_shade(jobs, max), x, y, CELL - 3, CELL - 3);
    if (failed > 0.0)
        fprintf(out, "<path class=\"flag\" d=\"M%d %dl6 11h-12z\"/>", x + CELL / 2 - 1, y + 4);
    fputs("</a>\n", out);
}

static void
reports_calendar(const struct report_table *nights, FILE *out)
{
    static const char *const days[] = {"Mon", "", "Wed", "", "Fri", "", "Sun"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

    const int64_t today = clock_unix_ms() / DAY_MS;
    const int64_t first = today - (today + 3) % 7 - 7 * (WEEKS - 1); /* a Monday: 1970-01-01 was a Thursday */
    double max = 4.0;
    for (size_t row = 0; row < nights->row_count; row++)
        max = report_number(nights, row, "jobs") > max ? report_number(nights, row, "jobs") : max;
    fprintf(out,
            "<figure><svg class=\"calendar\" viewBox=\"0 0 %d %d\" role=\"group\" aria-label=\"Jobs per report "
            "period, the last 26 weeks\">\n",
            40 + WEEKS * CELL, 20 + 7 * CELL);
    for (int i = 0; i < 7; i++)
        fprintf(out, "<text x=\"0\" y=\"%d\">%s</text>", 34 + i * CELL, days[i]);
    int last = -1;
    for (int week = 0; week < WEEKS; week++) {
        char at[ISO_TIME_SIZE];
        if (iso_time_from_ms((first + 7 * week) * DAY_MS, at) != 0)
            continue;
        const int month = (at[5] - '0') * 10 + at[6] - '0' - 1;
        if (month != last && (week > 0 || at[8] == '0'))
            fprintf(out, "<text x=\"%d\" y=\"13\">%s</text>", 40 + week * CELL, months[month % 12]);
        last = month;
    }
    for (int day = 0; day < 7 * WEEKS && first + day <= today; day++)
        fprintf(out, "<rect class=\"h0\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/>", 40 + day / 7 * CELL,
                20 + day % 7 * CELL, CELL - 3, CELL - 3);
    for (size_t row = 0; row < nights->row_count; row++)
        reports_draw_day(nights, row, first, max, out);
    fputs("</svg><div class=\"legend\"><span>jobs per period:</span>", out);
    for (int shade = 0; shade <= 4; shade++) {
        fprintf(out,
                "<span><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"h%d\" width=\"12\" "
                "height=\"12\" rx=\"2\"/></svg>",
                shade);
        fprintf(out, shade ? "to %.0f</span>" : "none</span>", max * shade / 4.0);
    }
    fputs("<span><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><path class=\"flag\" d=\"M6 0l6 11h-12z\"/></svg>jobs "
          "failed</span></div></figure>\n",
          out);
}

/* ------------------------------------------------------------------------------------ page ---- */

static const struct html_link reports_links[] = {
    {"night", "reports?day=", NULL},
    {"pipeline", "work?ended_since=7d&amp;current=yes&amp;pipeline=", NULL},
    {"jobs", "work?ended_since=7d&amp;current=yes&amp;pipeline=", "pipeline"},
    {"review_of", "work?state=REVIEW&amp;ended_since=7d&amp;current=yes&amp;pipeline=", "pipeline"},
    {"failed_of", "work?state=FAILED&amp;ended_since=7d&amp;current=yes&amp;pipeline=", "pipeline"},
    {"scanner", "work?since=7d&amp;current=yes&amp;scanner=", NULL},
    {"work", "work?since=7d&amp;current=yes&amp;scanner=", "scanner"},
    {"refused_by", "work?state=REFUSED&amp;since=7d&amp;current=yes&amp;scanner=", "scanner"},
    {"no_job_by", "work?state=NO_JOB&amp;since=7d&amp;current=yes&amp;scanner=", "scanner"},
    {"review_by", "work?state=REVIEW&amp;since=7d&amp;current=yes&amp;scanner=", "scanner"},
    {"failed_by", "work?state=FAILED&amp;since=7d&amp;current=yes&amp;scanner=", "scanner"},
    {NULL, NULL, NULL},
};

void
web_reports_chips(const struct web_view *view, const char *here)
{
    static const char *const chips[][3] = {
        {"", "reports", "Periods"}, {"now", "reports?day=now", "Last 24 hours"}, {"cohort", "cohort", "Cohort"}};

    fputs("<nav class=\"act chips\" aria-label=\"Reports\">", view->beside);
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        fprintf(view->beside, "<a class=\"chip\" href=\"%s\"%s>%s</a>", chips[i][1],
                strcmp(here, chips[i][0]) == 0 ? " aria-current=\"page\"" : "", chips[i][2]);
    fputs("</nav>", view->beside);
}

static int
reports_table(const struct web_view *view, enum report_list_name name, struct error *error)
{
    struct report_table table;
    const struct report_query query = web_view_query(view, name);
    const int rc = report_page(view->web->report, name, &query, &table, error);
    if (rc < 0)
        return rc;
    if (table.row_count > 0)
        html_table(&table, reports_links, NULL, view->out);
    else
        fprintf(view->out, "<section id=\"%s\"><h2>%s</h2><p class=\"dim\">%s</p></section>\n", table.list->key,
                table.list->heading, table.list->none ? table.list->none : "nothing");
    web_view_more(view, &table);
    report_table_free(&table);
    return 0;
}

static int
reports_trends(const struct web_view *view, struct error *error)
{
    static const struct html_bar jobs[] = {
        {.key = "done", .word = "done", .class = "c2", .href = "work?current=yes", .times = "ended_"},
        {.key = "review", .word = "to review", .class = "c3"},
        {.key = "failed", .word = "failed", .class = "cf"}};
    static const struct html_bar series[] = {
        {.key = "received", .word = "received", .class = "c1", .href = "work?current=yes", .times = ""}};
    static const struct html_bar disk[] = {{.key = "free_gib", .word = "GiB free", .class = "c1"}};
    static const struct html_chart charts[] = {{"Jobs per day", false, jobs, 3},
                                               {"Received series and jobs per day", false, series, 1},
                                               {"Free disk space, GiB", false, disk, 1}};
    static const char *const ids[] = {"jobs", "received", "disk"};

    struct report_table days;
    const int rc = report_page(view->web->report, WEB_DAYS, &(struct report_query){0}, &days, error);
    if (rc < 0)
        return rc;
    fputs("<div class=\"tiles wide-tiles\">\n", view->out);
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
        fprintf(view->out, "<section id=\"%s\"><h2>%s</h2>", ids[i], charts[i].title);
        html_chart(&days, &charts[i], view->out);
        fputs("</section>\n", view->out);
    }
    fputs("</div>\n", view->out);
    report_table_free(&days);
    return 0;
}

static int
reports_all(const struct web_view *view, struct error *error)
{
    struct report_table nights;
    int rc = reports_trends(view, error);
    if (rc == 0)
        rc = report_page(view->web->report, WEB_CALENDAR, &(struct report_query){0}, &nights, error);
    if (rc)
        return rc;
    fputs("<div class=\"columns even\"><div class=\"stack\">\n<section><h2>Report periods</h2>", view->out);
    reports_calendar(&nights, view->out);
    fputs("</section>\n", view->out);
    report_table_free(&nights);
    rc = reports_table(view, WEB_BY_PIPELINE, error);
    fputs("</div><div class=\"stack\">\n", view->out);
    if (rc == 0)
        rc = reports_table(view, WEB_NIGHTS, error);
    if (rc == 0)
        rc = reports_table(view, WEB_BY_SCANNER, error);
    fputs("</div></div>\n", view->out);
    return rc ? rc : web_view_list(view, WEB_DEVICE_EVENTS, NULL, error);
}

int
web_view_reports(const struct web_view *view, struct error *error)
{
    const char *day = view->request->values[REQUEST_day], *list = view->request->values[REQUEST_list];
    if (*day) {
        const int rc = reports_period(view, day, error);
        web_reports_chips(view, day);
        return rc;
    }
    web_reports_chips(view, "");
    if (strcmp(list, report_lists[WEB_DEVICE_EVENTS].key) == 0)
        return web_view_list(view, WEB_DEVICE_EVENTS, NULL, error);
    return *list ? reports_table(view, WEB_NIGHTS, error) : reports_all(view, error);
}
