/* html_text.c - escape untrusted text for HTML. */
#include "service/common/html/html.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void
html_text(const char *text, FILE *out)
{
    size_t length;
    for (; *text; text += length) {
        if (shown_character(text, &length) == 0)
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
