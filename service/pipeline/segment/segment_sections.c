/*
 * segment_sections.c - the longest chain of sections of a segment, such as the trachea.
 *
 * A section is a 4-connected component of a slice of `from`. It counts if all of this holds, for its number of voxels and the rows
 * and columns of its box, with voxels of sx by sy mm, in double precision:
 *
 *     area_mm2[0] <= voxels * (sx * sy) <= area_mm2[1]
 *     rows * sy <= box_mm and columns * sx <= box_mm
 *     voxels / (rows * columns) >= fill
 *     the longer of rows * sy and columns * sx is at most aspect * the shorter
 *     |its mean column - the mean column of middle_of in the slice| * sx <= middle_mm
 *
 * Chains are made from the slice nearest to the head to that nearest to the feet. In each slice, the chains in their order take
 * the section that shares most columns and rows with their last one: of equal ones, that with the last first voxel, row by row.
 * No two chains take the same one. A chain that finds none ends. Each section that is left begins a chain, after the others.
 * The longest chain is the result, of equal ones that which ended first, or else began first. It has no voxel if it has fewer slices
 * than length_mm / sz.
 */
#include "service/pipeline/segment/segment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Voxels first .. last of a row. `part` is the first run of its component, or an earlier one of it. */
struct section_run {
    int32_t row, first, last;
    int32_t part;
    int32_t next;    /* the next run of the component; -1: none */
    int64_t section; /* in the first run of a component: its number among all sections; -1: none */
};

/* The runs of a slice, in ascending order. */
struct section_runs {
    struct section_run *items;
    int32_t count;
    int32_t *rows; /* the first run of each row, and one more */
};

/* Of the first run of a component, while the slice is read. */
struct section_sum {
    int64_t voxels, columns; /* sum of columns */
    int32_t box[4];          /* first and last row, first and last column */
    int32_t last;            /* run */
};

struct section {
    int64_t before; /* the section before it in its chain; -1: none */
    int32_t z;
    int32_t run;    /* the first run of its component */
    int32_t length; /* of the chain up to here */
    bool taken;     /* by a chain */
};

struct section_search {
    const struct segmentation *segmentation;
    const struct conf_sections *conf;
    const uint64_t *from, *middle;
    int64_t words_per_row;
    struct section_runs runs[2]; /* of the slice and of the one before, in turn */
    struct section_sum *sums;
    struct section *sections; /* of all slices so far */
    int64_t count;
    int64_t *chains; /* the last sections of the chains, in their order */
    int64_t chain_count;
    /* Voxels that the last section of a chain shares with each section of the slice, and the sections that share any. */
    int64_t *shared, *sharing;
    int64_t sharing_count;
    int64_t best; /* the last section of the longest chain that has ended; -1: none */
};

static int64_t
section_row(const struct section_search *search, int64_t row, int64_t z)
{
    return (z * search->segmentation->stack->rows + row) * search->words_per_row;
}

/* Returns the first column from `column` on that is in the row (or is not); `columns` if there is none. */
static int32_t
section_next(const uint64_t *row, int32_t column, bool in, int32_t columns)
{
    while (column < columns) {
        const uint64_t word = (in ? row[column / 64] : ~row[column / 64]) >> column % 64;
        if (word) {
            const int32_t found = column + __builtin_ctzll(word);
            return found < columns ? found : columns;
        }
        column = (column / 64 + 1) * 64;
    }
    return columns;
}

static int32_t
section_first_run(struct section_runs *runs, int32_t run)
{
    while (runs->items[run].part != run)
        run = runs->items[run].part = runs->items[runs->items[run].part].part;
    return run;
}

/* Joins the components of two runs. The earlier first run stays. */
static void
section_join(struct section_runs *runs, int32_t a, int32_t b)
{
    const int32_t one = section_first_run(runs, a), other = section_first_run(runs, b);
    runs->items[one > other ? one : other].part = one > other ? other : one;
}

