/*
 * options.c - what follows from the option table without any file.
 */
#include "config/kinds/kinds.h"
#include "config/options/sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

const struct option_row *
option_find(const struct option_section *section, const char *name)
{
    for (size_t i = 0; i < section->row_count; i++)
        if (strcmp(section->rows[i].name, name) == 0)
            return &section->rows[i];
    return NULL;
}

/* Is the use met, as far as the object is filled? */
static bool
is_met(const struct option_section *section, const struct option_use *use, const void *object)
{
    const struct option_row *with = option_find(section, use->with);
    if (!use->choices)
        return option_elements(with, object).count == 0;
    unsigned value;
    memcpy(&value, option_value(with, object), sizeof(value));
    return ((with->kind == &option_flags ? value : 1u << value) & use->choices) != 0;
}

const struct option_use *
option_useless(const struct option_section *section, const struct option_row *row,
               const void *object)
{
    for (const struct option_use *use = row->uses; use && use->with; use++)
        if (!is_met(section, use, object))
            return use;
    return NULL;
}

void
option_free(const struct option_row *row, void *object)
{
    void *pointer;
    memcpy(&pointer, option_field(row, object), sizeof(pointer));
    free(pointer);
}

void
option_clear(const struct option_section *section, void *object)
{
    for (size_t i = 0; i < section->row_count; i++)
        if (section->rows[i].kind->clear)
            section->rows[i].kind->clear(&section->rows[i], object);
}

/* ------------------------------------------------------------------- the table, for people ---- */

#define MAX_OPTIONS 256

static char keys[MAX_OPTIONS][96];
static struct option_words words[MAX_OPTIONS];
static struct conf_option listing[MAX_OPTIONS];
static size_t listing_count;
static once_flag listing_once = ONCE_FLAG_INIT;

static void
list_section(const struct option_section *section, const char *prefix)
{
    for (size_t i = 0; i < section->row_count && listing_count < MAX_OPTIONS; i++) {
        const struct option_row *row = &section->rows[i];
        const size_t at = listing_count++;
        snprintf(keys[at], sizeof(keys[at]), "%s%s", prefix, row->name);
        row->kind->describe(row, &words[at]);
        listing[at] = (struct conf_option){.key = keys[at],
                                           .type = words[at].type,
                                           .fallback = row->fallback,
                                           .limits = words[at].limits,
                                           .help = row->help};
        if (row->kind->below) {
            char below[128];
            snprintf(below, sizeof(below), "%s%s", keys[at], row->kind->below);
            list_section(row->section, below);
        }
    }
}

static void
list_all(void)
{
    list_section(&option_root, "");
}

const struct conf_option *
conf_options(size_t *count)
{
    call_once(&listing_once, list_all);
    *count = listing_count;
    return listing;
}
