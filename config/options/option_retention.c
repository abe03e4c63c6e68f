/*
 * option_retention.c - the options of retention times.
 */
#include "config/options/option_sections.h"

static const char *const original_choices[] = {"keep", "delete", NULL};

#define DAYS(member, fallback, words)                                                                                  \
    {                                                                                                                  \
#member, &option_number, AT(struct conf_retention, member), fallback, LIMITS(0, 36500), .help = (words)        \
    }

static const struct option_row retention_rows[] = {
    DAYS(series_days, "90.0",
         "age at which images are removed, from the end of the last job of their series; 0: never"),
    DAYS(results_days, "90.0", "age at which delivered results are removed, from the end of their job; 0: never"),
    DAYS(quarantine_days, "90.0", "age at which files in quarantine are removed; 0: never"),
    DAYS(events_days, "730.0",
         "age at which database rows of removed items (jobs, features, events) are deleted, from "
         "their last event; 0: never"),
    DAYS(min_days, "1.0", "min age of everything that is removed, even if the disk is full"),
    {ROW(conf_retention, number, low_mib), "0.0", LIMITS(0, 1e9),
     .help = "free disk space below which the oldest series and results are removed early; 0: never"},
    {ROW(conf_retention, number, high_mib), "0.0", LIMITS(0, 1e9),
     .help = "free disk space at which the early removal ends"},
    {"inbox", &option_switch, AT(struct conf_retention, delete_originals), "\"keep\"", .choices = original_choices,
     .help = "series from an inbox with after = \"keep\": \"keep\" never removes them; \"delete\" "
             "removes them and deletes their files in the inbox"},
};

static void
check_days(const void *object, const struct option_spot *spot)
{
    const struct conf_retention *retention = object;

    const struct {
        const char *option;
        double days;
    } given[] = {{"series_days", retention->series_days},
                 {"results_days", retention->results_days},
                 {"quarantine_days", retention->quarantine_days}};

    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
        if (given[i].days > 0 && given[i].days < retention->min_days)
            option_refuse(spot, given[i].option, "must not be less than min_days");
}

const struct option_section option_retention = {SECTION(retention_rows, conf_retention), .check = check_days};

void
option_check_retention(const struct conf *conf, const struct option_spot *spot)
{
    const struct conf_retention *retention = &conf->retention;
    if (LOST(spot, retention->low_mib) || LOST(spot, retention->high_mib))
        return;
    if (retention->low_mib == 0 && retention->high_mib != 0)
        option_refuse(spot, "retention.high_mib", "is only allowed with low_mib");
    if (retention->low_mib > 0 && retention->low_mib <= conf->min_free_mib)
        option_refuse(spot, "retention.low_mib", "must be above min_free_mib, below which no file is received");
    if (retention->high_mib < retention->low_mib)
        option_refuse(spot, "retention.high_mib", "must be at least low_mib");
}
