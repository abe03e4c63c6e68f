/* html_text.c - times and cells as all report formats show them; untrusted text for HTML. */
#include "service/common/html/html.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void
shown_time(const char *at, char text[SHOWN_TIME])
{
    iso_time_to_local(at, text);
}

const char *
shown_cell(const struct report_table *table, size_t row, size_t column, char buffer[SHOWN_CELL])
{
    const struct report_column *of = &table->list->columns[column];
    const char *text = table->cells[row * table->list->column_count + column];
    if (!text || !*text || (of->form & REPORT_SILENT && strcmp(text, "0") == 0))
        return NULL;
    if (!(of->form & REPORT_TIME) || strlen(text) < ISO_TIME_LENGTH)
        return text;
    shown_time(text, buffer);
    return *buffer ? buffer : text;
}

void
html_text(const char *text, FILE *out)
{
    size_t length;
    for (; *text; text += length) {
        if (report_character(text, &length) == 0)
            fputs((unsigned char)*text < 0x80 ? " " : "&#xFFFD;", out);
        else if (strchr("<>&\"'", *text))
            fprintf(out, "&#%d;", *text);
        else
            fwrite(text, 1, length, out);
    }
}

void
html_untrusted(const char *text, FILE *out)
{
    char *localised = iso_time_localise(text);
    fputs("<bdi>", out);
    html_text(localised ? localised : text, out);
    fputs("</bdi>", out);
    free(localised);
}

void
html_query(const char *text, FILE *out)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < 0x80 && (isalnum(c) || strchr("-._~", c)))
            fputc(c, out);
        else
            fprintf(out, "%%%02X", c);
    }
}
