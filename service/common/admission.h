/*
 * admission.h - who may do what on an association: a pure decision from the configuration and what
 * is known of the caller.
 *
 * Nobody is known who is not in dicom.peers. Of several rows with the caller's AE title the first
 * counts of which everything that it asks for fits. Any thread.
 */
#ifndef NOCTULE_SERVICE_COMMON_ADMISSION_H
#define NOCTULE_SERVICE_COMMON_ADMISSION_H

#include "config/config.h"

#include <sys/socket.h>

#define ADMISSION_HOST 46 /* the longest numeric IPv6 address and the end */

struct admission_caller {
    const char *calling_ae, *called_ae; /* without padding */
    const char *host;                   /* as admission_host writes it */
    const char *certificate;            /* 64 lower-case hexadecimal digits; "": none was shown */
};

enum admission_verdict {
    ADMISSION_GRANTED,
    ADMISSION_ECHO_ONLY,
    ADMISSION_UNKNOWN_CALLER,    /* no peer has its AE title */
    ADMISSION_OTHER_ADDRESS,     /* a peer has it, at another address */
    ADMISSION_OTHER_CERTIFICATE, /* a peer has it, with another certificate */
    ADMISSION_UNKNOWN_TITLE,     /* it calls an AE title that is not ours */
    ADMISSION_BUSY, /* there are as many associations as there may be, or of the peer */
};

/* The row of the peer that the caller is; NULL: it is none. */
const struct conf_peer *admission_peer(const struct conf_dicom *conf,
                                       const struct admission_caller *caller);

/* Returns why the caller is no peer. */
enum admission_verdict admission_mismatch(const struct conf_dicom *conf,
                                          const struct admission_caller *caller);

/* Associations that are there already. */
struct admission_load {
    int of_peer; /* of the caller's */
    int of_peers;
    int of_strangers; /* for C-ECHO alone */
    int leaving;      /* that are over, of peers who have not closed the connection yet */
};

/* How many a peer may have at a time: where its row does not say, half of all, so that no peer keeps
 * the others out; the only peer may have all. */
int admission_share(const struct conf_dicom *conf, const struct conf_peer *peer);

enum admission_verdict admission_decide(const struct conf_dicom *conf,
                                        const struct admission_caller *caller,
                                        const struct admission_load *load);

/* Do two rows, perhaps of two configurations, stand for the same peer? */
bool admission_same_peer(const struct conf_peer *a, const struct conf_peer *b);

/* The numeric address; one of IPv4 that comes over an IPv6 socket is written as IPv4. */
void admission_host(const struct sockaddr *address, char host[ADMISSION_HOST]);

#endif
