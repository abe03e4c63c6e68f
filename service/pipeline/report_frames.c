/* report_frames.c - see pipeline_report.h. */
#include "service/pipeline/pipeline_report.h"

#include "base/test_hook.h"

#include <math.h>

#define FEATURES_PER_FRAME 512 /* about 100 KiB: the daemon must not block on it */

void
report_write_progress(struct proto_writer *writer, int64_t job, const char *stage, double fraction)
{
    const struct message_progress message = {.job = job, .stage = stage, .fraction = fraction};
    message_write_progress(writer, &message);
}

void
report_write_features(struct proto_writer *writer, int64_t job, const struct feature *features, size_t count)
{
    message_write_features(writer, &(struct message_features){.job = job});
    for (size_t i = 0; i < count; i++) {
        const struct feature *feature = &features[i];
        const struct message_feature row = {
            .segment = feature->segment,
            .label = feature->label,
            .family = feature->family,
            .name = feature->name,
            .meaning = feature->meaning,
            .ibsi = feature->ibsi,
            .value = feature->value,
            .missing_reason = feature->missing_reason,
            .unit = feature->unit,
            .settings = feature->settings,
        };
        message_add_feature(writer, &row);
    }
}

void
report_write_histogram(struct proto_writer *writer, int64_t job, const struct feature_histogram *histogram)
{
    const struct message_histogram message = {
        .job = job,
        .segment = histogram->segment,
        .label = histogram->label,
        .pattern = histogram->pattern,
        .settings = histogram->settings,
    };
    message_write_histogram(writer, &message);
    for (int i = 0; i < PROTO_HISTOGRAM_ROWS; i++)
        message_add_count(writer, &(struct message_count){.voxels = (int64_t)histogram->counts[i]});
}

void
report_write_done(struct proto_writer *writer, int64_t job, const struct pipeline_report *report)
{
    const struct message_done message = {
        .job = job,
        .verdict = report->verdict,
        .code = report->error.code,
        .message = report->error.message,
        .file_a = report->error.file[0],
        .file_b = report->error.file[1],
        .empty = report->empty,
        .review = report->review,
        .read_seconds = report->read_seconds,
        .compute_seconds = report->compute_seconds,
        .write_seconds = report->write_seconds,
        .verify_seconds = report->verify_seconds,
        .total_seconds = report->total_seconds,
        .voxels = report->voxels,
        .segmented = report->segmented_voxels,
        .peak_bytes = report->peak_bytes,
        .backend = report->backend,
        .note = report->note,
        .spacing_x = report->spacing[0],
        .spacing_y = report->spacing[1],
        .spacing_z = report->spacing[2],
        .source_x = report->source.spacing[0],
        .source_y = report->source.spacing[1],
        .source_step_min = report->source.steps[0],
        .source_step_max = report->source.steps[1],
        .straightened = report->source.straightened,
        .kernel = report->source.kernel,
        .kvp = report->source.kvp,
        .thickness_min = report->source.thickness[0],
        .thickness_max = report->source.thickness[1],
        .pixel_values = report->source.values,
        .pixel_intensity = report->source.intensity,
        .spacing_source = report->source.spacing_source ? report->source.spacing_source : "",
    };
    message_write_done(writer, &message);
    for (int32_t i = 0; i < report->result_count; i++) {
        const struct pipeline_result *result = &report->results[i];
        const struct message_result row = {
            .kind = result->kind,
            .file = result->file,
            .sop_class = result->sop_class_uid,
            .sop_instance = result->sop_instance_uid,
            .series = result->series_uid,
            .replaces = result->replaces,
            .size = result->size,
            .frames = result->frames,
        };
        message_add_result(writer, &row);
    }
}

/* Writes segments; hidden ones are only in job.json. */
static void
report_write_segments(struct proto_writer *writer, int64_t job, const struct pipeline_report *report)
{
    message_write_segments(writer, &(struct message_segments){.job = job, .unit = report->unit});
    for (int32_t i = 0; i < report->segment_count; i++) {
        const struct pipeline_segment *segment = &report->segments[i];
        const struct segment_measures *measures = &segment->measures;
        const struct message_segment row = {
            .number = segment->number,
            .label = segment->label,
            .method = segment->method,
            .voxels = segment->voxels,
            .millilitres = segment->millilitres,
            .mean = measures->mean,
            .minimum = measures->minimum,
            .maximum = measures->maximum,
            .first_column = measures->first[0],
            .first_row = measures->first[1],
            .first_slice = measures->first[2],
            .last_column = measures->last[0],
            .last_row = measures->last[1],
            .last_slice = measures->last[2],
            .x = measures->centroid[0],
            .y = measures->centroid[1],
            .z = measures->centroid[2],
            .tracking_uid = segment->object.changed ? "" : segment->object.tracking_uid,
            .prior = segment->prior,
        };
        if (segment->number > 0)
            message_add_segment(writer, &row);
    }
}

static void
report_write_breaches(struct proto_writer *writer, int64_t job, const struct pipeline_report *report)
{
    message_write_breaches(writer, &(struct message_breaches){.job = job});
    for (size_t i = 0; i < report->breaches.count; i++) {
        const struct expect_breach *breach = &report->breaches.at[i];
        const struct pipeline_segment *segment = &report->segments[breach->segment];
        const struct message_breach row = {
            .number = segment->number,
            .label = segment->label,
            .expectation = breach->expectation,
            .found = breach->bounded ? breach->found : NAN,
            .low = breach->bounded ? breach->allowed[0] : NAN,
            .high = breach->bounded ? breach->allowed[1] : NAN,
            .text = breach->text,
        };
        message_add_breach(writer, &row);
    }
}

/* Writes the measurements before DONE, which ends them. */
static bool
report_write_measurements(int64_t job, const struct pipeline_report *report,
                          bool (*take)(void *context, struct proto_writer *frame), void *context)
{
    const struct feature_set *set = &report->features;
    struct proto_writer frame;
    report_write_segments(&frame, job, report);
    bool more = take(context, &frame);
    if (more && report->breaches.count > 0) {
        report_write_breaches(&frame, job, report);
        more = take(context, &frame);
    }
    for (size_t at = 0; at < set->count && more; at += FEATURES_PER_FRAME) {
        const size_t left = set->count - at;
        report_write_features(&frame, job, set->items + at, left < FEATURES_PER_FRAME ? left : FEATURES_PER_FRAME);
        more = take(context, &frame);
    }
    for (size_t i = 0; i < set->histogram_count && more; i++) {
        report_write_histogram(&frame, job, &set->histograms[i]);
        more = take(context, &frame);
    }
    crash_point("worker_after_features_before_done");
    return more;
}

void
report_write(int64_t job, const struct pipeline_report *report, bool (*take)(void *context, struct proto_writer *frame),
             void *context)
{
    struct proto_writer frame;
    if (report->verdict == PROTO_VERDICT_DONE && !report_write_measurements(job, report, take, context))
        return;
    report_write_done(&frame, job, report);
    take(context, &frame);
}
