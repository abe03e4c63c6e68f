/*
 * delivery_routes.h - finds the destinations of a job's results.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERY_ROUTES_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERY_ROUTES_H

#include "service/daemon/core.h"

/* Names of destinations, valid as long as the configuration in force. */
struct routes {
    const char **destinations;
    size_t count;
};

/*
 * Finds the destinations under `deliver` of the job's pipeline in the configuration in force. If
 * the sending AE is not a destination, adds an event in the open transaction and no route. The
 * caller must call routes_free() also after a failure.
 */
int routes_find(struct core *core, int64_t job, struct routes *routes);
void routes_free(struct routes *routes);

#endif
