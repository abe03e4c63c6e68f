/*
 * sender_copy.h - de-identified copies of deliveries, in unnamed files as those of sender_form.h.
 */
#ifndef NOCTULE_SERVICE_SENDER_SENDER_COPY_H
#define NOCTULE_SERVICE_SENDER_SENDER_COPY_H

#include "dicom/deidentify/deidentify.h"
#include "service/sender/sender_form.h"

/* Makes the copy of an object. The caller must close it (sender_form_close) after success. Codes: DISK_FULL,
 * WRITE_FAILED, and those of deidentify_file. */
int sender_copy_object(const struct deidentify *how, const char *file, const char *root, struct sender_form *copy,
                       struct error *error);

/* Does the same with a file that is no DICOM object: a NIfTI file is itself free of text, and in a list of labels
 * (.json) the texts are cleaned. Code: also DEIDENTIFY_CLASS for other files. */
int sender_copy_file(const struct deidentify *how, const char *file, const char *root, struct sender_form *copy,
                     struct error *error);

/* Replaces the Series Instance UID at the begin of SERIES_UID.PIPELINE.JOB, the source of such a file. Returns 0 or
 * -errno. */
int sender_copy_source(const struct deidentify *how, const char *source, char *replaced, size_t size);

#endif
