/* range_cpu.h - finds the voxels of a CPU lane in a range of values. */
#ifndef NOCTULE_KERNELS_RANGE_RANGE_CPU_H
#define NOCTULE_KERNELS_RANGE_RANGE_CPU_H

#include "kernels/cpu/device.h"
#include "kernels/range/range.h"

/* Writes the bits of slice z: in range and not padding, rows padded with zeros. Returns the number
 * of runs of ones within rows. */
int64_t range_pack_slice(const struct cpu_lane *lane, struct image_range range, struct image_range padding, int64_t z,
                         uint64_t *bits);

/* Clears the bits of voxels that are out of range or padding. Skips words without bits. */
void range_narrow_slice(const struct cpu_lane *lane, struct image_range range, struct image_range padding, int64_t z,
                        uint64_t *bits);

/* Writes the clipped values of voxels first .. first + count - 1 of the volume. */
void range_clip_voxels(const struct cpu_lane *lane, const struct range_clipping *clip, int64_t first, int64_t count,
                       uint16_t *clipped);

#endif
