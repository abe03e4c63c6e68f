/*
 * failure.h - filling in why a job, or one of its files, cannot go on.
 *
 * A fault is a stable code and a sentence (docs/codes.md). What the code means for the job - give
 * up, or try again later - follows from the errno beside it, in one table (pipeline.c).
 */
#ifndef NOCTULE_FAILURE_H
#define NOCTULE_FAILURE_H

#include "dicom/dicom.h"

/* Fills code and sentence, forgets the files, and returns `error` (a negative errno). */
int fail_with(struct dicom_fault *fault, int error, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for a failure of this machine: DISK_FULL, OUT_OF_MEMORY, OUTPUT_UNWRITABLE or IO_ERROR,
 * as `error` says; `what` is what could not be done: "write seg.dcm". */
int fail_with_system(struct dicom_fault *fault, int error, const char *what);

/*
 * Makes failures of this machine look alike wherever they came from: a full disk is DISK_FULL and
 * want of memory OUT_OF_MEMORY, whatever the part that met it calls it; a part's own code for an
 * I/O error (FILE_UNREADABLE) says more and stays. Sentences and files stay.
 */
void failure_normalise(struct dicom_fault *fault, int error);

#endif
