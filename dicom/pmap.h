/*
 * pmap.h - maps as DICOM Parametric Map objects (PS3.3 A.75), 16-bit integer, one frame a slice.
 *
 * A streaming writer like seg.h's: constant memory, checked writes, deterministic UIDs. Any thread.
 */
#ifndef NOCTULE_PMAP_H
#define NOCTULE_PMAP_H

#include "seg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PMAP_SOP_CLASS "1.2.840.10008.5.1.4.1.1.30"

/* A pattern map of paper 004: a code of 8 bits for each voxel that is not on its slice's edge. */
struct pmap_request {
    const struct seg_request *source; /* instances, stack, equipment, pipeline: as for the SEG */
    const char *kind;                 /* "lbp": part of the UIDs and of the content label */
    struct seg_code quantity;         /* what a value is: Quantity Definition */
    const char *explanation;          /* LUT Explanation, at most 64 characters */
    const uint8_t *codes;             /* (columns - 2) * (rows - 2) * planes, x fastest */
    const char *series_description;
    int32_t series_number;
};

/* Edge voxels are padding: Pixel Padding Value 65535. */
int pmap_write(const struct pmap_request *request, int fd, struct seg_summary *summary,
               struct dicom_fault *fault);
int pmap_verify(const struct pmap_request *request, const char *path, struct dicom_fault *fault);

#ifdef __cplusplus
}
#endif
#endif
