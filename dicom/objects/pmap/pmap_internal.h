/*
 * pmap_internal.h - what the writer and the verifier of parametric maps have in common: names, not
 * encodings.
 */
#ifndef NOCTULE_PMAP_INTERNAL_H
#define NOCTULE_PMAP_INTERNAL_H

#include "dicom/objects/pmap/pmap.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PMAP_KIND_SIZE 17

/* As pmap_identify, but tells: 0 or -ENOMEM. */
int pmap_make_identity(const struct pmap_request *request, struct derived_identity *identity);

/* The kind in capitals. */
void pmap_label(const struct pmap_request *request, char label[PMAP_KIND_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
