#include "kernels/mask/ball.h"

#include <string.h>

/* The order of operations defines the ball. All sums increase with each of their terms. */
static bool
ball_has(const double spacing[3], double mm, int64_t i, int64_t j, int64_t k)
{
    double x = (double)i * spacing[0], y = (double)j * spacing[1], z = (double)k * spacing[2];

    return x * x + y * y + z * z <= mm * mm;
}

struct mask_reach
mask_reach_of(const struct image_extent *extent, const double spacing[3], double mm)
{
    const int64_t most[3] = {extent->columns, extent->rows, extent->slices};
    struct mask_reach reach = {{0, 0, 0}};

    for (int axis = 0; axis < 3; axis++) {
        int64_t *size = &reach.size[axis];

        while (*size < most[axis] &&
               ball_has(spacing, mm, axis == 0 ? *size + 1 : 0, axis == 1 ? *size + 1 : 0, axis == 2 ? *size + 1 : 0))
            ++*size;
    }
    return reach;
}

static const struct image_extent padding_max = {MASK_PADDING_MAX + 1, MASK_PADDING_MAX + 1, MASK_PADDING_MAX + 1};

bool
mask_padded_can(const double spacing[3], double mm)
{
    const struct mask_reach reach = mask_reach_of(&padding_max, spacing, mm);

    return reach.size[0] <= MASK_PADDING_MAX && reach.size[1] <= MASK_PADDING_MAX && reach.size[2] <= MASK_PADDING_MAX;
}

struct image_extent
mask_padded(const struct image_extent *extent, const double spacing[3], double mm, bool in_slice)
{
    const struct mask_reach reach = mask_reach_of(&padding_max, spacing, mm);

    return (struct image_extent){extent->columns + 2 * reach.size[0], extent->rows + 2 * reach.size[1],
                                 extent->slices + (in_slice ? 0 : 2 * reach.size[2])};
}

size_t
mask_ball_rows(const struct mask_reach *reach)
{
    return (size_t)((2 * reach->size[1] + 1) * (2 * reach->size[2] + 1));
}

size_t
mask_ball_groups(const struct mask_reach *reach)
{
    return (size_t)reach->size[0] + 1;
}

void
mask_ball_place(struct mask_ball *ball, const struct mask_reach *most, struct kernels_arena *arena)
{
    ball->rows = kernels_take(arena, mask_ball_rows(most), sizeof(*ball->rows));
    ball->ends = kernels_take(arena, mask_ball_groups(most), sizeof(*ball->ends));
    ball->widen = kernels_take(arena, mask_ball_groups(most), sizeof(*ball->widen));
}

/* Puts the rows with this span. For each k, j decreases as the span increases. */
static int64_t
ball_put_span(const struct mask_ball *ball, const double spacing[3], double mm, int64_t span, struct mask_row *rows)
{
    int64_t count = 0;

    for (int64_t k = 0; k <= ball->reach.size[2]; k++) {
        bool longest = span == ball->reach.size[0];

        for (int64_t j = 0; j <= ball->reach.size[1] && ball_has(spacing, mm, span, j, k); j++) {
            if (!longest && ball_has(spacing, mm, span + 1, j, k))
                continue;
            for (int turn = 0; turn < 4; turn++) /* the rows (+-j, +-k) */
                if ((j > 0 || !(turn & 1)) && (k > 0 || !(turn & 2)))
                    rows[count++] = (struct mask_row){(int32_t)(turn & 1 ? -j : j), (int32_t)(turn & 2 ? -k : k)};
        }
    }
    return count;
}

void
mask_ball_make(struct mask_ball *ball, const struct image_extent *extent, const double spacing[3], double mm,
               bool in_slice)
{
    int64_t rows = 0, before = 0;

    ball->reach = mask_reach_of(extent, spacing, mm);
    if (in_slice)
        ball->reach.size[2] = 0;
    ball->groups = 0;
    for (int64_t span = ball->reach.size[0]; span >= 0; span--) {
        int64_t count = ball_put_span(ball, spacing, mm, span, ball->rows + rows);

        if (count == 0)
            continue;
        rows += count;
        if (ball->groups > 0)
            ball->widen[ball->groups - 1] = before - span;
        ball->ends[ball->groups++] = rows;
        before = span;
    }
    ball->widen[ball->groups - 1] = before;
}
