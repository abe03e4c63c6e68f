/*
 * stow.h - client of STOW-RS (PS3.18, 10.5): one instance per request, over HTTP or HTTPS.
 *
 * Calls block, within the times of the destination, and return 0 or -errno with an error. An object must be used by one
 * thread at a time. It keeps its connection for the next call. dicom_outcome_of() classifies a failure as it does for
 * C-STORE: a failure reason counts as a C-STORE status.
 */
#ifndef NOCTULE_SERVICE_COMMON_STOW_STOW_H
#define NOCTULE_SERVICE_COMMON_STOW_STOW_H

#include "config/config.h"
#include "dicom/net/scu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stow;

/* Opens a client. The destination must outlive it. Codes: HTTP_FAILED (libcurl is missing), OUT_OF_MEMORY. */
int stow_open(const struct conf_destination *destination, struct stow **stow, struct error *error);
void stow_close(struct stow *stow); /* NULL is allowed */

/* Sends a DICOM file unchanged. Returns 0 if the response confirms that the instance is stored; answer->status is its
 * warning or 0. If the server requested a pause (503, Retry-After), it is not called before the pause ends. Codes:
 * PEER_UNREACHABLE, PEER_ABORTED, TLS_FAILED, CREDENTIALS_UNREADABLE, HTTP_FAILED, HTTP_REFUSED, STORE_REFUSED,
 * STORE_FAILED, FILE_UNREADABLE, OUT_OF_MEMORY. */
int stow_store(struct stow *stow, const char *file, const char *sop_instance, struct dicom_answer *answer,
               struct error *error);

/* Returns the HTTP status of the last answer; 0: there was none. */
long stow_status(const struct stow *stow);

/* Checks that the server is reachable and accepts the credentials. Writes its response to
 * `greeting`. Same codes as stow_store. */
int stow_echo(struct stow *stow, char *greeting, size_t size, struct error *error);

/* --------------------------------------------------------------------------- stow_answer.c ---- */

/* The result for one instance in a Store Instances Response (PS3.18, 10.5.3; PS3.3, C.12.1.1.25), as DICOM JSON or XML of
 * PS3.19. */

struct stow_answer {
    bool stored;     /* listed in (0008,1199) */
    bool failed;     /* listed in (0008,1198), or (0008,119A) has an unnamed failure */
    int32_t warning; /* (0008,1196); 0: no warning */
    int32_t reason;  /* (0008,1197); -1: no reason */
};

/* Parses an untrusted response. If it is malformed or cut off, the part before the error counts.
 * Fields that it does not contain are false. */
void stow_answer_read(const char *bytes, size_t size, const char *sop_instance, struct stow_answer *answer);

#endif
