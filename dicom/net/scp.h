/*
 * scp.h - serving DICOM associations: admission, C-ECHO, C-STORE into a descriptor of the
 * caller's, storage commitment results; and TLS for both sides.
 *
 * As in dicom.h, calls return 0 or a negative errno and fill a struct error, and dicom_init
 * comes first. Nothing here listens: the caller accepts connections and hands each one over.
 */
#ifndef NOCTULE_NETWORK_H
#define NOCTULE_NETWORK_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DICOM_AE_SIZE             17 /* 16 characters and the end */
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

/* PEM files. A server needs certificate and key; a client may have neither. */
struct dicom_tls_settings {
    const char *certificate; /* own certificate, then its chain; NULL or "" for none */
    const char *key;         /* without a pass phrase; NULL or "" for none */
    const char *ca;          /* the authorities whose certificates are trusted */
    const char *crl;   /* what they, and those below them, have revoked; NULL or "": not asked */
    bool require_peer; /* server: refuse clients without a trusted certificate; a client
                                always verifies the server against `ca` */
};

/*
 * One side's certificates and the BCP 195 TLS profile (PS3.15 B.9: TLS 1.2 and later). Immutable
 * once open and shared by any number of threads and associations; to reload, open another, and
 * close this one when its last association is over. Codes: TLS_CERTIFICATE_INVALID,
 * TLS_KEY_INVALID, TLS_CA_INVALID, TLS_CRL_INVALID, OUT_OF_MEMORY.
 */
struct dicom_tls;
int dicom_tls_open(const struct dicom_tls_settings *settings, bool server, struct dicom_tls **tls,
                   struct error *error);
void dicom_tls_close(struct dicom_tls *tls);

/* ---- Serving ---- */

/* Who asks for an association. Texts are trimmed; nothing in them has been verified but the
 * certificate. */
struct dicom_association_request {
    char calling_ae[DICOM_AE_SIZE];
    char called_ae[DICOM_AE_SIZE];
    char host[DICOM_HOST_SIZE];
    char implementation_uid[DICOM_UID_SIZE];
    char implementation_version[DICOM_AE_SIZE];
    bool proposes_more; /* than Verification */
    bool tls;
    /* Of the peer's verified certificate; "" when it showed none. */
    char certificate_name[DICOM_COMMON_NAME_SIZE]; /* subject common name, UTF-8 */
    char certificate_fingerprint[DICOM_SHA256_SIZE];
};

/* With the result, source and reason of the A-ASSOCIATE-RJ (PS3.8 9.3.4). */
enum dicom_admission {
    DICOM_ADMIT,
    DICOM_ADMIT_ECHO,     /* accepted, for C-ECHO alone */
    DICOM_ADMIT_ARCHIVE,  /* accepted, also storage classes that dicom_peek does not accept */
    DICOM_REFUSE_CALLING, /* 1, 1, 3: calling AE title not recognized */
    DICOM_REFUSE_CALLED,  /* 1, 1, 7: called AE title not recognized */
    DICOM_REFUSE_HOST,    /* 1, 1, 1: permanent, no reason given */
    DICOM_REFUSE_BUSY,    /* 2, 3, 2: transient, local limit exceeded */
};

struct dicom_sender; /* scp.cc's */

/* One C-STORE. The UIDs are well-formed (digits and dots, at most 64), the SOP class is the
 * presentation context's. Valid until its store_end returns. */
struct dicom_store {
    const struct dicom_association_request *association;
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char transfer_syntax_uid[DICOM_UID_SIZE];
    char move_originator[DICOM_AE_SIZE]; /* whose C-MOVE caused it; "": none is named */
    bool unwanted; /* a class that dicom_peek does not accept; only after DICOM_ADMIT_ARCHIVE */
    const struct dicom_sender *sender;
};

/* Within its store_end: has the peer aborted or closed the association, so that nobody hears the
 * answer? What it costs to find one is the receiver's to end. */
bool dicom_sender_is_gone(const struct dicom_store *store);

/* One instance in a storage commitment result. */
struct dicom_commitment_reference {
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    uint16_t failure_reason; /* 0 when committed (PS3.3 C.14.1.1 otherwise) */
};

/* A storage commitment result (N-EVENT-REPORT, PS3.4 J.3.3). */
struct dicom_commitment {
    char transaction_uid[DICOM_UID_SIZE];
    size_t count;
    const struct dicom_commitment_reference *references;
};

