/*
 * uid.h - UIDs derived from names: "2.25." and the decimal form of a UUID (PS3.5 B.2, ITU-T X.667)
 * whose bits come from SHA-256, as RFC 9562 allows with version 8.
 *
 * A name is a list of fields. Each field is hashed with its length, so ("ab", "c") and ("a", "bc")
 * are different names.
 */
#ifndef NOCTULE_DICOM_VALUE_UID_H
#define NOCTULE_DICOM_VALUE_UID_H

#include "dicom/dicom.h"

/* Implementation Class UID of Noctule (PS3.7 D.3.3.2), in file meta information and
 * associations. */
#define UID_IMPLEMENTATION_CLASS "2.25.297433262888600528076494839801423783919"

#ifdef __cplusplus
extern "C" {
#endif

struct uid_name; /* one name being hashed; belongs to one thread */

int uid_name_begin(struct uid_name **name); /* Returns 0 or -ENOMEM. */
void uid_name_text(struct uid_name *name, const char *text);
void uid_name_number(struct uid_name *name, int64_t number);
/* Adds more bytes of one long field. The caller must mark its end. */
void uid_name_bytes(struct uid_name *name, const void *bytes, size_t size);
/* Writes the UID and frees the name. Returns 0, or -ENOMEM with an empty UID. */
int uid_name_end(struct uid_name *name, char uid[DICOM_UID_SIZE]);

/* Computes the UID of a name made of texts, up to a NULL. Returns 0 or -ENOMEM. */
int uid_from_texts(char uid[DICOM_UID_SIZE], const char *const *texts);

/* Computes the UID of 16 bytes, most significant first. Sets the version and variant bits. */
void uid_from_bytes(const uint8_t bytes[16], char uid[DICOM_UID_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
