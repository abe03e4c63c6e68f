/*
 * results.h - what a computed job leaves in its output folder: segmentations, state codes,
 * measurements, maps, the preview and the record.
 *
 * Files are written under hidden names (job_output.h), DICOM objects are read back, and all of them
 * appear together when they are published. The preview is drawn and written by a thread of its own
 * beside the objects: both only read the volume and the masks.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_RESULTS_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_RESULTS_H

#include "service/common/jobs/job_file.h"
#include "service/common/jobs/job_output.h"
#include "service/pipeline/grid.h"
#include "service/pipeline/headers.h"
#include "service/pipeline/segment/segment.h"

#include "kernels/features/family.h"

/* What the results are made of. All borrowed; the lane is the caller's while they are written. */
struct results_request {
    const struct job_spec *spec;
    const struct headers *headers;
    const struct conf_pipeline *pipeline;
    const struct geometry_stack *stack;      /* the source's, which objects refer to */
    const struct grid *grid;                 /* of masks, voxels, preview and codes */
    const struct segmentation *segmentation; /* done */
    struct kernels_lane *lane;               /* for the state codes of level sets */
    const void *voxels;                      /* stored values, grid->stack->pixel, x fastest */
    const struct feature_map *maps;
    size_t map_count;
    int threads;
    const struct pipeline_watch *watch; /* may be NULL */
    struct output *output;
};

/*
 * Writes and reads back every result that the pipeline asks for. From the report it reads
 * what was computed; it fills results, result_count, empty, write_seconds and verify_seconds, and
 * with -errno the error: -ECANCELED when the job was told to stop, -EAGAIN when an object did not
 * read back as written.
 */
int results_write(const struct results_request *request, struct pipeline_report *report);

/* Writes the record, job.json, of what the report tells, waits until all files are synced, and
 * publishes them. 0 or -errno with the error filled. */
int results_publish(const struct results_request *request, struct pipeline_report *report);

/* Is it the name of a file that a job may leave? */
bool results_is_file(const char *name);

#endif
