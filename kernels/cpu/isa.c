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
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if ((!name || strcmp(name, tables[i]->name) == 0) && tables[i]->runs_here())
            return tables[i];
    return NULL;
}
