/*
 * read.c - from libconfig's settings to structs, by the option table.
 *
 * Defaults are read by the same code as the file, from the text in their row.
 */
#include "config/read.h"

#include "config/kinds/kinds.h"
#include "config/options/sections.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#define KEY_SIZE 256

/* ------------------------------------------------------------------------------- errors ---- */

/* Appends the setting's full name: "pipelines[0].segments[1].range". */
static size_t
read_put_key(const config_setting_t *setting, char *key, size_t size)
{
    const config_setting_t *parent = config_setting_parent(setting);
    if (!parent)
        return 0;
    size_t at = read_put_key(parent, key, size);
    if (at >= size)
        return at;
    const char *name = config_setting_name(setting);
    int used = name ? snprintf(key + at, size - at, "%s%s", at ? "." : "", name)
                    : snprintf(key + at, size - at, "[%d]", config_setting_index(setting));
    return used < 0 ? at : at + (size_t)used;
}

int
read_fail(const struct option_reader *reader, const config_setting_t *setting, const char *format,
          ...)
{
    char place[1024], key[KEY_SIZE] = "", text[512];
    source_place(reader->source, config_setting_source_line(setting), place, sizeof(place));
    bool named = read_put_key(setting, key, sizeof(key)) > 0;
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    return error_set(reader->error, -EINVAL, CODE_NONE, "%s: %s%s%s", place, key, named ? ": " : "",
                     text);
}

/* --------------------------------------------------------------- what kinds have in common ---- */

bool
read_is_sequence(const config_setting_t *setting)
{
    int type = config_setting_type(setting);
    return type == CONFIG_TYPE_ARRAY || type == CONFIG_TYPE_LIST;
}

int
read_elements(const struct option_reader *reader, const struct option_row *row,
              config_setting_t *setting, double min, double max, size_t size, void *field,
              option_read *read)
{
    const size_t count = (size_t)config_setting_length(setting);
    int rc = 0;
    if ((double)count < min || (double)count > max)
        return read_fail(reader, setting, "has %zu elements; %.0f .. %.0f are allowed", count, min,
                         max);
    char *elements = calloc(count ? count : 1, size);
    if (!elements)
        return source_out_of_memory(reader->error);
    memcpy(field, &elements, sizeof(elements));
    memcpy((char *)field - row->offset + row->count_offset, &count, sizeof(count));
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = read(reader, row, config_setting_get_elem(setting, (unsigned)i), elements + i * size);
    return rc; // cppcheck-suppress memleak ; the field has them now
}

/* ------------------------------------------------------------------------ rows, sections ---- */

static void
read_mark(const struct option_mark *mark, void *object)
{
    void *member = (char *)object + mark->offset;
    if (mark->alternative)
        *(unsigned *)member = mark->value;
    else
        *(bool *)member = true;
}

static int
read_option(const struct option_reader *reader, const struct option_row *row,
            config_setting_t *setting, void *object)
{
    if (row->mark)
        read_mark(row->mark, object);
    return row->kind->read(reader, row, setting, option_field(row, object));
}

/* Has everything its name, and every string its text? libconfig goes on where it had no memory. */
static bool
read_is_whole(const config_setting_t *setting)
{
    if (config_setting_type(setting) == CONFIG_TYPE_STRING)
        return config_setting_get_string(setting) != NULL;
    for (unsigned i = 0; i < (unsigned)config_setting_length(setting); i++) {
        const config_setting_t *element = config_setting_get_elem(setting, i);
        if ((config_setting_is_group(setting) && !config_setting_name(element)) ||
            !read_is_whole(element))
            return false;
    }
    return true;
}

/* 0, -EINVAL where it cannot be parsed, or -ENOMEM. */
static int
read_parse(config_t *config, const char *text)
{
    if (config_read_string(config, text) != CONFIG_TRUE)
        return -EINVAL;
    return read_is_whole(config_root_setting(config)) ? 0 : -ENOMEM;
}

static int
read_fallback(const struct option_reader *reader, const struct option_row *row, void *object)
{
    char *text;
    if (asprintf(&text, "%s = %s;", row->name, row->fallback) < 0)
        return source_out_of_memory(reader->error);
    config_t config;
    config_init(&config);
    int rc = read_parse(&config, text); /* a default is well-formed */
    rc = rc == 0 ? read_option(reader, row, config_lookup(&config, row->name), object)
                 : source_out_of_memory(reader->error);
    config_destroy(&config);
    free(text);
    return rc;
}

static bool
read_is_alternative(const struct option_row *row)
{
    return row->mark && row->mark->alternative;
}

/* Writes the names of the rows, all or the alternatives only: "a, b, c". */
static void
read_name_rows(const struct option_section *section, bool alternatives, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < section->row_count && at < size; i++)
        if (!alternatives || read_is_alternative(&section->rows[i]))
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "",
                                   section->rows[i].name);
}

static bool
has_moved(const struct option_section *section, const char *name)
{
    const char *const *moved = section->moved;
    while (moved && *moved && strcmp(*moved, name) != 0)
        moved++;
    return moved && *moved;
}

static int
read_refuse_unknown(const struct option_reader *reader, const struct option_section *section,
                    const config_setting_t *group)
{
    for (unsigned i = 0; i < (unsigned)config_setting_length(group); i++) {
        const config_setting_t *setting = config_setting_get_elem(group, i);
        const char *name = config_setting_name(setting);
        if (!option_find(section, name) && !has_moved(section, name)) {
            char known[256];
            read_name_rows(section, false, known, sizeof(known));
            return read_fail(reader, setting, "there is no such option; here are: %s", known);
        }
    }
    return 0;
}

