/*
 * segment_side.c - the right or the left half of a segment. The first radius of shrinking that leaves
 * two large parts, far enough from each other left to right, separates them. Each voxel then belongs to
 * the nearer part, or to the larger one if both are as near. There is no half if no radius does.
 */
#include "service/pipeline/segment/segment.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE_RADII = sizeof((struct conf_side *)0)->shrink_mm / sizeof(double),
    SIDE_MASKS = 4, /* of two parts */
};

/* One of the two parts, the voxels near it, and the rows and columns of a slice that have voxels of it; empty: first > last. */
struct side_part {
    uint64_t *bits, *near;
    int64_t voxels;
    double x; /* mean position, mm to the patient's left from the first voxel */

    struct side_rows {
        int64_t first, last, left, right;
    } * rows;
};

struct side_finding {
    const struct segmentation *segmentation;
    const struct conf_side *side;
    const uint64_t *from;
    int64_t size[3], words;    /* words per row */
    struct side_part parts[2]; /* the larger one first */
    uint64_t *memory;          /* of their masks */
};

static const uint64_t *
side_row(const struct side_finding *finding, const uint64_t *bits, int64_t y, int64_t z)
{
    return bits + (z * finding->size[1] + y) * finding->words;
}

/* Measures a part: its mean position, and its rows. */
static void
side_measure(const struct side_finding *finding, struct side_part *part)
{
    const struct geometry_stack *stack = finding->segmentation->stack;
    int64_t sums[3] = {0, 0, 0};
    part->voxels = 0;
    for (int64_t z = 0; z < finding->size[2]; z++) {
        struct side_rows *rows = &part->rows[z];
        *rows = (struct side_rows){finding->size[1], -1, finding->size[0], -1};
        for (int64_t y = 0; y < finding->size[1]; y++) {
            const uint64_t *row = side_row(finding, part->bits, y, z);
            int64_t count = 0;
            for (int64_t w = 0; w < finding->words; w++)
                for (uint64_t bits = row[w]; bits; bits &= bits - 1, count++) {
                    const int64_t x = 64 * w + __builtin_ctzll(bits);
                    sums[0] += x;
                    rows->left = x < rows->left ? x : rows->left;
                    rows->right = x > rows->right ? x : rows->right;
                }
            sums[1] += y * count;
            sums[2] += z * count;
            part->voxels += count;
            if (count > 0 && rows->first > y)
                rows->first = y;
            if (count > 0)
                rows->last = y;
        }
    }
    part->x = 0;
    for (int axis = 0; axis < 3; axis++)
        part->x += (double)sums[axis] / (double)part->voxels * stack->spacing[axis] * stack->axes[3 * axis];
}

/* Makes a mask from another one. Sets *kept to the components that the last step keeps. */
static int
side_make(const struct side_finding *finding, struct kernels_lane *lane, const uint64_t *from,
          const struct kernels_mask_step *steps, size_t count, uint64_t *made, int64_t *kept, struct error *error)
{
    const struct segmentation *segmentation = finding->segmentation;
    const struct kernels_mask_request request = {.padding = {1, 0}, .found = from, .steps = steps, .step_count = count};
    struct kernels_mask_result result;
    const int rc = kernels_mask_run(lane, segmentation->spare, &request, &result, error);
    if (rc)
        return rc;
    memcpy(made, result.mask.bits, segment_mask_words(segmentation->stack) * sizeof *made);
    *kept = result.components_kept;
    return 0;
}

/* Finds the two largest parts that shrinking leaves. Returns whether they are two halves in *are_halves. */
static int
side_shrink(struct side_finding *finding, struct kernels_lane *lane, double mm, bool *are_halves, struct error *error)
{
    static const struct kernels_mask_step largest = {.kind = KERNELS_MASK_KEEP, .amount = 1};
    const size_t words = segment_mask_words(finding->segmentation->stack);
    const struct kernels_mask_step both[2] = {{.kind = KERNELS_MASK_SHRINK, .amount = mm},
                                              {.kind = KERNELS_MASK_KEEP, .amount = 2}};
    struct side_part *one = &finding->parts[0], *other = &finding->parts[1];
    int64_t kept = 0;
    int rc = side_make(finding, lane, finding->from, both, 2, other->bits, &kept, error);
    *are_halves = false;
    if (rc || kept < 2)
        return rc;
    rc = side_make(finding, lane, other->bits, &largest, 1, one->bits, &kept, error);
    if (rc)
        return rc;
    for (size_t w = 0; w < words; w++)
        other->bits[w] &= ~one->bits[w];
    side_measure(finding, one);
    side_measure(finding, other);
    *are_halves = (double)other->voxels / (double)(one->voxels + other->voxels) >= finding->side->share &&
                  fabs(one->x - other->x) >= finding->side->apart_mm;
    return 0;
}

