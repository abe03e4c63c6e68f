#include "tests/kernels/ref_mask.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Allocates memory for `count` or one. Aborts the test if there is none. */
static void *
ref_mask_memory(int64_t count, size_t size)
{
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);

    if (!memory)
        abort();
    return memory;
}

static bool
is_inside(struct image_extent extent, int64_t x, int64_t y, int64_t z)
{
    return x >= 0 && y >= 0 && z >= 0 && x < extent.columns && y < extent.rows && z < extent.slices;
}

static int64_t
place_of(struct image_extent extent, int64_t x, int64_t y, int64_t z)
{
    return (z * extent.rows + y) * extent.columns + x;
}

/* ----------------------------------------------------------------------- components ---- */

struct component {
    int64_t size;
    bool at_border;
};

/* Numbers components from 1 in the order of their first voxels. The caller must free both. */
static int64_t
label_components(struct image_extent extent, const uint8_t *in, bool corners, bool flat, int64_t **label_of,
                 struct component **components)
{
    int64_t count = 0, voxels = ref_voxels(extent);
    int64_t *labels = ref_mask_memory(voxels, sizeof(*labels));
    int64_t *stack = ref_mask_memory(voxels, sizeof(*stack));
    struct component *all = ref_mask_memory(voxels + 1, sizeof(*all));

    for (int64_t first = 0; first < voxels; first++) {
        int64_t depth = 0;

        if (!in[first] || labels[first])
            continue;
        labels[first] = ++count;
        stack[depth++] = first;
        while (depth > 0) {
            int64_t at = stack[--depth], x = at % extent.columns;
            int64_t y = at / extent.columns % extent.rows, z = at / extent.columns / extent.rows;

            all[count].size++;
            if (x == 0 || y == 0 || x == extent.columns - 1 || y == extent.rows - 1 ||
                (!flat && (z == 0 || z == extent.slices - 1)))
                all[count].at_border = true;
            for (int n = 0; n < 27; n++) {
                int i = n % 3 - 1, j = n / 3 % 3 - 1, k = n / 9 - 1;

                if ((!corners && abs(i) + abs(j) + abs(k) != 1) || (flat && k != 0) ||
                    !is_inside(extent, x + i, y + j, z + k))
                    continue;
                int64_t next = place_of(extent, x + i, y + j, z + k);
                if (in[next] && !labels[next]) {
                    labels[next] = count;
                    stack[depth++] = next;
                }
            }
        }
    }
    free(stack);
    *label_of = labels;
    *components = all;
    return count;
}

/* Returns the number of components that are larger, or as large and earlier. */
static int64_t
rank_of(const struct component *all, int64_t count, int64_t label)
{
    int64_t rank = 0;

    for (int64_t i = 1; i <= count; i++)
        rank += all[i].size > all[label].size || (all[i].size == all[label].size && i < label);
    return rank;
}

static bool
component_stays(const struct kernels_mask_step *step, const double spacing[3], const struct component *all,
                int64_t count, int64_t label, int64_t largest)
{
    double size = (double)all[label].size;

    if (step->kind == KERNELS_MASK_KEEP)
        return (double)rank_of(all, count, label) < step->amount;
    if (step->kind == KERNELS_MASK_KEEP_AT_LEAST)
        return size >= step->amount * (double)largest;
    return size * (spacing[0] * spacing[1] * spacing[2] / 1000.0) >= step->amount;
}

static void
keep(struct image_extent extent, const double spacing[3], const struct kernels_mask_step *step, uint8_t *in,
     int64_t *found, int64_t *kept)
{
    int64_t *label_of, largest = 0;
    struct component *all;
    int64_t count = label_components(extent, in, step->corners, false, &label_of, &all);
    bool *stays = ref_mask_memory(count + 1, sizeof(*stays));

    for (int64_t i = 1; i <= count; i++)
        largest = all[i].size > largest ? all[i].size : largest;
    *found = count;
    *kept = 0;
    for (int64_t i = 1; i <= count; i++) {
        stays[i] = component_stays(step, spacing, all, count, i, largest);
        *kept += stays[i];
    }
    for (int64_t i = 0; i < ref_voxels(extent); i++)
        in[i] = in[i] && stays[label_of[i]];
    free(stays);
    free(label_of);
    free(all);
}

