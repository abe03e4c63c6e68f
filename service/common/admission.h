/*
 * admission.h - admission of associations: a pure decision from the configuration and the caller's data.
 *
 * A caller must be a row of dicom.peers. If several rows have its AE title, the first row that it
 * meets completely counts. Thread-safe.
 */
#ifndef NOCTULE_SERVICE_COMMON_ADMISSION_H
#define NOCTULE_SERVICE_COMMON_ADMISSION_H

#include "config/config.h"

#include <sys/socket.h>

#define ADMISSION_HOST 46 /* the longest numeric IPv6 address and the terminator */

struct admission_caller {
    const char *calling_ae, *called_ae; /* without padding */
    const char *host;                   /* as admission_host writes it */
    /* SHA-256, 64 lower-case hexadecimal digits; "": no certificate. */
    const char *certificate;
};

enum admission_verdict {
    ADMISSION_GRANTED,
    ADMISSION_ECHO_ONLY,
    ADMISSION_UNKNOWN_CALLER,    /* no peer has this AE title */
    ADMISSION_OTHER_ADDRESS,     /* the peer with this AE title has another address */
    ADMISSION_OTHER_CERTIFICATE, /* the peer with this AE title has another certificate */
    ADMISSION_UNKNOWN_TITLE,     /* the called AE title is not one of ours */
    ADMISSION_BUSY,              /* the limit of all associations or of this peer is reached */
};

/* Returns the caller's row of dicom.peers, or NULL if it is not a peer. */
const struct conf_peer *admission_peer(const struct conf_dicom *conf, const struct admission_caller *caller);

/* Returns the reason for which the caller is not a peer. */
enum admission_verdict admission_mismatch(const struct conf_dicom *conf, const struct admission_caller *caller);

/* Counts of open associations. */
struct admission_load {
    int of_peer; /* of the caller's peer row */
    int of_peers;
    int of_unknown; /* of unknown callers, which may only send C-ECHO */
    int leaving;    /* released, but not yet closed by the peer */
};

/* Returns the peer's limit of associations. If its row sets no limit, this is half of
 * dicom.max_associations, so that one peer cannot block the others. A single peer may have all. */
int admission_share(const struct conf_dicom *conf, const struct conf_peer *peer);

enum admission_verdict admission_decide(const struct conf_dicom *conf, const struct admission_caller *caller,
                                        const struct admission_load *load);

/* Returns whether two rows, possibly of two configurations, mean the same peer. */
bool admission_same_peer(const struct conf_peer *a, const struct conf_peer *b);

/* Writes the numeric address. An IPv4 address mapped to IPv6 is written as IPv4. */
void admission_host(const struct sockaddr *address, char host[ADMISSION_HOST]);

#endif
