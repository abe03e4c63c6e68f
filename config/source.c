/*
 * source.c - reads a configuration file, expands its includes and checks its lexemes.
 */
#include "config/source.h"

#include "base/array.h"
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The resolved file pattern of an @overlay, and its position. */
struct source_pattern {
    char *path;
    unsigned file, line;
};

/* One file being copied into the source. */
struct scanner {
    struct source *source;
    const char *at, *end;
    unsigned file, line; /* the position of `at` */
    unsigned depth;      /* nested includes */
    struct error *error;
};

__attribute__((format(printf, 2, 3))) static int
scan_fail(const struct scanner *scanner, const char *format, ...)
{
    char text[256];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    return error_set(scanner->error, -EINVAL, CODE_NONE, "%s:%u: %s", scanner->source->files[scanner->file],
                     scanner->line, text);
}

/* Returns the reason why a file could not be read. */
static const char *
source_reason(int rc)
{
    return rc == -EMEDIUMTYPE ? "it is a folder, a pipe or a device, not a regular file" : strerror(-rc);
}

/* ---------------------------------------------------------------------- the expanded text ---- */

static int
scan_append_line(struct scanner *scanner)
{
    struct source *source = scanner->source;
    if (source->line_count >= LIMIT_CONFIG_LINES)
        return scan_fail(scanner, "the configuration has more than %d lines, including included files",
                         LIMIT_CONFIG_LINES);
    struct source_line *lines = array_grow(source->lines, &source->line_room, source->line_count + 1, sizeof(*lines));
    if (!lines)
        return source_out_of_memory(scanner->error);
    source->lines = lines;
    source->lines[source->line_count++] = (struct source_line){.file = scanner->file, .line = scanner->line};
    return 0;
}

static int
scan_append(struct scanner *scanner, const char *bytes, size_t size)
{
    struct source *source = scanner->source;
    if (source->size + size > LIMIT_CONFIG_BYTES)
        return scan_fail(scanner, "the configuration has more than %d bytes, including included files",
                         LIMIT_CONFIG_BYTES);
    char *text = array_grow(source->text, &source->room, source->size + size + 1, 1);
    if (!text)
        return source_out_of_memory(scanner->error);
    source->text = text;
    memcpy(source->text + source->size, bytes, size);
    source->size += size;
    source->text[source->size] = '\0';
    return 0;
}

