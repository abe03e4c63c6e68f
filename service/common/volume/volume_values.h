/*
 * volume_values.h - the values of a volume file as numbers.
 */
#ifndef NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_VALUES_H
#define NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_VALUES_H

#include "service/common/volume/volume_file.h"

#include <stddef.h>

/* Returns the bytes per value. */
size_t volume_type_size(enum volume_type type);

/* Converts `count` values, which need not be aligned; `swapped`: in the other byte order. */
void volume_values(enum volume_type type, bool swapped, const void *bytes, int64_t count, double *values);

#endif
