#include "service/pipeline/segment/segment_extreme.h"

#include "base/error.h"
#include "service/pipeline/volume.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The part of a box in one plane. */
struct extreme_sum {
    int64_t values;
    int64_t padding; /* voxels */
};

struct extreme_search {
    const struct segmentation *segmentation;
    const struct extreme_request *request;
    const void *voxels;
    int64_t size[3], reach[3], words_per_row;
    struct image_rescale *rescales; /* of the volume's planes */
    bool alike;                     /* all are equal */
    /* For the planes of the box, each at its index modulo their number. */
    struct extreme_sum *planes;
    struct extreme_sum *columns; /* of a row's columns */
    uint64_t *bits;
    size_t *touched; /* words that are not zero */
    size_t touched_count;
    double best;
};

static struct extreme_sum *
extreme_plane(const struct extreme_search *search, int64_t z)
{
    const int64_t planes = 2 * search->reach[2] + 1;
    return search->planes + z % planes * search->size[0] * search->size[1];
}

/* Adds a row of the volume to the sums of columns, or subtracts it. */
static void
extreme_add_row(const struct extreme_search *search, int64_t y, int64_t z, int sign)
{
    const struct geometry_stack *stack = search->segmentation->stack;
    const struct image_range padding = volume_padding(search->segmentation->instances[stack->planes[z].instance]);
    const int64_t first = (z * search->size[1] + y) * search->size[0];
    for (int64_t x = 0; x < search->size[0]; x++) {
        const int32_t value = image_value(search->voxels, stack->pixel, first + x);
        search->columns[x].values += sign * value;
        search->columns[x].padding += value >= padding.lo && value <= padding.hi ? sign : 0;
    }
}

/* Computes the boxes of a plane with centres reach .. size - 1 - reach along both axes. */
static void
extreme_sum_plane(const struct extreme_search *search, int64_t z)
{
    const int64_t across = 2 * search->reach[0], down = 2 * search->reach[1];
    const int64_t size = search->size[0];
    const struct extreme_sum *columns = search->columns;
    memset(search->columns, 0, (size_t)size * sizeof *search->columns);
    for (int64_t y = 0; y < search->size[1]; y++) {
        extreme_add_row(search, y, z, 1);
        if (y < down)
            continue;
        struct extreme_sum *row = extreme_plane(search, z) + (y - search->reach[1]) * size;
        struct extreme_sum sum = {0};
        for (int64_t x = 0; x < size; x++) {
            sum.values += columns[x].values;
            sum.padding += columns[x].padding;
            if (x < across)
                continue;
            row[x - search->reach[0]] = sum;
            sum.values -= columns[x - across].values;
            sum.padding -= columns[x - across].padding;
        }
        extreme_add_row(search, y - down, z, -1);
    }
}

/* Computes the value to compare; larger is better. Returns false if the voxel has no mean. */
static bool
extreme_mean(const struct extreme_search *search, const int64_t at[3], double *mean)
{
    const double voxels = (double)((2 * search->reach[0] + 1) * (2 * search->reach[1] + 1));
    double sum = 0;
    for (int64_t z = at[2] - search->reach[2]; z <= at[2] + search->reach[2]; z++) {
        const struct extreme_sum *plane = extreme_plane(search, z) + at[1] * search->size[0] + at[0];
        const struct image_rescale rescale = search->rescales[z];
        if (plane->padding > 0)
            return false;
        if (search->alike) /* exact: below 2^50 */
            sum += rescale.slope > 0 ? (double)plane->values : -(double)plane->values;
        else
            sum += rescale.slope * (double)plane->values + rescale.intercept * voxels;
    }
    *mean = search->request->lowest ? -sum : sum;
    return true;
}

/* Takes the voxels of a plane that are in all masks and have the highest mean so far. */
static void
extreme_look(struct extreme_search *search, int64_t z)
{
    const struct extreme_request *request = search->request;
    for (int64_t y = search->reach[1]; y < search->size[1] - search->reach[1]; y++)
        for (int64_t x = search->reach[0]; x < search->size[0] - search->reach[0]; x++) {
            const int64_t at[3] = {x, y, z};
            const size_t word = (size_t)((z * search->size[1] + y) * search->words_per_row + x / 64);
            const uint64_t bit = UINT64_C(1) << x % 64;
            uint64_t counts = bit;
            double mean;
            for (size_t i = 0; i < request->within_count; i++)
                counts &= request->within[i][word];
            if (!counts || !extreme_mean(search, at, &mean) || mean < search->best)
                continue;
            if (mean > search->best) {
                while (search->touched_count > 0)
                    search->bits[search->touched[--search->touched_count]] = 0;
                search->best = mean;
            }
            if (search->bits[word] == 0)
                search->touched[search->touched_count++] = word;
            search->bits[word] |= bit;
        }
}

static void
extreme_measure(struct extreme_search *search, const struct geometry_stack *stack, double mm)
{
    const int64_t size[3] = {stack->columns, stack->rows, stack->plane_count};
    for (int axis = 0; axis < 3; axis++) {
        const double wanted = floor(mm / 2 / stack->spacing[axis]);
        const int64_t most = (size[axis] - 1) / 2;
        search->size[axis] = size[axis];
        search->reach[axis] = wanted < (double)most ? (int64_t)wanted : most;
    }
    search->words_per_row = (size[0] - 1) / 64 + 1;
}

/* Returns the number of sums for the planes of a box. */
static size_t
extreme_sums(const struct extreme_search *search)
{
    return (size_t)((2 * search->reach[2] + 1) * search->size[0] * search->size[1]);
}

int64_t
extreme_bytes(const struct geometry_stack *stack, double mm)
{
    struct extreme_search search = {0};
    extreme_measure(&search, stack, mm);
    return (int64_t)((extreme_sums(&search) + (size_t)search.size[0]) * sizeof *search.planes +
                     segment_mask_words(stack) * sizeof *search.touched +
                     (size_t)search.size[2] * sizeof *search.rescales);
}

int
extreme_find(const struct segmentation *segmentation, const struct extreme_request *request, const void *voxels,
             uint64_t *bits, struct error *error)
{
    struct extreme_search search = {
        .segmentation = segmentation, .request = request, .voxels = voxels, .bits = bits, .best = -INFINITY};
    extreme_measure(&search, segmentation->stack, request->mm);
    const size_t words = (size_t)(search.words_per_row * search.size[1] * search.size[2]);
    search.planes = calloc(extreme_sums(&search), sizeof *search.planes);
    search.columns = calloc((size_t)search.size[0], sizeof *search.columns);
    search.touched = calloc(words, sizeof *search.touched);
    search.rescales = calloc((size_t)search.size[2], sizeof *search.rescales);
    int rc = search.planes && search.columns && search.touched && search.rescales
                 ? 0
                 : error_set_system(error, -ENOMEM, "look for the highest mean");
    search.alike = true;
    for (int64_t z = 0; z < search.size[2] && rc == 0; z++) {
        struct image_rescale *own = &search.rescales[z];
        *own = volume_rescale(segmentation->instances, &segmentation->stack->planes[z]);
        search.alike &= own->slope == search.rescales[0].slope && own->intercept == search.rescales[0].intercept;
    }
    for (int64_t z = 0; z < search.size[2] && rc == 0; z++) {
        extreme_sum_plane(&search, z);
        if (z >= 2 * search.reach[2])
            extreme_look(&search, z - search.reach[2]);
    }
    free(search.planes);
    free(search.columns);
    free(search.touched);
    free(search.rescales);
    return rc;
}
