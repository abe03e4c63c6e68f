/*
 * stow.h - the calling side of STOW-RS (PS3.18, 10.5): one instance a request, over HTTP or HTTPS.
 *
 * Calls block, within the times of the destination, and return 0 or -errno with an error. A stow belongs
 * to one thread at a time; it keeps its connection for the next call. What a failure means for a
 * delivery, dicom_outcome_of() says, as of a C-STORE: a failure reason is such a status.
 */
#ifndef NOCTULE_SERVICE_COMMON_STOW_STOW_H
#define NOCTULE_SERVICE_COMMON_STOW_STOW_H

#include "config/config.h"
#include "dicom/net/scu.h"

struct stow;

/* The destination has to outlive it. Codes: HTTP_FAILED (there is no libcurl), OUT_OF_MEMORY. */
int stow_open(const struct conf_destination *destination, struct stow **stow, struct error *error);
void stow_close(struct stow *stow); /* NULL is allowed */

/*
 * Sends a DICOM file as it is. 0: the answer says that this instance is stored, answer->status being its
 * warning, or 0. A server that asked to be left alone for a time (503, Retry-After) is not called before.
 * Codes: PEER_UNREACHABLE, PEER_ABORTED, TLS_FAILED, CREDENTIALS_UNREADABLE, HTTP_FAILED, HTTP_REFUSED,
 * STORE_REFUSED, STORE_FAILED, FILE_UNREADABLE, OUT_OF_MEMORY.
 */
int stow_store(struct stow *stow, const char *file, const char *sop_instance,
               struct dicom_answer *answer, struct error *error);

/* Is there a server that lets us in? `greeting` gets what it said. The codes above. */
int stow_echo(struct stow *stow, char *greeting, size_t size, struct error *error);

#endif
