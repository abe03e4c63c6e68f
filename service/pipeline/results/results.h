/*
 * results.h - writes the output folder of a job: segmentations, state codes, measurements, maps,
 * the preview and the record.
 *
 * Files are written under hidden names (job_output.h), DICOM objects are read back, and publishing
 * makes all of them visible together. A thread of its own draws the preview meanwhile: all writers
 * only read the volume and the masks.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_RESULTS_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_RESULTS_H

#include "service/common/jobs/job_file.h"
#include "service/common/jobs/job_output.h"
#include "service/common/json.h"
#include "service/pipeline/grid.h"
#include "service/pipeline/headers.h"
#include "service/pipeline/measure/measure_groups.h"
#include "service/pipeline/segment/segment.h"

#include "kernels/features/family.h"

/* The input of the results. All borrowed; the lane is the caller's meanwhile. */
struct results_request {
    const struct job_spec *spec;
    const struct headers *headers;
    const struct conf_pipeline *pipeline;
    const struct geometry_stack *stack;      /* of the source, to which objects refer */
    const struct grid *grid;                 /* of masks, voxels, preview and codes */
    const struct segmentation *segmentation; /* finished */
    struct kernels_lane *lane;               /* for the state codes of level sets */
    const void *voxels;                      /* stored values, grid->stack->pixel, x fastest */
    const struct feature_map *maps;
    size_t map_count;
    const struct texture_groups *groups;    /* with the responses of filters */
    const struct voxelwise_maps *voxelwise; /* maps of features */
    size_t voxelwise_count;
    int threads;
    const struct pipeline_watch *watch; /* may be NULL */
    struct output *output;
};

/*
 * Writes and reads back each result that the pipeline requests. Reads the computed values from the
 * report; fills results, result_count, empty, write_seconds and verify_seconds. Returns 0, or
 * -errno with the error filled: -ECANCELED if the job was stopped, -EAGAIN if an object read back
 * differs.
 */
int results_write(const struct results_request *request, struct pipeline_report *report);

/*
 * Returns a bound of the memory for writing pictures, NIfTI files and, beside them, the file of the slice viewer if the job
 * may have it. Other objects need little besides the masks.
 */
int64_t results_bytes(const struct conf_pipeline *pipeline, enum job_slices slices, const struct geometry_stack *stack,
                      int threads);

/*
 * Writes the record, job.json, from the report, waits until all files are synced, and publishes
 * them. Returns 0, or -errno with the error filled.
 */
int results_publish(const struct results_request *request, struct pipeline_report *report);

/* Returns whether a job may write a file of this name. */
bool results_is_file(const char *name);

/*
 * The input of job.json, which has settings, steps and the time of each stage. Of the patient it has only what
 * an SUV was computed from.
 */
struct record {
    const struct pipeline_report *report;
    const struct job_spec *spec;
    const char *pipeline; /* name; "" if the settings could not be read */
    int threads;
};

/* Writes an object without a key. */
void record_put(struct json *json, const struct record *record);

/* Writes a code as an object of its value, scheme and meaning. Does not write an absent code. */
void record_put_code(struct json *json, const char *key, const struct coded_concept *code);

/* Writes the whole document to a descriptor, which stays open. Returns 0 or -errno. */
int record_write(int fd, const struct record *record);

#endif
