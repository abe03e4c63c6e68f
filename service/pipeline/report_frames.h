/*
 * report_frames.h - the report of a job as messages to the daemon: as many FEATURES and HISTOGRAM
 * as needed, then DONE.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_REPORT_FRAMES_H
#define NOCTULE_SERVICE_PIPELINE_REPORT_FRAMES_H

#include "service/common/wire/messages.h"
#include "service/pipeline/pipeline_report.h"

void report_write_progress(struct proto_writer *writer, int64_t job, const char *stage, double fraction);
void report_write_features(struct proto_writer *writer, int64_t job, const struct feature *features, size_t count);
void report_write_histogram(struct proto_writer *writer, int64_t job, const struct feature_histogram *histogram);
void report_write_done(struct proto_writer *writer, int64_t job, const struct pipeline_report *report);

/* Passes each message to `take`, which must finish and release it; false: stop. */
void report_write(int64_t job, const struct pipeline_report *report,
                  bool (*take)(void *context, struct proto_writer *frame), void *context);

#endif
