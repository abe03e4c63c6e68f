#include "tests/kernels/ref_smooth.h"

#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the radius, and the weights by the header's words. */
static int
weights_of(double sigma, int64_t weights[2 * SMOOTH_MAX_RADIUS + 1])
{
    const int radius = (int)floor(3 * sigma + 0.5);
    int64_t total = 0;
    double sum = 0;

    for (int i = -radius; i <= radius; i++)
        sum += radius == 0 ? 1 : exp(-(double)(i * i) / (2 * sigma * sigma));
    for (int i = -radius; i <= radius; i++) {
        const double part = (radius == 0 ? 1 : exp(-(double)(i * i) / (2 * sigma * sigma))) / sum;

        weights[radius + i] = (int64_t)floor(16384 * part + 0.5);
        total += weights[radius + i];
    }
    weights[radius] += 16384 - total;
    return radius;
}

static int64_t
floor_shift(int64_t value)
{
    return value >= 0 ? value / 16384 : -((-value + 16383) / 16384);
}

/* Filters along one axis, where `stride` is the distance of neighbours. */
static void
filter_axis(struct image_extent extent, int axis, double sigma, const int32_t *from, int32_t *to)
{
    const int64_t sides[3] = {extent.columns, extent.rows, extent.slices};
    const int64_t strides[3] = {1, extent.columns, extent.columns * extent.rows};
    int64_t weights[2 * SMOOTH_MAX_RADIUS + 1];
    const int radius = weights_of(sigma, weights);

    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        const int64_t at = i / strides[axis] % sides[axis];
        int64_t sum = 8192;

        for (int k = -radius; k <= radius; k++) {
            const int64_t other = at + k < 0 ? 0 : at + k >= sides[axis] ? sides[axis] - 1 : at + k;

            sum += weights[radius + k] * from[i + (other - at) * strides[axis]];
        }
        to[i] = (int32_t)floor_shift(sum);
    }
}

void
ref_smooth_values(struct image_extent extent, enum image_pixel pixel, const void *voxels, const double spacing[3],
                  const struct smooth_request *request, int32_t *filtered)
{
    int32_t *other = ref_allocate(ref_voxels(extent), sizeof(*other));

    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        const int32_t value = ref_stored(pixel, voxels, i);

        filtered[i] = value < request->lo ? request->lo : value > request->hi ? request->hi : value;
        if (request->padding.lo <= value && value <= request->padding.hi)
            filtered[i] = request->lo;
    }
    filter_axis(extent, 0, request->sigma_mm / spacing[0], filtered, other);
    filter_axis(extent, 1, request->sigma_mm / spacing[1], other, filtered);
    filter_axis(extent, 2, request->sigma_mm / spacing[2], filtered, other);
    memcpy(filtered, other, (size_t)ref_voxels(extent) * sizeof(*other));
    free(other);
}

static bool
has_bit(const uint64_t *bits, struct image_extent extent, int64_t i)
{
    const int64_t words = (extent.columns + 63) / 64, x = i % extent.columns;

    return bits[i / extent.columns * words + x / 64] >> x % 64 & 1;
}

void
ref_smooth_results(struct image_extent extent, const int32_t *filtered, const struct smooth_request *request)
{
    const int64_t words = (extent.columns + 63) / 64;

    memset(request->bits, 0, (size_t)(words * extent.rows * extent.slices) * sizeof(*request->bits));
    memset(request->histogram, 0, (size_t)request->bins * sizeof(*request->histogram));
    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        const int64_t x = i % extent.columns;
        const double bin = floor(((double)filtered[i] - request->first) / request->width);

        if (request->region && !has_bit(request->region, extent, i))
            continue;
        if (request->range.lo <= filtered[i] && filtered[i] <= request->range.hi)
            request->bits[i / extent.columns * words + x / 64] |= UINT64_C(1) << x % 64;
        if (bin >= 0 && bin < request->bins)
            request->histogram[(int)bin]++;
    }
}

/* ------------------------------------------------------------------------------ cases ---- */

size_t
smooth_words(const struct smooth_case *each)
{
    return (size_t)((each->extent.columns + 63) / 64 * each->extent.rows * each->extent.slices);
}

