/* help_style.c - colours and error messages. */
#include "service/cli/line/line.h"

#include "base/terminal.h"
#include "service/common/exit_codes.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *
cli_style(enum cli_style style, FILE *out)
{
    static const char *const escapes[] = {[CLI_PLAIN] = "\033[0m",
                                          [CLI_HEADING] = "\033[1m",
                                          [CLI_GOOD] = "\033[32m",
                                          [CLI_DOUBTFUL] = "\033[33m",
                                          [CLI_BAD] = "\033[31m"};
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    const bool plain = (no_color && no_color[0]) || (terminal && strcmp(terminal, "dumb") == 0);
    return plain || !isatty(terminal_of(out)) ? "" : escapes[style];
}

/* Prints "noctule: run: " and the message. */
__attribute__((format(printf, 2, 0))) static void
style_complain(const char *command, const char *format, va_list values)
{
    fprintf(stderr, "%snoctule:%s %s%s", cli_style(CLI_BAD, stderr), cli_style(CLI_PLAIN, stderr),
            command ? command : "", command ? ": " : "");
    vfprintf(stderr, format, values);
}

void
cli_print_error(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    style_complain(NULL, format, values);
    va_end(values);
    fputc('\n', stderr);
}

int
cli_usage_error(const char *command, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    style_complain(command, format, values);
    va_end(values);
    const bool is_hint = format[strlen(format) - 1] == '?';
    fprintf(stderr, "%s noctule %s%s\n", is_hint ? " See" : "; see", command ? command : "",
            command ? " --help" : "help");
    return EXIT_USAGE;
}
