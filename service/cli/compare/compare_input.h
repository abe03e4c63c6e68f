/* compare_input.h - the files of `noctule compare` and `noctule validate`: images of series, and annotation objects. */
#ifndef NOCTULE_SERVICE_CLI_COMPARE_COMPARE_INPUT_H
#define NOCTULE_SERVICE_CLI_COMPARE_COMPARE_INPUT_H

#include "service/cli/compare/compare_case.h"
#include "service/cli/input/input.h"

struct compare_input {
    struct collection files;
    size_t reference; /* the first file of the reference; those before it are of the other side */
    size_t images;    /* the first file that cannot be an annotation object */
    struct headers headers;
    struct input_skipped skipped;
    struct compare_object *objects; /* RTSTRUCT and SEG files before `images` */
    size_t object_count;
    size_t failed; /* files that cannot be read; each was printed */
};

/* Reads the headers of all files, and sorts those that are no images. Returns 0, or -errno after an error message. */
int compare_input_read(struct compare_input *input, int threads);
void compare_input_free(struct compare_input *input);

/* Prints an error of a file or a case. */
void compare_complain(const char *what, const struct error *error);

#endif
