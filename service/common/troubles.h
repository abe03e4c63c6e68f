/* troubles.h - how bad it is what the daemon tells with PING's answer, and of what kind. */
#ifndef NOCTULE_COMMON_TROUBLES_H
#define NOCTULE_COMMON_TROUBLES_H

enum trouble_level {
    TROUBLE_JOBS_WAIT, /* none: why jobs that are ready do not run yet */
    TROUBLE_ATTENTION, /* somebody should look at it */
    TROUBLE_BROKEN,    /* something that the service is for is not done */
};

/* Of what is broken. */
enum trouble_kind {

#define TROUBLE(kind, message) TROUBLE_##kind,
#include "service/common/troubles.def"
    TROUBLE_KINDS
};

#endif
