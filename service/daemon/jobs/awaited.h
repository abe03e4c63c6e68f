/*
 * awaited.h - objects that pipelines name (`object` of their segments), and other series of a study that
 * rules name (`study`): which jobs wait for which, and what becomes of a series when one comes.
 *
 * An object is told by its kind and, where the pipeline says so, by who sent it; whether it has the
 * region that is wanted the job finds out. The daemon's thread; calls change the queue in the open
 * batch.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_AWAITED_H
#define NOCTULE_SERVICE_DAEMON_JOBS_AWAITED_H

#include "service/daemon/core.h"

#define AWAITED_WORDS 256

/*
 * Describes the objects that the pipeline names and the series lacks; "" if it lacks none. Sets *code to OBJECT_OPTIONAL if all of
 * these are optional, else to OBJECT_WAITING. Returns 0 or -errno.
 */
int awaited_lacks(struct core *core, int64_t series_id, const struct conf_pipeline *pipeline,
                  enum code *code, char words[AWAITED_WORDS]);

/*
 * Absolute paths of the objects of the series that the pipeline names; free each and the array. 0 or
 * -errno, and none.
 */
int awaited_paths(const struct core *core, int64_t series_id, const struct conf_pipeline *pipeline,
                  char ***paths, size_t *count);

/*
 * What the rules that name the pipeline for the series ask for of its study (`study`) and is not there, in
 * words: of the first that lacks something, where each does; "" when one lacks nothing, or asks for
 * nothing. 0 or -errno.
 */
int awaited_lacks_study(struct core *core, const struct queue_series *series, const char *pipeline,
                        char words[AWAITED_WORDS]);

/* A series has settled: jobs of its study that have waited for it become READY. 0 or -errno. */
int awaited_series_came(struct core *core, int64_t series_id);

/*
 * An object came, or another file in its place: jobs that have waited for it become READY, and a
 * series whose jobs have begun without it gathers again, for a new revision: inspections_look_for_news
 * follows. 0 or -errno.
 */
int awaited_came(struct core *core, int64_t object_id, const char *kind, const char *sender);

#endif
