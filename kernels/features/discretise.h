/*
 * discretise.h - the level of every value that a pixel may have. Pure functions; any thread.
 */
#ifndef NOCTULE_DISCRETISE_H
#define NOCTULE_DISCRETISE_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Fills level_of (texture.h), a table per rescale, and returns the number of levels in *levels, at
 * least 2; lo and hi are the smallest and largest real-world value of the region after
 * re-segmentation, lo > hi that of an empty one, all of whose values are left out. Fixed bins start
 * at the lower end of the range, where there is one, else at lo. -ERANGE when more than
 * TEXTURE_MAX_LEVELS would be needed, or the options make none; -EDOM when stored-256 is asked for
 * stored values within lo .. hi that are not 0 .. 255. On an error level_of is undefined.
 */
int discretise(const struct discretisation_options *options, const struct image_rescale *rescales,
               size_t table_count, size_t values, int32_t smallest, double lo, double hi,
               uint16_t *level_of, int *levels);

/* The most levels that a region of values from lo to hi may get. */
int discretise_most_levels(const struct discretisation_options *options, double lo, double hi);

#ifdef __cplusplus
}
#endif
#endif
