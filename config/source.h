/*
 * source.h - a configuration file's text, includes expanded; private to config/.
 *
 * libconfig 1.5 ends the process when an include cannot be read (a folder, an I/O error), has no
 * absolute includes, counts lines in 16 bits, cuts integers that do not fit, accepts a comment
 * that is never closed, and compares each setting's name with all of its group. So the text is read
 * and expanded here, those things and what is beyond LIMIT_CONFIG_... are errors with file and line,
 * and libconfig parses a string.
 */
#ifndef NOCTULE_SOURCE_H
#define NOCTULE_SOURCE_H

#include "base/error.h"
#include "base/limits.h"

#include <stddef.h>

#define SOURCE_MAX_INCLUDES 10 /* within each other */

struct source_line {
    unsigned file; /* in files */
    unsigned line; /* from 1 */
};

/* One of the texts that are read one over the other (@overlay); the first is the file itself. */
struct source_layer {
    size_t at;      /* in the text */
    unsigned lines; /* of the expanded text before it */
};

struct source {
    char *text; /* the layers, each with a NUL behind it and none within */
    size_t size, capacity;
    char **files;
    size_t file_count;
    struct source_line *lines; /* where each line of the text comes from */
    size_t line_count, line_capacity;
    struct source_layer *layers;
    size_t layer_count;
    struct source_pattern *patterns; /* of overlays, in their order */
    size_t pattern_count;
    int depth;                            /* open groups and lists */
    int settings[LIMIT_CONFIG_DEPTH + 1]; /* so far, of each of them */
};

/*
 * 0, or a negative errno and an error ("FILE:LINE: what is wrong", or "FILE: why it cannot be
 * read"). Release the source either way. source_read_text calls its text `name` in errors.
 */
int source_read_file(struct source *source, const char *path, struct error *error);
int source_read_text(struct source *source, const char *name, const char *text,
                     struct error *error);
int source_out_of_memory(struct error *error);
/* Lists the files that were read, each once, one per line; malloc'd, NULL: no memory. */
char *source_list_files(const struct source *source);
void source_release(struct source *source);

/* The file of this name that an @include on this line of the expanded text would take, there or not;
 * malloc'd, NULL: no memory. */
char *source_resolve(const struct source *source, unsigned line, const char *name);

/* Writes "FILE:LINE" of a line of the expanded text (from 1; one beyond its end is the last). */
void source_place(const struct source *source, unsigned line, char *place, size_t size);

#endif