/* Returns whether the voxel's six neighbours, as far as they exist, are in. */
static bool
is_inner(struct image_extent extent, const uint8_t *in, int64_t at)
{
    int64_t x = at % extent.columns, y = at / extent.columns % extent.rows;
    int64_t z = at / extent.columns / extent.rows;

    for (int n = 0; n < 6; n++) {
        int64_t i = x + (n == 0) - (n == 1), j = y + (n == 2) - (n == 3), k = z + (n == 4) - (n == 5);

        if (is_inside(extent, i, j, k) && !in[place_of(extent, i, j, k)])
            return false;
    }
    return in[at];
}

static void
drop_means(const struct ref_mask_job *job, const struct kernels_mask_step *step, uint8_t *in, int64_t *found,
           int64_t *kept)
{
    int64_t voxels = ref_voxels(job->extent), *label_of;
    struct component *all;
    int64_t count = label_components(job->extent, in, step->corners, false, &label_of, &all);
    int64_t *sums = ref_mask_memory(count + 1, sizeof(*sums)), *inner = ref_mask_memory(count + 1, sizeof(*inner));

    for (int64_t i = 0; i < voxels; i++)
        if (is_inner(job->extent, in, i)) {
            sums[label_of[i]] += ref_stored(job->pixel, job->voxels, i);
            inner[label_of[i]]++;
        }
    *found = count;
    *kept = 0;
    for (int64_t label = 1; label <= count; label++)
        *kept += inner[label] > 0 && (double)sums[label] / (double)inner[label] >= step->amount;
    for (int64_t i = 0; i < voxels; i++)
        in[i] =
            in[i] && inner[label_of[i]] > 0 && (double)sums[label_of[i]] / (double)inner[label_of[i]] >= step->amount;
    free(inner);
    free(sums);
    free(label_of);
    free(all);
}

static void
fill(struct image_extent extent, const struct kernels_mask_step *step, uint8_t *in)
{
    int64_t voxels = ref_voxels(extent), *label_of;
    uint8_t *out = ref_mask_memory(voxels, 1);
    struct component *all;

    for (int64_t i = 0; i < voxels; i++)
        out[i] = !in[i];
    label_components(extent, out, step->corners, step->kind == KERNELS_MASK_FILL_SLICES, &label_of, &all);
    for (int64_t i = 0; i < voxels; i++)
        in[i] = in[i] || !all[label_of[i]].at_border;
    free(out);
    free(label_of);
    free(all);
}

/* ---------------------------------------------------------------------------- balls ---- */

static bool
in_ball(const double s[3], double mm, int64_t i, int64_t j, int64_t k)
{
    volatile double x = (double)i * s[0], y = (double)j * s[1], z = (double)k * s[2];
    volatile double xx = x * x, yy = y * y, zz = z * z, sum = xx + yy;

    sum = sum + zz;
    return sum <= mm * mm;
}

struct offset {
    int64_t i, j, k;
};

static struct offset *
ball_offsets(struct image_extent extent, const double spacing[3], const struct kernels_mask_step *step, int64_t *count)
{
    int64_t nx = extent.columns, ny = extent.rows, nz = step->in_slice ? 0 : extent.slices;
    struct offset *offsets = ref_mask_memory((2 * nx + 1) * (2 * ny + 1) * (2 * nz + 1), sizeof(*offsets));

    *count = 0;
    for (int64_t k = -nz; k <= nz; k++)
        for (int64_t j = -ny; j <= ny; j++)
            for (int64_t i = -nx; i <= nx; i++)
                if (in_ball(spacing, step->amount, i, j, k))
                    offsets[(*count)++] = (struct offset){i, j, k};
    return offsets;
}

/*
 * Grow: a voxel is in if any voxel of its ball is in. Shrink: a voxel is in if no voxel of its ball in the volume is
 * out.
 */
static void
by_ball(struct image_extent extent, const double spacing[3], const struct kernels_mask_step *step, bool shrink,
        uint8_t *in)
{
    int64_t count, voxels = ref_voxels(extent);
    struct offset *offsets = ball_offsets(extent, spacing, step, &count);
    uint8_t *result = ref_mask_memory(voxels, 1);

    for (int64_t at = 0; at < voxels; at++) {
        int64_t x = at % extent.columns, y = at / extent.columns % extent.rows;
        int64_t z = at / extent.columns / extent.rows;
        bool met = false;

        for (int64_t o = 0; o < count && !met; o++) {
            int64_t i = x + offsets[o].i, j = y + offsets[o].j, k = z + offsets[o].k;

            met = is_inside(extent, i, j, k) && in[place_of(extent, i, j, k)] != shrink;
        }
        result[at] = met != shrink;
    }
    memcpy(in, result, (size_t)voxels);
    free(result);
    free(offsets);
}

