/*
 * line.h - the command line: a row for each command and for each of its options.
 *
 * What is parsed, the help texts, what is suggested for a misspelt word, the completions of bash and
 * zsh (docs/completions, written by unit.cli_commands) and the check of noctule(1) follow from these
 * rows; there is no second list. Rows are immutable.
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

/* How a shell completes a value. */
enum cli_completion {
    CLI_NOTHING,
    CLI_FILES,
    CLI_FOLDERS,
    CLI_PIPELINES,
    CLI_DESTINATIONS,
    CLI_PRESETS,
    CLI_PROFILES,
    CLI_COMMANDS,
    CLI_CHOICES, /* the row's words */
};

/* What a value is, by the member that it goes to. */
struct cli_kind {
    const char *noun; /* in help: "JOB"; NULL: a flag, which has no value */
    const char *is;   /* in complaints: "a job number" */
    /* Puts it there (NULL: it is looked at alone): 0, -EINVAL where it is none, or -ENOMEM. */
    int (*take)(struct cli_call *call, char *text, void *member);
    enum cli_completion completion;
};

extern const struct cli_kind cli_flag, /* bool */
    cli_text, cli_file, cli_folder, cli_pipeline, cli_destination, cli_preset, cli_profile,
    cli_choice, cli_command_name, /* const char *, as it was given */
    cli_files,                    /* struct cli_texts: each time that it is given */
    cli_uid,                      /* const char *, a UID by its looks */
    cli_when,                   /* const char *, a time as the database has it; two of a command */
    cli_later,                  /* the same, in the future */
    cli_alert,                  /* const char *, the id of an alert */
    cli_job, cli_count, cli_id, /* int64_t from 1 */
    cli_segment;                /* int64_t from 0 */

/* Of an option that may be given more than once; `items` goes with its call. */
struct cli_texts {
    char **items;
    size_t count;
};

struct cli_option {
    const char *name; /* NULL ends a command's */
    char letter;      /* for short; 0: none */
    const struct cli_kind *kind;
    size_t offset; /* in the command's struct */
    const char *help;
    const char *noun;              /* in place of the kind's; NULL: that */
    const char *(*word)(size_t i); /* of choices, and for completion: NULL behind the last */
};

#define CLI_AT(type, member) offsetof(type, member)
#define CLI_JSON(type)                                                                             \
    {                                                                                              \
        "json", 'j', &cli_flag, CLI_AT(type, json), .help = "print JSON in place of text"          \
    }

struct cli_command {
    const char *name;
    const char *help;     /* what it does, in a line */
    const char *usage[5]; /* what may stand behind the name; NULL behind the last */
    const char *more;     /* what else has to be known; NULL: nothing */
    const struct cli_option *options;
    size_t size;                 /* of the struct that options fill; 0: it has none */
    const void *initial;         /* what it is before; NULL: zeros */
    const struct cli_kind *kind; /* of arguments; NULL: any text */
    int least, most;             /* arguments */
    const char *needs;           /* "one or more job numbers", where there are others */
    bool without_conf;
    bool standalone; /* needs no daemon and must not look for one: see run_with_conf */
    bool as_written; /* needs the file as it is; others go on with the configuration in force */
    /* What the rows cannot say alone, before the configuration is read: EXIT_OK, or EXIT_USAGE after a
     * complaint. NULL: nothing more. */
    int (*check)(struct cli_call *call);
    int (*run)(struct cli_call *call); /* one of exit_codes.h */
};

/* Commands under a heading; a NULL heading ends them. */
struct cli_group {
    const char *heading;
    const struct cli_command *const *commands; /* NULL behind the last */
};

extern const struct cli_group cli_groups[];

/* What stands before a command, or behind it. */
struct cli_context {
    const char *config_path; /* as it was given; NULL: not yet known (cli_choose_conf) */
    const char *root;        /* --root, or NULL */
    const struct conf *conf; /* NULL for the commands that work without */
    bool help, version;
    char *chosen[2]; /* configuration and root of a daemon, which the two point at */
};

extern const struct cli_option cli_globals[];

#define CLI_TIME 32

/* A command as it was given. */
struct cli_call {
    struct cli_context *context;
    const struct cli_command *command; /* NULL: none was named */
    void *options;                     /* the command's struct */
    char **arguments;
    int count;
    char when[2][CLI_TIME]; /* of times that options give */
    int when_count;
};

/* EXIT_OK, or EXIT_USAGE after a complaint; release the call either way. Borrows argv and reorders it. */
int cli_parse(int argc, char **argv, struct cli_context *context, struct cli_call *call);
void cli_release(struct cli_call *call);

/* The noun of an option's value, NULL of a flag. */
const char *cli_noun(const struct cli_option *option);
const struct cli_command *cli_find_command(const char *name);
/* After "there is no command" of that name, with the one that it seems to mean. */
int cli_no_command(const char *name);

/* All commands, a line each; one with its options. */
void cli_print_help(FILE *out);
void cli_print_command(const struct cli_command *command, FILE *out);

/* "noctule: " and the message on standard error. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says that the arguments are wrong and where help is; EXIT_USAGE. */
int cli_usage_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How words look on a terminal; plain elsewhere, and where NO_COLOR is set (no-color.org). */
enum cli_style { CLI_PLAIN, CLI_HEADING, CLI_GOOD, CLI_DOUBTFUL, CLI_BAD };

const char *cli_style(enum cli_style style, FILE *out);

#endif
