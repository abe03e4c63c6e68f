/*
 * devices.h - selects the GPUs that get a worker each, and their order. Pure: no I/O.
 *
 * GPUs listed in compute.devices (an index, or a UUID in any case) are taken in the order of that list, or all GPUs
 * found if the list is empty. A duplicate counts once.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_DEVICES_H
#define NOCTULE_SERVICE_DAEMON_JOBS_DEVICES_H

#include "kernels/gpu.h"

#include <stddef.h>

#define DEVICES_MAX 16

struct devices_choice {
    size_t chosen[DEVICES_MAX]; /* indices into the GPUs found */
    size_t chosen_count;
    size_t missing[DEVICES_MAX]; /* indices into the names that were not found */
    size_t missing_count;
};

/* Selects the devices; ignores any beyond DEVICES_MAX. */
void devices_choose(const struct kernels_gpu *found, size_t found_count, char *const *names, size_t name_count,
                    struct devices_choice *choice);

#endif
