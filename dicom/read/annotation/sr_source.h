/*
 * sr_source.h - reads a structured report of another program (Enhanced, Comprehensive,
 * Comprehensive 3D): the points and outlines of its findings, on images or in space.
 *
 * An item is a container of the content tree that has coordinates below it or below its
 * measurements: a Measurement Group of TID 1500, or any other container of TID 300. Its Tracking
 * Identifier and Finding identify it.
 *
 * The file is read through the bounded walk (scan_header.h), and DCMTK's dcmsr parses the elements
 * kept. Limits are those of every file. A set of coordinates has at most LIMIT_INHERITED_BYTES.
 * Several threads may use an open report at once.
 */
#ifndef NOCTULE_DICOM_READ_ANNOTATION_SR_SOURCE_H
#define NOCTULE_DICOM_READ_ANNOTATION_SR_SOURCE_H

#include "dicom/dicom.h"
#include "dicom/read/annotation/seg_source.h"

#ifdef __cplusplus
extern "C" {
#endif

enum sr_source_form {
    SR_SOURCE_POINTS,
    SR_SOURCE_OUTLINE, /* closed; the last point may repeat the first */
    SR_SOURCE_ELLIPSE, /* a circle or an ellipse on an image */
    SR_SOURCE_OTHER,   /* ellipsoids, open lines, and circles and ellipses in space or without their points */
};

/* An image that coordinates are selected from. */
struct sr_source_image {
    char uid[DICOM_UID_SIZE];
    int32_t frame_count; /* frames that are listed; 0: none, which means all of the image (PS3.3 C.18.4) */
    int32_t *frames;     /* from 1 */
};

/* Coordinates: a SCOORD or SCOORD3D content item. */
struct sr_source_figure {
    enum sr_source_form form;
    const char *type;                            /* Graphic Type: "POLYLINE" */
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* of points in space */
    int32_t image_count;                         /* 0 for points in space */
    struct sr_source_image *images;              /* the coordinates are the same on each of them (PS3.3 C.18.6) */
    int64_t count;
    /* in space: x, y, z in mm, LPS. On an image: column, row and 0; the corner of the first
     * pixel is 0, 0. CIRCLE: its centre and a point on it. ELLIPSE: the ends of its long axis, then of its short one. */
    double *points;
};

struct sr_source_item {
    int32_t number;              /* from 1, in the order of the report */
    char name[DICOM_LO_SIZE];    /* Tracking Identifier, or else the Finding; UTF-8 */
    char finding[DICOM_LO_SIZE]; /* its meaning; "" if absent */
    /* Tracking Identifier and Tracking Unique Identifier; both "" if either is absent. */
    char tracking_id[SEG_SOURCE_TRACKING_SIZE], tracking_uid[DICOM_UID_SIZE];
    int32_t figure_count;
    struct sr_source_figure *figures;
};

struct sr_source {
    char class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE]; /* of the report itself */
    bool own;                        /* written by Noctule */
    int32_t series_count, item_count;
    char (*series)[DICOM_UID_SIZE]; /* in its evidence */
    struct sr_source_item *items;
};

/* Codes: those of every file (dicom_peek); SOP_CLASS_UNSUPPORTED for other classes, TAG_MISSING,
 * UID_INVALID; TAG_INVALID for content that cannot be read, for coordinates that are not
 * numbers within 1e6, or for frame numbers that are not positive numbers. */
int sr_source_open(const char *path, struct sr_source **source, struct error *error);
void sr_source_close(struct sr_source *source);

#ifdef __cplusplus
}
#endif
#endif
