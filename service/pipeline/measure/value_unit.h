/*
 * value_unit.h - the unit of a volume's values.
 */
#ifndef NOCTULE_VALUE_UNIT_H
#define NOCTULE_VALUE_UNIT_H

#include "dicom/read/geometry/geometry.h"
#include "service/common/jobs/feature.h"

/* UCUM unit of the stack's real-world values to a power: "[hnsf'U]", "(Bq/ml)2"; "1" where it is
 * not known, and for power 0. */
void texture_value_unit(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                        int power, char unit[FEATURE_TERM]);

/* As people write it: "HU", "" for "1"; any other as it is. */
const char *value_unit_spoken(const char *unit);

#endif
