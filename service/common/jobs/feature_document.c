/*
 * feature_document.c - see feature_document.h.
 *
 * JSON and CSV are written from one list of fields, so that they cannot differ. Each field has a
 * name and a typed value.
 */
#include "service/common/jobs/feature_document.h"

#include "service/common/json.h"

#include "base/array.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A string that several features share. */
struct feature_text {
    struct feature_text *next;
    char bytes[];
};

/* Most features have the same strings as the feature before. */
#define LOOK_BACK 16

static const char *
text_keep(struct feature_set *set, const char *bytes)
{
    if (!bytes || !*bytes)
        return "";
    int looked = 0;
    for (struct feature_text *text = set->texts; text && looked < LOOK_BACK; text = text->next) {
        if (strcmp(text->bytes, bytes) == 0)
            return text->bytes;
        looked++;
    }
    const size_t size = strlen(bytes) + 1;
    struct feature_text *text = malloc(sizeof *text + size);
    if (!text)
        return NULL;
    memcpy(text->bytes, bytes, size);
    text->next = set->texts;
    set->texts = text;
    return text->bytes;
}

int
feature_set_add(struct feature_set *set, const struct feature *feature)
{
    struct feature kept = *feature;
    const char **texts[] = {&kept.label, &kept.family,         &kept.name, &kept.meaning,
                            &kept.ibsi,  &kept.missing_reason, &kept.unit, &kept.settings};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!(*texts[i] = text_keep(set, *texts[i])))
            return -ENOMEM;
    struct feature *grown = array_grow(set->items, &set->room, set->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    set->items = grown;
    set->items[set->count++] = kept;
    return 0;
}

/* Reserves space for the items of another set. */
static int
set_make_room(struct feature_set *set, const struct feature_set *other)
{
    struct feature *items = array_grow(set->items, &set->room, set->count + other->count + 1, sizeof *items);
    if (!items)
        return -ENOMEM;
    set->items = items;
    struct feature_matrix *matrices =
        realloc(set->matrices, (set->matrix_count + other->matrix_count + 1) * sizeof *matrices);
    if (!matrices)
        return -ENOMEM;
    set->matrices = matrices;
    struct feature_histogram *histograms =
        realloc(set->histograms, (set->histogram_count + other->histogram_count + 1) * sizeof *histograms);
    if (!histograms)
        return -ENOMEM;
    set->histograms = histograms;
    return 0;
}

int
feature_set_append(struct feature_set *set, struct feature_set *other)
{
    if (set_make_room(set, other))
        return -ENOMEM;
    for (size_t m = 0; m < other->matrix_count; m++) {
        struct feature_matrix *matrix = &set->matrices[set->matrix_count++];
        *matrix = other->matrices[m];
        matrix->feature += set->count;
    }
    for (size_t h = 0; h < other->histogram_count; h++)
        set->histograms[set->histogram_count++] = other->histograms[h];
    for (size_t f = 0; f < other->count; f++)
        set->items[set->count++] = other->items[f];
    struct feature_text **end = &other->texts;
    while (*end)
        end = &(*end)->next;
    *end = set->texts;
    set->texts = other->texts;
    free(other->items);
    free(other->matrices);
    free(other->histograms);
    *other = (struct feature_set){0};
    return 0;
}

struct placed_feature {
    struct feature feature;
    size_t place, first; /* in the set: its own, and that of the first feature which is the same */
};

static int
placed_compare(const void *left, const void *right)
{
    const struct placed_feature *a = left, *b = right;
    /* Segment 0, the whole volume, becomes the largest. */
    const uint32_t one = (uint32_t)a->feature.segment - 1, other = (uint32_t)b->feature.segment - 1;
    if (one != other)
        return one < other ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Compares region, definition, and value or reason. */
static int
feature_compare(const struct feature *a, const struct feature *b)
{
    const char *const texts[][2] = {{a->settings, b->settings}, {a->name, b->name},
                                    {a->family, b->family},     {a->label, b->label},
                                    {a->unit, b->unit},         {a->missing_reason, b->missing_reason},
                                    {a->meaning, b->meaning},   {a->ibsi, b->ibsi}};
    int order = (a->segment > b->segment) - (a->segment < b->segment);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && order == 0; i++)
        order = texts[i][0] == texts[i][1] ? 0 : strcmp(texts[i][0], texts[i][1]);
    return order ? order : (a->value > b->value) - (a->value < b->value);
}

