/*
 * option_checks.c - functions that the checks of several sections share: errors and warnings with
 * the line of the option, and references to named list elements.
 */
#include "config/kinds/kinds.h"
#include "config/options/option_sections.h"

#include <stdarg.h>

__attribute__((format(printf, 4, 0))) static void
spot_report(const struct option_spot *spot, bool wrong, const char *option, const char *format, va_list values)
{
    const config_setting_t *setting = config_setting_lookup(spot->group, option);
    char text[512];
    int used = setting ? 0 : snprintf(text, sizeof(text), "%s: ", option);
    vsnprintf(text + used, sizeof(text) - (size_t)used, format, values);
    read_find(spot->reader, wrong, setting ? setting : spot->group, text);
}

void
option_refuse(const struct option_spot *spot, const char *option, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    spot_report(spot, true, option, format, values);
    va_end(values);
}

void
option_warn(const struct option_spot *spot, const char *option, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    spot_report(spot, false, option, format, values);
    va_end(values);
}

const char *
option_key(char path[OPTION_KEY], const char *list, size_t index, const char *option)
{
    snprintf(path, OPTION_KEY, "%s.[%zu]%s", list, index, option);
    return path;
}

bool
option_lost(const struct option_spot *spot, const void *member, size_t size)
{
    return findings_lost(spot->reader->findings, member, size);
}

bool
option_wants_warnings(const struct option_spot *spot)
{
    return spot->reader->findings->warnings && spot->reader->findings->wrong == 0;
}

void
option_put_place(const struct option_spot *spot, const char *option, char *place, size_t size)
{
    const config_setting_t *setting = config_setting_lookup(spot->group, option);
    source_place(spot->reader->source, setting ? config_setting_source_line(setting) : 0, place, size);
}

const char *
option_name(const struct option_named *named, size_t index)
{
    const char *name;
    memcpy(&name, (const char *)named->elements + index * named->size, sizeof(name));
    return name;
}

size_t
option_find_name(const struct option_named *named, const char *name)
{
    for (size_t i = 0; i < named->count; i++) {
        const char *other = option_name(named, i);
        if (other && strcmp(other, name) == 0)
            return i;
    }
    return named->count;
}

bool
option_lacks(const struct option_named *named, const char *name)
{
    if (named->lost || option_find_name(named, name) < named->count)
        return false;
    size_t i = 0;
    while (i < named->count && option_name(named, i))
        i++;
    return i == named->count;
}

void
option_refuse_duplicates(const struct option_named *named, const char *option, const char *is)
{
    for (size_t i = 0; i < named->count; i++) {
        const char *name = option_name(named, i);
        if (name && option_find_name(named, name) < i)
            option_refuse(named->spot, ELEMENT(named->list, i, option), "\"%s\" is %s", name, is);
    }
}

bool
option_is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}
