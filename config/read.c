/*
 * read.c - from libconfig's settings to structs, by the option table.
 *
 * Defaults are read by the same code as the file, from the text in their row.
 */
#include "config/read.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libconfig.h>

#define KEY_SIZE 256

struct reader {
    const struct source *source;
    char *reason;
    size_t reason_size;
};

static int read_section(const struct reader *reader, const struct option_section *section,
                        config_setting_t *group, void *object);
static int read_row(const struct reader *reader, const struct option_row *row,
                    config_setting_t *setting, void *object);

/* ------------------------------------------------------------------------------- errors ---- */

/* Appends the setting's full name: "pipelines[0].segments[1].range". */
static size_t
write_key(const config_setting_t *setting, char *key, size_t size)
{
    const config_setting_t *parent = config_setting_parent(setting);
    if (!parent)
        return 0;
    size_t at = write_key(parent, key, size);
    if (at >= size)
        return at;
    const char *name = config_setting_name(setting);
    int used = name ? snprintf(key + at, size - at, "%s%s", at ? "." : "", name)
                    : snprintf(key + at, size - at, "[%d]", config_setting_index(setting));
    return used < 0 ? at : at + (size_t)used;
}

__attribute__((format(printf, 3, 4))) static int
fail(const struct reader *reader, const config_setting_t *setting, const char *format, ...)
{
    char place[1024], key[KEY_SIZE] = "";
    source_place(reader->source, config_setting_source_line(setting), place, sizeof(place));
    bool named = write_key(setting, key, sizeof(key)) > 0;
    int used =
        snprintf(reader->reason, reader->reason_size, "%s: %s%s", place, key, named ? ": " : "");
    if (used > 0 && (size_t)used < reader->reason_size) {
        va_list values;
        va_start(values, format);
        vsnprintf(reader->reason + used, reader->reason_size - (size_t)used, format, values);
        va_end(values);
    }
    return -EINVAL;
}

static int
out_of_memory(const struct reader *reader)
{
    snprintf(reader->reason, reader->reason_size, "out of memory");
    return -ENOMEM;
}

/* ------------------------------------------------------------------------------- values ---- */

static bool
is_number(const config_setting_t *setting)
{
    int type = config_setting_type(setting);
    return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64 || type == CONFIG_TYPE_FLOAT;
}

static double
number_of(const config_setting_t *setting)
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
get_number(const struct reader *reader, const struct option_row *row,
           const config_setting_t *setting, double *value)
{
    if (!is_number(setting))
        return fail(reader, setting, "has to be a number");
    *value = number_of(setting);
    if (!isfinite(*value) || *value < row->lo || *value > row->hi)
        return fail(reader, setting, "%.10g is not within %.10g .. %.10g", *value, row->lo,
                    row->hi);
    return 0;
}

static int
read_number(const struct reader *reader, const struct option_row *row,
            const config_setting_t *setting, char *field)
{
    double value;
    int rc = get_number(reader, row, setting, &value);
    if (rc == 0)
        memcpy(field, &value, sizeof(value));
    return rc;
}

static int
read_integer(const struct reader *reader, const struct option_row *row,
             const config_setting_t *setting, char *field)
{
    if (config_setting_type(setting) == CONFIG_TYPE_FLOAT || !is_number(setting))
        return fail(reader, setting, "has to be an integer");
    double number;
    int rc = get_number(reader, row, setting, &number);
    if (rc == 0) {
        int value = (int)number; /* limits of integers are within int */
        memcpy(field, &value, sizeof(value));
    }
    return rc;
}

static int
read_boolean(const struct reader *reader, const config_setting_t *setting, char *field)
{
    if (config_setting_type(setting) != CONFIG_TYPE_BOOL)
        return fail(reader, setting, "has to be true or false");
    bool value = config_setting_get_bool(setting);
    memcpy(field, &value, sizeof(value));
    return 0;
}