/* Finds the runs of a slice of `from`, and joins those that touch. */
static void
section_read(const struct section_search *search, int64_t z, struct section_runs *runs)
{
    const struct geometry_stack *stack = search->segmentation->stack;
    int32_t above = 0;
    runs->count = 0;
    for (int32_t y = 0; y < stack->rows; y++) {
        const uint64_t *row = search->from + section_row(search, y, z);
        runs->rows[y] = runs->count;
        for (int32_t x = section_next(row, 0, true, stack->columns), end; x < stack->columns;
             x = section_next(row, end, true, stack->columns)) {
            end = section_next(row, x, false, stack->columns);
            struct section_run *run = &runs->items[runs->count];
            *run = (struct section_run){
                .row = y, .first = x, .last = end - 1, .part = runs->count, .next = -1, .section = -1};
            while (above < runs->rows[y] && (runs->items[above].row < y - 1 || runs->items[above].last < x))
                above++;
            for (int32_t i = above; i < runs->rows[y] && runs->items[i].first < end; i++)
                section_join(runs, i, runs->count);
            runs->count++;
        }
    }
    runs->rows[stack->rows] = runs->count;
}

/* Adds up the components at their first runs. */
static void
section_add_up(const struct section_search *search, struct section_runs *runs)
{
    for (int32_t i = 0; i < runs->count; i++) {
        const struct section_run *run = &runs->items[i];
        struct section_sum *sum = &search->sums[section_first_run(runs, i)];
        const int64_t voxels = run->last - run->first + 1;
        if (run->part == i)
            *sum = (struct section_sum){.box = {run->row, run->row, run->first, run->last}, .last = i};
        else
            runs->items[sum->last].next = i;
        sum->last = i;
        sum->voxels += voxels;
        sum->columns += voxels * (run->first + run->last) / 2;
        sum->box[1] = run->row;
        sum->box[2] = run->first < sum->box[2] ? run->first : sum->box[2];
        sum->box[3] = run->last > sum->box[3] ? run->last : sum->box[3];
    }
}

/* Finds the mean column of the middle in a slice. Returns false if it has no voxel there. */
static bool
section_middle(const struct section_search *search, int64_t z, double *column)
{
    const struct geometry_stack *stack = search->segmentation->stack;
    int64_t voxels = 0, columns = 0;
    for (int32_t y = 0; y < stack->rows; y++) {
        const uint64_t *row = search->middle + section_row(search, y, z);
        for (int32_t x = section_next(row, 0, true, stack->columns), end; x < stack->columns;
             x = section_next(row, end, true, stack->columns)) {
            end = section_next(row, x, false, stack->columns);
            voxels += end - x;
            columns += (int64_t)(end - x) * (x + end - 1) / 2;
        }
    }
    *column = voxels > 0 ? (double)columns / (double)voxels : 0;
    return voxels > 0;
}

static bool
section_counts(const struct section_search *search, const struct section_sum *sum, double middle)
{
    const struct conf_sections *conf = search->conf;
    const double *spacing = search->segmentation->stack->spacing;
    const int64_t rows = sum->box[1] - sum->box[0] + 1, columns = sum->box[3] - sum->box[2] + 1;
    const double height = (double)rows * spacing[1], width = (double)columns * spacing[0];
    const double area = (double)sum->voxels * (spacing[0] * spacing[1]);
    const double away = fabs((double)sum->columns / (double)sum->voxels - middle) * spacing[0];
    return area >= conf->area_mm2[0] && area <= conf->area_mm2[1] && height <= conf->box_mm && width <= conf->box_mm &&
           (double)sum->voxels / (double)(rows * columns) >= conf->fill &&
           fmax(height, width) <= conf->aspect * fmin(height, width) && away <= conf->middle_mm;
}

/* Lists the sections of a slice, in the order of their first runs. */
static void
section_list(struct section_search *search, int32_t z, struct section_runs *runs)
{
    double middle;
    if (runs->count == 0 || !section_middle(search, z, &middle))
        return;
    section_add_up(search, runs);
    for (int32_t i = 0; i < runs->count; i++) {
        if (runs->items[i].part != i || !section_counts(search, &search->sums[i], middle))
            continue;
        runs->items[i].section = search->count;
        search->sections[search->count++] = (struct section){.z = z, .run = i, .before = -1, .length = 1};
    }
}

/* Adds the voxels that a run shares with sections of the slice to `shared`, which begins at section `first`. */
static void
section_share_run(struct section_search *search, const struct section_run *run, struct section_runs *slice,
                  int64_t first)
{
    for (int32_t i = slice->rows[run->row]; i < slice->rows[run->row + 1]; i++) {
        const struct section_run *other = &slice->items[i];
        const int64_t section = slice->items[section_first_run(slice, i)].section;
        const int32_t from = run->first > other->first ? run->first : other->first;
        const int32_t to = run->last < other->last ? run->last : other->last;
        if (section < 0 || from > to)
            continue;
        if (search->shared[section - first] == 0)
            search->sharing[search->sharing_count++] = section;
        search->shared[section - first] += to - from + 1;
    }
}

