/* directions.c - see directions.h. */
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

static size_t
directions_in_slice(const struct glcm_options *options, struct texture_offset *offsets)
{
    if (!aggregation_is_2d(options->aggregation) || options->angle_count == 0) {
        memcpy(offsets, in_slice, sizeof(in_slice));
        return ANGLES;
    }
    for (size_t i = 0; i < options->angle_count; i++)
        offsets[i] = in_slice[options->angles[i] / 45];
    return options->angle_count;
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

        directions->count = directions_in_slice(options, offsets);
        if (!aggregation_is_2d(options->aggregation)) {
            size_t count = 0;

            for (int32_t y = -1; y <= 1; y++)
                for (int32_t x = -1; x <= 1; x++)
                    offsets[directions->count + count++] = (struct texture_offset){x, y, 1};
            directions->count += count;
        }
        for (size_t i = 0; i < directions->count; i++)
            offsets[i] =
                (struct texture_offset){offsets[i].x * distance, offsets[i].y * distance, offsets[i].z * distance};
        directions->distance = distance;
    }
}

static void
directions_name_angles(const struct glcm_options *options, char text[DIRECTIONS_TEXT])
{
    size_t length = 0;

    for (size_t i = 0; i < options->angle_count && length < DIRECTIONS_TEXT; i++)
        length +=
            (size_t)snprintf(text + length, DIRECTIONS_TEXT - length, "%s%d", i > 0 ? "," : "", options->angles[i]);
}

void
directions_name(const struct glcm_options *options, char text[DIRECTIONS_TEXT])
{
    text[0] = '\0';
    if (options->offset_count > 0) {
        size_t length = 0;

        for (size_t i = 0; i < options->offset_count && length < DIRECTIONS_TEXT; i++) {
            const struct texture_offset *offset = &options->offsets[i];

            length += (size_t)snprintf(text + length, DIRECTIONS_TEXT - length, "(%d,%d,%d)", offset->x, offset->y,
                                       offset->z);
        }
    } else if (aggregation_is_2d(options->aggregation) && options->angle_count < ANGLES)
        directions_name_angles(options, text);
}
