#include "kernels/features/shape/plane_diameters.h"

#include "kernels/features/shape/flat_hull.h"
#include "kernels/texture/region.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLANE_WORD = 64 };

/* Planes of rows of bits. */
struct plane_stack {
    const uint64_t *bits;
    int64_t planes, lines;          /* the next plane after the last is not measured, but may exist */
    int64_t plane_pitch, row_pitch; /* in words */
    int64_t first_line;
    int64_t columns;       /* bits per row */
    bool next;             /* there is a plane after the last one */
    struct flat_hull hull; /* coordinates are half voxels */
    uint64_t *row;         /* of two planes */
};

static int
stack_open(struct plane_stack *stack, int64_t lines, int64_t columns, double along, double across)
{
    stack->columns = columns;
    stack->row = malloc((size_t)((columns + PLANE_WORD - 1) / PLANE_WORD) * sizeof(*stack->row));
    const int rc = flat_hull_open(&stack->hull, 2 * (size_t)lines + 1, (const double[2]){along / 2, across / 2});

    return stack->row ? rc : -ENOMEM;
}

static void
stack_close(struct plane_stack *stack)
{
    flat_hull_close(&stack->hull);
    free(stack->row);
}

/* Returns the square of the diameter of a plane. A vertex is half a voxel beyond each voxel at an end of a line. */
static double
plane_square(struct plane_stack *stack, int64_t plane)
{
    struct flat_hull *hull = &stack->hull;
    int64_t ends[2];

    flat_hull_begin(hull, 2 * stack->first_line - 1, 2 * stack->lines + 1);
    for (int64_t line = stack->first_line; line < stack->first_line + stack->lines; line++) {
        if (!texture_row_ends(stack->bits + plane * stack->plane_pitch + line * stack->row_pitch, stack->columns, ends))
            continue;
        for (int64_t step = -1; step <= 1; step++)
            flat_hull_add(hull, 2 * line + step, 2 * ends[0] - (step == 0), 2 * ends[1] + (step == 0));
    }
    flat_hull_make(hull);
    return flat_hull_farthest(hull);
}

/* Returns that midway to the next plane, where vertices lie between two voxels of which one is in the region. */
static double
between_square(struct plane_stack *stack, int64_t plane)
{
    const int64_t words = (stack->columns + PLANE_WORD - 1) / PLANE_WORD;
    struct flat_hull *hull = &stack->hull;
    int64_t ends[2];

    flat_hull_begin(hull, 2 * stack->first_line - 1, 2 * stack->lines + 1);
    for (int64_t line = stack->first_line; line < stack->first_line + stack->lines; line++) {
        const uint64_t *row = stack->bits + plane * stack->plane_pitch + line * stack->row_pitch;

        for (int64_t w = 0; w < words; w++)
            stack->row[w] = row[w] ^ row[w + stack->plane_pitch];
        if (texture_row_ends(stack->row, stack->columns, ends))
            flat_hull_add(hull, 2 * line, 2 * ends[0], 2 * ends[1]);
    }
    flat_hull_make(hull);
    return flat_hull_farthest(hull);
}

static double
stack_square(struct plane_stack *stack, int64_t first)
{
    double most = 0;

    for (int64_t plane = first; plane < first + stack->planes; plane++) {
        most = fmax(most, plane_square(stack, plane));
        if (plane + 1 < first + stack->planes || stack->next)
            most = fmax(most, between_square(stack, plane));
    }
    return most;
}

/* Turns a word of columns, and the column after it, into planes whose rows are along the rows of the volume. */
static void
turn_columns(const uint64_t *bits, const struct image_extent *extent, const struct texture_box *box, int64_t word,
             uint64_t *turned)
{
    const int64_t words = (extent->columns + PLANE_WORD - 1) / PLANE_WORD;
    const int64_t pitch = (extent->rows + PLANE_WORD - 1) / PLANE_WORD;

    memset(turned, 0, (size_t)((PLANE_WORD + 1) * extent->slices * pitch) * sizeof(*turned));
    for (int64_t z = box->first[2]; z < box->first[2] + box->size[2]; z++)
        for (int64_t y = box->first[1]; y < box->first[1] + box->size[1]; y++) {
            const uint64_t *row = bits + (z * extent->rows + y) * words + word;
            uint64_t *to = turned + z * pitch + y / PLANE_WORD;

            for (uint64_t left = row[0]; left; left &= left - 1)
                to[__builtin_ctzll(left) * extent->slices * pitch] |= UINT64_C(1) << y % PLANE_WORD;
            if (word + 1 < words && (row[1] & 1))
                to[PLANE_WORD * extent->slices * pitch] |= UINT64_C(1) << y % PLANE_WORD;
        }
}

