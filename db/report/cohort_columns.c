/* cohort_columns.c - see cohort.h. */
#include "db/report/cohort.h"

#include "base/array.h"
#include "base/feature.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------- names ---- */

/*
 * The form of a setting in a name, in this order, before settings without a row here: `prefix` and
 * the value, left out if it is `usual`. The name of a discretisation is the prefix of its value.
 */
static const struct {
    enum feature_setting setting;
    const char *prefix, *usual;
} cohort_parts[] = {
    {FEATURE_aggregation, "", NULL},
    {FEATURE_discretisation, "", NULL},
    {FEATURE_levels, "levels_", NULL},
    {FEATURE_bin_width, "width_", NULL},
    {FEATURE_distance, "d", "1"},
    {FEATURE_directions, "along_", NULL},
    {FEATURE_symmetric, "symmetric_", "true"},
    {FEATURE_alpha, "a", "0"},
    {FEATURE_percent, "p", NULL},
    {FEATURE_interpolation, "", NULL},
    {FEATURE_isotropic_mm, "iso", NULL},
    {FEATURE_in_plane_mm, "plane", NULL},
    {FEATURE_range_low, "from_", NULL},
    {FEATURE_range_high, "to_", NULL},
    {FEATURE_sigma, "sigma", NULL},
    {FEATURE_filter, "", NULL},
    {FEATURE_filter_settings, "", NULL},
};

#define PARTS (sizeof cohort_parts / sizeof cohort_parts[0])

static const struct {
    const char *word, *brief;
} brief_discretisations[] = {{"fixed-bin-number", "fbn"},
                             {"fixed-bin-size", "fbs"},
                             {"pyradiomics-bin-width", "pyradiomics"},
                             {"stored-256", "stored256_"}};

/* Writes other characters as _, once in a row and not at the ends; a minus before a digit as m. */
static void
name_put_word(FILE *out, const char *text)
{
    bool any = false, gap = false;
    for (; *text; text++) {
        const bool minus = *text == '-' && isdigit((unsigned char)text[1]);
        const bool plain = isalnum((unsigned char)*text);
        if (plain || minus) {
            fprintf(out, "%s%c", any && gap ? "_" : "", minus ? 'm' : *text);
            any = true;
            gap = false;
        } else {
            gap = true;
        }
    }
}

static void
name_put_discretisation(FILE *out, const char *settings, const char *word)
{
    char number[FEATURE_SETTING];
    const char *brief = NULL;
    for (size_t i = 0; i < sizeof brief_discretisations / sizeof brief_discretisations[0]; i++)
        if (strcmp(brief_discretisations[i].word, word) == 0)
            brief = brief_discretisations[i].brief;
    fputc('.', out);
    if (brief)
        fputs(brief, out);
    else
        name_put_word(out, word);
    if (feature_get(settings, FEATURE_bin_width, number) || feature_get(settings, FEATURE_levels, number)) {
        fputs(brief ? "" : "_", out);
        name_put_word(out, number);
    }
}

static void
name_put_part(FILE *out, const char *settings, size_t part)
{
    const enum feature_setting setting = cohort_parts[part].setting;
    char value[FEATURE_SETTING], word[FEATURE_SETTING];
    if (!feature_get(settings, setting, value))
        return;
    if (setting == FEATURE_discretisation) {
        name_put_discretisation(out, settings, value);
        return;
    }
    if ((setting == FEATURE_levels || setting == FEATURE_bin_width) &&
        feature_get(settings, FEATURE_discretisation, word))
        return;
    if (cohort_parts[part].usual && strcmp(value, cohort_parts[part].usual) == 0)
        return;
    fprintf(out, ".%s", cohort_parts[part].prefix);
    name_put_word(out, value);
}

/* Writes later settings; the code of a setting is left out if it has a name. */
static void
name_put_other_parts(FILE *out, const char *settings)
{
    char key[64], value[FEATURE_SETTING];
    while (feature_next_setting(&settings, key, value)) {
        bool is_told = strcmp(key, feature_setting_rows[FEATURE_aggregation_ibsi_code].key) == 0;
        for (size_t i = 0; i < PARTS; i++)
            is_told |= strcmp(key, feature_setting_rows[cohort_parts[i].setting].key) == 0;
        if (is_told)
            continue;
        fprintf(out, ".%s_", key);
        name_put_word(out, value);
    }
}

static const struct {
    const char *family, *key, *name;
} pyradiomics_names[] = {

#define NAME(family, key, name) {family, key, name},
#include "base/pyradiomics_names.def"
};

