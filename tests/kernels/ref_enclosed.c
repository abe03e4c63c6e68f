/* ref_enclosed.c - see ref_enclosed.h. */
#include "tests/kernels/ref_enclosed.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct voxel {
    int64_t x, y, z;
};

static bool
is_inside(const struct image_extent *extent, struct voxel at)
{
    return at.x >= 0 && at.x < extent->columns && at.y >= 0 && at.y < extent->rows && at.z >= 0 &&
           at.z < extent->slices;
}

static size_t
word_of(const struct image_extent *extent, struct voxel at)
{
    return (size_t)((at.z * extent->rows + at.y) * ((extent->columns + 63) / 64) + at.x / 64);
}

static bool
is_in(const struct enclosed_case *each, struct voxel at)
{
    return each->mask[word_of(&each->extent, at)] >> at.x % 64 & 1;
}

static struct voxel
moved(struct voxel at, struct voxel by)
{
    return (struct voxel){at.x + by.x, at.y + by.y, at.z + by.z};
}

static bool
meets(const struct enclosed_case *each, struct voxel at, struct voxel step)
{
    const double *spacing = each->request.spacing;
    const double x = (double)step.x * spacing[0], y = (double)step.y * spacing[1], z = (double)step.z * spacing[2];
    const double steps = floor(each->request.within_mm / sqrt(x * x + y * y + z * z));
    const double count = steps > 2 ? steps : 2;
    const struct voxel straight = {step.x / 2, step.y / 2, 0};
    const struct voxel corner = {(step.x > 0) - (step.x < 0), (step.y > 0) - (step.y < 0), 0};
    const bool knight = labs(step.x) == 2 || labs(step.y) == 2;

    for (double k = 0; k < count && is_inside(&each->extent, at); k++) {
        const struct voxel next = moved(at, step);

        if (is_in(each, at))
            return true;
        if (knight && k + 1 < count && is_inside(&each->extent, next) &&
            (is_in(each, moved(at, straight)) || is_in(each, moved(at, corner))))
            return true;
        at = next;
    }
    return false;
}

static int
count_directions(const struct enclosed_case *each, struct voxel at)
{
    const bool flat = each->request.directions == ENCLOSED_AXIAL_16;
    const int64_t reach = flat ? 2 : 1, depth = flat ? 0 : 1;
    int count = 0;

    for (int64_t z = -depth; z <= depth; z++)
        for (int64_t y = -reach; y <= reach; y++)
            for (int64_t x = -reach; x <= reach; x++) {
                const bool step = labs(x) == 2 || labs(y) == 2 ? x * x + y * y == 5 : x != 0 || y != 0 || z != 0;

                count += step && meets(each, at, (struct voxel){x, y, z});
            }
    return count;
}

size_t
enclosed_words(const struct enclosed_case *each)
{
    return (size_t)((each->extent.columns + 63) / 64 * each->extent.rows * each->extent.slices);
}

void
ref_enclosed(const struct enclosed_case *each, uint64_t *bits)
{
    const struct image_extent *extent = &each->extent;

    memset(bits, 0, enclosed_words(each) * sizeof(*bits));
    for (int64_t z = 0; z < extent->slices; z++)
        for (int64_t y = 0; y < extent->rows; y++)
            for (int64_t x = 0; x < extent->columns; x++) {
                const struct voxel at = {x, y, z};

                if (count_directions(each, at) >= each->request.at_least)
                    bits[word_of(extent, at)] |= UINT64_C(1) << x % 64;
            }
}

/* Sparse and dense noise, spheres, and walls with holes. */
static void
draw(struct image_extent extent, uint64_t *state, uint8_t *in)
{
    const double densities[] = {0.002, 0.01, 0.05, 0.3, 0.9};

    switch (ref_random_below(state, 4)) {
    case 0:
        ref_sphere(extent, (double)ref_random_below(state, 12), in);
        break;
    case 1:
        ref_serpentine(extent, (int)ref_random_below(state, 3), in);
        break;
    default:
        ref_noise(extent, densities[ref_random_below(state, 5)], ref_random(state), in);
        break;
    }
}

void
enclosed_make_case_of(struct enclosed_case *each, struct image_extent extent, uint64_t seed)
{
    const double spacings[] = {0.5, 0.7, 1, 2, 3};
    uint64_t state = seed;

    each->extent = extent;
    each->request = (struct enclosed_request){
        .directions = ref_random_below(&state, 2) ? ENCLOSED_26 : ENCLOSED_AXIAL_16,
        .within_mm = ref_random_below(&state, 3) ? 1 + (double)ref_random_below(&state, 60) : 1000,
    };
    each->request.at_least = 1 + (int)ref_random_below(&state, each->request.directions == ENCLOSED_26 ? 26 : 16);
    for (int axis = 0; axis < 3; axis++)
        each->request.spacing[axis] = spacings[ref_random_below(&state, 5)];
    each->mask = calloc(enclosed_words(each), sizeof(*each->mask));
    uint8_t *in = calloc((size_t)ref_voxels(extent), 1);
    if (!each->mask || !in)
        abort();
    draw(extent, &state, in);
    for (int64_t row = 0, i = 0; row < extent.rows * extent.slices; row++) {
        uint64_t *words = each->mask + row * ((extent.columns + 63) / 64);

        for (int64_t x = 0; x < extent.columns; x++, i++)
            words[x / 64] |= (uint64_t)in[i] << x % 64;
        if (extent.columns % 64 != 0)
            words[extent.columns / 64] |= ref_random(&state) << extent.columns % 64;
    }
    each->request.mask = each->mask;
    free(in);
}

void
enclosed_make_case(struct enclosed_case *each, uint64_t seed)
{
    uint64_t state = seed;
    const int64_t columns[] = {1 + ref_random_below(&state, 140), 64, 128, 63, 65};
    const struct image_extent extent = {columns[ref_random_below(&state, 5)], 1 + ref_random_below(&state, 40),
                                        1 + ref_random_below(&state, 12)};

    enclosed_make_case_of(each, extent, state);
}

void
enclosed_free_case(struct enclosed_case *each)
{
    free(each->mask);
}

int
enclosed_run_case(struct kernels_lane *lane, const struct enclosed_case *each, uint64_t *bits, struct error *error)
{
    const struct kernels_demand demand = {.of[KERNELS_ENCLOSED] = &kernels_asked};
    struct enclosed_request request = each->request;
    void *voxels;
    int rc = kernels_volume_begin(lane, each->extent, IMAGE_UINT8, &demand, &voxels, error);

    if (rc == 0) {
        memset(voxels, 0, (size_t)image_voxels(&each->extent));
        rc = kernels_volume_ready(lane, 0, each->extent.slices, error);
    }
    request.bits = bits;
    return rc ? rc : enclosed_run(lane, &request, error);
}
