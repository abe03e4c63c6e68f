/*
 * measure_resegment.h - the intensity mask of a region (IBSI 2.5): the values that count.
 * Thread-safe.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_RESEGMENT_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_RESEGMENT_H

#include "kernels/features/family.h"

/*
 * Removes values from a region's histograms, [tables][values] without padding: those beyond the
 * range of the volume's options, and those farther from the mean than the given number of standard
 * deviations. Mean and (population) deviation are those of the original region. With both options a
 * value must satisfy both.
 *
 * kept[0] .. kept[1]: the inclusive interval of kept real-world values; -INFINITY .. INFINITY
 * without options. extremes: the smallest and the largest kept value; INFINITY, -INFINITY: no value
 * is left.
 */
void resegment(const struct feature_volume *volume, uint64_t *histograms, double kept[2],
               double extremes[2]);

#endif
