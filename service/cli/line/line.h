/*
 * line.h - the command line: a row for each command and for each option.
 *
 * The parser, the help, suggestions for misspelt words, the shell completions (docs/completions,
 * written by unit.cli_commands) and the check of noctule(1) all use these rows. Rows must not
 * change at run time.
 */
#ifndef NOCTULE_SERVICE_CLI_LINE_LINE_H
#define NOCTULE_SERVICE_CLI_LINE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct conf;
struct cli_call;
struct cli_option;
struct cli_request;

/* Shell completion of a value. */
enum cli_completion {
    CLI_NOTHING,
    CLI_FILES,
    CLI_FOLDERS,
    CLI_PIPELINES,
    CLI_DESTINATIONS,
    CLI_PROGRAMS,
    CLI_PRESETS,
    CLI_PROFILES,
    CLI_COMMANDS,
    CLI_CHOICES, /* words of the row */
};

/* The kind of a value; it sets the type of the member. */
struct cli_kind {
    const char *noun; /* in help: "JOB"; NULL: a flag without a value */
    const char *is;   /* in messages: "a job number" */
    /* Stores the value in the member, or only checks it if member is NULL. Returns 0, -EINVAL or
     * -ENOMEM. */
    int (*take)(struct cli_call *call, char *text, void *member);
    enum cli_completion completion;
};

extern const struct cli_kind cli_flag, /* bool */
    cli_text, cli_file, cli_folder, cli_pipeline, cli_destination, cli_program, cli_preset, cli_profile, cli_choice,
    cli_command_name,           /* const char *, unchanged */
    cli_files,                  /* struct cli_texts: all values in order */
    cli_uid,                    /* const char * in the form of a UID */
    cli_when,                   /* const char *, a time; at max_arguments two per command */
    cli_later,                  /* const char *, a time in the future */
    cli_alert,                  /* const char *, the id of an alert */
    cli_job, cli_count, cli_id, /* int64_t, at min_arguments 1 */
    cli_segment;                /* int64_t, at min_arguments 0 */

/* Values of an option that may be repeated. cli_release frees `items`. */
struct cli_texts {
    char **items;
    size_t count;
};

struct cli_option {
    const char *name; /* NULL ends the list */
    char letter;      /* short option; 0 if absent */
    const struct cli_kind *kind;
    size_t offset; /* in the command's struct */
    const char *help;
    const char *noun;              /* replaces the noun of the kind, unless NULL */
    const char *(*word)(size_t i); /* choices, also for completion; NULL after the last */
};

#define CLI_AT(type, member) offsetof(type, member)
#define CLI_JSON(type)                                                                                                 \
    {                                                                                                                  \
        "json", 'j', &cli_flag, CLI_AT(type, json), .help = "print JSON instead of text"                               \
    }

struct cli_command {
    const char *name;
    const char *help;     /* one line: the effect of the command */
    const char *usage[5]; /* arguments after the name; NULL after the last */
    const char *more;     /* more text for the help, or NULL */
    const struct cli_option *options;
    size_t size;                      /* of the struct with the options; 0 if absent */
    const void *initial;              /* initial values; NULL: zeros */
    const struct cli_kind *kind;      /* of arguments; NULL: any text */
    int min_arguments, max_arguments; /* limits of the number of arguments */
    const char *needs;                /* text for a wrong number: "one or more job numbers" */
    bool without_conf;
    bool standalone; /* must not follow a running daemon: see run_with_conf */
    bool as_written; /* needs the file itself; others may use the configuration in force */
    /* Checks the options and arguments before the configuration is read. Returns EXIT_OK, or
     * EXIT_USAGE after an error message. May be NULL. */
    int (*check)(struct cli_call *call);
    int (*run)(struct cli_call *call); /* returns a code of exit_codes.h */
    const struct cli_request *request; /* sent by control_run() */
};

/* A heading with commands. A NULL heading ends the list. */
struct cli_group {
    const char *heading;
    const struct cli_command *const *commands; /* NULL after the last */
};

extern const struct cli_group cli_groups[];

/* Options that may be given before or after the command. */
struct cli_context {
    const char *config_path; /* as given; NULL: not yet known (cli_choose_conf) */
    const char *root;        /* --root, or NULL */
    const struct conf *conf; /* NULL for commands without_conf */
    bool is_in_force;        /* conf is the daemon's, because the file has an error */
    bool help, version;
    char *chosen[2]; /* owned: configuration and root of a running daemon */
};

extern const struct cli_option cli_globals[];

#define CLI_TIME 32

/* A parsed command line. */
struct cli_call {
    struct cli_context *context;
    const struct cli_command *command; /* NULL without a command */
    void *options;                     /* the command's struct */
    char **arguments;
    int count;
    char when[2][CLI_TIME]; /* buffers for times of options */
    int when_count;
};

/* Parses the command line. Returns EXIT_OK, or EXIT_USAGE after an error message. The caller must
 * call cli_release in either case. argv must outlive the call, and is reordered. */
int cli_parse(int argc, char **argv, struct cli_context *context, struct cli_call *call);
void cli_release(struct cli_call *call);

/* Returns the noun of an option's value, or NULL for a flag. */
const char *cli_noun(const struct cli_option *option);
const struct cli_command *cli_find_command(const char *name);
/* Prints an unknown command with the nearest name. Returns EXIT_USAGE. */
int cli_no_command(const char *name);

/* Print all commands, one line each; or one command with its options. */
void cli_print_help(FILE *out);
void cli_print_command(const struct cli_command *command, FILE *out);

/* Prints "noctule: " and the message on standard error. */
void cli_print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints an error in the arguments and where to find help. Returns EXIT_USAGE. */
int cli_usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text styles on a terminal. Other outputs are plain, and so is a terminal if NO_COLOR is set
 * (no-color.org). */
enum cli_style { CLI_PLAIN, CLI_HEADING, CLI_GOOD, CLI_DOUBTFUL, CLI_BAD };

const char *cli_style(enum cli_style style, FILE *out);

#endif
