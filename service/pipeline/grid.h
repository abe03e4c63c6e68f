/*
 * grid.h - the working grid of segments and texture: the stack itself, or, for a tilted or unevenly
 * spaced stack, an upright grid to which it is resampled.
 *
 * The grid. Its axes are the first plane's rows, columns and normal. Pixels are as large as in the
 * planes; shifted planes add more of them. The first and the last slice lie on the first and the
 * last plane. The slices between have equal distances of at most pipeline.grid.mm, or, if that is
 * 0, of the two closest planes. Values are interpolated linearly between stored values
 * (kernels/resample/resample.h, order 1) and rounded to stored values. Texture whose values are not rounded (see below) uses
 * them as they are (`reals`). Points in mm have the same
 * meaning as in the planes; voxels and fractions refer to the grid.
 *
 * Padding. A voxel beyond the planes, or one that padding could change, gets the stored value `outside`. This is the
 * padding of the grid: such voxels belong to the volume, but to no range and no measurement. `outside` is the lowest
 * padding value of the planes. Without padding it is the value below their lowest or above their highest value; 8-bit
 * pixels become 16-bit pixels to make room. GRID_VALUES_FULL: there is no such value.
 *
 * Later steps see a stack of the grid's slices and one instance with the common values of the
 * planes. The geometry check ensures a common rescale and padding (geometry.h, "Straightening"). If
 * texture is measured on other voxels within slices that have different rescales, there is one
 * instance per slice.
 *
 * Texture may use voxels of another size (texture.resample): a grid of its own around the centre of
 * the working grid (IBSI 2.4), whose slices are then the planes. Values are rounded to stored
 * values, or are real-world values as doubles (`real`): so rescales may differ by slice. If padding
 * contributes to a voxel, it gets a padding value that no voxel has, or NAN. A voxel belongs to a region if its linearly interpolated mask is at least one half. No voxel is outside.
 * grid->straight is false. A spline runs through the source continued by 12 samples of its ends
 * (as SciPy's mode "nearest" and MIRP), since mirrored ends would move values near them.
 * The interpolations "pyradiomics-..." follow pyradiomics 3.0.1 instead: its grid (resample_cornered), which begins at the
 * first plane of an image file, nearest voxels of masks, splines that are mirrored at the ends, and real-world values cut off
 * to whole numbers if all of the source are whole.
 * Normalisation (texture.normalise) is of the source: of its voxels that are not padding, before they are interpolated.
 *
 * Masks and maps return to the planes by the nearest voxel of the grid. Regions drawn on the planes
 * reach the grid in the same way (kernels_resample_drawn), so that they would return unchanged on
 * all planes that have a slice of the grid to themselves. Padding of the grid is removed from them.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_GRID_H
#define NOCTULE_SERVICE_PIPELINE_GRID_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "kernels/resample/resample.h"
#include "service/pipeline/expectations.h"

struct grid {
    /* The volume to compute on: the source's, or the grid's own. */
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    bool straight;     /* the grid is not the stack; the members below describe it */
    char text[256];    /* "straightened: 28 planes tilted by 18.5 degrees to 37 slices of ..."; "" */
    char because[128]; /* "tilted by 18.5 degrees and 2.5 to 5 mm apart"; "" */
    double steps
        /*
         * mm, the smallest and the largest distance between two planes of the source; 0: one plane
         */
        [2];

    const struct geometry_stack *source;
    struct dicom_instance *const *source_instances;
    double *origins;            /* of the planes */
    struct image_planes planes; /* the source's */
    struct resample_grid to;
    struct resample_demand demand; /* required from a lane with the source's volume */
    int64_t edge;                  /* samples by which the ends of the source continue there, for a spline */
    bool pyradiomics;              /* a grid of other voxels by the rules of pyradiomics */
    bool same;                     /* a grid of the source's own voxels, with values that are not stored ones */
    bool real;                     /* the values are doubles */
    bool filtered;                 /* the values become responses of a filter, and are doubles */
    bool image_type;               /* the filter is an image type of pyradiomics */
    const struct texture_normalise *normalise; /* the values of the source are normalised; NULL: not */
    double mean, per_deviation;                /* of these, once the grid is filled */
    bool rounded;                              /* they are rounded to stored values before */
    bool has_none;                             /* of real-world values: some are NAN */
    bool keeps_reals;        /* values that are not rounded are kept: of a straight grid or an image file */
    void *voxels;            /* after resampling: stack->pixel, or doubles if real, x fastest */
    double *reals;           /* if kept: the real-world values; any value at padding */
    const struct grid *from; /* of a grid of other voxels */
    struct geometry_stack own;

    /* instances that replace those of the planes: one for all, or one each */
    struct grid_instances {
        size_t count;
        struct dicom_instance *at, **pointers;
        struct dicom_frame *frames;
    } own_instances;
};

