/*
 * grid.h - the working grid: what segments and texture are found on. That is the stack as it is; or,
 * where it is tilted or unevenly spaced, an upright grid of its own that it is resampled to.
 *
 * The grid. Along the first plane's rows and columns and its normal; pixels as in the planes, as many
 * more as these are shifted; the first and the last slice lie on the first and the last plane, and
 * those between them at equal distances, of pipeline.grid.mm at most, or, where that is 0, of the two
 * closest planes. Values are linear between stored values (kernels/resample/resample.h, order 1), and
 * rounded to stored values. Points in mm mean what they mean in the planes; voxels and fractions are
 * of the grid.
 *
 * What is nothing. A voxel beyond the planes, and one in whose value padding has a share that could
 * change it, has the stored value `outside`, which is padding of the grid: it belongs to no range and
 * no measurement, but, as padding does, to the volume. It is the lowest value of the planes' padding;
 * where they have none, the value below their lowest, or above their highest one; pixels of 8 bits
 * become ones of 16, so that there is one. GRID_VALUES_FULL where there is none.
 *
 * Whoever computes sees a stack of the grid's slices and one instance, in which the planes agree: the
 * gate has seen to it that they have one rescale and one padding (geometry.h, "Straightening"). Where
 * texture is measured on other voxels within slices that have a rescale each, there are as many
 * instances.
 *
 * Texture may be measured on voxels of another size (texture.resample): a grid of its own, around the
 * middle of the one that is computed on (IBSI 2.4), for which that one's slices are the planes. Values
 * are rounded to stored values; where padding has a share, a value that no voxel has is padding; what
 * of a region's mask is at least a half, linearly, is of the region. It reaches no place that is
 * outside. grid->straight is false there.
 *
 * Masks and maps go back to the planes by the nearest voxel of the grid. What was drawn on the planes
 * comes to the grid by the same way (kernels_resample_drawn), so that it would come back as it was,
 * from all planes that have a slice of the grid to themselves; less what is padding of the grid.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_GRID_H
#define NOCTULE_SERVICE_PIPELINE_GRID_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "kernels/resample/resample.h"
#include "service/pipeline/expectations.h"

struct grid {
    /* What is computed with: the source's, or the grid's own. */
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    bool straight;  /* the grid is one of its own, and what follows is of that */
    char text[256]; /* "straightened: 28 planes tilted by 18.5 degrees to 37 slices of ..."; "" */
    char because[128]; /* "tilted by 18.5 degrees and 2.5 to 5 mm apart"; "" */
    double steps
        [2]; /* mm, the smallest and the largest between two planes of the source; 0: one plane */

    const struct geometry_stack *source;
    struct dicom_instance *const *source_instances;
    double *origins;            /* of the planes */
    struct image_planes planes; /* the source's */
    struct resample_grid to;
    struct resample_demand demand; /* to be had from a lane with the source's volume */
    void *voxels;                  /* once resampled: stack->pixel, x fastest */
    struct geometry_stack own;

    struct grid_instances { /* that stand for the planes: one for all, or one for each */
        size_t count;
        struct dicom_instance *at, **pointers;
        struct dicom_frame *frames;
    } own_instances;
};

/*
 * The grid for an accepted stack; both are borrowed. grid_release takes it back, also after an error:
 * VOLUME_TOO_LARGE (-E2BIG), OUT_OF_MEMORY.
 */
int grid_make(const struct conf_pipeline *pipeline, struct dicom_instance *const *instances,
              const struct geometry_stack *stack, struct grid *grid, struct error *error);
/*
 * The grid of other voxels on a grid, which is borrowed. PADDING_MIXED and, of voxels between slices,
 * RESCALE_VARIES (-EINVAL) where slices differ, with the file; else as grid_make.
 */
int grid_make_spaced(const struct texture_resample *wanted, const struct grid *from,
                     struct grid *grid, struct error *error);
void grid_release(struct grid *grid);

/* Narrows a grid of other voxels that nothing was taken for to what a region within a box of the
 * planes' voxels becomes on it, and what is so many mm around that. Its stack keeps its origin;
 * grid->to.first is where it begins. */
void grid_narrow(struct grid *grid, const int64_t first[3], const int64_t size[3],
                 double margin_mm);

/* Bytes that a job takes for it beside what its lane predicts; 0 where it has none of its own. */
int64_t grid_bytes(const struct grid *grid, const struct conf_pipeline *pipeline);

/* The same of one of other voxels, with so many regions' masks; and of its voxels alone. */
int64_t grid_spaced_bytes(const struct grid *grid, size_t regions);
size_t grid_voxel_bytes(const struct grid *grid);

/* What the instances say, and the first of them: within grid*.c. */
void grid_fill_instances(struct grid *grid);

static inline const struct dicom_instance *
grid_first_instance(const struct grid *grid)
{
    return &grid->own_instances.at[0];
}

/*
 * Fills grid->voxels, and says what is padding, from the source's volume, which is all there in the
 * lane (begun with grid->demand and no more than most_bytes). Another volume may begin in the lane
 * after that. What kernels_resample and kernels_volume_begin say; GRID_VALUES_FULL (-EINVAL);
 * OUT_OF_MEMORY.
 */
int grid_resample(struct grid *grid, struct kernels_lane *lane, const void *voxels,
                  int64_t most_bytes, struct error *error);

/*
 * The same for a grid of other voxels. GRID_VALUES_FULL also where a spline swings beyond what pixels
 * of 16 bits hold.
 */
int grid_interpolate(struct grid *grid, struct kernels_lane *lane, const void *voxels,
                     int64_t most_bytes, struct error *error);

/*
 * Of each slice of a straight grid, to be freed: what lies at the edge of its window, or beyond, may be cut
 * by the edge of the planes. Where these are shifted against each other, a step's ball rounds off what they
 * cut aslant: there a window is smaller than what they reach by a shift and one voxel. -ENOMEM.
 */
int grid_find_windows(const struct grid *grid, struct expect_window **windows, struct error *error);

/* Takes what is padding out of a mask of the grid: a step that grows it may have gone there. */
void grid_cut_padding(const struct grid *grid, const void *voxels, struct image_mask *mask);

/* A mask of the grid on the source's planes, in *bits, to be freed also after an error. -ENOMEM. */
int grid_mask_on_planes(const struct grid *grid, const struct image_mask *mask, uint64_t **bits,
                        struct image_mask *on_planes, struct error *error);
/* A mask of the planes on the grid, likewise. */
int grid_mask_of_planes(const struct grid *grid, const uint64_t *on_planes, uint64_t **bits,
                        struct image_mask *mask, struct error *error);
/* A mask of the planes on the grid by a half of it, likewise. */
int grid_mask_by_half(const struct grid *grid, const uint64_t *on_planes, uint64_t **bits,
                      struct image_mask *mask, struct error *error);
/* A map of the grid on the planes, likewise; NULL makes none. */
int grid_map_on_planes(const struct grid *grid, const uint16_t *map, uint16_t **on_planes,
                       struct error *error);

#endif