/* Lowers each squared distance along an axis to the shortest over its line, up to `mm`. Sums keep the order of in_ball:
 * x, y, z. */
static void
spread(struct image_extent extent, int axis, double spacing, double mm, double *distance)
{
    const int64_t reach = (int64_t)ceil(mm / spacing) + 1;
    const int64_t size[3] = {extent.columns, extent.rows, extent.slices};
    const int64_t stride = axis == 0 ? 1 : axis == 1 ? size[0] : size[0] * size[1];
    double *line = ref_mask_memory(size[axis], sizeof(*line));

    for (int64_t first = 0; first < ref_voxels(extent); first++) {
        if (first / stride % size[axis] != 0)
            continue;
        for (int64_t to = 0; to < size[axis]; to++) {
            line[to] = INFINITY;
            for (int64_t from = to > reach ? to - reach : 0; from < size[axis] && from <= to + reach; from++) {
                volatile double away = (double)(to - from) * spacing, square = away * away;
                double sum = distance[first + from * stride] + square;

                line[to] = sum < line[to] ? sum : line[to];
            }
        }
        for (int64_t to = 0; to < size[axis]; to++)
            distance[first + to * stride] = line[to];
    }
    free(line);
}

/* Grows, or shrinks if `shrink`, by the voxels' distance from those in, or out. */
static void
by_distance(struct image_extent extent, const double spacing[3], const struct kernels_mask_step *step, bool shrink,
            uint8_t *in)
{
    int64_t voxels = ref_voxels(extent);
    double *distance = ref_mask_memory(voxels, sizeof(*distance));

    for (int64_t i = 0; i < voxels; i++)
        distance[i] = in[i] == shrink ? INFINITY : 0;
    for (int axis = 0; axis < (step->in_slice ? 2 : 3); axis++)
        spread(extent, axis, spacing[axis], step->amount, distance);
    for (int64_t i = 0; i < voxels; i++)
        in[i] = (distance[i] <= step->amount * step->amount) != shrink;
    free(distance);
}

/* Closes a copy that is padded by more than the reach. */
static void
close_padded(struct image_extent extent, const double spacing[3], const struct kernels_mask_step *step, uint8_t *in)
{
    int64_t pad[3];

    for (int axis = 0; axis < 3; axis++)
        pad[axis] = axis == 2 && step->in_slice ? 0 : (int64_t)ceil(step->amount / spacing[axis]) + 1;
    struct image_extent wide = {extent.columns + 2 * pad[0], extent.rows + 2 * pad[1], extent.slices + 2 * pad[2]};
    uint8_t *copy = ref_mask_memory(ref_voxels(wide), 1);

    for (int turn = 0; turn < 2; turn++) {
        for (int64_t at = 0; at < ref_voxels(extent); at++) {
            int64_t x = at % extent.columns, y = at / extent.columns % extent.rows;
            int64_t z = at / extent.columns / extent.rows, there = place_of(wide, x + pad[0], y + pad[1], z + pad[2]);

            if (turn == 0)
                copy[there] = in[at];
            else
                in[at] = copy[there];
        }
        if (turn == 0) {
            by_distance(wide, spacing, step, false, copy);
            by_distance(wide, spacing, step, true, copy);
        }
    }
    free(copy);
}

/* Returns whether the voxel or a neighbour is in. */
static bool
is_near(struct image_extent extent, const uint8_t *in, bool corners, int64_t at)
{
    int64_t x = at % extent.columns, y = at / extent.columns % extent.rows;
    int64_t z = at / extent.columns / extent.rows;

    for (int n = 0; n < 27; n++) {
        int i = n % 3 - 1, j = n / 3 % 3 - 1, k = n / 9 - 1;

        if ((corners || abs(i) + abs(j) + abs(k) <= 1) && is_inside(extent, x + i, y + j, z + k) &&
            in[place_of(extent, x + i, y + j, z + k)])
            return true;
    }
    return false;
}

