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

/* Voxels first .. last along each axis; none when first > last on one. */
struct mask_box {
    int64_t first[3];
    int64_t last[3];
};

static inline bool
mask_box_is_empty(const struct mask_box *box)
{
    return box->first[0] > box->last[0] || box->first[1] > box->last[1] ||
           box->first[2] > box->last[2];
}

/* The box of a mask, and its number of voxels. */
struct mask_box mask_measure(const struct mask_volume *volume, const uint64_t *bits,
                             int64_t *voxels);

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

/* Numbers the components instead of their sizes, from 0. */
void mask_number(const struct mask_labels *labels);

/* part = the voxels of components whose number has this bit. */
void mask_part(const struct mask_labels *labels, int bit, uint64_t *part);

/* grow_cpu.c: balls. */

/* What a ball needs of memory: offsets for all, and for each thread. */
struct mask_grow_space {
    struct mask_reach most;
    int64_t *offsets;
    unsigned char *threads;
    size_t bytes; /* of one thread */
};

void mask_grow_place(struct mask_grow_space *space, const struct mask_volume *volume,
                     const struct mask_reach *most, struct kernels_arena *arena);

/* target = the source grown by the ball, or shrunk. */
void mask_grow(const struct mask_volume *volume, const struct mask_ball *ball,
               const struct mask_grow_space *space, const uint64_t *source, bool shrink,
               uint64_t *target);

#endif
