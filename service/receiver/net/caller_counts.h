/*
 * caller_counts.h - callers that were rejected, counted until the daemon records them.
 *
 * At most CALLERS_MAX different ones are kept between two reports, and one report is made per second, so that a flood of
 * connections costs the daemon little. Any thread may note a caller; reports are the loop's.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_NET_CALLER_COUNTS_H
#define NOCTULE_SERVICE_RECEIVER_NET_CALLER_COUNTS_H

#include "service/common/admission.h"
#include "service/common/wire/messages.h"

#define CALLERS_MAX 64

struct callers;

struct callers *callers_new(void); /* NULL: no memory */
void callers_free(struct callers *callers);

/* Counts the caller. Returns false where its verdict is none that is recorded (ADMISSION_BUSY passes by itself). */
bool callers_note(struct callers *callers, enum admission_verdict verdict,
                  const struct admission_caller *caller);

/*
 * Writes CALLERS with all that were noted since the last report. Returns false if there are none, or if the last report is
 * younger than a second; *wait_ms is then the time to ask again, 0 if there are none.
 */
bool callers_report(struct callers *callers, int64_t now_ms, struct proto_writer *writer,
                    int64_t *wait_ms);

#endif
