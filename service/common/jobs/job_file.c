/* job_file.c - see job_file.h. */
#include "service/common/jobs/job_file.h"

#include "base/array.h"
#include "base/durable.h"
#include "base/text.h"
#include "service/common/file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT "noctule-job 1"

/* ------------------------------------------------------------------------------- writing ---- */

/* Writes runs of plain characters at once. The daemon's only thread writes the paths of all files,
 * so this must be fast. */
static void
job_put(FILE *out, const char *key, const char *value)
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

static void
put_spec(FILE *out, const struct job_spec *spec)
{
    fprintf(out, "%s\nid %" PRId64 "\n", FORMAT, spec->id);
    job_put(out, "stack", spec->stack);
    job_put(out, "output", spec->output);
    job_put(out, "device", spec->device_serial_number);
    job_put(out, "settings", spec->settings);
    for (size_t i = 0; i < spec->input_count; i++) {
        job_put(out, "input", spec->inputs[i]);
        if (spec->sha256 && spec->sha256[i])
            job_put(out, "sha256", spec->sha256[i]);
    }
    for (size_t i = 0; i < spec->object_count; i++)
        job_put(out, "object", spec->objects[i]);
    for (size_t i = 0; i < spec->earlier_count; i++)
        job_put(out, "earlier", spec->earlier[i]);
    fprintf(out, "end %zu\n", spec->input_count + spec->object_count);
}

int
job_spec_write(const struct job_spec *spec, const char *path)
{
    struct text_stream text;
    int error = text_open(&text);
    if (error)
        return error;
    put_spec(text.out, spec);
    error = text_close(&text);
    if (error == 0)
        error = durable_write(AT_FDCWD, path, text.bytes, text.size, 0640, DURABLE_REPLACE);
    free(text.bytes);
    if (error)
        return error;
    char *copy = strdup(path);
    error = copy ? durable_sync_folder(AT_FDCWD, dirname(copy)) : -ENOMEM;
    free(copy);
    return error;
}

/* ------------------------------------------------------------------------------- reading ---- */

struct job_reader {
    FILE *in;
    char *line; /* getline's buffer, always one line ahead of the value being read */
    size_t capacity;
    ssize_t length; /* -1: no more lines */
    int number;
    struct job_spec *spec;
    size_t input_capacity, object_capacity, sha256_capacity, earlier_capacity;
    bool has_id, ended;
    struct error *error;
};

static int
bad(const struct job_reader *reader, const char *what)
{
    return error_set(reader->error, -EBADMSG, CODE_NONE, "line %d: %s", reader->number, what);
}

static int
next_line(struct job_reader *reader)
{
    errno = 0;
    reader->length = getline(&reader->line, &reader->capacity, reader->in);
    if (reader->length < 0)
        return ferror(reader->in) || errno == ENOMEM ? -(errno ? errno : EIO) : 0;
    reader->number++;
    if (memchr(reader->line, '\0', (size_t)reader->length))
        return bad(reader, "a NUL character");
    if (reader->line[reader->length - 1] != '\n')
        return bad(reader, "the file was cut off");
    reader->line[--reader->length] = '\0';
    return 0;
}

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes the escapes of `from` into `to`, which must have room. Returns the length, or -1 for an invalid escape. */
static ptrdiff_t
unescape(char *to, const char *from)
{
    char *at = to;
    while (*from) {
        if (*from != '\\') {
            *at++ = *from++;
        } else if (from[1] == '\\') {
            *at++ = '\\';
            from += 2;
        } else {
            int high = from[1] == 'x' ? hex_digit(from[2]) : -1;
            int low = high >= 0 ? hex_digit(from[3]) : -1;
            if (low < 0 || high * 16 + low == 0)
                return -1;
            *at++ = (char)(high * 16 + low);
            from += 4;
        }
    }
    *at = '\0';
    return at - to;
}

/* Reads the value that starts at `text` in the current line, and its continuation lines. */
static int
take_value(struct job_reader *reader, const char *text, char **value)
{
    size_t size = 0;
    char *joined = NULL;
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
        ptrdiff_t length = unescape(joined + size, piece);
        int error = length < 0 ? bad(reader, "an invalid escape") : next_line(reader);
        if (error) {
            free(joined);
            return error;
        }
        size += (size_t)length;
    }
    *value = joined;
    return 0;
}

static int
job_take_number(struct job_reader *reader, const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (errno || end == text || *end || *value < 0)
        return bad(reader, "not a number");
    return next_line(reader);
}

