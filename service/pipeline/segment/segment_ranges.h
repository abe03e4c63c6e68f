/*
 * segment_ranges.h - ranges of values: those that follow from the values of a region, and from a range of
 * real-world values to the stored values of each plane.
 *
 * A relative range is computed of the exact histogram of its region without padding, each plane's
 * values by its own rescale (kernels/mask/relative.h). A region without values has none, nor one
 * with fewer values than classes are wanted (RANGE_UNDEFINED).
 *
 * Padding is never in range. It is cut off a plane's interval where it covers an end of it; where
 * it lies strictly inside, it becomes the one hole of all planes. Planes whose padding differs such
 * that this is not exact are refused (PADDING_MIXED).
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_RANGES_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_RANGES_H

#include "service/pipeline/segment/segment.h"

/* Those that are given are known; demands what the others need. */
void ranges_prepare(struct segmentation *segmentation, struct kernels_demand *demand);

/* What finding a segment's range takes of memory, at most; 0 where it is given. */
int64_t ranges_bytes(const struct segmentation *segmentation, size_t segment);

/* The range of a segment, all voxels of `start` (bits; NULL: none) being its start region, and all
 * that it uses made. 0, or -errno with an error: -EINVAL with RANGE_UNDEFINED. */
int ranges_find(struct segmentation *segmentation, size_t segment, struct kernels_lane *lane,
                const uint64_t *start, struct error *error);

/* Of a range that is known, fills one range a plane, and the hole (lo > hi: none). 0, or -EINVAL
 * with PADDING_MIXED. */
int ranges_make(const struct segmentation *segmentation, size_t segment, struct image_range *ranges,
                struct image_range *hole, struct error *error);

/* "range 0..80", and how it was found; the numbers of the record, where it was. */
void ranges_describe(const struct segmentation *segmentation, size_t segment,
                     char text[SEGMENT_DESCRIPTION]);
void ranges_report(const struct segmentation *segmentation, size_t segment,
                   struct pipeline_segment *report);

#endif
