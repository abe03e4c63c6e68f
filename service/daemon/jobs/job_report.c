/*
 * job_report.c - reads a worker's messages about a job: PROGRESS, and DONE with the measurements before it. Rejects
 * values that a working worker cannot send; see job_attempt.h.
 */
#include "service/daemon/jobs/job_attempt.h"

#include "base/text.h"
#include "service/common/clock.h"
#include "service/common/layout.h"
#include "service/common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job_frame {
    struct job_frame *next;
    void *memory;
};

/* Takes over the memory for the life of the attempt. Returns false if there is none. */
static bool
job_report_keep(struct job_attempt *attempt, void *memory)
{
    struct job_frame *frame = memory ? malloc(sizeof *frame) : NULL;
    if (!frame) {
        free(memory);
        return false;
    }
    *frame = (struct job_frame){.next = attempt->frames, .memory = memory};
    attempt->frames = frame;
    return true;
}

void
job_attempt_clear_report(struct job_attempt *attempt)
{
    struct job_frame *next;
    free(attempt->results);
    free(attempt->features);
    free(attempt->histograms);
    free(attempt->segments);
    free(attempt->breaches);
    for (struct job_frame *frame = attempt->frames; frame; frame = next) {
        next = frame->next;
        free(frame->memory);
        free(frame);
    }
    attempt->frames = NULL;
    attempt->results = NULL;
    attempt->features = NULL;
    attempt->histograms = NULL;
    attempt->segments = NULL;
    attempt->breaches = NULL;
    attempt->result_count = attempt->feature_count = attempt->histogram_count = 0;
    attempt->segment_count = attempt->breach_count = 0;
    attempt->measurement_bytes = 0;
    attempt->out_of_memory = false;
}

int
job_attempt_on_progress(struct job_attempt *attempt, const struct message_progress *message)
{
    const size_t length = strlen(message->stage);
    if (length == 0 || length >= sizeof attempt->stage)
        return -EBADMSG;
    log_debug("job.progress", LOG_INT("job", attempt->base.id), LOG_STR("stage", message->stage),
              LOG_NUM("fraction", message->fraction));
    if (strcmp(attempt->stage, message->stage) == 0)
        return 0;
    memcpy(attempt->stage, message->stage, length + 1);
    attempt->stage_ms = clock_unix_ms();
    attempt->stage_noted = false;
    return 0;
}

static int
job_report_read_result(struct job_attempt *attempt, size_t i, const struct message_result *message)
{
    if (!*message->file || strchr(message->file, '/'))
        return -EBADMSG;
    char *path;
    if (asprintf(&path, LAYOUT_OUTBOX "/%" PRId64 "/%s", attempt->base.id, message->file) < 0 ||
        !job_report_keep(attempt, path))
        return -ENOMEM;
    attempt->results[i] = (struct queue_result){
        .kind = message->kind,
        .path = path,
        .sop_class_uid = message->sop_class,
        .sop_instance_uid = message->sop_instance,
        .series_uid = message->series,
        .replaces = message->replaces,
        .size = message->size,
        .frames = message->frames,
    };
    return 0;
}

static int
job_report_end(const struct message_done *message, enum job_end *end)
{
    switch (message->verdict) {
    case PROTO_VERDICT_DONE:
        *end = message->review ? JOB_END_REVIEW : message->empty ? JOB_END_EMPTY : JOB_END_DONE;
        return message->review && message->code != CODE_EXPECTATION_BROKEN && message->code != CODE_CORRECTED ? -EBADMSG
                                                                                                              : 0;
    case PROTO_VERDICT_RETRY:
        *end = JOB_END_RETRY;
        return 0;
    case PROTO_VERDICT_REJECT:
        *end = JOB_END_REJECTED;
        return 0;
    case PROTO_VERDICT_STOPPED:
        *end = JOB_END_RETURNED;
        return 0;
    default:
        return -EBADMSG;
    }
}

