/*
 * caller_counts.h - count rejected callers until the daemon records them.
 *
 * At most CALLERS_MAX different callers are kept between two reports, and at most one report is
 * sent per second. A flood of connections thus costs the daemon little. callers_note is
 * thread-safe. Reports must be written on the loop's thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_NET_CALLER_COUNTS_H
#define NOCTULE_SERVICE_RECEIVER_NET_CALLER_COUNTS_H

#include "service/common/admission.h"
#include "service/common/wire/messages.h"

#define CALLERS_MAX 64

struct callers;

struct callers *callers_new(void); /* Returns NULL if memory is short */
void callers_free(struct callers *callers);

/* Counts the caller. Returns false if the verdict is not recorded (ADMISSION_BUSY is transient). */
bool callers_note(struct callers *callers, enum admission_verdict verdict, const struct admission_caller *caller);

/* Writes CALLERS with all callers noted since the last report. Returns false if no caller was noted or the last report
 * is younger than a second. *wait_ms is then the time to wait before the next call; 0 if no caller was noted. */
bool callers_report(struct callers *callers, int64_t now_ms, struct proto_writer *writer, int64_t *wait_ms);

#endif