/* Copies the text up to `to` and records the origin of each new line. */
static int
scan_copy(struct scanner *scanner, const char *to)
{
    while (scanner->at < to) {
        const char *newline = memchr(scanner->at, '\n', (size_t)(to - scanner->at));
        const char *stop = newline ? newline + 1 : to;
        if (memchr(scanner->at, '\0', (size_t)(stop - scanner->at)))
            return scan_fail(scanner, "the file contains a NUL byte: it must be a text file");
        int rc = scan_append(scanner, scanner->at, (size_t)(stop - scanner->at));
        scanner->at = stop;
        if (rc == 0 && newline) {
            scanner->line++;
            rc = scan_append_line(scanner);
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int
source_add_file(struct source *source, const char *path, unsigned *file)
{
    char **files = realloc(source->files, (source->file_count + 1) * sizeof(*files));
    if (!files)
        return -ENOMEM;
    source->files = files;
    files[source->file_count] = strdup(path);
    if (!files[source->file_count])
        return -ENOMEM;
    *file = (unsigned)source->file_count++;
    return 0;
}

/* ------------------------------------------------------------------------------- lexemes ---- */

static bool
scan_starts(const struct scanner *scanner, const char *prefix)
{
    size_t length = strlen(prefix);
    return (size_t)(scanner->end - scanner->at) >= length && memcmp(scanner->at, prefix, length) == 0;
}

static int
scan_block_comment(struct scanner *scanner)
{
    const char *close = memmem(scanner->at + 2, (size_t)(scanner->end - scanner->at) - 2, "*/", 2);
    if (!close)
        return scan_fail(scanner, "the comment has no end: add */");
    return scan_copy(scanner, close + 2);
}

/* Returns whether the text at `at` may follow a closing quote. libconfig needs no semicolon at the
 * end of a line. */
static bool
scan_closes(const struct scanner *scanner, const char *at)
{
    while (at < scanner->end && (*at == ' ' || *at == '\t'))
        at++;
    return at == scanner->end || strchr("\r\n;,)]}\"#/", *at);
}

/* Copies a string. In a string of several lines, the closing quote may be the opening quote of the
 * next string: then its own quote is missing. */
static int
scan_string(struct scanner *scanner)
{
    const char *at = scanner->at + 1;
    while (at < scanner->end && *at != '"') {
        bool escape = *at == '\\' && at + 1 < scanner->end;
        if (escape && scanner->end - at >= 4 && memcmp(at, "\\x00", 4) == 0)
            return scan_fail(scanner, "a string must not contain \\x00");
        at += escape ? 2 : 1;
    }
    if (at >= scanner->end || (memchr(scanner->at, '\n', (size_t)(at - scanner->at)) && !scan_closes(scanner, at + 1)))
        return scan_fail(scanner, "the string has no closing quote");
    return scan_copy(scanner, at + 1);
}

static int
scan_word(struct scanner *scanner)
{
    const char *at = scanner->at;
    while (at < scanner->end && (isalnum((unsigned char)*at) || *at == '-' || *at == '_' || *at == '*'))
        at++;
    return scan_copy(scanner, at);
}

/* Reports an integer beyond 32 bits (with the suffix L: 64 bits). libconfig would truncate it. */
static int
scan_check_integer(const struct scanner *scanner, const char *number)
{
    char *end;
    errno = 0;
    long long value = strtoll(number, &end, strncasecmp(number, "0x", 2) == 0 ? 16 : 10);
    bool wide = *end == 'L';
    end += strspn(end, "L");
    if (*end != '\0')
        return 0; /* a float, or an error that libconfig reports */
    if (errno == ERANGE || (!wide && (value > INT_MAX || value < INT_MIN)))
        return scan_fail(scanner, "the integer %s is too large", number);
    return 0;
}

static int
scan_number(struct scanner *scanner)
{
    const char *at = scanner->at + 1;
    bool hex = scan_starts(scanner, "0x") || scan_starts(scanner, "0X");
    while (at < scanner->end && (isalnum((unsigned char)*at) || *at == '.' ||
                                 (!hex && (*at == '+' || *at == '-') && tolower(at[-1]) == 'e')))
        at++;
    char number[64];
    size_t length = (size_t)(at - scanner->at);
    if (length >= sizeof(number))
        return scan_fail(scanner, "the number has %zu characters, which is too long", length);
    memcpy(number, scanner->at, length);
    number[length] = '\0';
    int rc = scan_check_integer(scanner, number);
    return rc < 0 ? rc : scan_copy(scanner, at);
}

/* Limits the settings per group and the depth. libconfig needs time quadratic in the settings of a
 * group, and stack for each level. */
static int
scan_structure(const struct scanner *scanner, char c)
{
    struct source *source = scanner->source;
    if (c == '{' || c == '(' || c == '[') {
        if (source->depth == LIMIT_CONFIG_DEPTH)
            return scan_fail(scanner, "groups and lists must not be nested more than %d levels deep",
                             LIMIT_CONFIG_DEPTH);
        source->settings[++source->depth] = 0;
    } else if (c == '}' || c == ')' || c == ']') {
        source->depth -= source->depth > 0; /* libconfig reports an unmatched bracket */
    } else if ((c == '=' || c == ':') && ++source->settings[source->depth] > LIMIT_CONFIG_SETTINGS) {
        return scan_fail(scanner, "a group must not have more than %d settings", LIMIT_CONFIG_SETTINGS);
    }
    return 0;
}

static int scan_include(struct scanner *scanner);
static int scan_overlay(struct scanner *scanner);

static int
scan_lexeme(struct scanner *scanner, bool line_begins)
{
    char c = *scanner->at;
    if (line_begins && scan_starts(scanner, "@include"))
        return scan_include(scanner);
    if (line_begins && scan_starts(scanner, "@overlay"))
        return scan_overlay(scanner);
    if (c == '#' || scan_starts(scanner, "//")) {
        const char *newline = memchr(scanner->at, '\n', (size_t)(scanner->end - scanner->at));
        return scan_copy(scanner, newline ? newline : scanner->end);
    }
    if (scan_starts(scanner, "/*"))
        return scan_block_comment(scanner);
    if (c == '"')
        return scan_string(scanner);
    if (isalpha((unsigned char)c) || c == '*')
        return scan_word(scanner);
    if (isdigit((unsigned char)c) || c == '.' || c == '-' || c == '+')
        return scan_number(scanner);
    if (c == '@')
        return scan_fail(scanner, "@include and @overlay must begin a line");
    int rc = scan_structure(scanner, c);
    return rc < 0 ? rc : scan_copy(scanner, scanner->at + 1);
}

static int
scan(struct scanner *scanner)
{
    if (scan_starts(scanner, "\xef\xbb\xbf")) /* the byte order mark of some editors */
        scanner->at += 3;
    bool line_begins = true; /* only blanks since the last newline */
    while (scanner->at < scanner->end) {
        char c = *scanner->at;
        int rc = scan_lexeme(scanner, line_begins);
        if (rc < 0)
            return rc;
        line_begins = c == '\n' || (line_begins && (c == ' ' || c == '\t'));
    }
    return 0;
}

/* -------------------------------------------------------------------------------- files ---- */

/* Opens a regular file. Opening a pipe could block, and reading it might never end. */
static int
source_open_regular(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int rc = fd < 0 || fstat(fd, &status) < 0 ? -errno : S_ISREG(status.st_mode) ? fd : -EMEDIUMTYPE;
    if (rc < 0 && fd >= 0)
        close(fd);
    return rc;
}

/* Reads the whole file into malloc'd memory and appends a NUL. */
static int
source_read_whole(const char *path, char **bytes, size_t *size)
{
    int fd = source_open_regular(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !file)
        close(fd);
    if (!file)
        return fd < 0 ? fd : -ENOMEM;
    *bytes = malloc(LIMIT_CONFIG_BYTES + 2); /* unused pages take no memory */
    *size = *bytes ? fread(*bytes, 1, LIMIT_CONFIG_BYTES + 1, file) : 0;
    int rc = !*bytes ? -ENOMEM : ferror(file) ? -errno : *size > LIMIT_CONFIG_BYTES ? -EFBIG : 0;
    fclose(file);
    if (rc < 0)
        free(*bytes);
    else
        (*bytes)[*size] = '\0';
    return rc;
}

/* Resolves a path written in the file `from`: relative to the folder of that file, or, if there is
 * no such file, to the installed data files. */
static char *
scan_resolve(const char *from, const char *path, size_t length)
{
    const char *slash = strrchr(from, '/');
    int folder = path[0] == '/' || !slash ? 0 : (int)(slash - from) + 1;
    char *resolved;
    if (asprintf(&resolved, "%.*s%.*s", folder, from, (int)length, path) < 0)
        return NULL;
    if (path[0] == '/' || access(resolved, F_OK) == 0)
        return resolved;
    char *name = strndup(path, length), *shared = name ? conf_share_path(name) : NULL;
    free(name);
    if (!shared || access(shared, F_OK) != 0) {
        free(shared);
        return resolved;
    }
    free(resolved);
    return shared;
}

static int
scan_file(struct scanner *parent, const char *path)
{
    struct scanner scanner = *parent;
    char *bytes = NULL;
    size_t size = 0;
    int rc = source_read_whole(path, &bytes, &size);
    if (rc == -ENOMEM)
        return source_out_of_memory(parent->error);
    if (rc < 0) {
        const int told = scan_fail(parent, "cannot include %s: %s", path, source_reason(rc));
        return rc == -EMFILE || rc == -ENFILE || rc == -EIO ? rc : told; /* a transient error */
    }
    scanner.at = bytes;
    scanner.end = bytes + size;
    scanner.line = 1;
    scanner.depth++;
    rc = source_add_file(scanner.source, path, &scanner.file);
    if (rc < 0)
        rc = source_out_of_memory(parent->error);
    else
        rc = scan(&scanner);
    free(bytes);
    return rc;
}

/* Finds the quoted name after a directive; `close` is the position of its closing quote. */
static int
scan_directive(struct scanner *scanner, const char *directive, const char **name, const char **close)
{
    const char *open = scanner->at + strlen(directive);
    while (open < scanner->end && (*open == ' ' || *open == '\t'))
        open++;
    *name = open + 1;
    *close = open < scanner->end && *open == '"' ? memchr(*name, '"', (size_t)(scanner->end - *name)) : NULL;
    if (!*close || *close == *name || memchr(*name, '\n', (size_t)(*close - *name)) ||
        memchr(*name, '\0', (size_t)(*close - *name)))
        return scan_fail(scanner, "%s must be followed by a file name in quotes", directive);
    const char *at = *close + 1;
    at += strspn(at, " \t\r"); /* stops at the NUL after the text at the latest */
    if (!(at == scanner->end || *at == '\n' || *at == '#' || (at[0] == '/' && at[1] == '/')))
        return scan_fail(scanner, "only a comment may follow %s \"...\" on its line", directive);
    return 0;
}

/* Records an @overlay. Its files are read after the rest of this file. */
static int
scan_overlay(struct scanner *scanner)
{
    const char *name, *close;
    struct source *source = scanner->source;
    int rc = scan_directive(scanner, "@overlay", &name, &close);
    if (rc < 0)
        return rc;
    if (source->depth > 0 || source->layer_count > 1)
        return scan_fail(scanner, source->depth > 0 ? "@overlay must not be in a group or a list"
                                                    : "@overlay must not be in a file that @overlay reads");
    struct source_pattern *patterns = realloc(source->patterns, (source->pattern_count + 1) * sizeof(*patterns));
    char *path = scan_resolve(source->files[scanner->file], name, (size_t)(close - name));
    if (patterns)
        source->patterns = patterns;
    if (!patterns || !path) {
        free(path);
        return source_out_of_memory(scanner->error);
    }
    patterns[source->pattern_count++] = (struct source_pattern){path, scanner->file, scanner->line};
    scanner->at = close + 1;
    return 0;
}

/* Replaces an @include by the text of the file. */
static int
scan_include(struct scanner *scanner)
{
    const char *name, *close;
    struct source *source = scanner->source;
    int rc = scan_directive(scanner, "@include", &name, &close);
    if (rc < 0)
        return rc;
    if (scanner->depth >= SOURCE_MAX_INCLUDES)
        return scan_fail(scanner, "includes must not be nested more than %d levels deep", SOURCE_MAX_INCLUDES);

    char *path = scan_resolve(source->files[scanner->file], name, (size_t)(close - name));
    if (!path)
        return source_out_of_memory(scanner->error);
    source->lines[source->line_count - 1] = (struct source_line){.file = (unsigned)source->file_count, .line = 1};
    rc = scan_file(scanner, path);
    free(path);
    if (rc == 0)
        rc = scan_append(scanner, "\n", 1);
    if (rc == 0)
        rc = scan_append_line(scanner);
    scanner->at = close + 1;
    return rc;
}

/* Starts a new layer at the end of the text. The caller must end it with a newline, because libconfig
 * needs one after a comment. */
static int
scan_add_layer(struct scanner *scanner)
{
    struct source *source = scanner->source;
    struct source_layer *layers = realloc(source->layers, (source->layer_count + 1) * sizeof(*layers));
    if (!layers)
        return source_out_of_memory(scanner->error);
    source->layers = layers;
    source->size += source->layer_count > 0; /* the NUL */
    layers[source->layer_count++] = (struct source_layer){source->size, (unsigned)source->line_count};
    source->depth = source->settings[0] = 0;
    return scan_append_line(scanner);
}

static int
scan_overlay_file(struct scanner *scanner, const char *path)
{
    int rc = scan_add_layer(scanner);
    if (rc < 0)
        return rc;
    scanner->source->lines[scanner->source->line_count - 1] =
        (struct source_line){.file = (unsigned)scanner->source->file_count, .line = 1};
    rc = scan_file(scanner, path);
    return rc == 0 ? scan_append(scanner, "\n", 1) : rc;
}

/* Reads the files of a pattern in the order of their names. A name without wildcards must exist. */
static int
scan_overlays_of(struct scanner *scanner, const struct source_pattern *pattern)
{
    glob_t found = {0};
    scanner->file = pattern->file;
    scanner->line = pattern->line;
    if (!strpbrk(pattern->path, "*?["))
        return scan_overlay_file(scanner, pattern->path);
    int status = glob(pattern->path, GLOB_ERR, NULL, &found);
    if (status == GLOB_ABORTED && errno == ENOENT) /* there is no such folder */
        status = GLOB_NOMATCH;
    int rc = status == GLOB_NOSPACE ? source_out_of_memory(scanner->error)
             : status && status != GLOB_NOMATCH
                 ? scan_fail(scanner, "cannot search %s: %s", pattern->path, strerror(errno))
                 : 0;
    for (size_t i = 0; rc == 0 && !status && i < found.gl_pathc; i++)
        rc = scan_overlay_file(scanner, found.gl_pathv[i]);
    globfree(&found);
    return rc;
}

static int
source_expand(struct source *source, const char *name, const char *text, size_t size, struct error *error)
{
    struct scanner scanner = {.source = source, .at = text, .end = text + size, .line = 1, .error = error};
    if (source_add_file(source, name, &scanner.file) < 0)
        return source_out_of_memory(error);
    int rc = scan_add_layer(&scanner);
    if (rc == 0)
        rc = scan(&scanner);
    if (rc == 0)
        rc = scan_append(&scanner, "\n", 1);
    for (size_t i = 0; rc == 0 && i < source->pattern_count; i++)
        rc = scan_overlays_of(&scanner, &source->patterns[i]);
    return rc;
}

int
source_out_of_memory(struct error *error)
{
    return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "out of memory");
}

int
source_read_text(struct source *source, const char *name, const char *text, struct error *error)
{
    *source = (struct source){0};
    return source_expand(source, name, text, strlen(text), error);
}

int
source_read_file(struct source *source, const char *path, struct error *error)
{
    *source = (struct source){0};
    char *bytes = NULL;
    size_t size = 0;
    int rc = source_read_whole(path, &bytes, &size);
    if (rc == -ENOMEM)
        return source_out_of_memory(error);
    if (rc < 0)
        return error_set(error, rc, CODE_NONE, "%s: %s", path, source_reason(rc));
    rc = source_expand(source, path, bytes, size, error);
    free(bytes);
    return rc;
}

char *
source_list_files(const struct source *source)
{
    size_t size = 1;
    for (size_t i = 0; i < source->file_count; i++)
        size += strlen(source->files[i]) + 1;
    char *list = malloc(size), *at = list;
    if (!list)
        return NULL;
    *at = '\0';
    for (size_t i = 0; i < source->file_count; i++) {
        bool repeated = false;
        for (size_t k = 0; k < i; k++)
            repeated |= strcmp(source->files[k], source->files[i]) == 0;
        if (!repeated)
            at = stpcpy(stpcpy(at, i ? "\n" : ""), source->files[i]);
    }
    return list;
}

char *
source_list_folders(const struct source *source)
{
    size_t size = 1;
    for (size_t i = 0; i < source->pattern_count; i++)
        size += strlen(source->patterns[i].path) + 1;
    char *list = malloc(size), *at = list;
    if (!list)
        return NULL;
    *at = '\0';
    for (size_t i = 0; i < source->pattern_count; i++) {
        const char *path = source->patterns[i].path, *slash = strrchr(path, '/');
        if (slash)
            at += sprintf(at, "%s%.*s", at > list ? "\n" : "", (int)(slash - path), path);
    }
    return list;
}

void
source_release(struct source *source)
{
    for (size_t i = 0; i < source->file_count; i++)
        free(source->files[i]);
    for (size_t i = 0; i < source->pattern_count; i++)
        free(source->patterns[i].path);
    free(source->patterns);
    free(source->files);
    free(source->layers);
    free(source->lines);
    free(source->text);
    *source = (struct source){0};
}

static const struct source_line *
source_origin(const struct source *source, unsigned line)
{
    size_t last = source->line_count - 1;
    size_t at = line == 0 ? 0 : line - 1;
    return &source->lines[at < last ? at : last];
}

char *
source_resolve(const struct source *source, unsigned line, const char *name)
{
    return scan_resolve(source->files[source_origin(source, line)->file], name, strlen(name));
}

void
source_place(const struct source *source, unsigned line, char *place, size_t size)
{
    const struct source_line *origin = source_origin(source, line);
    snprintf(place, size, "%s:%u", source->files[origin->file], origin->line);
}
