/* kinds.c - the kinds of values on the command line. */
#include "base/text.h"
#include "service/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int
kind_flag(struct cli_call *call, char *text, void *member)
{
    (void)call;
    (void)text;
    *(bool *)member = true;
    return 0;
}

static int
kind_text(struct cli_call *call, char *text, void *member)
{
    (void)call;
    if (member)
        *(const char **)member = text;
    return 0;
}

static int
kind_name(struct cli_call *call, char *text, void *member)
{
    return *text ? kind_text(call, text, member) : -EINVAL;
}

static int
kind_texts(struct cli_call *call, char *text, void *member)
{
    struct cli_texts *texts = member;
    char **grown = reallocarray(texts->items, texts->count + 1, sizeof *grown);
    (void)call;
    if (!grown)
        return -ENOMEM;
    texts->items = grown;
    grown[texts->count++] = text;
    return 0;
}

static int
kind_uid(struct cli_call *call, char *text, void *member)
{
    return text_is_uid(text) ? kind_text(call, text, member) : -EINVAL;
}

static int
kind_number(struct cli_call *call, char *text, void *member)
{
    int64_t number;
    (void)call;
    if (cli_parse_number(text, &number) < 0)
        return -EINVAL;
    if (member)
        *(int64_t *)member = number;
    return 0;
}

static int
kind_segment(struct cli_call *call, char *text, void *member)
{
    if (strcmp(text, "0") != 0)
        return kind_number(call, text, member);
    *(int64_t *)member = 0;
    return 0;
}

/* Parses "today", "yesterday", or a duration such as "36h": ago, or from now if direction is 1.
 * Returns 0 or -EINVAL. */
static int
when_counted(const char *text, int direction, time_t *then)
{
    char digits[CLI_TIME];
    int64_t count;
    const bool yesterday = strcmp(text, "yesterday") == 0;
    if (yesterday || strcmp(text, "today") == 0) {
        const time_t now = time(NULL);
        struct tm day;
        localtime_r(&now, &day);
        day.tm_mday -= yesterday;
        day.tm_hour = day.tm_min = day.tm_sec = 0;
        day.tm_isdst = -1;
        *then = mktime(&day);
        return 0;
    }
    const size_t length = strlen(text);
    const char letter = length ? text[length - 1] : 0; /* the unit of "36h" */
    const int64_t unit = letter == 'm' ? 60 : letter == 'h' ? 3600 : letter == 'd' ? 86400 : 0;
    snprintf(digits, sizeof digits, "%.*s", (int)strlen(text) - 1, text);
    if (unit == 0 || cli_parse_number(digits, &count) < 0 || count > 1000000)
        return -EINVAL;
    *then = time(NULL) + (time_t)(direction * count * unit);
    return 0;
}

/* Takes a UTC time in the form of the database or its beginning ("2026-01-31", "2026-01-31T07:30"),
 * a duration ("90m", "36h", "7d"), or "today" and "yesterday", which begin at local midnight. */
static int
when_take(struct cli_call *call, char *text, void *member, int direction)
{
    const char *given = member ? *(const char **)member : NULL; /* set if the option repeats */
    char *when = call->when[given == call->when[0] || (!given && call->when_count == 0) ? 0 : 1];
    time_t then;
    struct tm utc;
    if (strlen(text) >= CLI_TIME)
        return -EINVAL;
    static const char shape[] = "0000-00-00T00:00:00.000Z";
    size_t i = 0;
    while (text[i] && shape[i] && (shape[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == shape[i]))
        i++;
    if (!text[i] && i >= 4) /* it begins like a time */
        strcpy(when, text);
    else if (when_counted(text, direction, &then) == 0)
        strftime(when, CLI_TIME, "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&then, &utc));
    else
        return -EINVAL;
    call->when_count += given == NULL;
    return kind_text(call, when, member);
}

static int
kind_when(struct cli_call *call, char *text, void *member)
{
    return when_take(call, text, member, -1);
}

static int
kind_later(struct cli_call *call, char *text, void *member)
{
    return when_take(call, text, member, 1);
}

const struct cli_kind cli_flag = {.take = kind_flag}, cli_text = {"WORDS", "a text", kind_text, CLI_NOTHING},
                      cli_file = {"FILE", "a file", kind_text, CLI_FILES},
                      cli_folder = {"DIR", "a folder", kind_text, CLI_FOLDERS},
                      cli_pipeline = {"NAME", "a pipeline", kind_name, CLI_PIPELINES},
                      cli_destination = {"NAME", "a destination", kind_name, CLI_DESTINATIONS},
                      cli_program = {"NAME", "a program", kind_name, CLI_PROGRAMS},
                      cli_preset = {"NAME", "a preset", kind_name, CLI_PRESETS},
                      cli_profile = {"NAME", "a profile", kind_name, CLI_PROFILES},
                      cli_choice = {"WORD", "a word", kind_text, CLI_CHOICES},
                      cli_command_name = {"COMMAND", "a command", kind_text, CLI_COMMANDS},
                      cli_files = {"FILE", "a file", kind_texts, CLI_FILES},
                      cli_uid = {"SERIES_UID", "a UID", kind_uid, CLI_NOTHING},
                      cli_when = {"WHEN", "a time", kind_when, CLI_NOTHING},
                      cli_later = {"WHEN", "a time", kind_later, CLI_NOTHING},
                      cli_alert = {"ALERT", "an alert id", kind_name, CLI_NOTHING},
                      cli_job = {"JOB", "a job number", kind_number, CLI_NOTHING},
                      cli_id = {"DELIVERY", "a delivery number", kind_number, CLI_NOTHING},
                      cli_count = {"N", "a number from 1", kind_number, CLI_NOTHING},
                      cli_segment = {"N", "a segment number", kind_segment, CLI_NOTHING};