static bool
is_sequence(const config_setting_t *setting)
{
    int type = config_setting_type(setting);
    return type == CONFIG_TYPE_ARRAY || type == CONFIG_TYPE_LIST;
}

static int
read_numbers(const struct reader *reader, const struct option_row *row,
             const config_setting_t *setting, char *field)
{
    double values[3];
    int rc = 0;
    if (row->uniform && is_number(setting)) {
        rc = get_number(reader, row, setting, &values[0]);
        for (size_t i = 1; i < row->count; i++)
            values[i] = values[0];
    } else if (is_sequence(setting) && (size_t)config_setting_length(setting) == row->count) {
        for (unsigned i = 0; i < row->count && rc == 0; i++)
            rc = get_number(reader, row, config_setting_get_elem(setting, i), &values[i]);
    } else {
        return fail(reader, setting, "has to be %s[ ... ] of %zu numbers",
                    row->uniform ? "a number, or " : "", row->count);
    }
    if (rc == 0)
        memcpy(field, values, row->count * sizeof(values[0]));
    return rc;
}

/* Length of the UTF-8 sequence at `text`, and its code point; 0 when it is not valid. */
static size_t
decode_utf8(const unsigned char *text, uint32_t *point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80) {
        *point = text[0];
        return 1;
    }
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    *point = text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        *point = (*point << 6) | (text[i] & 0x3fu);
    }
    bool valid = *point >= least[length] && *point <= 0x10ffff && (*point & ~0x7ffu) != 0xd800;
    return valid ? length : 0;
}

static bool
is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0);
}

/* Counts characters; a message when the text is not one line of UTF-8. */
static const char *
measure(const char *text, size_t *characters)
{
    *characters = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; ++*characters) {
        uint32_t point = 0;
        size_t length = decode_utf8(at, &point);
        if (length == 0)
            return "is not valid UTF-8";
        if (is_control(point))
            return "holds a control character";
        at += length;
    }
    return NULL;
}

/*
 * PS3.5 allows printable ASCII but backslash; blanks at the ends are padding, and would never be
 * found equal to what a peer says.
 */
static bool
is_ae_title(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] > 0x7e || text[i] == '\\')
            return false;
    return length > 0 && text[0] != ' ' && text[length - 1] != ' ';
}

