/*
 * resample.h - resamples a lane's volume on another grid, and masks of that grid on the original
 * planes.
 *
 * The planes may be tilted and unevenly spaced. The grid is upright relative to them: along their
 * rows, columns and normal, in mm from the centre of pixel (0, 0) of the first plane. A position
 * along an axis is in samples, ((grid origin + i * grid spacing) - the plane's own shift) /
 * spacing. Along the normal it is relative to the two planes around it. Positions are rounded to
 * 2^-40 of a sample. Within 2^-30 of a multiple of 2^-16 they are that multiple, so that a position
 * half way stays half way regardless of rounding in double precision. Planes are regular by the rule of the geometry check: within 1 % of their mean step, at
 * least 0.02 mm, none shifted by more. Regular planes count as exactly one mean step apart and not
 * shifted. Positions up to half a sample beyond the first and last sample have its value. Positions
 * further away are `outside`: values are never extrapolated.
 *
 * - Order 0: the nearest sample, the later one of two.
 * - Order 1: between two samples (1 - f) * a + f * b; along the columns first, then along the
 *   rows, then along the normal.
 * - Order 3: the cubic B-spline through the samples, mirrored at the ends (Unser 1993), rows first,
 *   then columns, then the normal. The planes must be regular, and the grid must end within half a
 *   sample beyond them, unless it `mirrors`.
 *
 * All arithmetic is in double precision, in a fixed order, without fused operations. The result is
 * one of enum resample_values. All backends and the reference in tests/kernels therefore agree bit
 * for bit. A mask is resampled as a volume of 0 and 1. Voxels of
 * at least a half become 1.
 */
#ifndef NOCTULE_KERNELS_RESAMPLE_RESAMPLE_H
#define NOCTULE_KERNELS_RESAMPLE_RESAMPLE_H

#include "base/planes.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RESAMPLE_NEAREST = 0,
    RESAMPLE_LINEAR = 1,
    RESAMPLE_CUBIC = 3,
};

/* The values of the resampled volume. */
enum resample_values {
    RESAMPLE_STORED,   /* floor(v + 0.5) of stored values, clamped to the pixel type */
    RESAMPLE_REAL,     /* doubles: stored values, not rounded */
    RESAMPLE_RESCALED, /* doubles: samples become slope * v + intercept of their plane before anything else */
};

struct resample_grid {
    struct image_extent extent;
    double spacing[3]; /* mm along rows, columns and normal */
    double origin[3];  /* of voxel (0, 0, 0), relative to pixel (0, 0) of the first plane */
    int64_t first[3];  /* first voxel of the extent: a part of a grid (resample_around) */
    bool from_end;     /* of resample_cornered */
    bool mirrors;      /* a spline continues beyond the outermost samples as their mirror; otherwise it ends there */
};

/*
 * Makes the upright grid of tilted or unevenly spaced planes. Pixels are as in the first plane, and
 * extended by the shifts of the others. Slices go from the first plane to the last, `mm` apart or,
 * for 0, with the smallest distance of two planes.
 */
void resample_straight(const struct image_planes *planes, double mm, struct resample_grid *grid);

/*
 * Makes a grid with other voxel sizes around the same centre (IBSI 2.4, "align grid centres"), with
 * enough voxels to cover the planes. An axis with mm 0 keeps its spacing; for planes, their mean
 * distance.
 */
void resample_spaced(const struct image_planes *planes, const double mm[3], struct resample_grid *grid);

/*
 * Makes the grid of pyradiomics (its imageoperations.resampleImage): the outer faces of the first voxels coincide, or those of
 * the last planes if `from_end`, and voxels cover the samples. Splines go on as their mirror beyond the outermost samples. A
 * voxel whose centre is not within the samples' outer faces is in no mask, and resample_clear_beyond() sets its value.
 */
void resample_cornered(const struct image_planes *planes, const double mm[3], bool from_end,
                       struct resample_grid *grid);

