/*
 * pattern_maps.h - the local patterns of a job's volume: histograms of the regions, and maps.
 */
#ifndef NOCTULE_PATTERN_MAPS_H
#define NOCTULE_PATTERN_MAPS_H

#include "service/pipeline/measure/measure.h"

/* Adds to the result, with the errors of texture_measure. */
int texture_measure_patterns(const struct texture_request *request, struct texture_result *result,
                             struct error *error);

#endif
