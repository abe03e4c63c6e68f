/*
 * segment_coarse.h - the coarse grid of a job: the mean values of blocks (kernels/coarse/coarse.h) as a volume of their own, in
 * a second lane, with the segments that have grid_mm.
 *
 * The values are signed 16-bit. Their unit is a stored value of the images, divided by the largest power of two up to 64 that
 * fits. HU are limited to -1024 .. 3071 first, and 0 HU is the value 0: of CT with a slope of 1, the unit is 1/8 HU. Padding
 * counts as the lowest value. All slices must have the same padding.
 *
 * Slices with rescales of their own (rescaled_series.h) are averaged as real values. If these are integers, the unit is the
 * smallest power of two for which all fit. Otherwise it is 1/8 HU, or 1/65535 of the values that the slices can have.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_COARSE_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_COARSE_H

#include "kernels/coarse/coarse.h"
#include "service/pipeline/segment/segment.h"

struct coarse_volume {
    struct segmentation segmentation;
    struct coarse_grid blocks;
    struct grid grid; /* the stack and its instance, which are own */
    struct dicom_frame frame;
    struct dicom_instance instance, *instances[1];
    struct geometry_stack stack;
    struct kernels_lane *lane; /* borrowed */
    void *voxels;              /* of the lane; NULL: not prepared */
};

/* Returns whether a segment has grid_mm. */
bool coarse_volume_is_wanted(const struct conf_pipeline *pipeline);

/*
 * Prepares the coarse grid of a segmentation of the images' voxels, in a lane of its own, with at most `most_bytes` (0: the
 * free memory). Release it also after an error: errors of rescaled_series_limit(), kernels_volume_begin() and segmentation_prepare().
 */
int coarse_volume_prepare(struct coarse_volume *coarse, struct segmentation *fine, struct kernels_lane *lane,
                          int64_t most_bytes, struct error *error);
void coarse_volume_release(struct coarse_volume *coarse);

/* Finds the segments, and fills their masks in the segmentation of the images' voxels, whose lane has the volume. */
int coarse_volume_run(struct coarse_volume *coarse, struct segmentation *fine, struct kernels_lane *lane,
                      struct error *error);

/*
 * Grows or shrinks the mask of a coarse segment by a step. Copies the result to a mask of the images' voxels, or with
 * `unite` adds it.
 */
int coarse_volume_band(const struct coarse_volume *coarse, const struct segmentation *fine, size_t segment,
                       struct kernels_mask_step step, bool unite, uint64_t *bits, struct error *error);

/* Converts the windows of the images' planes to those of the blocks; the caller must free them. Returns 0 or -ENOMEM. */
int coarse_volume_windows(const struct coarse_volume *coarse, const struct geometry_stack *fine,
                          const struct expect_window *given, struct expect_window **windows, struct error *error);

/* Converts the box and the number of slices of a mask of blocks to the images' voxels. */
void coarse_volume_measures(const struct coarse_volume *coarse, const struct geometry_stack *fine,
                            struct segment_measures *measures);

/* Returns whether a segment has grid_mm and needs a mask of the images' voxels. */
bool coarse_volume_expands(const struct conf_pipeline *pipeline, size_t segment);

/* Appends the grid to Algorithm Parameters. */
void coarse_volume_describe(const struct coarse_volume *coarse, char text[SEGMENT_DESCRIPTION]);

#endif