/* Sets voxels beyond the samples of a grid of resample_cornered() to 0, as pyradiomics does. */
void resample_clear_beyond(const struct image_planes *planes, const struct resample_grid *grid, double *values);

/*
 * Narrows a grid of regular planes, for kernels_resample and kernels_resample_linear_mask, without
 * changing their results there. Keeps the voxels that a mask within a box of samples may set, plus
 * a margin in mm, at least one voxel.
 */
void resample_around(const struct image_planes *planes, const int64_t first[3], const int64_t size[3], double margin_mm,
                     struct resample_grid *grid);

/* The demand of KERNELS_RESAMPLE. */
struct resample_demand {
    struct image_extent extent; /* of the grid */
    int order;
    enum image_pixel pixel; /* of stored results, since a spline may exceed the range of its samples */
    enum resample_values values;
};

/* Returns the bytes per voxel of the result. */
static inline size_t
resample_voxel_size(const struct resample_demand *demand)
{
    return demand->values == RESAMPLE_STORED ? image_pixel_size(demand->pixel) : sizeof(double);
}

struct resample_request {
    const struct image_planes *planes; /* of the lane's volume */
    const struct resample_grid *grid;
    int order;
    int32_t outside;                      /* a value of the result */
    const struct image_rescale *rescales; /* per plane, for RESAMPLE_RESCALED without `samples` */
    const double *samples;                /* for RESAMPLE_RESCALED: these, instead of the lane's volume */
};

/*
 * Resamples the lane's volume. Sets *voxels to the grid's voxels, of the demand's pixel type or doubles, x
 * fastest, tightly packed, in the lane's memory (pinned on a GPU). Every slice must be announced
 * (-EBUSY), and the demand must have this extent and order. Returns -EINVAL if planes do not
 * ascend, the grid is empty or has no spacing, or order 3 does not meet the conditions above.
 */
int kernels_resample(struct kernels_lane *lane, const struct resample_request *request, const void **voxels,
                     struct error *error);

/*
 * Transfers a mask of the grid to the planes. Each pixel takes the bit of the grid's nearest voxel,
 * the later one of two, and 0 beyond the grid. Both masks are as in struct image_mask. Sets *voxels
 * to the number set. Runs on one thread in plain C: masks are in host memory. Returns 0 or -ENOMEM.
 */
int kernels_resample_mask(const struct image_planes *planes, const struct resample_grid *grid, const uint64_t *bits,
                          uint64_t *on_planes, int64_t *voxels, struct error *error);

/*
 * Transfers a drawn mask of the planes to the grid. A voxel takes the bit of the first pixel to
 * which kernels_resample_mask would give its own. A drawn mask therefore survives the way back
 * unchanged on all planes with their own slice of the grid. Other voxels take the bit of the
 * nearest pixel of the nearest plane, the later of two, and 0 beyond the planes. Returns 0 or
 * -ENOMEM.
 */
int kernels_resample_drawn(const struct image_planes *planes, const struct resample_grid *grid, const uint64_t *bits,
                           uint64_t *on_grid, int64_t *voxels, struct error *error);

/*
 * Resamples a mask of the planes on the grid as in IBSI 2.4, trilinear with threshold one half. The
 * result equals, bit for bit, order 1 of a volume of bytes with 1 in the mask and 0 elsewhere and
 * outside. Returns 0 or -ENOMEM.
 */
int kernels_resample_linear_mask(const struct image_planes *planes, const struct resample_grid *grid,
                                 const uint64_t *bits, uint64_t *on_grid, int64_t *voxels, struct error *error);

/* Takes the bit of the nearest sample of regular planes, the later one of two (`from_end`: the earlier of two planes), and 0
 * beyond their outer faces. Likewise. */
int kernels_resample_nearest_mask(const struct image_planes *planes, const struct resample_grid *grid,
                                  const uint64_t *bits, uint64_t *on_grid, int64_t *voxels, struct error *error);

/* Finds the part of the grid's slice `k` that order 1 covers: voxels first to last along columns
 * (0) and rows (1), empty if last < first. Other voxels are `outside`. */
