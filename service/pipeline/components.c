#include "service/pipeline/components.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Neighbouring voxels of a row, from first to last. */
struct sweep_run {
    int64_t first, last;
    int64_t label;
};

struct slice_runs {
    struct sweep_run *at;
    int64_t *rows; /* start of each row's runs; after the last row, the end */
};

/* Labels as trees: labels with the same root belong to one component. */
struct label_sets {
    int64_t *parents;
    int64_t count; /* components so far */
};

struct component_band {
    int64_t first, end; /* slices */
    struct slice_runs lowest, before, now;
    struct sweep_run *runs; /* of all three slices */
    int64_t *numbers;       /* their rows, parents, and new labels */
    struct label_sets sets; /* of the lowest slice and the previous one, then of this one */
    int64_t labels;
    int64_t *fresh; /* the new label of each root */
};

struct components {
    const struct image_extent *extent;
    const struct image_mask *mask;
    int64_t count;
    struct component_band bands[];
};

/* ---------------------------------------------------------------------------------- labels -- */

static int64_t
sets_root(const struct label_sets *sets, int64_t label)
{
    int64_t *parents = sets->parents;
    while (parents[label] != label) {
        parents[label] = parents[parents[label]];
        label = parents[label];
    }
    return label;
}

/*
 * Joins the overlapping runs of two rows. The labels of each slice are relative to its own first
 * label.
 */
static void
sets_join_rows(struct label_sets *sets, const struct slice_runs *a, int64_t a_row, int64_t a_first,
               const struct slice_runs *b, int64_t b_row, int64_t b_first)
{
    int64_t i = a->rows[a_row], j = b->rows[b_row];
    while (i < a->rows[a_row + 1] && j < b->rows[b_row + 1]) {
        const struct sweep_run *one = &a->at[i], *other = &b->at[j];
        if (one->first <= other->last && other->first <= one->last) {
            const int64_t root = sets_root(sets, a_first + one->label);
            const int64_t joined = sets_root(sets, b_first + other->label);
            if (root != joined) {
                sets->parents[root > joined ? root : joined] = root > joined ? joined : root;
                sets->count--;
            }
        }
        if (one->last < other->last)
            i++;
        else
            j++;
    }
}

/* ------------------------------------------------------------------------------------ runs -- */

static const uint64_t *
mask_row(const struct components *components, int64_t y, int64_t z)
{
    return components->mask->bits + (z * components->extent->rows + y) * components->mask->words_per_row;
}

/* Returns the next voxel from `x` on that is `set`, or the number of columns. */
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

/* Appends the runs of a row at `end`, each as its own component. Returns the new end. */
static int64_t
band_add_row(struct component_band *band, const uint64_t *row, int64_t columns, int64_t end)
{
    int64_t x = row_next(row, columns, 0, true);
    while (x < columns) {
        const int64_t behind = row_next(row, columns, x, false);
        band->sets.parents[band->labels] = band->labels;
        band->now.at[end++] = (struct sweep_run){x, behind - 1, band->labels++};
        band->sets.count++;
        x = row_next(row, columns, behind, true);
    }
    return end;
}

/* ----------------------------------------------------------------------------------- bands -- */

/* Reserves memory for three slices with as many runs as the slice of the band that has most. */
static int
band_make(const struct components *components, struct component_band *band)
{
    size_t most = 1;
    const size_t rows = (size_t)components->extent->rows + 1;
    for (int64_t z = band->first; z < band->end; z++) {
        size_t runs = 1;
        for (int64_t y = 0; y < components->extent->rows; y++) {
            const uint64_t *row = mask_row(components, y, z);
            uint64_t before = 0;
            for (int64_t w = 0; w < components->mask->words_per_row; w++) {
                runs += (size_t)__builtin_popcountll(row[w] & ~(row[w] << 1 | before));
                before = row[w] >> 63;
            }
        }
        most = runs > most ? runs : most;
    }
    band->runs = malloc(3 * most * sizeof *band->runs);
    band->numbers = malloc((3 * rows + 6 * most) * sizeof *band->numbers);
    if (!band->runs || !band->numbers)
        return -ENOMEM;
    band->lowest = (struct slice_runs){band->runs, band->numbers};
    band->before = (struct slice_runs){band->runs + most, band->numbers + rows};
    band->now = (struct slice_runs){band->runs + 2 * most, band->numbers + 2 * rows};
    band->sets.parents = band->numbers + 3 * rows;
    band->fresh = band->sets.parents + 3 * most;
    return 0;
}

static void
band_sweep_slice(const struct components *components, struct component_band *band, int64_t z)
{
    const struct image_extent *extent = components->extent;
    band->now.rows[0] = 0;
    for (int64_t y = 0; y < extent->rows; y++) {
        band->now.rows[y + 1] = band_add_row(band, mask_row(components, y, z), extent->columns, band->now.rows[y]);
        if (y > 0)
            sets_join_rows(&band->sets, &band->now, y, 0, &band->now, y - 1, 0);
        if (z > band->first)
            sets_join_rows(&band->sets, &band->now, y, 0, &band->before, y, 0);
    }
}

