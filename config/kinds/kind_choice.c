/*
 * kind_choice.c - options with a fixed set of words: exactly one of them, or several.
 */
#include "config/kinds/kinds.h"

void
read_name_choices(const struct option_row *row, unsigned wanted, char text[CHOICES_SIZE])
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

/* Reads one of the words: itself, its index, or whether it is the second one. */
static int
choice_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    const char *text = config_setting_get_string(setting);
    unsigned choice = 0;
    while (text && row->choices[choice] && strcmp(text, row->choices[choice]) != 0)
        choice++;
    if (!text || !row->choices[choice]) {
        const bool is_past = text && row->past && row->past->word && strcmp(text, row->past->word) == 0;
        char choices[CHOICES_SIZE];
        read_name_choices(row, ALL_CHOICES, choices);
        if (!is_past)
            return read_fail(reader, setting, "must be %s", choices);
        choice = row->past->choice;
    }
    if (row->kind == &option_word)
        return read_copy(row->choices[choice], field);
    if (row->kind == &option_switch)
        *(bool *)field = choice == 1;
    else
        *(unsigned *)field = choice;
    return 0;
}

static void
choices_describe(const struct option_row *row, char *type, size_t size)
{
    size_t at = (size_t)snprintf(type, size, row->kind == &option_flags ? "set" : "enum");
    for (size_t i = 0; row->choices[i] && at < size; i++)
        at += (size_t)snprintf(type + at, size - at, "%s%s", i ? "|" : " ", row->choices[i]);
}

const struct option_kind option_word = {
    .read = choice_read, .write = write_string, .clear = option_free, .describe = choices_describe};

static void
choice_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const unsigned choice = row->kind == &option_switch ? *(const bool *)field : *(const unsigned *)field;
    const struct option_past *past = writer->identity ? row->past : NULL;
    write_text(writer->out, past && past->word && choice == past->choice ? past->word : row->choices[choice]);
}

const struct option_kind option_choice = {.read = choice_read, .write = choice_write, .describe = choices_describe};

const struct option_kind option_switch = {.read = choice_read, .write = choice_write, .describe = choices_describe};

/* Reads false, true, or one of the words after them. */
static int
graded_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    const char *text = config_setting_get_string(setting);
    unsigned choice = 2;
    if (config_setting_type(setting) == CONFIG_TYPE_BOOL) {
        *(unsigned *)field = (unsigned)config_setting_get_bool(setting);
        return 0;
    }
    while (text && row->choices[choice] && strcmp(text, row->choices[choice]) != 0)
        choice++;
    if (!text || !row->choices[choice]) {
        char words[CHOICES_SIZE];
        read_name_choices(row, ~3u, words);
        return read_fail(reader, setting, "must be true, false or %s", words);
    }
    *(unsigned *)field = choice;
    return 0;
}

static void
graded_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const unsigned choice = *(const unsigned *)field;
    if (choice < 2)
        fputs(row->choices[choice], writer->out);
    else
        write_text(writer->out, row->choices[choice]);
}

const struct option_kind option_graded = {.read = graded_read, .write = graded_write, .describe = choices_describe};

static int
flags_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    unsigned *flags = field, choice;
    if (!read_is_sequence(setting) || config_setting_length(setting) == 0) {
        char choices[CHOICES_SIZE];
        read_name_choices(row, ALL_CHOICES, choices);
        return read_fail(reader, setting, "must be [ ... ] with at least one of %s", choices);
    }
    int rc = 0;
    for (unsigned i = 0; i < (unsigned)config_setting_length(setting) && !read_stops(rc); i++) {
        int next = choice_read(reader, row, config_setting_get_elem(setting, i), &choice);
        if (next == 0)
            *flags |= 1u << choice;
        rc = read_worse(rc, next);
    }
    return rc;
}

static void
flags_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const unsigned *flags = field;
    const char *before = "[ ";
    for (unsigned i = 0; row->choices[i]; i++)
        if (*flags & (1u << i)) {
            fputs(before, writer->out);
            write_text(writer->out, row->choices[i]);
            before = ", ";
        }
    fputs(" ]", writer->out);
}

/* An absent set without a default is empty. */
static bool
flags_has(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    (void)writer;
    (void)row;
    return *(const unsigned *)field != 0;
}

const struct option_kind option_flags = {
    .read = flags_read, .write = flags_write, .has = flags_has, .describe = choices_describe};
