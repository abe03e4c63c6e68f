/*
 * routing_stack_values.h - read the attributes that rules check from the first slice of each stack:
 * the file, or the frame of an enhanced image, that is lowest along the normal.
 */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_STACK_VALUES_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_STACK_VALUES_H

#include "base/error.h"
#include "dicom/read/geometry/geometry.h"

/*
 * Reads values[i] of each stack i, in the form of dicom_read_values. The caller must free each;
 * NULL: unknown. Each file is read once. Returns 0, or -errno with the error of the first file that
 * could not be read; some values are then unknown.
 */
int stack_values_read(const struct geometry_series *series, const char *const *paths,
                      const char *asked, char **values, struct error *error);

#endif
