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

struct outcome_block {
    struct outcome_block *next;
    void *memory;
};

/* Takes the memory over, to live as long as the outcome. False: there is none. */
static bool
keep(struct outcome *outcome, void *memory)
{
    struct outcome_block *block = memory ? malloc(sizeof *block) : NULL;
    if (!block) {
        free(memory);
        return false;
    }
    *block = (struct outcome_block){.next = outcome->blocks, .memory = memory};
    outcome->blocks = block;
    return true;
}

void
outcome_free_frames(struct outcome *outcome)
{
    struct outcome_block *next;
    for (struct outcome_block *block = outcome->blocks; block; block = next) {
        next = block->next;
        free(block->memory);
        free(block);
    }
}

/* -------------------------------------------------------------------------------- DONE ---- */

static struct queue_figures
figures_of(const struct message_done *told)
{
    return (struct queue_figures){
        .read_seconds = told->read_seconds,
        .compute_seconds = told->compute_seconds,
        .write_seconds = told->write_seconds,
        .verify_seconds = told->verify_seconds,
        .total_seconds = told->total_seconds,
        .voxels = told->voxels,
        .segmented_voxels = told->segmented,
        .peak_bytes = told->peak_bytes,
        .backend = told->backend,
        .note = told->note,
    };
}

static int
read_result(struct outcome *outcome, size_t i, const struct message_result *told)
{
    if (!*told->file || strchr(told->file, '/'))
        return -EBADMSG;
    if (asprintf(&outcome->paths[i], LAYOUT_OUTBOX "/%" PRId64 "/%s", outcome->job, told->file) < 0)
        return -ENOMEM;
    outcome->results[i] = (struct queue_result){
        .kind = told->kind,
        .path = outcome->paths[i],
        .sop_class_uid = told->sop_class,
        .sop_instance_uid = told->sop_instance,
        .series_uid = told->series,
        .size = told->size,
        .frames = told->frames,
    };
    return 0;
}

static int
read_results(struct outcome *outcome, struct proto_reader *reader)
{
    const size_t count = (size_t)reader->rows;
    struct message_result told;
    outcome->results = calloc(count + 1, sizeof *outcome->results);
    outcome->paths = calloc(count + 1, sizeof *outcome->paths);
    if (!outcome->results || !outcome->paths)
        return -ENOMEM;
    outcome->result_count = count;
    int error = 0;
    for (size_t i = 0; i < count && !error && message_next_result(reader, &told); i++)
        error = read_result(outcome, i, &told);
    return error;
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

int
outcome_read(struct outcome *outcome, struct proto_reader *reader, struct message_done *told,
             enum outcome_end *end)
{
    if (outcome->forgetful || !keep(outcome, message_keep_done(reader, told)))
        return -ENOMEM;
    if (end_of_verdict(told->verdict, told->empty != 0, end) ||
        (*end == OUTCOME_DONE && reader->rows == 0))
        return -EBADMSG;
    outcome->code = told->code;
    outcome->sentence = told->sentence;
    outcome->file_a = told->file_a;
    outcome->file_b = told->file_b;
    outcome->figures = figures_of(told);
    return read_results(outcome, reader);
}

/* ------------------------------------------------------------------------ measurements ---- */

static bool
is_int32(int64_t value)
{
    return value >= 0 && value <= INT32_MAX;
}

/* A child that makes up numbers is not to be believed anything. */
static bool
is_sound(const struct message_feature *told)
{
    return is_int32(told->segment) && is_int32(told->levels) && is_int32(told->distance) &&
           isfinite(told->value) && isfinite(told->bin_width) && told->bin_width >= 0 &&
           isfinite(told->range_low) && isfinite(told->range_high) &&
           told->range_low <= told->range_high && *told->name;
}

static struct queue_feature
feature_of(const struct message_feature *told)
{
    return (struct queue_feature){
        .segment = (int32_t)told->segment,
        .label = told->label,
        .family = told->family,
        .name = told->name,
        .meaning = told->meaning,
        .ibsi_code = told->ibsi_code,
        .value = told->value,
        .reason = told->reason,
        .unit = told->unit,
        .aggregation = told->aggregation,
        .aggregation_ibsi_code = told->aggregation_ibsi_code,
        .discretisation = told->discretisation,
        .levels = (int32_t)told->levels,
        .bin_width = told->bin_width,
        .distance = (int32_t)told->distance,
        .symmetric = told->symmetric != 0,
        .has_range = told->has_range != 0,
        .range = {told->range_low, told->range_high},
        .directions = told->directions,
    };
}

/* False: more than any pipeline asks for. */
static bool
count_bytes(struct outcome *outcome, const struct proto_reader *reader)
{
    if (reader->size > PROTO_MAX_MEASUREMENTS - outcome->measurement_bytes)
        return false;
    outcome->measurement_bytes += reader->size;
    return true;
}

/* What finds no memory is not the worker's fault: the job ends as one that has to be tried again. */
static int
forget(struct outcome *outcome)
{
    outcome->forgetful = true;
    return 0;
}

int
outcome_read_features(struct outcome *outcome, struct proto_reader *reader,
                      struct message_features *told)
{
    const size_t count = (size_t)reader->rows;
    struct message_feature feature;
    if (!count_bytes(outcome, reader) || count > PROTO_MAX_FEATURES - outcome->feature_count)
        return -EBADMSG;
    struct queue_feature *grown =
        realloc(outcome->features, (outcome->feature_count + count + 1) * sizeof *grown);
    if (grown)
        outcome->features = grown;
    if (!grown || !keep(outcome, message_keep_features(reader, told)))
        return forget(outcome);
    while (message_next_feature(reader, &feature)) {
        if (!is_sound(&feature))
            return -EBADMSG;
        grown[outcome->feature_count++] = feature_of(&feature);
    }
    return 0;
}

static int
read_counts(struct proto_reader *reader, int64_t *counts)
{
    struct message_count count;
    while (message_next_count(reader, &count)) {
        if (count.voxels < 0)
            return -EBADMSG;
        *counts++ = count.voxels;
    }
    return 0;
}

int
outcome_read_histogram(struct outcome *outcome, struct proto_reader *reader,
                       struct message_histogram *told)
{
    if (!count_bytes(outcome, reader) || outcome->histogram_count == PROTO_MAX_HISTOGRAMS ||
        reader->rows != PROTO_CODES || !is_int32(told->segment) || !*told->pattern)
        return -EBADMSG;
    struct queue_histogram *grown =
        realloc(outcome->histograms, (outcome->histogram_count + 1) * sizeof *grown);
    if (grown)
        outcome->histograms = grown;
    int64_t *counts = calloc(PROTO_CODES, sizeof *counts);
    if (!keep(outcome, counts) || !grown || !keep(outcome, message_keep_histogram(reader, told)))
        return forget(outcome);
    grown[outcome->histogram_count++] = (struct queue_histogram){.segment = (int32_t)told->segment,
                                                                 .label = told->label,
                                                                 .pattern = told->pattern,
                                                                 .settings = told->settings,
                                                                 .counts = counts};
    return read_counts(reader, counts);
}
