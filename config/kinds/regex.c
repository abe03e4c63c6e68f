/*
 * regex.c - options that are a regular expression, which is compiled as it is read.
 */
#include "config/kinds/kinds.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define REGEX_REPETITIONS 1000 /* the compiled form grows with them */

/* Behind a bracket expression that begins at `at`; its end where it is not closed. */
static const char *
regex_skip_bracket(const char *at)
{
    at += at[1] == '^' ? 2 : 1;
    at += *at == ']';
    while (*at && *at != ']') {
        const char inner = at[0] == '[' ? at[1] : '\0';
        if (inner == ':' || inner == '.' || inner == '=') {
            const char ending[] = {inner, ']', '\0'};
            const char *end = strstr(at + 2, ending);
            at = end ? end + 2 : at + strlen(at);
        } else {
            at++;
        }
    }
    return *at ? at + 1 : at;
}

/* Multiplies by the largest number of an interval "{2,5}". */
static long
regex_repeat(const char *at, long so_far)
{
    long most = 1;
    for (at++; isdigit((unsigned char)*at) || *at == ',';) {
        char *end;
        const long number = strtol(at, &end, 10);
        at = end > at ? end : at + 1;
        most = number > most ? number : most;
    }
    return most > REGEX_REPETITIONS ? REGEX_REPETITIONS + 1 : so_far * most;
}

/* What would cost more than an expression may; NULL: nothing. */
static const char *
regex_objection(const char *text)
{
    long repetitions = 1;
    for (const char *at = text; *at;) {
        if (at[0] == '\\' && isdigit((unsigned char)at[1]))
            return "has a back reference, which POSIX extended expressions have not";
        if (*at == '{')
            repetitions = regex_repeat(at, repetitions);
        if (repetitions > REGEX_REPETITIONS)
            return "has repetitions { } that multiply to more than 1000";
        at = *at == '[' ? regex_skip_bracket(at) : at + (at[0] == '\\' && at[1] ? 2 : 1);
    }
    return NULL;
}

static int
regex_compile(const struct option_reader *reader, config_setting_t *setting,
              struct conf_regex *regex)
{
    char why[128];
    const int error = regcomp(&regex->compiled, regex->text, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (error == 0)
        return 0;
    if (error == REG_ESPACE)
        return -ENOMEM;
    regerror(error, &regex->compiled, why, sizeof(why));
    return read_fail(reader, setting, "is no regular expression: %s", why);
}

static int
regex_read(const struct option_reader *reader, const struct option_row *row,
           config_setting_t *setting, void *field)
{
    struct conf_regex *regex = calloc(1, sizeof(*regex));
    if (!regex)
        return -ENOMEM;
    int rc = read_text(reader, row, setting, &regex->text);
    const char *objection = rc == 0 ? regex_objection(regex->text) : NULL;
    if (objection)
        rc = read_fail(reader, setting, "%s", objection);
    if (rc == 0)
        rc = regex_compile(reader, setting, regex);
    if (rc == 0) {
        memcpy(field, &regex, sizeof(regex));
        return 0; // cppcheck-suppress memleak ; the field has it now
    }
    free(regex->text);
    free(regex);
    return rc;
}

static void
regex_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const struct conf_regex *const *regex = field;
    (void)row;
    write_text(writer->out, (*regex)->text);
}

static void
regex_clear(const struct option_row *row, void *field)
{
    struct conf_regex *regex = *(struct conf_regex **)field;
    (void)row;
    if (!regex)
        return;
    regfree(&regex->compiled);
    free(regex->text);
    free(regex);
}

const struct option_kind option_regex = {.read = regex_read,
                                         .write = regex_write,
                                         .has = option_not_null,
                                         .clear = regex_clear,
                                         .type = "string",
                                         .limits = " characters"};
