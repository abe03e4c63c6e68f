/*
 * reviews.c - accepts results under review, at once or when the decision of the web UI can no longer be undone.
 * Declared in daemon.h.
 */
#include "service/daemon/daemon.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/delivery/deliveries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int
reviews_check_pipeline(struct core *core, int64_t id, char *text, size_t size)
{
    struct queue_job job;
    int error = queue_get_job(core->queue, id, &job);
    if (error)
        return error;
    if (job.state == QUEUE_REVIEW && !conf_find_pipeline(core->conf, job.pipeline)) {
        snprintf(text, size, "%s: the configuration has no pipeline %s, so the destinations of its results are unknown",
                 code_name(CODE_NO_SUCH_PIPELINE), job.pipeline);
        error = -EINVAL;
    }
    queue_job_clear(&job);
    return error;
}

int
reviews_accept(struct core *core, int64_t id, const char *by, char *text, size_t size)
{
    struct routes routes;
    struct queue_job job = {0};
    int error = reviews_check_pipeline(core, id, text, size);
    if (error)
        return error;
    error = routes_find(core, id, &routes);
    if (!error)
        error = queue_accept_job(core->queue, id, routes.destinations, routes.takes, routes.count, by, clock_unix_ms());
    if (!error)
        error = queue_get_job(core->queue, id, &job);
    if (!error) {
        snprintf(text, size, "job %" PRId64 " is accepted%s", id,
                 job.state == QUEUE_EMPTY ? ": it has no results to deliver"
                 : routes.count > 0       ? ", and its results are delivered"
                                          : "; its pipeline has no destinations");
        queue_job_clear(&job);
    }
    routes_free(&routes);
    due_now(&core->deliveries_due);
    return error;
}

/* Returns 0 or -errno of the database. A decision that fails otherwise is dropped: the job stays under review. */
static int
reviews_end(struct core *core, const struct queue_decision *decision)
{
    char text[512] = "", why[600];
    const int64_t now_ms = clock_unix_ms();
    const int error = decision->accepts
                          ? reviews_accept(core, decision->job_id, decision->by, text, sizeof text)
                          : queue_reject_job(core->queue, decision->job_id, decision->reason, decision->by, now_ms);
    if (!error || core_is_transient(error))
        return error;
    snprintf(why, sizeof why, "the decision of %s has no effect: %s", decision->by,
             *text ? text : queue_reason(core->queue));
    log_warn("review.dropped", LOG_INT("job", decision->job_id), LOG_STR("reason", why));
    return queue_drop_decision(core->queue, decision->job_id, why, now_ms);
}

void
reviews_tick(struct core *core)
{
    struct queue_decision decision;
    int due = 0;
    while (!core_closed(core) && (due = queue_due_decision(core->queue, clock_unix_ms(), &decision)) == 0) {
        const bool failed =
            !core_change(core) || core_failed(core, reviews_end(core, &decision), "carry out a decision of a review");
        queue_decision_clear(&decision);
        if (failed)
            return;
    }
    if (due < 0)
        core_failed(core, due, "find decisions on reviews");
}
