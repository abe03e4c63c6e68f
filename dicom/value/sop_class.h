/*
 * sop_class.h - the storage SOP classes that are taken in, as tables; private to dicom/.
 */
#ifndef NOCTULE_DICOM_STORAGE_CLASS_H
#define NOCTULE_DICOM_STORAGE_CLASS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The modality of the class's images, or NULL when this program cannot process them. */
const char *storage_class_modality(const char *uid);

/* "rtstruct", "seg" or "sr": what people drew on images; NULL when the class holds nothing such. */
const char *storage_class_object(const char *uid);

/* Either. */
bool storage_class_is_taken(const char *uid);

/* Returns whether the class may be another storage class, a private one included: no service class of its own
 * (verification, commitment, print, query and retrieve). */
bool storage_class_is_other(const char *uid);

#ifdef __cplusplus
}
#endif
#endif
