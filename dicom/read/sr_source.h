/*
 * sr_source.h - a structured report of others (Enhanced, Comprehensive, Comprehensive 3D): the points and
 * outlines that its findings have on images or in space.
 *
 * An item is a container of the content tree that has coordinates, below it or below its measurements:
 * a Measurement Group of TID 1500, or whatever TID 300 stands in. It is known by the Tracking
 * Identifier and the Finding that stand in it.
 *
 * The file is read through the bounded walk (scan.h), and what that keeps by DCMTK's dcmsr. Limits are those
 * of every file; a set of coordinates has LIMIT_INHERITED_BYTES at most. One that was opened may be asked
 * from several threads at once.
 */
#ifndef NOCTULE_SR_SOURCE_H
#define NOCTULE_SR_SOURCE_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

enum sr_source_form {
    SR_SOURCE_POINTS,
    SR_SOURCE_OUTLINE, /* closed; the last point may be the first once more */
    SR_SOURCE_OTHER,   /* circles, ellipses, ellipsoids, open lines */
};

/* Coordinates: a SCOORD or SCOORD3D content item. */
struct sr_source_figure {
    enum sr_source_form form;
    const char *type;                            /* Graphic Type: "POLYLINE" */
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* of points in space */
    char image_uid[DICOM_UID_SIZE]; /* "" there; of others the image that they are on */
    int32_t image_frame;            /* its frame, from 1 */
    int64_t count;
    double *points; /* of each x, y, z in mm, LPS; on an image column, row and 0, the corner of the
                     * first pixel being 0, 0 */
};

struct sr_source_item {
    int32_t number;              /* from 1, in the order of the report */
    char name[DICOM_LO_SIZE];    /* Tracking Identifier, or else the Finding; UTF-8 */
    char finding[DICOM_LO_SIZE]; /* its meaning; "" when there is none */
    int32_t figure_count;
    struct sr_source_figure *figures;
};

struct sr_source {
    char class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE]; /* its own */
    bool own;                        /* Noctule wrote it */
    int32_t series_count, item_count;
    char (*series)[DICOM_UID_SIZE]; /* that are its evidence */
    struct sr_source_item *items;
};

/*
 * Codes: those of every file (dicom_peek); SOP_CLASS_UNSUPPORTED for what is no such report, TAG_MISSING,
 * UID_INVALID, and TAG_INVALID for content that cannot be read, or for coordinates that are no numbers
 * within 1e6.
 */
int sr_source_open(const char *path, struct sr_source **source, struct error *error);
void sr_source_close(struct sr_source *source);

#ifdef __cplusplus
}
#endif
#endif
