/*
 * ranges.h - from a range of real-world values to the stored values of each plane.
 *
 * Padding is never in range. It is cut off a plane's interval where it covers an end of it; where
 * it lies strictly inside, it becomes the one hole of all planes. Planes whose padding differs such
 * that this is not exact are refused (PADDING_MIXED).
 */
#ifndef NOCTULE_SEGMENT_RANGES_H
#define NOCTULE_SEGMENT_RANGES_H

#include "service/pipeline/segment/segment.h"

/* Fills one range a plane, and the hole (lo > hi: none). 0, or -EINVAL with PADDING_MIXED. */
int ranges_make(const struct segmentation *segmentation, const double range[2],
                struct image_range *ranges, struct image_range *hole, struct error *error);

#endif
