#include "kernels/features/matrices/directions.h"

#include <stdio.h>
#include <string.h>

#define ANGLES 4

/* Of 0, 45, 90 and 135 degrees. */
static const struct texture_offset in_slice[ANGLES] = {{1, 0, 0}, {1, -1, 0}, {0, -1, 0}, {-1, -1, 0}};

size_t
directions_sets(const struct glcm_options *options)
{
    return options->offset_count > 0 ? 1 : options->distance_count;
}

void
directions_make(const struct glcm_options *options, size_t set, struct directions *directions)
{
    *directions = (struct directions){.count = options->offset_count};
    if (options->offset_count > 0)
        memcpy(directions->offsets, options->offsets, options->offset_count * sizeof(*options->offsets));
    else {
        const int32_t distance = options->distances[set];
        struct texture_offset *offsets = directions->offsets;

        const bool is_2d = aggregation_is_2d(options->aggregation), some = is_2d && options->angle_count > 0;

        directions->count = some ? options->angle_count : ANGLES;
        for (size_t i = 0; i < directions->count; i++)
            offsets[i] = in_slice[some ? options->angles[i] / 45 : (int)i];
        for (int32_t i = 0; i < 9 && !is_2d; i++) /* those to the next slice */
            offsets[directions->count++] = (struct texture_offset){i % 3 - 1, i / 3 - 1, 1};
        for (size_t i = 0; i < directions->count; i++)
            offsets[i] =
                (struct texture_offset){offsets[i].x * distance, offsets[i].y * distance, offsets[i].z * distance};
        directions->distance = distance;
    }
}

void
directions_name(const struct glcm_options *options, char text[DIRECTIONS_TEXT])
{
    const bool some = aggregation_is_2d(options->aggregation) && options->angle_count < ANGLES;
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < options->offset_count && length < DIRECTIONS_TEXT; i++) {
        const struct texture_offset *offset = &options->offsets[i];

        length +=
            (size_t)snprintf(text + length, DIRECTIONS_TEXT - length, "(%d,%d,%d)", offset->x, offset->y, offset->z);
    }
    for (size_t i = 0; options->offset_count == 0 && some && i < options->angle_count && length < DIRECTIONS_TEXT; i++)
        length +=
            (size_t)snprintf(text + length, DIRECTIONS_TEXT - length, "%s%d", i > 0 ? "," : "", options->angles[i]);
}
