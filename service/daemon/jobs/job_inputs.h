/* job_inputs.h - the files of a series as inputs of a job, or of a program. */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_JOB_INPUTS_H
#define NOCTULE_SERVICE_DAEMON_JOBS_JOB_INPUTS_H

#include "service/common/jobs/job_file.h"
#include "service/daemon/core.h"

/* Fills the inputs and their digests. Returns 0 or -errno. Free them with job_inputs_free(), also after an error. */
int job_inputs_find(const struct core *core, int64_t series_id, struct job_spec *spec);
void job_inputs_free(struct job_spec *spec);

#endif
