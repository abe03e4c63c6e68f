/*
 * read.c - reads libconfig settings into structs, by the option table.
 *
 * Defaults are texts in the rows and are read by the same code as the file. Reading continues after
 * an error (findings.h).
 */

#include "base/nearest.h"
#include "config/kinds/kinds.h"
#include "config/options/option_sections.h"

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
read_find(const struct option_reader *reader, bool wrong, const config_setting_t *setting, const char *text)
{
    char key[KEY_SIZE] = "";
    read_put_key(setting, key, sizeof(key));
    return findings_add(reader->findings, wrong, config_setting_source_line(setting), key, text);
}

int
read_fail(const struct option_reader *reader, const config_setting_t *setting, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    return read_find(reader, true, setting, text);
}

/* --------------------------------------------------------------- functions of all kinds ------ */

bool
read_stops(int rc)
{
    return rc < 0 && rc != -EINVAL;
}

int
read_worse(int rc, int next)
{
    return rc == 0 || read_stops(next) ? next : rc;
}

int
read_lose(const struct option_reader *reader, const void *member, size_t size, int rc)
{
    if (rc == -EINVAL)
        findings_lose(reader->findings, member, size);
    return reader->findings->stop ? reader->findings->stop : rc;
}

bool
read_is_sequence(const config_setting_t *setting)
{
    int type = config_setting_type(setting);
    return type == CONFIG_TYPE_ARRAY || type == CONFIG_TYPE_LIST;
}

int
read_elements(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, double min,
              double max, size_t size, void *field, option_read *read)
{
    const size_t count = (size_t)config_setting_length(setting);
    int rc = 0;
    if ((double)count < min || (double)count > max)
        return read_lose(reader, field, sizeof(char *),
                         read_fail(reader, setting, "has %zu elements; it must have %.0f .. %.0f", count, min, max));
    char *elements = calloc(count ? count : 1, size);
    if (!elements)
        return -ENOMEM;
    memcpy(field, &elements, sizeof(elements));
    memcpy((char *)field - row->offset + row->count_offset, &count, sizeof(count));
    for (size_t i = 0; !read_stops(rc) && i < count; i++)
        rc = read_worse(rc, read(reader, row, config_setting_get_elem(setting, (unsigned)i), elements + i * size));
    return rc; // cppcheck-suppress memleak ; the field has them now
}

int
read_one(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, size_t size,
         void *field, option_read *read)
{
    const size_t one = 1;
    void *element = calloc(1, size);
    if (!element)
        return -ENOMEM;
    memcpy(field, &element, sizeof(element));
    memcpy((char *)field - row->offset + row->count_offset, &one, sizeof(one));
    return read(reader, row, setting, element); // cppcheck-suppress memleak ; the field has it
}

/* ------------------------------------------------------------------------ rows, sections ---- */

static int
read_option(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *object)
{
    if (row->mark) {
        void *member = (char *)object + row->mark->offset;
        if (row->mark->alternative)
            *(unsigned *)member = row->mark->value;
        else
            *(bool *)member = true;
    }
    int rc = row->kind->read ? row->kind->read(reader, row, setting, option_field(row, object)) : 0;
    /* A group loses its own members one by one. */
    return row->kind->below ? rc : read_lose(reader, option_field(row, object), 1, rc);
}

/* Returns whether all settings have their names and strings. libconfig ignores a failed
 * malloc(). */
static bool
read_is_whole(const config_setting_t *setting)
{
    if (config_setting_type(setting) == CONFIG_TYPE_STRING)
        return config_setting_get_string(setting) != NULL;
    for (unsigned i = 0; i < (unsigned)config_setting_length(setting); i++) {
        const config_setting_t *element = config_setting_get_elem(setting, i);
        if ((config_setting_is_group(setting) && !config_setting_name(element)) || !read_is_whole(element))
            return false;
    }
    return true;
}

