/* sr_internal.h - names that the writer and the verifier of reports share. They must not share encodings. */
#ifndef NOCTULE_DICOM_OBJECTS_SR_SR_INTERNAL_H
#define NOCTULE_DICOM_OBJECTS_SR_SR_INTERNAL_H

#include "dicom/objects/sr/sr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the SOP class of the report. */
const char *sr_class(const struct sr_request *request);

/* Returns whether the evidence lists the object, but not the content: a Label Map, because DCMTK 3.6.7 cannot read a
 * report with an IMAGE of a class that it does not know. */
bool sr_is_in_evidence_only(const struct sr_result *result);

/* Returns the annotation object to which a group refers, or NULL if it refers to the SEG or to no object. */
const struct seg_origin *sr_origin(const struct sr_request *request, const struct sr_group *group);

/* Returns the same, but NULL if an earlier group refers to that object. */
const struct seg_origin *sr_new_origin(const struct sr_request *request, size_t group);

/* Returns whether a group refers to the SEG. */
bool sr_refers_to_segments(const struct sr_request *request);

/* Returns Tracking Identifier and Unique Identifier of a group: those of its segment, or of the
 * volume. Returns 0 or -ENOMEM. */
int sr_track(const struct sr_request *request, const struct sr_group *group, char id[SEG_TRACKING_ID_SIZE],
             char uid[DICOM_UID_SIZE]);

/* Returns the reason for a missing number as text, or NULL. The other returns whether there is any
 * parameter. */
const char *sr_absence(const struct sr_measurement *measurement);
/* Returns whether the ends of a length are part of the report. */
bool sr_has_path(const struct sr_request *request, const struct sr_measurement *measurement);
bool sr_has_parameters(const struct sr_request *request);
/* Returns the comment on the report as a whole (from the SEG request's source), or NULL. */
const char *sr_remark(const struct sr_request *request);

/* Derives the report's UIDs from the SEG's, the content and the report that it replaces. No
 * dimensions. Returns 0 or -ENOMEM. */
int sr_make_identity(const struct sr_request *request, struct derived_identity *identity);

/* Derives Device Observer UID from the device's serial number. Returns 0 or -ENOMEM. */
int sr_device_uid(const struct seg_request *request, char uid[DICOM_UID_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
