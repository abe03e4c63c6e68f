/*
 * seg_source.h - a Segmentation or Label Map Segmentation of others: its segments by label, where
 * its frames lie, and their pixels.
 *
 * Opening reads the header through the bounded walk (scan.h); pixels are read frame by frame, when
 * they are asked for, as those of images are: a reader belongs to one thread. Limits are those of
 * every file, of its header and of its frames (limits.def). Pixels are little endian, and deflated or,
 * unless they are bits, compressed without loss where that may be; other transfer syntaxes are refused.
 */
#ifndef NOCTULE_SEG_SOURCE_H
#define NOCTULE_SEG_SOURCE_H

#include "dicom/dicom.h"
#include "dicom/read/provenance.h"

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
    char label[DICOM_LO_SIZE]; /* UTF-8, "?" for what is no character of the file's set */
    char tracking_id[SEG_SOURCE_TRACKING_SIZE]; /* both "" unless both are told */
    char tracking_uid[DICOM_UID_SIZE];
    const struct provenance *provenance;
    bool has_color;  /* Recommended Display CIELab Value */
    double color[3]; /* red, green and blue, 0..1 */
};

struct seg_source_frame {
    int32_t segment; /* index; of a label map -1: all of them */
    bool has_geometry;
    double position[3];    /* mm, LPS, of the centre of pixel (0, 0) */
    double orientation[6]; /* along the columns' index, then the rows' */
    double spacing[2];     /* mm between columns, mm between rows */
    double between;        /* Spacing Between Slices, mm; 0: unknown */
    double thickness;      /* Slice Thickness, mm; 0: unknown */
};

struct seg_source {
    struct dicom_instance *image; /* what dicom_pixels_open needs of it: its path and pixels */
    char class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];             /* its own */
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* "" when it is not told */
    bool own;                                    /* Noctule wrote it */
    enum seg_source_type type;
    int32_t columns, rows;
    int32_t bits;    /* of a pixel: 1, 8 or 16 */
    int32_t maximum; /* of a fractional one's pixels; else 0 */
    int32_t series_count, segment_count, frame_count;
    char (*series)[DICOM_UID_SIZE];      /* that it says it is of */
    struct seg_source_segment *segments; /* in the order of the file */
    struct seg_source_frame *frames;
};

/*
 * Codes: those of every file (dicom_peek); SOP_CLASS_UNSUPPORTED for what is no segmentation,
 * TRANSFER_SYNTAX_UNSUPPORTED, PIXELS_UNSUPPORTED, TAG_MISSING, UID_INVALID, and TAG_INVALID for
 * what contradicts itself: two segments of one number, frames of a segment that is not there;
 * EXPANSION_IMPLAUSIBLE beyond LIMIT_SEG_EXPANSION.
 */
int seg_source_open(const char *path, struct seg_source **source, struct error *error);
void seg_source_close(struct seg_source *source);

/*
 * The pixels of a frame, rows * columns of them: 0 or 1, 0 .. maximum, or segment numbers; `reader` is
 * one of source->image. Frames are best asked for in their order (dicom_pixels_in_order). Codes: those
 * of dicom_pixels_read.
 */
int seg_source_read(const struct seg_source *source, struct dicom_pixels *reader, int32_t frame,
                    uint16_t *pixels, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
