/*
 * relative.h - value ranges derived from the values of a region: percentiles, Otsu's classes, mean
 * and standard deviation, a fraction of the maximum.
 *
 * They are computed from the region's histogram (texture_histogram_run), which is exact on every
 * backend. The caller's thread computes them in double precision in a fixed order, so that results
 * are identical on every backend. Ranges include both ends.
 */
#ifndef NOCTULE_KERNELS_MASK_RELATIVE_H
#define NOCTULE_KERNELS_MASK_RELATIVE_H

#include "base/error.h"
#include "base/image.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MASK_MOST_CLASSES = 8 };

/* Real-world values in increasing order, and the number of times each occurs, at least once.
 * `total` is the sum of counts. */
struct mask_tally {
    double *values;
    uint64_t *counts;
    size_t count;
    uint64_t total;
};

/* Makes a tally of `tables` histograms, one for all slices or one per slice, each with its rescale.
 * The caller must free it with mask_tally_free. Returns 0 or -ENOMEM. */
int mask_tally_make(enum image_pixel pixel, const uint64_t *histograms, size_t tables,
                    const struct image_rescale *rescales, struct mask_tally *tally, struct error *error);
void mask_tally_free(struct mask_tally *tally);

/* Returns the max bytes needed to make a tally of so many counts and distinct values, and to
 * compute a range from it: by Otsu with `classes` classes, otherwise 0. */
size_t mask_range_bytes(size_t counts, size_t values, int classes);

/* These functions return 0, or -ENODATA without filling the error if the tally has no value, or
 * fewer values than classes. */

/* From the p-th to the q-th percentile: the least values that at least p or q of 100 values do not
 * exceed. */
int mask_range_percentile(const struct mask_tally *tally, double p, double q, double range[2]);

/*
 * Class `number` (1 is the lowest) of `classes` (2 .. MASK_MOST_CLASSES) with the largest variance
 * between classes (Otsu 1979). Of equal splits, takes that with larger upper classes. The range is
 * from the class's least to its largest value.
 */
int mask_range_otsu(const struct mask_tally *tally, int classes, int number, double range[2], struct error *error);

/* Mean -+ s standard deviations (of the population). */
int mask_range_sigma(const struct mask_tally *tally, double s, double range[2]);

/* From this fraction of the largest value on. */
int mask_range_of_max(const struct mask_tally *tally, double share, double range[2]);

#ifdef __cplusplus
}
#endif
#endif
