/* contrast.c - see contrast.h. */
#include "service/pipeline/contrast.h"

enum contrast
contrast_find(const void *voxels, enum image_pixel pixel, int64_t count, struct image_range padding,
              int32_t *value)
{
    enum contrast found = CONTRAST_NO_VALUE;
    for (int64_t i = 0; i < count; i++) {
        int32_t here = image_value(voxels, pixel, i);
        if (padding.lo <= here && here <= padding.hi)
            continue;
        if (found == CONTRAST_NO_VALUE)
            *value = here;
        else if (here != *value)
            return CONTRAST_SOME;
        found = CONTRAST_ONE_VALUE;
    }
    return found;
}
