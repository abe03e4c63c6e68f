/*
 * storage_class.h - tables of the accepted storage SOP classes; private to dicom/.
 */
#ifndef NOCTULE_DICOM_VALUE_STORAGE_CLASS_H
#define NOCTULE_DICOM_VALUE_STORAGE_CLASS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the modality of the class's images, or NULL if this program cannot process them. */
const char *storage_class_modality(const char *uid);

/* Returns whether the class's images are 2-D images: its frames have no patient geometry, or one that is not used. */
bool storage_class_is_flat(const char *uid);

/* Returns "rtstruct", "seg" or "sr" for a class of annotation objects, or NULL. */
const char *storage_class_object(const char *uid);

/* Returns whether the class is accepted, as images or as annotation objects. */
bool storage_class_is_taken(const char *uid);

/* Returns whether the class may be another storage class, also a private one. False for a class
 * of another service (verification, commitment, print, query and retrieve). */
bool storage_class_is_other(const char *uid);

#ifdef __cplusplus
}
#endif
#endif
