/*
 * lags_cpu.c - sums over pairs by distance, on the CPU. Transforms the region's box, padded with as
 * many zeros along each axis, as numbers modulo a prime. In the transform, sums of products of
 * pairs become products. All sums are below the prime and therefore exact. Transforms a few lines
 * of voxels at a time, and skips lines of zeros and lines that are not requested.
 */
#include "kernels/cpu/device.h"
#include "kernels/morphology/lags.h"
#include "kernels/morphology/residue.h"

#include <string.h>

enum { LINES = 8 }; /* one cache line */

/* Arrays to transform: 1 for kept voxels, their values, and their squares; 0 for other voxels. */
enum { VOXELS, VALUES, SQUARES, ARRAYS };

struct cpu_lags {
    uint64_t *arrays[ARRAYS];
    uint64_t *roots; /* roots for the current lines */
    uint16_t *order; /* order of their points in the butterflies */
};

struct lagging {
    const struct cpu_lane *lane;
    const struct lags_request *request;
    const struct cpu_lags *own;
    int64_t step[3];          /* elements from a point to the next per axis */
    uint64_t *first, *second; /* arrays to multiply, into the first; may be the same */
    enum lags_kind kind;
};

/* Lines along an axis, adjacent across it and then along the third axis. */
struct line_pass {
    const struct lagging *job;
    uint64_t *array;
    int axis, across, along;
    int64_t lines, rows;     /* numbers of lines across, and along */
    int64_t first, left_out; /* lines across from `first` on are `left_out` further */
    int64_t there;           /* points in a line; the others count as 0 */
};

/* -------------------------------------------------------------------------------- transforms ---- */

/* Orders points by the last digit of their number. The digit of factor 3, if any, comes last. */
static void
order_fill(uint16_t *order, int64_t length)
{
    int64_t filled = 1;

    order[0] = 0;
    while (filled < length) {
        const int64_t radix = filled == 1 && length % 3 == 0 ? 3 : 2;

        for (int64_t i = 0; i < filled; i++)
            order[i] = (uint16_t)(order[i] * radix);
        for (int64_t i = filled; i < radix * filled; i++)
            order[i] = (uint16_t)(order[i % filled] + i / filled);
        filled *= radix;
    }
}

static void
butterflies_of_three(uint64_t (*lines)[LINES], int64_t length, const uint64_t *roots)
{
    const uint64_t third = roots[length / 3], other = roots[length / 3 * 2];

    for (int64_t i = 0; i < length; i += 3)
        for (int line = 0; line < LINES; line++) {
            const uint64_t a = lines[i][line], b = lines[i + 1][line], c = lines[i + 2][line];

            lines[i][line] = residue_add(a, residue_add(b, c));
            lines[i + 1][line] = residue_add(a, residue_add(residue_multiply(b, third), residue_multiply(c, other)));
            lines[i + 2][line] = residue_add(a, residue_add(residue_multiply(b, other), residue_multiply(c, third)));
        }
}

static void
butterflies_of_two(uint64_t (*lines)[LINES], int64_t length, int64_t half, const uint64_t *roots)
{
    for (int64_t i = 0; i < half; i++) {
        const uint64_t root = roots[i * (length / (2 * half))];

        for (int64_t at = i; at < length; at += 2 * half)
            for (int line = 0; line < LINES; line++) {
                const uint64_t a = lines[at][line];
                const uint64_t b = residue_multiply(lines[at + half][line], root);

                lines[at][line] = residue_add(a, b);
                lines[at + half][line] = residue_subtract(a, b);
            }
    }
}

static void
pass_transform_row(void *context, int64_t along)
{
    const struct line_pass *pass = context;
    const struct lagging *job = pass->job;
    const int64_t length = job->request->length[pass->axis], step = job->step[pass->axis];
    const uint16_t *order = job->own->order;
    uint64_t lines[LAGS_LONGEST][LINES], *from[LINES];

    for (int64_t first = 0; first < pass->lines; first += LINES) {
        const int count = (int)(pass->lines - first < LINES ? pass->lines - first : LINES);
        int64_t half = 1;

        for (int line = 0; line < LINES; line++) {
            int64_t across = first + (line < count ? line : 0);
            if (across >= pass->first)
                across += pass->left_out;
            from[line] = pass->array + across * job->step[pass->across] + along * job->step[pass->along];
        }
        for (int64_t i = 0; i < length; i++)
            for (int line = 0; line < LINES; line++)
                lines[i][line] = order[i] < pass->there ? from[line][order[i] * step] : 0;
        if (length % 3 == 0) {
            butterflies_of_three(lines, length, job->own->roots);
            half = 3;
        }
        for (; half < length; half *= 2)
            butterflies_of_two(lines, length, half, job->own->roots);
        for (int64_t i = 0; i < length; i++)
            for (int line = 0; line < count; line++)
                from[line][i * step] = lines[i][line];
    }
}

