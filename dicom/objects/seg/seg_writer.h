/*
 * seg_writer.h - what the parts of the segmentation writer share; private to seg*.c.
 */
#ifndef NOCTULE_SEG_WRITER_H
#define NOCTULE_SEG_WRITER_H

#include "dicom/objects/seg/seg_plan.h"
#include "dicom/write/stack_writer.h"

struct seg_writer {
    const struct seg_request *request;
    struct stack_writer out;
    struct seg_plan plan;
};

/* Bytes of Pixel Data, even; for less than 2^31 frames. */
uint64_t seg_pixel_data_length(const struct seg_writer *w);

/*
 * The parts of the object that no other kind has, in the order of their tags. Each returns 0,
 * -EFBIG when a sequence grows beyond its length field, or -ENOMEM; write errors are latched in the
 * sink, encoding errors in the buffers.
 */
int seg_put_segments(struct seg_writer *w);
int seg_put_functional_groups(struct seg_writer *w);
void seg_put_pixel_data(struct seg_writer *w);

#endif
