/*
 * segment_level_set.h - converts configured level set segments (real-world units, millimetres,
 * fractions) to labels of the kernel (stored values, voxels).
 *
 * Ranges are those of segment_ranges.h, with the hole as the label's padding. The segments of
 * `within` limit the voxels in range. Regions contain no voxel out of range.
 *
 * Shapes. A radius in millimetres is divided by the spacing of each axis; points are those of
 * volume.h.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_LEVEL_SET_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_LEVEL_SET_H

#include "kernels/level_set/level_set.h"
#include "service/pipeline/segment/segment.h"

/*
 * Converts a shape. Returns -EINVAL for a shape that no kernel accepts (a radius that is not
 * finite).
 */
int level_set_shape(const struct conf_shape *shape, const struct geometry_stack *stack, struct kernels_shape *voxels);

/* Converts all shapes of a segment. Returns -EINVAL with SHAPE_INVALID. */
int level_set_shapes(const struct conf_segment *segment, const struct geometry_stack *stack,
                     struct kernels_shape *shapes, struct error *error);
/* Sets the voxels of shapes and of a mask (NULL: none) in zeroed bits. */
void level_set_draw(const struct geometry_stack *stack, const struct kernels_shape *shapes, size_t count,
                    const uint64_t *mask, uint64_t *bits);
void level_set_describe_shapes(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION]);

/*
 * The data that the method prepares: one element per segment, in the pipeline's order; -EINVAL with
 * PADDING_MIXED or SHAPE_INVALID.
 */
struct level_set_labels {
    struct kernels_level_set_demand demand;
    struct kernels_level_set_label *items;
    struct image_range *ranges; /* storage of the items */
    struct kernels_shape *shapes;
    size_t *shape_counts;    /* of the items, while they are ready */
    const uint64_t **within; /* of the items */
};

#endif
