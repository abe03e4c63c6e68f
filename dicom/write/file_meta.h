/*
 * file_meta.h - head of a Part 10 file (PS3.10 7.1): preamble, prefix and file meta information,
 * with Noctule as the implementation; private to dicom/.
 */
#ifndef NOCTULE_DICOM_WRITE_FILE_META_H
#define NOCTULE_DICOM_WRITE_FILE_META_H

#include "dicom/write/element_writer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct file_meta {
    const char *sop_class_uid;
    const char *sop_instance_uid;
    const char *transfer_syntax_uid;
    const char *source_ae; /* NULL if the file was not received by the network */
};

/* Appends the head. The only error is the buffer's. */
void file_meta_append(struct element_buffer *to, const struct file_meta *meta);

#ifdef __cplusplus
}
#endif
#endif
