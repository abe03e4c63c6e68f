/*
 * seg_writer.h - what the parts of the segmentation writer share; private to seg*.c.
 */
#ifndef NOCTULE_SEG_WRITER_H
#define NOCTULE_SEG_WRITER_H

#include "byte_sink.h"
#include "dataset_writer.h"
#include "seg.h"
#include "seg_plan.h"

/* The longest value that a 32-bit length can say: even, and not the mark for "undefined". */
#define SEG_MAX_VALUE_LENGTH ((uint64_t)UINT32_MAX - 1)

struct seg_writer {
    const struct seg_request *request;
    struct seg_identity identity;
    char frame_of_reference_uid[DICOM_UID_SIZE];
    char date[VALUE_DA_SIZE];
    char time[VALUE_TM_SIZE];
    struct seg_plan plan;
    struct dataset_writer set;  /* elements on their way to the sink */
    struct element_buffer item; /* one item of a long sequence */
    uint8_t *referenced;        /* by instance: its item has been encoded in this pass */
    struct byte_sink sink;
};

/* Bytes of Pixel Data, even; for less than 2^31 frames. */
uint64_t seg_pixel_data_length(const struct seg_writer *w);

/* Hands a buffer's bytes to the sink and empties it. */
void seg_drain(struct seg_writer *w, struct element_buffer *buffer);

/*
 * The parts of the object, in the order of their tags. Each returns 0, -EFBIG when a sequence grows
 * beyond its length field, or -ENOMEM; write errors are latched in the sink, encoding errors in the
 * buffers.
 */
void seg_put_file_meta(struct seg_writer *w);
void seg_put_identification(struct seg_writer *w);
int seg_put_references(struct seg_writer *w);
void seg_put_patient_and_equipment(struct seg_writer *w);
void seg_put_relationship(struct seg_writer *w);
void seg_put_image(struct seg_writer *w);
int seg_put_segments(struct seg_writer *w);
void seg_put_content(struct seg_writer *w);
int seg_put_functional_groups(struct seg_writer *w);
void seg_put_pixel_data(struct seg_writer *w);

#endif
