/*
 * cli_common.c - what the commands of `noctule` share.
 */
#include "service/cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
cli_complain(const char *format, ...)
{
    va_list values;
    fputs("noctule: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
}

int
cli_usage_error(const char *command, const char *format, ...)
{
    va_list values;
    fprintf(stderr, "noctule: %s%s", command ? command : "", command ? ": " : "");
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputs("; see noctule help\n", stderr);
    return EXIT_USAGE;
}

int
cli_parse_number(const char *text, int64_t *number)
{
    if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0')
        return -EINVAL;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno != 0 || value < 1)
        return -EINVAL;
    *number = value;
    return 0;
}
