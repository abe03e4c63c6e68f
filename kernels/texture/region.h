/*
 * region.h - the box of a region, and a lane's held region and levels.
 *
 * Several requests often use one region. Holding it reads its bits once, for its box and for the
 * copy in device memory. Requests with the same `region` pointer then use that copy, and the held
 * levels likewise. Holding does not change results.
 * Threads: no other thread may run an operation of the lane while a region or levels are held or
 * released. Any thread may get the box of the held region.
 */
#ifndef NOCTULE_KERNELS_TEXTURE_REGION_H
#define NOCTULE_KERNELS_TEXTURE_REGION_H

#include "kernels/kernels.h"

struct texture_levels;

#ifdef __cplusplus
extern "C" {
#endif

/* The smallest box that contains a region (NULL: the volume). Its sizes are 0 if the region is
 * empty. */
struct texture_box {
    int64_t first[3], size[3]; /* in columns, rows, slices */
};

void texture_box_of(const uint64_t *region, const struct image_extent *extent, struct texture_box *box);

/*
 * Holds a region of the lane's volume, or releases it for NULL, which needs none. To hold the held region again has no
 * effect. The bits must not change until the region is released, another one is held, or the next volume begins. Returns
 * -EINVAL without a demand for KERNELS_REGION, and -EBUSY if a slice is not announced.
 */
int texture_region_hold(struct kernels_lane *lane, const uint64_t *region, struct error *error);

/* Holds levels with a single table, which must not change until the region is released. */
int texture_levels_hold(struct kernels_lane *lane, const struct texture_levels *levels, struct error *error);

/* Releases the region and the levels. */
void texture_region_release(struct kernels_lane *lane);

/* Finds the box of a region of the lane's volume. For the held region it is already known. */
void texture_region_box(const struct kernels_lane *lane, const uint64_t *region, struct texture_box *box);

/* ------------------------------------------------------------------------- within kernels/ ---- */

/* Request of `run`: exactly one of the two is set. */
struct texture_hold {
    const uint64_t *bits;
    const uint16_t *level_of;
};

/* The head of every KERNELS_REGION state, which `run` sets. */
struct texture_region_state {
    const uint64_t *bits; /* NULL: no region */
    struct texture_box box;
    const uint16_t *level_of; /* NULL: no levels */
};

/* Returns the lane's held region if it is this one, otherwise NULL. */
const struct texture_region_state *texture_region_held(const struct kernels_lane *lane, const uint64_t *region);

/* Finds the first and last column of a row in the region (NULL: all columns). Returns false if
 * there are none. */
bool texture_row_ends(const uint64_t *row, int64_t columns, int64_t ends[2]);

/* Returns whether any of `words` words has a bit. Most slices of a small region have none, and
 * testing the whole slice is faster than testing its rows. */
bool texture_slice_has_bits(const uint64_t *slice, int64_t words);

/* A box that grows by slices, initially empty. Adding a slice returns whether it has voxels of the
 * region. */
struct texture_box_ends {
    int64_t first[3], last[3];
};

void texture_box_begin(struct texture_box_ends *ends);
bool texture_box_add_slice(const uint64_t *slice, const struct image_extent *extent, int64_t z,
                           struct texture_box_ends *ends);
void texture_box_add(struct texture_box_ends *ends, const struct texture_box_ends *others);
void texture_box_end(const struct texture_box_ends *ends, struct texture_box *box);

#ifdef __cplusplus
}
#endif
#endif
