/*
 * sender_form.h - the forms of an object that a destination may get: as it is, uncompressed, or a LABELMAP as a BINARY
 * segmentation. They are tried in this order.
 *
 * A converted form is in an unnamed file below the root, which the kernel removes with its last descriptor: a sender
 * that is killed leaves no file, and the object itself stays in the outbox. One thread per form.
 */
#ifndef NOCTULE_SERVICE_SENDER_SENDER_FORM_H
#define NOCTULE_SERVICE_SENDER_SENDER_FORM_H

#include "dicom/deidentify/deidentify.h"
#include "dicom/net/scu.h"

enum sender_form_kind { SENDER_FORM_OWN, SENDER_FORM_UNCOMPRESSED, SENDER_FORM_BINARY, SENDER_FORMS };

#define SENDER_PATH 4096

struct sender_form {
    struct dicom_form is;
    char path[SENDER_PATH]; /* of the file that has it */
    int fd;                 /* of a converted form; -1: it is the object's own file */
};

/* Returns whether an object has such a form besides its own. */
bool sender_form_applies(enum sender_form_kind kind, const struct dicom_form *own);
/* Returns whether the peer accepted a presentation context for the form. */
bool sender_form_is_accepted(enum sender_form_kind kind, const struct dicom_form *own,
                             const struct dicom_association *association);
/* Makes the form of the object in `file`, with a work file below the root. The caller must close it after success. Codes:
 * DISK_FULL, WRITE_FAILED, and those of convert.h. */
int sender_form_open(enum sender_form_kind kind, const struct dicom_form *own, const char *file, const char *root,
                     struct sender_form *form, struct error *error);
/* Opens an unnamed file below the root. Returns its descriptor, or -errno. Codes: DISK_FULL, WRITE_FAILED. */
int sender_form_unnamed(const char *root, struct error *error);
void sender_form_close(struct sender_form *form);

/* Returns whether an answer of the peer means that it cannot store this class or transfer syntax. `http`: the status
 * of a STOW-RS answer, or 0. */
bool sender_form_is_refused(enum code code, const struct dicom_answer *answer, long http);

/*
 * Classes and transfer syntaxes that a STOW-RS service does not store, and the first form that it does. They are forgotten
 * after SENDER_REFUSAL_SECONDS, because the service may have been upgraded. An AE states them at each association.
 */
enum { SENDER_REFUSALS = 8, SENDER_REFUSAL_SECONDS = 3600 };

struct sender_refusals {
    struct {
        char sop_class[DICOM_UID_SIZE], transfer_syntax[DICOM_UID_SIZE];
        enum sender_form_kind stored;
        double since;
    } rows[SENDER_REFUSALS];

    size_t next;
};

/* Returns whether a refusal is of the class or the transfer syntax, so that it applies to other objects, too. */
bool sender_form_is_unknown(const struct dicom_answer *answer, long http);
/* Returns the form to begin with. `now` is as of clock_seconds(). */
enum sender_form_kind sender_form_first(const struct sender_refusals *refusals, const struct dicom_form *own,
                                        double now);
void sender_form_remember(struct sender_refusals *refusals, const struct dicom_form *own, enum sender_form_kind stored,
                          double now);

/* --------------------------------------------------------------------------- sender_copy.c ---- */

/* De-identified copies of deliveries, in unnamed files as above. */

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
