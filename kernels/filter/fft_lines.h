/*
 * fft_lines.h - the transforms of fft.h on the CPU, FFT_LANES at a time. isa_private.h includes it per instruction set.
 *
 * Before a step of radix r, the values are the transforms V(p) of x[p], x[p + c r], ..., of length l, with V(p)[k] at place
 * k c r + p. The step combines V(p), V(p + c), ... and writes their transform to the other memory.
 */
#ifndef NOCTULE_KERNELS_FILTER_FFT_LINES_H
#define NOCTULE_KERNELS_FILTER_FFT_LINES_H

#include "kernels/filter/fft.h"

typedef double fft_vector __attribute__((vector_size(ISA_VECTOR), aligned(8)));

enum { FFT_WIDTH = ISA_VECTOR / sizeof(double) };

struct fft_pair {
    fft_vector re, im;
};

/* A step of one group of lanes. */
struct fft_step {
    const struct fft_plan *plan;
    int64_t length, count; /* l and c */
    int re, im;            /* parts; exchanged for the inverse */
    int lane;
    struct fft_lanes *space; /* of a large radix */
};

INLINE struct fft_pair
fft_load(const struct fft_step *step, const struct fft_lanes *at)
{
    return (struct fft_pair){*(const fft_vector *)&at->part[step->re][step->lane],
                             *(const fft_vector *)&at->part[step->im][step->lane]};
}

INLINE void
fft_store(const struct fft_step *step, struct fft_lanes *at, struct fft_pair value)
{
    *(fft_vector *)&at->part[step->re][step->lane] = value.re;
    *(fft_vector *)&at->part[step->im][step->lane] = value.im;
}

INLINE struct fft_pair
fft_plus(struct fft_pair a, struct fft_pair b)
{
    return (struct fft_pair){a.re + b.re, a.im + b.im};
}

INLINE struct fft_pair
fft_minus(struct fft_pair a, struct fft_pair b)
{
    return (struct fft_pair){a.re - b.re, a.im - b.im};
}

/* Return a - i b and a + i b. */
INLINE struct fft_pair
fft_minus_turned(struct fft_pair a, struct fft_pair b)
{
    return (struct fft_pair){a.re + b.im, a.im - b.re};
}

INLINE struct fft_pair
fft_plus_turned(struct fft_pair a, struct fft_pair b)
{
    return (struct fft_pair){a.re - b.im, a.im + b.re};
}

INLINE void
fft_four(const struct fft_pair *t, int stride, struct fft_pair *x)
{
    const struct fft_pair a = fft_plus(t[0], t[2 * stride]), b = fft_minus(t[0], t[2 * stride]);
    const struct fft_pair c = fft_plus(t[stride], t[3 * stride]), d = fft_minus(t[stride], t[3 * stride]);

    x[0] = fft_plus(a, c);
    x[1] = fft_minus_turned(b, d);
    x[2] = fft_minus(a, c);
    x[3] = fft_plus_turned(b, d);
}

INLINE void
fft_eight(const struct fft_pair *t, struct fft_pair *x)
{
    const double half = 0x1.6a09e667f3bcdp-1; /* sqrt(1/2) */
    struct fft_pair even[4], odd[4];

    fft_four(t, 2, even);
    fft_four(t + 1, 2, odd);
    odd[1] = (struct fft_pair){(odd[1].re + odd[1].im) * half, (odd[1].im - odd[1].re) * half};
    odd[3] = (struct fft_pair){(odd[3].im - odd[3].re) * half, (odd[3].re + odd[3].im) * -half};
    x[0] = fft_plus(even[0], odd[0]);
    x[1] = fft_plus(even[1], odd[1]);
    x[2] = fft_minus_turned(even[2], odd[2]);
    x[3] = fft_plus(even[3], odd[3]);
    x[4] = fft_minus(even[0], odd[0]);
    x[5] = fft_minus(even[1], odd[1]);
    x[6] = fft_plus_turned(even[2], odd[2]);
    x[7] = fft_minus(even[3], odd[3]);
}

/* Reads element j, turned. */
INLINE struct fft_pair
fft_turned(const struct fft_step *step, const struct fft_lanes *from, int64_t k, int64_t j)
{
    const struct fft_pair value = fft_load(step, &from[j * step->count]);
    const struct fft_value root = step->plan->roots[j * k * step->count];

    if (k == 0 || j == 0)
        return value;
    return (struct fft_pair){value.re * root.re - value.im * root.im, value.re * root.im + value.im * root.re};
}

