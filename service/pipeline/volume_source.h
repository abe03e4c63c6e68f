/*
 * volume_source.h - the volume that a job computes on: the stack of the series, and the working grid (grid.h).
 *
 * Jobs and the steps of programs use the same stack and grid, so that a program sees the voxels of the job.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_VOLUME_SOURCE_H
#define NOCTULE_SERVICE_PIPELINE_VOLUME_SOURCE_H

#include "config/config.h"
#include "service/common/volume/volume_file.h"
#include "service/pipeline/grid.h"
#include "service/pipeline/headers.h"
#include "service/pipeline/suv_series.h"

struct volume_source {
    struct geometry_series *series;
    const struct geometry_stack *stack; /* in the files */
    struct suv_series suv;
    const struct headers *headers; /* those of `suv`, or the given ones */
    struct grid grid;
};

/*
 * Finds the stack of this name ("": the only one) and its grid by the options of the pipeline. Every file must have a
 * header, since a result of a part of the series would look whole. Pipeline and headers are borrowed. Codes: NO_INPUT,
 * those of the headers, of geometry_group() and grid_make(), of suv_series_make(), and STACK_NOT_FOUND. The caller must call
 * volume_source_release() also after an error.
 */
int volume_source_choose(const struct conf_pipeline *pipeline, const struct headers *headers, const char *stack,
                         struct volume_source *source, struct error *error);
void volume_source_release(struct volume_source *source);

/* Returns the voxels of the grid in space. */
struct volume_grid volume_source_box(const struct grid *grid);

#endif
