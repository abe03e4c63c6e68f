/* isa.c - see isa.h. */
#include "kernels/cpu/isa_private.h"

#include <stddef.h>
#include <string.h>

/* Best first. */
static const struct isa *const tables[] = {
#ifdef __x86_64__
    &isa_avx512,
    &isa_avx2,
#endif
    &isa_scalar,
};

const struct isa *
isa_find(const char *name)
{
    static const struct isa *best; /* found once, because CPUID takes microseconds in a virtual machine; atomic */
    const struct isa *found = name ? NULL : __atomic_load_n(&best, __ATOMIC_RELAXED);

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !found; i++)
        if ((!name || strcmp(name, tables[i]->name) == 0) && (!tables[i]->runs_here || tables[i]->runs_here()))
            found = tables[i];
    if (!name)
        __atomic_store_n(&best, found, __ATOMIC_RELAXED);
    return found;
}