/* Returns the section of the slice that a chain takes, from `first` on; -1: it ends. */
static int64_t
section_choose(struct section_search *search, int64_t last, const struct section_runs *before,
               struct section_runs *slice, int64_t first)
{
    int64_t chosen = -1, most = 0;
    for (int32_t run = search->sections[last].run; run >= 0; run = before->items[run].next)
        section_share_run(search, &before->items[run], slice, first);
    while (search->sharing_count > 0) {
        const int64_t section = search->sharing[--search->sharing_count];
        int64_t *shared = &search->shared[section - first];
        if (!search->sections[section].taken && (*shared > most || (*shared == most && section > chosen))) {
            chosen = section;
            most = *shared;
        }
        *shared = 0;
    }
    return chosen;
}

static void
section_end_chain(struct section_search *search, int64_t last)
{
    if (search->best < 0 || search->sections[last].length > search->sections[search->best].length)
        search->best = last;
}

/* Continues the chains with the sections of a slice, from `first` on, and begins new ones. */
static void
section_link(struct section_search *search, const struct section_runs *before, struct section_runs *slice,
             int64_t first)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < search->chain_count; i++) {
        const int64_t last = search->chains[i];
        const int64_t chosen = section_choose(search, last, before, slice, first);
        if (chosen < 0) {
            section_end_chain(search, last);
            continue;
        }
        struct section *section = &search->sections[chosen];
        section->taken = true;
        section->before = last;
        section->length = search->sections[last].length + 1;
        search->chains[kept++] = chosen;
    }
    search->chain_count = kept;
    for (int64_t section = first; section < search->count; section++)
        if (!search->sections[section].taken)
            search->chains[search->chain_count++] = section;
}

/* Finds the longest chain of all slices. */
static void
section_search_all(struct section_search *search)
{
    const struct geometry_stack *stack = search->segmentation->stack;
    const bool ascending = stack->normal[2] < 0; /* the last slice is nearest to the feet */
    search->best = -1;
    for (int32_t i = 0; i < stack->plane_count; i++) {
        const int32_t z = ascending ? i : stack->plane_count - 1 - i;
        const int64_t first = search->count;
        struct section_runs *slice = &search->runs[i % 2], *before = &search->runs[1 - i % 2];
        section_read(search, z, slice);
        section_list(search, z, slice);
        section_link(search, before, slice, first);
    }
    for (int64_t i = 0; i < search->chain_count; i++)
        section_end_chain(search, search->chains[i]);
}

/* Sets the voxels of a chain, whose last section is given. */
static void
section_draw(struct section_search *search, int64_t last, uint64_t *bits)
{
    struct section_runs *runs = &search->runs[0];
    for (int64_t s = last; s >= 0; s = search->sections[s].before) {
        const struct section *section = &search->sections[s];
        section_read(search, section->z, runs);
        for (int32_t i = section->run; i < runs->count; i++) {
            const struct section_run *run = &runs->items[i];
            uint64_t *row = bits + section_row(search, run->row, section->z);
            for (int32_t x = run->first; section_first_run(runs, i) == section->run && x <= run->last; x++)
                row[x / 64] |= UINT64_C(1) << x % 64;
        }
    }
}

/* Returns the most runs of a slice. */
static size_t
section_most_runs(const struct geometry_stack *stack)
{
    return (size_t)(stack->columns + 1) / 2 * (size_t)stack->rows;
}

/* Returns the most sections of a slice: 4-connected components of at least the smallest area. */
static size_t
section_most(const struct geometry_stack *stack, const struct conf_sections *conf)
{
    const double voxels = (double)stack->columns * (double)stack->rows;
    const double least = conf->area_mm2[0] / (stack->spacing[0] * stack->spacing[1]); /* voxels, rounded */
    return (size_t)(voxels / fmax(least * (1 - 1e-9), 2)) + 1;
}

static int
section_reserve(struct section_search *search)
{
    const struct geometry_stack *stack = search->segmentation->stack;
    const size_t most = section_most_runs(stack), sections = section_most(stack, search->conf);
    for (int i = 0; i < 2; i++) {
        search->runs[i].items = calloc(most, sizeof *search->runs[i].items);
        search->runs[i].rows = calloc((size_t)stack->rows + 1, sizeof *search->runs[i].rows);
        if (!search->runs[i].items || !search->runs[i].rows)
            return -ENOMEM;
    }
    search->sums = calloc(most, sizeof *search->sums);
    search->sections = calloc((size_t)stack->plane_count, sections * sizeof *search->sections);
    search->chains = calloc(sections, sizeof *search->chains);
    search->shared = calloc(sections, sizeof *search->shared);
    search->sharing = calloc(sections, sizeof *search->sharing);
    return search->sums && search->sections && search->chains && search->shared && search->sharing ? 0 : -ENOMEM;
}