/*
 * Makes the grid for an accepted stack; both are borrowed. Call grid_release() also after an error:
 * VOLUME_TOO_LARGE (-E2BIG), OUT_OF_MEMORY.
 */
int grid_make(const struct conf_pipeline *pipeline, struct dicom_instance *const *instances,
              const struct geometry_stack *stack, struct grid *grid, struct error *error);
/*
 * Returns whether a group of texture is measured on a grid of its own: on other voxels, or on the same ones with values that
 * are not rounded.
 */
bool grid_is_other(const struct texture_options *options, const struct grid *from);

/* Lets a grid that is not straight have real-world values of its own in `reals`, to be filled. Returns 0 or -ENOMEM. */
int grid_reserve_reals(struct grid *grid);

/* Returns whether a group of texture uses values that are not rounded, if there are such. */
bool grid_is_real(const struct texture_options *options, const struct grid *from);

/*
 * Makes a grid of other voxels on a grid, which is borrowed. Returns errors as grid_make(), and
 * -EINVAL with the file if slices differ: PADDING_MIXED, or RESCALE_VARIES if values between slices
 * must be stored values.
 */
int grid_make_spaced(const struct texture_options *options, const struct grid *from, struct grid *grid,
                     struct error *error);
void grid_release(struct grid *grid);

/* A box of voxels of a whole grid of other voxels. */
struct grid_part {
    int64_t first[3], size[3];
};

/* Returns the part that a grid is: all of it, unless it was narrowed. */
struct grid_part grid_whole(const struct grid *grid);

/* Return the part of a whole grid around a region, which lies within a box of the planes' voxels: with a margin in mm; or as
 * pyradiomics crops images, with as many voxels of the grid. */
struct grid_part grid_part_around(const struct grid *grid, const int64_t first[3], const int64_t size[3],
                                  double margin_mm);
struct grid_part grid_part_cropped(const struct grid *grid, const int64_t first[3], const int64_t size[3], int around);

/* Narrows a whole grid to a part. Call it before memory is reserved for the grid. The stack keeps its origin; the grid begins
 * at grid->to.first. */
void grid_narrow(struct grid *grid, const struct grid_part *part);

/* Returns whether two grids of other voxels of the same source have the same values, where both have voxels. */
bool grid_same_values(const struct grid *a, const struct grid *b);

/* Returns the normalised value of a real-world value of the source; the same one without normalisation. */
double grid_normalised(const struct grid *grid, double value);

/* Returns whether the first plane of the file is the last one of the source. */
static inline bool
grid_is_reversed(const struct grid *grid)
{
    const struct geometry_plane *planes = grid->source->planes;
    return planes[0].frame > planes[grid->source->plane_count - 1].frame;
}

/* Returns whether all values of the source are whole numbers, and not normalised. */
bool grid_is_whole(const struct grid *grid);

/* Returns whether all values are those of stored values by one rescale, so that their range is that of the stored values. */
static inline bool
grid_has_rescaled(const struct grid *grid)
{
    return grid->same && grid->demand.values == RESAMPLE_REAL;
}

