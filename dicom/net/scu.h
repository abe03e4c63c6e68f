/*
 * scu.h - the calling side of DICOM: associations to a peer, C-ECHO, C-STORE of a file without
 * changes, and storage commitment (PS3.4 Annex J).
 *
 * Calls block, within the timeouts of struct dicom_peer, and return 0 or -errno with an error. Only dicom_outcome_of()
 * decides the outcome of a delivery, from the code and the numbers in struct dicom_answer. One thread at a time may use
 * an association; several threads may use different ones. SIGPIPE must be ignored. After a failed call, dicom_is_open()
 * returns whether the association is still open. If it is not, the caller must free it all the same.
 */
#ifndef NOCTULE_DICOM_NET_SCU_H
#define NOCTULE_DICOM_NET_SCU_H

#include "dicom/net/scp.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dicom_peer {
    const char *calling_ae, *called_ae;
    const char *host; /* a name, or an IPv4 or IPv6 address */
    int port;
    /* opened as a client; NULL for plain TCP. Must outlive the association. */
    struct dicom_tls *tls;
    /* SHA-256 of the certificate that the server must have: 64 lower-case digits. NULL or ""
     * accepts a certificate for `host`. The certificate must be trusted in either case. */
    const char *certificate;
    /* Time limits: to connect by TCP, to receive the answer to the association request, and to
     * receive the next part of a message. The first is rounded up to whole seconds. Connects
     * that begin at the same moment may get each other's limit. */
    double connect_seconds, acse_seconds, dimse_seconds;
    double min_rate;  /* min bytes per second that the peer takes, after dimse_seconds; 0: any */
    uint32_t max_pdu; /* largest PDU accepted, 4096 .. 131072 bytes */
};

/* One presentation context to propose. */
struct dicom_context {
    const char *sop_class;
    const char *transfer_syntax;
};

/* Numbers in the peer's answer; -1 if absent. */
struct dicom_answer {
    int32_t status;                                      /* of the DIMSE response */
    int32_t reject_result, reject_source, reject_reason; /* of A-ASSOCIATE-RJ (PS3.8 9.3.4) */
};

enum dicom_outcome {
    DICOM_SENT,      /* the peer has the instance */
    DICOM_TRANSIENT, /* a retry may succeed */
    DICOM_PERMANENT  /* a retry cannot succeed with this peer */
};

/* Returns the outcome of an attempt that ended with this code (CODE_NONE for success) and
 * answer. A failure is TRANSIENT unless the peer or the code proves that it is permanent. */
enum dicom_outcome dicom_outcome_of(enum code code, const struct dicom_answer *answer);

struct dicom_association;

/*
 * Proposes exactly these contexts (at most 128). Succeeds if the peer accepts any of them. The caller must check a
 * particular one with dicom_accepts, or handle the failure of the call that uses it. Codes: PEER_UNREACHABLE (unknown
 * name, refused, timed out), PEER_REJECTED (result permanent), PEER_BUSY (result transient), PEER_ABORTED (no answer,
 * or not DICOM), TLS_FAILED, NO_PRESENTATION_CONTEXT, OUT_OF_MEMORY.
 */
int dicom_connect(const struct dicom_peer *peer, const struct dicom_context *contexts, size_t count,
                  struct dicom_association **association, struct dicom_answer *answer, struct error *error);
/* Return whether the peer accepted, or the association proposed, a context for this SOP class and transfer syntax. */
bool dicom_accepts(const struct dicom_association *association, const char *sop_class, const char *transfer_syntax);
bool dicom_proposed(const struct dicom_association *association, const char *sop_class, const char *transfer_syntax);
bool dicom_is_open(const struct dicom_association *association);

/* The form in which an object is stored or sent. */
struct dicom_form {
    char sop_class[DICOM_UID_SIZE], sop_instance[DICOM_UID_SIZE], transfer_syntax[DICOM_UID_SIZE];
};

/* Reads the file meta information of a DICOM file. Codes: FILE_UNREADABLE, NOT_DICOM, OUT_OF_MEMORY. */
int dicom_read_form(const char *path, struct dicom_form *form, struct error *error);

/*
 * Sends the data set of a DICOM file, and returns the form that was sent. If the peer accepted the file's transfer syntax for its class, the bytes are sent
 * unchanged. Otherwise uncompressed data is encoded in an accepted uncompressed syntax, with equal values. Pixels are
 * streamed; memory does not grow with their size.
 *
 * Returns 0 for status 0x0000 and for warnings (0xBxxx, 0x0107, 0x0111 and so on, see dicom_outcome_of); answer->status
 * has the status. Codes: NO_PRESENTATION_CONTEXT, STORE_REFUSED (permanent failure status), STORE_FAILED (any other
 * failure status), PEER_ABORTED, FILE_UNREADABLE, NOT_DICOM, OUT_OF_MEMORY.
 */
int dicom_store_file(struct dicom_association *association, const char *path, struct dicom_form *sent,
                     struct dicom_answer *answer, struct error *error);

/* Requests storage commitment for an instance (N-ACTION). Returns 0 if the peer will report, on this association
 * (dicom_report) or on one of its own. Codes: COMMIT_UNSUPPORTED, COMMIT_FAILED, PEER_ABORTED. */
int dicom_commit(struct dicom_association *association, const char *transaction_uid, const char *sop_class,
                 const char *sop_instance, struct dicom_answer *answer, struct error *error);

/*
 * Reads, without waiting, messages that the peer sends on its own. Returns 1 and a report (already answered; valid
 * until the next call on the association), or 0 if there is no report. Returns -ECONNRESET if the peer has ended the
 * association or violated the protocol. Reports that came during another call come first.
 */
int dicom_report(struct dicom_association *association, const struct dicom_commitment **report);
/* Returns a descriptor that is readable if dicom_report may have a report, or -1 once the association is closed. */
int dicom_descriptor(const struct dicom_association *association);

/* Ends and frees the association, whatever the peer does. NULL is allowed. */
void dicom_release(struct dicom_association *association);

/* Checks that a DICOM peer answers: one association with Verification only, C-ECHO, release.
 * Sets `greeting` (may be NULL) to the peer's name and response time, or to "" on failure.
 * Codes: those of dicom_connect, NO_PRESENTATION_CONTEXT, ECHO_FAILED, PEER_ABORTED. */
int dicom_echo(const struct dicom_peer *peer, char *greeting, size_t greeting_size, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
