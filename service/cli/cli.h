/*
 * cli.h - the commands of `noctule`, one struct cli_command each, and their shared functions. The
 * table of commands is in commands.c; line/line.h describes a row.
 *
 * A command must write results to standard output and errors to standard error, and must return a
 * code of exit_codes.h.
 */
#ifndef NOCTULE_SERVICE_CLI_CLI_H
#define NOCTULE_SERVICE_CLI_CLI_H

#include "config/config.h"
#include "service/cli/line/line.h"
#include "service/common/exit_codes.h"

#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>

extern const struct cli_command cli_run, cli_run_job, cli_explain, cli_status, cli_report, cli_jobs, cli_review,
    cli_show, cli_features, cli_series, cli_destinations, cli_deliveries, cli_retry, cli_submit, cli_cancel, cli_hold,
    cli_release_held, cli_pause, cli_resume, cli_drain, cli_priority, cli_complete, cli_ack, cli_identity, cli_accept,
    cli_reject, cli_undo, cli_resend, cli_purge, cli_pull, cli_quarantine, cli_reload, cli_ping, cli_check_config,
    cli_doctor, cli_echo, cli_presets, cli_profiles, cli_programs, cli_cohort, cli_compare, cli_validate,
    cli_validations, cli_list, cli_similar, cli_version, cli_help;

/*
 * Chooses the configuration if no option or variable gives one: that of the running daemon, else
 * the default. Prints a line on standard error if it is not the default. With --root, only the
 * daemon of that root counts.
 *
 * Returns 0; -EEXIST if several daemons run with different configurations; -EACCES if the default
 * is missing and this user cannot see or must not trust the daemon's; or -ENOMEM. An error has a
 * message.
 */
int cli_choose_conf(struct cli_context *context, struct error *error);

/* Loads the configuration. Returns NULL after printing all errors. If `findings` is not NULL,
 * warnings are printed too, and the caller must free the findings in either case. The caller must
 * call conf_free. */
struct conf *cli_load_conf(const struct cli_context *context, const char *path, struct conf_findings *findings);

/* Returns the configuration in force of a daemon that answers, or NULL. Used if the file cannot be
 * loaded. The caller must call conf_free. */
struct conf *cli_load_conf_in_force(const struct cli_context *context);

/* Parses a job number, a delivery number or a count: decimal digits, 1 to INT64_MAX. Returns 0 or
 * -EINVAL. */
int cli_parse_number(const char *text, int64_t *number);

/* Converts a time to Unix milliseconds. The end of the text may be missing: "2026-01-31T07".
 * Returns 0 or -EINVAL. */
int cli_time_to_ms(const char *text, int64_t *ms);

/* Finds a pipeline by name. Returns EXIT_OK, or EXIT_NOT_FOUND after printing the names of all
 * pipelines. */
int cli_find_pipeline(const struct conf *conf, const char *name, const struct conf_pipeline **pipeline);

/* Adds the files of an input as input_collect does. Returns EXIT_OK, or another exit code after an
 * error message. */
struct collection;
int cli_collect(struct collection *files, const char *input);

/* Opens the database of the root folder for reading. Returns EXIT_OK, or EXIT_DATABASE after an
 * error message. */
struct report;
int cli_open_report(const struct conf *conf, struct report **report);
/* Does the same without printing. Returns 0 or -errno with a message. */
int cli_try_report(const struct conf *conf, struct report **report, struct error *error);

/* Makes a configuration whose only pipeline is an installed preset, of its name. Returns EXIT_OK, or another exit code
 * after an error message. The caller must call conf_free. */
int cli_load_preset(const char *name, struct conf **conf);

/* Reads the ranges that a pipeline is validated for (trust.h) from the database, if there is one. The caller must free
 * them. Returns NULL if there are none. */
char *cli_find_validated(const struct conf *conf, const struct conf_pipeline *pipeline);

#define CLI_DAEMON_SECONDS 10 /* time limit of commands for each answer */

/* Sends a PING. Returns 0 if a daemon serves this root and receives files, -EINPROGRESS if it does
 * not receive files yet, or another -errno if no daemon answers. Sets *message, and *alerts in the
 * lines of alerts_from_lines. Each is "" or NULL without an answer. The caller must free both. */
int cli_ping_daemon(const char *root, int seconds, char **message, char **alerts);
/* Explains another -errno of cli_ping_daemon. Returns the state of the daemon ("not running", "not
 * answering", "unknown") and writes a message into `why`. */
const char *cli_no_answer(const char *root, int seconds, int rc, char *why, size_t size);
/* Returns the process ID of the daemon of this root, or 0 if there is no such process or this user
 * cannot see it. Its locks or its control socket identify it. */
int cli_find_daemon(const char *root);

/* Finds the service's user: the owner of the root folder, else the installed user. *user is NULL if
 * both are unknown. If root calls it, the process becomes that user, with the caller's ID as saved
 * ID. Returns 1 if the rights changed, 0 if not, or -errno. Must be called before other threads
 * start. */
int cli_take_rights(const struct conf *conf, const struct passwd **user);

/* Tests a destination: sends a C-ECHO, tries STOW-RS, or checks that a folder is writable. Returns
 * 0 and the answer in `answer`, or -errno with a code and a message. `seconds` limits each wait; 0
 * uses the configured limits. Any thread may call it after dicom_init. */
int cli_echo_destination(const struct conf *conf, const struct conf_destination *destination, double seconds,
                         char *answer, size_t size, struct error *error);
/* Does the same for an archive of `noctule pull`. */
int cli_echo_source(const struct conf *conf, const struct conf_source *source, double seconds, char *answer,
                    size_t size, struct error *error);

/* A progress bar on the terminal with the remaining time. Thread-safe. */
struct progress;

/* Opens a bar on standard error. The bar is not drawn if `wanted` is false or standard error is not
 * a terminal. Returns NULL without memory. */
struct progress *cli_progress_open(bool wanted);
/* Begins a job with this title. */
void cli_progress_begin(struct progress *progress, const char *title);
/* Updates the bar, as the callback of struct pipeline_watch. context is the struct progress. */
void cli_progress_update(void *context, const char *stage, double fraction);
/* Erases the bar, so that other lines can be printed. */
void cli_progress_clear(struct progress *progress);
void cli_progress_close(struct progress *progress);

#endif
