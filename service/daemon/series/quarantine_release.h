/* quarantine_release.h - quarantined files that an operator releases or forgets. */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_QUARANTINE_RELEASE_H
#define NOCTULE_SERVICE_DAEMON_SERIES_QUARANTINE_RELEASE_H

#include "service/daemon/core.h"

/* Links file `id` into released/, where the receiver imports it again. Must be called in the open
 * batch. Returns 0, or -errno with the reason in queue_reason(). */
int quarantine_release_link(struct core *core, int64_t id, const char *by);

/* The origin of a file that came from released/, as of its first arrival. */
struct released {
    int64_t id;   /* 0: not a released file */
    char *source; /* "scu:CT1", "inbox:/srv/inbox" */
    char *sender; /* calling AE title; "" */
    char *called_ae;
};

/* Reads the origin by the source or original path that the receiver reports. The caller must call
 * quarantine_release_clear(). */
int quarantine_release_find(struct core *core, const char *source, struct released *released);
void quarantine_release_clear(struct released *released);

#endif