/* Writes the name of a column in pyradiomics, if its settings ask for it. Returns whether it has one. */
static bool
name_put_pyradiomics(FILE *out, const struct cohort_column *column)
{
    char image[FEATURE_SETTING];
    if (!feature_get(column->settings, FEATURE_image_type, image))
        return false;
    for (size_t i = 0; i < sizeof pyradiomics_names / sizeof pyradiomics_names[0]; i++)
        if (strcmp(pyradiomics_names[i].family, column->family) == 0 &&
            (strcmp(pyradiomics_names[i].key, column->feature) == 0 ||
             strcmp(pyradiomics_names[i].key, column->ibsi) == 0)) {
            fprintf(out, "%s_%s", image, pyradiomics_names[i].name);
            return true;
        }
    return false;
}

/* ------------------------------------------------------------------------------- columns ---- */

static void
column_clear(struct cohort_column *column)
{
    free(column->name);
    free(column->family);
    free(column->feature);
    free(column->meaning);
    free(column->ibsi);
    free(column->unit);
    free(column->settings);
}

void
cohort_columns_clear(struct cohort_columns *columns)
{
    for (size_t i = 0; i < columns->count; i++)
        column_clear(&columns->items[i]);
    for (size_t i = 0; i < columns->definition_count; i++)
        free(columns->definitions[i].label);
    free(columns->items);
    free(columns->definitions);
    *columns = (struct cohort_columns){0};
}

/* Leaves out the number of levels if bins have a width. Returns a malloc'd text, or NULL. */
static char *
defining_settings(const char *settings)
{
    char value[FEATURE_SETTING];
    char *text = strdup(settings);
    if (!text || !feature_get(settings, FEATURE_bin_width, value) || !feature_get(settings, FEATURE_levels, value))
        return text;
    const char *key = feature_setting_rows[FEATURE_levels].key;
    char *at = text;
    while (strncmp(at, key, strlen(key)) != 0 || at[strlen(key)] != '=')
        at = strchr(at, ';') + 1;
    const char *end = strchr(at, ';');
    if (end)
        memmove(at, end + 1, strlen(end));
    else
        at[at > text ? -1 : 0] = '\0';
    return text;
}

/* Takes ownership of the column; sets its place. Columns of one feature come in a row. */
static int
columns_take(struct cohort_columns *columns, struct cohort_column *column, size_t *at)
{
    for (*at = columns->count; *at > 0; --*at) {
        const struct cohort_column *other = &columns->items[*at - 1];
        if (strcmp(other->feature, column->feature) != 0 || strcmp(other->family, column->family) != 0)
            break;
        if (strcmp(other->settings, column->settings) == 0 && strcmp(other->unit, column->unit) == 0) {
            --*at;
            column_clear(column);
            return 0;
        }
    }
    *at = columns->count;
    struct cohort_column *grown = array_grow(columns->items, &columns->room, columns->count + 1, sizeof *grown);
    if (!grown) {
        column_clear(column);
        return -ENOMEM;
    }
    columns->items = grown;
    grown[columns->count++] = *column;
    return 0;
}

static int
columns_add(struct cohort_columns *columns, sqlite3_stmt *row)
{
    struct cohort_column column = {.family = strdup(report_text(row, 2)),
                                   .feature = strdup(report_text(row, 3)),
                                   .meaning = strdup(report_text(row, 4)),
                                   .ibsi = strdup(report_text(row, 5)),
                                   .unit = strdup(report_text(row, 6)),
                                   .settings = defining_settings(report_text(row, 7))};
    struct cohort_definition definition = {.id = sqlite3_column_int64(row, 0)};
    if (!column.family || !column.feature || !column.meaning || !column.ibsi || !column.unit || !column.settings) {
        column_clear(&column);
        return -ENOMEM;
    }
    int rc = columns_take(columns, &column, &definition.column);
    struct cohort_definition *grown = rc < 0 ? NULL
                                             : array_grow(columns->definitions, &columns->definition_room,
                                                          columns->definition_count + 1, sizeof *grown);
    if (!grown || !(definition.label = strdup(report_text(row, 1)))) {
        columns->definitions = grown ? grown : columns->definitions;
        return -ENOMEM;
    }
    columns->definitions = grown;
    grown[columns->definition_count++] = definition;
    return 0;
}

