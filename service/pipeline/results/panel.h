/*
 * panel.h - a flat cut through a volume along the axes of its stack, at the size of a picture: its
 * values, and which of its pixels a mask covers.
 *
 * A cut has a row of voxels across and one down, either of them in either direction; planes that
 * lie unevenly are taken by their positions, the nearest one for each even step, so that distances
 * are true. A pixel is covered by every voxel whose centre lies in it, or, where voxels are larger,
 * by the one that its centre lies in: nothing is too small to be seen.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_PANEL_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_PANEL_H

#include "base/image.h"
#include "dicom/read/geometry/geometry.h"
#include "service/pipeline/results/lettering.h"
#include "service/pipeline/results/preview_resample.h"

/* All borrowed, but what panel_volume_make makes. */
struct panel_volume {
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    const void *voxels;            /* stored values, stack->pixel, x fastest */
    struct image_rescale *rescale; /* by plane */
    int32_t *even; /* plane_count even steps from first to last: the nearest plane */
};

/* Of what is borrowed; 0 or -ENOMEM, panel_volume_free in either case. */
int panel_volume_make(struct panel_volume *volume);
void panel_volume_free(struct panel_volume *volume);

/* The first of a pixel's voxels, and the one past its last. */
struct panel_span {
    int32_t first, end;
};

/* Axes are 0: columns (x), 1: rows (y), 2: planes (z). */
struct panel {
    int across, down, through; /* axes, each another */
    bool from_right, from_below;
    int32_t at;     /* voxel on the axis through */
    struct box box; /* in the picture */

    int32_t columns, rows;                      /* voxels across and down */
    int32_t *voxel_across, *voxel_down;         /* coordinates, from the left and from above */
    struct panel_span *span_across, *span_down; /* by pixel */
    struct resampler resampler;
    float *scratch;
    float *values;  /* real-world, box.width x box.height */
    uint64_t *line; /* what a mask has in a row of pixels, by coordinate */
    uint8_t *cover; /* 1: covered; with a margin of one pixel */
};

/* Voxels on an axis of the stack, and the mm between them (1 where there is no geometry). */
int32_t panel_voxels(const struct geometry_stack *stack, int axis);
double panel_spacing(const struct geometry_stack *stack, int axis);

/* Of a panel whose first six members are set; 0 or -ENOMEM, panel_free in either case. */
int panel_make(const struct panel_volume *volume, struct panel *panel);
void panel_free(struct panel *panel);

/* Fills the values. One panel by one thread at a time, as below. */
void panel_sample(const struct panel_volume *volume, struct panel *panel);

/* Has the mask the voxel under the middle of a pixel? */
bool panel_has(const struct panel_volume *volume, const struct panel *panel,
               const struct image_mask *mask, int x, int y);

/* Fills `cover`, whose rows are box.width + 2 bytes; false when nothing is covered. */
bool panel_find_cover(const struct panel_volume *volume, struct panel *panel,
                      const struct image_mask *mask);

#endif
