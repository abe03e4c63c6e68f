/*
 * rtstruct.h - an RT Structure Set: regions that people drew, by name, and their contours.
 *
 * Opening reads the file through the bounded walk (scan.h) and tells what regions there are; their
 * contours stay as they are encoded and are parsed region by region, when they are asked for.
 * Limits: ROIS, ROI_ELEMENTS, CONTOURS_MIB and ROI_POINTS of limits.def, and those of every file.
 * A set may be asked from several threads at once.
 */
#ifndef NOCTULE_RTSTRUCT_H
#define NOCTULE_RTSTRUCT_H

#include "base/contour.h"
#include "dicom/dicom.h"
#include "dicom/read/provenance.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RTSTRUCT_CLASS_UID "1.2.840.10008.5.1.4.1.1.481.3"

struct rtstruct_roi {
    int32_t number;
    char name[DICOM_LO_SIZE]; /* UTF-8, "?" for what is no character of the file's set */
    char type[DICOM_CS_SIZE]; /* RT ROI Interpreted Type: "GTV", "ORGAN"; "" when it is not told */
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* "" when it is not told */
    bool has_color;                              /* ROI Display Color */
    uint8_t color[3];
    int64_t contours; /* of whatever kind; 0: nothing is drawn */
    const struct provenance *provenance;
};

/* A series that was drawn on. */
struct rtstruct_series {
    char frame_of_reference_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
};

struct rtstruct_items; /* the contours as they are in the file */

struct rtstruct {
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE]; /* its own */
    char label[DICOM_LO_SIZE];       /* Structure Set Label, as a name */
    int32_t roi_count, series_count;
    struct rtstruct_roi *rois; /* in the order of the file */
    struct rtstruct_series *series;
    struct rtstruct_items *items;
};

/*
 * Codes: those of every file (dicom_peek); SOP_CLASS_UNSUPPORTED for what is no RT Structure Set,
 * TAG_MISSING, UID_INVALID, and TAG_INVALID for what contradicts itself: two regions or two sets of
 * contours of one number.
 */
int rtstruct_open(const char *path, struct rtstruct **set, struct error *error);
/* The same of the open file `fd`, which stays the caller's; `path` is for people. */
int rtstruct_open_file(int fd, const char *path, struct rtstruct **set, struct error *error);
void rtstruct_close(struct rtstruct *set);

struct rtstruct_contours {
    int64_t count;
    struct contour *contours; /* closed planar ones, in the order of the file */
    char (*images)
        [DICOM_UID_SIZE]; /* SOP Instance UID of the image that each is of; "" when it is not told */
    int64_t left_out;     /* points and open lines */
    double *points;       /* of all of them */
};

/*
 * Of rois[roi]. Codes: TAG_MISSING, TAG_INVALID for what are no points, or are within 1e6 mm of the
 * origin not all, or others than Number of Contour Points says; UID_INVALID; SIZE_IMPLAUSIBLE beyond
 * LIMIT_ROI_POINTS; OUT_OF_MEMORY. Release with rtstruct_contours_free.
 */
int rtstruct_contours_read(const struct rtstruct *set, int32_t roi,
                           struct rtstruct_contours *contours, struct error *error);
void rtstruct_contours_free(struct rtstruct_contours *contours);

#ifdef __cplusplus
}
#endif
#endif
