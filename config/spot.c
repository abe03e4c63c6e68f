/*
 * spot.c - reports the errors and warnings of section checks, with the line of the option.
 */
#include "config/kinds/kinds.h"
#include "config/options/option_sections.h"

#include <stdarg.h>

__attribute__((format(printf, 4, 0))) static void
spot_report(const struct option_spot *spot, bool wrong, const char *option, const char *format,
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
option_put_place(const struct option_spot *spot, const char *option, char *place, size_t size)
{
    const config_setting_t *setting = config_setting_lookup(spot->group, option);
    source_place(spot->reader->source, setting ? config_setting_source_line(setting) : 0, place,
                 size);
}
