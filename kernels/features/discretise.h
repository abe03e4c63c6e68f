/* discretise.h - the level of every possible pixel value. Pure functions. Threads: any. */
#ifndef NOCTULE_KERNELS_FEATURES_DISCRETISE_H
#define NOCTULE_KERNELS_FEATURES_DISCRETISE_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DISCRETISE_MAX_LEVELS 65536

/*
 * Fills level_of (texture.h), one table per rescale. Sets *levels to the number of levels, at least
 * 2. lo and hi are the smallest and largest real-world value of the region after re-segmentation.
 * lo > hi means an empty region, where all values are excluded. Fixed bins start at the lower end
 * of the range, if there is one, otherwise at lo. Does not fill level_of for more than
 * TEXTURE_MAX_LEVELS. Returns -ERANGE if the options need more than DISCRETISE_MAX_LEVELS or yield
 * no level. Returns -EDOM if stored-256 is requested for stored values
 * within lo .. hi outside 0 .. 255. After an error level_of is undefined.
 */
int discretise(const struct discretisation_options *options, const struct image_rescale *rescales, size_t table_count,
               size_t values, int32_t smallest, double lo, double hi, uint16_t *level_of, int *levels);

/* Reference points of a discretisation: the region's extremes, and the value at which levels begin. */
struct discretise_rule {
    const struct discretisation_options *options; /* borrowed */
    double lo, hi;
    double origin;
};

/* Does the same as discretise() for values without tables. discretise_count() sets the number of levels and returns 0
 * or -ERANGE. discretise_value() returns the level of a value from lo to hi, for each rule but stored-256. */
int discretise_count(const struct discretisation_options *options, double lo, double hi, int *levels);
struct discretise_rule discretise_rule_of(const struct discretisation_options *options, double lo, double hi);
uint32_t discretise_value(const struct discretise_rule *rule, double value);

/* Sets the levels of `count` values, at most TEXTURE_MAX_LEVELS. Those of values beyond lo .. hi have no meaning. */
void discretise_values(const struct discretise_rule *rule, const double *values, int64_t count, uint16_t *levels);

/* Returns the max number of levels for a region with values lo to hi. */
int discretise_most_levels(const struct discretisation_options *options, double lo, double hi);

#ifdef __cplusplus
}
#endif
#endif
