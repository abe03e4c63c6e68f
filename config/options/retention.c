/*
 * retention.c - the options of retention times.
 */
#include "config/options/sections.h"

static const char *const original_choices[] = {"keep", "delete", NULL};

#define DAYS(member, fallback, words)                                                              \
    {                                                                                              \
#member, &option_number, AT(struct conf_retention, member), fallback, LIMITS(0, 36500),    \
            .help = (words)                                                                        \
    }

static const struct option_row retention_rows[] = {
    DAYS(series_days, "90.0",
         "so long after its last job ended, a series' images are removed; 0: never"),
    DAYS(results_days, "90.0",
         "so long after their job ended, results that were delivered are removed; 0: never"),
    DAYS(quarantine_days, "90.0", "the same for files in quarantine; 0: never"),
    DAYS(events_days, "730.0",
         "so long after the last that happened to it, the rows of what was removed go; 0: never"),
    DAYS(min_days, "1.0", "nothing newer is removed, however full the disk is"),
    {"low_mib", &option_number, AT(struct conf_retention, low_mib), "0.0", LIMITS(0, 1e9),
     .help = "with less free disk space, what is oldest is removed before its time; 0: never"},
    {"high_mib", &option_number, AT(struct conf_retention, high_mib), "0.0", LIMITS(0, 1e9),
     .help = "until so much is free again"},
    {"inbox", &option_switch, AT(struct conf_retention, delete_originals), "\"keep\"",
     .choices = original_choices,
     .help = "series from an inbox with after = \"keep\": \"keep\" never removes them, "
             "\"delete\" removes them and deletes their files in the inbox"},
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
            option_refuse(spot, given[i].option, "is less than min_days");
}

const struct option_section option_retention = {
    ROWS(retention_rows), .size = sizeof(struct conf_retention), .check = check_days};

void
check_retention(const struct conf *conf, const struct option_spot *spot)
{
    const struct conf_retention *retention = &conf->retention;
    if (LOST(spot, retention->low_mib) || LOST(spot, retention->high_mib))
        return;
    if (retention->low_mib == 0 && retention->high_mib != 0)
        option_refuse(spot, "retention.high_mib", "is used only with low_mib");
    if (retention->low_mib > 0 && retention->low_mib <= conf->min_free_mib)
        option_refuse(spot, "retention.low_mib",
                      "has to be above min_free_mib, below which nothing is taken in");
    if (retention->high_mib < retention->low_mib)
        option_refuse(spot, "retention.high_mib", "has to be low_mib at least");
}
