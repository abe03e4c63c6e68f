/*
 * pmap_writer.h - what the parts of the parametric map writer share; private to pmap*.c.
 */
#ifndef NOCTULE_PMAP_WRITER_H
#define NOCTULE_PMAP_WRITER_H

#include "dicom/objects/pmap/pmap.h"
#include "dicom/write/stack_writer.h"

/* Of the object and of every frame (PS3.3 C.8.32.2, C.8.16.1). */
#define PMAP_IMAGE_TYPE "DERIVED\\PRIMARY\\VOLUME\\NONE"

struct pmap_writer {
    const struct pmap_request *request;
    struct stack_writer out;
    char label[PMAP_KIND_SIZE];
    char description[512]; /* where the request has none */
};

/* What only maps have, in the order of the tags; errors are those of stack_writer.h. */
void pmap_put_image(struct pmap_writer *w);
int pmap_put_functional_groups(struct pmap_writer *w);

#endif
