/*
 * mask.h - masks from value ranges, other masks, and steps: components, holes, balls.
 *
 * Every step is a defined set operation, with the same voxels on every backend and in
 * tests/kernels/ref_mask.c. Shapes, errors, threads: as in kernels.h.
 *
 * Components are 6-connected, 4-connected in a slice, or with `corners` 26- and 8-connected. A ball
 * of r mm is the set of offsets (i, j, k) with (i sx)^2 + (j sy)^2 + (k sz)^2 <= r^2. The sum is
 * evaluated in double precision in this order without FMA. Voxels outside the volume do not exist:
 * growing does not add them, and shrinking does not treat them as outside the mask. Only closing
 * works on a padded copy.
 */
#ifndef NOCTULE_KERNELS_MASK_MASK_H
#define NOCTULE_KERNELS_MASK_MASK_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KERNELS_MASK_MOST_KEPT 256

/* KERNELS_MASK's demand: limits of the job's requests. */
struct kernels_mask_demand {
    size_t masks;
    double spacing[3]; /* between voxel centres along x, y, z, mm */
    double reach_mm;   /* of the largest ball; 0: no balls */
    bool bridges;      /* requests may use KERNELS_MASK_CUT_BRIDGES */
    bool closings;     /* requests may use KERNELS_MASK_CLOSE */
};

/* base/mask_steps.def defines each. */
enum kernels_mask_step_kind {

#define MASK_STEP(NAME, AMOUNT, components, text) KERNELS_MASK_##NAME,
#include "base/mask_steps.def"
    KERNELS_MASK_STEPS, /* number of steps */
};

struct kernels_mask_step {
    enum kernels_mask_step_kind kind;
    double amount;
    bool corners;
    bool in_slice; /* a ball is the disk in its slice: offsets with k = 0 */
};

/*
 * A request for the voxels whose stored value lies in ranges[z] (without ranges: all) and not in
 * padding. They must lie in `found`, in a mask of `any_of`, in each mask of `within`, and in no mask
 * of `minus`. Then the steps apply. Each step that adds voxels (grow, close, fill) is cut to `within`
 * and `minus` again, but not to the others.
 * Masks are bits as in struct image_mask, with the min words per row. Their padding bits are
 * ignored. They may be earlier results of this or another operation in the lane, except the mask at
 * the same place. Only `found` may be kernels_mask_memory of that place. The call borrows all pointers.
 */
struct kernels_mask_request {
    /* one per slice, or one for all; range_count: that number, or 0 */
    const struct image_range *ranges;
    size_t range_count;
    struct image_range padding; /* lo > hi: no padding */
    const uint64_t *found;      /* NULL: every voxel */
    const uint64_t *const *any_of;
    size_t any_of_count; /* 0: every voxel */
    const uint64_t *const *within;
    size_t within_count;
    const uint64_t *const *minus;
    size_t minus_count;
    const struct kernels_mask_step *steps;
    size_t step_count;
};

struct kernels_mask_result {
    struct image_mask mask; /* owned by the lane */
    /* Components found and kept by the last step on components, including CUT_BRIDGES. */
    int64_t components_found;
    int64_t components_kept;
    int64_t first[3], last[3]; /* the mask's box; first > last if it is empty */
};

/* Returns whether the amount of these steps is the radius of a ball. */
bool mask_step_has_ball(enum kernels_mask_step_kind kind);

/* Makes mask `place` (0 .. demand.masks - 1), and replaces the previous one there. Every slice must
 * be announced (-EBUSY). */
int kernels_mask_run(struct kernels_lane *lane, size_t place, const struct kernels_mask_request *request,
                     struct kernels_mask_result *result, struct error *error);

/* Returns the memory of mask `place` in *bits, for the caller to write: `found` of the request that makes this mask. Every
 * slice must be announced (-EBUSY). */
int kernels_mask_memory(struct kernels_lane *lane, size_t place, uint64_t **bits, struct error *error);

/* Returns the number of bits set. */
int64_t mask_count(const uint64_t *bits, int64_t words);

/* Private to kernels/: the request of the operation, and helpers for backends. */
struct mask_request {
    size_t place;
    const struct kernels_mask_request *given; /* NULL: only the memory of the mask is wanted */
    struct kernels_mask_result *result;
    uint64_t **memory;
};

/* Returns the min voxels of a component that KEEP_AT_LEAST or DROP_BELOW keeps, given the
 * largest's. Returns more than that if none stays. */
int64_t mask_least_size(const struct kernels_mask_step *step, const double spacing[3], int64_t largest);

#ifdef __cplusplus
}
#endif
#endif
