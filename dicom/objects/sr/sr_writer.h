/*
 * sr_writer.h - what the parts of the report writer share; private to sr*.c.
 */
#ifndef NOCTULE_SR_WRITER_H
#define NOCTULE_SR_WRITER_H

#include "dicom/objects/sr/sr.h"
#include "dicom/write/dataset_writer.h"

/* The whole report is encoded into `set.elements`, whose latched error is the writer's. */
struct sr_writer {
    const struct sr_request *request;
    char device_uid[DICOM_UID_SIZE];
    int32_t *sources; /* instances of the stack, each once, by ascending plane */
    int32_t source_count;
    struct dataset_writer set;
};

/* The parts of the object, in the order of their tags; both latch errors in the buffer. */
void sr_put_modules(struct sr_writer *w);
void sr_put_content(struct sr_writer *w);

/* The source instance that is the i-th of the sources. */
const struct dicom_instance *sr_source(const struct sr_writer *w, int32_t i);

/* Is it a side of the body (CID 244)? What else modifies a type is named by a concept of ours. */
bool sr_is_laterality(const struct coded_concept *code);

#endif
