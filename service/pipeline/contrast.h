/* contrast.h - checks that a volume has contrast: a series of a single value is a defect. */
#ifndef NOCTULE_SERVICE_PIPELINE_CONTRAST_H
#define NOCTULE_SERVICE_PIPELINE_CONTRAST_H

#include "base/image.h"

enum contrast {
    CONTRAST_NO_VALUE, /* only padding */
    CONTRAST_ONE_VALUE,
    CONTRAST_SOME,
};

/*
 * Searches `count` stored values for two different ones that are not padding. *value is the first
 * value that is not padding, if there is one.
 */
enum contrast contrast_find(const void *voxels, enum image_pixel pixel, int64_t count,
                            struct image_range padding, int32_t *value);

#endif
