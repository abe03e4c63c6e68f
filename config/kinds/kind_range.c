/*
 * kind_range.c - options with two numbers, or with a group that defines how to compute them. The
 * member is a struct that begins with the two numbers; the section of the group fills the rest.
 */
#include "config/kinds/kinds.h"

/* Returns a row for the two numbers alone. */
static struct option_row
range_pair(const struct option_row *row)
{
    return (struct option_row){
        .kind = &option_numbers, .min = row->min, .max = row->max, .array = {.count = 2, .ends = true}};
}

static int
range_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    const struct option_row pair = range_pair(row);
    if (config_setting_is_group(setting))
        return read_section(reader, row->section, setting, field);
    int rc = read_is_sequence(setting) && config_setting_length(setting) == 2
                 ? pair.kind->read(reader, &pair, setting, field)
                 : read_fail(reader, setting, "must be [ ... ] of 2 numbers, or a group { ... }");
    return read_lose(reader, field, row->section->size, rc);
}

static void
range_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const struct option_row pair = range_pair(row);
    if (option_group.has(writer, row, field))
        option_group.write(writer, row, field);
    else
        pair.kind->write(writer, &pair, field);
}

const struct option_kind option_range = {.read = range_read,
                                         .write = range_write,
                                         .clear = option_clear_group,
                                         .type = "2 numbers or group",
                                         .below = ".",
                                         .limits = ""};
