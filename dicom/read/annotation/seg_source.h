/*
 * seg_source.h - reads a Segmentation or Label Map Segmentation of another program: its segments,
 * the geometry of its frames, and their pixels.
 *
 * Opening reads the header through the bounded walk (scan_header.h). Pixels are read frame by
 * frame, on request, as those of images; a reader belongs to one thread. Limits are those of every
 * file, of its header and of its frames (limits.def). Pixels must be little endian. They may be
 * deflated and, unless they are bits, losslessly compressed. Other transfer syntaxes are rejected.
 */
#ifndef NOCTULE_DICOM_READ_ANNOTATION_SEG_SOURCE_H
#define NOCTULE_DICOM_READ_ANNOTATION_SEG_SOURCE_H

#include "dicom/dicom.h"
#include "dicom/read/annotation/provenance.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SEG_SOURCE_CLASS_UID      "1.2.840.10008.5.1.4.1.1.66.4"
#define SEG_SOURCE_LABELMAP_CLASS "1.2.840.10008.5.1.4.1.1.66.7"
#define SEG_SOURCE_TRACKING_SIZE  512

enum seg_source_type {
    SEG_SOURCE_BINARY,
    SEG_SOURCE_FRACTIONAL,
    SEG_SOURCE_LABELMAP,
};

struct seg_source_segment {
    int32_t number;
    char label[DICOM_LO_SIZE];                  /* UTF-8, "?" for characters outside the file's set */
    char tracking_id[SEG_SOURCE_TRACKING_SIZE]; /* both "" if either is absent */
    char tracking_uid[DICOM_UID_SIZE];
    const struct provenance *provenance;
    bool has_color;  /* Recommended Display CIELab Value */
    double color[3]; /* red, green and blue, 0..1 */
};

struct seg_source_frame {
    int32_t segment; /* index; -1 in a label map: all segments */
    bool has_geometry;
    double position[3];    /* mm, LPS, of the centre of pixel (0, 0) */
    double orientation[6]; /* along the column index, then along the row index */
    double spacing[2];     /* mm between columns, mm between rows */
    double between;        /* Spacing Between Slices, mm; 0 if unknown */
    double thickness;      /* Slice Thickness, mm; 0 if unknown */
    /* The first Source Image of its Derivation Image: "" if there is none. */
    char image_uid[DICOM_UID_SIZE];
    int32_t image_frame; /* Referenced Frame Number, from 1; 0: none, all frames of the image */
};

struct seg_source {
    struct dicom_instance *image; /* path and pixels, for dicom_pixels_open */
    char class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];             /* of the segmentation itself */
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* "" if absent */
    bool own;                                    /* written by Noctule */
    enum seg_source_type type;
    int32_t columns, rows;
    int32_t bits;    /* bits per pixel: 1, 8 or 16 */
    int32_t maximum; /* of a fractional object's pixels; 0 otherwise */
    int32_t series_count, segment_count, frame_count;
    char (*series)[DICOM_UID_SIZE];      /* referenced series */
    struct seg_source_segment *segments; /* in the order of the file */
    struct seg_source_frame *frames;
};

/*
 * Codes: those of every file (dicom_peek); SOP_CLASS_UNSUPPORTED for other classes,
 * TRANSFER_SYNTAX_UNSUPPORTED, PIXELS_UNSUPPORTED, TAG_MISSING, UID_INVALID; TAG_INVALID for
 * contradictions: two segments of one number, frames of a missing segment; EXPANSION_IMPLAUSIBLE
 * beyond LIMIT_SEG_EXPANSION.
 */
int seg_source_open(const char *path, struct seg_source **source, struct error *error);
void seg_source_close(struct seg_source *source);

/* Reads the pixels of a frame, rows * columns of them: 0 or 1, 0 .. maximum, or segment numbers.
 * `reader` must be a reader of source->image. Frames should be read in order
 * (dicom_pixels_in_order). Codes: those of dicom_pixels_read. */
int seg_source_read(const struct seg_source *source, struct dicom_pixels *reader, int32_t frame, uint16_t *pixels,
                    struct error *error);

#ifdef __cplusplus
}
#endif
#endif