static void
pass_run(struct line_pass *pass, bool back)
{
    const int64_t length = pass->job->request->length[pass->axis];
    const uint64_t root = residue_root((uint64_t)length);
    const uint64_t step = back ? residue_power(root, (uint64_t)length - 1) : root;
    uint64_t *roots = pass->job->own->roots;

    roots[0] = 1;
    for (int64_t i = 1; i < length; i++)
        roots[i] = residue_multiply(roots[i - 1], step);
    order_fill(pass->job->own->order, length);
    cpu_pool_for(cpu_device_of(&pass->job->lane->base)->pool, pass->rows, pass_transform_row, pass);
}

/* Points beyond the box are 0 until a pass has written them. */
static void
array_transform(const struct lagging *job, uint64_t *array)
{
    const int64_t *size = job->request->box.size, *length = job->request->length;
    struct line_pass rows = {job, array, 0, 1, 2, size[1], size[2], size[1], 0, size[0]};
    struct line_pass columns = {job, array, 1, 0, 2, length[0], size[2], length[0], 0, size[1]};
    struct line_pass depths = {job, array, 2, 0, 1, length[0], length[1], length[0], 0, size[2]};

    pass_run(&rows, false);
    pass_run(&columns, false);
    pass_run(&depths, false);
}

/* One direction of pairs along slices suffices. Skips the rows between the two directions along
 * columns. */
static void
array_transform_back(const struct lagging *job, uint64_t *array)
{
    const int64_t *size = job->request->box.size, *length = job->request->length;
    const int64_t both = 2 * size[1] - 1;
    struct line_pass depths = {job, array, 2, 0, 1, length[0], length[1], length[0], 0, length[2]};
    struct line_pass columns = {job, array, 1, 0, 2, length[0], size[2], length[0], 0, length[1]};
    struct line_pass rows = {job, array, 0, 1, 2, both, size[2], size[1], length[1] - both, length[0]};

    pass_run(&depths, true);
    pass_run(&columns, true);
    pass_run(&rows, true);
}

/* ------------------------------------------------------------------------------------ voxels ---- */

/* Fills a slice of the box. */
static void
lagging_fill_slice(void *context, int64_t z)
{
    const struct lagging *job = context;
    const struct image_extent *extent = &job->lane->base.extent;
    const struct texture_box *box = &job->request->box;
    const struct morphology_region *region = &job->request->lags->region;
    const int64_t table = region->table_count > 1 ? box->first[2] + z : 0;
    const uint64_t *kept = region->kept + (size_t)table * morphology_table(job->lane->base.pixel);

    for (int64_t y = 0; y < box->size[1]; y++) {
        const int64_t row = (box->first[2] + z) * extent->rows + box->first[1] + y;
        const uint64_t *bits = region->bits ? region->bits + row * ((extent->columns + 63) / 64) : NULL;
        const int64_t to = z * job->step[2] + y * job->step[1];

        for (int64_t x = 0; x < box->size[0]; x++) {
            const int64_t column = box->first[0] + x;
            const uint64_t value = cpu_lane_value(job->lane, row * extent->columns + column);
            const bool has = (!bits || bits[column / 64] >> column % 64 & 1) && (kept[value / 64] >> value % 64 & 1);
            const uint64_t own = has ? value - job->request->lags->least : 0;

            job->own->arrays[VOXELS][to + x] = has;
            job->own->arrays[VALUES][to + x] = own;
            job->own->arrays[SQUARES][to + x] = own * own;
        }
    }
}

/* ------------------------------------------------------------------------------------- pairs ---- */

/* Computes, for arrays a and b, a(k) b(-k) + b(k) a(-k) at k and -k, divided by the number of
 * points. Its inverse transform holds the products of pairs in either order. */
