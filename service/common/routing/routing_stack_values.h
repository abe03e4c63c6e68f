/*
 * routing_stack_values.h - what rules ask of attributes, of the first slice of each stack of a series: the
 * file, or the frame of an enhanced one, that lies lowest along the normal.
 */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_STACK_VALUES_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_STACK_VALUES_H

#include "base/error.h"
#include "dicom/read/geometry/geometry.h"

/*
 * values[i] (malloc'd; NULL: not known) of stack i, as dicom_read_values has them; each file is read
 * once. -errno with the error of the first that could not be read: then some are not known.
 */
int stack_values_read(const struct geometry_series *series, const char *const *paths,
                      const char *asked, char **values, struct error *error);

#endif
