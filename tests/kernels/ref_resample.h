/* ref_resample.h - resamples by the definition of kernels/resample/resample.h, voxel by voxel. */
#ifndef NOCTULE_REF_RESAMPLE_H
#define NOCTULE_REF_RESAMPLE_H

#include "kernels/resample/resample.h"

/* Resamples to values of the demand's kind. Bytes of `resampled` are as those of kernels_resample(). */
void ref_resample(const struct resample_request *request, enum image_pixel pixel, const void *voxels,
                  const struct resample_demand *demand, void *resampled);

/* Maps the grid's map to the planes. */
void ref_resample_map(const struct image_planes *planes, const struct resample_grid *grid, const uint16_t *map,
                      uint16_t *on_planes);

/* Maps the grid's mask to the planes. Returns the number of set bits. */
int64_t ref_resample_mask(const struct image_planes *planes, const struct resample_grid *grid, const uint64_t *bits,
                          uint64_t *on_planes);

/* Maps the planes' mask to the grid. Returns the number of set bits. */
int64_t ref_resample_drawn(const struct image_planes *planes, const struct resample_grid *grid, const uint64_t *bits,
                           uint64_t *on_grid);

#endif
