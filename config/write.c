/*
 * write.c - structs as configuration text, by the option table.
 *
 * Everything that has a value is written, defaults too, so that the text means the same to a later
 * version with other defaults.
 */
#include "config/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_rows(FILE *out, const struct option_section *section, const char *object,
                       int depth);

static void
write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* The shortest decimal that reads back to the same double, and never looks like an integer. */
static void
write_number(FILE *out, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (memcmp(&back, &value, sizeof(back)) == 0)
            break;
    }
    fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static bool
all_equal(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (memcmp(&values[i], &values[0], sizeof(values[0])) != 0)
            return false;
    return true;
}

static void
write_numbers(FILE *out, const struct option_row *row, const char *field)
{
    double values[3];
    memcpy(values, field, row->count * sizeof(values[0]));
    if (row->uniform && all_equal(values, row->count)) {
        write_number(out, values[0]);
        return;
    }
    for (size_t i = 0; i < row->count; i++) {
        fputs(i ? ", " : "[ ", out);
        write_number(out, values[i]);
    }
    fputs(" ]", out);
}

static void
write_integers(FILE *out, const struct option_row *row, const char *object)
{
    const int *values;
    size_t count;
    memcpy(&values, object + row->offset, sizeof(values));
    memcpy(&count, object + row->count_offset, sizeof(count));
    const bool tuples = row->count > 1;
    fputs(tuples ? "( " : "[ ", out);
    for (size_t i = 0; i < count * row->count; i++) {
        const char *between = i > 0 ? ", " : "";
        bool begins = tuples && i % row->count == 0;
        bool ends = tuples && i % row->count == row->count - 1;
        fprintf(out, "%s%s%d%s", between, begins ? "[ " : "", values[i], ends ? " ]" : "");
    }
    fputs(tuples ? " )" : " ]", out);
}

static void
write_flags(FILE *out, const struct option_row *row, unsigned flags)
{
    const char *before = "[ ";
    for (unsigned i = 0; row->choices[i]; i++)
        if (flags & (1u << i)) {
            fputs(before, out);
            write_text(out, row->choices[i]);
            before = ", ";
        }
    fputs(" ]", out);
}

static void
write_group(FILE *out, const struct option_section *section, const char *object, int depth)
{
    fputs("{\n", out);
    write_rows(out, section, object, depth + 1);
    fprintf(out, "%*s}", 2 * depth, "");
}

static void
write_part(FILE *out, const struct option_row *row, const char *field, int depth)
{
    const char *part;
    memcpy(&part, field, sizeof(part));
    write_group(out, row->section, part, depth);
}

static void
write_list(FILE *out, const struct option_row *row, const char *object, int depth)
{
    const char *elements;
    size_t count;
    memcpy(&elements, object + row->offset, sizeof(elements));
    memcpy(&count, object + row->count_offset, sizeof(count));
    fputs("( ", out);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", out);
        write_group(out, row->section, elements + i * row->section->size, depth);
    }
    fputs(" )", out);
}

static void
write_names(FILE *out, const struct option_row *row, const char *object)
{
    char **names;
    size_t count;
    memcpy(&names, object + row->offset, sizeof(names));
    memcpy(&count, object + row->count_offset, sizeof(count));
    fputs("[ ", out);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", out);
        write_text(out, names[i]);
    }
    fputs(" ]", out);
}

static void
write_value(FILE *out, const struct option_row *row, const char *object, int depth)
{
    const char *field = object + row->offset;
    const char *text;
    double number;
    unsigned choice;
    int integer;
    bool boolean;
    switch (row->kind) {
    case OPTION_TEXT:
    case OPTION_WORD:
        memcpy(&text, field, sizeof(text));
        write_text(out, text);
        break;
    case OPTION_CHOICE:
        memcpy(&choice, field, sizeof(choice));
        write_text(out, row->choices[choice]);
        break;
    case OPTION_FLAGS:
        memcpy(&choice, field, sizeof(choice));
        write_flags(out, row, choice);
        break;
    case OPTION_NUMBER:
        memcpy(&number, field, sizeof(number));
        write_number(out, number);
        break;
    case OPTION_INTEGER:
        memcpy(&integer, field, sizeof(integer));
        fprintf(out, "%d", integer);
        break;
    case OPTION_BOOLEAN:
        memcpy(&boolean, field, sizeof(boolean));
        fputs(boolean ? "true" : "false", out);
        break;
    case OPTION_SWITCH:
        memcpy(&boolean, field, sizeof(boolean));
        write_text(out, row->choices[boolean]);
        break;
    case OPTION_NUMBERS:
        write_numbers(out, row, field);
        break;
    case OPTION_INTEGERS:
        write_integers(out, row, object);
        break;
    case OPTION_GROUP:
        write_group(out, row->section, field, depth);
        break;
    case OPTION_PART:
        write_part(out, row, field, depth);
        break;
    case OPTION_LIST:
        write_list(out, row, object, depth);
        break;
    case OPTION_NAMES:
        write_names(out, row, object);
        break;
    }
}

static bool
is_null(const char *field)
{
    const void *pointer;
    memcpy(&pointer, field, sizeof(pointer));
    return pointer == NULL;
}

/* Has it a value? What is owned and has no default is NULL where it was not given, strings of a
 * group too; a set without a default has no member. */
static bool
has_value(const struct option_section *section, const struct option_row *row, const char *object)
{
    if (!option_applies(section, row, object))
        return false;
    if (row->optional) {
        bool given;
        memcpy(&given, object + row->given_offset, sizeof(given));
        return given;
    }
    if (row->alternative) {
        enum conf_unit unit;
        memcpy(&unit, object + row->unit_offset, sizeof(unit));
        return unit == row->unit;
    }
    if (row->kind == OPTION_TEXT || row->kind == OPTION_NAMES || row->kind == OPTION_INTEGERS ||
        row->kind == OPTION_PART)
        return !is_null(object + row->offset);
    if (row->kind == OPTION_FLAGS) {
        unsigned flags;
        memcpy(&flags, object + row->offset, sizeof(flags));
        return flags != 0;
    }
    if (row->kind == OPTION_GROUP) {
        for (size_t i = 0; i < row->section->row_count; i++)
            if (has_value(row->section, &row->section->rows[i], object + row->offset))
                return true;
        return false;
    }
    return true;
}

static void
write_rows(FILE *out, const struct option_section *section, const char *object, int depth)
{
    for (size_t i = 0; i < section->row_count; i++) {
        const struct option_row *row = &section->rows[i];
        if (!has_value(section, row, object))
            continue;
        fprintf(out, "%*s%s = ", 2 * depth, "", row->name);
        write_value(out, row, object, depth);
        fputs(";\n", out);
    }
}

char *
write_section(const struct option_section *section, const void *object)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    write_rows(out, section, object, 0);
    bool failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}
