/* array.h - arrays that grow as they are filled. */
#ifndef NOCTULE_ARRAY_H
#define NOCTULE_ARRAY_H

#include <stddef.h>

/*
 * The array with room for `needed` elements of `size` bytes, at least 1, perhaps elsewhere than the
 * malloc'd `array` (NULL: none yet), which has some for *room. NULL: no memory, and all is as it was.
 */
void *array_grow(void *array, size_t *room, size_t needed, size_t size);

#endif
