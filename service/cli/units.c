/* units.c - see units.h. */
#include "service/cli/units.h"

#include "base/error.h"
#include "service/pipeline/pipeline.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------- series ---- */

static size_t
find_series(const struct units *units, const char *uid)
{
    size_t i = 0;
    while (i < units->series_count && strcmp(units->series[i].instances[0]->series_uid, uid) != 0)
        i++;
    return i;
}

static int
add_series(struct units *units, size_t room)
{
    struct headers *series = reallocarray(units->series, units->series_count + 1, sizeof *series);
    if (!series)
        return -ENOMEM;
    units->series = series;
    char ***paths = reallocarray(units->paths, units->series_count + 1, sizeof *paths);
    if (!paths)
        return -ENOMEM;
    units->paths = paths;
    struct headers *added = &series[units->series_count];
    memset(added, 0, sizeof *added);
    added->instances = calloc(room, sizeof *added->instances);
    added->rc = calloc(room, sizeof *added->rc);
    paths[units->series_count] = calloc(room, sizeof **paths);
    units->series_count++;
    return added->instances && added->rc && paths[units->series_count - 1] ? 0 : -ENOMEM;
}

static int
split_by_series(struct units *units, const struct headers *headers)
{
    for (size_t i = 0; i < headers->count; i++) {
        struct dicom_instance *instance = headers->instances[i];
        if (!instance)
            continue;
        size_t at = find_series(units, instance->series_uid);
        if (at == units->series_count) {
            int error = add_series(units, headers->count - i);
            if (error)
                return error;
        }
        struct headers *series = &units->series[at];
        units->paths[at][series->count] = instance->path;
        series->instances[series->count++] = instance;
    }
    if (units->series_count > 0)
        units->series[0].seconds = headers->seconds;
    return 0;
}

/* --------------------------------------------------------------------------------- units ---- */

static int
add_unit(struct units *units, size_t series, const char *stack)
{
    struct unit *grown = reallocarray(units->items, units->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    units->items = grown;
    struct unit *unit = &grown[units->count++];
    *unit = (struct unit){.headers = &units->series[series], .paths = units->paths[series]};
    snprintf(unit->stack, sizeof unit->stack, "%s", stack);
    return 0;
}

static int
split_by_stack(struct units *units, size_t at, const struct geometry_limits *limits,
               const char *wanted, struct error *error)
{
    const struct headers *series = &units->series[at];
    struct geometry_series *grouped;
    int rc = geometry_group(series->instances, (int32_t)series->count, limits, &grouped, error);
    if (rc)
        return rc;
    for (int32_t i = 0; i < grouped->stack_count && rc == 0; i++) {
        const char *name = grouped->stacks[i].name;
        if (!wanted || strcmp(wanted, name) == 0)
            rc = add_unit(units, at, name);
    }
    geometry_series_free(grouped);
    return rc ? error_set_system(error, rc, "group the files") : 0;
}

/* -------------------------------------------------------------------------------- naming ---- */

static int32_t
unique_number(const struct units *units, const struct headers *series)
{
    int32_t number = series->instances[0]->series_number;
    for (size_t i = 0; i < units->series_count; i++) {
        const struct headers *other = &units->series[i];
        if (other != series && other->instances[0]->series_number == number)
            return 0;
    }
    return number;
}

/* A part of a file name: letters, digits, dots and underscores as they are, one dash for others. */
static void
plain_name(char *to, size_t size, const char *from)
{
    size_t length = 0;
    for (; *from && length + 1 < size; from++) {
        bool kept = isalnum((unsigned char)*from) || *from == '.' || *from == '_';
        if (kept)
            to[length++] = *from;
        else if (length > 0 && to[length - 1] != '-')
            to[length++] = '-';
    }
    while (length > 0 && to[length - 1] == '-')
        length--;
    to[length] = '\0';
}

static bool
is_taken(const struct units *units, const struct unit *unit)
{
    for (const struct unit *other = units->items; other < unit; other++) {
        if (strcmp(other->output, unit->output) == 0)
            return true;
    }
    return false;
}

static char *
folder_name(const struct units *units, const struct unit *unit, const char *output, int again)
{
    char series[DICOM_UID_SIZE + 16], stack[sizeof unit->stack], repeat[16] = "", *path;
    int32_t number = unique_number(units, unit->headers);
    if (number > 0)
        snprintf(series, sizeof series, "series-%d", number);
    else
        snprintf(series, sizeof series, "%s", unit->headers->instances[0]->series_uid);
    plain_name(stack, sizeof stack, unit->stack);
    if (again > 1)
        snprintf(repeat, sizeof repeat, "-%d", again);
    return asprintf(&path, "%s/%s%s%s%s", output, series, stack[0] ? "-" : "", stack, repeat) < 0
               ? NULL
               : path;
}

static int
name_units(struct units *units, const char *output)
{
    for (size_t i = 0; i < units->count; i++) {
        struct unit *unit = &units->items[i];
        int again = 1;
        do {
            free(unit->output);
            unit->output =
                units->count == 1 ? strdup(output) : folder_name(units, unit, output, again++);
            if (!unit->output)
                return -ENOMEM;
        } while (is_taken(units, unit));
    }
    return 0;
}

int
units_make(const struct headers *headers, const struct conf_pipeline *pipeline, const char *stack,
           const char *output, struct units *units, struct error *error)
{
    const struct geometry_limits limits = pipeline_limits(pipeline);
    memset(units, 0, sizeof *units);
    int rc = split_by_series(units, headers);
    if (rc)
        error_set_system(error, rc, "group the files");
    for (size_t i = 0; i < units->series_count && rc == 0; i++)
        rc = split_by_stack(units, i, &limits, stack, error);
    if (rc == 0) {
        rc = name_units(units, output);
        if (rc)
            error_set_system(error, rc, "name the output folders");
    }
    if (rc)
        units_free(units);
    return rc;
}

void
units_free(struct units *units)
{
    for (size_t i = 0; i < units->count; i++)
        free(units->items[i].output);
    for (size_t i = 0; i < units->series_count; i++) {
        free(units->series[i].instances);
        free(units->series[i].rc);
        free(units->paths[i]);
    }
    free(units->items);
    free(units->series);
    free(units->paths);
    memset(units, 0, sizeof *units);
}
