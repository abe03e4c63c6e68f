/*
 * nearest.h - which of some names a word that is none of them seems to mean.
 */
#ifndef NOCTULE_NEAREST_H
#define NOCTULE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word;
    const char *name; /* the first of the nearest so far, as it was given; NULL: none is near */
    size_t distance;
};

/* Begins with a word; then each name is tried. The word and the names are borrowed. */
struct nearest nearest_of(const char *word);
void nearest_try(struct nearest *nearest, const char *name);

#endif
