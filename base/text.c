#include "base/text.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

const char *
text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool
text_ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

size_t
text_utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return s[0] != 0;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    int overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    int surrogate = s[0] == 0xed && s[1] > 0x9f;
    int beyond = s[0] == 0xf4 && s[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : length;
}

size_t
text_line_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    const bool is_control = s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
    return is_control ? 0 : text_utf8_length(text);
}

size_t
text_characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

bool
text_is_uid(const char *text)
{
    const size_t length = strlen(text);
    return length > 0 && length <= 64 && strspn(text, "0123456789.") == length;
}

void
text_utf8_mend_end(char *text)
{
    char *last = text + strlen(text);
    while (last > text && ((unsigned char)last[-1] & 0xc0) == 0x80)
        last--;
    if (last > text && ((unsigned char)last[-1] & 0xc0) == 0xc0 && text_utf8_length(last - 1) == 0)
        last[-1] = '\0';
}

void
text_digits(double value, char text[TEXT_DIGITS])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, TEXT_DIGITS, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

/* Reserves a byte for the NUL. */
static ssize_t
text_append(void *cookie, const char *bytes, size_t size)
{
    struct text_stream *stream = cookie;
    if (stream->size + size >= stream->capacity) {
        size_t capacity = 2 * (stream->size + size) + 1;
        char *larger = realloc(stream->bytes, capacity);
        if (!larger)
            return 0; /* the FILE reports an error from now on */
        stream->bytes = larger;
        stream->capacity = capacity;
    }
    memcpy(stream->bytes + stream->size, bytes, size);
    stream->size += size;
    stream->bytes[stream->size] = '\0';
    return (ssize_t)size;
}

void
text_csv(FILE *out, const char *text)
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

/* open_memstream drops text without memory, and neither ferror nor fclose reports it. */
int
text_open(struct text_stream *stream)
{
    static const cookie_io_functions_t append = {.write = text_append};
    *stream = (struct text_stream){.bytes = calloc(1, 1), .capacity = 1};
    if (stream->bytes)
        stream->out = fopencookie(stream, "w", append);
    if (stream->out) {
        __fsetlocking(stream->out, FSETLOCKING_BYCALLER); /* one thread writes */
        return 0;
    }
    free(stream->bytes);
    stream->bytes = NULL;
    return -ENOMEM;
}

int
text_close(struct text_stream *stream)
{
    const bool whole = fflush(stream->out) == 0 && !ferror(stream->out);
    fclose(stream->out);
    if (whole)
        return 0;
    free(stream->bytes);
    stream->bytes = NULL;
    return -ENOMEM;
}