static void
cut(struct image_extent extent, const double spacing[3], const struct kernels_mask_step *step, uint8_t *in,
    int64_t *found, int64_t *kept)
{
    int64_t voxels = ref_voxels(extent), *label_of, count;
    uint8_t *one = ref_mask_memory(voxels, 1);
    int64_t *near = ref_mask_memory(voxels, sizeof(*near));
    struct component *all;

    by_ball(extent, spacing, step, true, in);
    count = label_components(extent, in, step->corners, false, &label_of, &all);
    memset(in, 0, (size_t)voxels);
    for (int64_t label = 1; label <= count; label++) {
        for (int64_t i = 0; i < voxels; i++)
            one[i] = label_of[i] == label;
        by_ball(extent, spacing, step, false, one);
        for (int64_t i = 0; i < voxels; i++) {
            in[i] |= one[i];
            near[i] += is_near(extent, one, step->corners, i);
        }
    }
    for (int64_t i = 0; i < voxels; i++)
        in[i] = in[i] && near[i] == 1;
    *found = *kept = count;
    free(near);
    free(one);
    free(label_of);
    free(all);
}

void
ref_mask_step(const struct ref_mask_job *job, const struct kernels_mask_step *step, uint8_t *in, int64_t *found,
              int64_t *kept)
{
    const struct image_extent extent = job->extent;
    const double *spacing = job->demand.spacing;

    switch (step->kind) {
    case KERNELS_MASK_KEEP:
    case KERNELS_MASK_KEEP_AT_LEAST:
    case KERNELS_MASK_DROP_BELOW:
        keep(extent, spacing, step, in, found, kept);
        break;
    case KERNELS_MASK_FILL_SLICES:
    case KERNELS_MASK_FILL_VOLUME:
        fill(extent, step, in);
        break;
    case KERNELS_MASK_GROW:
    case KERNELS_MASK_SHRINK:
        by_ball(extent, spacing, step, step->kind == KERNELS_MASK_SHRINK, in);
        break;
    case KERNELS_MASK_OPEN:
        by_ball(extent, spacing, step, true, in);
        by_ball(extent, spacing, step, false, in);
        break;
    case KERNELS_MASK_CLOSE:
        close_padded(extent, spacing, step, in);
        break;
    case KERNELS_MASK_CUT_BRIDGES:
        cut(extent, spacing, step, in, found, kept);
        break;
    case KERNELS_MASK_DROP_MEAN_BELOW:
        drop_means(job, step, in, found, kept);
        break;
    case KERNELS_MASK_STEPS:
        break;
    }
}

/* ------------------------------------------------------------------------- requests ---- */

static int64_t
mask_words(struct image_extent extent)
{
    return (extent.columns + 63) / 64 * extent.rows * extent.slices;
}

static bool
bit_of(struct image_extent extent, const uint64_t *bits, int64_t at)
{
    int64_t x = at % extent.columns, row = at / extent.columns;

    return bits[row * ((extent.columns + 63) / 64) + x / 64] >> x % 64 & 1;
}

/* Returns whether the voxel is within the request's bounds. */
static bool
is_bounded(const struct ref_mask_job *job, const struct ref_mask_request *request, const uint64_t *before, int64_t at)
{
    const struct kernels_mask_request *given = &request->given;

    for (size_t m = 0; m < given->within_count; m++)
        if (!bit_of(job->extent, given->within[m], at))
            return false;
    for (size_t m = 0; m < given->minus_count; m++)
        if (bit_of(job->extent, given->minus[m], at))
            return false;
    return !(request->within_before && !bit_of(job->extent, before, at)) &&
           !(request->minus_before && bit_of(job->extent, before, at));
}

static bool
begins_in(const struct ref_mask_job *job, const struct ref_mask_request *request, const uint64_t *before, int64_t at)
{
    const struct kernels_mask_request *given = &request->given;
    int64_t z = at / job->extent.columns / job->extent.rows;

    if (given->range_count > 0) {
        struct image_range range = given->ranges[given->range_count > 1 ? z : 0];
        int32_t value = ref_stored(job->pixel, job->voxels, at);

        if (value < range.lo || value > range.hi || (value >= given->padding.lo && value <= given->padding.hi))
            return false;
    }
    bool any = given->any_of_count == 0;

    for (size_t m = 0; m < given->any_of_count; m++)
        any |= bit_of(job->extent, given->any_of[m], at);
    return any && (!given->found || bit_of(job->extent, given->found, at)) && is_bounded(job, request, before, at);
}