/* What an association did. */
struct dicom_association_totals {
    uint64_t instances; /* C-STOREs answered with success or a warning */
    uint64_t refused;   /* C-STOREs answered with a failure, or broken off */
    uint64_t bytes;     /* of data sets */
    double seconds;     /* from the acceptance */
};

/*
 * What the caller does with an association. All are called from the thread in dicom_serve, one at
 * a time, and may block.
 */
struct dicom_receiver {
    void *context; /* first argument of each */
    enum dicom_admission (*admit)(void *context, const struct dicom_association_request *request);
    /*
     * Gives the descriptor that the instance's file is written to from its current offset (the
     * receiver opens and closes it), or refuses with a DIMSE status other than DICOM_SUCCESS:
     * then there is no store_end, and the data set is read and dropped.
     */
    uint16_t (*store_begin)(void *context, const struct dicom_store *store, int *fd);
    /*
     * Every few MiB of it: is there room for more? 0, or -errno and the file gets no more: store_end
     * comes at once with it, what is answered then is DICOM_OUT_OF_RESOURCES. May be NULL.
     */
    int (*store_room)(void *context);
    /*
     * Once for each store_begin that succeeded. `error` is 0 when the whole Part 10 file was
     * written: the receiver makes it durable and returns the status to answer. Otherwise the
     * receiver drops it: with -ECONNABORTED the peer broke off or vanished, what had come is in
     * the file, and the return value is ignored; any other negative errno is of writing to the descriptor, and the status
     * returned (DICOM_OUT_OF_RESOURCES, say) is answered.
     */
    uint16_t (*store_end)(void *context, const struct dicom_store *store, int64_t bytes, int rc);
    /* A storage commitment result; returns the status to answer. NULL: none is expected, and
     * Storage Commitment is not negotiated. */
    uint16_t (*committed)(void *context, const struct dicom_association_request *association,
                          const struct dicom_commitment *commitment);
    /* The association was accepted; it is over (then `rc` and `error` are what dicom_serve
     * returns), and the peer is told so next. Each may be NULL. */
    void (*opened)(void *context, const struct dicom_association_request *association);
    void (*closed)(void *context, const struct dicom_association_request *association,
                   const struct dicom_association_totals *totals, int rc,
                   const struct error *error);
};

struct dicom_serve_options {
    uint32_t max_pdu;            /* DICOM_PDU_MIN .. DICOM_PDU_MAX; what the peer may send */
    uint32_t acse_seconds;       /* for the TLS handshake and the request, together */
    uint32_t dimse_seconds;      /* longest silence within a message, either way */
    uint32_t idle_seconds;       /* longest silence between two messages */
    double min_rate;             /* bytes per second of a message, beyond dimse_seconds; 0: any */
    uint64_t max_instance;       /* bytes of a data set */
    const struct dicom_tls *tls; /* opened as a server; NULL for plain TCP */
    int stop_fd; /* -1, or: once it is readable, the association is aborted when its message under
                    way has been answered */
};

/*
 * Serves the accepted connection `fd` until its association is over; takes `fd` in every case.
 * Blocks; any number of threads may be in here at once, and a silent peer delays only its own.
 * Accepts C-ECHO, C-STORE of what dicom_peek accepts in the transfer syntaxes that can be decoded
 * (of those proposed, the one proposed first), and N-EVENT-REPORTs of storage commitment. 0 when
 * the peer released the association. A data set longer than max_instance ends the association; one
 * that is not kept does so after 256 MiB. Codes: INSTANCE_TOO_LARGE (-EFBIG), DISK_FULL (-ENOSPC), ASSOCIATION_REFUSED (-EACCES), ASSOCIATION_ABORTED
 * (-ECONNABORTED: by the peer, or it vanished), ASSOCIATION_TIMEOUT (-ETIMEDOUT),
 * ASSOCIATION_INVALID (-EPROTO: not DICOM, or a violation of it), ASSOCIATION_STOPPED
 * (-ECANCELED), TLS_HANDSHAKE_FAILED (-EPROTO), OUT_OF_MEMORY (-ENOMEM).
 */
int dicom_serve(int fd, const struct dicom_serve_options *options,
                const struct dicom_receiver *receiver, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
