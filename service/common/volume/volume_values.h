/*
 * volume_values.h - values of a volume file as numbers, and runs of them.
 */
#ifndef NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_VALUES_H
#define NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_VALUES_H

#include "service/common/volume/volume_file.h"

#include <stddef.h>

/* Returns the bytes per value. */
size_t volume_type_size(enum volume_type type);

/* Returns a value, which need not be aligned; `swapped`: in the other byte order. */
double volume_value(enum volume_type type, bool swapped, const void *bytes);

/* Sets the values of `count` adjacent ones. */
void volume_values(enum volume_type type, bool swapped, const void *bytes, int64_t count, double *values);

/* Returns how many of `count` values of `size` bytes are the same as the first; at least 1. */
int64_t volume_run(const void *values, int64_t count, size_t size);

#endif