/* Finds the square of the diameter in planes of one column. */
static int
columns_square(const uint64_t *bits, const struct image_extent *extent, const struct texture_box *box,
               const double spacing[3], double *square)
{
    const int64_t pitch = (extent->rows + PLANE_WORD - 1) / PLANE_WORD, last = box->first[0] + box->size[0] - 1;
    uint64_t *turned = malloc((size_t)((PLANE_WORD + 1) * extent->slices * pitch) * sizeof(*turned));
    struct plane_stack stack = {.bits = turned,
                                .planes = PLANE_WORD,
                                .plane_pitch = extent->slices * pitch,
                                .row_pitch = pitch,
                                .first_line = box->first[2],
                                .lines = box->size[2],
                                .next = true};
    const int opened = stack_open(&stack, box->size[2], extent->rows, spacing[1], spacing[2]);
    const int rc = turned ? opened : -ENOMEM;

    *square = 0;
    for (int64_t word = box->first[0] / PLANE_WORD; word <= last / PLANE_WORD && rc == 0; word++) {
        turn_columns(bits, extent, box, word, turned);
        *square = fmax(*square, stack_square(&stack, 0));
    }
    stack_close(&stack);
    free(turned);
    return rc;
}

/* Finds the square of the diameter in planes of one row or of one slice. */
static int
rows_square(const uint64_t *bits, const struct image_extent *extent, const struct texture_box *box,
            const double spacing[3], int axis, double *square)
{
    const int64_t words = (extent->columns + PLANE_WORD - 1) / PLANE_WORD, slice = extent->rows * words;
    const int other = axis == PLANE_OF_SLICE ? 1 : 2; /* along the lines of a plane */
    struct plane_stack stack = {.bits = bits,
                                .planes = box->size[axis],
                                .plane_pitch = axis == PLANE_OF_SLICE ? slice : words,
                                .row_pitch = axis == PLANE_OF_SLICE ? words : slice,
                                .first_line = box->first[other],
                                .lines = box->size[other]};
    const int rc = stack_open(&stack, box->size[other], extent->columns, spacing[0], spacing[other]);

    if (rc == 0)
        *square = stack_square(&stack, box->first[axis]);
    stack_close(&stack);
    return rc;
}

/* Every plane of a box has these diameters. */
static void
box_diameters(const struct image_extent *extent, const double spacing[3], double diameters[PLANES_OF_VOXELS])
{
    const int64_t sizes[3] = {extent->columns, extent->rows, extent->slices};

    for (int axis = 0; axis < 3; axis++) {
        const int a = axis == 0, b = axis == 2 ? 1 : 2;
        const double size[2] = {(double)sizes[a] * spacing[a], (double)sizes[b] * spacing[b]};
        /* Each side of a vertex's line ends half a voxel before the corner along the other one. */
        const double one = hypot(size[0], size[1] - spacing[b]), two = hypot(size[0] - spacing[a], size[1]);

        diameters[axis] = fmax(one, two);
    }
}

int
plane_diameters(const uint64_t *bits, const struct image_extent *extent, const double spacing[3],
                double diameters[PLANES_OF_VOXELS])
{
    struct texture_box box;
    double square = 0;
    int rc = 0;

    if (!bits) {
        box_diameters(extent, spacing, diameters);
        return 0;
    }
    texture_box_of(bits, extent, &box);
    for (int axis = 0; axis < 3 && rc == 0; axis++) {
        if (box.size[0] == 0)
            square = 0;
        else
            rc = axis == PLANE_OF_COLUMN ? columns_square(bits, extent, &box, spacing, &square)
                                         : rows_square(bits, extent, &box, spacing, axis, &square);
        diameters[axis] = sqrt(square);
    }
    return rc;
}