static void
tell_found(struct image_extent extent, const uint8_t *in, struct ref_mask_found *found)
{
    found->bits = ref_mask_memory(mask_words(extent), sizeof(*found->bits));
    found->voxels = 0;
    for (int axis = 0; axis < 3; axis++) {
        found->first[axis] = INT64_MAX;
        found->last[axis] = -1;
    }
    for (int64_t at = 0; at < ref_voxels(extent); at++) {
        const int64_t where[3] = {at % extent.columns, at / extent.columns % extent.rows,
                                  at / extent.columns / extent.rows};

        if (!in[at])
            continue;
        found->voxels++;
        found->bits[(where[2] * extent.rows + where[1]) * ((extent.columns + 63) / 64) + where[0] / 64] |=
            UINT64_C(1) << where[0] % 64;
        for (int axis = 0; axis < 3; axis++) {
            if (where[axis] < found->first[axis])
                found->first[axis] = where[axis];
            if (where[axis] > found->last[axis])
                found->last[axis] = where[axis];
        }
    }
}

void
ref_mask_expect(const struct ref_mask_job *job, struct ref_mask_found *found)
{
    uint8_t *in = ref_mask_memory(ref_voxels(job->extent), 1);

    for (size_t r = 0; r < job->count; r++) {
        const struct ref_mask_request *request = &job->requests[r];
        const uint64_t *before = r > 0 ? found[r - 1].bits : NULL;

        found[r].found = found[r].kept = 0;
        for (int64_t at = 0; at < ref_voxels(job->extent); at++)
            in[at] = begins_in(job, request, before, at);
        for (size_t i = 0; i < request->given.step_count; i++) {
            ref_mask_step(job, &request->steps[i], in, &found[r].found, &found[r].kept);
            for (int64_t at = 0; at < ref_voxels(job->extent); at++)
                in[at] = in[at] && is_bounded(job, request, before, at);
        }
        tell_found(job->extent, in, &found[r]);
    }
    free(in);
}

void
ref_mask_found_free(const struct ref_mask_job *job, struct ref_mask_found *found)
{
    for (size_t r = 0; r < job->count; r++)
        free(found[r].bits);
}

/* ---------------------------------------------------------------------- random jobs ---- */

static const struct image_extent mask_extents[] = {
    {16, 5, 2},  {1, 1, 1}, {1, 40, 3},  {37, 1, 4},  {5, 7, 9},    {65, 17, 5},  {64, 33, 3},  {700, 5, 4},
    {1, 1, 200}, {3, 3, 3}, {300, 1, 1}, {1, 300, 1}, {63, 12, 6},  {130, 8, 5},  {512, 9, 3},  {20, 20, 20},
    {127, 3, 7}, {2, 2, 2}, {48, 48, 1}, {257, 3, 3}, {1030, 2, 2}, {4, 100, 12}, {2500, 3, 2}, {4200, 2, 2},
};

enum { MASK_EXTENTS = sizeof(mask_extents) / sizeof(mask_extents[0]) };

static double
random_fraction(uint64_t *random)
{
    return (double)ref_random_below(random, 1 << 20) / (1 << 20);
}

/* Draws mazes, boards, noise, all, no, or one voxel, as in or out. */
static void
draw(struct image_extent extent, uint64_t *random, uint8_t *in)
{
    int64_t voxels = ref_voxels(extent);

    switch (ref_random_below(random, 10)) {
    case 0:
        ref_serpentine(extent, (int)ref_random_below(random, 3), in);
        break;
    case 1:
        ref_random_maze(extent, ref_random(random), in);
        break;
    case 2:
        ref_spiral(extent, in);
        break;
    case 3:
        ref_checkerboard(extent, in);
        break;
    case 4:
        memset(in, ref_random_below(random, 2) > 0, (size_t)voxels);
        break;
    case 5:
        memset(in, 0, (size_t)voxels);
        in[ref_random_below(random, voxels)] = 1;
        break;
    case 6:
        ref_sphere(extent, 1 + random_fraction(random) * 20, in);
        for (int holes = 0; holes < 5; holes++)
            in[ref_random_below(random, voxels)] ^= 1;
        break;
    default:
        ref_noise(extent, random_fraction(random), ref_random(random), in);
    }
}

