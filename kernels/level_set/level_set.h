/*
 * level_set.h - the level set of Trapani 2018 on a lane's volume.
 */
#ifndef NOCTULE_LEVEL_SET_H
#define NOCTULE_LEVEL_SET_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* KERNELS_LEVEL_SET's demand. */
struct kernels_level_set_demand {
    size_t labels;
};

enum kernels_shape_kind {
    KERNELS_SPHERE,    /* (x-cx)^2 + (y-cy)^2 + (z-cz)^2 <= radius[0]^2 (Trapani 2018) */
    KERNELS_ELLIPSOID, /* ((x-cx)/rx)^2 + ((y-cy)/ry)^2 + ((z-cz)/rz)^2 <= 1 */
    KERNELS_BOX,       /* |x-cx| <= rx, |y-cy| <= ry, |z-cz| <= rz */
};

/*
 * A parametric initial curve in voxel coordinates; voxel centres lie at integers. The tests above
 * are evaluated in double precision, in the written order (x term + y term) + z term, without fused
 * multiply-add, so that all backends agree. A radius of 0 is allowed (a point, a plane): a term
 * whose difference is 0 is 0 whatever the radius. Negative or non-finite numbers are -EINVAL.
 */
struct kernels_shape {
    enum kernels_shape_kind kind;
    double center[3];
    double radius[3];
};

/*
 * One label: its initial region is the union of its shapes and of its dense mask (the paper's first
 * form of an initial curve), and a voxel is in range when its stored value lies in ranges[z] and not
 * in padding. Labels evolve independently. The arrays are borrowed until kernels_level_set_run
 * returns; the mask may be one that another operation has left in the lane.
 */
struct kernels_level_set_label {
    const struct kernels_shape *shapes;
    size_t shape_count;
    const struct image_range *ranges; /* one per slice, or one for all: range_count is either */
    size_t range_count;
    /* Stored values never in range (PS3.3 C.7.5.1.1.2); lo > hi: none. */
    struct image_range padding;
    /* As struct image_mask's bits, of as few words a row as will do; the padding bits may be
     * anything. NULL: none. */
    const uint64_t *mask;
    /* Masks like `mask`, in each of which a voxel must lie to be in range. Labels of a hint must have
     * none. */
    const uint64_t *const *within;
    size_t within_count;
    /* Remove voxels that are not in range from the region. Else those of the initial region stay
     * that the front does not reach, as in Trapani 2018. */
    bool strict;
};

/*
 * A hint, which may be left out: these are the labels that kernels_level_set_run will be given.
 * Before the first slice is announced; work that only ever grows then starts while later slices are
 * still being decoded. The labels and their arrays stay as they are until the run.
 */
int kernels_level_set_begin(struct kernels_lane *lane, const struct kernels_level_set_label *labels,
                            size_t count, struct error *error);

/*
 * Stages 1 and 2, to convergence, for every label: as many as the demand said. Needs every slice
 * announced (-EBUSY otherwise); may be called again with other labels, which takes the results of
 * the run before away. masks[i] is the final region of label i: all voxels whose state ends at 1 or
 * 2: the 6-connected components of voxels in range that hold a voxel of the initial region and,
 * unless `strict`, those of voxels not in range that lie in the initial region as a whole. The lane
 * owns the words.
 */
int kernels_level_set_run(struct kernels_lane *lane, const struct kernels_level_set_label *labels,
                          size_t count, struct image_mask *masks, struct error *error);

/*
 * Stage 3 with resolution 2f(1): the state codes of one label after
 * kernels_level_set_run, one int8 per voxel (columns * rows * slices bytes, x fastest, the
 * caller's): 2 inside with an outside 6-neighbour, 1 inside, -1 outside with an inside 6-neighbour,
 * -2 outside. Neighbours beyond the volume do not exist and make no border.
 */
int kernels_level_set_codes(struct kernels_lane *lane, size_t label, int8_t *codes,
                            struct error *error);

/* Within kernels/: what the operations are given. */
struct level_set_request {
    const struct kernels_level_set_label *labels;
    size_t count;
    struct image_mask *masks; /* NULL: a hint */
};

struct level_set_codes_request {
    size_t label;
    int8_t *codes;
};

#ifdef __cplusplus
}
#endif
#endif
