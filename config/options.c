/*
 * options.c - searches, clears and lists the option table.
 */
#include "config/kinds/kinds.h"
#include "config/options/option_sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

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

/* -------------------------------------------------------------------- the list of options ---- */

#define MAX_OPTIONS 512

static char keys[MAX_OPTIONS][96];
static char types[MAX_OPTIONS][256], limits[MAX_OPTIONS][64];
static struct conf_option listing[MAX_OPTIONS];
static size_t listing_count;
static once_flag listing_once = ONCE_FLAG_INIT;

static void
option_describe(const struct option_row *row, size_t at)
{
    const struct option_kind *kind = row->kind;
    if (kind->describe)
        kind->describe(row, types[at], sizeof(types[at]));
    else
        snprintf(types[at], sizeof(types[at]), "%s", kind->type);
    if (!kind->limits)
        return;
    int used = snprintf(limits[at], sizeof(limits[at]), "%.10g .. %.10g%s", row->min, row->max, kind->limits);
    if (kind == &option_integers)
        snprintf(limits[at] + used, sizeof(limits[at]) - (size_t)used, ", 1 .. %zu elements", row->array.elements);
}

static void
list_section(const struct option_section *section, const char *prefix)
{
    for (size_t i = 0; i < section->row_count && listing_count < MAX_OPTIONS; i++) {
        const struct option_row *row = &section->rows[i];
        const size_t at = listing_count++;
        snprintf(keys[at], sizeof(keys[at]), "%s%s", prefix, row->name);
        option_describe(row, at);
        listing[at] = (struct conf_option){
            .key = keys[at], .type = types[at], .fallback = row->fallback, .limits = limits[at], .help = row->help};
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
