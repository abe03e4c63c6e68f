/* outcome_private.h - for outcome.c (what becomes of it) and outcome_read.c (what is told). */
#ifndef NOCTULE_OUTCOME_PRIVATE_H
#define NOCTULE_OUTCOME_PRIVATE_H

#include "service/daemon/jobs/outcome.h"

#define OUTCOME_SENTENCE 256

struct outcome {
    struct outcome *next;
    struct outcomes *outcomes;
    int64_t job;
    int32_t attempts;
    enum outcome_end end;
    bool last_chance;
    bool in_batch; /* written, not committed */
    bool moot;     /* in this batch: the row was no longer RUNNING */
    const char *code, *sentence, *file_a, *file_b;
    char own_sentence[OUTCOME_SENTENCE];
    struct queue_figures figures;
    struct queue_result *results;
    char **paths; /* of the results; NULL from the first that could not be made */
    size_t result_count;
    /* As they came, frame by frame; they count when it ends as DONE or EMPTY. */
    struct queue_feature *features;
    size_t feature_count;
    struct queue_histogram *histograms;
    size_t histogram_count;
    size_t measurement_bytes;     /* of their frames */
    bool forgetful;               /* some of them found no memory */
    struct outcome_block *blocks; /* frames of the worker, that all strings above point into */
};

/* What outcome_read and outcome_read_features have kept. */
void outcome_free_frames(struct outcome *outcome);

#endif
