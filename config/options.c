/*
 * options.c - searches and clears the option table.
 */
#include "config/kinds/kinds.h"

#include <stdlib.h>

const struct option_row *
option_find(const struct option_section *section, const char *name)
{
    for (size_t i = 0; i < section->row_count; i++)
        if (strcmp(section->rows[i].name, name) == 0 ||
            (section->rows[i].was && strcmp(section->rows[i].was, name) == 0))
            return &section->rows[i];
    return NULL;
}

const struct option_use *
option_unmet_use(const struct option_section *section, const struct option_row *row, const void *object)
{
    for (const struct option_use *use = row->uses; use && use->with; use++) {
        const struct option_row *with = option_find(section, use->with);
        const void *value = option_value(with, object);
        const unsigned chosen = !use->choices                 ? option_elements(with, value).count == 0
                                : with->kind == &option_flags ? *(const unsigned *)value & use->choices
                                                              : 1u << *(const unsigned *)value & use->choices;
        if (!chosen)
            return use;
    }
    return NULL;
}

void
option_free(const struct option_row *row, void *field)
{
    (void)row;
    free(*(void **)field);
}

void
option_clear(const struct option_section *section, void *object)
{
    for (size_t i = 0; i < section->row_count; i++) {
        const struct option_row *row = &section->rows[i];
        if (row->kind->clear)
            row->kind->clear(row, option_field(row, object));
    }
}