static int
job_report_read_done(struct job_attempt *attempt, struct proto_reader *reader, struct message_done *message,
                     enum job_end *end)
{
    const size_t count = (size_t)reader->rows;
    struct message_result result;
    if (attempt->out_of_memory || !job_report_keep(attempt, message_keep_done(reader, message)))
        return -ENOMEM;
    if (job_report_end(message, end) || (*end == JOB_END_DONE && count == 0))
        return -EBADMSG;
    attempt->code = message->code;
    attempt->message = message->message;
    attempt->file_a = message->file_a;
    attempt->file_b = message->file_b;
    attempt->figures = (struct queue_figures){
        .read_seconds = message->read_seconds,
        .compute_seconds = message->compute_seconds,
        .write_seconds = message->write_seconds,
        .verify_seconds = message->verify_seconds,
        .total_seconds = message->total_seconds,
        .voxels = message->voxels,
        .segmented_voxels = message->segmented,
        .peak_bytes = message->peak_bytes,
        .backend = message->backend,
        .note = message->note,
        .voxel = {.spacing = {message->spacing_x, message->spacing_y, message->spacing_z},
                  .source_spacing = {message->source_x, message->source_y},
                  .source_steps = {message->source_step_min, message->source_step_max},
                  .straightened = message->straightened,
                  .kernel = message->kernel,
                  .kvp = message->kvp,
                  .thickness = {message->thickness_min, message->thickness_max},
                  .pixel_values = message->pixel_values,
                  .pixel_intensity = message->pixel_intensity,
                  .spacing_source = message->spacing_source},
    };
    attempt->results = calloc(count + 1, sizeof *attempt->results);
    if (!attempt->results)
        return -ENOMEM;
    attempt->result_count = count;
    int error = 0;
    for (size_t i = 0; i < count && !error && message_next_result(reader, &result); i++)
        error = job_report_read_result(attempt, i, &result);
    return error;
}

int
job_attempt_on_done(struct job_attempt *attempt, struct proto_reader *reader, struct message_done *message,
                    enum job_end *end)
{
    *end = JOB_END_RETRY;
    int rc = job_report_read_done(attempt, reader, message, end);
    if (rc != -ENOMEM)
        return rc;
    job_attempt_set_reason(attempt, CODE_OUT_OF_MEMORY, "the daemon had no memory to note how the job ended");
    *end = JOB_END_RETRY;
    return 0;
}

static bool
job_report_is_int32(int64_t value)
{
    return value >= 0 && value <= INT32_MAX;
}

/* Records that memory ran out. The worker is not at fault: the job must be retried. */
static int
job_report_no_memory(struct job_attempt *attempt)
{
    attempt->out_of_memory = true;
    return 0;
}

static int
job_report_read_features(struct job_attempt *attempt, struct proto_reader *reader, struct message_features *message)
{
    const size_t count = (size_t)reader->rows;
    struct message_feature feature;
    if (count > PROTO_MAX_FEATURES - attempt->feature_count)
        return -EBADMSG;
    struct feature *grown = realloc(attempt->features, (attempt->feature_count + count + 1) * sizeof *grown);
    if (grown)
        attempt->features = grown;
    if (!grown || !job_report_keep(attempt, message_keep_features(reader, message)))
        return job_report_no_memory(attempt);
    while (message_next_feature(reader, &feature)) {
        /* A worker that sends impossible values is not trusted. */
        if (!job_report_is_int32(feature.segment) || !isfinite(feature.value) || !*feature.name ||
            !feature_settings_are_sound(feature.settings))
            return -EBADMSG;
        grown[attempt->feature_count++] = (struct feature){
            .segment = (int32_t)feature.segment,
            .label = feature.label,
            .family = feature.family,
            .name = feature.name,
            .meaning = feature.meaning,
            .ibsi = feature.ibsi,
            .value = feature.value,
            .missing_reason = feature.missing_reason,
            .unit = feature.unit,
            .settings = feature.settings,
        };
    }
    return 0;
}

static int
job_report_read_histogram(struct job_attempt *attempt, struct proto_reader *reader, struct message_histogram *message)
{
    if (attempt->histogram_count == PROTO_MAX_HISTOGRAMS || reader->rows != PROTO_HISTOGRAM_ROWS ||
        !job_report_is_int32(message->segment) || !*message->pattern)
        return -EBADMSG;
    struct queue_histogram *grown = realloc(attempt->histograms, (attempt->histogram_count + 1) * sizeof *grown);
    if (grown)
        attempt->histograms = grown;
    int64_t *counts = calloc(PROTO_HISTOGRAM_ROWS, sizeof *counts);
    if (!job_report_keep(attempt, counts) || !grown ||
        !job_report_keep(attempt, message_keep_histogram(reader, message)))
        return job_report_no_memory(attempt);
    grown[attempt->histogram_count++] = (struct queue_histogram){.segment = (int32_t)message->segment,
                                                                 .label = message->label,
                                                                 .pattern = message->pattern,
                                                                 .settings = message->settings,
                                                                 .counts = counts};
    struct message_count count;
    while (message_next_count(reader, &count)) {
        if (count.voxels < 0)
            return -EBADMSG;
        *counts++ = count.voxels;
    }
    return 0;
}

