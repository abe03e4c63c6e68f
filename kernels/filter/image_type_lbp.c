/*
 * image_type_lbp.c - see image_type_lbp.h.
 *
 * A sample is a sum of 64 coefficients: along slices, then along rows, then along columns. The 42 vertices have 13 distances along
 * slices, and 25 pairs of distances along slices and rows, so that a voxel takes about 300 products instead of 42 * 84.
 */
#include "kernels/filter/image_type_lbp.h"

#include <string.h>

/* Returns the number of elements that whole groups of isa.weigh64 write. */
static int64_t
lbp_wide(int64_t count)
{
    return (count + ISA_WEIGH - 1) / ISA_WEIGH * ISA_WEIGH;
}

/* Returns the elements between rows of a block: its columns with those around them, and a group that may be read beyond. */
static int64_t
lbp_pitch(int64_t span)
{
    return lbp_wide(LBP_COLUMNS + span) + ISA_WEIGH;
}

size_t
lbp_space(double radius)
{
    const int64_t span = 2 * (int64_t)ceil(radius) + 1 + IMAGE_TYPE_WEIGHTS;
    const int64_t rows = IMAGE_TYPE_VERTICES * (LBP_ROWS + span) + IMAGE_TYPE_VERTICES + IMAGE_TYPE_WEIGHTS;

    return (size_t)(rows * lbp_pitch(span)) + sizeof(struct image_type_samples) / sizeof(double);
}

/* Returns whether two vertices have equal weights along an axis. */
static bool
lbp_is_same(const struct image_type_table *table, int one, int other, int axis)
{
    return table->places[one][axis] == table->places[other][axis] &&
           memcmp(table->weights[one][axis], table->weights[other][axis], sizeof table->weights[one][axis]) == 0;
}

void
lbp_plan_make(struct lbp_plan *plan)
{
    const struct image_type_table *table = plan->memory->table;

    plan->lines = plan->columns = 0;
    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++) {
        int line = 0, column = 0;

        while (line < plan->lines && !lbp_is_same(table, plan->line_first[line], v, 0))
            line++;
        if (line == plan->lines)
            plan->line_first[plan->lines++] = v;
        plan->line_of[v] = line;
        while (column < plan->columns && !(plan->line_of[plan->column_first[column]] == line &&
                                           lbp_is_same(table, plan->column_first[column], v, 1)))
            column++;
        if (column == plan->columns)
            plan->column_first[plan->columns++] = v;
        plan->column_of[v] = column;
    }
    for (int axis = 0; axis < 3; axis++) {
        int64_t low = 0, high = 0;

        for (int v = 0; v < IMAGE_TYPE_VERTICES; v++) {
            low = table->places[v][axis] < low ? table->places[v][axis] : low;
            high = table->places[v][axis] > high ? table->places[v][axis] : high;
        }
        plan->low[axis] = low;
        plan->span[axis] = high + IMAGE_TYPE_WEIGHTS - low;
    }
    plan->across = (plan->step->size[0] + LBP_COLUMNS - 1) / LBP_COLUMNS;
    plan->down = (plan->step->size[1] + LBP_ROWS - 1) / LBP_ROWS;
}

int64_t
lbp_blocks(const struct lbp_plan *plan)
{
    return plan->across * plan->down * plan->step->size[2];
}

/* A block, and its memory: sums along slices and along rows, coefficients of mirrored columns, and samples. */
struct lbp_at {
    int64_t first[3], columns, rows; /* columns, rows, slices of the first voxel */
    int64_t pitch, height;           /* of a line: elements between rows, and rows */
    double *lines, *sums, *mirrored;
    struct image_type_samples *samples;
};

/* Sums coefficients along slices, of a row of the volume. */
static void
lbp_sum_line(const struct lbp_plan *plan, const struct lbp_at *at, int line, int64_t row)
{
    const struct image_type_step *step = plan->step;
    const struct image_type_table *table = plan->memory->table;
    const int v = plan->line_first[line];
    const int64_t left = at->first[0] + plan->low[2], count = lbp_wide(at->columns + plan->span[2]);
    const bool is_inside = left >= 0 && left + count <= step->sides[0];
    const int64_t y = image_type_mirrored(at->first[1] + plan->low[1] + row, step->sides[1]);
    const double *rows[IMAGE_TYPE_WEIGHTS];

    for (int k = 0; k < IMAGE_TYPE_WEIGHTS; k++) {
        const int64_t z = image_type_mirrored(at->first[2] + table->places[v][0] + k, step->sides[2]);
        const double *from = plan->memory->at[step->from] + (z * step->sides[1] + y) * step->sides[0];
        double *own = at->mirrored + k * at->pitch;

        rows[k] = is_inside ? from + left : own;
        for (int64_t x = 0; x < count && !is_inside; x++)
            own[x] = from[image_type_mirrored(left + x, step->sides[0])];
    }
    plan->isa->weigh64(rows, table->weights[v][0], IMAGE_TYPE_WEIGHTS, count,
                       at->lines + (line * at->height + row) * at->pitch);
}

