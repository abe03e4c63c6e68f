/*
 * job_lane.h - what jobs are computed on: a device, and lanes of it that have one job at a time each.
 *
 * Behind a GPU are the CPUs, for what does not fit into its memory; they are opened when the first job needs
 * them, so that theirs is not spent before. A device may be used by several threads, a lane by one at a time.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_JOB_LANE_H
#define NOCTULE_SERVICE_PIPELINE_JOB_LANE_H

#include "service/pipeline/pipeline.h"

struct job_device;
struct job_lane;

/* options->threads: of a job that runs alone, which those that run at a time divide between them; 0: one a
 * processor. most_bytes: of memory that each may take; 0: what there is. 0 or -errno with the error filled. */
int job_device_open(const struct kernels_device_options *options, int64_t most_bytes,
                    struct job_device **device, struct error *error);
const char *job_device_description(const struct job_device *device);
/* Of a job that runs alone. */
int job_device_threads(const struct job_device *device);
/* After its lanes. NULL is allowed. */
void job_device_close(struct job_device *device);

int job_lane_open(struct job_device *device, struct job_lane **lane, struct error *error);
/* Runs a job as pipeline_run does; headers: those of its inputs, NULL: they are read. */
void job_lane_run(struct job_lane *lane, const struct job_spec *spec, const struct headers *headers,
                  const struct pipeline_watch *watch, struct pipeline_report *report);
/* Between jobs: takes so much memory for volumes to come, and keeps it when it rests. 0 or -errno: jobs take what they need. */
int job_lane_keep(struct job_lane *lane, int64_t bytes);
/* Gives back the memory of its largest job, if that is more than it keeps. */
void job_lane_rest(struct job_lane *lane);
/* NULL is allowed. */
void job_lane_close(struct job_lane *lane);

#endif
