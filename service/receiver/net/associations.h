/*
 * associations.h - one thread per association, and its admission.
 *
 * The threads run dicom_serve and pass its events to the receiver. Unless stated otherwise,
 * functions must be called on the loop's thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_NET_ASSOCIATIONS_H
#define NOCTULE_SERVICE_RECEIVER_NET_ASSOCIATIONS_H

#include "service/common/settings.h"
#include "service/receiver/net/caller_counts.h"
#include "service/receiver/net/receive.h"

struct associations;

/* Creates the set. The loop is woken when associations have ended. Borrows `callers`, which counts
 * rejected callers. Returns 0 or -errno. */
int associations_open(uv_loop_t *loop, struct receive_queue *queue, struct callers *callers,
                      struct associations **associations);

struct connection {
    int fd; /* the accepted socket */
    bool tls;
    /* The request is incomplete: reading it occupies a thread, as a TLS handshake does. */
    bool partial;
    char host[ADMISSION_HOST];
};

/* Serves a connection with these settings until it ends. Takes ownership of the descriptor in any
 * case. Returns 0 or -errno. */
int associations_begin(struct associations *associations, struct settings *settings,
                       const struct connection *connection);
/* Returns the number of threads. */
size_t associations_count(const struct associations *associations);

/* Returns the decision for a caller at this moment, without admitting it. */
enum admission_verdict associations_check(struct associations *associations, const struct conf_dicom *conf,
                                          const struct admission_caller *caller);
/* Logs a rejection and counts it for the report. Thread-safe. */
void associations_note_refusal(struct associations *associations, enum admission_verdict verdict,
                               const struct admission_caller *caller);

/* Counts of connections that are not yet admitted: in a handshake, sending a long request, or being rejected. */
struct associations_unadmitted {
    size_t of_host, of_all;
};

struct associations_unadmitted associations_unadmitted(struct associations *associations, const char *host);

/* Lets each association end after its current message. No new one may begin. */
void associations_stop(struct associations *associations);
/* Closes the set. May be called after associations_stop once the count is 0; the loop can then end. */
void associations_close(struct associations *associations);
void associations_free(struct associations *associations); /* NULL is allowed */

#endif
