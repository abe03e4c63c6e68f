/* delivery_routes.h - where do the results of a job go? */
#ifndef NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERY_ROUTES_H
#define NOCTULE_SERVICE_DAEMON_DELIVERY_DELIVERY_ROUTES_H

#include "service/daemon/core.h"

/* Names of destinations; they live as long as the configuration in force. */
struct routes {
    const char **destinations;
    size_t count;
};

/*
 * By the configuration in force: what the job's pipeline says under `deliver`. A sender that is no
 * destination is an event (in the open transaction) and no route. Calls for routes_free also when
 * it fails.
 */
int routes_find(struct core *core, int64_t job, struct routes *routes);
void routes_free(struct routes *routes);

#endif
