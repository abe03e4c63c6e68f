/* cli_common.c - what the commands of `noctule` share. */
#include "service/cli/cli.h"

#include "service/cli/collect.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static void
cli_tell_findings(const struct conf_findings *findings, bool wrong)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].wrong == wrong)
            cli_complain("%s%s", wrong ? "" : "warning: ", findings->items[i].message);
    if (findings->more > 0)
        cli_complain("and %zu more", findings->more);
}

struct conf *
cli_load_conf(const struct cli_context *context, const char *path, bool doubts)
{
    struct conf_findings findings;
    struct error error;
    struct conf *conf = NULL;
    int rc = conf_load_all(path, context->root, &conf, &findings, &error);
    if (rc < 0 && findings.count == 0)
        cli_complain("%s", error.message);
    else if (rc < 0 || doubts)
        cli_tell_findings(&findings, rc < 0);
    conf_findings_free(&findings);
    return conf;
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

/* Does it begin like one? */
static bool
cli_is_time(const char *text)
{
    static const char shape[] = "0000-00-00T00:00:00.000Z";
    size_t i = 0;
    while (text[i] && shape[i] &&
           (shape[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == shape[i]))
        i++;
    return !text[i] && i >= 4 && i < CLI_TIME;
}

/* The seconds of the last letter of "36h"; 0: it is none. */
static int64_t
cli_unit_seconds(const char *text)
{
    const size_t length = strlen(text);
    switch (length ? text[length - 1] : 0) {
    case 'm':
        return 60;
    case 'h':
        return 3600;
    case 'd':
        return 86400;
    default:
        return 0;
    }
}

int
cli_parse_since(const char **since, char text[CLI_TIME])
{
    int64_t count = 0, unit;
    if (!*since)
        return 0;
    if (strlen(*since) >= CLI_TIME)
        return -EINVAL;
    strcpy(text, *since);
    unit = cli_unit_seconds(text);
    if (unit == 0 && !cli_is_time(text))
        return -EINVAL;
    if (unit > 0) {
        text[strlen(text) - 1] = '\0';
        if (cli_parse_number(text, &count) < 0 || count > 1000000)
            return -EINVAL;
        const time_t then = time(NULL) - (time_t)(count * unit);
        struct tm utc;
        strftime(text, CLI_TIME, "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&then, &utc));
    }
    *since = text;
    return 0;
}

static int
cli_parse_option(const char *command, const struct cli_option *option)
{
    if (option->flag)
        *option->flag = true;
    else if (option->text)
        *option->text = optarg;
    else if (option->texts)
        option->texts->items[option->texts->count++] = optarg;
    else if (option->zero && strcmp(optarg, "0") == 0)
        *option->number = 0;
    else if (cli_parse_number(optarg, option->number) < 0)
        return option->noun ? cli_usage_error(command, "\"%s\" is not a %s", optarg, option->noun)
                            : cli_usage_error(command, "--%s needs a number from 1", option->name);
    return EXIT_OK;
}

int
cli_parse_options(int argc, char **argv, const struct cli_option *options)
{
    struct option longs[CLI_MAX_OPTIONS + 1] = {{NULL, 0, NULL, 0}};
    char letters[2 * CLI_MAX_OPTIONS + 1] = "", *letter = letters;
    for (int i = 0; options[i].name; i++) {
        bool plain = options[i].flag != NULL;
        longs[i] = (struct option){options[i].name, plain ? no_argument : required_argument, NULL,
                                   options[i].letter ? options[i].letter : i};
        if (options[i].letter)
            letter += sprintf(letter, plain ? "%c" : "%c:", options[i].letter);
    }
    int status = EXIT_OK, found;
    while (status == EXIT_OK && (found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        int i = 0;
        while (longs[i].name && longs[i].val != found)
            i++;
        status = longs[i].name ? cli_parse_option(argv[0], &options[i])
                               : cli_usage_error(argv[0], "wrong options");
    }
    return status;
}

bool
cli_is_uid(const char *text)
{
    const size_t length = strlen(text);
    return length > 0 && length <= 64 && strspn(text, "0123456789.") == length;
}

int
cli_find_pipeline(const struct conf *conf, const char *name, const struct conf_pipeline **pipeline)
{
    *pipeline = conf_find_pipeline(conf, name);
    if (*pipeline)
        return EXIT_OK;
    cli_complain("the configuration has no pipeline \"%s\"; it has:", name);
    for (size_t i = 0; i < conf->pipeline_count; i++)
        cli_complain("  %s", conf->pipelines[i].name);
    return EXIT_NOT_FOUND;
}

int
cli_collect(struct collection *files, const char *input)
{
    char *where;
    int rc = collect_input(files, input, &where);
    if (rc == 0)
        return EXIT_OK;
    cli_complain("%s: %s", where ? where : input, strerror(-rc));
    free(where);
    return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_PARTIAL;
}
