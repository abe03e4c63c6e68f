/* fft.c - radices, programs and tables; see fft.h. */
#include "kernels/filter/fft.h"

#include <string.h>

/* A program that is made, or measured without a table. */
struct fft_maker {
    struct fft_value *table;
    struct fft_op *program;
    int32_t ops, values;
};

static void
plan_take(struct fft_plan *plan, int64_t *rest, int32_t radix)
{
    plan->radix[plan->steps++] = radix;
    *rest /= radix;
}

static void
plan_radices(int64_t side, struct fft_plan *plan)
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

/* Transforms `from` as fft.h defines it for C. Returns `from` or `other`, whichever has the result. */
static struct fft_value *
fft_transform_table(const struct fft_plan *plan, struct fft_value *from, struct fft_value *other)
{
    int32_t length = 1;

    for (int step = plan->steps - 1; step >= 0; step--) {
        const int32_t radix = plan->radix[step], count = plan->side / radix / length, groups = length * count;
        struct fft_value *const to = other;

        for (int32_t at = 0; at < plan->side; at++) { /* element q of group i */
            const int32_t q = at / groups, i = at % groups, k = i / count;
            const struct fft_value *const t = &from[i + k * count * (radix - 1)];
            struct fft_value sum = t[0];

            for (int32_t j = 1; j < radix; j++) {
                const struct fft_value root = plan->roots[(int64_t)j * (k + q * length) * count % plan->side];
                const struct fft_value value = t[j * count];

                sum.re += value.re * root.re - value.im * root.im;
                sum.im += value.re * root.im + value.im * root.re;
            }
            to[at] = sum;
        }
        other = from;
        from = to;
        length *= radix;
    }
    return from;
}

/* Fills order and C of a prime. C has memory for twice its values. */
static void
fft_fill_prime(const struct fft_plan *less, int32_t prime, struct fft_value *powers, int32_t *order)
{
    const int32_t length = prime - 1;
    int32_t generator = 1, cycle = 0;

    while (cycle < length) { /* until the powers are all numbers below the prime */
        generator++;
        cycle = 0;
        for (int32_t power = 1; cycle == 0 || power != 1; power = (int32_t)((int64_t)power * generator % prime))
            order[power] = cycle++;
    }
    for (int32_t j = 1; j < prime; j++) /* j = g^m = g^-(length - m) */
        powers[(length - order[j]) % length] = fft_root(8 * j / prime, (double)(8 * j % prime) / prime);

    const struct fft_value *const found = fft_transform_table(less, powers, powers + length);
    for (int32_t k = 0; k < length; k++)
        powers[k] = (struct fft_value){found[k].re / length, found[k].im / length};
}

static int32_t
maker_take(struct fft_maker *maker, int32_t values)
{
    maker->values += values;
    return maker->values - values;
}

static void
maker_add(struct fft_maker *maker, struct fft_op op, enum fft_kind kind)
{
    op.kind = (int32_t)kind;
    if (maker->program)
        maker->program[maker->ops] = op;
    maker->ops++;
}

/* Adds the steps of transforms, whose roots are at a place of the table. */
static void
maker_transform(struct fft_maker *maker, int32_t side, int32_t batch, int32_t roots)
{
    struct fft_plan plan;
    int32_t length = 1;

    plan_radices(side, &plan);
    for (int step = plan.steps - 1; step >= 0; step--) {
        const int32_t radix = plan.radix[step];
        struct fft_op op = {
            .radix = radix, .count = side / radix / length, .length = length, .batch = batch, .roots = roots};

        length *= radix;
        if (radix <= FFT_DIRECT) {
            maker_add(maker, op, FFT_STEP);
            continue;
        }

        const int32_t less = maker_take(maker, radix - 1), first = maker->ops + 1;
        op.powers = maker_take(maker, 2 * (radix - 1));
        op.order = maker_take(maker, (radix + 3) / 4);
        if (maker->table) {
            struct fft_plan own;

            plan_radices(radix - 1, &own);
            own.roots = maker->table + less;
            fft_roots(radix - 1, maker->table + less);
            fft_fill_prime(&own, radix, maker->table + op.powers, (int32_t *)(maker->table + op.order));
        }
        maker_add(maker, op, FFT_SPREAD);
        maker_transform(maker, radix - 1, batch * (side / radix), less);

        const int32_t again = maker->ops - first;
        struct fft_op times = op;
        times.order = 0;
        for (int32_t i = 0; maker->program && i < again; i++)
            times.order ^= maker->program[first + i].kind != FFT_TIMES;
        maker_add(maker, times, FFT_TIMES);
        if (maker->program)
            memcpy(maker->program + maker->ops, maker->program + first, (size_t)again * sizeof(op));
        maker->ops += again;
        maker_add(maker, op, FFT_GATHER);
    }
}

void
fft_plan_make(int64_t side, struct fft_plan *plan)
{
    struct fft_maker maker = {.values = (int32_t)side};

    plan_radices(side, plan);
    maker_transform(&maker, plan->side, 1, 0);
    plan->ops = maker.ops;
    plan->values = maker.values + maker.ops * (int32_t)(sizeof(struct fft_op) / sizeof(struct fft_value));
}

void
fft_fill(struct fft_plan *plan, struct fft_value *table)
{
    const int32_t program = plan->ops * (int32_t)(sizeof(struct fft_op) / sizeof(struct fft_value));
    struct fft_maker maker = {table, (struct fft_op *)(table + plan->side), 0, plan->side + program};

    fft_roots(plan->side, table);
    maker_transform(&maker, plan->side, 1, 0);
    plan->roots = table;
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
