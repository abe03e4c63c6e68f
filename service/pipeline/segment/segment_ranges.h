/*
 * segment_ranges.h - ranges of values: computes relative ranges from the values of a region, and
 * converts real-world ranges to stored values per plane.
 *
 * A relative range is computed from the exact histogram of its region without padding; each plane's
 * values by its own rescale (kernels/mask/relative.h). A region without values, or with fewer
 * values than the number of classes, has no range (RANGE_UNDEFINED).
 *
 * Padding is never in range. If it covers an end of a plane's interval, it is cut off. If it lies
 * strictly inside, it becomes the one hole of all planes. Planes whose padding differs so that this
 * is not exact are refused (PADDING_MIXED).
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_RANGES_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_RANGES_H

#include "service/pipeline/segment/segment.h"

/* Sets configured ranges, and adds the demand of the others. */
void ranges_prepare(struct segmentation *segmentation, struct kernels_demand *demand);

/* Returns the maximum bytes for finding a segment's range; 0 if it is configured. */
int64_t ranges_bytes(const struct segmentation *segmentation, size_t segment);

/*
 * Finds the range of a segment. `start` (bits; may be NULL) is its start region; all segments that
 * it uses must be made. Returns 0, or -EINVAL with RANGE_UNDEFINED.
 */
int ranges_find(struct segmentation *segmentation, size_t segment, struct kernels_lane *lane, const uint64_t *start,
                struct error *error);

/*
 * Fills one range per plane and the hole (lo > hi: no hole) of a known range. Returns 0, or -EINVAL
 * with PADDING_MIXED.
 */
int ranges_make(const struct segmentation *segmentation, size_t segment, struct image_range *ranges,
                struct image_range *hole, struct error *error);

/*
 * Fills `bits` with the voxels of a segment with smooth_mm: those of `region` (NULL: all) whose filtered value is
 * in range. Returns errors of rescaled_series_limit(), smooth_run() and rescaled_smooth().
 */
int ranges_smooth(const struct segmentation *segmentation, size_t segment, struct kernels_lane *lane,
                  const uint64_t *region, uint64_t *bits, struct error *error);

/* Writes "range 0..80", with its derivation; and the numbers of the record if it was computed. */
void ranges_describe(const struct segmentation *segmentation, size_t segment, char text[SEGMENT_DESCRIPTION]);
void ranges_report(const struct segmentation *segmentation, size_t segment, struct pipeline_segment *report);

#endif
