/* delivery_routes.c - finds the destinations of a job's results. Declared in deliveries.h. */
#include "service/daemon/delivery/deliveries.h"

#include "service/common/clock.h"
#include "service/common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds the destination that sent the series. *found stays NULL without one. */
static int
routes_find_sender(struct core *core, const struct queue_job *job, const struct conf_destination **found)
{
    struct queue_series series;
    char detail[160];
    int error = queue_get_series(core->queue, job->series_id, &series);
    if (error)
        return error;
    const char *sender = series.sender ? series.sender : "";
    const struct conf_destination *destination = *sender ? conf_find_destination_ae(core->conf, sender) : NULL;
    if (destination) {
        *found = destination;
    } else {
        snprintf(detail, sizeof detail, "job %" PRId64 ": %s%s", job->id,
                 *sender ? "no destination has the AE title " : "the series was not sent by an AE", sender);
        log_warn("delivery.no_sender", LOG_INT("job", job->id), LOG_STR("sender", sender));
        error = queue_note(core->queue, "NO_SENDER", detail, clock_unix_ms());
    }
    queue_series_clear(&series);
    return error;
}

int
routes_find(struct core *core, int64_t id, struct routes *routes)
{
    struct queue_job job;
    *routes = (struct routes){0};
    int error = queue_get_job(core->queue, id, &job);
    if (error)
        return error;
    const struct conf_pipeline *pipeline = conf_find_pipeline(core->conf, job.pipeline);
    const size_t count = pipeline ? pipeline->deliver_count : 0;
    if (!pipeline)
        log_warn("delivery.no_pipeline", LOG_INT("job", id), LOG_STR("pipeline", job.pipeline));
    routes->destinations = calloc(count + 1, sizeof *routes->destinations);
    routes->takes = calloc(count + 1, sizeof *routes->takes);
    routes->texts = calloc(count + 1, sizeof *routes->texts);
    error = routes->destinations && routes->takes && routes->texts ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && !error; i++) {
        const struct conf_destination *destination = NULL;
        if (strcmp(pipeline->deliver[i], CONF_SENDER) == 0)
            error = routes_find_sender(core, &job, &destination);
        else
            destination = conf_find_destination(core->conf, pipeline->deliver[i]);
        if (!destination)
            continue;
        conf_takes(destination, routes->texts[routes->count]);
        routes->takes[routes->count] = routes->texts[routes->count];
        routes->destinations[routes->count++] = destination->name;
    }
    queue_job_clear(&job);
    return error;
}

void
routes_free(struct routes *routes)
{
    free(routes->destinations);
    free(routes->takes);
    free(routes->texts);
}
