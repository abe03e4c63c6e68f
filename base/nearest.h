/*
 * nearest.h - finds the name that a misspelt word most probably means.
 */
#ifndef NOCTULE_BASE_NEAREST_H
#define NOCTULE_BASE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word;
    const char *name; /* the nearest name so far, the first of equals; NULL: no name is near */
    size_t distance;
};

/* Call nearest_of with the word, then nearest_try for each name. Word and names are borrowed. */
struct nearest nearest_of(const char *word);
void nearest_try(struct nearest *nearest, const char *name);

#endif
