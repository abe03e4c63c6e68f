/*
 * pipeline.h - one job, straight through: read, gate, decode, compute, write, read back.
 *
 * The same function serves a worker's lane, `noctule run` and a batch script.
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
 * What a job computes with: a lane of the device, how many threads may decode, and a second lane
 * for jobs that do not fit into the first one's memory (of a CPU, where the first is a GPU's). The
 * lanes are the job's alone while it runs.
 */
struct pipeline_compute {
    struct kernels_device *device;
    struct kernels_lane *lane;
    struct valuing *valuing; /* measure_values.h */
    int threads;
    int64_t most_bytes;                     /* of memory that the job may take; 0: what there is */
    struct kernels_device *fallback_device; /* NULL: none */
    struct kernels_lane *fallback_lane;
};

/* What a pipeline asks of the geometry of a stack. */
struct geometry_limits pipeline_limits(const struct conf_pipeline *pipeline);

/*
 * Runs the job. Results are complete, synced, read back and in the output folder when it returns
 * with PROTO_VERDICT_DONE; nothing half-written stays behind otherwise. Returns 0 whenever *report
 * is filled, whatever the verdict. `watch` may be NULL.
 */
int pipeline_run(const struct job_spec *spec, const struct pipeline_compute *compute,
                 const struct pipeline_watch *watch, struct pipeline_report *report);

/* The same when the headers of the inputs, all of one series, have been read already (borrowed). */
int pipeline_run_headers(const struct job_spec *spec, const struct headers *headers,
                         const struct pipeline_compute *compute, const struct pipeline_watch *watch,
                         struct pipeline_report *report);

#endif
