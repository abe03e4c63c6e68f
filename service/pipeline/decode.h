/*
 * decode.h - decodes the planes of a stack in several threads, directly into the lane's volume.
 *
 * The thread that decoded a plane, or rows of a large one, announces them to the lane, so upload and computing overlap
 * with decoding.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_DECODE_H
#define NOCTULE_SERVICE_PIPELINE_DECODE_H

#include "kernels/kernels.h"
#include "service/pipeline/pipeline_report.h"

#include "dicom/read/geometry/geometry.h"

struct decode_request {
    struct dicom_instance *const *instances; /* the instances of the stack's planes */
    const struct geometry_stack *stack;
    struct kernels_lane *lane;
    void *voxels;               /* from kernels_volume_begin() */
    double *reals;              /* also filled with the values of an image file with has_reals; else NULL */
    enum dicom_channel channel; /* of 2-D images with colour */
    int threads;
    const struct pipeline_watch *watch;
};

/* Returns the max memory in bytes that decode_stack() takes: of colour, tables and compressed frames. */
int64_t decode_bytes(struct dicom_instance *const *instances, const struct geometry_stack *stack, int threads);

/* Returns 0, -ECANCELED when stopped, or -errno with the error of the lowest plane, and of its lowest rows, that failed. */
int decode_stack(const struct decode_request *request, struct error *error);

#endif
