/*
 * scu.h - the calling side of DICOM: associations to a peer, C-ECHO, C-STORE of a file as it is,
 * and storage commitment (PS3.4 Annex J).
 *
 * Calls block, within the timeouts of struct dicom_peer, and return 0 or -errno with an error. What
 * a failure means for a delivery is decided by dicom_outcome_of() alone, from the code and the
 * numbers in struct dicom_answer. An association belongs to one thread at a time; several
 * associations may be used by several threads at once. SIGPIPE must be ignored. Whether an
 * association outlived a failed call, dicom_is_open() tells; if not, it is still to be freed.
 */
#ifndef NOCTULE_DICOM_SCU_H
#define NOCTULE_DICOM_SCU_H

#include "dicom/net/scp.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dicom_peer {
    const char *calling_ae, *called_ae;
    const char *host; /* a name, or an IPv4 or IPv6 address */
    int port;
    struct dicom_tls *tls; /* a client's; NULL: none. Outlives the association. */
    /* With TLS: the SHA-256 of the certificate that it has to show, 64 lower-case digits; NULL or "":
     * one for `host`. Trusted it has to be in either case. */
    const char *certificate;
    /*
     * For TCP to connect (whole seconds, rounded up; connects that begin at the same moment may get
     * each other's), for the answer to the association request, and for the next part of a message.
     */
    double connect_seconds, acse_seconds, dimse_seconds;
    double min_rate; /* bytes per second of a message that it takes, beyond dimse_seconds; 0: any */
    uint32_t max_pdu; /* largest PDU we take, 4096 .. 131072 bytes */
};

/* One presentation context to propose. */
struct dicom_context {
    const char *sop_class;
    const char *transfer_syntax;
};

/* What the peer said, in numbers; -1: nothing. */
struct dicom_answer {
    int32_t status;                                      /* of the DIMSE response */
    int32_t reject_result, reject_source, reject_reason; /* of A-ASSOCIATE-RJ (PS3.8, 9.3.4) */
};

enum dicom_outcome {
    DICOM_SENT,      /* the peer has it */
    DICOM_TRANSIENT, /* the same may work later */
    DICOM_PERMANENT  /* the same will never work with this peer */
};

/*
 * What came of an attempt that ended with this code ("" for success) and answer. A failure is
 * TRANSIENT unless the peer, or the code, says for sure that it is not.
 */
enum dicom_outcome dicom_outcome_of(enum code code, const struct dicom_answer *answer);

struct dicom_association;

/*
 * Proposes the contexts (at most 128) and no others. It succeeds when any of them is accepted; what
 * is needed in particular is asked with dicom_accepts or found missing by the call that needs it.
 * Codes: PEER_UNREACHABLE (name unknown, refused, timed out), PEER_REJECTED (result permanent),
 * PEER_BUSY (result transient), PEER_ABORTED (no answer, or not a DICOM one), TLS_FAILED,
 * NO_PRESENTATION_CONTEXT, OUT_OF_MEMORY.
 */
int dicom_connect(const struct dicom_peer *peer, const struct dicom_context *contexts, size_t count,
                  struct dicom_association **association, struct dicom_answer *answer,
                  struct error *error);
/* Was a context for this SOP class accepted? */
bool dicom_accepts(const struct dicom_association *association, const char *sop_class);
bool dicom_is_open(const struct dicom_association *association);

/*
 * Sends the data set of a DICOM file: its bytes unchanged when the file's transfer syntax was
 * accepted for its class, else encoded anew as uncompressed as what was accepted (values
 * unchanged). Pixels are read as they are sent; memory does not grow with their size. 0 for 0x0000
 * and for warnings (0xBxxx, 0x0107, 0x0111 ...; see dicom_outcome_of), answer->status telling
 * which. Codes: NO_PRESENTATION_CONTEXT, STORE_REFUSED (a status that says no for good),
 * STORE_FAILED (any other failure status), PEER_ABORTED, FILE_UNREADABLE, NOT_DICOM, OUT_OF_MEMORY.
 */
int dicom_store_file(struct dicom_association *association, const char *path,
                     struct dicom_answer *answer, struct error *error);

/* An instance whose safekeeping is asked for. */
struct dicom_reference {
    const char *sop_class;
    const char *sop_instance;
};

/*
 * Asks the peer to commit to the storage of the references (N-ACTION). 0: it will report, on this
 * association (dicom_report) or on one of its own. Codes: COMMIT_UNSUPPORTED, COMMIT_FAILED,
 * PEER_ABORTED.
 */
int dicom_commit(struct dicom_association *association, const char *transaction_uid,
                 const struct dicom_reference *references, size_t count,
                 struct dicom_answer *answer, struct error *error);

/*
 * Takes in what the peer sends by itself while nothing is asked of it, without waiting: 1 and a
 * report (answered already; valid until the next call on the association), 0 when there is none,
 * -ECONNRESET when the peer has ended the association or broke its rules. Reports that came in the
 * middle of another call are given first.
 */
int dicom_report(struct dicom_association *association, const struct dicom_commitment **report);
/* Readable when dicom_report may have something; -1 once the association is not open. */
int dicom_descriptor(const struct dicom_association *association);

/* Ends and frees the association, whatever the peer does; NULL is allowed. */
void dicom_release(struct dicom_association *association);

/*
 * Is there a DICOM peer that answers? One association with Verification alone, C-ECHO, release.
 * `greeting` (may be NULL) gets who answered and how fast, "" on failure. Codes:
 * those of dicom_connect, NO_PRESENTATION_CONTEXT, ECHO_FAILED, PEER_ABORTED.
 */
int dicom_echo(const struct dicom_peer *peer, char *greeting, size_t greeting_size,
               struct error *error);

#ifdef __cplusplus
}
#endif
#endif
