/*
 * device.h - declarations shared by the files of the CPU backend.
 *
 * A lane owns two memory blocks, one for the voxels and one for the operations. Both grow in
 * volume_begin only. All lanes of a device share its thread pool.
 */
#ifndef NOCTULE_KERNELS_CPU_DEVICE_H
#define NOCTULE_KERNELS_CPU_DEVICE_H

#include "kernels/cpu/cpu_pool.h"
#include "kernels/cpu/isa.h"
#include "kernels/op.h"

struct cpu_device {
    struct kernels_device base;
    const struct isa *isa;
    struct cpu_pool *pool;
};

/* Page-aligned memory. Its contents are undefined after it has grown. */
struct cpu_block {
    void *memory;
    size_t size;
};

struct cpu_lane {
    struct kernels_lane base;
    struct cpu_block voxels;
    struct cpu_block work; /* for the operations */
};

/* As kernels_device_open, with the named instruction set (isa_find) instead of the best one. */
int cpu_device_open(const struct kernels_device_options *options, const char *isa, struct kernels_device **device,
                    struct error *error);

static inline struct cpu_lane *
cpu_lane_of(struct kernels_lane *lane)
{
    return (struct cpu_lane *)lane;
}

static inline const struct cpu_device *
cpu_device_of(const struct kernels_lane *lane)
{
    return (const struct cpu_device *)lane->device;
}

/* Returns a voxel's value, relative to the smallest of its type. */
static inline uint32_t
cpu_lane_value(const struct cpu_lane *lane, int64_t voxel)
{
    const void *voxels = lane->voxels.memory;

    if (lane->base.pixel == IMAGE_UINT8)
        return ((const uint8_t *)voxels)[voxel];
    return ((const uint16_t *)voxels)[voxel] ^ (lane->base.pixel == IMAGE_INT16 ? 0x8000u : 0);
}

#endif
