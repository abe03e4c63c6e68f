/*
 * coarse.h - the mean values of blocks of a lane's volume: the coarse grid of segments.
 *
 * Along each axis a block has max(1, floor(mm / spacing + 0.5)) voxels. Blocks begin at index 0; the last one of an
 * axis has the rest. The value of a block is an integer:
 *
 *     floor((2 * sum * scale + n) / (2 * n)),  sum = sum of (clip(v, lo, hi) - offset) over its n voxels
 *
 * Padding counts as lo. All backends and the reference in tests/kernels agree bit for bit. Shapes, errors, threads: as
 * in kernels.h. The demand of KERNELS_COARSE is kernels_asked.
 */
#ifndef NOCTULE_KERNELS_COARSE_COARSE_H
#define NOCTULE_KERNELS_COARSE_COARSE_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define COARSE_MAX_FACTOR (INT64_C(1) << 20) /* voxels per block and axis */
#define COARSE_MAX_SCALE  64

struct coarse_grid {
    int64_t factor[3]; /* voxels per block along x, y, z */
    struct image_extent extent;
    double spacing[3]; /* between the centres of whole blocks, mm */
};

/* Finds the grid of blocks of about `mm`. */
void coarse_grid_find(struct image_extent extent, const double spacing[3], double mm, struct coarse_grid *grid);

struct coarse_request {
    struct coarse_grid grid;
    int32_t lo, hi; /* stored values */
    int32_t offset;
    int32_t scale;              /* 1 .. COARSE_MAX_SCALE; every result must fit int16_t (-EINVAL) */
    struct image_range padding; /* lo > hi: no padding */
    int16_t *blocks;            /* grid.extent, x fastest; of the caller */
};

/* Computes the blocks. Every slice must be announced (-EBUSY). */
int coarse_run(struct kernels_lane *lane, const struct coarse_request *request, struct error *error);

/*
 * Copies each bit of a mask of the grid to all voxels of its block. With `unite`, copies only set bits. `bits` has the
 * min words per row of `extent`, and belongs to the caller. Uses up to `threads` threads.
 */
void coarse_expand(const struct coarse_grid *grid, const uint64_t *mask, struct image_extent extent, int threads,
                   bool unite, uint64_t *bits);

#ifdef __cplusplus
}
#endif
#endif
