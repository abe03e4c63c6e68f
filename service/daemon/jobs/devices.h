/*
 * devices.h - which of a machine's GPUs get a worker each, and in which order? Pure: no I/O.
 *
 * Named ones (compute.devices: an index, or a UUID in any case) in the order of their names; all
 * that were found when none is named. One that is named twice counts once.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_DEVICES_H
#define NOCTULE_SERVICE_DAEMON_JOBS_DEVICES_H

#include "kernels/gpu.h"

#include <stddef.h>

#define DEVICES_MAX 16

struct devices_choice {
    size_t chosen[DEVICES_MAX]; /* indices into what was found */
    size_t chosen_count;
    size_t missing[DEVICES_MAX]; /* indices into the names: not there */
    size_t missing_count;
};

/*
 * How many of the workers share the processors of the i-th: nodes[] has the node that each is bound to,
 * -1: none, and it runs on all.
 */
int devices_share(const int *nodes, size_t count, size_t i);

/* What goes beyond DEVICES_MAX is left out. */
void devices_choose(const struct kernels_gpu *found, size_t found_count, char *const *names,
                    size_t name_count, struct devices_choice *choice);

#endif
