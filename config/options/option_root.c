/*
 * option_root.c - the top-level options, those of series and jobs, and the checks across sections.
 */
#include "config/options/option_sections.h"

static const char *const identifiers_choices[] = {"none", "hashed", "plain", NULL};
static const char *const log_choices[] = {"error", "warn", "info", "debug", NULL};

static const struct option_row series_rows[] = {
    {ROW(conf_series, number, quiet_seconds), "60.0", LIMITS(0, 86400),
     .help = "time without a new slice after which a series is complete"},
    {ROW(conf_series, number, complete_seconds), "5.0", LIMITS(0, 86400),
     .help = "the same time if the number of slices in its headers has been reached"},
    {ROW(conf_series, number, patience_seconds), "300.0", LIMITS(0, 86400),
     .help = "the same time if slices are missing by the number in its headers"},
    {ROW(conf_series, integer, max_instances), "50000", LIMITS(1, 1000000),
     .help = "max number of instances; a larger series is rejected with SERIES_TOO_LARGE when it is complete"},
    {ROW(conf_series, number, max_mib), "65536.0", LIMITS(1, 16777216),
     .help = "max size of all files of a series; a larger series is rejected with SERIES_TOO_LARGE "
             "when it is complete"},
};

static const struct option_section series_section = {SECTION(series_rows, conf_series)};

static const struct option_row jobs_rows[] = {
    {ROW(conf_jobs, integer, max_attempts), "3", LIMITS(1, 100),
     .help = "number of attempts after which a job has failed"},
    {ROW(conf_jobs, number, retry_seconds), "30.0", LIMITS(0, 86400),
     .help = "delay before the second attempt; doubled before each further attempt"},
    {ROW(conf_jobs, number, retry_max_seconds), "600.0", LIMITS(0, 86400), .help = "max delay between attempts"},
    {ROW(conf_jobs, number, deadline_seconds), "3600.0", LIMITS(1, 604800),
     .help = "max duration of a job, checked once per second; a longer job is stopped, and counts as an attempt"},
    {ROW(conf_jobs, number, memory_mib), "0.0", LIMITS(0, 16777216),
     .help = "max memory of a job; a job that needs more fails at once; 0: the memory of the machine"},
    {ROW(conf_jobs, number, ageing_hours), "24.0", LIMITS(0, 8760),
     .help = "waiting time that raises the priority of a job by 1; 0: never"},
};

static const struct option_section jobs_section = {SECTION(jobs_rows, conf_jobs)};

static const struct option_row backup_rows[] = {
    {ROW(conf_backup, path, folder), "", LIMITS(1, 4000), .form = &form_absolute,
     .help = "folder of the site's backups, with one folder per backup that contains noctule.db; "
             "noctule doctor reports the age of the newest"},
    {ROW(conf_backup, number, max_age_hours), "36.0", LIMITS(0.01, 100000),
     .help = "age of the newest backup above which noctule doctor reports a problem"},
};

static const struct option_section backup_section = {SECTION(backup_rows, conf_backup)};

static const struct option_row report_rows[] = {
    {ROW(conf_report, moments, at), "\"07:00\"", LIMITS(5, 200),
     .help = "end of each report period, in local time or in a time zone, such as \"Mon-Fri 07:00 Europe/Berlin\"; "
             "adds a row to v_nights and sends the report; a missed report is sent after the next start"},
    {ROW(conf_report, text, command), "", LIMITS(1, 4000),
     .help = "command for /bin/sh that delivers the report: text on standard input, HTML in the "
             "file $NOCTULE_REPORT_HTML; by default none"},
    {ROW(conf_report, number, timeout_seconds), "300.0", LIMITS(1, 3600),
     .help = "max time for making the report and running the command; then the command is stopped"},
};

static const struct option_section report_section = {SECTION(report_rows, conf_report)};

