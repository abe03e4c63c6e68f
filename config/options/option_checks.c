/*
 * option_checks.c - checks that several sections share: references to named list elements, and ranges.
 */
#include "config/options/option_sections.h"

#include <string.h>

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
option_refuse_twins(const struct option_named *named, const char *option, const char *is)
{
    for (size_t i = 0; i < named->count; i++) {
        const char *name = option_name(named, i);
        if (name && option_find_name(named, name) < i)
            option_refuse(named->spot, ELEMENT(named->list, i, option), "\"%s\" is %s", name, is);
    }
}

void
check_ends(const double ends[2], const char *option, const struct option_spot *spot)
{
    if (ends[0] > ends[1] && !option_lost(spot, ends, 2 * sizeof(ends[0])))
        option_refuse(spot, option, "the lower end %g is above the upper end %g", ends[0], ends[1]);
}

bool
option_is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}