/* The line is that of the option that has no use. */
static int
read_refuse_unused(const struct option_reader *reader, const struct option_section *section,
                   const struct option_use *use, const config_setting_t *setting)
{
    if (!use->choices)
        return read_fail(reader, setting, "is not used with %s: give one of the two", use->with);
    const struct option_row *with = option_find(section, use->with);
    char choices[CHOICES_SIZE];
    read_name_choices(with, use->choices, choices);
    if (with->kind == &option_flags)
        return read_fail(reader, setting, "is used only with %s among %s", choices, use->with);
    return read_fail(reader, setting, "is used only with %s = %s", use->with, choices);
}

/* Where it stands now, or where files of before have it; NULL: it is not given. */
static config_setting_t *
find_setting(const struct option_row *row, config_setting_t *group)
{
    config_setting_t *setting = config_setting_get_member(group, row->name);
    config_setting_t *past = row->past ? config_setting_get_member(group, row->past->group) : NULL;
    if (!setting && row->was)
        setting = config_setting_get_member(group, row->was);
    if (!setting && past && config_setting_is_group(past))
        setting = config_setting_get_member(past, row->name);
    return setting;
}

static int
read_or_default(const struct option_reader *reader, const struct option_section *section,
                const struct option_row *row, config_setting_t *group, void *object)
{
    config_setting_t *setting = find_setting(row, group);
    const struct option_use *unmet = option_useless(section, row, object);
    if (unmet)
        return setting ? read_refuse_unused(reader, section, unmet, setting) : 0;
    if (setting)
        return read_option(reader, row, setting, object);
    if (!row->fallback)
        return read_fail(reader, group, "%s is missing", row->name);
    return row->fallback[0] ? read_fallback(reader, row, object) : 0;
}

static int
read_check_alternatives(const struct option_reader *reader, const struct option_section *section,
                        const config_setting_t *group)
{
    int alternatives = 0, given = 0;
    for (size_t i = 0; i < section->row_count; i++)
        if (read_is_alternative(&section->rows[i])) {
            alternatives++;
            given += config_setting_get_member(group, section->rows[i].name) != NULL;
        }
    if (alternatives == 0 || given == 1)
        return 0;
    char names[256];
    read_name_rows(section, true, names, sizeof(names));
    return read_fail(reader, group, "needs exactly one of %s", names);
}

struct option_spot {
    const struct option_reader *reader;
    config_setting_t *group;
};

__attribute__((format(printf, 3, 0))) static void
read_refuse(const struct option_spot *spot, const char *option, const char *format, va_list values)
{
    char text[256];
    vsnprintf(text, sizeof(text), format, values);
    const config_setting_t *setting = config_setting_lookup(spot->group, option);
    read_fail(spot->reader, setting ? setting : spot->group, "%s%s%s", setting ? "" : option,
              setting ? "" : ": ", text);
}

bool
option_refuse(const struct option_spot *spot, const char *option, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    read_refuse(spot, option, format, values);
    va_end(values);
    return false;
}

bool
option_refuse_of(const struct option_spot *spot, const char *list, size_t index, const char *option,
                 const char *format, ...)
{
    char path[64];
    snprintf(path, sizeof(path), "%s.[%zu]%s", list, index, option);
    va_list values;
    va_start(values, format);
    read_refuse(spot, path, format, values);
    va_end(values);
    return false;
}

static int
read_check(const struct option_reader *reader, config_setting_t *group,
           const struct option_section *section, const void *object)
{
    const struct option_spot spot = {reader, group};
    return section->check && !section->check(object, &spot) ? -EINVAL : 0;
}

static int
read_rows(const struct option_reader *reader, const struct option_section *section,
          config_setting_t *group, void *object)
{
    int rc = read_refuse_unknown(reader, section, group);
    for (size_t i = 0; i < section->row_count && rc == 0; i++)
        rc = read_or_default(reader, section, &section->rows[i], group, object);
    return rc < 0 ? rc : read_check_alternatives(reader, section, group);
}

int
read_section(const struct option_reader *reader, const struct option_section *section,
             config_setting_t *group, void *object)
{
    int rc = read_rows(reader, section, group, object);
    return rc < 0 ? rc : read_check(reader, group, section, object);
}

static int
read_parse_source(const struct option_reader *reader, config_t *config)
{
    int rc = read_parse(config, reader->source->text);
    if (rc != -EINVAL)
        return rc < 0 ? source_out_of_memory(reader->error) : 0;
    char place[1024];
    int line = config_error_line(config);
    source_place(reader->source, line > 0 ? (unsigned)line : 0, place, sizeof(place));
    const char *text = config_error_text(config);
    bool mixed = text && strcmp(text, "mismatched element type in array") == 0;
    return error_set(reader->error, -EINVAL, CODE_NONE, "%s: %s", place,
                     mixed  ? "integers and decimals are mixed in one [ ]: write 0.0 for 0"
                     : text ? text
                            : "cannot be parsed");
}

int
read_source(const struct source *source, const struct option_section *section, void *object,
            char *const *root, int (*prepare)(void *object, char *const *root), struct error *error)
{
    const struct option_reader reader = {.source = source, .root = root, .error = error};
    config_t config;
    config_init(&config);
    int rc = read_parse_source(&reader, &config);
    config_setting_t *group = config_root_setting(&config);
    if (rc == 0)
        rc = read_rows(&reader, section, group, object);
    if (rc == 0 && prepare && (rc = prepare(object, root)) < 0)
        rc = source_out_of_memory(error);
    if (rc == 0)
        rc = read_check(&reader, group, section, object);
    config_destroy(&config);
    return rc;
}