/* Sets the padding of rows at random, too. */
static uint64_t *
random_set(struct image_extent extent, uint64_t *random)
{
    int64_t per_row = (extent.columns + 63) / 64, words = mask_words(extent);
    uint64_t padding = extent.columns % 64 ? ~UINT64_C(0) << extent.columns % 64 : 0;
    uint64_t *bits = ref_mask_memory(words, sizeof(*bits));
    uint8_t *in = ref_mask_memory(ref_voxels(extent), 1);

    draw(extent, random, in);
    for (int64_t at = 0; at < ref_voxels(extent); at++)
        bits[at / extent.columns * per_row + at % extent.columns / 64] |= (uint64_t)in[at] << at % extent.columns % 64;
    for (int64_t last = per_row - 1; last < words; last += per_row)
        bits[last] |= ref_random(random) & padding;
    free(in);
    return bits;
}

/* Returns a reach of balls; some are a distance of the grid. */
static double
random_mm(const double spacing[3], double reach, uint64_t *random)
{
    double exact = spacing[ref_random_below(random, 3)] * (double)ref_random_below(random, 4);

    return ref_random_below(random, 2) && exact <= reach ? exact : random_fraction(random) * reach;
}

static struct kernels_mask_step
random_step(const struct kernels_mask_demand *demand, uint64_t *random)
{
    struct kernels_mask_step step = {.kind = (enum kernels_mask_step_kind)ref_random_below(random, KERNELS_MASK_STEPS),
                                     .corners = ref_random_below(random, 2) > 0,
                                     .in_slice = ref_random_below(random, 4) == 0};
    double ml = demand->spacing[0] * demand->spacing[1] * demand->spacing[2] / 1000;

    if (step.kind == KERNELS_MASK_CUT_BRIDGES && !demand->bridges)
        step.kind = KERNELS_MASK_OPEN;
    if (step.kind == KERNELS_MASK_CLOSE && !demand->closings)
        step.kind = KERNELS_MASK_GROW;
    if (step.kind == KERNELS_MASK_KEEP)
        step.amount = (double)(1 + ref_random_below(random, ref_random_below(random, 3) ? 3 : 256));
    else if (step.kind == KERNELS_MASK_KEEP_AT_LEAST)
        step.amount = ref_random_below(random, 4) ? random_fraction(random) : 1;
    else if (step.kind == KERNELS_MASK_DROP_BELOW)
        step.amount = ml * (double)ref_random_below(random, 9);
    else if (step.kind == KERNELS_MASK_DROP_MEAN_BELOW)
        step.amount = 7 + random_fraction(random) * 93;
    else if (step.kind >= KERNELS_MASK_GROW)
        step.amount = random_mm(demand->spacing, demand->reach_mm, random);
    return step;
}

static struct kernels_mask_demand
random_demand(struct image_extent extent, uint64_t *random)
{
    static const double some[] = {1, 0.8, 2.5, 0.1, 1e-3, 1e4, 0.7421875, 3.3};
    struct kernels_mask_demand demand = {.masks = REF_MASKS, .bridges = ref_random_below(random, 2) > 0};
    double least = 1e9;

    for (int axis = 0; axis < 3; axis++) {
        demand.spacing[axis] = some[ref_random_below(random, ref_random_below(random, 3) ? 3 : 8)];
        least = demand.spacing[axis] < least ? demand.spacing[axis] : least;
    }
    /* Small volumes may be smaller than the reach. */
    const int64_t reach = ref_random_below(random, ref_voxels(extent) < 500 ? 70 : 9);

    demand.reach_mm = least * (double)reach;
    demand.closings = reach < 12; /* the reference is slow */
    return demand;
}

