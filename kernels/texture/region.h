/*
 * region.h - the box of a region, and a region and its levels that a lane holds.
 *
 * Several requests are often of one region. Held, its bits are read once: for its box, and into the device's
 * memory; each request whose `region` is that pointer finds them there, and likewise its levels. Holding changes no
 * result. While a region or levels are held or released no other thread runs anything of the lane; any may ask for the
 * box of the region that is held.
 */
#ifndef NOCTULE_TEXTURE_REGION_H
#define NOCTULE_TEXTURE_REGION_H

#include "kernels/kernels.h"

struct texture_levels;

#ifdef __cplusplus
extern "C" {
#endif

/* The smallest box that holds a region (NULL: the volume); its sizes are 0 where that is empty. */
struct texture_box {
    int64_t first[3], size[3]; /* by column, row, slice */
};

void texture_box_of(const uint64_t *region, const struct image_extent *extent,
                    struct texture_box *box);

/*
 * Holds a region of the lane's volume, whose bits must stay as they are until it is released, another one is
 * held, or the next volume begins; NULL, which needs none, releases. Of a demand for KERNELS_REGION, -EINVAL
 * otherwise; its slices are all announced, -EBUSY otherwise.
 */
int texture_region_hold(struct kernels_lane *lane, const uint64_t *region, struct error *error);

/* Likewise levels, if they have one table, which must stay as it is until the region is released. */
int texture_levels_hold(struct kernels_lane *lane, const struct texture_levels *levels,
                        struct error *error);

/* The region, and the levels. */
void texture_region_release(struct kernels_lane *lane);

/* texture_box_of a region of the lane's volume; of the one it holds at once. */
void texture_region_box(const struct kernels_lane *lane, const uint64_t *region,
                        struct texture_box *box);

/* ------------------------------------------------------------------------- within kernels/ ---- */

/* The one of the two that `run` is to hold. */
struct texture_hold {
    const uint64_t *bits;
    const uint16_t *level_of;
};

/* What the states of KERNELS_REGION begin with; `run` fills it. */
struct texture_region_state {
    const uint64_t *bits; /* NULL: none is held */
    struct texture_box box;
    const uint16_t *level_of; /* NULL: none is held */
};

/* The lane's, where it holds this region; else NULL. */
const struct texture_region_state *texture_region_held(const struct kernels_lane *lane,
                                                       const uint64_t *region);

/* The first and the last column of a row that is of the region; false: none is. NULL: all are. */
bool texture_row_ends(const uint64_t *row, int64_t columns, int64_t ends[2]);

/* Whether any of so many words has a bit: most slices of a small region have none, which is told faster of a slice than
 * of its rows. */
bool texture_slice_has_bits(const uint64_t *slice, int64_t words);

/* A box grows by slices; it begins with none, and says whether the slice has a voxel of the region. */
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