/* Finds the voxels that are near each part: those of one part alone need no search. */
static int
side_grow(struct side_finding *finding, struct kernels_lane *lane, struct error *error)
{
    const struct kernels_mask_step step = {.kind = KERNELS_MASK_GROW,
                                           .amount = finding->side->shrink_mm[SIDE_RADII - 1]};
    int64_t kept;
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = side_make(finding, lane, finding->parts[i].bits, &step, 1, finding->parts[i].near, &kept, error);
    return rc;
}

/* Returns the distance from x to the nearest voxel in a row, or INT64_MAX if it has none. */
static int64_t
side_away(const uint64_t *row, int64_t words, int64_t x)
{
    const int64_t own = x / 64;
    int64_t away = INT64_MAX;
    for (int64_t w = own; w < words && away == INT64_MAX; w++) {
        const uint64_t bits = w == own ? row[w] >> x % 64 << x % 64 : row[w];
        if (bits)
            away = 64 * w + __builtin_ctzll(bits) - x;
    }
    for (int64_t w = own; w >= 0 && x - (64 * w + 63) < away; w--) {
        const uint64_t bits = w == own ? row[w] << (63 - x % 64) >> (63 - x % 64) : row[w];
        if (bits) {
            const int64_t before = x - (64 * w + 63 - __builtin_clzll(bits));
            return before < away ? before : away;
        }
    }
    return away;
}

static double
side_square(int64_t steps, double spacing)
{
    return ((double)steps * spacing) * ((double)steps * spacing);
}

/* As side_nearest, in slice z, whose distance contributes zz. */
static double
side_nearest_in_slice(const struct side_finding *finding, const struct side_part *part, const int64_t at[3], int64_t z,
                      double zz, double limit)
{
    const double *spacing = finding->segmentation->stack->spacing;
    const struct side_rows *rows = &part->rows[z];
    const int64_t beside = at[0] < rows->left ? rows->left - at[0] : at[0] > rows->right ? at[0] - rows->right : 0;
    if (side_square(beside, spacing[0]) + zz >= limit)
        return limit;
    for (int64_t step = 0, j = 0; j <= at[1] - rows->first || j <= rows->last - at[1]; step++, j = (step + 1) / 2) {
        const int64_t y = step % 2 ? at[1] - j : at[1] + j;
        const double yy = side_square(j, spacing[1]);
        if (yy + zz >= limit)
            break;
        if (y < rows->first || y > rows->last)
            continue;
        const int64_t i = side_away(side_row(finding, part->bits, y, z), finding->words, at[0]);
        if (i < INT64_MAX)
            limit = fmin(limit, side_square(i, spacing[0]) + yy + zz);
    }
    return limit;
}

/*
 * Returns the smallest squared distance in mm from a voxel to a part, (x^2 + y^2) + z^2 in double precision, or `limit`
 * if none is smaller. Sums increase with each of their terms, so that rows and slices that are too far are skipped.
 */
static double
side_nearest(const struct side_finding *finding, const struct side_part *part, const int64_t at[3], double limit)
{
    const double *spacing = finding->segmentation->stack->spacing;
    for (int64_t turn = 0, k = 0; k < finding->size[2]; turn++, k = (turn + 1) / 2) {
        const int64_t z = turn % 2 ? at[2] - k : at[2] + k;
        const double zz = side_square(k, spacing[2]);
        if (zz >= limit)
            break;
        if (z >= 0 && z < finding->size[2])
            limit = side_nearest_in_slice(finding, part, at, z, zz, limit);
    }
    return limit;
}

/*
 * Returns whether the voxel belongs to the first part. Most are near one of them: a limit that grows ends the search in
 * the other one soon.
 */
static bool
side_is_first(const struct side_finding *finding, const int64_t at[3])
{
    const double *spacing = finding->segmentation->stack->spacing;
    double limit = 4 * spacing[0] * spacing[0], nearest[2];
    do {
        limit *= 4;
        nearest[0] = side_nearest(finding, &finding->parts[0], at, limit);
        nearest[1] = side_nearest(finding, &finding->parts[1], at, nearest[0]);
    } while (nearest[1] == limit);
    return nearest[1] == nearest[0];
}

/* Takes the voxels of the wanted half. */
static void
side_take(const struct side_finding *finding, uint64_t *bits)
{
    const bool first = (finding->parts[0].x < finding->parts[1].x) == (finding->side->which == CONF_RIGHT);
    const struct side_part *own = &finding->parts[first ? 0 : 1], *other = &finding->parts[first ? 1 : 0];
    for (int64_t row = 0; row < finding->size[1] * finding->size[2]; row++)
        for (int64_t w = row * finding->words; w < (row + 1) * finding->words; w++) {
            const uint64_t sure = finding->from[w] & (own->near[w] ^ other->near[w]);
            bits[w] = own->bits[w] | (sure & own->near[w]);
            for (uint64_t left = finding->from[w] & ~sure & ~own->bits[w] & ~other->bits[w]; left; left &= left - 1) {
                const int64_t at[3] = {64 * (w - row * finding->words) + __builtin_ctzll(left), row % finding->size[1],
                                       row / finding->size[1]};
                if (side_is_first(finding, at) == first)
                    bits[w] |= left & -left;
            }
        }
}

