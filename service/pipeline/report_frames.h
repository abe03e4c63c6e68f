/*
 * report_frames.h - what the pipeline reports of a job, as the messages that tell the daemon: FEATURES and
 * HISTOGRAM as often as it takes, DONE last.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_REPORT_FRAMES_H
#define NOCTULE_SERVICE_PIPELINE_REPORT_FRAMES_H

#include "service/common/wire/messages.h"
#include "service/pipeline/pipeline_report.h"

void report_write_progress(struct proto_writer *writer, int64_t job, const char *stage,
                           double fraction);
void report_write_features(struct proto_writer *writer, int64_t job, const struct feature *features,
                           size_t count);
void report_write_histogram(struct proto_writer *writer, int64_t job,
                            const struct feature_histogram *histogram);
void report_write_done(struct proto_writer *writer, int64_t job,
                       const struct pipeline_report *report);

/* All of them, in order, for `take` to finish and release each; false: it takes no more. */
void report_write(int64_t job, const struct pipeline_report *report,
                  bool (*take)(void *context, struct proto_writer *frame), void *context);

#endif
