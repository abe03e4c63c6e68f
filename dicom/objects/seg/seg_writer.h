/*
 * seg_writer.h - state of the segmentation writer; private to seg*.c.
 */
#ifndef NOCTULE_DICOM_OBJECTS_SEG_SEG_WRITER_H
#define NOCTULE_DICOM_OBJECTS_SEG_SEG_WRITER_H

#include "dicom/objects/seg/seg_plan.h"
#include "dicom/write/stack_writer.h"

struct seg_writer {
    const struct seg_request *request;
    struct stack_writer out;
    struct seg_plan plan;
};

/* Returns the bytes of Pixel Data, an even number, for less than 2^31 frames. */
uint64_t seg_pixel_data_length(const struct seg_writer *w);

/* Put the parts of the object that no other kind has, in tag order. Each returns 0, -ENOMEM, or
 * -EFBIG if a sequence exceeds its length field. The sink keeps write errors, the buffers keep
 * encoding errors. */
int seg_put_segments(struct seg_writer *w);
int seg_put_functional_groups(struct seg_writer *w);
void seg_put_pixel_data(struct seg_writer *w);

#endif
