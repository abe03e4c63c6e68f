/* routing_job.h - adds the jobs of a routing result (service/common/routing/routing_result.h). */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_ROUTING_JOB_H
#define NOCTULE_SERVICE_DAEMON_JOBS_ROUTING_JOB_H

#include "service/common/routing/routing_result.h"
#include "service/daemon/core.h"
#include "service/daemon/jobs/awaited.h"

/* One job to add. */
struct routing_job {
    const char *stack;
    const struct rules_pick *pick;
    bool again, dry_run; /* as in queue_new_job */
    const char *asked;   /* as in queue_new_job */
    int64_t id;          /* of the new job, or with -EEXIST of the existing one */
    /* The missing inputs of a new job, as code and text; "": it can start. */
    enum code lacks_code;
    char lacks[AWAITED_TEXT];
};

/* Adds a job in the open batch, as queue_add_job() does, and stops superseded jobs. */
int routing_add_job(struct core *core, const struct queue_series *series, struct routing_job *job);

#endif
