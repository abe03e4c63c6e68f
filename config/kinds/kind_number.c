/*
 * kind_number.c - numbers, booleans, and arrays of numbers.
 */
#include "base/text.h"
#include "config/kinds/kinds.h"

#include <math.h>

static bool
setting_is_number(const config_setting_t *setting)
{
    int type = config_setting_type(setting);
    return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64 || type == CONFIG_TYPE_FLOAT;
}

static int
number_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    double *value = field;
    if (!setting_is_number(setting))
        return read_fail(reader, setting, "must be a number");
    const int type = config_setting_type(setting);
    const double number = type == CONFIG_TYPE_INT     ? config_setting_get_int(setting)
                          : type == CONFIG_TYPE_INT64 ? (double)config_setting_get_int64(setting)
                                                      : config_setting_get_float(setting);
    if (!isfinite(number) || number < row->min || number > row->max)
        return read_fail(reader, setting, "%.10g is not within %.10g .. %.10g", number, row->min, row->max);
    *value = number;
    return 0;
}

static int
integer_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    if (config_setting_type(setting) == CONFIG_TYPE_FLOAT || !setting_is_number(setting))
        return read_fail(reader, setting, "must be an integer");
    double number;
    int rc = number_read(reader, row, setting, &number);
    if (rc == 0)
        *(int *)field = (int)number; /* limits of integers are within int */
    return rc;
}

/* Writes a number with a point or an exponent, so that libconfig reads a float. */
static void
number_put(FILE *out, double value)
{
    char text[TEXT_DIGITS];
    text_digits(value, text);
    fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void
number_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    if (row->kind == &option_integer)
        fprintf(writer->out, "%d", *(const int *)field);
    else if (row->kind == &option_boolean)
        fputs(*(const bool *)field ? "true" : "false", writer->out);
    else
        number_put(writer->out, *(const double *)field);
}

const struct option_kind option_number = {.read = number_read, .write = number_write, .type = "number", .limits = ""};

const struct option_kind option_integer = {
    .read = integer_read, .write = number_write, .type = "integer", .limits = ""};

static int
boolean_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    (void)row;
    if (config_setting_type(setting) != CONFIG_TYPE_BOOL)
        return read_fail(reader, setting, "must be true or false");
    *(bool *)field = config_setting_get_bool(setting);
    return 0;
}

const struct option_kind option_boolean = {.read = boolean_read, .write = number_write, .type = "boolean"};

static int
numbers_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    double *values = field;
    const size_t count = row->array.count;
    int rc = 0;
    if (row->array.uniform && setting_is_number(setting)) {
        rc = number_read(reader, row, setting, &values[0]);
        for (size_t i = 1; i < count; i++)
            values[i] = values[0];
    } else if (read_is_sequence(setting) && (size_t)config_setting_length(setting) == count) {
        for (unsigned i = 0; i < count && rc == 0; i++)
            rc = number_read(reader, row, config_setting_get_elem(setting, i), &values[i]);
    } else {
        return read_fail(reader, setting, "must be %s[ ... ] of %zu numbers", row->array.uniform ? "a number, or " : "",
                         count);
    }
    if (rc == 0 && row->array.ends && values[0] > values[1])
        return read_fail(reader, setting, "the lower end %g is above the upper end %g", values[0], values[1]);
    return rc;
}

static void
numbers_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const double *values = field;
    bool equal = row->array.uniform;
    for (size_t i = 1; i < row->array.count && equal; i++)
        equal = memcmp(&values[i], &values[0], sizeof(values[0])) == 0;
    if (equal) {
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
    if (row->kind == &option_numbers)
        snprintf(type, size, row->array.uniform ? "number or %zu" : "%zu numbers", row->array.count);
    else if (row->array.count > 1)
        snprintf(type, size, "lists of %zu integers", row->array.count);
    else
        snprintf(type, size, "%s", row->array.uniform ? "integer or integers" : "integers");
}

const struct option_kind option_numbers = {
    .read = numbers_read, .write = numbers_write, .describe = numbers_describe, .limits = ""};

/* Reads one element of several integers. */
static int
tuple_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    int *values = field;
    int rc = 0;
    if (!read_is_sequence(setting) || (size_t)config_setting_length(setting) != row->array.count)
        return read_fail(reader, setting, "must be [ ... ] of %zu integers", row->array.count);
    for (unsigned i = 0; rc == 0 && i < row->array.count; i++)
        rc = integer_read(reader, row, config_setting_get_elem(setting, i), &values[i]);
    return rc;
}

static int
integers_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    const size_t size = row->array.count * sizeof(int);
    const bool tuples = row->array.count > 1;
    if (row->array.uniform && !read_is_sequence(setting))
        return read_one(reader, row, setting, size, field, integer_read);
    if (!read_is_sequence(setting))
        return read_fail(reader, setting, "must be %s", tuples ? "a list ( [ ... ], [ ... ] )" : "an array [ 1, 2 ]");
    return read_elements(reader, row, setting, 1, (double)row->array.elements, size, field,
                         tuples ? tuple_read : integer_read);
}

static void
integers_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const struct option_elements elements = option_elements(row, field);
    const int *values = (const int *)(const void *)elements.at;
    const size_t width = row->array.count;
    FILE *out = writer->out;
    fputs(width > 1 ? "( " : "[ ", out);
    for (size_t i = 0; i < elements.count * width; i++) {
        bool begins = width > 1 && i % width == 0;
        bool ends = width > 1 && i % width == width - 1;
        fprintf(out, "%s%s%d%s", i > 0 ? ", " : "", begins ? "[ " : "", values[i], ends ? " ]" : "");
    }
    fputs(width > 1 ? " )" : " ]", out);
}

const struct option_kind option_integers = {.read = integers_read,
                                            .write = integers_write,
                                            .has = option_not_null,
                                            .clear = option_free,
                                            .describe = numbers_describe,
                                            .limits = ""};