/* Returns 0, -EINVAL if the text cannot be parsed, or -ENOMEM. */
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
        return -ENOMEM;
    config_t config;
    config_init(&config);
    int rc = read_parse(&config, text); /* a default is well-formed */
    rc = rc == 0 ? read_option(reader, row, config_lookup(&config, row->name), object) : -ENOMEM;
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
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", section->rows[i].name);
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
read_refuse_unknown(const struct option_reader *reader, const struct option_section *section, config_setting_t *group,
                    config_setting_t *setting)
{
    /* Find the row with the most similar name among the rows that are not given. */
    struct nearest nearest = nearest_of(config_setting_name(setting));
    for (size_t i = 0; i < section->row_count; i++)
        if (!config_setting_get_member(group, section->rows[i].name))
            nearest_try(&nearest, section->rows[i].name);
    const struct option_row *meant = nearest.name ? option_find(section, nearest.name) : NULL;
    if (meant) {
        config_setting_set_hook(setting, (void *)(uintptr_t)meant); /* find_setting() uses it for the row */
        return read_fail(reader, setting, "unknown option; did you mean %s?", meant->name);
    }
    char known[256];
    read_name_rows(section, false, known, sizeof(known));
    return read_fail(reader, setting, "unknown option; this section has: %s", known);
}

/* Reports an option with an unmet condition. */
static int
read_refuse_unused(const struct option_reader *reader, const struct option_section *section,
                   const struct option_use *use, const config_setting_t *setting)
{
    if (!use->choices)
        return read_fail(reader, setting, "is not allowed with %s: remove one of the two", use->with);
    const struct option_row *with = option_find(section, use->with);
    char choices[CHOICES_SIZE];
    read_name_choices(with, use->choices, choices);
    if (with->kind == &option_flags)
        return read_fail(reader, setting, "is only allowed with %s among %s", choices, use->with);
    return read_fail(reader, setting, "is only allowed with %s = %s", use->with, choices);
}

/* Finds the setting of the row at its current or former place. Returns NULL if it is not given. */
static config_setting_t *
find_setting(const struct option_row *row, config_setting_t *group)
{
    config_setting_t *setting = config_setting_get_member(group, row->name);
    config_setting_t *past = row->past ? config_setting_get_member(group, row->past->group) : NULL;
    if (!setting && row->was)
        setting = config_setting_get_member(group, row->was);
    if (!setting && past && config_setting_is_group(past))
        setting = config_setting_get_member(past, row->name);
    /* the unknown option that read_refuse_unknown() assigned to the row */
    for (unsigned i = 0; !setting && i < (unsigned)config_setting_length(group); i++)
        if (config_setting_get_hook(config_setting_get_elem(group, i)) == row)
            setting = config_setting_get_elem(group, i);
    return setting;
}

config_setting_t *
read_given(const struct option_section *section, const struct option_row *row, config_setting_t *group)
{
    config_setting_t *given = find_setting(row, group);
    for (size_t i = 0; i < section->row_count && !given && read_is_alternative(row); i++)
        if (read_is_alternative(&section->rows[i]))
            given = find_setting(&section->rows[i], group);
    return given;
}

/* Returns whether the conditions of the row can be checked: no member that they test is lost. */
static bool
read_uses_known(const struct option_reader *reader, const struct option_section *section, const struct option_row *row,
                const void *object)
{
    for (const struct option_use *use = row->uses; use && use->with; use++) {
        const struct option_row *with = option_find(section, use->with);
        if (findings_lost(reader->findings, option_value(with, object), 1))
            return false;
    }
    return true;
}

static int
read_or_default(const struct option_reader *reader, const struct option_section *section, const struct option_row *row,
                config_setting_t *group, void *object)
{
    config_setting_t *setting = find_setting(row, group);
    if (!read_uses_known(reader, section, row, object))
        return setting ? read_option(reader, row, setting, object) : 0;
    const struct option_use *unmet = option_unmet_use(section, row, object);
    if (unmet)
        return setting && !profile_added(setting) ? read_refuse_unused(reader, section, unmet, setting) : 0;
    if (setting)
        return read_option(reader, row, setting, object);
    if (!row->fallback) {
        const size_t size = row->kind == &option_group ? row->section->size : 1;
        return read_lose(reader, option_value(row, object), size, read_fail(reader, group, "%s is missing", row->name));
    }
    return row->fallback[0] ? read_fallback(reader, row, object) : 0;
}

