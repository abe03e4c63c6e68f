/*
 * spot.c - reports the errors and warnings of section checks, with the line of the option.
 */
#include "config/kinds/kinds.h"
#include "config/options/sections.h"

#include <stdarg.h>

__attribute__((format(printf, 4, 0))) static void
read_tell(const struct option_spot *spot, bool wrong, const char *option, const char *format,
          va_list values)
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
    read_tell(spot, true, option, format, values);
    va_end(values);
}

void
option_refuse_of(const struct option_spot *spot, const char *list, size_t index, const char *option,
                 const char *format, ...)
{
    char path[64];
    snprintf(path, sizeof(path), "%s.[%zu]%s", list, index, option);
    va_list values;
    va_start(values, format);
    read_tell(spot, true, path, format, values);
    va_end(values);
}

void
option_doubt(const struct option_spot *spot, const char *list, size_t index, const char *format,
             ...)
{
    char path[64];
    snprintf(path, sizeof(path), "%s.[%zu]", list, index);
    va_list values;
    va_start(values, format);
    read_tell(spot, false, path, format, values);
    va_end(values);
}

void
option_doubt_at(const struct option_spot *spot, const char *option, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    read_tell(spot, false, option, format, values);
    va_end(values);
}

bool
option_lost(const struct option_spot *spot, const void *member, size_t size)
{
    return findings_lost(spot->reader->findings, member, size);
}

bool
option_doubts_are_asked(const struct option_spot *spot)
{
    return spot->reader->findings->doubts;
}

bool
option_all_well(const struct option_spot *spot)
{
    return spot->reader->findings->wrong == 0;
}

void
option_put_place(const struct option_spot *spot, const char *list, size_t index, char *place,
                 size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "%s.[%zu]", list, index);
    const config_setting_t *setting = config_setting_lookup(spot->group, path);
    source_place(spot->reader->source, setting ? config_setting_source_line(setting) : 0, place,
                 size);
}