/* Makes noise, flat areas and steps of the extreme values. */
static void
make_voxels(struct smooth_case *each, uint64_t *random)
{
    const struct image_range range = image_pixel_range(each->pixel);
    const int64_t values = (int64_t)range.hi - range.lo + 1, kind = ref_random_below(random, 3);

    each->voxels = ref_allocate(ref_voxels(each->extent), image_pixel_size(each->pixel));
    for (int64_t i = 0; i < ref_voxels(each->extent); i++) {
        const int64_t value = ref_random_below(random, values);

        ref_store(each->pixel, each->voxels, i,
                  kind == 0   ? range.lo + (int32_t)value
                  : kind == 1 ? (value % 2 ? range.lo : range.hi)
                              : (i / 7 % 3 ? range.hi : range.lo + (int32_t)(value % 100)));
    }
}

static void
make_limits(struct smooth_case *each, uint64_t *random)
{
    const struct image_range range = image_pixel_range(each->pixel);
    const int64_t values = (int64_t)range.hi - range.lo + 1;
    struct smooth_request *request = &each->request;

    request->lo = range.lo;
    request->hi = range.hi;
    if (ref_random_below(random, 3)) {
        request->lo += (int32_t)(ref_random_below(random, 2 * values) - values / 2);
        request->hi = request->lo + (int32_t)ref_random_below(random, 65536);
    }
    request->padding = (struct image_range){1, 0};
    if (ref_random_below(random, 2)) {
        request->padding.lo = range.lo + (int32_t)ref_random_below(random, values);
        request->padding.hi = request->padding.lo + (int32_t)ref_random_below(random, values / 4);
    }
    request->range.lo = request->lo + (int32_t)(ref_random_below(random, values) - values / 4);
    request->range.hi = request->range.lo + (int32_t)ref_random_below(random, values / 2);
    request->bins = 1 + (int32_t)ref_random_below(random, 200);
    request->first = request->range.lo;
    request->width = 1 + (int32_t)ref_random_below(random, 300);
}

void
smooth_make_case(struct smooth_case *each, uint64_t seed)
{
    static const double spacings[] = {0.3, 0.45, 0.7, 0.98, 1, 1.34, 2, 2.5, 5};
    uint64_t random = seed + 1;

    *each = (struct smooth_case){
        .extent = {1 + ref_random_below(&random, 150), 1 + ref_random_below(&random, 12),
                   1 + ref_random_below(&random, 9)},
        .pixel = (enum image_pixel)(seed % 3),
    };
    for (int axis = 0; axis < 3; axis++)
        each->spacing[axis] = spacings[ref_random_below(&random, 9)];
    each->request.sigma_mm = (double)ref_random_below(&random, 13) / 4;
    if (seed % 40 == 39) { /* the largest filter */
        each->spacing[0] = each->spacing[2] = 1;
        each->request.sigma_mm = 21.4;
        each->spacing[1] = 1.1;
    }
    make_voxels(each, &random);
    make_limits(each, &random);
    each->region = ref_allocate((int64_t)smooth_words(each), sizeof(*each->region));
    const int64_t rare = 1 + ref_random_below(&random, 40);
    for (size_t i = 0; i < smooth_words(each); i++) /* padding of rows, too */
        each->region[i] = ref_random_below(&random, rare) ? 0 : ref_random(&random);
    each->request.region = ref_random_below(&random, 3) ? each->region : NULL;
    each->request.bits = ref_allocate((int64_t)smooth_words(each), sizeof(*each->request.bits));
    each->request.histogram = ref_allocate(each->request.bins, sizeof(*each->request.histogram));
}

void
smooth_free_case(struct smooth_case *each)
{
    free(each->voxels);
    free(each->region);
    free(each->request.bits);
    free(each->request.histogram);
}

int
smooth_run_case(struct kernels_lane *lane, const struct smooth_case *each, struct error *error)
{
    const struct smooth_demand own = {{each->spacing[0], each->spacing[1], each->spacing[2]}, each->request.sigma_mm};
    const struct kernels_demand demand = {.of = {[KERNELS_SMOOTH] = &own}};
    struct smooth_request request = each->request;
    void *voxels;
    int rc = kernels_volume_begin(lane, each->extent, each->pixel, &demand, &voxels, error);

    if (rc)
        return rc;
    memcpy(voxels, each->voxels, (size_t)ref_voxels(each->extent) * image_pixel_size(each->pixel));
    rc = kernels_volume_ready(lane, 0, each->extent.slices, error);
    if (request.region && each->extent.rows % 2 == 0) { /* the region in the memory of the result */
        memcpy(request.bits, request.region, smooth_words(each) * sizeof(*request.bits));
        request.region = request.bits;
    }
    return rc ? rc : smooth_run(lane, &request, error);
}
