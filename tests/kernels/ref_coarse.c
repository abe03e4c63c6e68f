#include "tests/kernels/ref_coarse.h"

#include "tests/kernels/ref_volumes.h"

#include <stdlib.h>
#include <string.h>

static int64_t
clipped(const struct coarse_request *request, int32_t value)
{
    if (request->padding.lo <= value && value <= request->padding.hi)
        return request->lo;
    return value < request->lo ? request->lo : value > request->hi ? request->hi : value;
}

static int64_t
floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int16_t
block_at(struct image_extent extent, enum image_pixel pixel, const void *voxels, const struct coarse_request *request,
         int64_t i)
{
    const struct coarse_grid *grid = &request->grid;
    const int64_t x0 = i % grid->extent.columns * grid->factor[0];
    const int64_t y0 = i / grid->extent.columns % grid->extent.rows * grid->factor[1];
    const int64_t z0 = i / grid->extent.columns / grid->extent.rows * grid->factor[2];
    int64_t sum = 0, n = 0;

    for (int64_t z = z0; z < z0 + grid->factor[2] && z < extent.slices; z++)
        for (int64_t y = y0; y < y0 + grid->factor[1] && y < extent.rows; y++)
            for (int64_t x = x0; x < x0 + grid->factor[0] && x < extent.columns; x++) {
                sum += clipped(request, ref_stored(pixel, voxels, (z * extent.rows + y) * extent.columns + x)) -
                       request->offset;
                n++;
            }
    return (int16_t)floor_divide(2 * sum * request->scale + n, 2 * n);
}

void
ref_coarse(struct image_extent extent, enum image_pixel pixel, const void *voxels, const struct coarse_request *request,
           int16_t *blocks)
{
    for (int64_t i = 0; i < ref_voxels(request->grid.extent); i++)
        blocks[i] = block_at(extent, pixel, voxels, request, i);
}

void
ref_coarse_expand(const struct coarse_grid *grid, const uint64_t *mask, struct image_extent extent, uint64_t *bits)
{
    const int64_t words = (extent.columns + 63) / 64, words_of_blocks = (grid->extent.columns + 63) / 64;

    memset(bits, 0, (size_t)(words * extent.rows * extent.slices) * sizeof(*bits));
    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        const int64_t x = i % extent.columns, y = i / extent.columns % extent.rows,
                      z = i / extent.columns / extent.rows;
        const int64_t row = z / grid->factor[2] * grid->extent.rows + y / grid->factor[1];
        const int64_t block = x / grid->factor[0];

        bits[(z * extent.rows + y) * words + x / 64] |= (mask[row * words_of_blocks + block / 64] >> block % 64 & 1)
                                                        << x % 64;
    }
}

/* ------------------------------------------------------------------------------ cases ---- */

/* Makes limits in the pixel type, across its ends, or beyond it; the difference is at most 65535 / scale. */
static void
make_limits(struct coarse_case *each, uint64_t *random)
{
    const struct image_range range = image_pixel_range(each->pixel);
    struct coarse_request *request = &each->request;
    const int64_t most = 65535 / (request->scale = 1 + (int32_t)ref_random_below(random, 64));
    const int64_t width = ref_random_below(random, 8) ? ref_random_below(random, most + 1) : most;
    const int64_t values = (int64_t)range.hi - range.lo + 1;

    request->lo = range.lo + (int32_t)(ref_random_below(random, 2 * values) - values / 2);
    request->hi = request->lo + (int32_t)width;
    /* The results are scale * (lo - offset) at least. */
    request->offset = request->lo + (int32_t)ref_random_below(random, 32768 / request->scale + 1);
    while ((int64_t)(request->hi - request->offset) * request->scale > INT16_MAX)
        request->offset++;
    while ((int64_t)(request->lo - request->offset) * request->scale < INT16_MIN) {
        request->offset--;
        request->hi--;
    }
    request->padding = (struct image_range){1, 0};
    if (ref_random_below(random, 2)) {
        request->padding.lo = range.lo + (int32_t)ref_random_below(random, values);
        request->padding.hi = request->padding.lo + (int32_t)ref_random_below(random, values / 4);
    }
}

void
coarse_make_case(struct coarse_case *each, uint64_t seed)
{
    static const double spacings[] = {0.3, 0.45, 0.7, 0.98, 1, 1.34, 2, 2.5, 5};
    uint64_t random = seed + 1;
    double spacing[3];

    *each = (struct coarse_case){
        .extent = {1 + ref_random_below(&random, 150), 1 + ref_random_below(&random, 20),
                   1 + ref_random_below(&random, 12)},
        .pixel = (enum image_pixel)(seed % 3),
    };
    if (seed % 50 == 49) /* blocks with more than COARSE_FEW voxels */
        each->extent = (struct image_extent){70, 60, 50};
    for (int axis = 0; axis < 3; axis++)
        spacing[axis] = spacings[ref_random_below(&random, 9)];
    coarse_grid_find(each->extent, spacing, seed % 50 == 49 ? 15 : (double)ref_random_below(&random, 40) / 8 + 0.1,
                     &each->request.grid);
    make_limits(each, &random);
    each->voxels = calloc((size_t)ref_voxels(each->extent), image_pixel_size(each->pixel));
    if (!each->voxels)
        abort();
    for (int64_t i = 0; i < ref_voxels(each->extent); i++)
        ref_store(each->pixel, each->voxels, i,
                  image_pixel_range(each->pixel).lo + (int32_t)(ref_random(&random) >> 48));
}

void
coarse_free_case(struct coarse_case *each)
{
    free(each->voxels);
}

int
coarse_run_case(struct kernels_lane *lane, const struct coarse_case *each, int16_t *blocks, struct error *error)
{
    const struct kernels_demand demand = {.of = {[KERNELS_COARSE] = &kernels_asked}};
    struct coarse_request request = each->request;
    void *voxels;
    int rc = kernels_volume_begin(lane, each->extent, each->pixel, &demand, &voxels, error);

    if (rc)
        return rc;
    memcpy(voxels, each->voxels, (size_t)ref_voxels(each->extent) * image_pixel_size(each->pixel));
    rc = kernels_volume_ready(lane, 0, each->extent.slices, error);
    request.blocks = blocks;
    return rc ? rc : coarse_run(lane, &request, error);
}
