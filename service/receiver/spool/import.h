/*
 * import.h - taking complete files into the spool: header peek, durable copy, or quarantine.
 *
 * A batch of files goes through each step together (store.h says why). After IMPORT_ARRIVED or
 * IMPORT_QUARANTINED the file's bytes and names are on disk; the original is as it was and is dealt
 * with by import_finish, once the daemon has the row on disk too. No file is lost whatever fails.
 *
 * Originals:       CONF_KEEP       CONF_MOVE            CONF_DELETE
 *   arrived        left            moved to move_to     deleted
 *   quarantined    left            deleted              deleted
 *   own result     left            moved to move_to     left (nothing else holds it)
 *   unreadable, or too large for the quarantine: left
 *
 * Any thread; one thread an item.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_IMPORT_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_IMPORT_H

#include "service/common/slurm/slurm_digest.h"
#include "service/receiver/spool/quarantine_files.h"
#include "service/receiver/spool/store.h"

#include "config/config.h"
#include "dicom/dicom.h"
#include "dicom/read/object_peek.h"

enum import_outcome {
    IMPORT_ARRIVED,     /* it is in series/, put there now or before */
    IMPORT_QUARANTINED, /* it is in quarantine/, or stays where it is for want of space: no path */
    IMPORT_UNREADABLE,  /* stays where it is */
    IMPORT_OWN_RESULT,  /* nothing to do, nothing kept */
    IMPORT_CHANGED,     /* it is not the file that was looked at: look again */
    IMPORT_GONE,        /* the file, or who sent it */
    IMPORT_RETRY,       /* the spool's trouble (error): disk full, not writable */
};

#define IMPORT_PATH 320

/* What the daemon is told: ARRIVED or QUARANTINED. */
struct import_report {
    char sop_instance_uid[DICOM_UID_SIZE], sop_class_uid[DICOM_UID_SIZE];
    char transfer_syntax_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE], study_uid[DICOM_UID_SIZE];
    char modality[DICOM_CS_SIZE], body_part[DICOM_CS_SIZE];
    char series_description[DICOM_LO_SIZE];
    struct series_about about;                   /* of an image */
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* of an image; "" */
    char path[IMPORT_PATH];                      /* relative to the root */
    char sha256[DIGEST_TEXT]; /* of the file, where it was put there now and it is wanted; "" */
    /* Of what was drawn on images (object_peek.h); "" of an image. */
    char kind[DICOM_CS_SIZE], label[DICOM_LO_SIZE], made[DICOM_DS_SIZE];
    int64_t size;
    int32_t frames, expected;
    int32_t replaced; /* times, by the name of the file */
    enum code code;   /* of the quarantine */
    char message[512];
};

struct import_item {
    const char *folder; /* the inbox: absolute; not owned */
    char *relative;     /* the file below it; not owned */
    enum conf_after after;
    enum conf_newest resent; /* may it replace an instance with another data set? */
    struct file_stamp stamp; /* as it was found complete */
    int64_t token;
    enum import_outcome outcome;
    int error; /* -errno of IMPORT_RETRY, IMPORT_UNREADABLE */
    struct import_report report;
    char *references; /* of an object; NULL of an image; freed by import_forget */
};

/* Takes in `count` files. What goes to quarantine is copied only while more than reserve_bytes stay
 * free. */
void import_batch(struct store *store, int64_t reserve_bytes, struct import_item *const *items,
                  size_t count);

/* What the command that came with a received data set says of it. */
struct import_claim {
    const char *sop_class_uid, *sop_instance_uid;
    const struct dicom_asker *sender; /* once gone, it is IMPORT_GONE with -ECONNABORTED */
};

/*
 * Takes in one file that is already staged, complete: checks its header and what was claimed of it,
 * makes it durable and publishes it, with the same outcomes as a file of an inbox (one that cannot
 * be used is IMPORT_QUARANTINED). Whatever the outcome, nothing is staged afterwards. item->folder
 * and item->relative name the sender and the instance; together they are the original's name for
 * the quarantine, where the same bytes from the same sender are kept once.
 *
 * One that is IMPORT_ARRIVED has its bytes on disk and its name in series/, but is not yet to be
 * vouched for: the name is on disk when import_seal has returned 0 (else -errno; the file stays,
 * and its resend is sealed anew). That leaves time to report it meanwhile.
 */
void import_received(struct store *store, struct staged *staged, const struct import_claim *claim,
                     struct import_item *item);
int import_seal(struct store *store, const struct import_item *item);

/*
 * Deals with the original as the table above says. 0; -ESTALE when it has changed since (it stays),
 * -ENOENT when it is gone, or why it could not be moved or deleted.
 */
int import_finish(const struct import_item *item, const char *move_to);

/* Removes what it took the place of, if anything: the daemon has the new row on disk. */
void import_retire(struct store *store, const struct import_report *report);

/* Makes it IMPORT_UNREADABLE, with its report: for what could not even be looked at. */
void import_unreadable(struct import_item *item, int error);

/* Does import_finish leave the original alone? */
bool import_leaves(const struct import_item *item);

/*
 * Reads the header of the open file `fd`, an image's or that of an object that was drawn on images,
 * and fills the item's references and the part of its report that comes from it, with the path in
 * series/ of a first one. Codes: those of dicom_peek_open, and of object_peek_open for what is no image.
 */
int import_peek(int fd, const char *path, const struct dicom_asker *asker, struct import_item *item,
                struct error *error);
/* Frees what import_peek has found; the item may be used anew. */
void import_forget(struct import_item *item);

/* "series/<Series Instance UID>/<SOP Instance UID>.dcm", relative to the root (replaced.h). */
void import_path(const struct import_report *report, int32_t replaced, char path[IMPORT_PATH]);

#endif
