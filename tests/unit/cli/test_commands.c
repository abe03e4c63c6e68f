/*
 * test_commands.c - checks that the parser, the help, the shell completions and the manual follow
 * the table of commands. NOCTULE_WRITE_MANUAL=1 writes the completions and the generated part of
 * the manual.
 */
#include "service/cli/cli.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BASH   NOCTULE_SOURCE_DIR "/docs/completions/noctule.bash"
#define ZSH    NOCTULE_SOURCE_DIR "/docs/completions/_noctule"
#define MANUAL NOCTULE_SOURCE_DIR "/docs/noctule.1"

#define EACH_COMMAND(command)                                                                                          \
    for (const struct cli_group *group = cli_groups; group->heading; group++)                                          \
        for (const struct cli_command *const *listed = group->commands, *command; (command = *listed) != NULL; listed++)
#define EACH_OPTION(option, command)                                                                                   \
    for (const struct cli_option *option = (command)->options; option && option->name; option++)

static char *
read_whole(const char *path)
{
    char *text = calloc(1, 1 << 18);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(text);
    if (file) {
        ck_assert_uint_lt(fread(text, 1, (1 << 18) - 1, file), (1 << 18) - 1);
        fclose(file);
    }
    return text;
}

/* ------------------------------------------------------------------------------ table rows ---- */

static bool
usage_has(const struct cli_command *command, const char *word)
{
    for (size_t i = 0; i < 5 && command->usage[i]; i++) {
        const char *at = command->usage[i];
        while ((at = strstr(at, word))) {
            at += strlen(word);
            if (strspn(at, "abcdefghijklmnopqrstuvwxyz-") == 0)
                return true;
        }
    }
    return false;
}

static void
check_option(const struct cli_command *command, const struct cli_option *option)
{
    char word[64];
    snprintf(word, sizeof word, "--%s", option->name);
    ck_assert_msg(option->kind && option->help && option->help[0], "%s %s", command->name, word);
    ck_assert_msg(usage_has(command, word) || usage_has(command, "[OPTION]..."), "the usage of %s lacks %s",
                  command->name, word);
    ck_assert_msg(option->kind != &cli_choice || option->word, "%s %s", command->name, word);
    EACH_OPTION(other, command)
    ck_assert_msg(other == option ||
                      (strcmp(other->name, option->name) != 0 && (!other->letter || other->letter != option->letter)),
                  "%s has %s twice", command->name, word);
    for (const struct cli_option *other = cli_globals; other->name; other++)
        ck_assert_msg(strcmp(other->name, option->name) != 0 && (!option->letter || other->letter != option->letter),
                      "%s has %s, which all have", command->name, word);
}

/* Checks that each --word of the usage is an option. */
static void
check_usage(const struct cli_command *command)
{
    for (size_t i = 0; i < 5 && command->usage[i]; i++)
        for (const char *at = command->usage[i]; (at = strstr(at, "--")); at += 2) {
            const size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
            bool known = false;
            EACH_OPTION(option, command)
            known |= strlen(option->name) == length && strncmp(option->name, at + 2, length) == 0;
            ck_assert_msg(known, "%s: %s", command->name, at);
        }
}

START_TEST(every_row_is_complete)
{
    EACH_COMMAND(command)
    {
        ck_assert_ptr_eq(cli_find_command(command->name), command);
        ck_assert(command->help && command->run && command->max_arguments >= command->min_arguments);
        ck_assert_msg(!command->min_arguments || command->needs, "%s", command->name);
        ck_assert(!command->options || command->size > 0);
        check_usage(command);
        EACH_OPTION(option, command)
        check_option(command, option);
    }
}

END_TEST

/* --------------------------------------------------------------------------------- parsing ---- */

static struct cli_context context;
static struct cli_call call;

/* Parses words as the arguments of "noctule". */
static int
parse(const char *words)
{
    static char text[256], *argv[32];
    int argc = 0;
    cli_release(&call);
    context = (struct cli_context){.config_path = "default"};
    snprintf(text, sizeof text, "noctule %s", words);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return cli_parse(argc, argv, &context, &call);
}

static const void *
option_of(const char *name)
{
    EACH_OPTION(option, call.command)
    if (strcmp(option->name, name) == 0)
        return (const char *)call.options + option->offset;
    ck_abort_msg("no option %s", name);
}

