/* coarse_rule.h - the value of a block from the sum of its voxels, for all backends. Private to kernels/. */
#ifndef NOCTULE_KERNELS_COARSE_COARSE_RULE_H
#define NOCTULE_KERNELS_COARSE_COARSE_RULE_H

#include "kernels/coarse/coarse.h"

/* For blocks of n voxels, whose sum counts from lo: base + floor((2 * sum * scale + n) / (2 * n)). */
struct coarse_rule {
    int32_t base; /* scale * (lo - offset) */
    uint32_t twice_scale;
    uint64_t voxels;     /* n */
    uint32_t multiplier; /* 0: a block has more than COARSE_FEW voxels */
    int shift;
};

/* A quotient is below 2^16. For divisors up to 2^15 a product of 32 bits by 32 bits gives it exactly. */
#define COARSE_FEW (1 << 14)

static inline struct coarse_rule
coarse_rule_for(const struct coarse_request *request, int64_t voxels)
{
    struct coarse_rule rule = {.base = request->scale * (request->lo - request->offset),
                               .twice_scale = 2 * (uint32_t)request->scale,
                               .voxels = (uint64_t)voxels};

    if (voxels > COARSE_FEW)
        return rule;
    rule.shift = 16;
    while (UINT64_C(1) << (rule.shift - 16) < 2 * rule.voxels)
        rule.shift += 1;
    /* The dividend is below 2^shift, so that 2^shift / divisor must be known to `shift` bits more: Granlund and
     * Montgomery 1994, theorem 4.2, with 2^(shift - 16) at least the divisor. */
    rule.shift += rule.shift - 16;
    rule.multiplier = (uint32_t)((UINT64_C(1) << rule.shift) / (2 * rule.voxels) + 1);
    return rule;
}

#ifdef __CUDACC__
__host__ __device__
#endif
    static inline int16_t
    coarse_value_of_few(const struct coarse_rule *rule, uint64_t sum)
{
    const uint32_t dividend = rule->twice_scale * (uint32_t)sum + (uint32_t)rule->voxels;

    return (int16_t)(rule->base + (int32_t)((uint64_t)dividend * rule->multiplier >> rule->shift));
}

#ifdef __CUDACC__
__host__ __device__
#endif
    static inline int16_t
    coarse_value_of_many(const struct coarse_rule *rule, uint64_t sum)
{
    return (int16_t)(rule->base + (int32_t)((rule->twice_scale * sum + rule->voxels) / (2 * rule->voxels)));
}

#endif
