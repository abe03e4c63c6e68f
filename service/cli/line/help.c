/* help.c - prints the help from the table of commands. */
#include "service/cli/line/line.h"

#include <ctype.h>
#include <string.h>

#define HELP_WIDTH  79
#define HELP_COLUMN 26 /* where option texts begin */

/* Prints words in lines that begin at `column`. The first line begins at `at`. */
static void
help_wrap(FILE *out, const char *text, int at, int column)
{
    bool first = true;
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (first || at + 1 + length > HELP_WIDTH) {
            fprintf(out, "%s%*s", at > column ? "\n" : "", at > column ? column : column - at, "");
            at = column;
        } else {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%.*s", length, text);
        at += length;
        text += length;
        text += strspn(text, " ");
        first = false;
    }
    fputc('\n', out);
}

static void
help_heading(FILE *out, const char *heading)
{
    fprintf(out, "\n%s%s:%s\n", cli_style(CLI_HEADING, out), heading, cli_style(CLI_PLAIN, out));
}

static void
help_options(FILE *out, const char *heading, const struct cli_option *options)
{
    if (!options || !options->name)
        return;
    help_heading(out, heading);
    for (const struct cli_option *option = options; option->name; option++) {
        const char *noun = cli_noun(option);
        char letter[] = "-x, ";
        letter[1] = option->letter;
        const int at = fprintf(out, "  %s--%s%s%s", option->letter ? letter : "    ", option->name, noun ? " " : "",
                               noun ? noun : "");
        char text[512];
        size_t used = (size_t)snprintf(text, sizeof text, "%s", option->help);
        for (size_t i = 0; option->word && option->word(i) && used < sizeof text; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : ": ", option->word(i));
        help_wrap(out, text, at >= HELP_COLUMN ? at + HELP_WIDTH : at, HELP_COLUMN);
    }
}

void
cli_print_command(const struct cli_command *command, FILE *out)
{
    for (size_t i = 0; i == 0 || command->usage[i]; i++)
        fprintf(out, "%s noctule %s%s%s\n", i == 0 ? "usage:" : "      ", command->name,
                command->usage[i] && command->usage[i][0] ? " " : "", command->usage[i] ? command->usage[i] : "");
    char help[512];
    snprintf(help, sizeof help, "%c%s.%s%s", toupper((unsigned char)command->help[0]), command->help + 1,
             command->more ? " " : "", command->more ? command->more : "");
    fputc('\n', out);
    help_wrap(out, help, 0, 0);
    help_options(out, "Options", command->options);
    fputs("\nAll commands take --config FILE and --root DIR. See man noctule.\n", out);
}

void
cli_print_help(FILE *out)
{
    fputs("usage: noctule [--config FILE] [--root DIR] COMMAND ...\n", out);
    for (const struct cli_group *group = cli_groups; group->heading; group++) {
        help_heading(out, group->heading);
        for (const struct cli_command *const *command = group->commands; *command; command++) {
            const int at = fprintf(out, "  %-13s", (*command)->name);
            help_wrap(out, (*command)->help, at, 16);
        }
    }
    help_options(out, "Options of every command", cli_globals);
    fputs("\nSee noctule COMMAND --help for its options, and man noctule for exit codes.\n", out);
}
