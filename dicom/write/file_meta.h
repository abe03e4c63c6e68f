/*
 * file_meta.h - what stands before the data set in a Part 10 file (PS3.10 7.1): preamble, prefix
 * and file meta information, with Noctule as the implementation; private to dicom/.
 */
#ifndef NOCTULE_DICOM_FILE_META_H
#define NOCTULE_DICOM_FILE_META_H

#include "dicom/write/element_writer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct file_meta {
    const char *sop_class_uid;
    const char *sop_instance_uid;
    const char *transfer_syntax_uid;
    const char *source_ae; /* NULL when the file did not come by the network */
};

/* Appends it all; the buffer's latched error is the only one. */
void file_meta_append(struct element_buffer *to, const struct file_meta *meta);

#ifdef __cplusplus
}
#endif
#endif
