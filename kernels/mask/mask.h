/*
 * mask.h - masks made of ranges, of other masks and of steps: components, holes, balls.
 *
 * Every step is a set operation with a definition, and gives the same voxels on every backend and
 * in tests/kernels/ref_mask.c. Conventions (shapes, errors, threads) are those of kernels.h.
 *
 * Components are 6-connected, 4-connected in a slice, or with `corners` 26- and 8-connected. A ball
 * of r mm is the set of offsets (i, j, k) with (i sx)^2 + (j sy)^2 + (k sz)^2 <= r^2, in double
 * precision in this order without FMA. Voxels outside the volume do not exist: growing finds nothing
 * there, and shrinking removes nothing because of them.
 */
#ifndef NOCTULE_MASK_H
#define NOCTULE_MASK_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KERNELS_MASK_MOST_KEPT 256

/* KERNELS_MASK's demand: what the job's requests may ask for. */
struct kernels_mask_demand {
    size_t masks;
    double spacing[3]; /* between voxel centres along x, y, z, mm */
    double reach_mm;   /* of the largest ball; 0: none has one */
    bool bridges;      /* KERNELS_MASK_CUT_BRIDGES is among the steps */
};

enum kernels_mask_step_kind {
    /* The `amount` largest components, at most KERNELS_MASK_MOST_KEPT; of two alike the one whose
     * first voxel comes first, x fastest. */
    KERNELS_MASK_KEEP,
    /* Components with at least `amount` (0 .. 1) times the largest's voxels, in double precision. */
    KERNELS_MASK_KEEP_AT_LEAST,
    /* Components of `amount` ml and more: voxels * (sx * sy * sz / 1000), in double precision. */
    KERNELS_MASK_DROP_BELOW,
    /* Adds what of the complement is not connected, within it, with the border of its slice; or of
     * the volume. */
    KERNELS_MASK_FILL_SLICES,
    KERNELS_MASK_FILL_VOLUME,
    /* By a ball of `amount` mm: union of the balls around its voxels; voxels whose ball, as far as
     * it is in the volume, lies in it; shrunk, then grown; grown, then shrunk. */
    KERNELS_MASK_GROW,
    KERNELS_MASK_SHRINK,
    KERNELS_MASK_OPEN,
    KERNELS_MASK_CLOSE,
    /*
     * As KERNELS_MASK_OPEN, but each component of what was shrunk is grown alone, and a voxel that
     * one of them reaches stays only where no other reaches it or a neighbour of it (by the step's
     * connectivity). What is thinner than the ball joins two components no more.
     */
    KERNELS_MASK_CUT_BRIDGES,
    KERNELS_MASK_STEPS, /* how many there are */
};

struct kernels_mask_step {
    enum kernels_mask_step_kind kind;
    double amount;
    bool corners;
};

/*
 * The voxels whose stored value lies in ranges[z] and not in padding (without ranges: all), that
 * lie in `found`, in each mask of `within` and in none of `minus`, through the steps. Each step that
 * adds voxels (grow, close, fill) is cut to `within` and `minus` again, and not to `found` or the
 * ranges. Masks are bits as of struct image_mask, of as few words a row as will do, their padding
 * bits anything; they may be those that this or another operation has left in the lane, but that of
 * the same place. All is borrowed for the call.
 */
struct kernels_mask_request {
    const struct image_range *ranges; /* one a slice, or one for all: range_count is either, or 0 */
    size_t range_count;
    struct image_range padding; /* lo > hi: none */
    const uint64_t *found;      /* NULL: every voxel */
    const uint64_t *const *within;
    size_t within_count;
    const uint64_t *const *minus;
    size_t minus_count;
    const struct kernels_mask_step *steps;
    size_t step_count;
};

struct kernels_mask_result {
    struct image_mask mask; /* the lane's */
    /* Of the last step that looks at components, CUT_BRIDGES too: those that it found, and kept. */
    int64_t components_found;
    int64_t components_kept;
    int64_t first[3], last[3]; /* the mask's box; first > last when it is empty */
};

/* Makes mask `place` (0 .. demand.masks - 1), in place of what was there. Needs every slice
 * announced (-EBUSY otherwise). */
int kernels_mask_run(struct kernels_lane *lane, size_t place,
                     const struct kernels_mask_request *request, struct kernels_mask_result *result,
                     struct error *error);

/* Within kernels/: what the operation is given, and what backends need to know of steps. */
struct mask_request {
    size_t place;
    const struct kernels_mask_request *given;
    struct kernels_mask_result *result;
};

bool mask_step_has_ball(enum kernels_mask_step_kind kind);

/* The voxels that a component needs to stay by KEEP_AT_LEAST or DROP_BELOW, where the largest has
 * so many; above that when none stays. */
int64_t mask_least_size(const struct kernels_mask_step *step, const double spacing[3],
                        int64_t largest);

#ifdef __cplusplus
}
#endif
#endif
