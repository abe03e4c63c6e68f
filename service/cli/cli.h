/*
 * cli.h - the commands of `noctule`, one function each; main and their table are in cli.c.
 *
 * A command gets argv from its own name on, writes results to standard output and complaints to
 * standard error, and returns one of exit_codes.h.
 */
#ifndef NOCTULE_CLI_H
#define NOCTULE_CLI_H

#include "config/config.h"
#include "service/common/exit_codes.h"

#include <stdbool.h>

struct cli_context {
    const char *config_path;
    const char *root;        /* --root, or NULL */
    const struct conf *conf; /* NULL for the commands that work without */
};

struct cli_command {
    const char *name; /* NULL ends a table */
    bool needs_conf;
    int (*run)(const struct cli_context *context, int argc, char **argv);
    const char *arguments;
    const char *help;
};

/* What is asked of the daemon. */
extern const struct cli_command cli_control_commands[];

/* Or 128 + the number of the signal that ended it. */
int cli_run(const struct cli_context *context, int argc, char **argv);

/* jobs, review, show, features, series, destinations and deliveries, as argv[0] says. */
int cli_report(const struct cli_context *context, int argc, char **argv);

int cli_explain(const struct cli_context *context, int argc, char **argv);
int cli_echo(const struct cli_context *context, int argc, char **argv);
int cli_check_config(const struct cli_context *context, int argc, char **argv);
int cli_presets(const struct cli_context *context, int argc, char **argv);

/* The configuration; NULL after complaints of all that is wrong with it. `doubts`: what is doubtful
 * of a good one is told, too. conf_free. */
struct conf *cli_load_conf(const struct cli_context *context, const char *path, bool doubts);

/* "noctule: " and the message on standard error. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says that the arguments are wrong and where help is; EXIT_USAGE. */
int cli_usage_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* An option of a command, and where what it says goes: a flag, a text or a number. */
struct cli_option {
    const char *name; /* NULL ends a command's */
    char letter;      /* for short; 0: none */
    bool *flag;
    const char **text;
    int64_t *number;
    const char *noun; /* "job number"; NULL: a count */
    bool zero;        /* is a number, too */
    struct cli_texts *texts;
};

#define CLI_MAX_OPTIONS 9

/* Of an option that may be given more than once; `items` has room for as many as there are arguments. */
struct cli_texts {
    char **items;
    size_t count;
};

/* EXIT_OK, or EXIT_USAGE after a complaint; optind is that of the first argument then. */
int cli_parse_options(int argc, char **argv, const struct cli_option *options);

/* A job or delivery number or a count as decimal digits, 1 .. INT64_MAX; 0 or -EINVAL. */
int cli_parse_number(const char *text, int64_t *number);

#define CLI_TIME 32

/*
 * A time of UTC as the database has it, of how such a text begins ("2026-01-31", "2026-01-31T07:30")
 * or of how long ago it was ("90m", "36h", "7d"): *since then points into `text`. 0, also of NULL, or
 * -EINVAL.
 */
int cli_parse_since(const char **since, char text[CLI_TIME]);

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

/* status, for itself. */
int cli_status(const struct cli_context *context, int argc, char **argv);

/*
 * PING: 0 when a daemon serves this root and takes files in, -EINPROGRESS when it does not take in
 * any, another errno when none answers. What the daemon says of it, and what is not well
 * (service/daemon/troubles.h): malloc'd, "" or NULL where it says nothing.
 */
int cli_ask_daemon(const char *root, char **message, char **troubles);
/* Why it did not answer, of another errno: the word for what it is then ("not running", "not
 * answering", "unknown"), and a message. */
const char *cli_no_answer(const char *root, int rc, char *why, size_t size);

#endif
