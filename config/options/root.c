/*
 * root.c - the top-level options, those of series and jobs, and the checks across sections.
 */
#include "config/options/sections.h"

static const char *const identifiers_choices[] = {"none", "hashed", "plain", NULL};
static const char *const log_choices[] = {"error", "warn", "info", "debug", NULL};

static const struct option_row series_rows[] = {
    {"quiet_seconds", &option_number, AT(struct conf_series, quiet_seconds), "60.0",
     LIMITS(0, 86400), .help = "time without a new slice after which a series is complete"},
    {"complete_seconds", &option_number, AT(struct conf_series, complete_seconds), "5.0",
     LIMITS(0, 86400),
     .help = "the same time if the number of slices in its headers has been reached"},
    {"patience_seconds", &option_number, AT(struct conf_series, patience_seconds), "300.0",
     LIMITS(0, 86400), .help = "the same time if slices are missing by the number in its headers"},
    {"max_instances", &option_integer, AT(struct conf_series, max_instances), "50000",
     LIMITS(1, 1000000),
     .help = "max number of instances; a larger series is rejected with SERIES_TOO_LARGE when it "
             "is complete"},
    {"max_mib", &option_number, AT(struct conf_series, max_mib), "65536.0", LIMITS(1, 16777216),
     .help = "max size of all files of a series; a larger series is rejected with SERIES_TOO_LARGE "
             "when it is complete"},
};

static const struct option_section series_section = {ROWS(series_rows),
                                                     .size = sizeof(struct conf_series)};

static const struct option_row jobs_rows[] = {
    {"max_attempts", &option_integer, AT(struct conf_jobs, max_attempts), "3", LIMITS(1, 100),
     .help = "number of attempts after which a job has failed"},
    {"retry_seconds", &option_number, AT(struct conf_jobs, retry_seconds), "30.0", LIMITS(0, 86400),
     .help = "delay before the second attempt; doubled before each further attempt"},
    {"retry_max_seconds", &option_number, AT(struct conf_jobs, retry_max_seconds), "600.0",
     LIMITS(0, 86400), .help = "max delay between attempts"},
    {"deadline_seconds", &option_number, AT(struct conf_jobs, deadline_seconds), "3600.0",
     LIMITS(1, 604800),
     .help = "max duration of a job, checked once per second; a longer job is stopped, and counts "
             "as an attempt"},
    {"memory_mib", &option_number, AT(struct conf_jobs, memory_mib), "0.0", LIMITS(0, 16777216),
     .help =
         "max memory of a job; a job that needs more fails at once; 0: the memory of the machine"},
    {"ageing_hours", &option_number, AT(struct conf_jobs, ageing_hours), "24.0", LIMITS(0, 8760),
     .help = "waiting time that raises the priority of a job by 1; 0: never"},
};

static const struct option_section jobs_section = {ROWS(jobs_rows),
                                                   .size = sizeof(struct conf_jobs)};

static const struct option_row backup_rows[] = {
    {"folder", &option_path, AT(struct conf_backup, folder), "", LIMITS(1, 4000),
     .form = &form_absolute,
     .help = "folder of the site's backups, with one folder per backup that contains noctule.db; "
             "noctule doctor reports the age of the newest"},
    {"max_age_hours", &option_number, AT(struct conf_backup, max_age_hours), "36.0",
     LIMITS(0.01, 100000),
     .help = "age of the newest backup above which noctule doctor reports a problem"},
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
     .help = "folder of the database, the spool and the results; an absolute path; the command "
             "line option --root overrides it"},
    {"inbox", &option_list, AT(struct conf, inboxes), MANY(struct conf, inbox_count),
     .fallback = "( { path = \"inbox\"; } )", LIMITS(0, 16), .section = &option_inbox,
     .help = "folders to read files from"},
    {"series", &option_group, AT(struct conf, series), "{ }", .section = &series_section,
     .help = "completeness and max size of series"},
    {"jobs", &option_group, AT(struct conf, jobs), "{ }", .section = &jobs_section,
     .help = "retries and limits of jobs"},
    {"compute", &option_group, AT(struct conf, compute), "{ }", .section = &option_compute,
     .help = "processors, GPUs and Slurm"},
    {"dicom", &option_group, AT(struct conf, dicom), "{ }", .section = &option_dicom,
     .help = "the DICOM receiver"},
    {"destinations", &option_list, AT(struct conf, destinations),
     MANY(struct conf, destination_count), .fallback = "( )", LIMITS(0, 64),
     .section = &option_destination, .help = "destinations of results"},
    {"delivery", &option_group, AT(struct conf, delivery), "{ }", .section = &option_delivery,
     .help = "retries of deliveries"},
    {"pull", &option_group, AT(struct conf, pull), "{ }", .section = &option_pull,
     .help = "archives for noctule pull"},
    {"min_free_mib", &option_number, AT(struct conf, min_free_mib), "1024.0", LIMITS(0, 1e9),
     .help =
         "min free disk space: with less, no file is received; with less than half, no job starts"},
    {"retention", &option_group, AT(struct conf, retention), "{ }", .section = &option_retention,
     .help = "retention times of images, results and database rows"},
    {"backup", &option_group, AT(struct conf, backup), "{ }", .section = &backup_section,
     .help = "backups, which the site makes itself"},
    {"report", &option_group, AT(struct conf, report), "{ }", .section = &option_report,
     .help = "the report of each report period"},
    {"page", &option_group, AT(struct conf, page), "{ }", .section = &option_page,
     .help = "the read-only web UI, and metrics for monitoring"},
    {"pipelines", &option_list, AT(struct conf, pipelines), MANY(struct conf, pipeline_count),
     .fallback = "( )", LIMITS(0, 256), .section = &option_pipeline,
     .help = "pipelines: segments and measurements of a series"},
    {"rules", &option_list, AT(struct conf, rules), MANY(struct conf, rule_count),
     .fallback = "( )", LIMITS(0, 256), .section = &option_rule,
     .help = "rules that select pipelines for series; all matching rules apply, and each pipeline "
             "runs once"},
    {"device_serial_number", &option_text, AT(struct conf, device_serial_number), "\"noctule-1\"",
     LIMITS(1, 64), .form = &form_dicom,
     .help = "Device Serial Number (0018,1000) of this installation, written into every result"},
    {"identifiers", &option_choice, AT(struct conf, identifiers), "\"hashed\"",
     .choices = identifiers_choices,
     .help = "stored form of Accession Number and Patient ID in the database: \"plain\", "
             "\"hashed\" with the key in the root, or \"none\""},
    {"log_level", &option_word, AT(struct conf, log_level), "\"info\"", .choices = log_choices,
     .help = "lowest level of logged messages"},
};

const struct option_section option_root = {ROWS(root_rows), .size = sizeof(struct conf),
                                           .check = check_root};
