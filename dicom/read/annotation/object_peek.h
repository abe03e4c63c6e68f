/*
 * object_peek.h - reads the header of an annotation object (RT Structure Set, Segmentation or
 * structured report): its identity, and the images it refers to. Its content is not checked.
 *
 * Reads through the bounded walk (scan_header.h) and stops before the pixel data. Uses the most
 * specific references that the object has: series (PS3.3 C.8.8.5, C.7.6.16.2.12, C.17.6: Series
 * Instance UID), or else images (Referenced SOP Instance UID, also of contours and of frames), or
 * else frames of reference.
 */
#ifndef NOCTULE_DICOM_READ_ANNOTATION_OBJECT_PEEK_H
#define NOCTULE_DICOM_READ_ANNOTATION_OBJECT_PEEK_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

/* First word of a line of the references. A UID and a line break follow. */
#define OBJECT_OF_SERIES   "series "
#define OBJECT_OF_INSTANCE "instance "
#define OBJECT_OF_FRAME    "frame "
/* The object replaces another one, given by its SOP Instance UID. Comes in addition to the other
 * lines. */
#define OBJECT_OF_PREDECESSOR "predecessor "

#define OBJECT_REGIONS        8192

struct object_peek {
    const char *kind; /* "rtstruct", "seg", "sr" */
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE]; /* of the object itself */
    char transfer_syntax_uid[DICOM_UID_SIZE];
    char modality[DICOM_CS_SIZE];
    char description[DICOM_LO_SIZE]; /* of its series */
    /* Structure Set Label, or Content Label and the labels of the segments, as in the file. */
    char label[DICOM_LO_SIZE];
    /* Structure Set, Content or Instance Creation Date and Time. Texts sort in time order; "" if
     * absent. */
    char made[DICOM_DS_SIZE];
    /* Content Creator's Name, or else Operators' Name; UTF-8, "" if absent. */
    char person[DICOM_LO_SIZE];
    /* Segment Labels or ROI Names in UTF-8, a line each; cut at a whole line if they are long. */
    char regions[OBJECT_REGIONS];
    char *references; /* at least one line that is not of a predecessor; no duplicates */
    int64_t file_size;
};

/*
 * Reads the open file `fd`, which the caller keeps. `path` is for messages; `requestor` is as in
 * dicom_peek_open. Codes: those of every file (dicom_peek); SOP_CLASS_UNSUPPORTED for other
 * classes, TAG_MISSING if it refers to no image, UID_INVALID, SIZE_IMPLAUSIBLE beyond
 * LIMIT_OBJECT_REFERENCES; OWN_RESULT for an object that Noctule wrote, unless it names a person: then a copy was
 * corrected. The caller must free it with object_peek_free.
 */
int object_peek_open(int fd, const char *path, const struct dicom_requestor *requestor, struct object_peek **peek,
                     struct error *error);
void object_peek_free(struct object_peek *peek);

#ifdef __cplusplus
}
#endif
#endif
