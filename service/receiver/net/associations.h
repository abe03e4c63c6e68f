/*
 * associations.h - a thread for each association, and what it may do.
 *
 * The threads run dicom_serve with the receiver behind it. Everything here is called on the loop's
 * thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_NET_ASSOCIATIONS_H
#define NOCTULE_SERVICE_RECEIVER_NET_ASSOCIATIONS_H

#include "service/common/settings.h"
#include "service/receiver/net/caller_counts.h"
#include "service/receiver/net/receive.h"

struct associations;

/* The loop turns after associations have ended. */
int associations_open(uv_loop_t *loop, struct receiver *receiver,
                      struct associations **associations);

struct connection {
    int fd; /* accepted */
    bool tls;
    bool
        partial; /* its request is not all there: reading it takes up a thread, as a TLS handshake does */
    char host[ADMISSION_HOST];
};

/* Serves the connection with these settings, to its end; takes its descriptor in every case. */
int associations_begin(struct associations *associations, struct settings *settings,
                       const struct connection *connection);
size_t associations_count(const struct associations *associations); /* of threads */

/* What would be said to the caller now; nothing is taken up by it. */
enum admission_verdict associations_judge(struct associations *associations,
                                          const struct conf_dicom *conf,
                                          const struct admission_caller *caller);
/* Logs a rejection and counts it for the report. Any thread. */
void associations_note_refusal(struct associations *associations, enum admission_verdict verdict,
                               const struct admission_caller *caller);
/* As callers_report. */
bool associations_report_callers(struct associations *associations, int64_t now_ms,
                                 struct proto_writer *writer, int64_t *wait_ms);

/* Those that have not been admitted: they shake hands, send a long request, or are turned away. */
struct associations_strangers {
    size_t of_host, of_all;
};

struct associations_strangers associations_strangers(struct associations *associations,
                                                     const char *host);

/* Each ends once its message under way has been answered; no other may begin. */
void associations_stop(struct associations *associations);
/* After associations_stop, when none is left: the loop may end. */
void associations_close(struct associations *associations);
void associations_free(struct associations *associations); /* NULL is allowed */

#endif
