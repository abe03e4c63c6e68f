/*
 * resample.h - a lane's volume on another grid, and masks of that grid on the planes it came from.
 *
 * The planes may be tilted and unevenly spaced; the grid is upright on them: along their rows, their
 * columns and their normal, in mm from the centre of pixel (0, 0) of the first plane. A place along
 * an axis is counted in samples, ((grid origin + i * grid spacing) - the plane's own shift) /
 * spacing, along the normal between the two planes around it, and rounded to 2^-16 of a sample: so
 * what lies half way lies there whatever the digits of a file make of it. Planes that are regular as
 * the gate has it (within 1 % of their mean step, at least 0.02 mm, none shifted by more) lie just
 * one mean step apart, and not shifted. Within half a sample
 * beyond the first and the last it is theirs; what is farther is `outside`: nothing is made up.
 *
 * - Order 0: the nearest sample, the later one of two.
 * - Order 1: between two samples (1 - f) * a + f * b; along the columns first, then along the rows,
 *   then along the normal.
 * - Order 3: the cubic B-spline through the samples, mirrored at the ends (Unser 1993), rows first,
 *   then columns, then the normal. Its planes are regular, and the grid reaches half a sample
 *   beyond them at most.
 *
 * All in double precision, in one order, without fused operations; the stored value is floor(v +
 * 0.5), kept within the result's pixel type. So the backends agree bit for bit, and with the reference in
 * tests/kernels. A mask is resampled as a volume of 0 and 1: what becomes 1 has at least a half.
 */
#ifndef NOCTULE_RESAMPLE_H
#define NOCTULE_RESAMPLE_H

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

struct resample_grid {
    struct image_extent extent;
    double spacing[3]; /* mm along rows, columns and normal */
    double origin[3];  /* of voxel (0, 0, 0), from pixel (0, 0) of the first plane */
    int64_t first[3];  /* the extent begins at this voxel: a part of a grid (resample_around) */
};

/*
 * The upright grid of planes that are tilted or unevenly spaced: pixels as in the first plane, as
 * many more as the others are shifted; from the first plane to the last, `mm` apart or, where that
 * is 0, as the two that are closest.
 */
void resample_straight(const struct image_planes *planes, double mm, struct resample_grid *grid);

/*
 * Voxels of other sizes around the same middle (IBSI 2.4, "align grid centres"): as many as cover
 * the planes. An axis whose mm is 0 keeps its spacing, that of planes being their mean distance.
 */
void resample_spaced(const struct image_planes *planes, const double mm[3],
                     struct resample_grid *grid);

/*
 * Narrows a grid of regular planes to what a mask within a box of their samples may become on it, and
 * what is so many mm around that: one voxel at least. For kernels_resample and
 * kernels_resample_linear_mask, whose results are those of the whole grid.
 */
void resample_around(const struct image_planes *planes, const int64_t first[3],
                     const int64_t size[3], double margin_mm, struct resample_grid *grid);

/* The demand for KERNELS_RESAMPLE. */
struct resample_demand {
    struct image_extent extent; /* of the grid */
    int order;
    enum image_pixel pixel; /* of the result: a spline swings beyond what it runs through */
};

struct resample_request {
    const struct image_planes *planes; /* of the lane's volume */
    const struct resample_grid *grid;
    int order;
    int32_t outside; /* a stored value */
};

/*
 * Resamples the lane's volume: *voxels becomes the grid's, of the demand's pixel type, x
 * fastest, tightly packed, in the lane's memory (pinned on a GPU's). Every slice is announced (-EBUSY), and
 * the demand was for this extent and order. -EINVAL where planes do not ascend, a grid is empty or
 * its spacing is none, and of order 3 what is said above.
 */
int kernels_resample(struct kernels_lane *lane, const struct resample_request *request,
                     const void **voxels, struct error *error);

/*
 * A mask of the grid on the planes: each pixel has the bit of the grid's nearest voxel, the later
 * one of two, and none beyond the grid. Both as in struct image_mask; *voxels becomes the number
 * set. Plain C on one thread: masks are the host's. -ENOMEM.
 */
int kernels_resample_mask(const struct image_planes *planes, const struct resample_grid *grid,
                          const uint64_t *bits, uint64_t *on_planes, int64_t *voxels,
                          struct error *error);

/*
 * A mask of the planes on the grid, for what was drawn on them. A voxel has the bit of the pixel that
 * kernels_resample_mask gives its own to, the first of several: so what was drawn comes back as it
 * was, from all planes that have a slice of the grid to themselves. Another voxel has the bit of the
 * nearest pixel of the nearest plane, the later of two, and none beyond the planes. -ENOMEM.
 */
