/*
 * real_volume.h - the volume that jobs compute on, as real-world values of a volume file: the input of programs and a result.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_REAL_VOLUME_H
#define NOCTULE_SERVICE_PIPELINE_REAL_VOLUME_H

#include "service/common/volume/volume_file.h"
#include "service/pipeline/grid.h"

/* Grid and voxels are borrowed. `fill` must get the address of this struct as its context. */
struct real_volume {
    const struct grid *grid;
    const void *voxels;
    struct volume_grid box;
    enum volume_type type; /* int16 if all values are whole numbers in its range, else float32 */
    volume_fill *fill;
};

struct real_volume real_volume_of(const struct grid *grid, const void *voxels);

#endif