static int
job_take_next(struct job_reader *reader, const char *text, char ***values, size_t *count, size_t *capacity)
{
    char **grown = array_grow(*values, capacity, *count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    *values = grown;
    int error = take_value(reader, text, &grown[*count]);
    if (error == 0)
        (*count)++;
    return error;
}

static int
job_take_input(struct job_reader *reader, const char *text)
{
    struct job_spec *spec = reader->spec;
    char **grown = array_grow(spec->sha256, &reader->sha256_capacity, spec->input_count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    spec->sha256 = grown;
    grown[spec->input_count] = NULL;
    return job_take_next(reader, text, &spec->inputs, &spec->input_count, &reader->input_capacity);
}

static int
job_take_earlier(struct job_reader *reader, const char *text)
{
    struct job_spec *spec = reader->spec;
    size_t words = 1;
    for (const char *blank = text; (blank = strchr(blank, ' ')); blank++)
        words++;
    if (words != 4 && words != 7)
        return bad(reader, "not a file name with the UIDs of one or two results");
    return job_take_next(reader, text, &spec->earlier, &spec->earlier_count, &reader->earlier_capacity);
}

static int
take_end(struct job_reader *reader, const char *text)
{
    int64_t count;
    int error = job_take_number(reader, text, &count);
    if (error)
        return error;
    if (count != (int64_t)(reader->spec->input_count + reader->spec->object_count))
        return bad(reader, "the number of files does not match");
    if (reader->length >= 0)
        return bad(reader, "data after the end");
    reader->ended = true;
    return 0;
}

static int
job_take_line(struct job_reader *reader)
{
    struct job_spec *spec = reader->spec;
    char **const last = spec->input_count > 0 ? &spec->sha256[spec->input_count - 1] : NULL;

    const struct {
        const char *key;
        char **value;
    } texts[] = {{"stack", &spec->stack},
                 {"output", &spec->output},
                 {"device", &spec->device_serial_number},
                 {"settings", &spec->settings}};

    char *space = strchr(reader->line, ' ');
    if (!space)
        return bad(reader, "neither a key with a value nor a continuation line");
    *space = '\0';
    const char *key = reader->line, *text = space + 1;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(key, texts[i].key) == 0)
            return *texts[i].value ? bad(reader, "a duplicate key") : take_value(reader, text, texts[i].value);
    }
    if (strcmp(key, "input") == 0)
        return job_take_input(reader, text);
    if (strcmp(key, "sha256") == 0)
        return last && !*last ? take_value(reader, text, last) : bad(reader, "a digest without an input");
    if (strcmp(key, "object") == 0)
        return job_take_next(reader, text, &spec->objects, &spec->object_count, &reader->object_capacity);
    if (strcmp(key, "earlier") == 0)
        return job_take_earlier(reader, text);
    if (strcmp(key, "end") == 0)
        return take_end(reader, text);
    if (strcmp(key, "id") == 0) {
        if (reader->has_id)
            return bad(reader, "a duplicate key");
        reader->has_id = true;
        return job_take_number(reader, text, &spec->id);
    }
    return bad(reader, "an unknown key");
}

static int
take_spec(struct job_reader *reader)
{
    int error = next_line(reader);
    if (error)
        return error;
    if (reader->length < 0 || strcmp(reader->line, FORMAT) != 0)
        return bad(reader, "not a job of this version (\"" FORMAT "\")");
    error = next_line(reader);
    while (error == 0 && reader->length >= 0)
        error = job_take_line(reader);
    if (error)
        return error;
    const struct job_spec *spec = reader->spec;
    if (!reader->ended)
        return bad(reader, "the file was cut off");
    if (!reader->has_id || !spec->stack || !spec->output || !spec->device_serial_number || !spec->settings)
        return bad(reader, "id, stack, output, device or settings is missing");
    return 0;
}

int
job_spec_read(const char *path, struct job_spec **spec, struct error *error)
{
    struct job_reader reader = {.error = error};
    *spec = NULL;
    *error = (struct error){0};
    reader.in = fopen(path, "re");
    reader.spec = reader.in ? calloc(1, sizeof *reader.spec) : NULL;
    int rc = reader.spec ? take_spec(&reader) : -errno;
    if (rc && error->message[0] == '\0')
        error_set(error, rc, CODE_NONE, "%s", strerror(-rc));
    free(reader.line);
    if (reader.in)
        fclose(reader.in);
    if (rc)
        job_spec_free(reader.spec);
    else
        *spec = reader.spec;
    return rc;
}

void
job_spec_free(struct job_spec *spec)
{
    if (!spec)
        return;
    for (size_t i = 0; i < spec->input_count; i++) {
        free(spec->inputs[i]);
        if (spec->sha256)
            free(spec->sha256[i]);
    }
    free(spec->inputs);
    free(spec->sha256);
    for (size_t i = 0; i < spec->object_count; i++)
        free(spec->objects[i]);
    free(spec->objects);
    for (size_t i = 0; i < spec->earlier_count; i++)
        free(spec->earlier[i]);
    free(spec->earlier);
    free(spec->stack);
    free(spec->settings);
    free(spec->output);
    free(spec->device_serial_number);
    free(spec);
}
