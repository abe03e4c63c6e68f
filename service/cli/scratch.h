/*
 * scratch.h - a local folder of a process: WHERE/noctule-step-XXXXXX, for the results of a step and for programs of the
 * site. It is locked while in use, so that other processes can remove folders of killed ones.
 */
#ifndef NOCTULE_SERVICE_CLI_SCRATCH_H
#define NOCTULE_SERVICE_CLI_SCRATCH_H

#include "base/error.h"

struct scratch {
    char *path;     /* absolute; NULL: not open */
    char *results;  /* inside it, for the job's output */
    char *programs; /* inside it, for program_masks.h */
    int fd;
};

/* Returns the folder `given`, or the default: $TMPDIR, else /tmp. */
const char *scratch_where(const char *given);
/* Removes folders of killed processes of this user below `where`, and creates the folder there. Returns 0 or -errno with
 * a message. The caller must call scratch_close in either case. A process that is forked later would keep the lock. */
int scratch_open(struct scratch *scratch, const char *where, struct error *error);
/* Removes the results of one job. */
void scratch_clear(const struct scratch *scratch);
/* Removes the folder with its content. */
void scratch_close(struct scratch *scratch);

#endif
