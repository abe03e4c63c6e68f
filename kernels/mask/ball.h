/*
 * ball.h - the ball of mask.h as rows of voxels, for both backends.
 *
 * With every (i, j, k), the ball has all voxels from (-i, j, k) to (i, j, k). Each of its rows (j,
 * k) therefore has a span, at most that of the middle row. Rows of one span form a group, and
 * groups are ordered by decreasing span. A dilation by the ball (Serra 1982) unites rows group by
 * group, and after each widens the result by the difference to the next span.
 */
#ifndef NOCTULE_KERNELS_MASK_BALL_H
#define NOCTULE_KERNELS_MASK_BALL_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MASK_PADDING_MAX 8192 /* voxels on each side */

/* Extent of a ball along each axis, cut to one voxel beyond the volume. */
struct mask_reach {
    int64_t size[3];
};

struct mask_row {
    int32_t j, k;
};

struct mask_ball {
    struct mask_reach reach;
    int64_t groups;
    struct mask_row *rows; /* ordered by group */
    int64_t *ends;         /* end of each group in rows */
    int64_t *widen;        /* after each group: difference to the next span, or to 0 after the last */
};

struct mask_reach mask_reach_of(const struct image_extent *extent, const double spacing[3], double mm);

/* Returns whether the ball reaches at most MASK_PADDING_MAX. */
bool mask_padded_can(const double spacing[3], double mm);

/* Returns the extent with the reach of such a ball added on all sides, along x and y alone if in_slice. */
struct image_extent mask_padded(const struct image_extent *extent, const double spacing[3], double mm, bool in_slice);

/* Return the max number of rows and groups of a ball with this reach. */
size_t mask_ball_rows(const struct mask_reach *reach);
size_t mask_ball_groups(const struct mask_reach *reach);

/* Places memory for a ball of up to this reach. */
void mask_ball_place(struct mask_ball *ball, const struct mask_reach *most, struct kernels_arena *arena);

/* Makes the ball or, if in_slice, its disk with k = 0. */
void mask_ball_make(struct mask_ball *ball, const struct image_extent *extent, const double spacing[3], double mm,
                    bool in_slice);

#ifdef __cplusplus
}
#endif
#endif
