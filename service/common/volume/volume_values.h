/*
 * volume_values.h - a value of a volume file as a number.
 */
#ifndef NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_VALUES_H
#define NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_VALUES_H

#include "service/common/volume/volume_file.h"

#include <stddef.h>

/* Returns the bytes per value. */
size_t volume_type_size(enum volume_type type);

/* Returns a value, which need not be aligned; `swapped`: in the other byte order. */
double volume_value(enum volume_type type, bool swapped, const void *bytes);

#endif
