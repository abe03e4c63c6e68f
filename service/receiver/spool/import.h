/*
 * import.h - import complete files into the spool: header check, durable copy, or quarantine.
 *
 * A batch of files goes through each step together (store.h has the reason). After IMPORT_ARRIVED
 * or IMPORT_QUARANTINED the file's bytes and names are on disk. The original is unchanged.
 * import_finish handles it once the daemon has the row on disk. No failure may lose a file.
 *
 *     Originals:       CONF_KEEP       CONF_MOVE            CONF_DELETE
 *       arrived        left            moved to move_to     deleted
 *       quarantined    left            deleted              deleted
 *       own result     left            moved to move_to     left (it is the only copy)
 *       unreadable, or too large for the quarantine: left
 *
 * Thread-safe; an item must be used by one thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_IMPORT_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_IMPORT_H

#include "service/common/slurm/slurm_digest.h"
#include "service/receiver/spool/quarantine_files.h"
#include "service/receiver/spool/store.h"

#include "config/config.h"
#include "dicom/dicom.h"
#include "dicom/read/annotation/object_peek.h"

enum import_outcome {
    IMPORT_ARRIVED,     /* in series/, now or before */
    IMPORT_QUARANTINED, /* in quarantine/; path "": left in place, since space is short */
    IMPORT_UNREADABLE,  /* left in place */
    IMPORT_OWN_RESULT,  /* one of our results: not kept */
    IMPORT_CHANGED,     /* not the file that was found: look again */
    IMPORT_GONE,        /* the file was removed, or its sender is gone */
    IMPORT_RETRY,       /* an error of the spool (`error`): disk full, not writable */
};

#define IMPORT_PATH 320

/* The report to the daemon: ARRIVED or QUARANTINED. */
struct import_report {
    char sop_instance_uid[DICOM_UID_SIZE], sop_class_uid[DICOM_UID_SIZE];
    char transfer_syntax_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE], study_uid[DICOM_UID_SIZE];
    char modality[DICOM_CS_SIZE], body_part[DICOM_CS_SIZE];
    char series_description[DICOM_LO_SIZE];
    struct series_about about;                   /* of an image */
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* of an image; else "" */
    char path[IMPORT_PATH];                      /* relative to the root */
    char sha256[DIGEST_TEXT];                    /* if the file was stored now and digests are wanted; else "" */
    /* Of an annotation object (object_peek.h); "" for an image. */
    char kind[DICOM_CS_SIZE], label[DICOM_LO_SIZE], made[DICOM_DS_SIZE], person[DICOM_LO_SIZE];
    int64_t size;
    int32_t frames, expected;
    int32_t replaced; /* number of replacements, from the name of the file */
    enum code code;   /* reason for the quarantine */
    char message[512];
};

struct import_item {
    const char *folder; /* the inbox, absolute; borrowed */
    char *relative;     /* path below the inbox; borrowed */
    enum conf_after after;
    enum conf_newest resent; /* whether it may replace an instance with another data set */
    struct file_stamp stamp; /* of the complete file */
    int64_t token;
    enum import_outcome outcome;
    int error; /* -errno for IMPORT_RETRY and IMPORT_UNREADABLE */
    struct import_report report;
    char *references, *regions; /* of an annotation object; NULL for an image; freed by import_forget */
};

/* Imports `count` files. Copies a file to quarantine only if more than reserve_bytes then stay free. */
void import_batch(struct store *store, int64_t reserve_bytes, struct import_item *const *items, size_t count);

/* The C-STORE command that came with a received data set. */
struct import_claim {
    const char *sop_class_uid, *sop_instance_uid;
    /* If it is gone, the outcome is IMPORT_GONE with -ECONNABORTED. */
    const struct dicom_requestor *sender;
};

/*
 * Imports one complete staged file: checks its header and the claim, makes it durable and publishes
 * it. The outcomes are those of an inbox's file; an unusable one is IMPORT_QUARANTINED. Nothing
 * stays staged. item->folder and item->relative name the sender and the instance. Together they are
 * the original's name in the quarantine, where the same bytes of one sender are kept once.
 *
 * After IMPORT_ARRIVED the bytes are on disk and the name is in series/, but the name may not be
 * durable. The caller must call import_seal, which returns 0 once it is, or -errno; the file then
 * stays, and a resend seals it again. Meanwhile the file can be reported.
 */
void import_received(struct store *store, struct staged *staged, const struct import_claim *claim,
                     struct import_item *item);
int import_seal(struct store *store, const struct import_item *item);

/* Handles the original according to the table above. Returns 0, -ESTALE if it has changed (it
 * stays), -ENOENT if it is gone, or the error of moving or deleting it. */
int import_finish(const struct import_item *item, const char *move_to);

/* Removes the file that this one replaced, if any. The daemon must have the new row on disk. */
void import_retire(struct store *store, const struct import_report *report);

/* Sets the outcome IMPORT_UNREADABLE with its report, for a file that cannot be opened. */
void import_unreadable(struct import_item *item, int error);

/* Returns whether import_finish leaves the original unchanged. */
bool import_leaves(const struct import_item *item);

/* Reads the header of the open file `fd`, an image or an annotation object. Fills the item's
 * references and the header fields of its report, with the path in series/ of a first file. Codes:
 * those of dicom_peek_open, and of object_peek_open if it is no image. */
int import_peek(int fd, const char *path, const struct dicom_requestor *requestor, struct import_item *item,
                struct error *error);
/* Frees references and regions, and clears the report; the item can be used again. */
void import_forget(struct import_item *item);

/* Writes "series/<Series Instance UID>/<SOP Instance UID>.dcm", relative to the root (replaced.h). */
void import_path(const struct import_report *report, int32_t replaced, char path[IMPORT_PATH]);

#endif