static int
same_compare(const void *left, const void *right)
{
    const struct placed_feature *a = left, *b = right;
    const int order = feature_compare(&a->feature, &b->feature);
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

/* Moves matrices to their features; drops those of a feature that has some of an earlier set. */
static void
matrices_move(struct feature_set *set, const size_t *firsts, const size_t *places, size_t *owners)
{
    size_t count = 0;
    for (size_t m = 0; m < set->matrix_count; m++) {
        struct feature_matrix matrix = set->matrices[m];
        size_t *owner = &owners[firsts[matrix.feature]];
        if (*owner == 0)
            *owner = matrix.feature + 1;
        if (*owner != matrix.feature + 1) {
            free(matrix.cells);
            continue;
        }
        matrix.feature = places[firsts[matrix.feature]];
        set->matrices[count++] = matrix;
    }
    set->matrix_count = count;
}

int
feature_set_order(struct feature_set *set)
{
    const size_t count = set->count;
    struct placed_feature *placed = calloc(count + 1, sizeof *placed);
    size_t *places = calloc(3 * count + 1, sizeof *places), *firsts = places + count;
    const int rc = placed && places ? 0 : -ENOMEM;
    if (rc == 0) {
        for (size_t i = 0; i < count; i++)
            placed[i] = (struct placed_feature){set->items[i], i, i};
        qsort(placed, count, sizeof *placed, same_compare);
        for (size_t i = 1; i < count; i++)
            if (feature_compare(&placed[i - 1].feature, &placed[i].feature) == 0)
                placed[i].first = placed[i - 1].first;
        qsort(placed, count, sizeof *placed, placed_compare);
        set->count = 0;
        for (size_t i = 0; i < count; i++) {
            firsts[placed[i].place] = placed[i].first;
            places[placed[i].place] = set->count;
            if (placed[i].first == placed[i].place)
                set->items[set->count++] = placed[i].feature;
        }
        matrices_move(set, firsts, places, firsts + count);
    }
    free(placed);
    free(places);
    return rc;
}

void
feature_set_clear(struct feature_set *set)
{
    struct feature_text *next;
    for (struct feature_text *text = set->texts; text; text = next) {
        next = text->next;
        free(text);
    }
    for (size_t i = 0; i < set->matrix_count; i++)
        free(set->matrices[i].cells);
    free(set->matrices);
    free(set->items);
    free(set->histograms);
    *set = (struct feature_set){0};
}

/* -------------------------------------------------------------------------------- fields ---- */

enum field_kind { FIELD_NONE, FIELD_TEXT, FIELD_INTEGER, FIELD_NUMBER, FIELD_BOOLEAN, FIELD_RANGE };

struct field {
    const char *name;
    enum field_kind kind; /* FIELD_NONE: null in JSON, an empty field in CSV */
    const char *text;
    int64_t integer;
    bool boolean;
    double number[2];
};

/* Fields of a record: all, those that identify the feature, and those of its region. */
#define FIELDS        (NAMED_FIELDS + FEATURE_SETTING_COUNT - 1)
#define NAMED_FIELDS  9
#define REGION_FIELDS 2

struct feature_record {
    struct field fields[FIELDS];
    char values[FEATURE_SETTING_COUNT][FEATURE_SETTING];
};

static struct field
field_text(const char *name, const char *text)
{
    return (struct field){.name = name, .kind = text[0] ? FIELD_TEXT : FIELD_NONE, .text = text};
}

/* Sets the value of each setting; "" without it. */
static void
record_take_settings(const char *settings, struct feature_record *record)
{
    char key[64], value[FEATURE_SETTING];
    for (int s = 0; s < FEATURE_SETTING_COUNT; s++)
        record->values[s][0] = '\0';
    while (feature_next_setting(&settings, key, value))
        for (int s = 0; s < FEATURE_SETTING_COUNT; s++)
            if (strcmp(key, feature_setting_rows[s].key) == 0)
                memcpy(record->values[s], value, strlen(value) + 1);
}

/* Sets the fields that identify the feature, and its value. */
static void
record_name(const struct feature *feature, struct feature_record *record)
{
    struct field *field = record->fields;
    *field++ = (struct field){.name = "segment_number", .kind = FIELD_INTEGER, .integer = feature->segment};
    *field++ = field_text("label", feature->label);
    *field++ = field_text("name", feature->name);
    *field++ = field_text("meaning", feature->meaning);
    *field++ = field_text("family", feature->family);
    *field++ = field_text("ibsi_code", feature->ibsi);
    /* Adds 0 to turn a negative zero into 0, since SQLite does not keep the sign. */
    *field++ = (struct field){.name = "value",
                              .kind = *feature->missing_reason ? FIELD_NONE : FIELD_NUMBER,
                              .number = {feature->value + 0.0}};
    *field++ = field_text("reason", feature->missing_reason);
    *field++ = field_text("unit", feature->unit);
}

/* Sets the fields of the settings. */
static void
record_set(const struct feature *feature, struct feature_record *record)
{
    static const enum field_kind kinds[] = {FIELD_TEXT, FIELD_INTEGER, FIELD_NUMBER, FIELD_BOOLEAN};
    struct field *field = record->fields + NAMED_FIELDS;
    record_take_settings(feature->settings, record);
    for (int s = 0; s < FEATURE_SETTING_COUNT; s++) {
        const enum feature_setting setting = (enum feature_setting)s;
        const struct feature_setting_row *row = &feature_setting_rows[s];
        const char *value = record->values[s];
        if (setting != FEATURE_range_high) {
            *field++ = (struct field){
                .name = row->key,
                .kind = *value ? kinds[row->kind] : FIELD_NONE,
                .text = value,
                .integer = strtoll(value, NULL, 10),
                .boolean = strcmp(value, "true") == 0,
                .number = {strtod(value, NULL)},
            };
            continue;
        }
        field[-1].name = "range"; /* both ends are one field */
        if (field[-1].kind != FIELD_NONE)
            field[-1].kind = FIELD_RANGE;
        field[-1].number[1] = strtod(value, NULL);
    }
}

static void
record_make(const struct feature *feature, struct feature_record *record)
{
    record_name(feature, record);
    record_set(feature, record);
}

/* The text of settings, which most features share with the feature before. */
struct settings_text {
    const char *of; /* the settings; NULL: none */
    size_t size;
    char bytes[8192];
};

typedef void settings_writer(const struct feature_record *record, FILE *out);

static bool
settings_text_make(struct settings_text *text, const struct feature_record *record, settings_writer *write)
{
    FILE *stream = fmemopen(text->bytes, sizeof text->bytes, "w");
    if (!stream)
        return false;
    write(record, stream);
    const bool fits = fflush(stream) == 0 && !ferror(stream);
    const long size = ftell(stream);
    fclose(stream);
    text->size = size > 0 ? (size_t)size : 0;
    return fits && text->size < sizeof text->bytes;
}

/* Writes the settings of a feature. Settings that have no text, for want of memory, are written one by one. */
static void
settings_put(struct settings_text *text, const struct feature *feature, struct feature_record *record,
             settings_writer *write, FILE *out)
{
    if (!text->of || (text->of != feature->settings && strcmp(text->of, feature->settings) != 0)) {
        record_set(feature, record);
        text->of = settings_text_make(text, record, write) ? feature->settings : NULL;
    }
    if (text->of)
        fwrite(text->bytes, 1, text->size, out);
    else
        write(record, out);
}

/* ---------------------------------------------------------------------------------- JSON ---- */

static void
put_json(struct json *json, const struct field *value)
{
    const char *key = value->name;
    switch (value->kind) {
    case FIELD_NONE:
        json_null(json, key);
        break;
    case FIELD_TEXT:
        json_string(json, key, value->text);
        break;
    case FIELD_INTEGER:
        json_integer(json, key, value->integer);
        break;
    case FIELD_NUMBER:
        json_exact(json, key, value->number[0]);
        break;
    case FIELD_BOOLEAN:
        json_boolean(json, key, value->boolean);
        break;
    case FIELD_RANGE:
        json_begin_row(json, key);
        json_exact(json, NULL, value->number[0]);
        json_exact(json, NULL, value->number[1]);
        json_end_row(json);
        break;
    }
}

/* Writes the settings as the last members of an object in an array. */
static void
settings_to_json(const struct feature_record *record, FILE *out)
{
    struct json json = {.out = out, .depth = 2, .filled = true};
    for (size_t f = NAMED_FIELDS; f < FIELDS; f++)
        put_json(&json, &record->fields[f]);
}

void
feature_set_to_json(const struct feature_set *set, FILE *out)
{
    struct json json = {.out = out};
    struct feature_record record;
    struct settings_text text = {.of = NULL};
    json_begin_array(&json, NULL);
    for (size_t i = 0; i < set->count; i++) {
        record_name(&set->items[i], &record);
        json_begin_object(&json, NULL);
        for (size_t f = 0; f < NAMED_FIELDS; f++)
            put_json(&json, &record.fields[f]);
        settings_put(&text, &set->items[i], &record, settings_to_json, out);
        json_end_object(&json);
    }
    json_end_array(&json);
}

void
feature_set_to_patterns(const struct feature_set *set, FILE *out)
{
    struct json json = {.out = out};
    json_begin_array(&json, NULL);
    for (size_t i = 0; i < set->histogram_count; i++) {
        const struct feature_histogram *histogram = &set->histograms[i];
        const struct field label = field_text("label", histogram->label);
        json_begin_object(&json, NULL);
        json_integer(&json, "segment_number", histogram->segment);
        put_json(&json, &label);
        json_string(&json, "pattern", histogram->pattern);
        json_string(&json, "settings", histogram->settings);
        json_begin_row(&json, "histogram");
        for (int code = 0; code < 256; code++)
            json_integer(&json, NULL, (int64_t)histogram->counts[code]);
        json_end_row(&json);
        json_end_object(&json);
    }
    json_end_array(&json);
}

static void
put_cells(struct json *json, const struct feature_matrix *matrix, bool normalised)
{
    json_begin_array(json, normalised ? "probabilities" : "counts");
    for (size_t i = 0; i < matrix->cell_count; i++) {
        const struct feature_cell *cell = &matrix->cells[i];
        json_begin_row(json, NULL);
        json_integer(json, NULL, cell->level);
        json_integer(json, NULL, cell->neighbour);
        if (normalised)
            json_exact(json, NULL, (double)cell->count / (double)matrix->pairs);
        else
            json_integer(json, NULL, (int64_t)cell->count);
        json_end_row(json);
    }
    json_end_array(json);
}

static void
put_matrices(const struct feature_set *set, FILE *out, bool normalised)
{
    struct feature_record record;
    struct json json = {.out = out};
    json_begin_array(&json, NULL);
    for (size_t i = 0; i < set->matrix_count; i++) {
        const struct feature_matrix *matrix = &set->matrices[i];
        record_make(&set->items[matrix->feature], &record);
        json_begin_object(&json, NULL);
        for (size_t f = 0; f < FIELDS; f++) {
            const bool of_region = f < REGION_FIELDS, of_settings = f >= NAMED_FIELDS;
            if (of_region || (of_settings && strcmp(record.fields[f].name, "directions") != 0))
                put_json(&json, &record.fields[f]);
        }
        if (matrix->slice > 0)
            json_integer(&json, "slice", matrix->slice);
        else
            json_null(&json, "slice");
        if (matrix->offset[0] || matrix->offset[1] || matrix->offset[2]) {
            json_begin_row(&json, "offset");
            for (int axis = 0; axis < 3; axis++)
                json_integer(&json, NULL, matrix->offset[axis]);
            json_end_row(&json);
        } else {
            json_null(&json, "offset");
        }
        json_integer(&json, "pairs", (int64_t)matrix->pairs);
        put_cells(&json, matrix, normalised);
        json_end_object(&json);
    }
    json_end_array(&json);
}

void
feature_set_to_counts(const struct feature_set *set, FILE *out)
{
    put_matrices(set, out, false);
}

void
feature_set_to_probabilities(const struct feature_set *set, FILE *out)
{
    put_matrices(set, out, true);
}

/* ----------------------------------------------------------------------------------- CSV ---- */

static void
put_number(FILE *out, double number)
{
    char text[TEXT_DIGITS];
    text_digits(number, text);
    fputs(text, out);
}

static void
put_csv(FILE *out, const struct field *value)
{
    switch (value->kind) {
    case FIELD_NONE:
        break;
    case FIELD_TEXT:
        text_csv(out, value->text);
        break;
    case FIELD_INTEGER:
        fprintf(out, "%" PRId64, value->integer);
        break;
    case FIELD_NUMBER:
        put_number(out, value->number[0]);
        break;
    case FIELD_BOOLEAN:
        fputs(value->boolean ? "true" : "false", out);
        break;
    case FIELD_RANGE:
        put_number(out, value->number[0]);
        fputc(',', out);
        put_number(out, value->number[1]);
        break;
    }
}

static void
settings_to_csv(const struct feature_record *record, FILE *out)
{
    for (size_t f = NAMED_FIELDS; f < FIELDS; f++) {
        const struct field *field = &record->fields[f];
        fputc(',', out);
        put_csv(out, field);
        if (field->kind == FIELD_NONE && strcmp(field->name, "range") == 0)
            fputc(',', out);
    }
}

void
feature_set_to_csv(const struct feature_set *set, FILE *out)
{
    struct feature_record record;
    struct settings_text text = {.of = NULL};
    static const struct feature none = {.label = "",
                                        .family = "",
                                        .name = "",
                                        .meaning = "",
                                        .ibsi = "",
                                        .missing_reason = "",
                                        .unit = "",
                                        .settings = ""};
    record_make(&none, &record);
    for (size_t f = 0; f < FIELDS; f++) {
        const bool is_range = strcmp(record.fields[f].name, "range") == 0;
        fprintf(out, "%s%s", f > 0 ? "," : "", is_range ? "range_low,range_high" : record.fields[f].name);
    }
    fputs("\r\n", out);
    for (size_t i = 0; i < set->count; i++) {
        record_name(&set->items[i], &record);
        for (size_t f = 0; f < NAMED_FIELDS; f++) {
            if (f > 0)
                fputc(',', out);
            put_csv(out, &record.fields[f]);
        }
        settings_put(&text, &set->items[i], &record, settings_to_csv, out);
        fputs("\r\n", out);
    }
}
