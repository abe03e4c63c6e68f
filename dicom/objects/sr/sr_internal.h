/*
 * sr_internal.h - what the writer and the verifier of reports have in common: names, not encodings.
 */
#ifndef NOCTULE_SR_INTERNAL_H
#define NOCTULE_SR_INTERNAL_H

#include "dicom/objects/sr/sr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SR_RTSTRUCT_CLASS "1.2.840.10008.5.1.4.1.1.481.3"

/* The object of others that a group refers to; NULL: the SEG, or none at all. */
const struct seg_origin *sr_origin(const struct sr_request *request, const struct sr_group *group);

/* The same where no earlier group refers to that object. */
const struct seg_origin *sr_new_origin(const struct sr_request *request, size_t group);

/* Does the report refer to the SEG? */
bool sr_refers_to_segments(const struct sr_request *request);

/*
 * Tracking Identifier and Unique Identifier of what a group is about: those of its segment, or those of the volume.
 * 0 or -ENOMEM.
 */
int sr_track(const struct sr_request *request, const struct sr_group *group,
             char id[SEG_TRACKING_ID_SIZE], char uid[DICOM_UID_SIZE]);

/* Why there is no number, in words, or NULL; and whether there is a setting in words. */
const char *sr_absence(const struct sr_measurement *measurement);
bool sr_has_words(const struct sr_measurement *measurement);

bool sr_has_parameters(const struct sr_request *request);
/* What is to be said of the report as a whole (the SEG request's source has it); NULL: nothing. */
const char *sr_remark(const struct sr_request *request);

/* UIDs of the report, from the SEG's, the content and the report that it replaces: 0 or -ENOMEM. No dimensions. */
int sr_make_identity(const struct sr_request *request, struct derived_identity *identity);

/* Device Observer UID: the same as long as the device's serial number is. 0 or -ENOMEM. */
int sr_device_uid(const struct seg_request *request, char uid[DICOM_UID_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
