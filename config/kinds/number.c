/*
 * number.c - options that are numbers, or some of them.
 */
#include "config/kinds/kinds.h"

#include <math.h>
#include <stdlib.h>

static bool
setting_is_number(const config_setting_t *setting)
{
    int type = config_setting_type(setting);
    return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64 || type == CONFIG_TYPE_FLOAT;
}

static double
setting_number(const config_setting_t *setting)
{
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_INT:
        return config_setting_get_int(setting);
    case CONFIG_TYPE_INT64:
        return (double)config_setting_get_int64(setting);
    default:
        return config_setting_get_float(setting);
    }
}

static int
number_get(const struct option_reader *reader, const struct option_row *row,
           const config_setting_t *setting, double *value)
{
    if (!setting_is_number(setting))
        return read_fail(reader, setting, "has to be a number");
    *value = setting_number(setting);
    if (!isfinite(*value) || *value < row->min || *value > row->max)
        return read_fail(reader, setting, "%.10g is not within %.10g .. %.10g", *value, row->min,
                         row->max);
    return 0;
}

static int
integer_get(const struct option_reader *reader, const struct option_row *row,
            const config_setting_t *setting, void *field)
{
    if (config_setting_type(setting) == CONFIG_TYPE_FLOAT || !setting_is_number(setting))
        return read_fail(reader, setting, "has to be an integer");
    double number;
    int rc = number_get(reader, row, setting, &number);
    if (rc == 0)
        *(int *)field = (int)number; /* limits of integers are within int */
    return rc;
}

/* The shortest decimal that reads back to the same double, and never looks like an integer. */
static void
number_put(FILE *out, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (memcmp(&back, &value, sizeof(back)) == 0)
            break;
    }
    fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static int
number_read(const struct option_reader *reader, const struct option_row *row,
            config_setting_t *setting, void *object)
{
    return number_get(reader, row, setting, option_field(row, object));
}

static void
number_write(const struct option_writer *writer, const struct option_row *row, const void *object)
{
    const double *value = option_value(row, object);
    number_put(writer->out, *value);
}

const struct option_kind option_number = {
    .read = number_read, .write = number_write, .type = "number", .limits = ""};

static int
integer_read(const struct option_reader *reader, const struct option_row *row,
             config_setting_t *setting, void *object)
{
    return integer_get(reader, row, setting, option_field(row, object));
}

static void
integer_write(const struct option_writer *writer, const struct option_row *row, const void *object)
{
    const int *value = option_value(row, object);
    fprintf(writer->out, "%d", *value);
}

const struct option_kind option_integer = {
    .read = integer_read, .write = integer_write, .type = "integer", .limits = ""};

static int
boolean_read(const struct option_reader *reader, const struct option_row *row,
             config_setting_t *setting, void *object)
{
    if (config_setting_type(setting) != CONFIG_TYPE_BOOL)
        return read_fail(reader, setting, "has to be true or false");
    *(bool *)option_field(row, object) = config_setting_get_bool(setting);
    return 0;
}

static void
boolean_write(const struct option_writer *writer, const struct option_row *row, const void *object)
{
    const bool *value = option_value(row, object);
    fputs(*value ? "true" : "false", writer->out);
}

const struct option_kind option_boolean = {
    .read = boolean_read, .write = boolean_write, .type = "boolean"};

static int
numbers_read(const struct option_reader *reader, const struct option_row *row,
             config_setting_t *setting, void *object)
{
    double *values = option_field(row, object);
    const size_t count = row->array.count;
    int rc = 0;
    if (row->array.uniform && setting_is_number(setting)) {
        rc = number_get(reader, row, setting, &values[0]);
        for (size_t i = 1; i < count; i++)
            values[i] = values[0];
    } else if (read_is_sequence(setting) && (size_t)config_setting_length(setting) == count) {
        for (unsigned i = 0; i < count && rc == 0; i++)
            rc = number_get(reader, row, config_setting_get_elem(setting, i), &values[i]);
    } else {
        return read_fail(reader, setting, "has to be %s[ ... ] of %zu numbers",
                         row->array.uniform ? "a number, or " : "", count);
    }
    return rc;
}

static bool
numbers_equal(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (memcmp(&values[i], &values[0], sizeof(values[0])) != 0)
            return false;
    return true;
}

static void
numbers_write(const struct option_writer *writer, const struct option_row *row, const void *object)
{
    const double *values = option_value(row, object);
    if (row->array.uniform && numbers_equal(values, row->array.count)) {
        number_put(writer->out, values[0]);
        return;
    }
    for (size_t i = 0; i < row->array.count; i++) {
        fputs(i ? ", " : "[ ", writer->out);
        number_put(writer->out, values[i]);
    }
    fputs(" ]", writer->out);
}

static void
numbers_describe(const struct option_row *row, char *type, size_t size)
{
    snprintf(type, size, row->array.uniform ? "number or %zu" : "%zu numbers", row->array.count);
}

const struct option_kind option_numbers = {
    .read = numbers_read, .write = numbers_write, .describe = numbers_describe, .limits = ""};

/* One element that is several integers. */
static int
tuple_get(const struct option_reader *reader, const struct option_row *row,
          const config_setting_t *setting, void *field)
{
    int *values = field;
    int rc = 0;
    if (!read_is_sequence(setting) || (size_t)config_setting_length(setting) != row->array.count)
        return read_fail(reader, setting, "has to be [ ... ] of %zu integers", row->array.count);
    for (unsigned i = 0; rc == 0 && i < row->array.count; i++)
        rc = integer_get(reader, row, config_setting_get_elem(setting, i), &values[i]);
    return rc;
}

static int
integers_read(const struct option_reader *reader, const struct option_row *row,
              config_setting_t *setting, void *object)
{
    const size_t size = row->array.count * sizeof(int);
    const bool tuples = row->array.count > 1;
    char *elements;
    if (!read_is_sequence(setting))
        return read_fail(reader, setting, "has to be %s",
                         tuples ? "a list ( [ ... ], [ ... ] )" : "an array [ 1, 2 ]");
    int rc = read_elements(reader, row, setting, 1, (double)row->array.elements, size, object,
                           &elements);
    for (unsigned i = 0; rc == 0 && i < (unsigned)config_setting_length(setting); i++) {
        const config_setting_t *element = config_setting_get_elem(setting, i);
        rc = (tuples ? tuple_get : integer_get)(reader, row, element, elements + i * size);
    }
    return rc;
}

static void
integers_write(const struct option_writer *writer, const struct option_row *row, const void *object)
{
    const struct option_elements elements = option_elements(row, object);
    const int *values = (const int *)(const void *)elements.at;
    const size_t width = row->array.count;
    FILE *out = writer->out;
    fputs(width > 1 ? "( " : "[ ", out);
    for (size_t i = 0; i < elements.count * width; i++) {
        bool begins = width > 1 && i % width == 0;
        bool ends = width > 1 && i % width == width - 1;
        fprintf(out, "%s%s%d%s", i > 0 ? ", " : "", begins ? "[ " : "", values[i],
                ends ? " ]" : "");
    }
    fputs(width > 1 ? " )" : " ]", out);
}

static void
integers_describe(const struct option_row *row, char *type, size_t size)
{
    snprintf(type, size, row->array.count > 1 ? "lists of %zu integers" : "integers",
             row->array.count);
}

const struct option_kind option_integers = {.read = integers_read,
                                            .write = integers_write,
                                            .has = option_not_null,
                                            .clear = option_free,
                                            .describe = integers_describe,
                                            .limits = ""};