/*
 * Returns the bytes that a job needs for the grid besides the prediction of its lane; 0 without a
 * grid or values of its own.
 */
int64_t grid_bytes(const struct grid *grid, const struct conf_pipeline *pipeline);

/*
 * Return the bytes for a grid of other voxels and the masks of `regions` regions, without its
 * voxels, and for its voxels alone.
 */
int64_t grid_spaced_bytes(const struct grid *grid, size_t regions);
size_t grid_voxel_bytes(const struct grid *grid);

/* Fills the attributes of the instances. Private to grid*.c. */
void grid_fill_instances(struct grid *grid);

static inline const struct dicom_instance *
grid_first_instance(const struct grid *grid)
{
    return &grid->own_instances.at[0];
}

/*
 * Fills grid->voxels and the padding from the source's volume. The volume must be complete in the
 * lane, begun with grid->demand and at most most_bytes. Another volume may begin in the lane
 * afterwards. Returns errors of kernels_resample() and kernels_volume_begin(), GRID_VALUES_FULL
 * (-EINVAL) or OUT_OF_MEMORY.
 */
int grid_resample(struct grid *grid, struct kernels_lane *lane, const void *voxels, int64_t most_bytes,
                  struct error *error);

/* Returns the extent of the source's volume in the lane, and copies the volume there. */
struct image_extent grid_source_extent(const struct grid *grid);
void grid_copy_source(const struct grid *grid, const void *voxels, void *place);

/* Fills a grid of other voxels. Returns GRID_VALUES_FULL also if a spline exceeds 16-bit pixels. A grid of the source's own
 * voxels needs no volume in the lane, only its threads. */
int grid_interpolate(struct grid *grid, struct kernels_lane *lane, const void *voxels, int64_t most_bytes,
                     struct error *error);

/* Fills a grid with the values of another one, of which it is a part. `takes`: takes the memory over if they have the same
 * voxels. Returns 0 or -ENOMEM. */
int grid_take_values(struct grid *grid, struct grid *from, bool takes, struct error *error);

/*
 * Computes the window of each slice of a straight grid; the caller must free it. A mask at the edge
 * of its window, or beyond, may be cut off by the edge of the planes. Where planes are shifted
 * against each other, the ball of a mask step rounds off the slanted cut: there the window is
 * smaller than the planes by one shift and one voxel. Returns 0 or -ENOMEM.
 */
int grid_find_windows(const struct grid *grid, struct expect_window **windows, struct error *error);

/* Removes padding from a mask of the grid, since a growing step may have added it. */
void grid_cut_padding(const struct grid *grid, const void *voxels, struct image_mask *mask);

/*
 * Converts a mask of the grid to the source's planes, in *bits; the caller must free it, also after
 * an error. Returns 0 or -ENOMEM.
 */
int grid_mask_on_planes(const struct grid *grid, const struct image_mask *mask, uint64_t **bits,
                        struct image_mask *on_planes, struct error *error);
/* Converts a mask of the planes to the grid, as above. */
int grid_mask_of_planes(const struct grid *grid, const uint64_t *on_planes, uint64_t **bits, struct image_mask *mask,
                        struct error *error);
/* Returns whether a region of the planes has no mask on a grid by the rules of pyradiomics: pyradiomics keeps the spacing along an
 * axis on which the region is one voxel thick. */
bool grid_leaves_out(const struct grid *grid, const uint64_t *on_planes);
/* Converts a mask of the planes to a grid of other voxels; a voxel is set if at least half of it is. Empty if the grid leaves it
 * out. As above. */
int grid_mask_by_half(const struct grid *grid, const uint64_t *on_planes, uint64_t **bits, struct image_mask *mask,
                      struct error *error);
/* Converts a map of the grid to the planes, as above; NULL makes no map. */
int grid_map_on_planes(const struct grid *grid, const uint16_t *map, uint16_t **on_planes, struct error *error);

#endif