static int
read_check_alternatives(const struct option_reader *reader, const struct option_section *section,
                        config_setting_t *group, const void *object)
{
    const struct option_mark *mark = NULL;
    int given = 0;
    for (size_t i = 0; i < section->row_count; i++)
        if (read_is_alternative(&section->rows[i])) {
            mark = section->rows[i].mark;
            given += find_setting(&section->rows[i], group) != NULL;
        }
    if (!mark || given == 1)
        return 0;
    char names[256];
    read_name_rows(section, true, names, sizeof(names));
    return read_lose(reader, (const char *)object + mark->offset, 1,
                     read_fail(reader, group, "exactly one of %s must be given", names));
}

int
read_section(const struct option_reader *reader, const struct option_section *section, config_setting_t *group,
             void *object)
{
    int rc = profile_apply(reader, section, group);
    for (unsigned i = 0; i < (unsigned)config_setting_length(group) && !read_stops(rc); i++) {
        config_setting_t *setting = config_setting_get_elem(group, i);
        const char *name = config_setting_name(setting);
        if (!option_find(section, name) && !has_moved(section, name))
            rc = read_worse(rc, read_refuse_unknown(reader, section, group, setting));
    }
    for (size_t i = 0; i < section->row_count && !read_stops(rc); i++)
        rc = read_worse(rc, read_or_default(reader, section, &section->rows[i], group, object));
    if (!read_stops(rc))
        rc = read_worse(rc, read_check_alternatives(reader, section, group, object));
    if (!read_stops(rc) && section->prepare)
        rc = read_worse(rc, section->prepare(object, reader->root));
    if (read_stops(rc))
        return rc;
    if (section->check)
        section->check(object, &(struct option_spot){reader, group});
    return read_worse(rc, reader->findings->stop);
}

int
read_parse_layer(const struct source *source, size_t number, config_t *config, struct error *error)
{
    const struct source_layer *layer = &source->layers[number];
    int rc = read_parse(config, source->text + layer->at);
    if (rc != -EINVAL)
        return rc < 0 ? source_out_of_memory(error) : 0;
    char place[1024];
    int line = config_error_line(config);
    source_place(source, layer->lines + (line > 0 ? (unsigned)line : 1), place, sizeof(place));
    const char *text = config_error_text(config);
    const bool mixed = text && strcmp(text, "mismatched element type in array") == 0;
    const bool other = text && strcmp(text, "syntax error") != 0;
    return error_set(error, -EINVAL, CODE_NONE, "%s: %s", place,
                     mixed   ? "integers and decimals are mixed in one [ ]: write 0.0 for 0"
                     : other ? text
                             : "syntax error: check quotes, brackets and semicolons up to this line");
}

int
read_parse_source(const struct source *source, config_t *config, struct error *error)
{
    int rc = read_parse_layer(source, 0, config, error);
    return rc == 0 ? overlay_merge(source, config, error) : rc;
}

char *
read_root(const struct source *source)
{
    char *root = strdup("");
    for (size_t i = 0; root && i < source->layer_count; i++) {
        const char *given = NULL;
        config_t config;
        config_init(&config);
        config_read_string(&config, source->text + source->layers[i].at);
        if (config_lookup_string(&config, "root", &given) && given) {
            free(root);
            root = strdup(given);
        }
        config_destroy(&config);
    }
    return root;
}

int
read_source(const struct source *source, const struct option_section *section, void *object, char *const *root,
            struct conf_findings *all, struct error *error)
{
    struct conf_findings own = {0};
    struct findings findings = {.source = source, .all = all ? all : &own, .warnings = all != NULL};
    const struct option_reader reader = {.source = source, .root = root, .findings = &findings};
    config_t config;
    config_init(&config);
    int rc = read_parse_source(source, &config, error);
    if (rc == 0) {
        rc = read_section(&reader, section, config_root_setting(&config), object);
        if (rc == 0 && all)
            rc = overlay_record_places(source, config_root_setting(&config), all);
        rc = rc == -ENOMEM ? source_out_of_memory(error) : findings_first_error(&findings, error);
    }
    conf_findings_free(&own);
    free(findings.lost);
    config_destroy(&config);
    return rc;
}
