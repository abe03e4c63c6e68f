/*
 * scp.h - serves DICOM associations: admission, C-ECHO, C-STORE into a descriptor of the caller,
 * storage commitment results; and TLS for both sides.
 *
 * Calls return 0 or a negative errno and fill a struct error. dicom_init must have been called. The
 * caller must listen, accept connections and hand each one over.
 */
#ifndef NOCTULE_DICOM_NET_SCP_H
#define NOCTULE_DICOM_NET_SCP_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DICOM_AE_SIZE             17 /* 16 characters and the NUL */
#define DICOM_HOST_SIZE           46 /* a numeric IPv4 or IPv6 address */
#define DICOM_PDU_MIN             4096
#define DICOM_PDU_MAX             131072
#define DICOM_SHA256_SIZE         65 /* 64 lower-case hexadecimal digits */
#define DICOM_COMMON_NAME_SIZE    257

#define DICOM_VERIFICATION_CLASS  "1.2.840.10008.1.1"
#define DICOM_COMMITMENT_CLASS    "1.2.840.10008.1.20.1"
#define DICOM_COMMITMENT_INSTANCE "1.2.840.10008.1.20.1.1"

/* DIMSE statuses (PS3.7 annex C, PS3.4 table B.2-1). */
enum dicom_status {
    DICOM_SUCCESS = 0x0000,
    DICOM_PROCESSING_FAILURE = 0x0110,
    DICOM_DUPLICATE_INSTANCE = 0x0111,
    DICOM_SOP_CLASS_NOT_SUPPORTED = 0x0122,
    DICOM_UNRECOGNIZED_OPERATION = 0x0211,
    DICOM_OUT_OF_RESOURCES = 0xA700,
    DICOM_DATA_SET_MISMATCH = 0xA900,
    DICOM_CANNOT_UNDERSTAND = 0xC000,
};

/* ---- TLS ---- */

/* PEM files. A server must have certificate and key. A client may have neither. */
struct dicom_tls_settings {
    const char *certificate; /* own certificate, then its chain; NULL or "" for no certificate */
    const char *key;         /* without a pass phrase; NULL or "" for no key */
    const char *ca;          /* trusted CAs */
    /* revocation lists of those CAs and their intermediates; NULL or "" to skip the check */
    const char *crl;
    /* server: refuse clients without a trusted certificate. A client always verifies the server against `ca`. */
    bool require_peer;
};

/*
 * Certificates of one side and the BCP 195 TLS profile (PS3.15 B.9: TLS 1.2 and later). Immutable once open; any number
 * of threads and associations may share it. To reload, open another one, and close this one when its last association
 * has ended. Codes: TLS_CERTIFICATE_INVALID, TLS_KEY_INVALID, TLS_CA_INVALID, TLS_CRL_INVALID, OUT_OF_MEMORY.
 */
struct dicom_tls;
int dicom_tls_open(const struct dicom_tls_settings *settings, bool server, struct dicom_tls **tls, struct error *error);
void dicom_tls_close(struct dicom_tls *tls);

/* ---- Serving ---- */

/* Requestor of an association. Texts are trimmed. Only the certificate has been verified. */
struct dicom_association_request {
    char calling_ae[DICOM_AE_SIZE];
    char called_ae[DICOM_AE_SIZE];
    char host[DICOM_HOST_SIZE];
    char implementation_uid[DICOM_UID_SIZE];
    char implementation_version[DICOM_AE_SIZE];
    bool proposes_more; /* more than Verification */
    bool tls;
    /* From the peer's verified certificate; "" if it sent no certificate. */
    char certificate_name[DICOM_COMMON_NAME_SIZE]; /* subject common name, UTF-8 */
    char certificate_fingerprint[DICOM_SHA256_SIZE];
};

/* Result of admission, with result, source and reason of the A-ASSOCIATE-RJ (PS3.8 9.3.4). */
enum dicom_admission {
    DICOM_ADMIT,
    DICOM_ADMIT_ECHO,     /* accepted, for C-ECHO only */
    DICOM_ADMIT_ARCHIVE,  /* accepted, also for storage classes that dicom_peek rejects */
    DICOM_REFUSE_CALLING, /* 1, 1, 3: calling AE title not recognized */
    DICOM_REFUSE_CALLED,  /* 1, 1, 7: called AE title not recognized */
    DICOM_REFUSE_HOST,    /* 1, 1, 1: permanent, no reason given */
    DICOM_REFUSE_BUSY,    /* 2, 3, 2: transient, local limit exceeded */
};

struct dicom_sender; /* defined in scp.cc */

/* One C-STORE. UIDs are well-formed: digits and dots, at most 64. The SOP class is that of the
 * presentation context. Valid until its store_end returns. */
struct dicom_store {
    const struct dicom_association_request *association;
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char transfer_syntax_uid[DICOM_UID_SIZE];
    char move_originator[DICOM_AE_SIZE]; /* AE title of the C-MOVE's requestor; "" if absent */
    bool unwanted;                       /* a class that dicom_peek rejects; only after DICOM_ADMIT_ARCHIVE */
    const struct dicom_sender *sender;
};

