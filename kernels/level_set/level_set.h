/*
 * level_set.h - the level set of Trapani 2018 on a lane's volume.
 */
#ifndef NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_H
#define NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_H

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
 * A parametric initial curve in voxel coordinates, with voxel centres at integers. All backends
 * evaluate the tests above in double precision, in the written order (x term + y term) + z term,
 * without fused multiply-add. A radius of 0 is allowed (a point, a plane): a term whose difference
 * is 0 is 0 for every radius. Negative or non-finite numbers return -EINVAL.
 */
struct kernels_shape {
    enum kernels_shape_kind kind;
    double center[3];
    double radius[3];
};

/*
 * One label. Its initial region is the union of its shapes and its dense mask (the paper's first
 * form of an initial curve). A voxel is in range if its stored value lies in ranges[z] and not in
 * padding. Labels evolve independently. The arrays are borrowed until kernels_level_set_run
 * returns. The mask may be a result of another operation in the lane.
 */
struct kernels_level_set_label {
    const struct kernels_shape *shapes;
    size_t shape_count;
    const struct image_range *ranges; /* one per slice, or one for all; range_count: that number */
    size_t range_count;
    /* Stored values that are never in range (PS3.3 C.7.5.1.1.2); lo > hi: no padding. */
    struct image_range padding;
    /* Bits as in struct image_mask, with the min words per row. Padding bits are ignored. NULL: no
     * mask. */
    const uint64_t *mask;
    /* Masks like `mask`: voxels outside any of them are not in range. Labels of a hint must not
     * have these. */
    const uint64_t *const *within;
    size_t within_count;
    /* Remove voxels that are not in range from the region. Otherwise, voxels of the initial region
     * that the front does not reach stay, as in Trapani 2018. */
    bool strict;
};

/*
 * Announces the labels that kernels_level_set_run will receive (optional). Must be called before
 * the first slice is announced. Work that is independent of later slices then starts during
 * decoding. The labels and their arrays must not change until the run.
 */
int kernels_level_set_begin(struct kernels_lane *lane, const struct kernels_level_set_label *labels, size_t count,
                            struct error *error);

/*
 * Runs stages 1 and 2 to convergence, for as many labels as in the demand. Every slice must be
 * announced (-EBUSY). May be called again with other labels, which invalidates the previous
 * results. Sets masks[i] to the final region of label i, the voxels whose state ends at 1 or 2.
 * These are the 6-connected components of voxels in range that have a voxel of the initial region.
 * Unless `strict`, they include the components of voxels not in range that lie wholly in the
 * initial region. The lane owns the words.
 */
int kernels_level_set_run(struct kernels_lane *lane, const struct kernels_level_set_label *labels, size_t count,
                          struct image_mask *masks, struct error *error);

/*
 * Runs stage 3 with resolution 2f(1): writes the state codes of one label after
 * kernels_level_set_run. The caller owns `codes`, columns * rows * slices bytes, one int8 per
 * voxel, x fastest. 2: inside with an outside 6-neighbour, 1: inside, -1: outside with an inside
 * 6-neighbour, -2: outside. Neighbours beyond the volume do not exist and make no border.
 */
int kernels_level_set_codes(struct kernels_lane *lane, size_t label, int8_t *codes, struct error *error);

/* Private to kernels/: the request of the operation. */
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