static bool
is_address(const char *text)
{
    struct in6_addr address;
    return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

/* 32 bytes, two digits each, with colons between all of them or none. */
static bool
is_fingerprint(const char *text)
{
    size_t step = strchr(text, ':') ? 3 : 2;
    if (strlen(text) != 32 * step - (step - 2))
        return false;
    for (size_t i = 0; text[i]; i++)
        if (i % step == 2 ? text[i] != ':' : !isxdigit((unsigned char)text[i]))
            return false;
    return true;
}

/* Digits, or GPU- and the digits of a UUID. */
static bool
is_gpu(const char *text)
{
    static const char uuid[] = "GPU-";
    if (strncmp(text, uuid, strlen(uuid)) != 0)
        return strlen(text) <= 4 && text[strspn(text, "0123456789")] == '\0';
    const char *digits = text + strlen(uuid);
    return strlen(digits) == 36 && digits[strspn(digits, "0123456789abcdefABCDEF-")] == '\0';
}

/* A message when the text has not the form of the row. */
static const char *
misformed(const struct option_row *row, const char *text)
{
    static const char name_characters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    switch (row->form) {
    case FORM_NAME:
        return text[strspn(text, name_characters)] ? "may hold only A-Z a-z 0-9 _ -" : NULL;
    case FORM_DICOM:
        return strchr(text, '\\') ? "holds a backslash, which separates values in DICOM" : NULL;
    case FORM_AE:
        return is_ae_title(text) ? NULL
                                 : "has to be printable ASCII without backslash, and without "
                                   "blanks at its ends";
    case FORM_ADDRESS:
        return !text[0] || is_address(text) ? NULL : "has to be an IPv4 or IPv6 address";
    case FORM_FINGERPRINT:
        return is_fingerprint(text) ? NULL : "has to be 32 bytes in hexadecimal";
    case FORM_GPU:
        return is_gpu(text) ? NULL : "has to be the index of a GPU, or its UUID (\"GPU-...\")";
    case FORM_ABSOLUTE:
        return text[0] == '/' ? NULL : "has to be an absolute path";
    case FORM_FREE:
    case FORM_PATH:
        break;
    }
    return NULL;
}

static int
store_text(const struct reader *reader, const char *text, char *field)
{
    char *copy = strdup(text);
    if (!copy)
        return out_of_memory(reader);
    memcpy(field, &copy, sizeof(copy));
    return 0; // cppcheck-suppress memleak ; the field has it now
}

static int
read_text(const struct reader *reader, const struct option_row *row,
          const config_setting_t *setting, char *field)
{
    const char *text = config_setting_get_string(setting);
    if (config_setting_type(setting) != CONFIG_TYPE_STRING)
        return fail(reader, setting, "has to be a string in quotes");
    if (!text)
        text = "";
    size_t characters = 0;
    const char *wrong = measure(text, &characters);
    if (wrong)
        return fail(reader, setting, "%s", wrong);
    if ((double)characters < row->lo || (double)characters > row->hi)
        return fail(reader, setting, "has %zu characters; %.0f .. %.0f are allowed", characters,
                    row->lo, row->hi);
    wrong = misformed(row, text);
    return wrong ? fail(reader, setting, "%s", wrong) : store_text(reader, text, field);
}

#define CHOICES_SIZE 160
#define ALL_CHOICES  ~0u

/* Writes "a", "b" or "c": those of the row's choices whose bits are set. */
static void
name_choices(const struct option_row *row, unsigned wanted, char text[CHOICES_SIZE])
{
    unsigned count = 0;
    while (row->choices[count])
        count++;
    wanted &= (1u << count) - 1;
    size_t at = 0;
    for (unsigned i = 0; wanted && at < CHOICES_SIZE; i++) {
        if (!(wanted & 1u << i))
            continue;
        wanted &= ~(1u << i);
        const char *between = at == 0 ? "" : wanted ? ", " : " or ";
        at += (size_t)snprintf(text + at, CHOICES_SIZE - at, "%s\"%s\"", between, row->choices[i]);
    }
}

static int
get_choice(const struct reader *reader, const struct option_row *row,
           const config_setting_t *setting, unsigned *choice)
{
    const char *text = config_setting_get_string(setting);
    for (unsigned i = 0; text && row->choices[i]; i++)
        if (strcmp(text, row->choices[i]) == 0) {
            *choice = i;
            return 0;
        }
    char choices[CHOICES_SIZE];
    name_choices(row, ALL_CHOICES, choices);
    return fail(reader, setting, "has to be %s", choices);
}

static int
read_choice(const struct reader *reader, const struct option_row *row,
            const config_setting_t *setting, char *field)
{
    unsigned choice;
    int rc = get_choice(reader, row, setting, &choice);
    if (rc == 0)
        memcpy(field, &choice, sizeof(choice));
    return rc;
}

static int
read_switch(const struct reader *reader, const struct option_row *row,
            const config_setting_t *setting, char *field)
{
    unsigned choice;
    int rc = get_choice(reader, row, setting, &choice);
    if (rc == 0) {
        bool value = choice == 1;
        memcpy(field, &value, sizeof(value));
    }
    return rc;
}

static int
read_word(const struct reader *reader, const struct option_row *row,
          const config_setting_t *setting, char *field)
{
    unsigned choice;
    int rc = get_choice(reader, row, setting, &choice);
    return rc < 0 ? rc : store_text(reader, row->choices[choice], field);
}

static int
read_flags(const struct reader *reader, const struct option_row *row,
           const config_setting_t *setting, char *field)
{
    unsigned flags = 0;
    if (!is_sequence(setting) || config_setting_length(setting) == 0) {
        char choices[CHOICES_SIZE];
        name_choices(row, ALL_CHOICES, choices);
        return fail(reader, setting, "has to be [ ... ] with at least one of %s", choices);
    }
    for (unsigned i = 0; i < (unsigned)config_setting_length(setting); i++) {
        unsigned choice;
        int rc = get_choice(reader, row, config_setting_get_elem(setting, i), &choice);
        if (rc < 0)
            return rc;
        flags |= 1u << choice;
    }
    memcpy(field, &flags, sizeof(flags));
    return 0;
}

static int
read_group(const struct reader *reader, const struct option_row *row, config_setting_t *setting,
           char *field)
{
    if (config_setting_type(setting) != CONFIG_TYPE_GROUP)
        return fail(reader, setting, "has to be a group { ... }");
    return read_section(reader, row->section, setting, field);
}

static int
read_part(const struct reader *reader, const struct option_row *row, config_setting_t *setting,
          char *field)
{
    char *part = calloc(1, row->section->size);
    if (!part)
        return out_of_memory(reader);
    memcpy(field, &part, sizeof(part));
    return read_group(reader, row, setting, part); // cppcheck-suppress memleak ; the field has it
}

/* Gives the object room for the setting's elements, which has to be of a number within lo .. hi. */
static int
make_elements(const struct reader *reader, const struct option_row *row,
              const config_setting_t *setting, double lo, double hi, size_t size, void *object,
              char **elements)
{
    size_t count = (size_t)config_setting_length(setting);
    if ((double)count < lo || (double)count > hi)
        return fail(reader, setting, "has %zu elements; %.0f .. %.0f are allowed", count, lo, hi);
    *elements = calloc(count ? count : 1, size);
    if (!*elements)
        return out_of_memory(reader);
    memcpy((char *)object + row->offset, elements, sizeof(*elements));
    memcpy((char *)object + row->count_offset, &count, sizeof(count));
    return 0;
}

static int
read_list(const struct reader *reader, const struct option_row *row, config_setting_t *setting,
          void *object)
{
    char *elements;
    if (config_setting_type(setting) != CONFIG_TYPE_LIST)
        return fail(reader, setting, "has to be a list ( { ... }, { ... } )");
    int rc = make_elements(reader, row, setting, row->lo, row->hi, row->section->size, object,
                           &elements);
    for (unsigned i = 0; rc == 0 && i < (unsigned)config_setting_length(setting); i++)
        rc = read_group(reader, row, config_setting_get_elem(setting, i),
                        elements + i * row->section->size);
    return rc;
}

/* Each element is a string of the row's form, 1 .. 64 characters. */
static int
read_names(const struct reader *reader, const struct option_row *row,
           const config_setting_t *setting, void *object)
{
    char *names;
    if (!is_sequence(setting))
        return fail(reader, setting, "has to be an array [ \"...\", \"...\" ]");
    int rc = make_elements(reader, row, setting, row->lo, row->hi, sizeof(char *), object, &names);
    const struct option_row element = {.form = row->form, .lo = 1, .hi = 64};
    for (unsigned i = 0; rc == 0 && i < (unsigned)config_setting_length(setting); i++)
        rc = read_text(reader, &element, config_setting_get_elem(setting, i),
                       names + i * sizeof(char *));
    return rc;
}

/* One element of OPTION_INTEGERS that is several integers. */
static int
read_tuple(const struct reader *reader, const struct option_row *row,
           const config_setting_t *setting, char *field)
{
    int rc = 0;
    if (!is_sequence(setting) || (size_t)config_setting_length(setting) != row->count)
        return fail(reader, setting, "has to be [ ... ] of %zu integers", row->count);
    for (unsigned i = 0; rc == 0 && i < row->count; i++)
        rc =
            read_integer(reader, row, config_setting_get_elem(setting, i), field + i * sizeof(int));
    return rc;
}

static int
read_integers(const struct reader *reader, const struct option_row *row,
              const config_setting_t *setting, void *object)
{
    const size_t size = row->count * sizeof(int);
    char *elements;
    if (!is_sequence(setting))
        return fail(reader, setting, "has to be %s",
                    row->count > 1 ? "a list ( [ ... ], [ ... ] )" : "an array [ 1, 2 ]");
    int rc = make_elements(reader, row, setting, 1, (double)row->most, size, object, &elements);
    for (unsigned i = 0; rc == 0 && i < (unsigned)config_setting_length(setting); i++) {
        const config_setting_t *element = config_setting_get_elem(setting, i);
        char *field = elements + i * size;
        rc = row->count > 1 ? read_tuple(reader, row, element, field)
                            : read_integer(reader, row, element, field);
    }
    return rc;
}

/* ------------------------------------------------------------------------ rows, sections ---- */

static int
read_row(const struct reader *reader, const struct option_row *row, config_setting_t *setting,
         void *object)
{
    char *field = (char *)object + row->offset;
    if (row->alternative)
        memcpy((char *)object + row->unit_offset, &row->unit, sizeof(row->unit));
    switch (row->kind) {
    case OPTION_TEXT:
        return read_text(reader, row, setting, field);
    case OPTION_WORD:
        return read_word(reader, row, setting, field);
    case OPTION_CHOICE:
        return read_choice(reader, row, setting, field);
    case OPTION_FLAGS:
        return read_flags(reader, row, setting, field);
    case OPTION_NUMBER:
        return read_number(reader, row, setting, field);
    case OPTION_INTEGER:
        return read_integer(reader, row, setting, field);
    case OPTION_BOOLEAN:
        return read_boolean(reader, setting, field);
    case OPTION_SWITCH:
        return read_switch(reader, row, setting, field);
    case OPTION_NUMBERS:
        return read_numbers(reader, row, setting, field);
    case OPTION_INTEGERS:
        return read_integers(reader, row, setting, object);
    case OPTION_GROUP:
        return read_group(reader, row, setting, field);
    case OPTION_PART:
        return read_part(reader, row, setting, field);
    case OPTION_LIST:
        return read_list(reader, row, setting, object);
    case OPTION_NAMES:
        return read_names(reader, row, setting, object);
    }
    return -EINVAL;
}

static int
read_fallback(const struct reader *reader, const struct option_row *row, void *object)
{
    char *text;
    if (asprintf(&text, "%s = %s;", row->name, row->fallback) < 0)
        return out_of_memory(reader);
    config_t config;
    config_init(&config);
    config_read_string(&config, text);
    config_setting_t *setting = config_lookup(&config, row->name);
    int rc = setting ? read_row(reader, row, setting, object) : -EINVAL;
    config_destroy(&config);
    free(text);
    return rc;
}

/* Writes the names of the rows, all or the alternatives only: "a, b, c". */
static void
name_rows(const struct option_section *section, bool alternatives, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < section->row_count && at < size; i++)
        if (!alternatives || section->rows[i].alternative)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "",
                                   section->rows[i].name);
}

