/*
 * options.c - what follows from the option table without any file.
 */
#include "config/options/sections.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

const struct option_row *
option_find(const struct option_section *section, const char *name)
{
    for (size_t i = 0; i < section->row_count; i++)
        if (strcmp(section->rows[i].name, name) == 0)
            return &section->rows[i];
    return NULL;
}

bool
option_replaced(const struct option_section *section, const struct option_row *row,
                const void *object)
{
    if (!row->instead)
        return false;
    size_t count;
    memcpy(&count, (const char *)object + option_find(section, row->instead)->count_offset,
           sizeof(count));
    return count > 0;
}

bool
option_applies(const struct option_section *section, const struct option_row *row,
               const void *object)
{
    if (option_replaced(section, row, object))
        return false;
    if (!row->with)
        return true;
    const struct option_row *with = option_find(section, row->with);
    unsigned value;
    memcpy(&value, (const char *)object + with->offset, sizeof(value));
    unsigned choices = with->kind == OPTION_FLAGS ? value : 1u << value;
    return (choices & row->with_choices) != 0;
}

bool
option_complain(struct option_complaint *complaint, const char *option, const char *format, ...)
{
    snprintf(complaint->option, sizeof(complaint->option), "%s", option);
    va_list values;
    va_start(values, format);
    vsnprintf(complaint->text, sizeof(complaint->text), format, values);
    va_end(values);
    return false;
}

static void
clear_part(const struct option_row *row, void *object)
{
    char *part;
    memcpy(&part, (char *)object + row->offset, sizeof(part));
    if (part)
        option_clear(row->section, part);
    free(part);
}

static void
clear_list(const struct option_row *row, void *object)
{
    char *base = object;
    char *elements;
    size_t count;
    memcpy(&elements, base + row->offset, sizeof(elements));
    memcpy(&count, base + row->count_offset, sizeof(count));
    for (size_t i = 0; i < count; i++)
        option_clear(row->section, elements + i * row->section->size);
    free(elements);
}

static void
clear_names(const struct option_row *row, void *object)
{
    char **names;
    size_t count;
    memcpy(&names, (char *)object + row->offset, sizeof(names));
    memcpy(&count, (char *)object + row->count_offset, sizeof(count));
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static void
clear_pointer(const struct option_row *row, void *object)
{
    void *pointer;
    memcpy(&pointer, (char *)object + row->offset, sizeof(pointer));
    free(pointer);
}

void
option_clear(const struct option_section *section, void *object)
{
    for (size_t i = 0; i < section->row_count; i++) {
        const struct option_row *row = &section->rows[i];
        switch (row->kind) {
        case OPTION_TEXT:
        case OPTION_WORD:
        case OPTION_INTEGERS:
            clear_pointer(row, object);
            break;
        case OPTION_GROUP:
            option_clear(row->section, (char *)object + row->offset);
            break;
        case OPTION_PART:
            clear_part(row, object);
            break;
        case OPTION_LIST:
            clear_list(row, object);
            break;
        case OPTION_NAMES:
            clear_names(row, object);
            break;
        case OPTION_CHOICE:
        case OPTION_FLAGS:
        case OPTION_NUMBER:
        case OPTION_INTEGER:
        case OPTION_BOOLEAN:
        case OPTION_SWITCH:
        case OPTION_NUMBERS:
            break;
        }
    }
}

/* ------------------------------------------------------------------- the table, for people ---- */

#define MAX_OPTIONS 256

struct listed {
    char key[96], type[128], limits[64];
};

static struct listed listed[MAX_OPTIONS];
static struct conf_option listing[MAX_OPTIONS];
static size_t listing_count;
static once_flag listing_once = ONCE_FLAG_INIT;

static void
describe_choices(char *type, size_t size, const char *what, const char *const *choices)
{
    size_t at = (size_t)snprintf(type, size, "%s", what);
    for (size_t i = 0; choices[i] && at < size; i++)
        at += (size_t)snprintf(type + at, size - at, "%s%s", i ? "|" : " ", choices[i]);
}

static void
describe_type(const struct option_row *row, char *type, size_t size)
{
    switch (row->kind) {
    case OPTION_TEXT:
        snprintf(type, size, "string");
        break;
    case OPTION_WORD:
    case OPTION_CHOICE:
    case OPTION_SWITCH:
        describe_choices(type, size, "enum", row->choices);
        break;
    case OPTION_FLAGS:
        describe_choices(type, size, "set", row->choices);
        break;
    case OPTION_NUMBER:
        snprintf(type, size, "number");
        break;
    case OPTION_INTEGER:
        snprintf(type, size, "integer");
        break;
    case OPTION_BOOLEAN:
        snprintf(type, size, "boolean");
        break;
    case OPTION_NUMBERS:
        snprintf(type, size, row->uniform ? "number or %zu" : "%zu numbers", row->count);
        break;
    case OPTION_INTEGERS:
        snprintf(type, size, row->count > 1 ? "lists of %zu integers" : "integers", row->count);
        break;
    case OPTION_GROUP:
    case OPTION_PART:
        snprintf(type, size, "group");
        break;
    case OPTION_LIST:
        snprintf(type, size, "list");
        break;
    case OPTION_NAMES:
        snprintf(type, size, "names");
        break;
    }
}

static void
describe_limits(const struct option_row *row, char *limits, size_t size)
{
    switch (row->kind) {
    case OPTION_TEXT:
        snprintf(limits, size, "%.0f .. %.0f characters", row->lo, row->hi);
        break;
    case OPTION_LIST:
    case OPTION_NAMES:
        snprintf(limits, size, "%.0f .. %.0f elements", row->lo, row->hi);
        break;
    case OPTION_NUMBER:
    case OPTION_INTEGER:
    case OPTION_NUMBERS:
        snprintf(limits, size, "%.10g .. %.10g", row->lo, row->hi);
        break;
    case OPTION_INTEGERS:
        snprintf(limits, size, "%.10g .. %.10g, 1 .. %zu elements", row->lo, row->hi, row->most);
        break;
    case OPTION_WORD:
    case OPTION_CHOICE:
    case OPTION_FLAGS:
    case OPTION_BOOLEAN:
    case OPTION_SWITCH:
    case OPTION_GROUP:
    case OPTION_PART:
        limits[0] = '\0';
        break;
    }
}

static void
list_section(const struct option_section *section, const char *prefix)
{
    for (size_t i = 0; i < section->row_count && listing_count < MAX_OPTIONS; i++) {
        const struct option_row *row = &section->rows[i];
        struct listed *text = &listed[listing_count];
        snprintf(text->key, sizeof(text->key), "%s%s", prefix, row->name);
        describe_type(row, text->type, sizeof(text->type));
        describe_limits(row, text->limits, sizeof(text->limits));
        listing[listing_count++] = (struct conf_option){.key = text->key,
                                                        .type = text->type,
                                                        .fallback = row->fallback,
                                                        .limits = text->limits,
                                                        .help = row->help};
        if (row->section) {
            char below[128];
            snprintf(below, sizeof(below), "%s%s", text->key,
                     row->kind == OPTION_LIST ? "[]." : ".");
            list_section(row->section, below);
        }
    }
}

static void
list_all(void)
{
    list_section(&option_root, "");
}

const struct conf_option *
conf_options(size_t *count)
{
    call_once(&listing_once, list_all);
    *count = listing_count;
    return listing;
}
