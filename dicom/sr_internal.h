/*
 * sr_internal.h - what the writer and the verifier of reports have in common: names, not encodings.
 */
#ifndef NOCTULE_SR_INTERNAL_H
#define NOCTULE_SR_INTERNAL_H

#include "sr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* UIDs of the report, from the SEG's and the content: 0 or -ENOMEM. No dimensions. */
int sr_make_identity(const struct sr_request *request, struct seg_identity *identity);

/* Device Observer UID: the same as long as the device's serial number is. 0 or -ENOMEM. */
int sr_device_uid(const struct seg_request *request, char uid[DICOM_UID_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
