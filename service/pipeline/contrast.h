/*
 * contrast.h - whether there is anything to tell apart in a volume: a series of one value has no
 * segments, only a defect.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_CONTRAST_H
#define NOCTULE_SERVICE_PIPELINE_CONTRAST_H

#include "base/image.h"

enum contrast {
    CONTRAST_NO_VALUE, /* nothing but padding */
    CONTRAST_ONE_VALUE,
    CONTRAST_SOME,
};

/* Looks for two voxels of different values that are no padding, and no further; `count` stored
 * values. *value is the first that is no padding, if there is one. */
enum contrast contrast_find(const void *voxels, enum image_pixel pixel, int64_t count,
                            struct image_range padding, int32_t *value);

#endif
