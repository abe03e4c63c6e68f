/* mask_cpu.h - declarations shared by the mask files of the CPU. */
#ifndef NOCTULE_KERNELS_MASK_MASK_CPU_H
#define NOCTULE_KERNELS_MASK_MASK_CPU_H

#include "kernels/cpu/bits.h"
#include "kernels/cpu/device.h"
#include "kernels/mask/ball.h"
#include "kernels/mask/mask.h"

/* The volume's shape, and its thread pool. */
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

/* Masks that limit a mask in all of its steps. */
struct mask_bounds {
    const uint64_t *const *within, *const *minus;
    size_t within_count, minus_count;
};

/* Clears the bits outside the bounds in `words` words of a mask. `bits` is word number `first`. */
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

/* Voxels first .. last of a slice along x and y; empty is 0 to -1. */
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

/* Returns the rectangle of a mask's voxels in a slice. */
struct mask_rectangle mask_measure_slice(const struct bits_extent *extent, const uint64_t *bits, int64_t z);

/* Measures every slice. */
void mask_measure(const struct mask_volume *volume, const uint64_t *bits, struct mask_rectangle *slices);

/* mask_runs_cpu.c and components_cpu.c: components. */

/* Room for the max number of runs: one word per row, and eight bytes per run. */
struct mask_runs {
    uint32_t *first;
    uint64_t *slots;
};

size_t mask_runs_most(const struct bits_extent *extent);

/* Runs of ones in bits ^ flip, and their components. */
struct mask_labels {
    const struct mask_volume *volume;
    struct mask_runs runs;
    uint64_t *bits;
    uint64_t flip; /* 0 or all ones */
    bool corners;
    bool flat;     /* slices are separate */
    bool border;   /* a component's size is the number of its runs at the border */
    int64_t count; /* number of runs; set by mask_label, as is `found` */
    int64_t found;
};

/* Finds the components and their sizes. Returns their number. */
int64_t mask_label(struct mask_labels *labels);

/* Keeps components above this size, and those of this size up to this run. */
struct mask_limit {
    int64_t size;
    uint64_t last;
};

struct mask_limit mask_limit_of(const struct mask_labels *labels, const struct kernels_mask_step *step,
                                const double spacing[3]);

/* Flips the runs of components that do not stay. Returns the number that stay. */
int64_t mask_drop(const struct mask_labels *labels, struct mask_limit limit);

/* Voxels first .. last along each axis, and the component's number. */
struct mask_component {
    int64_t first[3];
    int64_t last[3];
    uint64_t number;
};

enum { MASK_COMPONENTS = 4096 };

/*
 * Replaces the sizes of components by numbers from 0. Returns how many numbers are used. Up to
 * MASK_COMPONENTS components are also measured. Two of these may share a number if they are more
 * than `apart` from each other along an axis.
 */
int64_t mask_number(const struct mask_labels *labels, const int64_t apart[3], struct mask_component *components);

/* Selects numbers n with n / place % base == value. */
struct mask_digit {
    uint64_t place, base, value;
};

/* Writes to `part` the voxels of components with such a number, only in slices that may have some.
 * Measures all slices. */
struct mask_part {
    const struct mask_labels *labels;
    const struct mask_component *components; /* from mask_number */
    struct mask_digit digit;
    uint64_t *bits;
    struct mask_rectangle *slices;
};

void mask_take_part(struct mask_part *part);

/* mask_means_cpu.c */

enum { MASK_MEANS = 65536 }; /* components whose means are found at once */

/* Sum and number of a component's inner values. */
struct mask_mean {
    int64_t sum, count;
};

/* Drops labelled components by the mean of their inner voxels. Returns the number that stay. */
struct mask_averaging {
    const struct mask_labels *labels; /* flip, flat and border are not set */
    const void *voxels;
    enum image_pixel pixel;
    double least;
    struct mask_mean *means; /* MASK_MEANS */
};

int64_t mask_drop_means(struct mask_averaging *averaging);

/* grow_cpu.c: balls. */

/* Memory for a ball: rectangles per slice of the source's voxels and of the target's possible
 * voxels, and memory per thread. */
struct mask_grow_space {
    struct mask_reach most;
    struct mask_rectangle *slices;
    struct mask_rectangle *reached;
    unsigned char *threads;
    size_t bytes; /* per thread */
};

void mask_grow_place(struct mask_grow_space *space, const struct mask_volume *volume, const struct mask_reach *most,
                     struct kernels_arena *arena);

struct mask_growing {
    const struct mask_volume *volume;
    const struct mask_ball *ball;
    const struct mask_grow_space *space;
    const uint64_t *source; /* its slices are measured in space->slices; empty ones are not read */
    uint64_t *target;
    bool shrink;
    bool sparse;                      /* slices out of reach are not written: see space->reached */
    const struct mask_bounds *bounds; /* of the target; NULL: no bounds */
};

/* Sets the target to the source grown or shrunk by the ball. */
void mask_grow(const struct mask_growing *growing);

#endif