/* Returns whether the box lies within a volume, and exists if and only if there are voxels. */
static bool
job_report_is_box(const struct queue_segment *segment)
{
    for (int axis = 0; axis < 3; axis++)
        if (segment->voxels > 0 ? segment->first[axis] < 0 || segment->last[axis] < segment->first[axis]
                                : segment->last[axis] >= segment->first[axis])
            return false;
    return true;
}

static bool
job_report_is_segment(const struct message_segment *message, const struct queue_segment *segment)
{
    return job_report_is_int32(message->number) && message->number > 0 && message->voxels >= 0 && message->prior >= 0 &&
           (!*message->tracking_uid || text_is_uid(message->tracking_uid)) &&
           (isnan(message->millilitres) || (isfinite(message->millilitres) && message->millilitres >= 0)) &&
           !isinf(message->mean) && !isinf(message->minimum) && !isinf(message->maximum) && !isinf(message->x) &&
           !isinf(message->y) && !isinf(message->z) && /* NAN: unknown */
           job_report_is_box(segment);
}

/* Reads all segments of a job, which are in one frame. */
static int
job_report_read_segments(struct job_attempt *attempt, struct proto_reader *reader, struct message_segments *message)
{
    const size_t count = (size_t)reader->rows;
    struct message_segment row;
    if (count > PROTO_MAX_SEGMENTS || attempt->segments)
        return -EBADMSG;
    attempt->segments = calloc(count + 1, sizeof *attempt->segments);
    if (!attempt->segments || !job_report_keep(attempt, message_keep_segments(reader, message)))
        return job_report_no_memory(attempt);
    while (message_next_segment(reader, &row)) {
        struct queue_segment *segment = &attempt->segments[attempt->segment_count];
        *segment = (struct queue_segment){
            .number = (int32_t)row.number,
            .label = row.label,
            .method = row.method,
            .unit = message->unit,
            .voxels = row.voxels,
            .millilitres = row.millilitres,
            .mean = row.mean,
            .minimum = row.minimum,
            .maximum = row.maximum,
            .first = {row.first_column, row.first_row, row.first_slice},
            .last = {row.last_column, row.last_row, row.last_slice},
            .centroid = {row.x, row.y, row.z},
            .tracking_uid = row.tracking_uid,
            .prior = row.prior,
        };
        if (!job_report_is_segment(&row, segment))
            return -EBADMSG;
        attempt->segment_count++;
    }
    return 0;
}

/* Reads all broken expectations of a job, which are in one frame. */
static int
job_report_read_breaches(struct job_attempt *attempt, struct proto_reader *reader, struct message_breaches *message)
{
    const size_t count = (size_t)reader->rows;
    struct message_breach row;
    if (count > PROTO_MAX_BREACHES || attempt->breaches)
        return -EBADMSG;
    attempt->breaches = calloc(count + 1, sizeof *attempt->breaches);
    if (!attempt->breaches || !job_report_keep(attempt, message_keep_breaches(reader, message)))
        return job_report_no_memory(attempt);
    while (message_next_breach(reader, &row)) {
        if (!job_report_is_int32(row.number) || !*row.expectation || isinf(row.found))
            return -EBADMSG;
        attempt->breaches[attempt->breach_count++] = (struct queue_breach){.segment = (int32_t)row.number,
                                                                           .label = row.label,
                                                                           .expectation = row.expectation,
                                                                           .found = row.found,
                                                                           .allowed = {row.low, row.high},
                                                                           .text = row.text};
    }
    return 0;
}

int
job_attempt_read_measurements(struct job_attempt *attempt, struct proto_reader *reader, union message_any *message)
{
    if (!attempt || attempt->base.id != message->features.job ||
        reader->size > PROTO_MAX_MEASUREMENTS - attempt->measurement_bytes)
        return -EBADMSG; /* the limit is above that of any pipeline */
    attempt->measurement_bytes += reader->size;
    switch ((int)reader->type) {
    case PROTO_FEATURES:
        return job_report_read_features(attempt, reader, &message->features);
    case PROTO_HISTOGRAM:
        return job_report_read_histogram(attempt, reader, &message->histogram);
    case PROTO_SEGMENTS:
        return job_report_read_segments(attempt, reader, &message->segments);
    case PROTO_BREACHES:
        return job_report_read_breaches(attempt, reader, &message->breaches);
    default:
        return -EBADMSG;
    }
}
