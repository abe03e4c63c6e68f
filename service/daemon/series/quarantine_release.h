/* quarantine_release.h - quarantined files that an operator releases or forgets. */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_QUARANTINE_RELEASE_H
#define NOCTULE_SERVICE_DAEMON_SERIES_QUARANTINE_RELEASE_H

#include "service/daemon/core.h"

/* Links file `id` into released/, where the intake receives it again. Call within the open batch; 0 or -errno, for which
 * queue_reason() has the words. */
int released_release(struct core *core, int64_t id, const char *by);

/* The origin of a file that came from released/, as of its first arrival. */
struct released {
    int64_t id;   /* 0: the file is none */
    char *source; /* "scu:CT1", "inbox:/srv/inbox" */
    char *sender; /* calling AE title; "" */
    char *called_ae;
};

/* Reads the origin by the source or original path that the intake reports. Release it with released_clear(). */
int released_find(struct core *core, const char *source, struct released *released);
void released_clear(struct released *released);

#endif
