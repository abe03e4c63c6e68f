/* fft.c - radices and roots; see fft.h. */
#include "kernels/filter/fft.h"

static void
plan_take(struct fft_plan *plan, int64_t *rest, int32_t radix)
{
    plan->radix[plan->steps++] = radix;
    *rest /= radix;
}

void
fft_plan_make(int64_t side, struct fft_plan *plan)
{
    int64_t rest = side;
    int32_t last = 1;

    *plan = (struct fft_plan){.side = (int32_t)side};
    while (rest % 8 == 0 && (rest % 16 != 0 || rest % 32 == 0))
        plan_take(plan, &rest, 8);
    while (rest % 4 == 0)
        plan_take(plan, &rest, 4);
    if (rest % 2 == 0)
        plan_take(plan, &rest, 2);
    if (plan->steps > 0)
        last = plan->radix[--plan->steps];
    for (int32_t prime = 3; rest > 1; prime += 2) {
        if ((int64_t)prime * prime > rest)
            prime = (int32_t)rest;
        while (rest % prime == 0)
            plan_take(plan, &rest, prime);
    }
    if (last > 1)
        plan->radix[plan->steps++] = last;
}

void
fft_roots(int32_t side, struct fft_value *roots)
{
    for (int64_t k = 0; k < side; k++)
        roots[k] = fft_root(8 * k / side, (double)(8 * k % side) / side);
}

bool
fft_is_small(const struct fft_plan *plan)
{
    for (int step = 0; step < plan->steps; step++)
        if (plan->radix[step] > FFT_SMALL)
            return false;
    return true;
}

bool
fft_is_fast(const struct fft_plan *plan)
{
    for (int step = 0; step < plan->steps; step++)
        if (plan->radix[step] != 8 && plan->radix[step] != 4 && plan->radix[step] != 3)
            return false;
    return plan->steps > 1 && plan->radix[plan->steps - 1] % 4 == 0;
}

int64_t
fft_good_side(int64_t side)
{
    struct fft_plan plan;

    while (fft_plan_make(side, &plan), !fft_is_fast(&plan))
        side++;
    return side;
}
