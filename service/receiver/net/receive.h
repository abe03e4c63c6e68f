/*
 * receive.h - C-STORE's second half: makes a received file durable, has the daemon commit its
 * row, and only then says which DIMSE status the sender gets.
 *
 *   association's thread                         loop's thread (receiver.c)
 *   receiver_begin: incoming/<name>.part
 *   ... the data set is written ...
 *   receiver_end: import_received
 *        handover  ---- lock, uv_async ---->     receiver_next: item, ARRIVED
 *        import_seal                             ...
 *        waits                                   ... STORED
 *        <---------------- condition -------     receiver_answer
 *   0x0000
 *
 * What is answered 0x0000 is in series/ and in the database. What is answered otherwise may be
 * there all the same (the daemon was slow, the connection broke): a resend is then a no-op.
 *
 * The first part belongs to the threads of associations, the second to the loop's thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_NET_RECEIVE_H
#define NOCTULE_SERVICE_RECEIVER_NET_RECEIVE_H

#include "dicom/net/scp.h"
#include "service/receiver/spool/import.h"

#include <pthread.h>
#include <sys/queue.h>
#include <uv.h>

struct receiver;

/* ---- threads of associations ---- */

/* A C-STORE under way. What ends without being stored is reported, for its series is incomplete. */
struct reception {
    const struct dicom_store *store;
    struct staged *staged;
    bool *refused;           /* set by receiver_begin: it is received for its header only */
    char *series_uid;        /* DICOM_UID_SIZE: that the association stored last; "": none */
    enum conf_newest resent; /* the peer's */
    bool asked; /* a source sends it for our own C-MOVE: acknowledged even if it is not kept */
};

/*
 * Opens the file to receive into: DICOM_SUCCESS, or why not. An unwanted instance (dicom_store) is refused unless it was asked
 * for; then it is received for its header only. While reception is paused or the disk is low, an association that
 * has stored instances is refused later, by receiver_room or receiver_end: the header names the series that lacks the instance.
 */
uint16_t receiver_begin(struct receiver *receiver, double min_free_mib,
                        const struct reception *reception);
/* Is there room for more of it? 0 or -ENOSPC. */
int receiver_room(const struct receiver *receiver, double min_free_mib, bool refused);
/* The file is complete: returns when its fate is known, with the status to answer. */
uint16_t receiver_end(struct receiver *receiver, const struct reception *reception);
/* It is not, for the reason -errno. */
uint16_t receiver_abandon(struct receiver *receiver, const struct reception *reception, int error);
/* A peer's storage commitment report: DICOM_SUCCESS once the daemon has it on record. */
uint16_t receiver_committed(struct receiver *receiver, const char *calling_ae,
                            const struct dicom_commitment *commitment);

/* ---- loop's thread ---- */

enum handover_answer { HANDOVER_OPEN, HANDOVER_STORED, HANDOVER_DROPPED /* none comes */ };

/* Something for the daemon, shared by the thread that waits and the item that carries it. */
struct handover {
    struct import_item item; /* ARRIVED or QUARANTINED; not for a commitment */
    char sender[DICOM_AE_SIZE], called_ae[DICOM_AE_SIZE];
    char folder[DICOM_AE_SIZE + 8];      /* item.folder: "scu:CT1" */
    char relative[DICOM_UID_SIZE];       /* item.relative */
    bool lost;                           /* it is no file: nobody waits for the answer */
    bool unwanted;                       /* it was received and dropped, only its UIDs are kept */
    struct dicom_commitment *commitment; /* NULL: a file */

    /* receive.c's, under its lock */
    STAILQ_ENTRY(handover) next;
    int references;
    enum handover_answer answer;
    pthread_cond_t answered;
};

/* The loop turns when there may be handovers. Keeps `store`. */
int receiver_open(uv_loop_t *loop, struct store *store, struct receiver **receiver);
/* Sets whether files may be received, and whether reception is paused. Neither at first. */
void receiver_allow(struct receiver *receiver, bool allowed, bool paused);
/* The next one, which the caller lets go with an answer; NULL: none is waiting. */
struct handover *receiver_next(struct receiver *receiver);
void receiver_answer(struct receiver *receiver, struct handover *handover,
                     enum handover_answer answer);
/* Nobody is answered by the daemon any more: who waits in line is told so now; the handovers that
 * were taken are the caller's to answer with HANDOVER_DROPPED. */
void receiver_stop(struct receiver *receiver);
/* Once no thread of an association is left and the loop is over. NULL is allowed. */
void receiver_free(struct receiver *receiver);

#endif
