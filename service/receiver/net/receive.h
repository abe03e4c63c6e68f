/*
 * receive.h - the second half of C-STORE: make a received file durable, let the daemon commit its
 * row, and only then return the DIMSE status.
 *
 *     association's thread                         loop's thread (receiver.c)
 *     receive_begin: incoming/<name>.part
 *     ... the data set is written ...
 *     receive_end: import_received
 *          handover  ---- lock, uv_async ---->     receive_next: item, ARRIVED
 *          import_seal                             ...
 *          waits                                   ... STORED
 *          <---------------- condition -------     receive_answer
 *     0x0000
 *
 * An instance answered with 0x0000 is in series/ and in the database. After any other status it may be there, too, if
 * the daemon was slow or the connection broke; sending it again then changes nothing.
 *
 * Functions of the first section must be called in threads of associations, the others on the loop's thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_NET_RECEIVE_H
#define NOCTULE_SERVICE_RECEIVER_NET_RECEIVE_H

#include "dicom/net/scp.h"
#include "service/receiver/spool/import.h"

#include <pthread.h>
#include <sys/queue.h>
#include <uv.h>

struct receive_queue;

/* ---- threads of associations ---- */

/* A C-STORE in progress. If it ends without storing the instance, it is reported, since its series is incomplete. */
struct reception {
    const struct dicom_store *store;
    struct staged *staged;
    bool *refused; /* set by receive_begin: only the header is received */
    /* DICOM_UID_SIZE bytes: the series of the last instance that the association stored, or "". */
    char *series_uid;
    enum conf_newest resent; /* the option of the peer */
    /* A source sends it for our own C-MOVE: it must be acknowledged even if it is not kept. */
    bool requested;
};

/* Opens the file to receive into. Returns DICOM_SUCCESS or the status of a rejection. An unwanted instance
 * (dicom_store) is rejected, unless a C-MOVE of ours requested it; then only its header is received. While reception is
 * paused or the disk is low, an association that has stored instances is rejected later, by receive_room or
 * receive_end: the header then gives the series that lacks the instance. */
uint16_t receive_begin(struct receive_queue *queue, double min_free_mib, const struct reception *reception);
/* Checks the free disk space while the file is received. Returns 0 or -ENOSPC. */
int receive_room(const struct receive_queue *queue, double min_free_mib, bool refused);
/* Imports the complete file. Returns the status to answer once its outcome is known. */
uint16_t receive_end(struct receive_queue *queue, const struct reception *reception);
/* Discards an incomplete file; `error` is the reason as -errno. Returns the status to answer. */
uint16_t receive_abandon(struct receive_queue *queue, const struct reception *reception, int error);
/* Reports a peer's storage commitment report. Returns DICOM_SUCCESS once the daemon has recorded it. */
uint16_t receive_committed(struct receive_queue *queue, const char *calling_ae,
                           const struct dicom_commitment *commitment);

/* ---- loop's thread ---- */

enum handover_answer { HANDOVER_OPEN, HANDOVER_STORED, HANDOVER_DROPPED /* no answer will come */ };

/* Data for the daemon, shared by the waiting thread and the item that carries it. */
struct handover {
    struct import_item item; /* ARRIVED or QUARANTINED; unused for a commitment */
    char sender[DICOM_AE_SIZE], called_ae[DICOM_AE_SIZE];
    char folder[DICOM_AE_SIZE + 8]; /* item.folder: "scu:CT1" */
    char relative[DICOM_UID_SIZE];  /* item.relative */
    /* An instance that was not stored: no thread waits for the answer. */
    bool lost;
    bool unwanted;                       /* received and dropped; only its UIDs are kept */
    struct dicom_commitment *commitment; /* NULL: a file */

    /* private to receive.c, under its lock */
    STAILQ_ENTRY(handover) next;
    int references;
    enum handover_answer answer;
    pthread_cond_t answered;
};

/* Creates the receiver. The loop is woken when there may be handovers. Borrows `store`. Returns 0 or -errno. */
int receive_open(uv_loop_t *loop, struct store *store, struct receive_queue **queue);
/* Sets whether files may be received and whether reception is paused. Initially both are false. */
void receive_allow(struct receive_queue *queue, bool allowed, bool paused);
/* Returns the next handover, which the caller must release with receive_answer, or NULL. */
struct handover *receive_next(struct receive_queue *queue);
void receive_answer(struct receive_queue *queue, struct handover *handover, enum handover_answer answer);
/* Stops handovers. Queued ones are answered with HANDOVER_DROPPED now. The caller must answer those
 * that it has taken with HANDOVER_DROPPED. */
void receive_stop(struct receive_queue *queue);
/* Must be called after all association threads and the loop have ended. NULL is allowed. */
void receive_free(struct receive_queue *queue);

#endif
