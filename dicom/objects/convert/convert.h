/*
 * convert.h - other forms of an object that Noctule wrote, for peers that do not accept its SOP class or its
 * transfer syntax.
 *
 * Pure C. Both functions read and write as a stream: pixels frame by frame, descriptions of frames item by item.
 * Memory besides one frame is about 1 KiB per image that the object refers to. Equal files give equal bytes. Each
 * function writes to `fd` (a regular file, open for writing, at offset 0), which the caller must sync and close.
 */
#ifndef NOCTULE_DICOM_OBJECTS_CONVERT_CONVERT_H
#define NOCTULE_DICOM_OBJECTS_CONVERT_CONVERT_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

struct converted {
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    int64_t frames; /* 0 if not an image */
    int64_t bytes;  /* size of the file */
};

/*
 * Computes the UID that an instance, or its series, has after convert_to_binary. Equal UIDs give equal UIDs.
 * Returns 0 or -ENOMEM.
 */
int convert_binary_uid(const char *labelmap_uid, char uid[DICOM_UID_SIZE]);

/*
 * Writes the LABELMAP segmentation at `path`, in any transfer syntax that Noctule writes, as a BINARY segmentation in
 * Explicit VR Little Endian. Its segments keep their numbers; the background is no segment. Instance, series and
 * dimensions get the UIDs of convert_binary_uid. A replaced LABELMAP becomes the BINARY object that it was converted to.
 * Codes: SOP_CLASS_UNSUPPORTED if it is not a LABELMAP; SEG_TOO_LARGE; those of dicom_pixels_read and of a header;
 * TAG_INVALID if it is not in the form that Noctule writes; WRITE_FAILED; OUT_OF_MEMORY.
 */
int convert_to_binary(const char *path, int fd, struct converted *made, struct error *error);

/*
 * Writes any image object at `path`, deflated or in RLE Lossless, in Explicit VR Little Endian, with the same UIDs. The
 * bytes are those that the object has without compression. A file in Explicit VR Little Endian is copied. Codes: as
 * above; TRANSFER_SYNTAX_UNSUPPORTED for other transfer syntaxes.
 */
int convert_to_uncompressed(const char *path, int fd, struct converted *made, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
