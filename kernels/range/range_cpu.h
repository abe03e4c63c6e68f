/* range_cpu.h - which voxels of a lane of the CPU lie in a range of values. */
#ifndef NOCTULE_CPU_RANGE_H
#define NOCTULE_CPU_RANGE_H

#include "kernels/cpu/device.h"

/* The bits of slice z, rows padded with zeros: in range and not padding. Returns the number of runs
 * of ones within rows. */
int64_t range_pack_slice(const struct cpu_lane *lane, struct image_range range,
                         struct image_range padding, int64_t z, uint64_t *bits);

/* Clears those of the bits that are not in range or are padding. Values where a word has none are not
 * looked at. */
void range_narrow_slice(const struct cpu_lane *lane, struct image_range range,
                        struct image_range padding, int64_t z, uint64_t *bits);

#endif
