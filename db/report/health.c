/* health.c - is the database whole, and how fast does it grow? */
#include "db/iso_time.h"
#include "db/report/report_private.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define STEPS_BETWEEN_LOOKS 10000
#define WEEK_MS             (INT64_C(7) * 24 * 3600 * 1000)

struct health_limit {
    struct timespec until;
    bool over;
};

static int
health_is_over(void *context)
{
    struct health_limit *limit = context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    limit->over = now.tv_sec > limit->until.tv_sec ||
                  (now.tv_sec == limit->until.tv_sec && now.tv_nsec >= limit->until.tv_nsec);
    return limit->over;
}

/* Queries end by themselves then; report_conclude follows health_release. */
static void
health_bound(struct report *report, struct health_limit *limit, int seconds)
{
    clock_gettime(CLOCK_MONOTONIC, &limit->until);
    limit->until.tv_sec += seconds;
    sqlite3_progress_handler(report->db.handle, STEPS_BETWEEN_LOOKS, health_is_over, limit);
}

static void
health_release(struct report *report)
{
    sqlite3_progress_handler(report->db.handle, 0, NULL, NULL);
}

int
report_examine(struct report *report, int seconds, struct report_health *health,
               struct error *error)
{
    struct health_limit limit = {0};
    *health = (struct report_health){0};
    health_bound(report, &limit, seconds);
    int rc =
        database_text(&report->db, "PRAGMA quick_check(1)", health->damage, sizeof health->damage);
    health_release(report);
    health->is_checked = rc == 0;
    if (rc == 0 && strcmp(health->damage, "ok") != 0)
        return 0;
    health->damage[0] = '\0';
    if (rc == -EUCLEAN)
        snprintf(health->damage, sizeof health->damage, "%s", report->db.reason);
    return report_conclude(report, NULL, rc == -EUCLEAN || limit.over ? 0 : rc, error);
}

int
report_week_bytes(struct report *report, int seconds, int64_t now_ms, int64_t *bytes,
                  struct error *error)
{
    struct health_limit limit = {0};
    health_bound(report, &limit, seconds);
    const int rc = database_get(&report->db,
                                "SELECT coalesce(sum(size_bytes), 0) FROM v_instances "
                                "WHERE received_at >= ?",
                                VALUES(value_time(now_ms - WEEK_MS)), bytes);
    health_release(report);
    if (rc < 0 && limit.over)
        *bytes = -1;
    return report_conclude(report, NULL, rc < 0 && !limit.over ? rc : 0, error);
}
