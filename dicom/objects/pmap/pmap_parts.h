/* pmap_parts.h - parts that parametric maps and captures of codes share; private to dicom/objects/pmap/. */
#ifndef NOCTULE_DICOM_OBJECTS_PMAP_PMAP_PARTS_H
#define NOCTULE_DICOM_OBJECTS_PMAP_PMAP_PARTS_H

#include "dicom/objects/pmap/pmap.h"
#include "dicom/write/stack_writer.h"

enum { PMAP_BITS = 16 }; /* of a code */

/* Checks the request and opens the writer: with a modality, a description, and UIDs of `identify`. Codes: those of
 * pmap_write(). */
int pmap_open(struct stack_writer *out, const struct pmap_request *request, int fd,
              int (*identify)(const struct pmap_request *request, struct derived_identity *identity),
              struct error *error);

/* Returns the bytes of all pixels. */
uint64_t pmap_pixel_length(const struct pmap_request *request);

/* Adds a Real World Value Mapping Sequence with the meaning of the map's values. */
void pmap_add_value_mapping(const struct dataset_writer *set, struct element_buffer *to,
                            const struct pmap_request *request);

/* Appends the codes of all planes as 16-bit values, with padding on the edges. The sink keeps errors. */
void pmap_put_codes(struct byte_sink *sink, const struct pmap_request *request);

#endif
