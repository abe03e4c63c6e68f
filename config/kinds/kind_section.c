/*
 * kind_section.c - options that contain options: a group in the same struct, in its own struct, or
 * a list.
 */
#include "config/kinds/kinds.h"

#include <errno.h>
#include <stdlib.h>

static int
group_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    if (config_setting_type(setting) != CONFIG_TYPE_GROUP)
        return read_lose(reader, field, row->section->size, read_fail(reader, setting, "must be a group { ... }"));
    return read_section(reader, row->section, setting, field);
}

static void
group_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const struct option_writer below = {
        .out = writer->out, .depth = writer->depth + 1, .identity = writer->identity, .rc = writer->rc};
    fputs("{\n", writer->out);
    if (writer->around)
        write_past_rows(&below, writer->around, writer->object, row->name);
    write_rows(&below, row->section, field);
    fprintf(writer->out, "%*s}", 2 * writer->depth, "");
}

/* Returns whether any option of the group is written. Pointers without a default are NULL if
 * absent. */
static bool
group_has(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    for (size_t i = 0; i < row->section->row_count; i++)
        if (write_wanted(writer, row->section, &row->section->rows[i], field))
            return true;
    return false;
}

void
option_clear_group(const struct option_row *row, void *field)
{
    option_clear(row->section, field);
}

const struct option_kind option_group = {.read = group_read,
                                         .write = group_write,
                                         .has = group_has,
                                         .clear = option_clear_group,
                                         .below = ".",
                                         .type = "group"};

static int
part_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    void **part = field;
    *part = calloc(1, row->section->size);
    if (!*part)
        return -ENOMEM;
    return group_read(reader, row, setting, *part);
}

static void
part_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const void *const *part = field;
    group_write(writer, row, *part);
}

static void
part_clear(const struct option_row *row, void *field)
{
    void **part = field;
    if (*part)
        option_clear(row->section, *part);
    free(*part);
}

const struct option_kind option_part = {
    .read = part_read, .write = part_write, .has = option_not_null, .clear = part_clear, .below = ".", .type = "group"};

/* Reads a group as a list of one element, if the kind allows that. Such a list is also written as a group, so that old
 * identities do not change. */
static int
list_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    const bool is_list = config_setting_type(setting) == CONFIG_TYPE_LIST;
    if (!is_list && row->kind == &option_parts)
        return read_one(reader, row, setting, row->section->size, field, group_read);
    if (!is_list)
        return read_lose(reader, field, sizeof(char *),
                         read_fail(reader, setting, "must be a list ( { ... }, { ... } )"));
    return read_elements(reader, row, setting, row->min, row->max, row->section->size, field, group_read);
}

static void
list_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const struct option_elements elements = option_elements(row, field);
    if (row->kind == &option_parts && elements.count == 1) {
        group_write(writer, row, elements.at);
        return;
    }
    fputs("( ", writer->out);
    for (size_t i = 0; i < elements.count; i++) {
        fputs(i ? ", " : "", writer->out);
        group_write(writer, row, elements.at + i * row->section->size);
    }
    fputs(" )", writer->out);
}

static void
list_clear(const struct option_row *row, void *field)
{
    const struct option_elements elements = option_elements(row, field);
    for (size_t i = 0; i < elements.count; i++)
        option_clear(row->section, elements.at + i * row->section->size);
    free(elements.at);
}

const struct option_kind option_parts = {.read = list_read,
                                         .write = list_write,
                                         .has = option_not_null,
                                         .clear = list_clear,
                                         .below = ".",
                                         .type = "group, or list of them",
                                         .limits = " groups"};

#define LIST(reads)                                                                                                    \
    {                                                                                                                  \
        .read = (reads), .write = list_write, .has = option_not_null, .clear = list_clear, .below = "[].",             \
        .type = "list", .limits = " elements"                                                                          \
    }

const struct option_kind option_list = LIST(list_read), option_segments = LIST(read_segments);