static void
check_root(const void *object, const struct option_spot *spot)
{
    option_check_inboxes(object, spot);
    option_check_pipelines(object, spot);
    option_check_programs(object, spot);
    option_check_rules(object, spot);
    option_check_destinations(object, spot);
    option_check_sources(object, spot);
    option_check_retention(object, spot);
    option_check_web(object, spot);
    option_check_notify(object, spot);
    option_check_slurm(object, spot);
    if (option_wants_warnings(spot)) {
        option_warn_programs(object, spot);
        option_warn_rules(object, spot);
        option_warn_network(object, spot);
    }
}

/* The root must be the first row, because relative paths depend on it. */
static const struct option_row root_rows[] = {
    {ROW(conf, path, root), "\"" CONF_ROOT "\"", LIMITS(1, 4000), .form = &form_absolute,
     .help = "folder of the database, the spool and the results; an absolute path; the command "
             "line option --root overrides it"},
    {"inbox", &option_list, AT(struct conf, inboxes), MANY(struct conf, inbox_count),
     .fallback = "( { path = \"inbox\"; } )", LIMITS(0, 16), .section = &option_inbox,
     .help = "folders to read files from"},
    {ROW(conf, group, series), "{ }", .section = &series_section, .help = "completeness and max size of series"},
    {ROW(conf, group, jobs), "{ }", .section = &jobs_section, .help = "retries and limits of jobs"},
    {ROW(conf, group, compute), "{ }", .section = &option_compute, .help = "processors, GPUs and Slurm"},
    {ROW(conf, group, dicom), "{ }", .section = &option_dicom, .help = "the DICOM receiver"},
    {ROW(conf, list, destinations), MANY(struct conf, destination_count), .fallback = "( )", LIMITS(0, 64),
     .section = &option_destination, .help = "destinations of results"},
    {ROW(conf, group, delivery), "{ }", .section = &option_delivery, .help = "retries of deliveries"},
    {ROW(conf, group, pull), "{ }", .section = &option_pull, .help = "archives for noctule pull"},
    {ROW(conf, number, min_free_mib), "1024.0", LIMITS(0, 1e9),
     .help = "min free disk space: with less, no file is received; with less than half, no job starts"},
    {ROW(conf, group, retention), "{ }", .section = &option_retention,
     .help = "retention times of images, results and database rows"},
    {ROW(conf, group, backup), "{ }", .section = &backup_section, .help = "backups, which the site makes itself"},
    {ROW(conf, group, report), "{ }", .section = &report_section, .help = "the report of each report period"},
    {ROW(conf, list, notify), MANY(struct conf, notify_count), .fallback = "( )", LIMITS(0, 16),
     .section = &option_notify, .help = "commands that receive single events, such as a new alert"},
    {ROW(conf, group, page), "{ }", .section = &option_page, .help = "the web UI, and metrics for monitoring"},
    /* Programs must come before pipelines: the segments of a pipeline may be all labels of a program. */
    {ROW(conf, list, programs), MANY(struct conf, program_count), .fallback = "( )", LIMITS(0, 32),
     .section = &option_program, .help = "programs of the site, for segments with method = \"program\""},
    {ROW(conf, list, pipelines), MANY(struct conf, pipeline_count), .fallback = "( )", LIMITS(0, 256),
     .section = &option_pipeline, .help = "pipelines: segments and measurements of a series"},
    {ROW(conf, list, rules), MANY(struct conf, rule_count), .fallback = "( )", LIMITS(0, 256), .section = &option_rule,
     .help = "rules that select pipelines for series; all matching rules apply, and each pipeline runs once"},
    {ROW(conf, text, device_serial_number), "\"noctule-1\"", LIMITS(1, 64), .form = &form_dicom,
     .help = "Device Serial Number (0018,1000) of this installation, written into every result"},
    {ROW(conf, choice, identifiers), "\"hashed\"", .choices = identifiers_choices,
     .help =
         "stored form of Accession Number and Patient ID in the database and in tables of noctule cohort: \"plain\", "
         "\"hashed\" with the key in the root, or \"none\""},
    {ROW(conf, word, log_level), "\"info\"", .choices = log_choices, .help = "lowest level of logged messages"},
};

const struct option_section option_root = {SECTION(root_rows, conf), .check = check_root, .prepare = conf_resolve_root};
