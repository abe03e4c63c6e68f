/*
 * write.c - writes structs as configuration text, by the option table.
 *
 * Writes all values, also defaults, so that a later version with other defaults reads the same
 * values.
 */

#include "base/text.h"
#include "config/kinds/kinds.h"

#include <stdlib.h>

bool
option_not_null(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    (void)writer;
    (void)row;
    return *(const void *const *)field != NULL;
}

static bool
write_is_marked(const struct option_mark *mark, const void *object)
{
    const void *member = (const char *)object + mark->offset;
    return mark->alternative ? *(const unsigned *)member == mark->value : *(const bool *)member;
}

/* Returns whether the written value equals the default text of the row. */
static bool
write_is_default(const struct option_writer *writer, const struct option_row *row, const void *object)
{
    struct text_stream text;
    int rc = text_open(&text);
    if (rc == 0) {
        const struct option_writer value = {.out = text.out, .rc = writer->rc};
        row->kind->write(&value, row, option_value(row, object));
        rc = text_close(&text);
    }
    bool same = rc == 0 && row->fallback && strcmp(text.bytes, row->fallback) == 0;
    if (rc < 0)
        *writer->rc = rc;
    free(text.bytes);
    return same;
}

bool
write_wanted(const struct option_writer *writer, const struct option_section *section, const struct option_row *row,
             const void *object)
{
    if (!row->kind->write || option_unmet_use(section, row, object))
        return false;
    if (row->mark ? !write_is_marked(row->mark, object)
                  : row->kind->has && !row->kind->has(writer, row, option_value(row, object)))
        return false;
    return !(writer->identity && row->later && write_is_default(writer, row, object));
}

static void
write_option_row(const struct option_writer *writer, const struct option_row *row, const void *object)
{
    fprintf(writer->out, "%*s%s = ", 2 * writer->depth, "", writer->identity && row->was ? row->was : row->name);
    row->kind->write(writer, row, option_value(row, object));
    fputs(";\n", writer->out);
}

void
write_past_rows(const struct option_writer *writer, const struct option_section *around, const void *object,
                const char *name)
{
    for (size_t i = 0; i < around->row_count; i++) {
        const struct option_row *row = &around->rows[i];
        if (row->past && strcmp(row->past->group, name) == 0 && !option_unmet_use(around, row, object) &&
            (row->past->always || !row->mark || write_is_marked(row->mark, object)))
            write_option_row(writer, row, object);
    }
}

void
write_rows(const struct option_writer *writer, const struct option_section *section, const void *object)
{
    struct option_writer with_past = *writer;
    if (writer->identity) {
        with_past.around = section;
        with_past.object = object;
    }
    for (size_t i = 0; i < section->row_count; i++) {
        const struct option_row *row = &section->rows[i];
        /* Identities keep a moved row in its former group, if the group is given, so that UIDs do
         * not change. */
        if (write_wanted(writer, section, row, object) &&
            !(writer->identity && row->past &&
              write_wanted(writer, section, option_find(section, row->past->group), object)))
            write_option_row(&with_past, row, object);
    }
}

char *
write_section(const struct option_section *section, const void *object, bool identity)
{
    struct text_stream text;
    if (text_open(&text) < 0)
        return NULL;
    int rc = 0;
    const struct option_writer writer = {.out = text.out, .identity = identity, .rc = &rc};
    write_rows(&writer, section, object);
    if (text_close(&text) == 0 && rc < 0) {
        free(text.bytes);
        text.bytes = NULL;
    }
    return text.bytes;
}

char *
write_identity_of(const struct option_section *section, const char *first, const char *last, const void *object)
{
    const struct option_row *from = option_find(section, first), *to = option_find(section, last);
    const struct option_section part = {.rows = from, .row_count = (size_t)(to - from) + 1, .size = section->size};
    return write_section(&part, object, true);
}
