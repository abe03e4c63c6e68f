#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define FIRST_ROOM 16
#define HUGE_PAGE  ((size_t)2 << 20)

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

void *
array_take_pages(size_t bytes)
{
    const size_t pages = bytes / HUGE_PAGE;
    void *memory =
        pages > 0 && pages < SIZE_MAX / HUGE_PAGE ? aligned_alloc(HUGE_PAGE, (pages + 1) * HUGE_PAGE) : malloc(bytes);
    if (memory && pages > 0)
        madvise(memory, pages * HUGE_PAGE, MADV_HUGEPAGE); /* optional: slower if it fails */
    return memory;
}