INLINE void
fft_even_radix(const struct fft_step *step, const struct fft_lanes *from, struct fft_lanes *to, int64_t k, int radix)
{
    const int64_t stride = step->length * step->count;
    struct fft_pair t[8], x[8];

    for (int j = 0; j < radix; j++)
        t[j] = fft_turned(step, from, k, j);
    if (radix == 8)
        fft_eight(t, x);
    else if (radix == 4)
        fft_four(t, 1, x);
    else {
        x[0] = fft_plus(t[0], t[1]);
        x[1] = fft_minus(t[0], t[1]);
    }
    for (int q = 0; q < radix; q++)
        fft_store(step, &to[q * stride], x[q]);
}

/* `space`: memory for radix - 1 values. */
INLINE void
fft_odd_radix(const struct fft_step *step, const struct fft_lanes *from, struct fft_lanes *to, int64_t k, int radix,
              struct fft_lanes *space)
{
    const int64_t stride = step->length * step->count;
    const struct fft_value *roots = step->plan->roots;
    const int64_t turn = step->plan->side / radix;
    const int half = radix / 2;
    const struct fft_pair first = fft_turned(step, from, k, 0);
    struct fft_pair sum = first;

    for (int j = 1; j <= half; j++) {
        const struct fft_pair low = fft_turned(step, from, k, j), high = fft_turned(step, from, k, radix - j);
        const struct fft_pair both = fft_plus(low, high);

        sum = fft_plus(sum, both);
        fft_store(step, &space[2 * j - 2], both);
        fft_store(step, &space[2 * j - 1], fft_minus(low, high));
    }
    fft_store(step, to, sum);
    for (int q = 1; q <= half; q++) {
        struct fft_pair a = first, b = {0};

        for (int j = 1, at = q; j <= half; j++, at = at + q < radix ? at + q : at + q - radix) {
            const struct fft_pair both = fft_load(step, &space[2 * j - 2]), other = fft_load(step, &space[2 * j - 1]);
            const struct fft_value root = roots[at * turn];

            a = (struct fft_pair){a.re + both.re * root.re, a.im + both.im * root.re};
            b = (struct fft_pair){b.re + other.re * root.im, b.im + other.im * root.im};
        }
        fft_store(step, &to[q * stride], fft_plus_turned(a, b));
        fft_store(step, &to[(radix - q) * stride], fft_minus_turned(a, b));
    }
}

INLINE void
fft_run_step(struct fft_step step, const struct fft_lanes *from, struct fft_lanes *to, int radix)
{
    for (int64_t k = 0; k < step.length; k++)
        for (int64_t p = 0; p < step.count; p++)
            for (step.lane = 0; step.lane < FFT_LANES; step.lane += FFT_WIDTH) {
                const struct fft_lanes *group = &from[k * step.count * radix + p];

                if (radix % 2 == 0)
                    fft_even_radix(&step, group, &to[k * step.count + p], k, radix);
                else
                    fft_odd_radix(&step, group, &to[k * step.count + p], k, radix, step.space);
            }
}

LOOP struct fft_lanes *
fft_lines(const struct fft_plan *plan, bool inverse, struct fft_lanes *values, struct fft_lanes *other,
          struct fft_lanes *space)
{
    struct fft_step step = {plan, 1, plan->side, inverse, !inverse, 0, space};

    for (int s = plan->steps - 1; s >= 0; s--) {
        struct fft_lanes *const read = values;

        step.count /= plan->radix[s];
        switch (plan->radix[s]) {
        case 2:
            fft_run_step(step, values, other, 2);
            break;
        case 3:
            fft_run_step(step, values, other, 3);
            break;
        case 4:
            fft_run_step(step, values, other, 4);
            break;
        case 5:
            fft_run_step(step, values, other, 5);
            break;
        case 8:
            fft_run_step(step, values, other, 8);
            break;
        default:
            fft_run_step(step, values, other, plan->radix[s]);
        }
        step.length *= plan->radix[s];
        values = other;
        other = read;
    }
    return values;
}

#endif