#define TEXT_OF(name)   (*(const char *const *)option_of(name))
#define NUMBER_OF(name) (*(const int64_t *)option_of(name))
#define FLAG_OF(name)   (*(const bool *)option_of(name))

START_TEST(options_and_arguments)
{
    ck_assert_int_eq(parse("jobs --pipeline head --limit=7 --json"), EXIT_OK);
    ck_assert_str_eq(call.command->name, "jobs");
    ck_assert_str_eq(TEXT_OF("pipeline"), "head");
    ck_assert_int_eq(NUMBER_OF("limit"), 7);
    ck_assert(FLAG_OF("json"));
    ck_assert_ptr_null(TEXT_OF("state"));
    ck_assert_int_eq(call.count, 0);

    ck_assert_int_eq(parse("run a -phead --output o b -jq -- -c --json"), EXIT_OK);
    ck_assert_str_eq(TEXT_OF("pipeline"), "head");
    ck_assert_str_eq(TEXT_OF("output"), "o");
    ck_assert(FLAG_OF("json") && FLAG_OF("quiet"));
    ck_assert_int_eq(call.count, 4);
    ck_assert_str_eq(call.arguments[1], "b");
    ck_assert_str_eq(call.arguments[3], "--json");

    ck_assert_int_eq(parse("run --object x --object=y -p p -o o in"), EXIT_OK);
    const struct cli_texts *objects = option_of("object");
    ck_assert_uint_eq(objects->count, 2);
    ck_assert_str_eq(objects->items[1], "y");
}

END_TEST

START_TEST(common_options_may_be_anywhere)
{
    ck_assert_int_eq(parse("--config a status"), EXIT_OK);
    ck_assert_str_eq(context.config_path, "a");
    ck_assert_int_eq(parse("status --config=b -r /root --json"), EXIT_OK);
    ck_assert_str_eq(context.config_path, "b");
    ck_assert_str_eq(context.root, "/root");
    ck_assert(FLAG_OF("json"));
    ck_assert_int_eq(parse("run --help"), EXIT_OK); /* even without the required arguments */
    ck_assert(context.help);
    ck_assert_int_eq(parse(""), EXIT_OK);
    ck_assert_ptr_null(call.command);
    ck_assert_str_eq(context.config_path, "default");
}

END_TEST

START_TEST(unambiguous_names_may_be_abbreviated)
{
    ck_assert_int_eq(parse("submit --dry --all --pipe p"), EXIT_OK);
    ck_assert(FLAG_OF("dry-run"));
    ck_assert_int_eq(parse("run --stack s -p p -o o in"), EXIT_OK); /* also the whole of a name */
    ck_assert_str_eq(TEXT_OF("stack"), "s");
}

END_TEST

START_TEST(numbers_times_and_values_with_a_dash)
{
    ck_assert_int_eq(parse("priority 7 -5"), EXIT_OK);
    ck_assert_str_eq(call.arguments[1], "-5");
    ck_assert_int_eq(parse("features 7 --segment 0"), EXIT_OK);
    ck_assert_int_eq(NUMBER_OF("segment"), 0);
    ck_assert_int_eq(parse("features 7"), EXIT_OK);
    ck_assert_int_lt(NUMBER_OF("segment"), 0);
    ck_assert_int_eq(parse("jobs --since 2026-01-31"), EXIT_OK);
    ck_assert_str_eq(TEXT_OF("since"), "2026-01-31");
    ck_assert_int_eq(parse("jobs --since 36h"), EXIT_OK);
    ck_assert_uint_eq(strlen(TEXT_OF("since")), strlen("2026-01-31T00:00:00.000Z"));
    ck_assert_int_eq(parse("report --since 2026-01 --until 2026-02 --since 2026-03 --since 2026-04"), EXIT_OK);
    ck_assert_str_eq(TEXT_OF("since"), "2026-04");
    ck_assert_str_eq(TEXT_OF("until"), "2026-02");
    ck_assert_int_eq(parse("report --since yesterday --until today"), EXIT_OK);
    ck_assert_int_lt(strcmp(TEXT_OF("since"), TEXT_OF("until")), 0);
}

END_TEST

