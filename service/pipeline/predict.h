/*
 * predict.h - predicts the time of a job on the processors. A job that would end before a GPU is
 * open need not wait for it. Results are equal on both, bit for bit.
 *
 * The rates are upper bounds of measured times (docs/measurements.md). The prediction depends on
 * the job and the number of threads only, not on the load of the machine. Thread-safe.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_PREDICT_H
#define NOCTULE_SERVICE_PIPELINE_PREDICT_H

#include "config/config.h"

/* Seconds to open a GPU: 81 runs on an H200 host took 0.31 s longer each with CUDA than without. */
#define PREDICT_OPEN_SECONDS 0.3

/*
 * Returns the seconds that a pipeline computes with `threads` threads on `voxels` voxels in total;
 * INFINITY if the time grows faster than the number of voxels.
 */
double predict_seconds(const struct conf_pipeline *pipeline, int64_t voxels, int threads);

#endif