static int
side_search(struct segmentation *segmentation, size_t number, struct kernels_lane *lane, uint64_t *bits,
            struct error *error)
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const struct geometry_stack *stack = segmentation->stack;
    const size_t words = segment_mask_words(stack);
    struct side_finding finding = {.segmentation = segmentation,
                                   .side = &segment->side,
                                   .from = segment_from(segmentation, number),
                                   .size = {stack->columns, stack->rows, stack->plane_count},
                                   .words = (stack->columns - 1) / 64 + 1,
                                   .memory = calloc(SIDE_MASKS * words, sizeof *finding.memory)};
    bool are_halves = false;
    int rc = 0;
    for (size_t i = 0; i < 2; i++)
        finding.parts[i].rows = calloc((size_t)stack->plane_count, sizeof *finding.parts[i].rows);
    if (!finding.memory || !finding.parts[0].rows || !finding.parts[1].rows)
        rc = error_set_system(error, -ENOMEM, "find the halves of a segment");
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        finding.parts[i].bits = finding.memory + 2 * i * words;
        finding.parts[i].near = finding.memory + (2 * i + 1) * words;
    }
    for (size_t i = 0; i < SIDE_RADII && rc == 0 && !are_halves; i++)
        rc = side_shrink(&finding, lane, segment->side.shrink_mm[i], &are_halves, error);
    if (rc == 0 && are_halves)
        rc = side_grow(&finding, lane, error);
    if (rc == 0 && are_halves)
        side_take(&finding, bits);
    free(finding.memory);
    free(finding.parts[0].rows);
    free(finding.parts[1].rows);
    return rc;
}

/* Returns the region of an earlier segment that is the other half, or NULL. */
static const struct image_mask *
side_other(const struct segmentation *segmentation, size_t place)
{
    const struct conf_segment *own = segment_at(segmentation, CONF_SIDE, place);
    for (size_t k = 0; k < place; k++) {
        const struct conf_segment *other = segment_at(segmentation, CONF_SIDE, k);
        const struct image_mask *found = &segmentation->found[segmentation->of[CONF_SIDE].segments[k]];
        if (found->bits && strcmp(other->from, own->from) == 0 && other->side.which != own->side.which &&
            other->side.share == own->side.share && other->side.apart_mm == own->side.apart_mm &&
            memcmp(other->side.shrink_mm, own->side.shrink_mm, sizeof own->side.shrink_mm) == 0)
            return found;
    }
    return NULL;
}

static int
side_find(struct segmentation *segmentation, size_t number, struct kernels_lane *lane, const void *voxels,
          uint64_t *bits, struct error *error)
{
    const struct image_mask *other = side_other(segmentation, segment_place(segmentation, number));
    const uint64_t *from = segment_from(segmentation, number);
    (void)voxels;
    if (!other)
        return side_search(segmentation, number, lane, bits, error);
    /* The rest is the other half. If that is empty, there are no halves. */
    for (size_t w = 0; w < segment_mask_words(segmentation->stack) && other->voxels > 0; w++)
        bits[w] = from[w] & ~other->bits[w];
    return 0;
}

static struct segment_bytes
side_bytes(const struct segmentation *segmentation, size_t segment)
{
    (void)segment;
    return (struct segment_bytes){.passing = SIDE_MASKS * segment_mask_bytes(segmentation->stack)};
}

static void
side_describe(const struct segmentation *segmentation, size_t number, char text[SEGMENT_DESCRIPTION])
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const struct conf_side *side = &segment->side;
    text[0] = '\0';
    segment_append(text, SEGMENT_DESCRIPTION, "%s half of %s; parts of at least %.9g, %.9g mm apart, by shrink mm",
                   side->which == CONF_RIGHT ? "right" : "left", segment->from, side->share, side->apart_mm);
    for (size_t i = 0; i < SIDE_RADII; i++)
        segment_append(text, SEGMENT_DESCRIPTION, "%s %.9g", i > 0 ? "," : "", side->shrink_mm[i]);
}

const struct segment_method segment_side = {
    .algorithm = "Noctule nearest part",
    /* the nearest term of PS3.16 CID 7162 */
    .family = {"123104", "DCM", "Morphological Operations"},
    .op = KERNELS_OPS,
    .size = 1,
    .bytes = side_bytes,
    .find = side_find,
    .describe = side_describe,
};