static void
lagging_multiply_slice(void *context, int64_t z)
{
    const struct lagging *job = context;
    const int64_t *length = job->request->length;
    const int64_t other = residue_opposite(z, length[2]);
    const uint64_t points = (uint64_t)(length[0] * length[1] * length[2]);
    const uint64_t inverse = residue_power(points, RESIDUE_PRIME - 2);

    for (int64_t i = 0; i < job->step[2]; i++) {
        const int64_t x = i % length[0], y = i / length[0];
        const int64_t at = z * job->step[2] + i;
        const int64_t back =
            other * job->step[2] + residue_opposite(y, length[1]) * job->step[1] + residue_opposite(x, length[0]);

        if (at > back) /* done from the opposite point */
            continue;
        const uint64_t sum = residue_add(residue_multiply(job->first[at], job->second[back]),
                                         residue_multiply(job->second[at], job->first[back]));
        job->first[at] = job->first[back] = residue_multiply(sum, inverse);
    }
}

/* Adds the sums with equal distances along each axis: both directions along slices, and within a
 * slice both twice. */
static void
lagging_count_slice(void *context, int64_t z)
{
    const struct lagging *job = context;
    const int64_t *size = job->request->box.size, *length = job->request->length;
    uint64_t *counts = job->request->counts + ((int64_t)job->kind * size[2] + z) * size[1] * size[0];

    for (int64_t y = 0; y < size[1]; y++)
        for (int64_t x = 0; x < size[0]; x++) {
            const int64_t left = residue_opposite(x, length[0]);
            const uint64_t *here = job->first + z * job->step[2] + y * job->step[1];
            const uint64_t *there = job->first + z * job->step[2] + residue_opposite(y, length[1]) * job->step[1];
            uint64_t sum = here[x] + (x > 0 ? here[left] : 0);

            sum += y > 0 ? there[x] + (x > 0 ? there[left] : 0) : 0;
            counts[y * size[0] + x] = z > 0 ? sum : sum / 2;
        }
}

/* Counts pairs of two arrays. Destroys the first. */
static void
lagging_count(struct lagging *job, enum lags_kind kind, int first, int second)
{
    struct cpu_pool *pool = cpu_device_of(&job->lane->base)->pool;

    job->kind = kind;
    job->first = job->own->arrays[first];
    job->second = job->own->arrays[second];
    cpu_pool_for(pool, job->request->length[2] / 2 + 1, lagging_multiply_slice, job);
    array_transform_back(job, job->first);
    cpu_pool_for(pool, job->request->box.size[2], lagging_count_slice, job);
}

/* ----------------------------------------------------------------------------- the operation ---- */

static void
cpu_lags_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_lags *own = kernels_state(lane, KERNELS_LAGS);
    const size_t points = (size_t)lags_points(&lane->extent);

    for (int i = 0; i < ARRAYS; i++)
        own->arrays[i] = kernels_take(&memory->host, points, sizeof(*own->arrays[i]));
    own->roots = kernels_take(&memory->host, LAGS_LONGEST, sizeof(*own->roots));
    own->order = kernels_take(&memory->host, LAGS_LONGEST, sizeof(*own->order));
}

static int
cpu_lags_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct lags_request *request = given;
    struct lagging job = {.lane = cpu_lane_of(lane), .request = request, .own = kernels_state(lane, KERNELS_LAGS)};
    const size_t points = (size_t)(request->length[0] * request->length[1] * request->length[2]);

    (void)error;
    job.step[0] = 1;
    job.step[1] = request->length[0];
    job.step[2] = request->length[0] * request->length[1];
    cpu_pool_for(cpu_device_of(lane)->pool, request->box.size[2], lagging_fill_slice, &job);
    for (int i = 0; i < ARRAYS; i++)
        array_transform(&job, job.own->arrays[i]);
    lagging_count(&job, LAGS_SQUARES, SQUARES, VOXELS);
    memcpy(job.own->arrays[SQUARES], job.own->arrays[VALUES], points * sizeof(uint64_t));
    lagging_count(&job, LAGS_VALUES, SQUARES, VOXELS);
    lagging_count(&job, LAGS_PRODUCTS, VALUES, VALUES);
    lagging_count(&job, LAGS_PAIRS, VOXELS, VOXELS);
    return 0;
}

const struct kernels_op cpu_lags_op = {
    .name = "morphology (lags)",
    .state_size = sizeof(struct cpu_lags),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cpu_lags_place,
    .run = cpu_lags_run,
};
