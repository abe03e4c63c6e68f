/*
 * ball.h - the ball of mask.h as rows of voxels, for both backends.
 *
 * With every (i, j, k) the ball has all from (-i, j, k) to (i, j, k): it is a span for each of its
 * rows (j, k), and no span is longer than the middle one. Rows of one span make a group, groups
 * come with falling spans: so a dilation by the ball (Serra 1982) is, group by group, a union of rows that is then
 * widened by what the next span is shorter.
 */
#ifndef NOCTULE_BALL_H
#define NOCTULE_BALL_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a ball reaches along each axis, where it is cut to the size of the volume: one voxel beyond
 * its last. */
struct mask_reach {
    int64_t size[3];
};

struct mask_row {
    int32_t j, k;
};

struct mask_ball {
    struct mask_reach reach;
    int64_t groups;
    struct mask_row *rows; /* in the order of their groups */
    int64_t *ends;         /* of each group in rows */
    int64_t *widen;        /* after each group: to the next group's span, to 0 after the last */
};

struct mask_reach mask_reach_of(const struct image_extent *extent, const double spacing[3],
                                double mm);

/* Rows and groups that a ball of this reach has at most. */
size_t mask_ball_rows(const struct mask_reach *reach);
size_t mask_ball_groups(const struct mask_reach *reach);

/* Pieces for a ball of up to this reach. */
void mask_ball_place(struct mask_ball *ball, const struct mask_reach *most,
                     struct kernels_arena *arena);

void mask_ball_make(struct mask_ball *ball, const struct image_extent *extent,
                    const double spacing[3], double mm);

#ifdef __cplusplus
}
#endif
#endif