int kernels_resample_drawn(const struct image_planes *planes, const struct resample_grid *grid,
                           const uint64_t *bits, uint64_t *on_grid, int64_t *voxels,
                           struct error *error);

/*
 * A mask of the planes on the grid as IBSI 2.4 has it, trilinear at a half: bit for bit what order 1
 * makes of a volume of bytes that is 1 in the mask and 0 elsewhere, 0 being outside, too. -ENOMEM.
 */
int kernels_resample_linear_mask(const struct image_planes *planes,
                                 const struct resample_grid *grid, const uint64_t *bits,
                                 uint64_t *on_grid, int64_t *voxels, struct error *error);

/*
 * What the planes reach of the grid's slice `k` by order 1: voxels from first to last along columns (0)
 * and rows (1), none where the last is before the first; all else is `outside`.
 */
void resample_reach(const struct image_planes *planes, const struct resample_grid *grid, int64_t k,
                    int64_t first[2], int64_t last[2]);

/* A map of the grid on the planes, as a mask of it, x fastest and tightly packed; 0 beyond the grid. */
int kernels_resample_map(const struct image_planes *planes, const struct resample_grid *grid,
                         const uint16_t *map, uint16_t *on_planes, struct error *error);

/* ---- within kernels/ ---- */

struct kernels_arena;

/* Planes as they are taken: one mean step apart where they are regular. */
struct resample_frame {
    const struct image_planes *planes;
    bool regular;
    double step; /* the mean one */
    double normal[3];
};

struct resample_frame resample_frame_of(const struct image_planes *planes);

/* mm along an axis: of a plane's origin from the first one's; and of the grid's voxel `i`. */
double resample_shift(const struct resample_frame *frame, int64_t plane, int axis);
double resample_mm(const struct resample_grid *grid, int axis, int64_t i);

/* Places in samples, rounded: a height among the planes, and mm among a plane's columns or rows,
 * which are shifted by so many. The sample that is nearest to a place, the later of two; -1: none. */
double resample_rounded(double place);
double resample_between(const struct resample_frame *frame, double height);
double resample_beside(const struct image_planes *planes, double mm, double shift, int axis);
int32_t resample_nearest(double place, int64_t samples);

int64_t *resample_side(struct image_extent *extent, int axis);

/* What lies at a place of an axis: (1 - part) * sample `at` + part * the next. */
struct resample_pair {
    double part;
    int32_t at; /* -1: outside */
};

/* That of the grid's voxel `i` along a plane's columns or rows; and along the normal. */
struct resample_pair resample_tap_beside(const struct resample_frame *frame,
                                         const struct resample_grid *grid, int64_t plane, int axis,
                                         int64_t i, int order);
struct resample_pair resample_tap_between(const struct resample_frame *frame,
                                          const struct resample_grid *grid, int64_t k, int order);

/* The same of order 3; `at` counts with the ends mirrored. */
struct resample_weights {
    double weight[4];
    int32_t at[4];
};

enum { RESAMPLE_REACH = 32 }; /* beyond so many samples the pole's powers are no bits of a double */

/* How the coefficients of a line of samples begin: the first RESAMPLE_REACH of them, or fewer. */
struct resample_start {
    double weight[RESAMPLE_REACH];
    double end; /* the last one's factor */
    int32_t count;
};

#define RESAMPLE_POLE (-0.2679491924311228) /* sqrt(3) - 2, as that is in double precision */
#define RESAMPLE_GAIN 6.0                   /* (1 - pole) * (1 - 1 / pole) */

/*
 * The tables of a request, in memory for the lane's volume and the demand. Of orders 0 and 1, taps
 * of each plane's columns and rows, and of the normal; of order 3, weights of the three axes.
 */
struct resample_tables {
    struct resample_pair *taps[3];
    int64_t step[2]; /* from a plane's taps to the next one's; 0: all planes have the first one's */
    struct resample_weights *weights[3];
    struct resample_start *starts; /* of the three axes */
};

/* Takes their pieces; as many elements as resample_table_size says. */
void resample_place_tables(struct kernels_arena *arena, const struct kernels_lane *lane,
                           const struct resample_demand *demand, struct resample_tables *tables);
size_t resample_table_size(const struct kernels_lane *lane, const struct resample_demand *demand,
                           int axis);

struct resample_run {
    const struct resample_request *request;
    const void **voxels;
};

void resample_fill_tables(const struct resample_request *request, struct resample_tables *tables);

/* Whether numbers can count what a demand asks for. */
bool resample_fits(const struct kernels_lane *lane, const struct resample_demand *demand);

#ifdef __cplusplus
}
#endif
#endif
