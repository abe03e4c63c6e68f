/*
 * decode.h - the planes of a stack, decoded by several threads straight into the lane's volume.
 *
 * Each plane is announced to the lane by the thread that decoded it, so that computing overlaps
 * with decoding.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_DECODE_H
#define NOCTULE_SERVICE_PIPELINE_DECODE_H

#include "kernels/kernels.h"
#include "service/pipeline/pipeline_report.h"

#include "dicom/read/geometry/geometry.h"

struct decode_request {
    struct dicom_instance *const *instances; /* what the stack's planes refer to */
    const struct geometry_stack *stack;
    struct kernels_lane *lane;
    void *voxels; /* of kernels_volume_begin */
    int threads;
    const struct pipeline_watch *watch;
};

/* 0, -ECANCELED when told to stop, or the -errno and error of the lowest plane that failed. */
int decode_stack(const struct decode_request *request, struct error *error);

#endif
