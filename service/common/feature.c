/*
 * feature.c - see feature.h.
 *
 * JSON and CSV are two ways to write one list of fields, so that they cannot come apart: each field
 * has a name and a function that says what it holds.
 */
#include "service/common/feature.h"

#include "service/common/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void
feature_set_clear(struct feature_set *set)
{
    for (size_t i = 0; i < set->matrix_count; i++)
        free(set->matrices[i].cells);
    free(set->matrices);
    free(set->items);
    free(set->histograms);
    *set = (struct feature_set){0};
}

/* -------------------------------------------------------------------------------- fields ---- */

enum field_kind { FIELD_NONE, FIELD_TEXT, FIELD_INTEGER, FIELD_NUMBER, FIELD_BOOLEAN, FIELD_RANGE };

struct field_value {
    enum field_kind kind; /* FIELD_NONE: null, an empty field */
    const char *text;
    int64_t integer;
    bool boolean;
    double number[2];
};

static struct field_value
text_of(const char *text)
{
    return (struct field_value){.kind = text[0] ? FIELD_TEXT : FIELD_NONE, .text = text};
}

static struct field_value
integer_of(int64_t integer)
{
    return (struct field_value){.kind = integer != 0 ? FIELD_INTEGER : FIELD_NONE,
                                .integer = integer};
}

/* 0 is the whole volume, and says so. */
static struct field_value
segment_of(int32_t segment)
{
    return (struct field_value){.kind = FIELD_INTEGER, .integer = segment};
}

/* Plus 0: SQLite, which has the same numbers, keeps no negative zero. */
static struct field_value
number_of(double number, bool is_there)
{
    return (struct field_value){.kind = is_there ? FIELD_NUMBER : FIELD_NONE,
                                .number = {number + 0.0}};
}

static struct field_value
symmetric_of(const struct feature *feature)
{
    bool has_matrix = feature->aggregation[0] != '\0';
    return (struct field_value){.kind = has_matrix ? FIELD_BOOLEAN : FIELD_NONE,
                                .boolean = feature->symmetric};
}

static struct field_value
range_of(const struct feature *feature)
{
    return (struct field_value){.kind = feature->has_range ? FIELD_RANGE : FIELD_NONE,
                                .number = {feature->range[0] + 0.0, feature->range[1] + 0.0}};
}

enum field {
    SEGMENT_NUMBER,
    LABEL,
    NAME,
    MEANING,
    FAMILY,
    IBSI_CODE,
    VALUE,
    REASON,
    UNIT,
    AGGREGATION,
    AGGREGATION_IBSI_CODE,
    DISCRETISATION,
    LEVELS,
    BIN_WIDTH,
    RANGE,
    DISTANCE,
    SYMMETRIC,
    DIRECTIONS,
    FIELDS,
};

static const char *const field_names[FIELDS] = {
    "segment_number",
    "label",
    "name",
    "meaning",
    "family",
    "ibsi_code",
    "value",
    "reason",
    "unit",
    "aggregation",
    "aggregation_ibsi_code",
    "discretisation",
    "levels",
    "bin_width",
    "range",
    "distance",
    "symmetric",
    "directions",
};

static struct field_value
field_of(const struct feature *feature, enum field field)
{
    switch (field) {
    case SEGMENT_NUMBER:
        return segment_of(feature->segment);
    case LABEL:
        return text_of(feature->label);
    case NAME:
        return text_of(feature->name);
    case MEANING:
        return text_of(feature->meaning);
    case FAMILY:
        return text_of(feature->family);
    case IBSI_CODE:
        return text_of(feature->ibsi);
    case VALUE:
        return number_of(feature->value, feature->absence[0] == '\0');
    case REASON:
        return text_of(feature->absence);
    case UNIT:
        return text_of(feature->unit);
    case AGGREGATION:
        return text_of(feature->aggregation);
    case AGGREGATION_IBSI_CODE:
        return text_of(feature->aggregation_ibsi);
    case DISCRETISATION:
        return text_of(feature->discretisation);
    case LEVELS:
        return integer_of(feature->levels);
    case BIN_WIDTH:
        return number_of(feature->bin_width, feature->bin_width > 0);
    case RANGE:
        return range_of(feature);
    case DISTANCE:
        return integer_of(feature->distance);
    case SYMMETRIC:
        return symmetric_of(feature);
    case DIRECTIONS:
        return text_of(feature->directions);
    case FIELDS:
        break;
    }
    return (struct field_value){0};
}