/* Renumbers the labels of the runs; runs without a label get the next ones. */
static void
band_renumber(struct component_band *band, struct slice_runs *slice, int64_t rows, int64_t *labels)
{
    for (int64_t i = 0; i < slice->rows[rows]; i++) {
        const int64_t root = sets_root(&band->sets, slice->at[i].label);
        if (band->fresh[root] < 0)
            band->fresh[root] = (*labels)++;
        slice->at[i].label = band->fresh[root];
    }
}

/*
 * Frees labels: only components of the lowest slice and of this one can still be joined. They get
 * the first labels.
 */
static void
band_forget(struct component_band *band, int64_t rows)
{
    int64_t labels = 0;
    for (int64_t label = 0; label < band->labels; label++)
        band->fresh[label] = -1;
    band_renumber(band, &band->lowest, rows, &labels);
    band_renumber(band, &band->now, rows, &labels);
    for (int64_t label = 0; label < labels; label++)
        band->sets.parents[label] = label;
    band->labels = labels;
    const struct slice_runs now = band->now;
    band->now = band->before;
    band->before = now;
}

int
components_sweep(struct components *components, int64_t number)
{
    struct component_band *band = &components->bands[number];
    const int64_t rows = components->extent->rows;
    if (band_make(components, band))
        return -ENOMEM;
    for (int64_t z = band->first; z < band->end; z++) {
        band_sweep_slice(components, band, z);
        if (z == band->first) {
            const int64_t runs = band->now.rows[rows];
            memcpy(band->lowest.rows, band->now.rows, (size_t)(rows + 1) * sizeof *band->now.rows);
            memcpy(band->lowest.at, band->now.at, (size_t)runs * sizeof *band->now.at);
        }
        band_forget(band, rows);
    }
    return 0;
}

/* ------------------------------------------------------------------------------- the whole -- */

int
components_begin(const struct image_extent *extent, const struct image_mask *mask, int64_t bands,
                 struct components **made)
{
    const int64_t count = bands < extent->slices ? bands : extent->slices;
    struct components *components = calloc(1, sizeof *components + (size_t)count * sizeof *components->bands);
    *made = components;
    if (!components)
        return -ENOMEM;
    components->extent = extent;
    components->mask = mask;
    components->count = count;
    for (int64_t b = 0; b < count; b++) {
        components->bands[b].first = b * extent->slices / count;
        components->bands[b].end = (b + 1) * extent->slices / count;
    }
    return 0;
}

int64_t
components_bands(const struct components *components)
{
    return components->count;
}

int
components_join(const struct components *components, int64_t *count)
{
    const int64_t rows = components->extent->rows;
    struct label_sets all = {0};
    int64_t labels = 0, first = 0;
    for (int64_t b = 0; b < components->count; b++) {
        labels += components->bands[b].labels;
        all.count += components->bands[b].sets.count;
    }
    all.parents = malloc((size_t)(labels + 1) * sizeof *all.parents);
    if (!all.parents)
        return -ENOMEM;
    for (int64_t label = 0; label < labels; label++)
        all.parents[label] = label;
    for (int64_t b = 1; b < components->count; b++) {
        const struct component_band *below = &components->bands[b - 1], *band = below + 1;
        for (int64_t y = 0; y < rows; y++)
            sets_join_rows(&all, &below->before, y, first, &band->lowest, y, first + below->labels);
        first += below->labels;
    }
    free(all.parents);
    *count = all.count;
    return 0;
}

void
components_free(struct components *components)
{
    for (int64_t b = 0; components && b < components->count; b++) {
        free(components->bands[b].runs);
        free(components->bands[b].numbers);
    }
    free(components);
}

/* --------------------------------------------------------------------------------- a slice -- */

static int
component_run_compare(const void *a, const void *b)
{
    const struct component_run *one = a, *other = b;
    const int64_t by[3] = {one->component - other->component, one->row - other->row, one->first - other->first};
    const int64_t least = by[0] ? by[0] : by[1] ? by[1] : by[2];
    return (least > 0) - (least < 0);
}

int
components_of_slice(const struct image_extent *extent, const uint64_t *rows, struct component_run **runs, size_t *count)
{
    const struct image_extent one = {extent->columns, extent->rows, 1};
    const struct image_mask mask = {.bits = rows, .words_per_row = (extent->columns + 63) / 64};
    struct components *slice;
    *runs = NULL;
    int rc = components_begin(&one, &mask, 1, &slice);
    struct component_band *band = rc == 0 ? &slice->bands[0] : NULL;
    if (rc == 0)
        rc = band_make(slice, band);
    if (rc == 0) {
        band_sweep_slice(slice, band, 0);
        *count = (size_t)band->now.rows[one.rows];
        *runs = malloc((*count + 1) * sizeof **runs);
        rc = *runs ? 0 : -ENOMEM;
    }
    for (int64_t y = 0; rc == 0 && y < one.rows; y++)
        for (int64_t i = band->now.rows[y]; i < band->now.rows[y + 1]; i++) {
            const struct sweep_run *run = &band->now.at[i];
            (*runs)[i] = (struct component_run){y, run->first, run->last, sets_root(&band->sets, run->label)};
        }
    if (rc == 0)
        qsort(*runs, *count, sizeof **runs, component_run_compare);
    components_free(slice);
    return rc;
}
