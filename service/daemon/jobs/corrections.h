/*
 * corrections.h - corrected masks: a SEG or RTSTRUCT whose regions have names of segments of a result under review.
 *
 * A job measures these masks in place of those of the result, and ends under review. The result stays under review: a
 * rejection of the correction returns to it, and an acceptance supersedes it.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_CORRECTIONS_H
#define NOCTULE_SERVICE_DAEMON_JOBS_CORRECTIONS_H

#include "service/daemon/core.h"

/*
 * Handles a new annotation object. `regions`: the names of its regions, a line each. Sets *is_correction if a job measures
 * its masks. only: the job for which a person uploaded it, or 0; the audit has a row for any other. An object that cannot be used makes an event CORRECTION_REFUSED. An object that a pipeline of its series
 * reads is input, not a correction, unless it refers to a result. Returns 0 or -errno.
 */
int corrections_object_arrived(struct core *core, int64_t object_id, const struct queue_object *object,
                               const char *regions, int64_t only, bool *is_correction);

/* Checks whether an object that is not stored would be measured for the job, and changes nothing. Returns 0, -EINVAL with
 * a code and a message, or another -errno. */
int corrections_try(struct core *core, const struct queue_object *object, const char *regions, int64_t job,
                    struct error *refusal);

#endif
