/* parse.c - parses a command line with the table of commands. */
#include "service/cli/line/line.h"

#include "base/nearest.h"
#include "service/common/exit_codes.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The rest of the command line. */
struct line {
    struct cli_call *call;
    int argc;
    char **argv;
    int at;
};

const struct cli_option cli_globals[] = {
    {"config", 'c', &cli_file, CLI_AT(struct cli_context, config_path),
     .help = "configuration file; default: $NOCTULE_CONFIG, else that of the running noctuled, "
             "else /etc/noctule/noctule.conf"},
    {"root", 'r', &cli_folder, CLI_AT(struct cli_context, root),
     .help = "root folder; default: that of the configuration"},
    {"help", 'h', &cli_flag, CLI_AT(struct cli_context, help), .help = "print the help of the command"},
    {"version", 'V', &cli_flag, CLI_AT(struct cli_context, version), .help = "print the version"},
    {0},
};

const char *
cli_noun(const struct cli_option *option)
{
    return option->noun ? option->noun : option->kind->noun;
}

static const char *
line_command(const struct line *line)
{
    return line->call->command ? line->call->command->name : NULL;
}

/* ------------------------------------------------------------------------------- names ---- */

/* An option that was found, and the struct that it fills. */
struct found {
    const struct cli_option *option;
    void *object;
    int several; /* number of options that begin with the name; this is the last one */
    bool exact;
};

static void
find_named(const struct cli_option *options, void *object, const char *name, size_t length, struct found *found)
{
    for (const struct cli_option *option = options; option && option->name; option++) {
        if (found->exact || strncmp(option->name, name, length) != 0)
            continue;
        *found = (struct found){option, object, found->several + 1, !option->name[length]};
    }
}

static struct found
find_letter(const struct line *line, char letter)
{
    const struct cli_command *command = line->call->command;
    for (const struct cli_option *option = command ? command->options : NULL; option && option->name; option++)
        if (option->letter == letter)
            return (struct found){option, line->call->options, 1, true};
    for (const struct cli_option *option = cli_globals; option->name; option++)
        if (option->letter == letter)
            return (struct found){option, line->call->context, 1, true};
    return (struct found){0};
}

static int
refuse_option(const struct line *line, const char *name, size_t length)
{
    char word[64];
    const struct cli_command *command = line->call->command;
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    struct nearest nearest = nearest_of(word);
    for (const struct cli_option *option = command ? command->options : NULL; option && option->name; option++)
        nearest_try(&nearest, option->name);
    for (const struct cli_option *option = cli_globals; option->name; option++)
        nearest_try(&nearest, option->name);
    if (nearest.name)
        return cli_usage_error(line_command(line), "there is no option --%s; did you mean --%s?", word, nearest.name);
    return cli_usage_error(line_command(line), "there is no option --%s", word);
}

int
cli_no_command(const char *name)
{
    struct nearest nearest = nearest_of(name);
    for (const struct cli_group *group = cli_groups; group->heading; group++)
        for (const struct cli_command *const *command = group->commands; *command; command++)
            nearest_try(&nearest, (*command)->name);
    if (nearest.name)
        return cli_usage_error(NULL, "there is no command \"%s\"; did you mean \"%s\"?", name, nearest.name);
    return cli_usage_error(NULL, "there is no command \"%s\"", name);
}

const struct cli_command *
cli_find_command(const char *name)
{
    for (const struct cli_group *group = cli_groups; group->heading; group++)
        for (const struct cli_command *const *command = group->commands; *command; command++)
            if (strcmp((*command)->name, name) == 0)
                return *command;
    return NULL;
}

/* ------------------------------------------------------------------------------ values ---- */

static int
line_refuse_value(const struct line *line, const char *text, const struct cli_kind *kind, int rc)
{
    if (rc == -ENOMEM)
        return cli_usage_error(line_command(line), "out of memory");
    return cli_usage_error(line_command(line), "\"%s\" is not %s", text, kind->is);
}

/* `value` is the part after "=", or NULL if it is the next argument. */
static int
line_take(struct line *line, const struct found *found, char *value)
{
    const struct cli_option *option = found->option;
    if (option->kind->noun && !value && line->at < line->argc)
        value = line->argv[line->at++];
    if (option->kind->noun && !value)
        return cli_usage_error(line_command(line), "--%s needs its %s", option->name, cli_noun(option));
    int rc = option->kind->take(line->call, value, (char *)found->object + option->offset);
    return rc < 0 ? line_refuse_value(line, value, option->kind, rc) : EXIT_OK;
}

