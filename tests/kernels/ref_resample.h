/* ref_resample.h - resampling by its definition (kernels/resample/resample.h), voxel by voxel. */
#ifndef NOCTULE_REF_RESAMPLE_H
#define NOCTULE_REF_RESAMPLE_H

#include "kernels/resample/resample.h"

/* The grid's stored values. */
void ref_resample(const struct resample_request *request, enum image_pixel pixel,
                  const void *voxels, enum image_pixel result, void *resampled);

/* The grid's map on the planes. */
void ref_resample_map(const struct image_planes *planes, const struct resample_grid *grid,
                      const uint16_t *map, uint16_t *on_planes);

/* The grid's mask on the planes; as many bits as are set. */
int64_t ref_resample_mask(const struct image_planes *planes, const struct resample_grid *grid,
                          const uint64_t *bits, uint64_t *on_planes);

/* The planes' mask on the grid, likewise. */
int64_t ref_resample_drawn(const struct image_planes *planes, const struct resample_grid *grid,
                           const uint64_t *bits, uint64_t *on_grid);

#endif