static int
refuse_unknown(const struct reader *reader, const struct option_section *section,
               const config_setting_t *group)
{
    for (unsigned i = 0; i < (unsigned)config_setting_length(group); i++) {
        const config_setting_t *setting = config_setting_get_elem(group, i);
        if (!option_find(section, config_setting_name(setting))) {
            char known[256];
            name_rows(section, false, known, sizeof(known));
            return fail(reader, setting, "there is no such option; here are: %s", known);
        }
    }
    return 0;
}

/* The line is that of the option that has no use. */
static int
refuse_unused(const struct reader *reader, const struct option_section *section,
              const struct option_row *row, const config_setting_t *setting, const void *object)
{
    if (option_replaced(section, row, object))
        return fail(reader, setting, "is not used with %s: give one of the two", row->instead);
    const struct option_row *with = option_find(section, row->with);
    char choices[CHOICES_SIZE];
    name_choices(with, row->with_choices, choices);
    if (with->kind == OPTION_FLAGS)
        return fail(reader, setting, "is used only with %s among %s", choices, row->with);
    return fail(reader, setting, "is used only with %s = %s", row->with, choices);
}

static int
read_or_default(const struct reader *reader, const struct option_section *section,
                const struct option_row *row, config_setting_t *group, void *object)
{
    config_setting_t *setting = config_setting_get_member(group, row->name);
    if (!option_applies(section, row, object))
        return setting ? refuse_unused(reader, section, row, setting, object) : 0;
    bool given = setting != NULL;
    if (row->optional)
        memcpy((char *)object + row->given_offset, &given, sizeof(given));
    if (setting)
        return read_row(reader, row, setting, object);
    if (!row->fallback)
        return fail(reader, group, "%s is missing", row->name);
    return row->fallback[0] ? read_fallback(reader, row, object) : 0;
}