/* Each line must be refused with this text on standard error. */
static const struct {
    const char *line, *words;
} refused[] = {
    {"stauts", "there is no command \"stauts\"; did you mean \"status\"? See noctule help"},
    {"frobnicate", "there is no command \"frobnicate\"; see noctule help"},
    {"help jbos", "did you mean \"jobs\"?"},
    {"jobs --stat", NULL},
    {"jobs --stats READY", "jobs: there is no option --stats; did you mean --state? See noctule jobs"},
    {"jobs --nothing", "jobs: there is no option --nothing; see noctule jobs --help"},
    {"jobs --confgi x", "did you mean --config?"},
    {"--confgi x jobs", "noctule: there is no option --confgi; did you mean --config?"},
    {"jobs -x", "there is no option -x"},
    {"jobs --limit", "jobs: --limit needs its N"},
    {"jobs --limit 0", "\"0\" is not a number from 1"},
    {"jobs --json=yes", "--json takes no value"},
    {"jobs --since h", "\"h\" is not a time"},
    {"jobs --s x", "--s is ambiguous"}, /* state, series, since */
    {"jobs 1", "jobs: \"1\" is one argument too many"},
    {"show", "show: needs one job number"},
    {"show 1 2", "show: needs one job number"},
    {"show x", "show: \"x\" is not a job number"},
    {"echo", "echo: needs the name of one destination"},
    {"run in", "run: needs --output DIR"},
    {"status --json --check", "status: --json and --check cannot be combined"},
};

