/*
 * cli.h - the commands of `noctule`, one struct cli_command each, and what they share; their table is in
 * commands.c, what a row is in line/line.h.
 *
 * A command writes results to standard output and complaints to standard error, and returns one of
 * exit_codes.h.
 */
#ifndef NOCTULE_SERVICE_CLI_CLI_H
#define NOCTULE_SERVICE_CLI_CLI_H

#include "config/config.h"
#include "service/cli/line/line.h"
#include "service/common/exit_codes.h"

#include <stdbool.h>

extern const struct cli_command cli_run, cli_run_job, cli_explain, cli_status, cli_report, cli_jobs,
    cli_review, cli_show, cli_features, cli_series, cli_destinations, cli_deliveries, cli_retry,
    cli_submit, cli_cancel, cli_hold, cli_release_held, cli_pause, cli_resume, cli_drain,
    cli_priority, cli_complete, cli_ack, cli_accept, cli_reject, cli_resend, cli_purge, cli_pull,
    cli_quarantine, cli_reload, cli_ping, cli_check_config, cli_doctor, cli_echo, cli_presets,
    cli_profiles, cli_cohort, cli_version, cli_help;

/*
 * Which configuration it is, where none was given: that of the daemon that runs here, which is said on standard error
 * where it is not the usual one; else the usual one. --root says which daemon where several run. A no for an answer is
 * -EEXIST, several run with different ones, or -EACCES, one runs that this user cannot or should not follow, and the
 * usual one is not there; or -ENOMEM.
 */
int cli_choose_conf(struct cli_context *context, struct error *error);

/* The configuration; NULL after complaints of all that is wrong with it. `findings` (may be NULL): what is
 * doubtful of a good one is told, too, and they are the caller's to free, either way. conf_free. */
struct conf *cli_load_conf(const struct cli_context *context, const char *path,
                           struct conf_findings *findings);

/* The configuration in force, of a daemon that answers, where the file cannot be loaded; NULL: there is none. conf_free. */
struct conf *cli_load_conf_in_force(const struct cli_context *context);

/* A job or delivery number or a count as decimal digits, 1 .. INT64_MAX; 0 or -EINVAL. */
int cli_parse_number(const char *text, int64_t *number);

/* Unix milliseconds of a time that may lack its end, "2026-01-31T07". Returns 0 or -EINVAL. */
int cli_time_to_ms(const char *text, int64_t *ms);

/* A Series Instance UID, by its looks. */
bool cli_is_uid(const char *text);

/* The pipeline of that name: EXIT_OK, or EXIT_NOT_FOUND after a complaint that names those there are. */
int cli_find_pipeline(const struct conf *conf, const char *name,
                      const struct conf_pipeline **pipeline);

/* Adds an input's files as collect_input does, or complains. */
struct collection;
int cli_collect(struct collection *files, const char *input);

/* The database of the root folder, to be read; EXIT_OK, or EXIT_DATABASE after a complaint. */
struct report;
int cli_open_report(const struct conf *conf, struct report **report);
/* The same without a word: 0 or -errno. */
int cli_try_report(const struct conf *conf, struct report **report, struct error *error);

#define CLI_DAEMON_SECONDS 10 /* that commands wait for each answer */

/*
 * PING: 0 when a daemon serves this root and takes files in, -EINPROGRESS when it does not take in
 * any, another errno when none answers. Its message, and its alerts in lines (alerts_from_lines): malloc'd, "" or
 * NULL if it sent none.
 */
int cli_ask_daemon(const char *root, int seconds, char **message, char **alerts);
/* Why it did not answer, of another errno: the word for what it is then ("not running", "not
 * answering", "unknown"), and a message. */
const char *cli_no_answer(const char *root, int seconds, int rc, char *why, size_t size);
/* The process that works in this root; 0: none, or it cannot be seen. */
int cli_find_daemon(const char *root);
#endif
