/* job_compute.h - the CPU backend with one lane, for tests of whole jobs. */
#ifndef NOCTULE_JOB_COMPUTE_H
#define NOCTULE_JOB_COMPUTE_H

#include "service/pipeline/measure/measure_values.h"
#include "service/pipeline/pipeline.h"

#include <check.h>

/* The caller must close both. */
static inline void
job_compute_open(struct kernels_device **device, struct pipeline_compute *compute)
{
    struct error error = {0};
    const struct kernels_device_options options = {.backend = "cpu", .threads = 2};
    ck_assert_int_eq(kernels_device_open(&options, device, &error), 0);
    *compute = (struct pipeline_compute){.device = *device, .valuing = valuing_open(), .threads = 2};
    ck_assert_ptr_nonnull(compute->valuing);
    ck_assert_int_eq(kernels_lane_open(*device, &compute->lane, &error), 0);
}

static inline void
job_compute_close(struct kernels_device *device, const struct pipeline_compute *compute)
{
    valuing_close(compute->valuing);
    kernels_lane_close(compute->lane);
    kernels_device_close(device);
}

#endif
