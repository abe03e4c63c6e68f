/* isa_scalar.c - the innermost loops for any processor; see isa_private.h. */
#include "kernels/cpu/isa_private.h"

#include <math.h>

#define SCALAR_PACK(BITS)                                                                                              \
    static int64_t scalar_pack##BITS(const uint##BITS##_t *values, int64_t count, const struct isa_interval pass[2],   \
                                     uint64_t *bits)                                                                   \
    {                                                                                                                  \
        int64_t runs = 0;                                                                                              \
        uint64_t carry = 0;                                                                                            \
                                                                                                                       \
        for (int64_t i = 0; i < count; i += 64) {                                                                      \
            *bits = pack_word##BITS(values + i, count - i < 64 ? count - i : 64, pass);                                \
            runs += run_starts(*bits++, &carry);                                                                       \
        }                                                                                                              \
        return runs;                                                                                                   \
    }

SCALAR_PACK(8)
SCALAR_PACK(16)

static void
scalar_join16(const struct isa_join *join, int64_t count, uint64_t *edges, uint64_t *settled)
{
    for (int64_t i = 0; i < count; i += 64)
        join16_word(join, i, count - i < 64 ? count - i : 64, edges, settled);
}

static void
scalar_weigh64(const double *const *rows, const double *weights, int64_t taps, int64_t count, double *sums)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] = 0;
        for (int64_t tap = 0; tap < taps; tap++)
            sums[i] = fma(weights[tap], rows[tap][i], sums[i]);
    }
}

static void
scalar_weigh_apart64(const double *const *rows, const double *weights, int64_t taps, int64_t count, double *sums)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] = 0;
        for (int64_t tap = 0; tap < taps; tap++)
            sums[i] = sums[i] + weights[tap] * rows[tap][i];
    }
}

const struct isa isa_scalar = {
    .name = "scalar",

    .pack8 = scalar_pack8,
    .pack16 = scalar_pack16,
    .join16 = scalar_join16,
    .raise16 = raise16,
    .affinity16 = affinity16,
    .level16 = level16,
    .smooth15 = smooth16,
    .weigh64 = scalar_weigh64,
    .weigh_apart64 = scalar_weigh_apart64,
    ISA_LOOPS,
};