static int
check_alternatives(const struct reader *reader, const struct option_section *section,
                   const config_setting_t *group)
{
    int alternatives = 0, given = 0;
    for (size_t i = 0; i < section->row_count; i++)
        if (section->rows[i].alternative) {
            alternatives++;
            given += config_setting_get_member(group, section->rows[i].name) != NULL;
        }
    if (alternatives == 0 || given == 1)
        return 0;
    char names[256];
    name_rows(section, true, names, sizeof(names));
    return fail(reader, group, "needs exactly one of %s", names);
}

static int
run_check(const struct reader *reader, config_setting_t *group, const void *object,
          bool (*check)(const void *object, struct option_complaint *complaint))
{
    struct option_complaint complaint;
    if (!check || check(object, &complaint))
        return 0;
    config_setting_t *setting = config_setting_lookup(group, complaint.option);
    return fail(reader, setting ? setting : group, "%s%s%s", setting ? "" : complaint.option,
                setting ? "" : ": ", complaint.text);
}

static int
read_section(const struct reader *reader, const struct option_section *section,
             config_setting_t *group, void *object)
{
    int rc = refuse_unknown(reader, section, group);
    for (size_t i = 0; i < section->row_count && rc == 0; i++)
        rc = read_or_default(reader, section, &section->rows[i], group, object);
    if (rc == 0)
        rc = check_alternatives(reader, section, group);
    return rc < 0 ? rc : run_check(reader, group, object, section->check);
}

