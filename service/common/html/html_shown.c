/* html_shown.c - display text shared by all report formats: times, cells, and characters of
 * untrusted text. */
#include "service/common/html/html.h"

#include "base/text.h"

#include <string.h>

void
shown_time(const char *at, char text[SHOWN_TIME])
{
    iso_time_to_local(at, text);
}

const char *
shown_cell(const struct night_table *table, size_t row, size_t column, char buffer[SHOWN_CELL])
{
    const struct night_column *of = &table->columns[column];
    const char *text = table->cells[row * table->column_count + column];
    if (!text || !*text || (of->silent && strcmp(text, "0") == 0))
        return NULL;
    if (of->kind != NIGHT_TIME || strlen(text) < ISO_TIME_LENGTH)
        return text;
    shown_time(text, buffer);
    return *buffer ? buffer : text;
}

/* Detects U+061C, U+200E, U+200F, U+2028 to U+202E and U+2066 to U+2069: direction marks and line
 * ends. */
static bool
shown_turns(const unsigned char *c)
{
    if (c[0] == 0xd8)
        return c[1] == 0x9c;
    if (c[0] != 0xe2)
        return false;
    if (c[1] == 0x80)
        return c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae);
    return c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9;
}

size_t
shown_character(const char *text, size_t *length)
{
    const size_t bytes = text_utf8_length(text);
    *length = bytes ? bytes : 1;
    if (text_line_length(text) == 0 || shown_turns((const unsigned char *)text))
        return 0;
    return bytes;
}
