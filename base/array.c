/* array.c - see array.h. */
#include "base/array.h"

#include <stdlib.h>

#define FIRST_ROOM 16

void *
array_grow(void *array, size_t *room, size_t needed, size_t size)
{
    size_t larger = *room ? *room : FIRST_ROOM;
    if (needed <= *room)
        return array;
    while (larger < needed)
        larger *= 2;
    void *grown = reallocarray(array, larger, size);
    if (grown)
        *room = larger;
    return grown;
}
