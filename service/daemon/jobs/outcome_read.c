/*
 * outcome_read.c - what a worker tells of a job: DONE, and before it FEATURES and HISTOGRAM.
 * Nothing is believed that a worker in its right mind does not say; see outcome.h.
 */
#include "service/daemon/jobs/outcome_private.h"

#include "service/common/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESULT_MIN_BYTES  36u /* of one result in a DONE frame */
#define FEATURE_MIN_BYTES 116u

struct outcome_block {
    struct outcome_block *next;
    int64_t words[];
};

/* Zeroed memory that lives as long as the outcome. */
static void *
keep(struct outcome *outcome, size_t size)
{
    struct outcome_block *block = calloc(1, sizeof *block + size);
    if (!block)
        return NULL;
    block->next = outcome->blocks;
    outcome->blocks = block;
    return block->words;
}

void
outcome_free_frames(struct outcome *outcome)
{
    struct outcome_block *next;
    for (struct outcome_block *block = outcome->blocks; block; block = next) {
        next = block->next;
        free(block);
    }
}

/* -------------------------------------------------------------------------------- DONE ---- */

static void
read_figures(struct proto_reader *reader, struct queue_figures *figures)
{
    figures->read_seconds = proto_get_f64(reader);
    figures->compute_seconds = proto_get_f64(reader);
    figures->write_seconds = proto_get_f64(reader);
    figures->verify_seconds = proto_get_f64(reader);
    figures->total_seconds = proto_get_f64(reader);
    figures->voxels = proto_get_i64(reader);
    figures->segmented_voxels = proto_get_i64(reader);
    figures->peak_bytes = proto_get_i64(reader);
    figures->backend = proto_get_str(reader);
    figures->note = proto_get_str(reader);
}

static void
read_result(struct proto_reader *reader, struct outcome *outcome, size_t i)
{
    struct queue_result *result = &outcome->results[i];
    result->kind = proto_get_str(reader);
    const char *file = proto_get_str(reader);
    result->sop_class_uid = proto_get_str(reader);
    result->sop_instance_uid = proto_get_str(reader);
    result->series_uid = proto_get_str(reader);
    result->size = proto_get_i64(reader);
    result->frames = proto_get_i64(reader);
    if (!*file || strchr(file, '/'))
        reader->error = -EBADMSG;
    else if (asprintf(&outcome->paths[i], LAYOUT_OUTBOX "/%" PRId64 "/%s", outcome->job, file) < 0)
        reader->error = -ENOMEM;
    else
        result->path = outcome->paths[i];
}

static void
read_results(struct proto_reader *reader, struct outcome *outcome, size_t count)
{
    outcome->results = calloc(count + 1, sizeof *outcome->results);
    outcome->paths = calloc(count + 1, sizeof *outcome->paths);
    if (!outcome->results || !outcome->paths) {
        reader->error = -ENOMEM;
        return;
    }
    outcome->result_count = count;
    for (size_t i = 0; i < count && !reader->error; i++)
        read_result(reader, outcome, i);
}

static int
end_of_verdict(int64_t verdict, bool empty, enum outcome_end *end)
{
    switch (verdict) {
    case PROTO_VERDICT_DONE:
        *end = empty ? OUTCOME_EMPTY : OUTCOME_DONE;
        return 0;
    case PROTO_VERDICT_RETRY:
        *end = OUTCOME_RETRY;
        return 0;
    case PROTO_VERDICT_REJECT:
        *end = OUTCOME_REJECTED;
        return 0;
    case PROTO_VERDICT_STOPPED:
        *end = OUTCOME_RETURNED;
        return 0;
    default:
        return -EBADMSG;
    }
}

static void
read_done(struct proto_reader *reader, struct outcome *outcome, enum outcome_end *end)
{
    int64_t verdict = proto_get_i64(reader);
    outcome->code = proto_get_str(reader);
    outcome->sentence = proto_get_str(reader);
    outcome->file_a = proto_get_str(reader);
    outcome->file_b = proto_get_str(reader);
    bool empty = proto_get_i64(reader) != 0;
    read_figures(reader, &outcome->figures);
    int64_t count = proto_get_i64(reader);
    if (reader->error)
        return;
    if (end_of_verdict(verdict, empty, end) || count < 0 ||
        (uint64_t)count > reader->size / RESULT_MIN_BYTES || (*end == OUTCOME_DONE && count == 0))
        reader->error = -EBADMSG;
    else
        read_results(reader, outcome, (size_t)count);
}

/* The strings have to outlive the frame: they are read from a copy of it, which the outcome keeps.
 */
static int
keep_frame(struct outcome *outcome, struct proto_reader *reader, struct proto_reader *copy)
{
    *copy = *reader;
    reader->at = reader->size;
    copy->bytes = keep(outcome, copy->size);
    if (!copy->bytes)
        return -ENOMEM;
    memcpy(copy->bytes, reader->bytes, copy->size);
    return 0;
}