void resample_reach(const struct image_planes *planes, const struct resample_grid *grid, int64_t k, int64_t first[2],
                    int64_t last[2]);

/* Transfers a map of the grid to the planes, as kernels_resample_mask, x fastest and tightly
 * packed; 0 beyond the grid. */
int kernels_resample_map(const struct image_planes *planes, const struct resample_grid *grid, const uint16_t *map,
                         uint16_t *on_planes, struct error *error);

/* ---- within kernels/ ---- */

struct kernels_arena;

/* Planes for resampling: one mean step apart if they are regular. */
struct resample_frame {
    const struct image_planes *planes;
    bool regular;
    double step; /* mean step */
    double normal[3];
};

struct resample_frame resample_frame_of(const struct image_planes *planes);

/* Return mm along an axis: of a plane's origin relative to the first one's, and of the grid's voxel
 * `i`. */
double resample_shift(const struct resample_frame *frame, int64_t plane, int axis);
double resample_mm(const struct resample_grid *grid, int axis, int64_t i);

/*
 * Return positions in samples, rounded: a height among the planes, and mm among a plane's columns
 * or rows, with their shift. resample_nearest returns the nearest sample, the later of two; -1:
 * none. resample_is_beyond: in a grid of resample_cornered(), the position is not within the samples' outer faces.
 */
double resample_rounded(double place);
double resample_between(const struct resample_frame *frame, double height);
double resample_beside(const struct image_planes *planes, double mm, double shift, int axis);
int32_t resample_nearest(double place, int64_t samples);
bool resample_is_beyond(const struct resample_grid *grid, int axis, double place, int64_t samples);

int64_t *resample_side(struct image_extent *extent, int axis);

/* The value at a position on an axis: (1 - part) * sample `at` + part * the next. */
struct resample_pair {
    double part;
    int32_t at; /* -1: outside */
};

/* Return the pair of the grid's voxel `i` along a plane's columns or rows, and along the normal. */
struct resample_pair resample_tap_beside(const struct resample_frame *frame, const struct resample_grid *grid,
                                         int64_t plane, int axis, int64_t i, int order);
struct resample_pair resample_tap_between(const struct resample_frame *frame, const struct resample_grid *grid,
                                          int64_t k, int order);

/* Weights for order 3. `at` is an index with mirrored ends. */
struct resample_weights {
    double weight[4];
    int32_t at[4];
};

enum { RESAMPLE_REACH = 32 }; /* powers of the pole beyond this are below a double's precision */

/* Weights of the first RESAMPLE_REACH samples, or fewer, for the first coefficient of a line. */
struct resample_start {
    double weight[RESAMPLE_REACH];
    double end; /* factor of the last one */
    int32_t count;
};

#define RESAMPLE_POLE (-0.2679491924311228) /* sqrt(3) - 2 in double precision */
#define RESAMPLE_GAIN 6.0                   /* (1 - pole) * (1 - 1 / pole) */

/* The tables of a request, in memory sized by the lane's volume and the demand. Orders 0 and 1:
 * taps of each plane's columns and rows, and of the normal. Order 3: weights of the three axes. */
struct resample_tables {
    struct resample_pair *taps[3];
    int64_t step[2]; /* elements from one plane's taps to the next; 0: shared by all planes */
    struct resample_weights *weights[3];
    struct resample_start *starts; /* for the three axes */
};

/* Takes the tables' pieces, with the number of elements from resample_table_size. */
void resample_place_tables(struct kernels_arena *arena, const struct kernels_lane *lane,
                           const struct resample_demand *demand, struct resample_tables *tables);
size_t resample_table_size(const struct kernels_lane *lane, const struct resample_demand *demand, int axis);

struct resample_run {
    const struct resample_request *request;
    const void **voxels;
};

void resample_fill_tables(const struct resample_request *request, struct resample_tables *tables);

/* Returns whether the sizes for a demand do not overflow. */
bool resample_fits(const struct kernels_lane *lane, const struct resample_demand *demand);

#ifdef __cplusplus
}
#endif
#endif
