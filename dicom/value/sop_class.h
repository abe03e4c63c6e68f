/*
 * sop_class.h - the storage SOP classes that are taken in, as a table; private to dicom/.
 */
#ifndef NOCTULE_DICOM_STORAGE_CLASS_H
#define NOCTULE_DICOM_STORAGE_CLASS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The modality of the class's images, or NULL when this program cannot process them. */
const char *storage_class_modality(const char *uid);

#ifdef __cplusplus
}
#endif
#endif
