#include "tests/tools/measurements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_FIELDS = 9,
    MAX_BYTES = 64 << 20,
};

static _Noreturn void
die(const char *what, const char *line)
{
    fprintf(stderr, "MEASUREMENTS: %s: %s\n", what, line);
    exit(1);
}

static char *
read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(MAX_BYTES);
    if (!file || !text)
        die("cannot be read", path);
    size_t size = fread(text, 1, MAX_BYTES - 1, file);
    text[size] = '\0';
    fclose(file);
    return text;
}

/* Splits a line at its tabs; missing fields are "". */
static void
split(char *line, const char *fields[MAX_FIELDS])
{
    for (int i = 0; i < MAX_FIELDS; i++) {
        char *field = strsep(&line, "\t");
        fields[i] = field ? field : "";
    }
}

static struct coded_concept
code_at(const char *const fields[])
{
    return (struct coded_concept){fields[0], fields[1], fields[2]};
}

static struct coded_concept
unit_at(const char *const fields[])
{
    return (struct coded_concept){fields[0], "UCUM", fields[1]};
}

static void
take_measurement(const char *const fields[MAX_FIELDS], struct sr_measurement *measurement)
{
    *measurement = (struct sr_measurement){
        .concept = code_at(fields + 2),
        .unit = unit_at(fields + 5),
        .value = strcmp(fields[1], "-") == 0 ? 0.0 : strtod(fields[1], NULL),
        .absence = fields[7],
        .qualifier = strcmp(fields[8], "114006") == 0 ? SR_MEASUREMENT_FAILURE : SR_NOT_A_NUMBER,
    };
}

static void
take_modifier(const char *const fields[MAX_FIELDS], struct sr_measurement *measurement)
{
    if (measurement->modifier_count == SR_MAX_MODIFIERS)
        die("too many modifiers", fields[3]);
    struct coded_concept *modifier = measurement->modifiers[measurement->modifier_count++];
    modifier[0] = code_at(fields + 1);
    modifier[1] = code_at(fields + 4);
}

static void
take_parameter(const char *const fields[MAX_FIELDS], struct sr_measurement *measurement)
{
    if (measurement->parameter_count == SR_MAX_PARAMETERS)
        die("too many parameters", fields[4]);
    measurement->parameters[measurement->parameter_count++] = (struct sr_parameter){
        .concept = code_at(fields + 2),
        .unit = unit_at(fields + 5),
        .value = strtod(fields[1], NULL),
    };
}

/* Returns the number of measurements after this line. */
static size_t
take_line(const char *const fields[MAX_FIELDS], struct measurements *into, size_t count)
{
    struct sr_measurement *last = count > 0 ? &into->measurements[count - 1] : NULL;
    if (strcmp(fields[0], "group") == 0) {
        into->groups[into->group_count++] =
            (struct sr_group){.segment = atoi(fields[1]), .measurements = &into->measurements[count]};
    } else if (strcmp(fields[0], "measurement") == 0 && into->group_count > 0) {
        take_measurement(fields, &into->measurements[count++]);
        into->groups[into->group_count - 1].measurement_count++;
    } else if (strcmp(fields[0], "modifier") == 0 && last) {
        take_modifier(fields, last);
    } else if (strcmp(fields[0], "parameter") == 0 && last) {
        take_parameter(fields, last);
    } else if (strcmp(fields[0], "words") == 0 && last && last->words_count < SR_MAX_WORDS) {
        last->words[last->words_count++] = (struct sr_words){code_at(fields + 1), fields[4]};
    } else {
        die("not understood", fields[0]);
    }
    return count;
}

void
measurements_read(const char *path, struct measurements *into)
{
    *into = (struct measurements){.text = read_text(path)};
    size_t lines = 1;
    for (const char *c = into->text; *c; c++)
        lines += *c == '\n';
    into->groups = calloc(lines, sizeof(*into->groups));
    into->measurements = calloc(lines, sizeof(*into->measurements));
    if (!into->groups || !into->measurements)
        die("no memory", path);
    size_t count = 0;
    char *rest = into->text;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        const char *fields[MAX_FIELDS];
        if (line[0] == '\0')
            continue;
        split(line, fields);
        count = take_line(fields, into, count);
    }
}

void
measurements_free(struct measurements *measurements)
{
    free(measurements->text);
    free(measurements->groups);
    free(measurements->measurements);
}