/* ---------------------------------------------------------------------------------- JSON ---- */

static void
put_json(struct json *json, const char *key, const struct field_value *value)
{
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

void
feature_set_to_json(const struct feature_set *set, FILE *out)
{
    struct json json = {.out = out};
    json_begin_array(&json, NULL);
    for (size_t i = 0; i < set->count; i++) {
        json_begin_object(&json, NULL);
        for (int f = 0; f < FIELDS; f++) {
            struct field_value value = field_of(&set->items[i], (enum field)f);
            put_json(&json, field_names[f], &value);
        }
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
        const struct field_value number = segment_of(histogram->segment);
        const struct field_value label = text_of(histogram->label);
        json_begin_object(&json, NULL);
        put_json(&json, "segment_number", &number);
        put_json(&json, "label", &label);
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
put_offset(struct json *json, const int32_t offset[3])
{
    if (offset[0] == 0 && offset[1] == 0 && offset[2] == 0) {
        json_null(json, "offset");
        return;
    }
    json_begin_row(json, "offset");
    for (int axis = 0; axis < 3; axis++)
        json_integer(json, NULL, offset[axis]);
    json_end_row(json);
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
put_matrix(struct json *json, const struct feature_set *set, const struct feature_matrix *matrix,
           bool normalised)
{
    static const enum field settings[] = {
        SEGMENT_NUMBER, LABEL,    AGGREGATION, AGGREGATION_IBSI_CODE,
        DISCRETISATION, LEVELS,   BIN_WIDTH,   RANGE,
        DISTANCE,       SYMMETRIC};
    const struct feature *feature = &set->items[matrix->feature];
    const struct field_value slice = integer_of(matrix->slice);
    json_begin_object(json, NULL);
    for (size_t f = 0; f < sizeof settings / sizeof settings[0]; f++) {
        const struct field_value value = field_of(feature, settings[f]);
        put_json(json, field_names[settings[f]], &value);
    }
    put_json(json, "slice", &slice);
    put_offset(json, matrix->offset);
    json_integer(json, "pairs", (int64_t)matrix->pairs);
    put_cells(json, matrix, normalised);
    json_end_object(json);
}

static void
put_matrices(const struct feature_set *set, FILE *out, bool normalised)
{
    struct json json = {.out = out};
    json_begin_array(&json, NULL);
    for (size_t i = 0; i < set->matrix_count; i++)
        put_matrix(&json, set, &set->matrices[i], normalised);
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
put_quoted(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void
put_number(FILE *out, double number)
{
    char text[JSON_NUMBER];
    json_digits(number, text);
    fputs(text, out);
}

static void
put_csv(FILE *out, const struct field_value *value)
{
    switch (value->kind) {
    case FIELD_NONE:
        break;
    case FIELD_TEXT:
        put_quoted(out, value->text);
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

void
feature_set_to_csv(const struct feature_set *set, FILE *out)
{
    for (int f = 0; f < FIELDS; f++)
        fprintf(out, "%s%s", f > 0 ? "," : "",
                f == RANGE ? "range_low,range_high" : field_names[f]);
    fputs("\r\n", out);
    for (size_t i = 0; i < set->count; i++) {
        for (int f = 0; f < FIELDS; f++) {
            struct field_value value = field_of(&set->items[i], (enum field)f);
            if (f > 0)
                fputc(',', out);
            put_csv(out, &value);
            if (f == RANGE && value.kind == FIELD_NONE)
                fputc(',', out);
        }
        fputs("\r\n", out);
    }
}
