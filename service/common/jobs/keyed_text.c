#include "service/common/jobs/keyed_text.h"

#include "base/array.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Writes runs of plain characters at once. The daemon's only thread writes the paths of all files,
 * so this must be fast. */
void
keyed_put(FILE *out, const char *key, const char *value)
{
    fprintf(out, "%s ", key);
    for (const unsigned char *s = (const unsigned char *)(value ? value : ""); *s;) {
        size_t plain = 0;
        while ((s[plain] >= 0x20 || s[plain] == '\t') && s[plain] != '\\' && s[plain] != 0x7f)
            plain++;
        fwrite(s, 1, plain, out);
        s += plain;
        if (*s == '\n')
            fputs("\n\t", out);
        else if (*s == '\\')
            fputs("\\\\", out);
        else if (*s)
            fprintf(out, "\\x%02x", *s);
        s += *s != 0;
    }
    fputc('\n', out);
}

void
keyed_put_inputs(FILE *out, char *const *paths, char *const *sha256, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        keyed_put(out, "input", paths[i]);
        if (sha256 && sha256[i])
            keyed_put(out, "sha256", sha256[i]);
    }
}

int
keyed_bad(const struct keyed_reader *reader, const char *what)
{
    return error_set(reader->error, -EBADMSG, CODE_NONE, "line %d: %s", reader->number, what);
}

static int
keyed_next_line(struct keyed_reader *reader)
{
    errno = 0;
    reader->length = getline(&reader->line, &reader->capacity, reader->in);
    if (reader->length < 0)
        return ferror(reader->in) || errno == ENOMEM ? -(errno ? errno : EIO) : 0;
    reader->number++;
    if (memchr(reader->line, '\0', (size_t)reader->length))
        return keyed_bad(reader, "a NUL character");
    if (reader->line[reader->length - 1] != '\n')
        return keyed_bad(reader, "the file was cut off");
    reader->line[--reader->length] = '\0';
    return 0;
}

int
keyed_begin(struct keyed_reader *reader, const char *format)
{
    char what[96];
    int error = keyed_next_line(reader);
    if (error)
        return error;
    if (reader->length < 0 || strcmp(reader->line, format) != 0) {
        snprintf(what, sizeof what, "not a file of this version (\"%s\")", format);
        return keyed_bad(reader, what);
    }
    return keyed_next_line(reader);
}

int
keyed_split(struct keyed_reader *reader, const char **key, const char **text)
{
    char *space = strchr(reader->line, ' ');
    if (!space)
        return keyed_bad(reader, "neither a key with a value nor a continuation line");
    *space = '\0';
    *key = reader->line;
    *text = space + 1;
    return 0;
}

static int
keyed_hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes the escapes of `from` into `to`, which must have room. Returns the length, or -1 for an invalid escape. */
static ptrdiff_t
keyed_unescape(char *to, const char *from)
{
    char *at = to;
    while (*from) {
        if (*from != '\\') {
            *at++ = *from++;
        } else if (from[1] == '\\') {
            *at++ = '\\';
            from += 2;
        } else {
            int high = from[1] == 'x' ? keyed_hex_digit(from[2]) : -1;
            int low = high >= 0 ? keyed_hex_digit(from[3]) : -1;
            if (low < 0 || high * 16 + low == 0)
                return -1;
            *at++ = (char)(high * 16 + low);
            from += 4;
        }
    }
    *at = '\0';
    return at - to;
}

int
keyed_take_text(struct keyed_reader *reader, const char *text, char **value)
{
    size_t size = 0;
    char *joined = NULL;
    if (*value)
        return keyed_bad(reader, "a duplicate key");
    for (bool first = true; first || (reader->length > 0 && reader->line[0] == '\t'); first = false) {
        const char *piece = first ? text : reader->line + 1;
        char *grown = realloc(joined, size + strlen(piece) + 2);
        if (!grown) {
            free(joined);
            return -ENOMEM;
        }
        joined = grown;
        if (!first)
            joined[size++] = '\n';
        ptrdiff_t length = keyed_unescape(joined + size, piece);
        int error = length < 0 ? keyed_bad(reader, "an invalid escape") : keyed_next_line(reader);
        if (error) {
            free(joined);
            return error;
        }
        size += (size_t)length;
    }
    *value = joined;
    return 0;
}

int
keyed_take_number(struct keyed_reader *reader, const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (errno || end == text || *end || *value < 0)
        return keyed_bad(reader, "not a number");
    return keyed_next_line(reader);
}

int
keyed_take_item(struct keyed_reader *reader, const char *text, char ***values, size_t *count, size_t *room)
{
    char **grown = array_grow(*values, room, *count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    *values = grown;
    grown[*count] = NULL;
    int error = keyed_take_text(reader, text, &grown[*count]);
    if (error == 0)
        (*count)++;
    return error;
}

int
keyed_take_input(struct keyed_reader *reader, const char *text, char ***paths, char ***sha256, size_t *count,
                 size_t rooms[2])
{
    char **grown = array_grow(*sha256, &rooms[1], *count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    *sha256 = grown;
    grown[*count] = NULL;
    return keyed_take_item(reader, text, paths, count, &rooms[0]);
}

int
keyed_take_digest(struct keyed_reader *reader, const char *text, char **sha256, size_t count)
{
    if (count == 0 || sha256[count - 1])
        return keyed_bad(reader, "a digest without an input");
    return keyed_take_text(reader, text, &sha256[count - 1]);
}
