/* voxelwise.c - checks requests for maps of features, and makes the tables (voxelwise_steps.h). */
#include "kernels/voxelwise/voxelwise_steps.h"

#include <errno.h>

/* Returns log2(number) for 1 <= number < 2^32, in steps of 2^-56: each squaring of the mantissa, 1 up to 2, gives a bit. */
static uint64_t
logarithm_of(uint32_t number)
{
    const int whole = 31 - __builtin_clz(number);
    uint64_t mantissa = (uint64_t)number << (63 - whole), bits = (uint64_t)whole;

    for (int bit = 0; bit < 56; bit++) {
        const unsigned __int128 square = (unsigned __int128)mantissa * mantissa;
        const int carry = (int)(square >> 127);

        mantissa = (uint64_t)(square >> (63 + carry));
        bits = bits << 1 | (uint64_t)carry;
    }
    return bits;
}

/* Returns the bits after the binary point of a step of c log2(c): sums over all counts of a window stay below 2^62. */
static int
logarithm_exponent(int radius)
{
    const int side = 2 * radius + 1, most = 2 * side * side * side;
    int bits = 0;

    while (1 << bits < most * 13) /* log2(most) < 13 */
        bits++;
    return 60 - bits;
}

void
voxelwise_tables_make(int radius, int levels, struct voxelwise_tables *tables)
{
    const int side = 2 * radius + 1, exponent = logarithm_exponent(radius);
    const double n = levels;

    tables->logarithms[0] = 0;
    for (int c = 1; c <= 2 * side * side * side; c++)
        tables->logarithms[c] =
            (int64_t)((unsigned __int128)logarithm_of((uint32_t)c) * (uint32_t)c >> (56 - exponent));
    for (int k = 0; k < levels; k++) {
        const double d = k, weights[VOXELWISE_WEIGHTS] = {
                                [VOXELWISE_INVERSE] = 1 / (1 + d),
                                [VOXELWISE_INVERSE_NORMALISED] = 1 / (1 + d / n),
                                [VOXELWISE_INVERSE_SQUARE] = 1 / (1 + d * d),
                                [VOXELWISE_INVERSE_SQUARE_NORMALISED] = 1 / (1 + d * d / (n * n)),
                                [VOXELWISE_INVERSE_VARIANCE] = k > 0 ? 1 / (d * d) : 0,
                            };

        for (int i = 0; i < VOXELWISE_WEIGHTS; i++)
            tables->weights[i][k] = (int64_t)rint(weights[i] * VOXELWISE_WEIGHT_ONE);
    }
}

size_t
voxelwise_counts(enum voxelwise_family family, int radius, int levels)
{
    const size_t side = 2 * (size_t)radius + 1, voxels = side * side * side, n = (size_t)levels;

    switch (family) {
    case VOXELWISE_FAMILY_glcm:
        return n * (n + 1) / 2 + 4 * n - 1;
    case VOXELWISE_FAMILY_glrlm:
        return n + side + n * side;
    case VOXELWISE_FAMILY_glszm: /* and the voxels of a flood */
        return voxels + n + voxels + n * voxels;
    case VOXELWISE_FAMILY_ngldm:
        return n + (VOXELWISE_NEIGHBOURS + 1) * (n + 1);
    default:
        return n;
    }
}

size_t
voxelwise_numbers(enum voxelwise_family family, int radius, int levels)
{
    const size_t side = 2 * (size_t)radius + 1, voxels = side * side * side, n = (size_t)levels;

    switch (family) {
    case VOXELWISE_FAMILY_first_order:
        return 2 * voxels;
    case VOXELWISE_FAMILY_ngtdm:
        return 4 * n;
    default:
        return 0;
    }
}

int
voxelwise_run(struct kernels_lane *lane, const struct voxelwise_request *request, struct error *error)
{
    const int radius = request->options->radius;
    struct voxelwise_task task = {.request = request};
    const int rc = kernels_op_check(lane, KERNELS_VOXELWISE, error);

    if (rc)
        return rc;
    if (radius < 1 || radius > VOXELWISE_MAX_RADIUS || request->level_count < 1 ||
        request->level_count > VOXELWISE_MAX_LEVELS ||
        request->size[0] * request->size[1] > lane->extent.columns * lane->extent.rows)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "the maps of features exceed their memory");
    for (int row = 0; row < VOXELWISE_FEATURES; row++)
        if (voxelwise_wants(request->options, row))
            task.features[voxelwise_rows[row].family] |= 1u << voxelwise_rows[row].feature;
    task.plan = (struct voxelwise_plan){
        .radius = radius,
        .side = 2 * radius + 1,
        .levels = request->level_count,
        .shift = request->energy_shift,
        .step = ldexp(1, -logarithm_exponent(radius)),
    };
    return request->count > 0 ? kernels_op_run(lane, KERNELS_VOXELWISE, &task, error) : 0;
}
