/* pmap_identity.c - who a parametric map is: its UIDs, from what it was made of. */
#include "dicom/objects/pmap/pmap.h"

#include <stdio.h>

int
pmap_identify(const struct pmap_request *request, struct derived_identity *identity)
{
    char after[PMAP_KIND_SIZE + 1];
    snprintf(after, sizeof(after), " %s", request->kind);
    const struct derived_kind kind = {"Parametric Map ", after, false}; /* it has all frames */
    return derived_identify(request->source, &kind, identity);
}

void
pmap_label(const struct pmap_request *request, char label[PMAP_KIND_SIZE])
{
    snprintf(label, PMAP_KIND_SIZE, "%s", request->kind);
    for (char *c = label; *c; c++) {
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    }
}