static int
parse(const struct reader *reader, config_t *config)
{
    if (config_read_string(config, reader->source->text) == CONFIG_TRUE)
        return 0;
    char place[1024];
    int line = config_error_line(config);
    source_place(reader->source, line > 0 ? (unsigned)line : 0, place, sizeof(place));
    const char *text = config_error_text(config);
    bool mixed = text && strcmp(text, "mismatched element type in array") == 0;
    snprintf(reader->reason, reader->reason_size, "%s: %s", place,
             mixed  ? "integers and decimals are mixed in one [ ]: write 0.0 for 0"
             : text ? text
                    : "cannot be parsed");
    return -EINVAL;
}

int
read_source(const struct source *source, const struct option_section *section, void *object,
            const struct read_steps *steps, char *reason, size_t reason_size)
{
    struct reader reader = {.source = source, .reason = reason, .reason_size = reason_size};
    config_t config;
    config_init(&config);
    int rc = parse(&reader, &config);
    config_setting_t *root = config_root_setting(&config);
    if (rc == 0)
        rc = read_section(&reader, section, root, object);
    if (rc == 0 && steps && steps->prepare && (rc = steps->prepare(object, steps->context)) < 0)
        rc = out_of_memory(&reader);
    if (rc == 0 && steps)
        rc = run_check(&reader, root, object, steps->check);
    config_destroy(&config);
    return rc;
}