/* Sums along rows, for a row of the block. */
static void
lbp_sum_column(const struct lbp_plan *plan, const struct lbp_at *at, int column, int64_t row)
{
    const struct image_type_table *table = plan->memory->table;
    const int v = plan->column_first[column];
    const double *rows[IMAGE_TYPE_WEIGHTS];

    for (int j = 0; j < IMAGE_TYPE_WEIGHTS; j++)
        rows[j] =
            at->lines + (plan->line_of[v] * at->height + row + table->places[v][1] + j - plan->low[1]) * at->pitch;
    plan->isa->weigh64(rows, table->weights[v][1], IMAGE_TYPE_WEIGHTS, lbp_wide(at->columns + plan->span[2]),
                       at->sums + column * at->pitch);
}

/* Makes the samples of a vertex, for a row of the block. */
static void
lbp_sample(const struct lbp_plan *plan, const struct lbp_at *at, int v, int64_t row)
{
    const struct image_type_step *step = plan->step;
    const struct image_type_table *table = plan->memory->table;
    const double *from = at->sums + plan->column_of[v] * at->pitch + table->places[v][2] - plan->low[2];
    const double *rows[IMAGE_TYPE_WEIGHTS] = {from, from + 1, from + 2, from + 3};
    const int64_t columns = at->columns, left = at->first[0];
    double *samples = at->samples->at[v];
    const bool is_within = image_type_is_within(step, table, v, 0, at->first[2]) &&
                           image_type_is_within(step, table, v, 1, at->first[1] + row);

    plan->isa->weigh64(rows, table->weights[v][2], IMAGE_TYPE_WEIGHTS, lbp_wide(columns), samples);
    if (is_within && image_type_is_within(step, table, v, 2, left) &&
        image_type_is_within(step, table, v, 2, left + columns - 1))
        return;
    for (int64_t x = 0; x < columns; x++)
        if (!is_within || !image_type_is_within(step, table, v, 2, left + x))
            samples[x] = 0;
}

void
lbp_block(const struct lbp_plan *plan, int64_t block, double *space)
{
    const struct image_type_step *step = plan->step;
    const int64_t left = block % plan->across * LBP_COLUMNS, top = block / plan->across % plan->down * LBP_ROWS;
    const int64_t z = block / (plan->across * plan->down);
    struct lbp_at at = {.first = {step->first[0] + left, step->first[1] + top, step->first[2] + z},
                        .columns = step->size[0] - left < LBP_COLUMNS ? step->size[0] - left : LBP_COLUMNS,
                        .rows = step->size[1] - top < LBP_ROWS ? step->size[1] - top : LBP_ROWS,
                        .pitch = lbp_pitch(plan->span[2]),
                        .height = LBP_ROWS + plan->span[1]};

    at.lines = space;
    at.sums = at.lines + plan->lines * at.height * at.pitch;
    at.mirrored = at.sums + plan->columns * at.pitch;
    at.samples = (struct image_type_samples *)(at.mirrored + IMAGE_TYPE_WEIGHTS * at.pitch);
    for (int line = 0; line < plan->lines; line++)
        for (int64_t row = 0; row < at.rows + plan->span[1] - 1; row++)
            lbp_sum_line(plan, &at, line, row);
    for (int64_t row = 0; row < at.rows; row++) {
        const int64_t own = (at.first[2] * step->sides[1] + at.first[1] + row) * step->sides[0] + at.first[0];
        double *to = plan->memory->at[step->to] + (z * step->size[1] + top + row) * step->size[0] + left;

        for (int column = 0; column < plan->columns; column++)
            lbp_sum_column(plan, &at, column, row);
        for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
            lbp_sample(plan, &at, v, row);
        memcpy(at.samples->centres, plan->memory->at[IMAGE_TYPE_VALUES] + own,
               (size_t)at.columns * sizeof(*at.samples->centres));
        plan->isa->lbp_compare(step, at.samples);
        for (int64_t x = 0; x < at.columns; x++)
            to[x] = step->harmonic == LBP_K ? at.samples->kurtosis[x]
                                            : image_type_norm(step, plan->memory->table, at.samples->bits[x]);
    }
}
