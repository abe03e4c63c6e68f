/* health.c - checks the database for damage, and measures its growth. */
#include "db/report/report_private.h"

#include <errno.h>
#include <string.h>

#define STEPS_BETWEEN_LOOKS 10000
#define WEEK_MS             (INT64_C(7) * 24 * 3600 * 1000)

static int
report_is_over(void *context)
{
    struct report_limit *limit = context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    limit->over =
        now.tv_sec > limit->until.tv_sec || (now.tv_sec == limit->until.tv_sec && now.tv_nsec >= limit->until.tv_nsec);
    return limit->over;
}

void
report_bound(struct report *report, int seconds)
{
    report->limit = (struct report_limit){0};
    clock_gettime(CLOCK_MONOTONIC, &report->limit.until);
    report->limit.until.tv_sec += seconds;
    sqlite3_progress_handler(report->db.handle, STEPS_BETWEEN_LOOKS, report_is_over, &report->limit);
}

void
report_release(struct report *report)
{
    sqlite3_progress_handler(report->db.handle, 0, NULL, NULL);
}

int
report_examine(struct report *report, int seconds, struct report_health *health, struct error *error)
{
    *health = (struct report_health){0};
    report_bound(report, seconds);
    int rc = database_text(&report->db, "PRAGMA quick_check(1)", health->damage, sizeof health->damage);
    report_release(report);
    health->is_checked = rc == 0;
    if (rc == 0 && strcmp(health->damage, "ok") != 0)
        return 0;
    health->damage[0] = '\0';
    if (rc == -EUCLEAN)
        snprintf(health->damage, sizeof health->damage, "%s", report->db.reason);
    return report_conclude(report, NULL, rc == -EUCLEAN || report->limit.over ? 0 : rc, error);
}

int
report_week_bytes(struct report *report, int seconds, int64_t now_ms, int64_t *bytes, struct error *error)
{
    report_bound(report, seconds);
    const int rc =
        database_get(&report->db, "SELECT coalesce(sum(size_bytes), 0) FROM v_instances WHERE received_at >= ?",
                     VALUES(value_time(now_ms - WEEK_MS)), bytes);
    report_release(report);
    if (rc < 0 && report->limit.over)
        *bytes = -1;
    return report_conclude(report, NULL, rc < 0 && !report->limit.over ? rc : 0, error);
}