static void
random_request(const struct ref_mask_job *job, struct ref_mask_request *request, bool first, uint64_t *random)
{
    struct kernels_mask_request *given = &request->given;
    struct image_extent extent = job->extent;

    given->padding = (struct image_range){1, 0};
    if (ref_random_below(random, 4) == 0)
        given->padding = (struct image_range){50, (int32_t)ref_random_below(random, 120)};
    given->range_count = ref_random_below(random, 3) ? 1 : ref_random_below(random, 2) ? (size_t)extent.slices : 0;
    request->ranges = ref_mask_memory((int64_t)given->range_count, sizeof(*request->ranges));
    for (size_t i = 0; i < given->range_count; i++)
        request->ranges[i] =
            ref_random_below(random, 8) ? (struct image_range){90, 110} : (struct image_range){-70000, 70000};
    given->ranges = request->ranges;
    given->within = request->within;
    given->minus = request->minus;
    given->within_count = (size_t)ref_random_below(random, REF_MASK_SETS + 1) / 2;
    given->minus_count = (size_t)ref_random_below(random, REF_MASK_SETS + 1) / 2;
    for (size_t m = 0; m < given->within_count; m++)
        request->within[m] = request->own[m] = random_set(extent, random);
    for (size_t m = 0; m < given->minus_count; m++)
        request->minus[m] = request->own[REF_MASK_SETS + m] = random_set(extent, random);
    if (ref_random_below(random, 3) == 0)
        given->found = request->own[2 * REF_MASK_SETS] = random_set(extent, random);
    given->any_of = request->any_of;
    given->any_of_count = (size_t)ref_random_below(random, REF_MASK_SETS + 1) / 2 * (size_t)ref_random_below(random, 3);
    for (size_t m = 0; m < given->any_of_count; m++)
        request->any_of[m] = request->own[2 * REF_MASK_SETS + 1 + m] = random_set(extent, random);
    request->within_before = !first && ref_random_below(random, 3) == 0;
    request->minus_before = !first && !request->within_before && ref_random_below(random, 3) == 0;
    given->steps = request->steps;
    given->step_count = (size_t)ref_random_below(random, REF_MASK_STEPS + 1);
    for (size_t i = 0; i < given->step_count; i++)
        request->steps[i] = random_step(&job->demand, random);
}

struct ref_mask_job *
ref_mask_of(struct image_extent extent, const double spacing[3], const uint8_t *in,
            const struct kernels_mask_step *steps, size_t count)
{
    struct ref_mask_job *job = ref_mask_memory(1, sizeof(*job));
    struct ref_mask_request *request = &job->requests[0];

    job->extent = extent;
    job->pixel = IMAGE_INT16;
    job->voxels = ref_mask_memory(ref_voxels(extent), sizeof(int16_t));
    ref_paint(IMAGE_INT16, in, ref_voxels(extent), 100, 0, job->voxels);
    job->demand = (struct kernels_mask_demand){.masks = 1, .reach_mm = 100, .bridges = true, .closings = true};
    memcpy(job->demand.spacing, spacing, sizeof(job->demand.spacing));
    job->count = 1;
    request->ranges = ref_mask_memory(1, sizeof(*request->ranges));
    request->ranges[0] = (struct image_range){100, 100};
    for (size_t i = 0; i < count; i++)
        request->steps[i] = steps[i];
    request->given = (struct kernels_mask_request){.ranges = request->ranges,
                                                   .range_count = 1,
                                                   .padding = {1, 0},
                                                   .within = request->within,
                                                   .minus = request->minus,
                                                   .steps = request->steps,
                                                   .step_count = count};
    return job;
}

struct ref_mask_job *
ref_mask_random(uint64_t seed)
{
    struct ref_mask_job *job = ref_mask_memory(1, sizeof(*job));
    uint64_t random = seed * 77 + 5;
    uint8_t *in;

    job->extent = mask_extents[seed % MASK_EXTENTS];
    job->pixel = (enum image_pixel)ref_random_below(&random, 3);
    job->voxels = ref_mask_memory(ref_voxels(job->extent), image_pixel_size(job->pixel));
    in = ref_mask_memory(ref_voxels(job->extent), 1);
    draw(job->extent, &random, in);
    ref_paint(job->pixel, in, ref_voxels(job->extent), 100, 7, job->voxels);
    free(in);
    job->demand = random_demand(job->extent, &random);
    job->count = 1 + (size_t)ref_random_below(&random, REF_MASKS);
    for (size_t r = 0; r < job->count; r++)
        random_request(job, &job->requests[r], r == 0, &random);
    return job;
}

