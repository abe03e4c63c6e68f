/* input_collect.h - expands a list of files and folders to a list of files. */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_COLLECT_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_COLLECT_H

#include <stdbool.h>
#include <stddef.h>

struct collection {
    char **paths; /* absolute; in the order of the inputs, by name within a folder */
    size_t count;
    size_t capacity;
    bool flat; /* do not descend into subfolders */
};

/* Adds a file, or every regular file below a folder. Follows symbolic links and adds dangling ones.
 * Skips names and folders that begin with a dot, and names that end in .part or .tmp. Returns 0, or
 * -errno with the unreadable path in *where. The caller must free *where. */
int input_collect(struct collection *collection, const char *input, char **where);
/* Adds a path unchanged. Returns 0 or -ENOMEM. */
int input_collect_add(struct collection *collection, const char *path);
/* Sorts by path. input_collect_has needs a sorted collection. */
void input_collect_sort(struct collection *collection);
bool input_collect_has(const struct collection *collection, const char *path);
void input_collect_free(struct collection *collection);

#endif
