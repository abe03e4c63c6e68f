/*
 * seg_internal.h - what the writer and the verifier of segmentations have in common: names, not
 * encodings. The verifier reads and judges with code of its own.
 */
#ifndef NOCTULE_SEG_INTERNAL_H
#define NOCTULE_SEG_INTERNAL_H

#include "dicom/objects/seg/seg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SEG_SOP_CLASS_UID "1.2.840.10008.5.1.4.1.1.66.4"

/*
 * Tracking UID of a segment: the same finding of the same pipeline in the same series keeps it over
 * runs, settings and versions.
 */
int seg_tracking_uid(const struct seg_request *request, const struct seg_segment *segment,
                     char uid[DICOM_UID_SIZE]);

/* Tracking ID of a segment, the same in every object that speaks of it; cut when it is too long. */
#define SEG_TRACKING_ID_SIZE 512
void seg_tracking_id(const struct seg_request *request, const struct seg_segment *segment,
                     char id[SEG_TRACKING_ID_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
