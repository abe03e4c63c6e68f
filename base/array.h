/* array.h - growth of arrays, and memory for large ones. */
#ifndef NOCTULE_BASE_ARRAY_H
#define NOCTULE_BASE_ARRAY_H

#include <stddef.h>

/*
 * Reallocates `array` (malloc'd or NULL, with space for *room elements) for at least `needed` elements of `size` bytes.
 * Returns the array and sets *room, or returns NULL without memory; the old array then stays valid.
 */
void *array_grow(void *array, size_t *room, size_t needed, size_t size);

/*
 * Returns malloc'd memory, which begins at a huge page and uses such pages if it is large: new pages take most of the time of
 * the first pass over memory. NULL: no memory.
 */
void *array_take_pages(size_t bytes);

#endif
