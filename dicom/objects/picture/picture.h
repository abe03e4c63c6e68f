/*
 * picture.h - pictures of a result as Secondary Capture objects in true colour: the slices as one object of many frames
 * (PS3.3 A.8.5), or as an object each (A.8.1), and an overview as an object of its own; writes them as a stream and
 * reads them back.
 *
 * In an object of many frames each has its place in the patient. The overview has none, and frames must either all have
 * one or none: so it is another object. The caller draws the frames, also when they are read back, so memory does not
 * depend on their number.
 */
#ifndef NOCTULE_DICOM_OBJECTS_PICTURE_PICTURE_H
#define NOCTULE_DICOM_OBJECTS_PICTURE_PICTURE_H

#include "dicom/write/derived.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PICTURE_SOP_CLASS        "1.2.840.10008.5.1.4.1.1.7.4"
#define PICTURE_SINGLE_SOP_CLASS "1.2.840.10008.5.1.4.1.1.7"

/* Frames that are drawn at once. */
#define PICTURE_BATCH 8

/* Origin and place of a frame. */
struct picture_frame {
    const int32_t *planes; /* the planes of the source that it shows; borrowed until the next call */
    size_t plane_count;
    double position[3]; /* mm, centre of its first pixel, if it shows a slice */
};

/* Text is borrowed, UTF-8. */
struct picture_request {
    const struct derived_source *source;
    const char *drawing; /* version of the drawing, ASCII, at most 100 characters; part of the UIDs */
    int32_t columns, rows;
    int32_t slices;                 /* frames that show one slice each; the frame with this number is the overview */
    int32_t only;                   /* the frame that an object of one frame has; -1: all slices in one object */
    bool placed;                    /* the next members are known */
    double orientation[6];          /* of rows and columns */
    double spacing[2];              /* mm between rows, and between columns */
    double thickness;               /* mm */
    const char *comment;            /* Image Comments; ASCII, at most 1024 characters */
    bool burned_in;                 /* the source identifies the patient in its pixels */
    bool recognizable;              /* the patient may be recognized; false: not known */
    const char *series_description; /* "": "<pipeline>, pictures" */
    int32_t series_number;
    void *context;
    void (*describe)(void *context, int32_t frame, struct picture_frame *place);
    /* Draws `count` (at most PICTURE_BATCH) frames from `first` as RGB, one after another. Returns 0 or -ENOMEM. */
    int (*draw)(void *context, int32_t first, int32_t count, uint8_t *rgb);
};

/* Computes the identity. All pictures of a job are in one series. Returns 0, or -ENOMEM with empty strings. */
int picture_identify(const struct picture_request *request, struct derived_identity *identity);

/*
 * Writes the object to `fd` (a regular file, open for reading and writing, at offset 0). The caller must sync, close
 * and rename it. Inherited attributes are as in seg_write. Codes: those of dicom_inherit; WRITE_FAILED (with errno);
 * PICTURE_TOO_LARGE (-EOVERFLOW: more than 2^32 - 2 bytes of pixel data, PS3.5 7.1); OUT_OF_MEMORY;
 * PICTURE_REQUEST_INVALID, a defect of the caller.
 */
int picture_write(const struct picture_request *request, int fd, struct derived_summary *summary, struct error *error);

/*
 * Reads the object at `path` with DCMTK, independently of the writer, draws all frames again and compares every pixel,
 * reference and position. Codes: PICTURE_MISMATCH (-EBADMSG) with the first difference, or with the reason why the file
 * cannot be read; OUT_OF_MEMORY.
 */
int picture_verify(const struct picture_request *request, const char *path, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
