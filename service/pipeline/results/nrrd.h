/* nrrd.h - writes a volume of int8 as a NRRD file (raw, attached header), for research tools. */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_NRRD_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_NRRD_H

#include "dicom/read/geometry/geometry.h"

#include <stdint.h>

/* Writes columns * rows * plane_count voxels, x fastest, to `fd`. Returns 0 or -errno. */
int nrrd_write_int8(int fd, const struct geometry_stack *stack, const int8_t *voxels);

#endif
