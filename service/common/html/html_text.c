/* html_text.c - times and cells as all report formats show them; untrusted text for HTML. */
#include "service/common/html/html.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    if (!text || !*text || of->form & REPORT_HIDDEN || (of->form & REPORT_SILENT && strcmp(text, "0") == 0))
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

/* Returns whether a word, such as a UID or a path, is too long for a narrow column. Only those are broken within the word. */
static bool
html_has_long_word(const char *text)
{
    size_t length = 0;
    for (; *text && length <= 24; text++)
        length = strchr(" -", *text) ? 0 : length + 1;
    return length > 24;
}

void
html_untrusted(const char *text, FILE *out)
{
    fputs(html_has_long_word(text) ? "<bdi class=\"long\">" : "<bdi>", out);
    while (*text) {
        int64_t ms;
        const size_t length = iso_time_at(text, &ms);
        if (length > 0) {
            html_time_ms(ms, out);
            text += length;
            continue;
        }
        /* up to the next digit after another character, where a time may start */
        size_t end = 1;
        while (text[end] && !(text[end] >= '0' && text[end] <= '9' && !(text[end - 1] >= '0' && text[end - 1] <= '9')))
            end++;
        char *part = strndup(text, end);
        if (part)
            html_text(part, out);
        free(part);
        text += end;
    }
    fputs("</bdi>", out);
}

void
html_time_ms(int64_t ms, FILE *out)
{
    char at[ISO_TIME_SIZE], shown[32];
    const time_t now = time(NULL), then = (time_t)(ms / 1000);
    struct tm here, present;
    if (iso_time_from_ms(ms, at) != 0 || !localtime_r(&then, &here) || !localtime_r(&now, &present))
        return;
    strftime(shown, sizeof shown, here.tm_year == present.tm_year ? "%-d %b %H:%M" : "%-d %b %Y %H:%M", &here);
    fprintf(out, "<time datetime=\"%s\" title=\"%.10s %.8s UTC\">%s</time>", at, at, at + 11, shown);
}

void
html_time(const char *at, FILE *out)
{
    int64_t ms;
    if (iso_time_to_ms(at, &ms) == 0)
        html_time_ms(ms, out);
    else
        html_text(at, out);
}

void
html_count(int64_t count, FILE *out)
{
    char digits[32];
    const int length = snprintf(digits, sizeof digits, "%" PRId64, count);
    for (int i = 0; i < length; i++) {
        fputc(digits[i], out);
        if (digits[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0)
            fputc(',', out);
    }
}

void
html_duration(double seconds, FILE *out)
{
    const long long whole = (long long)(seconds + 0.5);
    if (seconds < 60.0)
        fprintf(out, "%.*f s", seconds < 10.0 ? 1 : 0, seconds);
    else if (whole < 3600)
        fprintf(out, "%lld min %lld s", whole / 60, whole % 60);
    else if (whole < 86400)
        fprintf(out, "%lld h %lld min", whole / 3600, whole % 3600 / 60);
    else
        fprintf(out, "%lld d %lld h", whole / 86400, whole % 86400 / 3600);
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