START_TEST(invalid_command_lines_are_reported)
{
    char said[512] = "";
    fflush(stderr);
    FILE *file = tmpfile();
    const int before = dup(STDERR_FILENO);
    ck_assert(file && before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    int status = parse(refused[_i].line);
    if (status == EXIT_OK && call.command == &cli_help)
        status = call.command->run(&call);
    fflush(stderr);
    ck_assert_int_ge(dup2(before, STDERR_FILENO), 0);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    fclose(file);
    close(before);
    ck_assert_int_eq(status, EXIT_USAGE);
    if (refused[_i].words)
        ck_assert_msg(strstr(said, refused[_i].words) != NULL, "%s", said);
}

END_TEST

/* ------------------------------------------------------------------------------------ bash ---- */

static const char *const completions[] = {
    [CLI_NOTHING] = "nothing",           [CLI_FILES] = "files",
    [CLI_FOLDERS] = "folders",           [CLI_PIPELINES] = "pipelines",
    [CLI_DESTINATIONS] = "destinations", [CLI_PROGRAMS] = "programs",
    [CLI_PRESETS] = "presets",           [CLI_PROFILES] = "profiles",
    [CLI_COMMANDS] = "commands",         [CLI_CHOICES] = "choices",
};

static void
put_words(FILE *out, const struct cli_option *option)
{
    for (size_t i = 0; option->word(i); i++)
        fprintf(out, "%s%s", i ? " " : "", option->word(i));
}

static void
put_bash_value(FILE *out, const char *command, const struct cli_option *option)
{
    if (!cli_noun(option))
        return;
    fprintf(out, "    %s:--%s", command, option->name);
    if (option->letter)
        fprintf(out, " | %s:-%c", command, option->letter);
    if (option->word) {
        fputs(") words='", out);
        put_words(out, option);
        fputs("' ;;\n", out);
    } else {
        fprintf(out, ") kind=%s ;;\n", completions[option->kind->completion]);
    }
}

static void
put_bash_command(FILE *out, const struct cli_command *command)
{
    fprintf(out, "    %s)\n        options='", command->name);
    const char *between = "";
    EACH_OPTION(option, command)
    {
        fprintf(out, "%s--%s", between, option->name);
        between = " ";
    }
    fprintf(out, "'\n        kind=%s\n        ;;\n",
            command->max_arguments == 0 ? "nothing"
                                        : completions[command->kind ? command->kind->completion : CLI_NOTHING]);
}

static const char bash_head[] =
    "# noctule.bash - what bash completes of noctule(1); written by unit.cli_commands.\n"
    "# shellcheck shell=bash\n"
    "\n"
    "# _noctule_names WHAT OPTION...: the pipelines, destinations or programs of the configuration.\n"
    "_noctule_names() {\n"
    "    noctule \"${@:2}\" check-config 2>/dev/null | sed -n \"s/^$1: \\\\([^ "
    ",]*\\\\).*/\\\\1/p\"\n"
    "}\n"
    "\n"
    "_noctule() {\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} command='' kind='' words='' options='' globals=() "
    "i\n"
    "    COMPREPLY=()\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        --config | -c | --root | -r)\n"
    "            globals+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i + 1]}\")\n"
    "            ((++i))\n"
    "            ;;\n"
    "        -*) ;;\n"
    "        *) [[ $command ]] || command=${COMP_WORDS[i]} ;;\n"
    "        esac\n"
    "    done\n"
    "    case $command in\n";

static const char bash_tail[] =
    "    esac\n"
    "    [[ $current == -* && ! $value ]] && kind='' words=$options\n"
    "    case $kind in\n"
    "    files) return ;; # as bash does\n"
    "    folders)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -d -- \"$current\")\n"
    "        return\n"
    "        ;;\n"
    "    pipelines) words=$(_noctule_names pipeline \"${globals[@]}\") ;;\n"
    "    destinations) words=$(_noctule_names destination \"${globals[@]}\") ;;\n"
    "    programs) words=$(_noctule_names program \"${globals[@]}\") ;;\n"
    "    presets | profiles) words=$(noctule $kind --json 2>/dev/null | sed -n 's/.*\"name\": "
    "\"\\([^\"]*\\)\".*/\\1/p') ;;\n"
    "    commands) words=$commands ;;\n"
    "    esac\n"
    "    compopt +o default 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
    "}\n"
    "complete -o default -F _noctule noctule\n";

static void
make_bash(FILE *out)
{
    fputs(bash_head, out);
    EACH_COMMAND(command)
    put_bash_command(out, command);
    fputs("    *) kind=commands ;;\n    esac\n    options+=' ", out);
    for (const struct cli_option *option = cli_globals; option->name; option++)
        fprintf(out, "%s--%s", option == cli_globals ? "" : " ", option->name);
    fputs("'\n    local commands='", out);
    EACH_COMMAND(command)
    fprintf(out, "%s%s", command == &cli_run ? "" : " ", command->name);
    fputs("'\n    local value=yes\n    case $command:${COMP_WORDS[COMP_CWORD - 1]} in\n", out);
    for (const struct cli_option *option = cli_globals; option->name; option++)
        put_bash_value(out, "*", option);
    EACH_COMMAND(command)
    EACH_OPTION(option, command)
    put_bash_value(out, command->name, option);
    fputs("    *) value='' ;;\n", out);
    fputs(bash_tail, out);
}

/* ------------------------------------------------------------------------------------- zsh ---- */

/* Escapes for single quotes and for the brackets of _arguments. */
static void
put_zsh(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", out);
        else if (strchr("[]:\\", *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}

static const char *
zsh_action(enum cli_completion completion)
{
    static const char *const actions[] = {
        [CLI_NOTHING] = " ",
        [CLI_FILES] = "_files",
        [CLI_FOLDERS] = "_files -/",
        [CLI_PIPELINES] = "_noctule_names pipeline",
        [CLI_DESTINATIONS] = "_noctule_names destination",
        [CLI_PROGRAMS] = "_noctule_names program",
        [CLI_PRESETS] = "_noctule_shipped presets",
        [CLI_PROFILES] = "_noctule_shipped profiles",
        [CLI_COMMANDS] = "_noctule_commands",
        [CLI_CHOICES] = " ",
    };
    return actions[completion];
}

static void
put_zsh_option(FILE *out, const struct cli_option *option, const char *indent)
{
    const char *more = option->kind == &cli_files ? "*" : "";
    fputs(indent, out);
    if (option->letter)
        fprintf(out, "'(-%c --%s)'{-%c,--%s}'[", option->letter, option->name, option->letter, option->name);
    else
        fprintf(out, "'%s--%s[", more, option->name);
    put_zsh(out, option->help);
    fputc(']', out);
    if (option->word) {
        fprintf(out, ":%s:(", cli_noun(option));
        put_words(out, option);
        fputc(')', out);
    } else if (cli_noun(option)) {
        fprintf(out, ":%s:%s", cli_noun(option), zsh_action(option->kind->completion));
    }
    fputs("' \\\n", out);
}

static void
put_zsh_command(FILE *out, const struct cli_command *command)
{
    const struct cli_kind *kind = command->kind ? command->kind : &cli_text;
    fprintf(out, "        %s)\n            _arguments \\\n", command->name);
    EACH_OPTION(option, command)
    put_zsh_option(out, option, "                ");
    for (const struct cli_option *option = cli_globals; option->name; option++)
        put_zsh_option(out, option, "                ");
    if (command->max_arguments > 0)
        fprintf(out, "                '%s:%s:%s'\n", command->max_arguments == 1 ? "1" : "*", kind->noun,
                zsh_action(kind->completion));
    else
        fputs("                ':: : '\n", out);
    fputs("            ;;\n", out);
}

static const char zsh_head[] = "#compdef noctule\n"
                               "# _noctule - what zsh completes of noctule(1); written by unit.cli_commands.\n"
                               "\n"
                               "# _noctule_names WHAT: the pipelines, destinations or programs of the configuration.\n"
                               "_noctule_names() {\n"
                               "    local -a names\n"
                               "    names=(${(f)\"$(noctule check-config 2>/dev/null | sed -n \"s/^$1: \\([^ "
                               ",]*\\).*/\\1/p\")\"})\n"
                               "    compadd -a names\n"
                               "}\n"
                               "\n"
                               "_noctule_shipped() {\n"
                               "    local -a names\n"
                               "    names=(${(f)\"$(noctule $1 --json 2>/dev/null | sed -n 's/.*\"name\": "
                               "\"\\([^\"]*\\)\".*/\\1/p')\"})\n"
                               "    compadd -a names\n"
                               "}\n"
                               "\n"
                               "_noctule_commands() {\n"
                               "    local -a commands\n"
                               "    commands=(\n";

static void
make_zsh(FILE *out)
{
    fputs(zsh_head, out);
    EACH_COMMAND(command)
    {
        fprintf(out, "        '%s:", command->name);
        put_zsh(out, command->help);
        fputs("'\n", out);
    }
    fputs("    )\n    _describe command commands\n}\n\n"
          "_noctule() {\n    local curcontext=$curcontext state line\n    typeset -A opt_args\n"
          "    _arguments -C \\\n",
          out);
    for (const struct cli_option *option = cli_globals; option->name; option++)
        put_zsh_option(out, option, "        ");
    fputs("        '1:command:_noctule_commands' \\\n        '*::argument:->argument'\n"
          "    [[ $state == argument ]] || return\n    case $line[1] in\n",
          out);
    EACH_COMMAND(command)
    put_zsh_command(out, command);
    fputs("    esac\n}\n\n_noctule \"$@\"\n", out);
}

static void
expect_file(const char *path, void (*make)(FILE *out))
{
    char *made = NULL, *is = read_whole(path);
    size_t size = 0;
    FILE *out = open_memstream(&made, &size);
    ck_assert_ptr_nonnull(out);
    make(out);
    ck_assert_int_eq(fclose(out), 0);
    if (getenv("NOCTULE_WRITE_MANUAL")) {
        FILE *file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        fputs(made, file);
        ck_assert_int_eq(fclose(file), 0);
    } else {
        ck_assert_msg(strcmp(is, made) == 0,
                      "%s is not what the table makes: run this test once more with "
                      "NOCTULE_WRITE_MANUAL=1 in the environment",
                      path);
    }
    free(made);
    free(is);
}

START_TEST(completions_equal_those_of_the_table)
{
    expect_file(BASH, make_bash);
    expect_file(ZSH, make_zsh);
}

END_TEST

/* --------------------------------------------------------------------------------- manual ---- */

/* Reads the manual without roff markup. */
static char *
read_manual(void)
{
    char *text = read_whole(MANUAL), *to = text;
    for (const char *from = text; *from; from++)
        if (from[0] == '\\' && from[1] == 'f')
            from += 2;
        else if (*from != '\\' && *from != '"')
            *to++ = *from;
    *to = '\0';
    return text;
}

/* Checks whether a line begins the entry of a command: a macro of letters, then the name. */
static bool
is_entry(const char *line, const char *name)
{
    const size_t length = strlen(name);
    if (line[0] != '.' || line[1] != 'B')
        return false;
    const char *at = line + strcspn(line, " \n");
    at += *at == ' ';
    while (strncmp(at, name, length) != 0 || !strchr(" \n,", at[length])) {
        at += strcspn(at, ",\n");
        if (*at != ',')
            return false;
        at++;
    }
    return true;
}

START_TEST(the_manual_contains_each_command)
{
    char *manual = read_manual();
    const char *end = strstr(manual, ".SH USAGE\n");
    ck_assert_ptr_nonnull(end);
    EACH_COMMAND(command)
    {
        const char *at = manual;
        while ((at = strstr(at, "\n.T")) && at < end && !is_entry(at + 5, command->name))
            at++;
        ck_assert_msg(at && at < end, "noctule(1) has no entry of %s", command->name);
    }
    free(manual);
}

END_TEST

/* Writes a text as roff. */
static void
put_roff(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\'')
            fputs("\\(aq", out);
        else
            fputc(*text, out);
}

/* Writes a text as roff with a capital letter. */
static void
put_help(FILE *out, const char *text)
{
    fputc(toupper((unsigned char)*text), out);
    put_roff(out, text + 1);
}

static void
put_manual_option(FILE *out, const struct cli_option *option)
{
    fputs(".TP\n.B ", out);
    if (option->letter)
        fprintf(out, "\\-%c\\fR,\\fB ", option->letter);
    fputs("\\-\\-", out);
    put_roff(out, option->name);
    if (cli_noun(option))
        fprintf(out, " \\fI%s", cli_noun(option));
    fputc('\n', out);
    put_help(out, option->help);
    for (size_t i = 0; option->word && option->word(i); i++)
        fprintf(out, "%s%s", i ? ", " : ": ", option->word(i));
    fputs(".\n", out);
}

static void
put_manual_command(FILE *out, const struct cli_command *command)
{
    for (size_t i = 0; i == 0 || command->usage[i]; i++) {
        fprintf(out, "%s.B noctule ", i == 0 ? ".TP\n" : ".TQ\n");
        put_roff(out, command->name);
        fputs("\\fR ", out);
        put_roff(out, command->usage[i] ? command->usage[i] : "");
        fputc('\n', out);
    }
    put_help(out, command->help);
    fputs(".\n", out);
    if (!command->options)
        return;
    fputs(".RS\n", out);
    EACH_OPTION(option, command)
    put_manual_option(out, option);
    fputs(".RE\n", out);
}

/* Writes the manual with section USAGE made from the table. */
static void
make_manual(FILE *out)
{
    char *text = read_whole(MANUAL);
    const char *begin = strstr(text, ".SH USAGE\n"), *end = strstr(text, ".SH EXIT STATUS\n");
    ck_assert(begin && end && begin < end);
    fwrite(text, 1, (size_t)(begin - text), out);
    fputs(".SH USAGE\n", out);
    EACH_COMMAND(command)
    put_manual_command(out, command);
    fputs(end, out);
    free(text);
}

START_TEST(the_manual_equals_that_of_the_table)
{
    expect_file(MANUAL, make_manual);
}

END_TEST

/* The manual must not have an option that is not in the table. */
START_TEST(the_manual_contains_no_unknown_option)
{
    char *manual = read_manual();
    for (const char *at = manual; (at = strstr(at, "--")); at += 2) {
        const size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
        bool known = length == 0;
        for (const struct cli_option *option = cli_globals; option->name; option++)
            known |= strlen(option->name) == length && strncmp(option->name, at + 2, length) == 0;
        EACH_COMMAND(command)
        EACH_OPTION(option, command)
        known |= strlen(option->name) == length && strncmp(option->name, at + 2, length) == 0;
        ck_assert_msg(known, "noctule(1): %.40s", at);
    }
    free(manual);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("cli_commands");
    TCase *tests = tcase_create("commands");
    tcase_add_test(tests, every_row_is_complete);
    tcase_add_test(tests, options_and_arguments);
    tcase_add_test(tests, common_options_may_be_anywhere);
    tcase_add_test(tests, unambiguous_names_may_be_abbreviated);
    tcase_add_test(tests, numbers_times_and_values_with_a_dash);
    tcase_add_loop_test(tests, invalid_command_lines_are_reported, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tests, completions_equal_those_of_the_table);
    tcase_add_test(tests, the_manual_equals_that_of_the_table);
    tcase_add_test(tests, the_manual_contains_each_command);
    tcase_add_test(tests, the_manual_contains_no_unknown_option);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
