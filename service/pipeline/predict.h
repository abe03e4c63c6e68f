/*
 * predict.h - predicts the time of a job on the processors, so that a job that ends before a GPU is open need not wait
 * for one. Results are the same on both, bit for bit.
 *
 * The rates are upper bounds of measured times (docs/measurements.md). The prediction is of the work alone: the same
 * job on as many threads always has the same one, whatever else the machine does. Pure; any thread.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_PREDICT_H
#define NOCTULE_SERVICE_PIPELINE_PREDICT_H

#include "config/config.h"

/* Seconds to open a GPU: 81 runs on an H200 host took 0.31 s longer each with CUDA than without. */
#define PREDICT_OPEN_SECONDS 0.3

/* Returns the seconds that a pipeline computes on so many threads for volumes of so many voxels together; INFINITY
 * where the time grows faster than the number of voxels. */
double predict_seconds(const struct conf_pipeline *pipeline, int64_t voxels, int threads);

#endif