/* Returns whether the peer has aborted or closed the association, so that it cannot receive the
 * answer. May be called within store_end. Use it to stop expensive work. */
bool dicom_sender_is_gone(const struct dicom_store *store);

/* One instance in a storage commitment result. */
struct dicom_commitment_reference {
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    uint16_t failure_reason; /* 0 if committed, or a reason of PS3.3 C.14.1.1 */
};

/* A storage commitment result (N-EVENT-REPORT, PS3.4 J.3.3). */
struct dicom_commitment {
    char transaction_uid[DICOM_UID_SIZE];
    size_t count;
    const struct dicom_commitment_reference *references;
};

/* Totals of an association. */
struct dicom_association_totals {
    uint64_t instances; /* C-STOREs answered with success or a warning */
    uint64_t refused;   /* C-STOREs answered with a failure, or interrupted */
    uint64_t bytes;     /* of data sets */
    double seconds;     /* since its acceptance */
};

/* Callbacks of an association. The thread in dicom_serve calls them, one at a time. They may block. */
struct dicom_receiver {
    void *context; /* first argument of each callback */
    enum dicom_admission (*admit)(void *context, const struct dicom_association_request *request);
    /* Sets the descriptor to which the instance's file is written, from its current offset. The
     * receiver must open and close it. Returns DICOM_SUCCESS, or another DIMSE status to refuse.
     * After a refusal there is no store_end, and the data set is read and dropped. */
    uint16_t (*store_begin)(void *context, const struct dicom_store *store, int *fd);
    /* Checks for free space, every few MiB of a data set. Returns 0, or -errno to stop writing.
     * Then store_end is called at once with that errno, and the answer is
     * DICOM_OUT_OF_RESOURCES. May be NULL. */
    int (*store_room)(void *context);
    /*
     * Ends each store_begin that succeeded. If `rc` is 0, the whole Part 10 file was written; the receiver must make it
     * durable and return the status of the answer. Otherwise the receiver must drop the file. If `rc` is -ECONNABORTED,
     * the peer aborted or vanished, the file is partial, and the return value is ignored. Any other negative errno
     * comes from writing to the descriptor, and the returned status is the answer (for example DICOM_OUT_OF_RESOURCES).
     */
    uint16_t (*store_end)(void *context, const struct dicom_store *store, int64_t bytes, int rc);
    /* Receives a storage commitment result. Returns the status of the answer. If NULL, Storage
     * Commitment is not negotiated. */
    uint16_t (*committed)(void *context, const struct dicom_association_request *association,
                          const struct dicom_commitment *commitment);
    /* `opened` is called after the association was accepted, `closed` when it is over, with `rc`
     * and `error` as dicom_serve returns them. The peer is notified after `closed`. Each may be
     * NULL. */
    void (*opened)(void *context, const struct dicom_association_request *association);
    void (*closed)(void *context, const struct dicom_association_request *association,
                   const struct dicom_association_totals *totals, int rc, const struct error *error);
};

struct dicom_serve_options {
    uint32_t max_pdu;       /* DICOM_PDU_MIN .. DICOM_PDU_MAX; longest PDU accepted */
    uint32_t acse_seconds;  /* for the TLS handshake and the request, together */
    uint32_t dimse_seconds; /* longest silence within a message, in either direction */
    uint32_t idle_seconds;  /* longest silence between two messages */
    /* min bytes per second of a message, after dimse_seconds; 0: any */
    double min_rate;
    uint64_t max_instance;       /* max bytes of a data set */
    const struct dicom_tls *tls; /* opened as a server; NULL for plain TCP */
    /* -1, or a descriptor: once readable, the association is aborted after the current message has been answered */
    int stop_fd;
};

/*
 * Serves the accepted connection `fd` until its association is over. Takes ownership of `fd` in
 * every case. Blocks; any number of threads may call it at once, and a silent peer delays only its
 * own thread. Accepts C-ECHO, C-STORE of the classes of dicom_peek, and N-EVENT-REPORTs of storage
 * commitment. Of the proposed transfer syntaxes it accepts the first that can be decoded.
 *
 * Returns 0 if the peer released the association. A data set longer than max_instance ends the
 * association. A refused data set does so after 256 MiB.
 *
 * Codes: INSTANCE_TOO_LARGE (-EFBIG), DISK_FULL (-ENOSPC), ASSOCIATION_REFUSED (-EACCES),
 * ASSOCIATION_ABORTED (-ECONNABORTED: by the peer, or it vanished), ASSOCIATION_TIMEOUT
 * (-ETIMEDOUT), ASSOCIATION_INVALID (-EPROTO: not DICOM, or a violation of it), ASSOCIATION_STOPPED
 * (-ECANCELED), TLS_HANDSHAKE_FAILED (-EPROTO), OUT_OF_MEMORY (-ENOMEM).
 */
int dicom_serve(int fd, const struct dicom_serve_options *options, const struct dicom_receiver *receiver,
                struct error *error);

#ifdef __cplusplus
}
#endif
#endif
