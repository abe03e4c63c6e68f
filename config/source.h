/*
 * source.h - reads the text of a configuration file and expands its includes; private to config/.
 *
 * libconfig 1.5 is not used for this. It ends the process if an include is a folder or cannot be read. It has no
 * absolute includes, counts lines in 16 bits, truncates integers that do not fit, and accepts a comment without an end.
 * It compares each setting's name with all names of its group. So this code reads and expands the text, and libconfig
 * only parses a string. These faults and texts beyond the limits LIMIT_CONFIG_... are errors with file and line.
 */
#ifndef NOCTULE_CONFIG_SOURCE_H
#define NOCTULE_CONFIG_SOURCE_H

#include "base/error.h"
#include "base/limits.h"

#include <stddef.h>

#define SOURCE_MAX_INCLUDES 10 /* nesting depth */

struct source_line {
    unsigned file; /* index in files */
    unsigned line; /* from 1 */
};

/* The text of one file of @overlay with its includes; the first layer is the file itself. */
struct source_layer {
    size_t at;      /* offset in the text */
    unsigned lines; /* lines of the expanded text before this layer */
};

struct source {
    char *text; /* the layers, each followed by a NUL; layers contain no NUL */
    size_t size, room;
    char **files;
    size_t file_count;
    struct source_line *lines; /* the origin of each line of the text */
    size_t line_count, line_room;
    struct source_layer *layers;
    size_t layer_count;
    struct source_pattern *patterns; /* of @overlay, in file order */
    size_t pattern_count;
    int depth;                            /* open groups and lists */
    int settings[LIMIT_CONFIG_DEPTH + 1]; /* their settings so far, per depth */
};

/*
 * Return 0, or -errno with the error "FILE:LINE: message" or "FILE: reason". The caller must
 * release the source in any case. Errors of source_read_text use `name` as the file name.
 */
int source_read_file(struct source *source, const char *path, struct error *error);
int source_read_text(struct source *source, const char *name, const char *text, struct error *error);
/* Sets the error and returns -ENOMEM. */
int source_out_of_memory(struct error *error);
/* Returns the files that were read, each once, one per line; NULL if there is no memory. The caller
 * must free the list. */
char *source_list_files(const struct source *source);
/* Lists the folders of @overlay patterns, one per line; malloc'd, NULL: no memory. */
char *source_list_folders(const struct source *source);
void source_release(struct source *source);

/* Returns the path that an @include of `name` on this line of the expanded text would read, also if
 * there is no such file; NULL if there is no memory. The caller must free the path. */
char *source_resolve(const struct source *source, unsigned line, const char *name);

/* Writes the "FILE:LINE" of a line of the expanded text, from 1. Lines beyond the end count as the
 * last line. */
void source_place(const struct source *source, unsigned line, char *place, size_t size);

#endif
