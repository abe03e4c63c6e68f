/* mask_cpu.h - what the files of the CPU's masks share. */
#ifndef NOCTULE_CPU_MASK_H
#define NOCTULE_CPU_MASK_H

#include "kernels/cpu/bits.h"
#include "kernels/cpu/device.h"
#include "kernels/mask/ball.h"
#include "kernels/mask/mask.h"

/* The volume's shape, and who works on it. */
struct mask_volume {
    struct bits_extent extent;
    const struct isa *isa;
    struct cpu_pool *pool;
    int threads;
};

static inline uint64_t
mask_tail(const struct bits_extent *extent)
{
    return ~UINT64_C(0) >> (63 - (extent->size[0] - 1) % 64);
}

/* Masks that limit a mask through all of its steps. */
struct mask_bounds {
    const uint64_t *const *within, *const *minus;
    size_t within_count, minus_count;
};

/* Clears the bits outside the bounds in `words` words of a mask, of which `bits` is number `first`. */
static inline void
mask_bound(const struct mask_bounds *bounds, int64_t first, int64_t words, uint64_t *bits)
{
    for (size_t m = 0; m < bounds->within_count; m++)
        for (int64_t i = 0; i < words; i++)
            bits[i] &= bounds->within[m][first + i];
    for (size_t m = 0; m < bounds->minus_count; m++)
        for (int64_t i = 0; i < words; i++)
            bits[i] &= ~bounds->minus[m][first + i];
}

/* Of a slice, first .. last along x and y; none from 0 to -1. */
struct mask_rectangle {
    int64_t first[2];
    int64_t last[2];
};

static const struct mask_rectangle mask_no_rectangle = {{0, 0}, {-1, -1}};

static inline bool
mask_rectangle_is_empty(const struct mask_rectangle *rectangle)
{
    return rectangle->first[0] > rectangle->last[0] || rectangle->first[1] > rectangle->last[1];
}

/* Where a mask's voxels lie in a slice. */
struct mask_rectangle mask_measure_slice(const struct bits_extent *extent, const uint64_t *bits,
                                         int64_t z);

/* In every slice. */
void mask_measure(const struct mask_volume *volume, const uint64_t *bits,
                  struct mask_rectangle *slices);

/* runs_cpu.c and components_cpu.c: components. */

/* Where there may be so many runs: a word for each row, and eight bytes for each run. */
struct mask_runs {
    uint32_t *first;
    uint64_t *slots;
};

size_t mask_runs_most(const struct bits_extent *extent);

/* Runs of ones in bits ^ flip, and what they hang together in. */
struct mask_labels {
    const struct mask_volume *volume;
    struct mask_runs runs;
    uint64_t *bits;
    uint64_t flip; /* 0 or all ones */
    bool corners;
    bool flat;     /* slices for themselves */
    bool border;   /* a component's size is how many of its runs lie at the border */
    int64_t count; /* runs; this and what was found are mask_label's */
    int64_t found;
};

/* Finds the components and their sizes; returns how many. */
int64_t mask_label(struct mask_labels *labels);

/* What stays: components above this size, and of this size those up to this run. */
struct mask_limit {
    int64_t size;
    uint64_t last;
};

struct mask_limit mask_limit_of(const struct mask_labels *labels,
                                const struct kernels_mask_step *step, const double spacing[3]);

/* Turns over the runs of what does not stay; returns how many components stay. */
int64_t mask_drop(const struct mask_labels *labels, struct mask_limit limit);

/* Voxels first .. last along each axis, and the number that the component has. */
struct mask_component {
    int64_t first[3];
    int64_t last[3];
    uint64_t number;
};

enum { MASK_COMPONENTS = 4096 };

/*
 * Numbers the components instead of their sizes, from 0; returns how many numbers there are. Where
 * there are no more components than MASK_COMPONENTS, they are told, and two may share a number whose
 * places differ by more than `apart` along an axis.
 */
int64_t mask_number(const struct mask_labels *labels, const int64_t apart[3],
                    struct mask_component *components);

/* Numbers n with n / place % base == value. */
struct mask_digit {
    uint64_t place, base, value;
};

/* part = the voxels of components with such a number, in the slices that may have some: what the
 * others have is not written. All slices are measured. */
struct mask_part {
    const struct mask_labels *labels;
    const struct mask_component *components; /* of mask_number */
    struct mask_digit digit;
    uint64_t *bits;
    struct mask_rectangle *slices;
};

void mask_take_part(struct mask_part *part);

/* grow_cpu.c: balls. */

/* What a ball needs of memory: of each slice where the source has voxels and where the target may have
 * some; and for each thread. */
struct mask_grow_space {
    struct mask_reach most;
    struct mask_rectangle *slices;
    struct mask_rectangle *reached;
    unsigned char *threads;
    size_t bytes; /* of one thread */
};

void mask_grow_place(struct mask_grow_space *space, const struct mask_volume *volume,
                     const struct mask_reach *most, struct kernels_arena *arena);

struct mask_growing {
    const struct mask_volume *volume;
    const struct mask_ball *ball;
    const struct mask_grow_space *space;
    const uint64_t *source; /* its slices are in space->slices, and empty ones are not read */
    uint64_t *target;
    bool shrink;
    bool sparse; /* what nothing reaches of the target is not written: space->reached tells */
    const struct mask_bounds *bounds; /* of the target; NULL: none */
};

/* target = the source grown by the ball, or shrunk. */
void mask_grow(const struct mask_growing *growing);

#endif