static void
section_free(struct section_search *search)
{
    for (int i = 0; i < 2; i++) {
        free(search->runs[i].items);
        free(search->runs[i].rows);
    }
    free(search->sums);
    free(search->sections);
    free(search->chains);
    free(search->shared);
    free(search->sharing);
}

/* One element per segment, in the pipeline's order. */
struct sections_lengths {
    double *mm; /* of the longest chain */
};

static int
sections_find(struct segmentation *segmentation, size_t number, struct kernels_lane *lane, const void *voxels,
              uint64_t *bits, struct error *error)
{
    const struct sections_lengths *own = segmentation->of[CONF_SECTIONS].prepared;
    const size_t k = segment_place(segmentation, number);
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    const struct conf_sections *conf = &pipeline->segments[number].sections;
    struct section_search search = {.segmentation = segmentation,
                                    .conf = conf,
                                    .from = segment_from(segmentation, number),
                                    .middle = segmentation->masks[conf_find_segment(pipeline, conf->middle_of)].bits,
                                    .words_per_row = (segmentation->stack->columns - 1) / 64 + 1};
    int rc = section_reserve(&search);
    (void)lane;
    (void)voxels;
    if (rc) {
        error_set_system(error, rc, "find sections");
    } else {
        section_search_all(&search);
        own->mm[k] =
            search.best < 0 ? 0 : (double)search.sections[search.best].length * segmentation->stack->spacing[2];
        if (own->mm[k] >= conf->length_mm)
            section_draw(&search, search.best, bits);
    }
    section_free(&search);
    return rc;
}

static int
sections_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    struct sections_lengths *own = prepared;
    own->mm = calloc(segmentation->of[CONF_SECTIONS].count, sizeof *own->mm);
    return own->mm ? 0 : error_set_system(error, -ENOMEM, "prepare the segments");
}

static void
sections_release(void *prepared)
{
    struct sections_lengths *own = prepared;
    free(own->mm);
}

static struct segment_bytes
sections_bytes(const struct segmentation *segmentation, size_t number)
{
    const struct geometry_stack *stack = segmentation->stack;
    const size_t sections = section_most(stack, &segmentation->pipeline->segments[number].sections);
    return (struct segment_bytes){
        .passing = (int64_t)(section_most_runs(stack) * (2 * sizeof(struct section_run) + sizeof(struct section_sum)) +
                             sections * ((size_t)stack->plane_count * sizeof(struct section) + 3 * sizeof(int64_t)))};
}

static void
sections_describe(const struct segmentation *segmentation, size_t number, char text[SEGMENT_DESCRIPTION])
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const struct conf_sections *conf = &segment->sections;
    snprintf(text, SEGMENT_DESCRIPTION,
             "longest chain of sections of segment %s; area %g..%g mm2, box at most %g mm, fill %g, aspect %g; within "
             "%g mm of "
             "the middle of segment %s; at least %g mm long",
             segment->from, conf->area_mm2[0], conf->area_mm2[1], conf->box_mm, conf->fill, conf->aspect,
             conf->middle_mm, conf->middle_of, conf->length_mm);
}

static void
sections_report(const struct segmentation *segmentation, size_t number, struct pipeline_segment *report)
{
    const struct sections_lengths *own = segmentation->of[CONF_SECTIONS].prepared;
    report->numbers[0] = (struct segment_number){"chain_mm", "length of the chain in mm",
                                                 own->mm[segment_place(segmentation, number)], true};
    report->number_count = 1;
    report->measured_voxels = segmentation->found[number].voxels;
}

const struct segment_method segment_sections = {
    .algorithm = "Noctule chain of sections",
    /* the nearest term of PS3.16 CID 7162 */
    .family = {"123104", "DCM", "Morphological Operations"},
    .op = KERNELS_OPS,
    .size = sizeof(struct sections_lengths),
    .prepare = sections_prepare,
    .release = sections_release,
    .bytes = sections_bytes,
    .find = sections_find,
    .describe = sections_describe,
    .report = sections_report,
};