int
outcome_read(struct outcome *outcome, struct proto_reader *reader, enum outcome_end *end)
{
    struct proto_reader copy;
    int error = keep_frame(outcome, reader, &copy);
    if (error || outcome->forgetful)
        return -ENOMEM;
    read_done(&copy, outcome, end);
    return proto_end(&copy);
}

/* ------------------------------------------------------------------------ measurements ---- */

static int32_t
read_int32(struct proto_reader *reader)
{
    int64_t value = proto_get_i64(reader);
    if (value < 0 || value > INT32_MAX)
        reader->error = -EBADMSG;
    return (int32_t)value;
}

/* A child that makes up numbers is not to be believed anything. */
static double
read_finite(struct proto_reader *reader)
{
    double value = proto_get_f64(reader);
    if (!isfinite(value))
        reader->error = -EBADMSG;
    return value;
}

static void
read_feature(struct proto_reader *reader, struct queue_feature *feature)
{
    feature->segment = read_int32(reader);
    feature->label = proto_get_str(reader);
    feature->family = proto_get_str(reader);
    feature->name = proto_get_str(reader);
    feature->meaning = proto_get_str(reader);
    feature->ibsi_code = proto_get_str(reader);
    feature->value = read_finite(reader);
    feature->reason = proto_get_str(reader);
    feature->unit = proto_get_str(reader);
    feature->aggregation = proto_get_str(reader);
    feature->aggregation_ibsi_code = proto_get_str(reader);
    feature->discretisation = proto_get_str(reader);
    feature->levels = read_int32(reader);
    feature->bin_width = read_finite(reader);
    feature->distance = read_int32(reader);
    feature->symmetric = proto_get_i64(reader) != 0;
    feature->has_range = proto_get_i64(reader) != 0;
    feature->range[0] = read_finite(reader);
    feature->range[1] = read_finite(reader);
    feature->directions = proto_get_str(reader);
    if (!*feature->name || feature->bin_width < 0 || feature->range[0] > feature->range[1])
        reader->error = -EBADMSG;
}

/* After the job's number. */
static int
read_features(struct proto_reader *reader, struct outcome *outcome)
{
    int64_t count = proto_get_i64(reader);
    if (reader->error || count < 0 || (uint64_t)count > reader->size / FEATURE_MIN_BYTES ||
        (uint64_t)count > PROTO_MAX_FEATURES - outcome->feature_count)
        return -EBADMSG;
    size_t wanted = outcome->feature_count + (size_t)count;
    struct queue_feature *grown = realloc(outcome->features, (wanted + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    outcome->features = grown;
    for (; outcome->feature_count < wanted && !reader->error; outcome->feature_count++)
        read_feature(reader, &grown[outcome->feature_count]);
    return proto_end(reader);
}

static void
read_counts(struct proto_reader *reader, int64_t *counts)
{
    if (proto_get_i64(reader) != PROTO_CODES)
        reader->error = -EBADMSG;
    for (int i = 0; i < PROTO_CODES && !reader->error; i++) {
        counts[i] = proto_get_i64(reader);
        if (counts[i] < 0)
            reader->error = -EBADMSG;
    }
}

static int
read_histogram(struct proto_reader *reader, struct outcome *outcome)
{
    if (outcome->histogram_count == PROTO_MAX_HISTOGRAMS)
        return -EBADMSG;
    struct queue_histogram *grown =
        realloc(outcome->histograms, (outcome->histogram_count + 1) * sizeof *grown);
    if (grown)
        outcome->histograms = grown;
    int64_t *counts = keep(outcome, PROTO_CODES * sizeof *counts);
    if (!grown || !counts)
        return -ENOMEM;
    struct queue_histogram *histogram = &grown[outcome->histogram_count++];
    histogram->counts = counts;
    histogram->segment = read_int32(reader);
    histogram->label = proto_get_str(reader);
    histogram->pattern = proto_get_str(reader);
    histogram->settings = proto_get_str(reader);
    read_counts(reader, counts);
    return *histogram->pattern ? proto_end(reader) : -EBADMSG;
}

int
outcome_read_measurements(struct outcome *outcome, struct proto_reader *reader)
{
    struct proto_reader copy;
    if (reader->size > PROTO_MAX_MEASUREMENTS - outcome->measurement_bytes)
        return -EBADMSG;
    outcome->measurement_bytes += reader->size;
    int error = keep_frame(outcome, reader, &copy);
    if (!error)
        error = reader->type == PROTO_FEATURES ? read_features(&copy, outcome)
                                               : read_histogram(&copy, outcome);
    if (error != -ENOMEM)
        return error;
    outcome->forgetful = true;
    return 0;
}