/* Takes --name, --name=VALUE, --name VALUE, and unambiguous abbreviations. */
static int
line_take_long(struct line *line, char *name)
{
    const size_t length = strcspn(name, "=");
    const struct cli_command *command = line->call->command;
    char *value = name[length] ? name + length + 1 : NULL;
    struct found found = {0};
    find_named(cli_globals, line->call->context, name, length, &found);
    find_named(command ? command->options : NULL, line->call->options, name, length, &found);
    if (found.several == 0)
        return refuse_option(line, name, length);
    if (found.several > 1 && !found.exact)
        return cli_usage_error(line_command(line), "--%.*s is ambiguous", (int)length, name);
    if (value && !found.option->kind->noun)
        return cli_usage_error(line_command(line), "--%s takes no value", found.option->name);
    return line_take(line, &found, value);
}

/* Takes -j, -jq, -pNAME and -p NAME. */
static int
line_take_letters(struct line *line, char *letters)
{
    int status = EXIT_OK;
    for (char *letter = letters; status == EXIT_OK && *letter; letter++) {
        const struct found found = find_letter(line, *letter);
        if (!found.option)
            return cli_usage_error(line_command(line), "there is no option -%c", *letter);
        if (found.option->kind->noun)
            return line_take(line, &found, letter[1] ? letter + 1 : NULL);
        status = line_take(line, &found, NULL);
    }
    return status;
}

/* ----------------------------------------------------------------------------- commands ---- */

static int
line_begin_command(struct line *line, const char *name)
{
    struct cli_call *call = line->call;
    const struct cli_command *command = cli_find_command(name);
    if (!command)
        return cli_no_command(name);
    call->command = command;
    call->options = calloc(1, command->size ? command->size : 1);
    if (!call->options)
        return line_refuse_value(line, name, &cli_text, -ENOMEM);
    if (command->initial)
        memcpy(call->options, command->initial, command->size);
    return EXIT_OK;
}

/* Moves arguments to the front of argv. */
static int
line_take_argument(struct line *line, char *argument, bool *options_end)
{
    struct cli_call *call = line->call;
    if (!*options_end && strcmp(argument, "--") == 0) {
        *options_end = true;
        return EXIT_OK;
    }
    /* An option begins with a dash. "-5" is a number, and "-" an argument. */
    if (!*options_end && argument[0] == '-' && argument[1] && !isdigit((unsigned char)argument[1]))
        return argument[1] == '-' ? line_take_long(line, argument + 2) : line_take_letters(line, argument + 1);
    if (!call->command)
        return line_begin_command(line, argument);
    call->arguments[call->count++] = argument;
    return EXIT_OK;
}

static int
line_check_arguments(struct line *line)
{
    struct cli_call *call = line->call;
    const struct cli_command *command = call->command;
    const struct cli_kind *kind = command->kind ? command->kind : &cli_text;
    if (call->count > command->max_arguments && !command->needs)
        return cli_usage_error(command->name, "\"%s\" is one argument too many",
                               call->arguments[command->max_arguments]);
    if (call->count < command->min_arguments || call->count > command->max_arguments)
        return cli_usage_error(command->name, "needs %s", command->needs);
    for (int i = 0; i < call->count; i++)
        if (kind->take(call, call->arguments[i], NULL) < 0)
            return line_refuse_value(line, call->arguments[i], kind, -EINVAL);
    return command->check ? command->check(call) : EXIT_OK;
}

int
cli_parse(int argc, char **argv, struct cli_context *context, struct cli_call *call)
{
    struct line line = {call, argc, argv, 1};
    bool options_end = false;
    int status = EXIT_OK;
    *call = (struct cli_call){.context = context, .arguments = argv + 1};
    while (status == EXIT_OK && line.at < argc) {
        char *argument = argv[line.at++];
        status = line_take_argument(&line, argument, &options_end);
    }
    if (status == EXIT_OK && context->root && !context->root[0])
        status = cli_usage_error(line_command(&line), "--root needs a folder");
    if (status == EXIT_OK && call->command && !context->help && !context->version)
        status = line_check_arguments(&line);
    return status;
}

void
cli_release(struct cli_call *call)
{
    const struct cli_option *options = call->command ? call->command->options : NULL;
    for (const struct cli_option *option = options; call->options && option && option->name; option++)
        if (option->kind == &cli_files)
            free(((struct cli_texts *)((char *)call->options + option->offset))->items);
    free(call->options);
    call->options = NULL;
}
