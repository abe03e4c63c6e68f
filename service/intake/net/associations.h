/*
 * associations.h - a thread for each association, and what it may do.
 *
 * The threads run dicom_serve with the receiver behind it. Everything here is called on the loop's
 * thread.
 */
#ifndef NOCTULE_ASSOCIATIONS_H
#define NOCTULE_ASSOCIATIONS_H

#include "service/common/settings.h"
#include "service/intake/net/admission.h"
#include "service/intake/net/receive.h"

struct associations;

/* The loop turns after associations have ended. */
int associations_open(uv_loop_t *loop, struct receiver *receiver,
                      struct associations **associations);

struct connection {
    int fd; /* accepted */
    bool tls;
    bool busy; /* it is one too many: refuse it, but by the protocol */
    char host[ADMISSION_HOST];
};

/* Serves the connection with these settings, to its end; takes its descriptor in every case. */
int associations_begin(struct associations *associations, struct settings *settings,
                       const struct connection *connection);
size_t associations_count(const struct associations *associations); /* of those not `busy` */
size_t associations_busy(const struct associations *associations);  /* of those */
/* Of both, those from this host that have not said yet who they are. */
size_t associations_unknown(struct associations *associations, const char *host);

/* Each ends once its message under way has been answered; no other may begin. */
void associations_stop(struct associations *associations);
/* After associations_stop, when none is left: the loop may end. */
void associations_close(struct associations *associations);
void associations_free(struct associations *associations); /* NULL is allowed */

#endif
