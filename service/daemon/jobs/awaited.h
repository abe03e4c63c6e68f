/*
 * awaited.h - inputs that jobs wait for: annotation objects (RTSTRUCT, SEG, SR) named by pipelines (`object` of their
 * segments), other series of a study named by rules (`study`), and earlier studies from an archive. Finds the waiting jobs when an input arrives.
 *
 * An annotation object is matched by its kind and, if the pipeline gives one, by its sending AE. Only the job itself
 * checks whether it contains the region. Loop thread only. All calls change the queue in the open batch.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_AWAITED_H
#define NOCTULE_SERVICE_DAEMON_JOBS_AWAITED_H

#include "service/daemon/core.h"

#define AWAITED_TEXT 256

/* Describes the annotation objects that the pipeline names and the series lacks; "" if all are present. Sets *code to
 * OBJECT_OPTIONAL if all of these are optional, else to OBJECT_WAITING. Returns 0 or -errno. */
int awaited_lacks(struct core *core, int64_t series_id, const struct conf_pipeline *pipeline, enum code *code,
                  char text[AWAITED_TEXT]);

/* Returns whether a segment of the pipeline is a region of such an object. */
bool awaited_is_named(const struct conf_pipeline *pipeline, const char *kind, const char *sender);

/* Returns 0 and the absolute paths of the series' annotation objects that the pipeline names. The caller must free each
 * and the array. Returns -errno and no paths on failure. */
int awaited_paths(const struct core *core, int64_t series_id, const struct conf_pipeline *pipeline, char ***paths,
                  size_t *count);

/* Describes the series of the same study that the rules for this pipeline require (`study`) and that are missing; "" if
 * all series of one rule are present. If each rule lacks some, describes those of the first. Returns 0 or -errno. */
int awaited_lacks_study(struct core *core, const struct queue_series *series, const char *pipeline,
                        char text[AWAITED_TEXT]);

/* Orders the earlier study of the job's patient from the pipeline's archive, unless it is ordered. Returns 0 or -errno. */
int awaited_order_prior(const struct core *core, int64_t job_id, const struct conf_pipeline *pipeline);

/* Sets jobs to READY that waited for this series of their study, now complete. Returns 0 or -errno. */
int awaited_series_completed(struct core *core, int64_t series_id);

/* Handles a new annotation object, or a new file of one. Jobs that waited for it become READY. A series whose jobs have
 * begun without it is reopened for a new revision. The caller must then call inspections_check_later(). Returns 0 or
 * -errno. */
int awaited_object_arrived(struct core *core, int64_t object_id, const char *kind, const char *sender);

#endif
