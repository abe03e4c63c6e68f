/*
 * job_lane.h - devices for jobs, and their lanes. A lane runs one job at a time.
 *
 * A GPU has the CPUs as fallback for jobs that do not fit into its memory. They are opened when a
 * job first needs them, to save their memory. A device may be used by several threads, a lane by
 * one at a time.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_JOB_LANE_H
#define NOCTULE_SERVICE_PIPELINE_JOB_LANE_H

#include "service/pipeline/pipeline.h"

struct job_device;
struct job_lane;

/*
 * Opens a device. options->threads: threads of a job that runs alone; jobs that run at the same
 * time share them; 0: one per processor. most_bytes: memory limit per job; 0: the free memory.
 * Returns 0, or -errno with the error filled.
 */
int job_device_open(const struct kernels_device_options *options, int64_t most_bytes, struct job_device **device,
                    struct error *error);
const char *job_device_description(const struct job_device *device);
/* Returns the device of its lanes. */
struct kernels_device *job_device_kernels(const struct job_device *device);
/* Close its lanes first. NULL is allowed. */
void job_device_close(struct job_device *device);

int job_lane_open(struct job_device *device, struct job_lane **lane, struct error *error);
/* Runs a job like pipeline_run(). headers: those of its inputs; NULL: read them. */
void job_lane_run(struct job_lane *lane, const struct job_spec *spec, const struct headers *headers,
                  const struct pipeline_watch *watch, struct pipeline_report *report);
/*
 * Reserves memory for volumes between jobs, and keeps it at rest. Returns 0, or -errno: jobs then
 * allocate memory themselves.
 */
int job_lane_keep(struct job_lane *lane, int64_t bytes);
/* Frees the memory of its largest job, if that is more than it keeps. of_gpu: frees all memory of a GPU, too. */
void job_lane_rest(struct job_lane *lane, bool of_gpu);
/* NULL is allowed. */
void job_lane_close(struct job_lane *lane);

#endif