static int
columns_name(struct cohort_columns *columns, const bool *with_unit)
{
    for (size_t i = 0; i < columns->count; i++) {
        struct cohort_column *column = &columns->items[i];
        if (column->name && !with_unit[i])
            continue;
        free(column->name);
        column->name = NULL;
        struct text_stream text;
        if (text_open(&text) < 0)
            return -ENOMEM;
        const bool is_named = name_put_pyradiomics(text.out, column);
        if (!is_named) {
            name_put_word(text.out, column->family);
            fputc('.', text.out);
            name_put_word(text.out, column->feature);
        }
        for (size_t k = 0; k < PARTS && (!is_named || with_unit[i]); k++)
            name_put_part(text.out, column->settings, k);
        if (!is_named || with_unit[i])
            name_put_other_parts(text.out, column->settings);
        if (with_unit[i]) {
            fputs(".in_", text.out);
            name_put_word(text.out, column->unit);
        }
        if (text_close(&text) < 0)
            return -ENOMEM;
        column->name = text.bytes;
    }
    return 0;
}

/* Marks columns that share their name. Returns whether there are any. */
static bool
columns_mark_twins(const struct cohort_columns *columns, bool *twin)
{
    bool any = false;
    for (size_t i = 0; i < columns->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(columns->items[i].name, columns->items[j].name) == 0)
                any = twin[i] = twin[j] = true;
    return any;
}

/* The order of the columns. */
struct ranked {
    const char *name;
    size_t from;
};

static int
ranked_compare(const void *a, const void *b)
{
    return strcmp(((const struct ranked *)a)->name, ((const struct ranked *)b)->name);
}

/* Sorts by name, and changes the definitions accordingly. */
static int
columns_order(struct cohort_columns *columns)
{
    if (columns->count == 0)
        return 0;
    struct cohort_column *sorted = calloc(columns->count, sizeof *sorted);
    struct ranked *ranked = calloc(columns->count, sizeof *ranked);
    size_t *to = calloc(columns->count, sizeof *to);
    const bool is_room = sorted && ranked && to;
    if (is_room) {
        for (size_t i = 0; i < columns->count; i++)
            ranked[i] = (struct ranked){columns->items[i].name, i};
        qsort(ranked, columns->count, sizeof *ranked, ranked_compare);
        for (size_t i = 0; i < columns->count; i++) {
            sorted[i] = columns->items[ranked[i].from];
            to[ranked[i].from] = i;
        }
        memcpy(columns->items, sorted, columns->count * sizeof *sorted);
        for (size_t i = 0; i < columns->definition_count; i++)
            columns->definitions[i].column = to[columns->definitions[i].column];
    }
    free(to);
    free(ranked);
    free(sorted);
    return is_room ? 0 : -ENOMEM;
}

/* Names each column by feature and settings, or as pyradiomics does; adds the unit only where it is the sole difference, and
 * settings to a name of pyradiomics that several columns have. */
static int
columns_finish(struct report *report, struct cohort_columns *columns)
{
    bool *twin = calloc(columns->count + 1, sizeof *twin);
    int rc = twin ? columns_name(columns, twin) : -ENOMEM;
    if (rc == 0 && columns_mark_twins(columns, twin)) {
        rc = columns_name(columns, twin);
        memset(twin, 0, columns->count * sizeof *twin);
        if (rc == 0 && columns_mark_twins(columns, twin))
            rc = -EEXIST;
    }
    for (size_t i = 0; rc == -EEXIST && i < columns->count; i++)
        if (twin[i]) {
            database_refuse(&report->db, rc, "two features would be the column %s", columns->items[i].name);
            break;
        }
    free(twin);
    return rc == 0 ? columns_order(columns) : rc;
}

static int
definition_compare(const void *key, const void *element)
{
    const int64_t id = *(const int64_t *)key;
    const struct cohort_definition *definition = element;
    return id < definition->id ? -1 : id > definition->id;
}

int
cohort_columns_read(struct report *report, sqlite3_stmt *rows, struct cohort_columns *columns)
{
    int rc;
    while ((rc = database_step(&report->db, rows)) == 1) {
        rc = columns_add(columns, rows);
        if (rc < 0)
            break;
    }
    if (columns->definition_count > 0)
        qsort(columns->definitions, columns->definition_count, sizeof *columns->definitions, definition_compare);
    if (rc == 0)
        rc = columns_finish(report, columns);
    return rc == -ENOMEM ? database_refuse(&report->db, rc, "out of memory") : rc;
}

const struct cohort_definition *
cohort_definition(const struct cohort_columns *columns, int64_t id)
{
    return bsearch(&id, columns->definitions, columns->definition_count, sizeof *columns->definitions,
                   definition_compare);
}
