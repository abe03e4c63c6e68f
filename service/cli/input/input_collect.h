/* input_collect.h - the files that a list of files and folders stands for. */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_COLLECT_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_COLLECT_H

#include <stdbool.h>
#include <stddef.h>

struct collection {
    char **paths; /* absolute; in the order of the inputs, and by name below a folder */
    size_t count;
    size_t capacity;
    bool flat; /* of a folder, only what lies in it itself */
};

/*
 * Adds `input`: a file itself; a folder every regular file below it, through symbolic links, also
 * those that point nowhere, but none whose name or folder begins with a dot or that ends in .part or .tmp. 0 or -errno with
 * *where (the caller frees it) naming what could not be read.
 */
int collect_input(struct collection *collection, const char *input, char **where);
/* Adds a path as it is: 0 or -ENOMEM. */
int collect_add(struct collection *collection, const char *path);
/* By path; and whether a collection in that order has one. */
void collect_sort(struct collection *collection);
bool collect_has(const struct collection *collection, const char *path);
void collect_free(struct collection *collection);

#endif
