/*
 * rtstruct.h - reads an RT Structure Set: its regions and their contours.
 *
 * Opening reads the file through the bounded walk (scan_header.h) and lists the regions. Their
 * contours stay encoded. They are parsed per region, on request. Limits: ROIS, ROI_ELEMENTS,
 * CONTOURS_MIB and ROI_POINTS of limits.def, and those of every file. Several threads may read from
 * a set at once.
 */
#ifndef NOCTULE_DICOM_READ_ANNOTATION_RTSTRUCT_H
#define NOCTULE_DICOM_READ_ANNOTATION_RTSTRUCT_H

#include "base/contour.h"
#include "dicom/dicom.h"
#include "dicom/read/annotation/provenance.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RTSTRUCT_CLASS_UID "1.2.840.10008.5.1.4.1.1.481.3"

struct rtstruct_roi {
    int32_t number;
    char name[DICOM_LO_SIZE];                    /* UTF-8, "?" for characters outside the file's set */
    char type[DICOM_CS_SIZE];                    /* RT ROI Interpreted Type: "GTV", "ORGAN"; "" if absent */
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* "" if absent */
    bool has_color;                              /* ROI Display Color */
    uint8_t color[3];
    int64_t contours; /* of any kind; 0 without contours */
    const struct provenance *provenance;
};

/* A referenced series. */
struct rtstruct_series {
    char frame_of_reference_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
};

struct rtstruct_items; /* encoded contours */

struct rtstruct {
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE]; /* of the set itself */
    char label[DICOM_LO_SIZE];       /* Structure Set Label, in the form of a name */
    int32_t roi_count, series_count;
    struct rtstruct_roi *rois; /* in the order of the file */
    struct rtstruct_series *series;
    struct rtstruct_items *items;
};

/* Codes: those of every file (dicom_peek); SOP_CLASS_UNSUPPORTED for other classes, TAG_MISSING,
 * UID_INVALID, and TAG_INVALID for contradictions: two regions, or two sets of contours, of one
 * number. */
int rtstruct_open(const char *path, struct rtstruct **set, struct error *error);
/* Opens the file `fd`, which the caller keeps. `path` is for messages. */
int rtstruct_open_file(int fd, const char *path, struct rtstruct **set, struct error *error);
void rtstruct_close(struct rtstruct *set);

struct rtstruct_contours {
    int64_t count;
    struct contour *contours;       /* closed planar contours, in the order of the file */
    char (*images)[DICOM_UID_SIZE]; /* SOP Instance UID of each contour's image; "" if absent */
    int64_t left_out;               /* points and open lines */
    double *points;                 /* of all contours */
};

/*
 * Reads the contours of rois[roi]. Codes: TAG_MISSING; TAG_INVALID if the data are not points, if a
 * point is more than 1e6 mm from the origin, or if Number of Contour Points differs; UID_INVALID;
 * SIZE_IMPLAUSIBLE beyond LIMIT_ROI_POINTS; OUT_OF_MEMORY. The caller must release them with
 * rtstruct_contours_free.
 */
int rtstruct_contours_read(const struct rtstruct *set, int32_t roi, struct rtstruct_contours *contours,
                           struct error *error);
void rtstruct_contours_free(struct rtstruct_contours *contours);

#ifdef __cplusplus
}
#endif
#endif