void
ref_mask_free(struct ref_mask_job *job)
{
    for (size_t r = 0; r < job->count; r++) {
        free(job->requests[r].ranges);
        for (size_t m = 0; m <= 3 * REF_MASK_SETS; m++)
            free(job->requests[r].own[m]);
    }
    free(job->voxels);
    free(job);
}

/* --------------------------------------------------------------------------- a lane ---- */

static char mask_message[sizeof(struct error) + 64];

static const char *
compare_one(const struct ref_mask_job *job, size_t r, const struct ref_mask_found *expected,
            const struct kernels_mask_result *result)
{
    struct image_extent extent = job->extent;
    int64_t words = mask_words(extent);
    const bool empty = expected->voxels == 0;

    for (int64_t i = 0; i < words; i++)
        if (result->mask.bits[i] != expected->bits[i]) {
            snprintf(mask_message, sizeof(mask_message),
                     "mask %zu of %lldx%lldx%lld: word %lld is %016llx, not %016llx", r, (long long)extent.columns,
                     (long long)extent.rows, (long long)extent.slices, (long long)i,
                     (unsigned long long)result->mask.bits[i], (unsigned long long)expected->bits[i]);
            return mask_message;
        }
    bool box = empty ? result->first[0] > result->last[0]
                     : memcmp(result->first, expected->first, sizeof(result->first)) == 0 &&
                           memcmp(result->last, expected->last, sizeof(result->last)) == 0;
    if (box && result->mask.voxels == expected->voxels && result->mask.words_per_row == (extent.columns + 63) / 64 &&
        result->components_found == expected->found && result->components_kept == expected->kept)
        return "";
    snprintf(mask_message, sizeof(mask_message),
             "mask %zu: %lld voxels, %lld components, %lld kept, box %d; expected %lld, %lld, %lld", r,
             (long long)result->mask.voxels, (long long)result->components_found, (long long)result->components_kept,
             box, (long long)expected->voxels, (long long)expected->found, (long long)expected->kept);
    return mask_message;
}

static int
run_request(struct kernels_lane *lane, const struct ref_mask_job *job, size_t r, struct kernels_mask_result *results,
            struct error *error)
{
    const struct ref_mask_request *request = &job->requests[r];
    struct kernels_mask_request given = request->given;
    const uint64_t *within[REF_MASK_SETS + 1], *minus[REF_MASK_SETS + 1];

    memcpy(within, request->within, sizeof(within));
    memcpy(minus, request->minus, sizeof(minus));
    if (request->within_before)
        within[given.within_count++] = results[r - 1].mask.bits;
    if (request->minus_before)
        minus[given.minus_count++] = results[r - 1].mask.bits;
    given.within = within;
    given.minus = minus;
    if (given.found && r % 2 == 0) { /* in the memory of the mask */
        uint64_t *memory;
        const int rc = kernels_mask_memory(lane, r, &memory, error);

        if (rc)
            return rc;
        memcpy(memory, given.found, (size_t)mask_words(job->extent) * sizeof(*memory));
        given.found = memory;
    }
    return kernels_mask_run(lane, r, &given, &results[r], error);
}

const char *
ref_mask_compare(struct kernels_lane *lane, const struct ref_mask_job *job, const struct ref_mask_found *expected,
                 int *rc)
{
    struct kernels_demand demand = {.of = {[KERNELS_MASK] = &job->demand}};
    struct kernels_mask_result results[REF_MASKS];
    struct error error = {0};
    const char *message = "";
    void *voxels;
    int failed = kernels_volume_begin(lane, job->extent, job->pixel, &demand, &voxels, &error);

    if (failed == 0) {
        memcpy(voxels, job->voxels, (size_t)ref_voxels(job->extent) * image_pixel_size(job->pixel));
        failed = kernels_volume_ready(lane, 0, job->extent.slices, &error);
    }
    for (size_t r = 0; r < job->count && failed == 0; r++)
        failed = run_request(lane, job, r, results, &error);
    /* Compare all at the end, to check that no request overwrites the result of another. */
    for (size_t r = 0; r < job->count && failed == 0 && !*message; r++)
        message = compare_one(job, r, &expected[r], &results[r]);
    if (rc)
        *rc = failed;
    if (failed == 0)
        return message;
    snprintf(mask_message, sizeof(mask_message), "%d: %s", failed, error.message);
    return mask_message;
}
