/*
 * sr.h - measurements as a DICOM Structured Report of TID 1500 (PS3.16), one measurement group of
 * TID 1411 for each segment of a SEG object.
 *
 * Comprehensive enough for segment references: Enhanced SR Storage. Streamed through DCMTK's dcmsr
 * behind this header; the bytes are written by our own checked sink. Any thread.
 */
#ifndef NOCTULE_SR_H
#define NOCTULE_SR_H

#include "seg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SR_SOP_CLASS "1.2.840.10008.5.1.4.1.1.88.22"

/* One number, or the reason why there is none (a qualifier of CID 42 and a comment). */
struct sr_measurement {
    struct seg_code concept; /* IBSI code, or ours (99NOCTULE) where IBSI has none */
    struct seg_code unit;    /* UCUM */
    double value;
    const char *absence; /* "" or NULL: there is a value; else the reason in words */
    /* Modifiers: aggregation, discretisation; at most 4; and numbers it was derived with. */
    struct seg_code modifiers[4][2]; /* concept name, concept value */
    size_t modifier_count;

    struct sr_parameter {
        struct seg_code concept, unit;
        double value;
    } parameters[4];

    size_t parameter_count;
};

struct sr_group {
    int32_t segment; /* index into the SEG request's segments, from 0 */
    const struct sr_measurement *measurements;
    size_t measurement_count;
};

struct sr_request {
    const struct seg_request *seg;           /* what the SEG was written from */
    const struct seg_identity *seg_identity; /* of the SEG object that is referred to */
    const struct sr_group *groups;
    size_t group_count;
    const char *series_description;
    int32_t series_number;
};

/*
 * Writes the report to fd; UIDs are derived from the SEG's identity, so that the same measurements
 * of the same SEG have the same UIDs. summary as of seg_write (frames is 0).
 */
int sr_write(const struct sr_request *request, int fd, struct seg_summary *summary,
             struct dicom_fault *fault);
/* Reads it back independently and compares every value; SR_MISMATCH. */
int sr_verify(const struct sr_request *request, const char *path, struct dicom_fault *fault);

#ifdef __cplusplus
}
#endif
#endif
