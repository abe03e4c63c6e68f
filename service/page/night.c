/* night.c - the report of a night, by day. */
#include "service/page/view.h"

#include "service/common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY_MS (24 * 3600 * 1000LL)
#define DAYS   14 /* that are offered */

/* "2026-01-31": its begin by the clock here, moved by so many days. 0 or -EINVAL. */
static int
night_day_begin(const char *day, int moved, int64_t *ms)
{
    struct tm tm = {.tm_isdst = -1};
    const char *end = strptime(day, "%Y-%m-%d", &tm);
    if (!end || *end || strlen(day) != strlen("2026-01-31"))
        return -EINVAL;
    tm.tm_mday += moved;
    const time_t seconds = mktime(&tm);
    *ms = (int64_t)seconds * 1000;
    return seconds == (time_t)-1 ? -EINVAL : 0;
}

static void
night_offer_days(const struct view *view)
{
    const time_t now = time(NULL);
    fputs("<nav class=\"days\" aria-label=\"Days\"><a href=\"night\">last 24 h</a>", view->out);
    for (int i = 0; i < DAYS; i++) {
        char day[16];
        struct tm tm;
        localtime_r(&now, &tm);
        tm.tm_mday -= i;
        tm.tm_isdst = -1;
        mktime(&tm);
        strftime(day, sizeof day, "%Y-%m-%d", &tm);
        fprintf(view->out, " <a href=\"night?day=%s\"%s>%s</a>", day,
                strcmp(day, view->request->values[REQUEST_day]) == 0 ? " aria-current=\"page\""
                                                                     : "",
                day);
    }
    fputs("</nav>\n", view->out);
}

static void
night_tell(const struct view *view, const struct night *night)
{
    char since[SHOWN_MINUTE], until[SHOWN_MINUTE];
    shown_minute(night->since, true, since);
    shown_minute(night->until, true, until);
    fprintf(view->out, "<p>%s to %s by the clock here; times below are UTC</p>\n", since, until);
    html_night_figures(night, view->out);
    html_night_tables(night, view_links, view->out);
}

int
view_night(const struct view *view, struct error *error)
{
    const char *day = view->request->values[REQUEST_day];
    struct night *night = NULL;
    int64_t until_ms = clock_unix_ms(), since_ms = until_ms - DAY_MS;
    if (*day && (night_day_begin(day, 0, &since_ms) || night_day_begin(day, 1, &until_ms)))
        return error_set(error, -ENOENT, CODE_NONE, "a day is written as 2026-01-31");
    night_offer_days(view);
    const int rc = report_night(view->page->report, since_ms, until_ms, &night, error);
    if (rc == 0)
        night_tell(view, night);
    night_free(night);
    return rc;
}
