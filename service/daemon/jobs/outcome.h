/*
 * outcome.h - how jobs ended, from the worker's word (or its death) to the row in the database.
 *
 * An outcome is made when its job is started, so that there is always room to note the end. Once
 * ended it is recorded in the batch in which that happened; when the batch cannot be committed it
 * stays and is recorded when the database can be written again. So no result is lost to a full
 * disk.
 *
 *     ended as       recorded as
 *     DONE           DONE with its results and features
 *     EMPTY          EMPTY with its features
 *     RETRY          DELAYED, after the last attempt FAILED
 *     REJECTED       FAILED
 *     CRASHED        DELAYED and alone from now on, after the last attempt FAILED
 *     RETURNED       READY, the attempt not counted
 *     CANCELLED      nothing: the row says so already; the output is removed
 */
#ifndef NOCTULE_OUTCOME_H
#define NOCTULE_OUTCOME_H

#include "service/common/messages.h"
#include "service/daemon/core.h"

enum outcome_end {
    OUTCOME_DONE,
    OUTCOME_EMPTY,
    OUTCOME_RETRY,
    OUTCOME_REJECTED,
    OUTCOME_CRASHED,
    OUTCOME_RETURNED,
    OUTCOME_CANCELLED,
};

const char *outcome_end_name(enum outcome_end end);

struct outcomes;
struct outcome;

int outcomes_open(struct core *core, struct outcomes **outcomes);
void outcomes_close(struct outcomes *outcomes);

/* For a job that is being started; NULL: no memory. It is the caller's until outcome_end. */
struct outcome *outcome_new(struct outcomes *outcomes, int64_t job, int32_t attempts);
void outcome_free(struct outcome *outcome);
int64_t outcome_job(const struct outcome *outcome);
/* What the worker gave as the reason; "": none. */
const char *outcome_code(const struct outcome *outcome);
int32_t outcome_attempts(const struct outcome *outcome);

/*
 * Fills the outcome from a DONE that was read: 0 and how it ended, -EBADMSG for what cannot be,
 * -ENOMEM.
 */
int outcome_read(struct outcome *outcome, struct proto_reader *reader, struct message_done *told,
                 enum outcome_end *end);
/*
 * Keep what a FEATURES or HISTOGRAM tells until the job has ended: recorded with DONE and EMPTY,
 * forgotten otherwise. 0, or -EBADMSG for what cannot be or is one too many. What finds no memory
 * makes outcome_read say -ENOMEM.
 */
int outcome_read_features(struct outcome *outcome, struct proto_reader *reader,
                          struct message_features *told);
int outcome_read_histogram(struct outcome *outcome, struct proto_reader *reader,
                           struct message_histogram *told);
/* The daemon's own word for it instead. */
void outcome_blame(struct outcome *outcome, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * It ended so: kept until it is recorded. last_chance: with all attempts used up it fails; false
 * for a job that may have died of another's fault, which gets one more attempt, alone.
 */
void outcome_end(struct outcome *outcome, enum outcome_end end, bool last_chance);

/* Writes what has ended and is not recorded yet; at the end of a batch. */
void outcomes_record(struct outcomes *outcomes);
/* Is the end of this job still to be recorded, or its leftovers to be swept? */
bool outcomes_hold(const struct outcomes *outcomes, int64_t job);
size_t outcomes_count(const struct outcomes *outcomes);

#endif
