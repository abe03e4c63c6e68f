/*
 * measure_unit.h - the unit of a volume's values.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_UNIT_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_UNIT_H

#include "dicom/read/geometry/geometry.h"
#include "service/common/jobs/feature_document.h"

/*
 * Returns the UCUM unit of the stack's real-world values: "[hnsf'U]", "Bq/ml"; "1" if it is not
 * known.
 */
const char *value_unit_of(struct dicom_instance *const *instances,
                          const struct geometry_stack *stack);

/* Writes the unit to a power: "(Bq/ml)2"; "1" for power 0. */
void value_unit_raise(const char *base, int power, char unit[FEATURE_TERM]);

/* Returns the unit as people write it: "HU", "" for "1"; others unchanged. */
const char *value_unit_spoken(const char *unit);

#endif
