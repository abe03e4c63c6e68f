/*
 * measure_resegment.h - the intensity mask of a region (IBSI 2.5): which of its values count. Pure; any
 * thread.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_RESEGMENT_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_RESEGMENT_H

#include "kernels/features/family.h"

/*
 * Takes out of a region's histograms, [tables][values] without padding, what the volume's options
 * leave out: values beyond the range, and values farther from the mean than so many standard
 * deviations. Mean and deviation (the population's) are those of the region as it was; where both
 * are asked for a value has to be within both. kept[0] .. kept[1], both inclusive and in real-world
 * units, is what may be left: -INFINITY .. INFINITY where nothing is asked for. extremes are the smallest and
 * the largest real-world value that is; INFINITY, -INFINITY: there is none.
 */
void resegment(const struct feature_volume *volume, uint64_t *histograms, double kept[2],
               double extremes[2]);

#endif
