/* components.c - see components.h. */
#include "service/pipeline/components.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static const uint64_t *
sweep_row(const struct image_extent *extent, const struct image_mask *mask, int64_t y, int64_t z)
{
    return mask->bits + (z * extent->rows + y) * mask->words_per_row;
}

/* Neighbours in a row, from first to last. */
struct sweep_run {
    int64_t first, last;
    int64_t label; /* a place in `parents` */
};

struct slice_runs {
    struct sweep_run *at;
    int64_t *rows; /* where those of each row begin, and behind the last where they end */
};

struct component_sweep {
    const struct image_extent *extent;
    const struct image_mask *mask;
    struct slice_runs now, before;
    int64_t *parents; /* of labels: of the slice before, and behind them of this one */
    int64_t labels;
    int64_t count; /* runs that were not joined to any other so far */
};

static int64_t
sweep_root(struct component_sweep *sweep, int64_t label)
{
    int64_t *parents = sweep->parents;
    while (parents[label] != label) {
        parents[label] = parents[parents[label]];
        label = parents[label];
    }
    return label;
}

static void
sweep_join(struct component_sweep *sweep, int64_t a, int64_t b)
{
    a = sweep_root(sweep, a);
    b = sweep_root(sweep, b);
    if (a == b)
        return;
    sweep->parents[a > b ? a : b] = a > b ? b : a;
    sweep->count--;
}

/* The next voxel from `x` on that is `set`; the number of columns when there is none. */
static int64_t
row_next(const uint64_t *row, int64_t columns, int64_t x, bool set)
{
    while (x < columns) {
        const uint64_t word = set ? row[x / 64] : ~row[x / 64];
        const uint64_t rest = word >> (x % 64);
        if (rest) {
            x += __builtin_ctzll(rest);
            return x < columns ? x : columns;
        }
        x = (x / 64 + 1) * 64;
    }
    return columns;
}

/* Lists the runs of a row behind those at `end`, each a component of its own; where they end. */
static int64_t
sweep_add_row(struct component_sweep *sweep, int64_t y, int64_t z, int64_t end)
{
    const int64_t columns = sweep->extent->columns;
    const uint64_t *row = sweep_row(sweep->extent, sweep->mask, y, z);
    int64_t x = row_next(row, columns, 0, true);
    while (x < columns) {
        const int64_t behind = row_next(row, columns, x, false);
        sweep->parents[sweep->labels] = sweep->labels;
        sweep->now.at[end++] = (struct sweep_run){x, behind - 1, sweep->labels++};
        sweep->count++;
        x = row_next(row, columns, behind, true);
    }
    return end;
}

/* Joins the runs of a row with those of a neighbouring row that they overlap. */
static void
sweep_join_rows(struct component_sweep *sweep, int64_t y, const struct slice_runs *other,
                int64_t other_y)
{
    int64_t i = sweep->now.rows[y], j = other->rows[other_y];
    while (i < sweep->now.rows[y + 1] && j < other->rows[other_y + 1]) {
        const struct sweep_run *a = &sweep->now.at[i], *b = &other->at[j];
        if (a->first <= b->last && b->first <= a->last)
            sweep_join(sweep, a->label, b->label);
        if (a->last < b->last)
            i++;
        else
            j++;
    }
}

static void
sweep_slice(struct component_sweep *sweep, int64_t z)
{
    sweep->now.rows[0] = 0;
    for (int64_t y = 0; y < sweep->extent->rows; y++) {
        sweep->now.rows[y + 1] = sweep_add_row(sweep, y, z, sweep->now.rows[y]);
        if (y > 0)
            sweep_join_rows(sweep, y, &sweep->now, y - 1);
        if (z > 0)
            sweep_join_rows(sweep, y, &sweep->before, y);
    }
}

/* Only components that this slice has can be joined any more: they get the first labels. `fresh`: the
 * new one of each root. */
static void
sweep_forget(struct component_sweep *sweep, int64_t *fresh)
{
    const int64_t runs = sweep->now.rows[sweep->extent->rows];
    int64_t labels = 0;
    for (int64_t label = 0; label < sweep->labels; label++)
        fresh[label] = -1;
    for (int64_t i = 0; i < runs; i++) {
        const int64_t root = sweep_root(sweep, sweep->now.at[i].label);
        if (fresh[root] < 0)
            fresh[root] = labels++;
        sweep->now.at[i].label = fresh[root];
    }
    for (int64_t label = 0; label < labels; label++)
        sweep->parents[label] = label;
    sweep->labels = labels;
    const struct slice_runs now = sweep->now;
    sweep->now = sweep->before;
    sweep->before = now;
}

int
components_count(const struct image_extent *extent, const struct image_mask *mask, int64_t *count)
{
    struct component_sweep sweep = {.extent = extent, .mask = mask};
    const size_t most = (size_t)(extent->rows * ((extent->columns + 1) / 2));
    const size_t rows = (size_t)extent->rows + 1;
    struct sweep_run *runs = malloc(2 * most * sizeof *runs);
    int64_t *numbers = malloc((4 * most + 2 * rows) * sizeof *numbers);
    *count = 0;
    if (!runs || !numbers) {
        free(runs);
        free(numbers);
        return -ENOMEM;
    }
    sweep.parents = numbers;
    sweep.now = (struct slice_runs){runs, numbers + 4 * most};
    sweep.before = (struct slice_runs){runs + most, numbers + 4 * most + rows};
    for (int64_t z = 0; z < extent->slices; z++) {
        sweep_slice(&sweep, z);
        sweep_forget(&sweep, numbers + 2 * most);
    }
    *count = sweep.count;
    free(runs);
    free(numbers);
    return 0;
}
