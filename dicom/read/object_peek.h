/*
 * object_peek.h - what people drew on images, seen from outside: an RT Structure Set, a Segmentation
 * or a structured report, whose it is and which images it is of. Nothing of its content is judged.
 *
 * Reads through the bounded walk (scan.h) and stops before the pixel data. What it refers to is told
 * by the strongest there is: series (PS3.3 C.8.8.5, C.7.6.16.2.12, C.17.6: Series Instance UID), else
 * images (Referenced SOP Instance UID, also of contours and of frames), else frames of reference.
 */
#ifndef NOCTULE_OBJECT_PEEK_H
#define NOCTULE_OBJECT_PEEK_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a line of the references begins; a UID and a line break follow. */
#define OBJECT_OF_SERIES   "series "
#define OBJECT_OF_INSTANCE "instance "
#define OBJECT_OF_FRAME    "frame "
/* It takes the place of another object, by its SOP Instance UID: beside the others. */
#define OBJECT_OF_PREDECESSOR "predecessor "

struct object_peek {
    const char *kind; /* "rtstruct", "seg", "sr" */
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE]; /* its own */
    char transfer_syntax_uid[DICOM_UID_SIZE];
    char modality[DICOM_CS_SIZE];
    char description[DICOM_LO_SIZE]; /* of its series */
    /* Structure Set Label, or Content Label and the labels of the segments; as the file has it. */
    char label[DICOM_LO_SIZE];
    char made[DICOM_DS_SIZE]; /* Structure Set, Content or Instance Creation Date and Time, as texts
                                 in the order of time; "" when absent */
    char *references;         /* at least one line but for predecessors; each once */
    int64_t file_size;
};

/*
 * Of the open file `fd`, which stays the caller's; `path` is for people; `asker` as in
 * dicom_peek_open. Codes: those of every file (dicom_peek); SOP_CLASS_UNSUPPORTED for what is none of
 * these, TAG_MISSING for what refers to no image, UID_INVALID, SIZE_IMPLAUSIBLE beyond
 * LIMIT_OBJECT_REFERENCES, OWN_RESULT. Free with object_peek_free.
 */
int object_peek_open(int fd, const char *path, const struct dicom_asker *asker,
                     struct object_peek **peek, struct error *error);
void object_peek_free(struct object_peek *peek);

#ifdef __cplusplus
}
#endif
#endif
