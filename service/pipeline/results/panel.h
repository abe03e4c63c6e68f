/*
 * panel.h - a flat cut through a volume along the axes of its stack, at the size of a picture: its
 * values, and the pixels that a mask covers.
 *
 * A cut has a row of voxels across and one down, each in either direction. Unevenly spaced planes
 * are selected by position, the nearest one per even step, so that distances are true. A pixel is
 * covered by each voxel whose centre lies in it; if voxels are larger, by the one that contains its
 * centre. So each voxel of a mask is visible.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_PANEL_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_PANEL_H

#include "base/image.h"
#include "dicom/read/geometry/geometry.h"
#include "service/common/picture/indexed_png.h"
#include "service/pipeline/results/preview_resample.h"

/* All borrowed, except the output of panel_volume_make(). */
struct panel_volume {
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    const void *voxels;            /* stored values, stack->pixel, x fastest */
    struct image_rescale *rescale; /* per plane */
    int32_t *even;                 /* plane_count even steps from the first plane to the last: the nearest plane */
};

/*
 * Fills the members that are not borrowed. Returns 0 or -ENOMEM; call panel_volume_free() in both
 * cases.
 */
int panel_volume_make(struct panel_volume *volume);
void panel_volume_free(struct panel_volume *volume);

/* The first of a pixel's voxels, and the one after its last. */
struct panel_span {
    int32_t first, end;
};

/* Axes are 0: columns (x), 1: rows (y), 2: planes (z). */
struct panel {
    int across, down, through; /* different axes */
    bool from_right, from_below;
    bool reformatted; /* shown in the usual orientation, instead of as acquired */
    int32_t at;       /* voxel on the axis through */
    struct box box;   /* in the picture */

    int32_t columns, rows;                      /* voxels across and down */
    int32_t *voxel_across, *voxel_down;         /* coordinates, from the left and from the top */
    struct panel_span *span_across, *span_down; /* per pixel */
    struct resampler resampler;
    float *scratch;
    float *values;  /* real-world, box.width x box.height */
    uint64_t *line; /* voxels of a mask in a row of pixels, by coordinate */
    uint8_t *cover; /* 1: covered; with a margin of one pixel */
    uint8_t *core;  /* likewise: pixels within the cover */
};

/*
 * Returns the number of voxels on an axis of the stack, and their distance in mm (1 if it is not known).
 */
int32_t panel_voxels(const struct geometry_stack *stack, int axis);
double panel_spacing(const struct geometry_stack *stack, int axis);

/*
 * Completes a panel whose first seven members are set. Returns 0 or -ENOMEM; call panel_free() in
 * both cases.
 */
int panel_make(const struct panel_volume *volume, struct panel *panel);
void panel_free(struct panel *panel);

/* Fills the values. A panel must be used by one thread at a time, also below. */
void panel_sample(const struct panel_volume *volume, struct panel *panel);

/* Returns whether the mask has the voxel at the centre of a pixel. */
bool panel_has(const struct panel_volume *volume, const struct panel *panel, const struct image_mask *mask, int x,
               int y);

/* Fills `cover`, with rows of box.width + 2 bytes. Returns false if no pixel is covered. */
bool panel_find_cover(const struct panel_volume *volume, struct panel *panel, const struct image_mask *mask);

#endif
