/*
 * option_notify.c - the options of commands that receive single events.
 */
#include "config/options/option_sections.h"

/* In the order of enum conf_notify_event. */
static const char *const event_choices[] = {"alert", "job_failed", "job_review", "series_refused", NULL};

static const struct option_row notify_rows[] = {
    {ROW(conf_notify, text, name), NULL, LIMITS(1, 64), .form = &form_name,
     .help = "name for the database, and for the alert notify:NAME while the command fails"},
    {ROW(conf_notify, flags, events), "[ \"alert\", \"job_failed\", \"job_review\", \"series_refused\" ]",
     .choices = event_choices,
     .help = "events that the command receives: an \"alert\" begins or ends, a job ends in FAILED or "
             "REVIEW, a series is REFUSED"},
    {ROW(conf_notify, text, command), NULL, LIMITS(1, 4000),
     .help = "command for /bin/sh; its standard input is a JSON object with the events; unless it "
             "ends with 0, it runs again later with the same events"},
    {ROW(conf_notify, number, interval_seconds), "60.0", LIMITS(0, 86400),
     .help = "time from the end of a run to the next run, which receives all events since, up to 100"},
    {ROW(conf_notify, number, timeout_seconds), "30.0", LIMITS(1, 3600),
     .help = "max duration of a run; then it is stopped"},
};

const struct option_section option_notify = {SECTION(notify_rows, conf_notify)};

void
option_check_notify(const struct conf *conf, const struct option_spot *spot)
{
    const struct option_named named = NAMED(spot, "notify", conf->notify, conf->notify_count);
    option_refuse_duplicates(&named, ".name", "the name of an earlier row of notify");
}
