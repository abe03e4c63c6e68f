/*
 * root.c - the top-level options, those of series and jobs, and the checks across sections.
 */
#include "config/options/sections.h"

static const char *const identifiers_choices[] = {"none", "hashed", "plain", NULL};
static const char *const log_choices[] = {"error", "warn", "info", "debug", NULL};

static const struct option_row series_rows[] = {
    {"quiet_seconds", &option_number, AT(struct conf_series, quiet_seconds), "60.0",
     LIMITS(0, 86400), .help = "a series is complete when no new slice came for this long"},
    {"complete_seconds", &option_number, AT(struct conf_series, complete_seconds), "5.0",
     LIMITS(0, 86400), .help = "instead, once the number of slices that its files name is there"},
    {"patience_seconds", &option_number, AT(struct conf_series, patience_seconds), "300.0",
     LIMITS(0, 86400), .help = "instead, while there are fewer than its files name"},
    {"max_instances", &option_integer, AT(struct conf_series, max_instances), "50000",
     LIMITS(1, 1000000),
     .help = "a series of more is refused when it is complete: SERIES_TOO_LARGE"},
    {"max_mib", &option_number, AT(struct conf_series, max_mib), "65536.0", LIMITS(1, 16777216),
     .help = "a series whose files are larger together is refused likewise"},
};

static const struct option_section series_section = {ROWS(series_rows),
                                                     .size = sizeof(struct conf_series)};

static const struct option_row jobs_rows[] = {
    {"max_attempts", &option_integer, AT(struct conf_jobs, max_attempts), "3", LIMITS(1, 100),
     .help = "a job that did not get through this often has failed"},
    {"retry_seconds", &option_number, AT(struct conf_jobs, retry_seconds), "30.0", LIMITS(0, 86400),
     .help = "the wait before the second attempt; doubled before each further one"},
    {"retry_max_seconds", &option_number, AT(struct conf_jobs, retry_max_seconds), "600.0",
     LIMITS(0, 86400), .help = "the longest such wait"},
    {"deadline_seconds", &option_number, AT(struct conf_jobs, deadline_seconds), "3600.0",
     LIMITS(1, 604800),
     .help = "a job that takes longer is stopped, and counts as an attempt; looked at once a "
             "second"},
    {"memory_mib", &option_number, AT(struct conf_jobs, memory_mib), "0.0", LIMITS(0, 16777216),
     .help = "memory that a job may take; one that needs more fails at once; 0 means what the "
             "machine has"},
    {"ageing_hours", &option_number, AT(struct conf_jobs, ageing_hours), "24.0", LIMITS(0, 8760),
     .help =
         "a job that waits rises by one point of priority each so many hours since it was made; "
         "0 means never"},
};

static const struct option_section jobs_section = {ROWS(jobs_rows),
                                                   .size = sizeof(struct conf_jobs)};

static const struct option_row backup_rows[] = {
    {"folder", &option_path, AT(struct conf_backup, folder), "", LIMITS(1, 4000),
     .form = &form_absolute,
     .help = "where the site puts backups: folders with a noctule.db, as docs/operations.md makes "
             "them; noctule doctor says how old the newest is"},
    {"max_age_hours", &option_number, AT(struct conf_backup, max_age_hours), "36.0",
     LIMITS(0.01, 100000), .help = "one that is older wants attention"},
};

static const struct option_section backup_section = {ROWS(backup_rows),
                                                     .size = sizeof(struct conf_backup)};

static void
check_root(const void *object, const struct option_spot *spot)
{
    check_inboxes(object, spot);
    check_pipelines(object, spot);
    check_rules(object, spot);
    check_destinations(object, spot);
    check_sources(object, spot);
    check_retention(object, spot);
    check_page(object, spot);
    check_slurm(object, spot);
    if (option_all_well(spot) && option_doubts_are_asked(spot)) {
        doubt_rules(object, spot);
        doubt_network(object, spot);
    }
}

/* The root must be the first row, because relative paths depend on it. */
static const struct option_row root_rows[] = {
    {"root", &option_path, AT(struct conf, root), "\"" CONF_ROOT "\"", LIMITS(1, 4000),
     .form = &form_absolute,
     .help = "database, spool and results; --root on the command line overrides it"},
    {"inbox", &option_list, AT(struct conf, inboxes), MANY(struct conf, inbox_count),
     .fallback = "( { path = \"inbox\"; } )", LIMITS(0, 16), .section = &option_inbox,
     .help = "folders from which files are taken in"},
    {"series", &option_group, AT(struct conf, series), "{ }", .section = &series_section,
     .help = "when a series counts as complete, and how large it may be"},
    {"jobs", &option_group, AT(struct conf, jobs), "{ }", .section = &jobs_section,
     .help = "how often and how long a job is tried"},
    {"compute", &option_group, AT(struct conf, compute), "{ }", .section = &option_compute,
     .help = "what the work is done with"},
    {"dicom", &option_group, AT(struct conf, dicom), "{ }", .section = &option_dicom,
     .help = "receiving from modalities and archives"},
    {"destinations", &option_list, AT(struct conf, destinations),
     MANY(struct conf, destination_count), .fallback = "( )", LIMITS(0, 64),
     .section = &option_destination, .help = "where results can be sent"},
    {"delivery", &option_group, AT(struct conf, delivery), "{ }", .section = &option_delivery,
     .help = "how often and how long a delivery is tried"},
    {"pull", &option_group, AT(struct conf, pull), "{ }", .section = &option_pull,
     .help = "archives from which noctule pull gets studies"},
    {"min_free_mib", &option_number, AT(struct conf, min_free_mib), "1024.0", LIMITS(0, 1e9),
     .help =
         "with less free disk space nothing is taken in, with less than half of it no job starts"},
    {"retention", &option_group, AT(struct conf, retention), "{ }", .section = &option_retention,
     .help = "how long images, results and rows stay"},
    {"backup", &option_group, AT(struct conf, backup), "{ }", .section = &backup_section,
     .help = "backups, which are the site's to make"},
    {"report", &option_group, AT(struct conf, report), "{ }", .section = &option_report,
     .help = "the report of each night"},
    {"page", &option_group, AT(struct conf, page), "{ }", .section = &option_page,
     .help = "a page for browsers, and figures for monitoring"},
    {"pipelines", &option_list, AT(struct conf, pipelines), MANY(struct conf, pipeline_count),
     .fallback = "( )", LIMITS(0, 256), .section = &option_pipeline,
     .help = "what can be done with a series"},
    {"rules", &option_list, AT(struct conf, rules), MANY(struct conf, rule_count),
     .fallback = "( )", LIMITS(0, 256), .section = &option_rule,
     .help = "which series gets which pipelines: those of all rules that fit, each once"},
    {"device_serial_number", &option_text, AT(struct conf, device_serial_number), "\"noctule-1\"",
     LIMITS(1, 64), .form = &form_dicom,
     .help = "Device Serial Number (0018,1000) of this installation, in every result"},
    {"identifiers", &option_choice, AT(struct conf, identifiers), "\"hashed\"",
     .choices = identifiers_choices,
     .help = "how Accession Number and Patient ID are kept in the database, to find series by: "
             "\"plain\", "
             "\"hashed\" with the key in the root, \"none\""},
    {"log_level", &option_word, AT(struct conf, log_level), "\"info\"", .choices = log_choices,
     .help = "the least important lines that are logged"},
};

const struct option_section option_root = {ROWS(root_rows), .size = sizeof(struct conf),
                                           .check = check_root};
