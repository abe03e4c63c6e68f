/* Deadlines that a pipeline's window makes impossible, by the calendar, by measured durations, and
 * by the queue. */
#include "service/common/alert/alert_list.h"

#include "base/calendar/time_window.h"
#include "config/config.h"
#include "db/report.h"
#include "tests/unit/db/sample.h"

#include <errno.h>
#include <time.h>

#define MINUTE (INT64_C(60) * 1000)
#define SEVEN  (SAMPLE_NOW + 5 * 60 * MINUTE - 3 * MINUTE - 20000) /* Saturday, 2026-01-31T07:00Z */

static struct sample s;
static struct report *report;
static char name[] = "night";
static struct conf_window window, done_by;
static struct conf_pipeline pipeline;
static struct conf conf;
static char said[2048];

static void
open_sample(void)
{
    struct error error;
    setenv("TZ", "UTC", 1);
    tzset();
    sample_open(&s);
    ck_assert_int_eq(report_open(s.path, &report, &error), 0);
}

static void
close_sample(void)
{
    time_window_free(window.times);
    time_window_free(done_by.times);
    window.times = done_by.times = NULL;
    report_close(report);
    sample_close(&s);
}

/* "": without a window or deadline. */
static void
configure(char *open, char *wanted)
{
    char why[TIME_WINDOW_WHY];
    time_window_free(window.times);
    time_window_free(done_by.times);
    window = (struct conf_window){.text = open};
    done_by = (struct conf_window){.text = wanted};
    if (*open)
        ck_assert_int_eq(time_window_parse(open, &window.times, why), 0);
    ck_assert_int_eq(time_window_parse_moments(wanted, &done_by.times, why), 0);
    pipeline = (struct conf_pipeline){.name = name, .window = *open ? &window : NULL, .done_by = &done_by};
    conf = (struct conf){.pipelines = &pipeline, .pipeline_count = 1};
}

static int
take(void *context, const char *which, const char *text)
{
    ck_assert_ptr_null(context);
    ck_assert_str_eq(which, name);
    ck_assert_str_eq(said, ""); /* at most one per pipeline */
    snprintf(said, sizeof said, "%s", text);
    return -EINTR;
}

/* Returns the alert on that Saturday, at 02:03. */
static const char *
doubt(struct report *measured, bool queued)
{
    said[0] = '\0';
    const int rc = deadline_alerts_each(&conf, measured, queued, SAMPLE_NOW, take, NULL);
    ck_assert_int_eq(rc, *said ? -EINTR : 0);
    return said;
}

static int64_t
add(int64_t done_by_ms)
{
    static int made;
    struct queue_ids running;
    char uid[32];
    int64_t series, job;
    snprintf(uid, sizeof uid, "1.2.4.%d", ++made);
    sample_job(s.queue, uid);
    ck_assert_int_eq(queue_find_series(s.queue, uid, &series), 0);
    const struct queue_new_job new_job = {
        .series_id = series, .revision = 1, .stack = "", .pipeline = name, .settings = "x", .done_by_ms = done_by_ms};
    ck_assert_int_eq(queue_add_job(s.queue, &new_job, SAMPLE_NOW, &job, &running), 0);
    return job;
}

/* Records one job of this duration in the last hours. */
static void
measure(int64_t took_ms)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    const int64_t end_ms = (int64_t)time.tv_sec * 1000 - 60 * MINUTE;
    const int64_t job = add(0);
    const struct queue_finish finish = {QUEUE_EMPTY, &sample_figures, NULL, 0, CODE_NONE, ""};
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, end_ms - took_ms), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job, &finish, end_ms), 0);
}

START_TEST(a_window_closed_until_the_deadline)
{
    static char nights[] = "Mon-Fri 22:00-06:00 UTC", daily[] = "07:00 UTC", after_nights[] = "Tue-Sat 07:00 UTC",
                none[] = "", always[] = "00:00-24:00 UTC";
    configure(nights, daily);
    ck_assert_str_eq(doubt(NULL, true),
                     "pipeline night: jobs created after 2026-01-31 07:00:00 +0000 have the deadline "
                     "2026-02-01 07:00:00 +0000 (done_by), but its window (Mon-Fri 22:00-06:00 UTC) "
                     "does not open between them");
    ck_assert_str_eq(doubt(report, false), said);
    configure(nights, after_nights);
    ck_assert_str_eq(doubt(report, true), "");
    configure(none, daily);
    ck_assert_str_eq(doubt(report, true), "");
    configure(always, daily);
    ck_assert_str_eq(doubt(report, true), "");
}

END_TEST

START_TEST(a_window_that_opens_too_late)
{
    static char late[] = "06:50-12:00 UTC", early[] = "06:30-06:35 UTC", daily[] = "07:00 UTC";
    configure(late, daily);
    ck_assert_str_eq(doubt(report, true), ""); /* no duration is measured */
    measure(19 * MINUTE);
    ck_assert_str_eq(doubt(NULL, true), "");
    ck_assert_str_eq(doubt(report, false),
                     "pipeline night: one job takes about 19 min, but its window leaves 10 min "
                     "before the deadline 2026-02-01 07:00:00 +0000; change its window or done_by");
    configure(early, daily); /* a job that has begun runs on */
    ck_assert_str_eq(doubt(report, true), "");
}

END_TEST

START_TEST(more_than_fits_waits)
{
    static char open[] = "06:00-12:00 UTC", brief[] = "06:00-06:30 UTC", daily[] = "07:00 UTC";
    configure(open, daily);
    measure(19 * MINUTE);
    for (int i = 0; i < 3; i++)
        add(SEVEN);
    add(SEVEN + 1); /* its deadline is another day */
    ck_assert_str_eq(doubt(report, true), "");
    add(SEVEN);
    ck_assert_str_eq(doubt(report, true),
                     "pipeline night: the deadline 2026-01-31 07:00:00 +0000 (done_by) of 4 queued jobs "
                     "requires about 1 h 16 min, but the window leaves 1 h 0 min until then");
    ck_assert_str_eq(doubt(report, false), "");
    configure(brief, daily); /* and one job that begins at its end */
    ck_assert_ptr_nonnull(strstr(doubt(report, true), "the window leaves 49 min until then"));
}

END_TEST

SAMPLE_MAIN("common_done_by", open_sample, close_sample, a_window_closed_until_the_deadline,
            a_window_that_opens_too_late, more_than_fits_waits)
