/*
 * pipeline.h - runs one job: read headers, check geometry, decode, compute, write, read back.
 *
 * A worker's lane, `noctule run` and `noctule run-job` use the same function.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_PIPELINE_H
#define NOCTULE_SERVICE_PIPELINE_PIPELINE_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "kernels/kernels.h"
#include "service/common/jobs/job_file.h"
#include "service/pipeline/headers.h"
#include "service/pipeline/pipeline_report.h"

/*
 * The resources of a job: two lanes of the device, the number of threads, and fallback lanes for jobs
 * that do not fit into the first ones' memory (a CPU's, if the first are a GPU's). No other job may
 * use the lanes meanwhile.
 */
struct pipeline_compute {
    struct kernels_device *device;
    struct kernels_lane *lane;
    struct kernels_lane *coarse_lane; /* for segments with grid_mm; without these for texture */
    struct valuing *valuing;          /* measure_values.h */
    int threads;
    int64_t most_bytes;                     /* memory limit of the job; 0: the free memory */
    struct kernels_device *fallback_device; /* may be NULL */
    struct kernels_lane *fallback_lane, *fallback_coarse_lane;
};

/* Returns the limits that a pipeline sets for the geometry of a stack. */
struct geometry_limits pipeline_limits(const struct conf_pipeline *pipeline);

/*
 * Runs the job. With PROTO_VERDICT_DONE, its results are complete, synced, read back and in the
 * output folder; otherwise no partial file remains. `watch` may be NULL.
 */
void pipeline_run(const struct job_spec *spec, const struct pipeline_compute *compute,
                  const struct pipeline_watch *watch, struct pipeline_report *report);

/* Runs a job whose headers, all of one series, were read before (borrowed). */
void pipeline_run_headers(const struct job_spec *spec, const struct headers *headers,
                          const struct pipeline_compute *compute, const struct pipeline_watch *watch,
                          struct pipeline_report *report);

/* Seconds to open a GPU: 81 runs on an H200 host took 0.31 s longer each with CUDA than without. */
#define PREDICT_OPEN_SECONDS 0.3

/* The size of the work on images. */
struct predict_size {
    int64_t voxels;
    double blocks; /* of segments with grid_mm; all voxels if their spacing is not known */
};

/* Adds the images of a file. */
void predict_add(const struct conf_pipeline *pipeline, const struct dicom_instance *instance,
                 struct predict_size *size);

/*
 * Returns the seconds that a pipeline computes with `threads` threads on images of this size in total;
 * INFINITY if the time grows faster than the number of voxels. A job that would end before a GPU is
 * open need not wait for it: results are equal on both, bit for bit.
 *
 * The rates are upper bounds of measured times (docs/measurements.md). The prediction depends on
 * the job and the number of threads only, not on the load of the machine. Thread-safe.
 */
double predict_seconds(const struct conf_pipeline *pipeline, const struct predict_size *size, int threads);

#endif
