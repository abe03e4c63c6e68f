/*
 * fault.h - filling a struct dicom_fault; private to dicom/.
 */
#ifndef NOCTULE_DICOM_FAULT_H
#define NOCTULE_DICOM_FAULT_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes code, files (NULL for none) and the formatted sentence, and returns `error`, a negative
 * errno, so that a failing call reads `return fault_set(...)`. A NULL fault is allowed. Sentences
 * that come out too long are cut.
 */
int fault_set(struct dicom_fault *fault, int error, const char *code, const char *file0,
              const char *file1, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Last part of a path, for sentences. */
const char *fault_base_name(const char *path);

#ifdef __cplusplus
}
#endif
#endif
