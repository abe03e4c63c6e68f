/*
 * relative.h - ranges of values that follow from the values of a region: percentiles, Otsu's
 * classes, mean and standard deviation, a share of the maximum.
 *
 * They are computed from the region's histogram (texture_histogram_run), which is exact on every
 * backend, on the caller's thread in double precision and a fixed order: so they are the same
 * everywhere, too. Both ends belong to a range.
 */
#ifndef NOCTULE_RELATIVE_MASK_H
#define NOCTULE_RELATIVE_MASK_H

#include "base/error.h"
#include "base/image.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MASK_MOST_CLASSES = 8 };

/* Real-world values, rising, and how often each occurs, at least once; `total` of them all. */
struct mask_tally {
    double *values;
    uint64_t *counts;
    size_t count;
    uint64_t total;
};

/*
 * Of `tables` histograms, one for all slices or one a slice, each with its rescale. The caller's,
 * with mask_tally_free. 0 or -ENOMEM.
 */
int mask_tally_make(enum image_pixel pixel, const uint64_t *histograms, size_t tables,
                    const struct image_rescale *rescales, struct mask_tally *tally,
                    struct error *error);
void mask_tally_free(struct mask_tally *tally);

/* Bytes that histograms of so many counts take at most while a tally is made of them, with so many
 * different values, and a range of it: by Otsu in so many classes, else 0. */
size_t mask_range_bytes(size_t counts, size_t values, int classes);

/* All of these: 0, or -ENODATA, and no error filled, where the tally has no value, or fewer values
 * than classes. */

/* From the p-th to the q-th percentile: the least values that at least p or q of 100 values do not
 * exceed. */
int mask_range_percentile(const struct mask_tally *tally, double p, double q, double range[2]);

/* Class `number`, 1 the lowest, of those (2 .. MASK_MOST_CLASSES) between which the variance is
 * largest (Otsu 1979); of equal ones those whose upper classes are larger. From its least to its largest value. */
int mask_range_otsu(const struct mask_tally *tally, int classes, int number, double range[2],
                    struct error *error);

/* Mean -+ s standard deviations (of the population). */
int mask_range_sigma(const struct mask_tally *tally, double s, double range[2]);

/* From this share of the largest value on. */
int mask_range_of_max(const struct mask_tally *tally, double share, double range[2]);

#ifdef __cplusplus
}
#endif
#endif
