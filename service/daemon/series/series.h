/*
 * series.h - received series, from the receiver's reports to the outcome of their inspection.
 *
 * series.c decides when a series is complete, with evidence. Pure: no I/O, no clock. Silence alone is weak evidence, so
 * the wait depends on the announced number of instances: short if all have arrived, long while some are missing,
 * quiet_seconds if no number was announced, and zero if an operator declares the series complete.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_SERIES_H
#define NOCTULE_SERVICE_DAEMON_SERIES_SERIES_H

#include "config/config.h"
#include "db/queue.h"
#include "service/common/routing/routing_rules.h"
#include "service/common/wire/proto.h"
#include "service/daemon/core.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIES_EVIDENCE 1024

struct series_decision {
    bool settle;
    int64_t due_ms;                 /* time of the next check, unless settle is set */
    char evidence[SERIES_EVIDENCE]; /* for settle */
};

/* Decides from the times. listening_since_ms is the time since which the receiver can report arrivals (running and not
 * paused). Silence before it proves no completeness. */
void series_decide(const struct queue_series *series, const struct conf_series *timers, int64_t listening_since_ms,
                   int64_t now_ms, struct series_decision *decision);

/* Appends the findings of the inspection, such as "; 1 stack: 30 planes of 512 x 512, 5 mm apart". */
void series_add_geometry(char evidence[SERIES_EVIDENCE], const struct queue_stack *stacks, size_t count);

/* Appends a text, cut at the end of the evidence. */
void series_add_evidence(char evidence[SERIES_EVIDENCE], const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the series without its stacks, as the input of rules. Borrows the strings of both
 * arguments. */
struct rules_series routing_subject(const struct conf *conf, const struct queue_series *series);

/* -------------------------------------------------------------------------------- audit.c ---- */

struct audit;

/* Starts the check. Returns 0 or -errno. The caller must stop *audit. */
int audit_start(struct core *core, struct audit **audit);
/* Ends the check early and frees it asynchronously. NULL is allowed. */
void audit_stop(struct audit *audit);

/* ----------------------------------------------------------------------------- arrivals.c ---- */

/* Events of the receiver's slot. An unknown frame sets the reader's error. */
void arrivals_receiver_ready(struct core *core);
void arrivals_receiver_gone(struct core *core, const struct pool_gone *gone);
void arrivals_frame(struct core *core, struct proto_reader *reader);

/* Sends PAUSE or RESUME to the receiver if reception must stop or may continue. */
void arrivals_pause_or_resume(struct core *core, const char *why);

/* ------------------------------------------------------------------------------- settle.c ---- */

/* Settles the series in the open batch and appends to `evidence` (SERIES_EVIDENCE bytes). `facts` (NULL: unknown) has
 * one entry per stack. Rejects accepted stacks if the series lacks instances, which the inspection cannot see. Returns
 * 0, -EAGAIN if the series is no longer being received, or another -errno. On an error the caller must abort the batch:
 * otherwise a settled series without jobs would be forgotten. */
int settle_series(struct core *core, const struct queue_series *series, char *evidence, struct queue_stack *stacks,
                  const struct rules_facts *facts, size_t count);

/* ------------------------------------------------------------------- quarantine_release.c ---- */

/* Links file `id` into released/, where the receiver imports it again. Must be called in the open batch. Returns 0, or
 * -errno with the reason in queue_reason(). */
int quarantine_release_link(struct core *core, int64_t id, const char *by);

/* The origin of a file that came from released/, as of its first arrival. */
struct released {
    int64_t id;   /* 0: not a released file */
    char *source; /* "scu:CT1", "inbox:/srv/inbox" */
    char *sender; /* calling AE title; "" */
    char *called_ae;
};

/* Reads the origin by the source or original path that the receiver reports. The caller must call
 * quarantine_release_clear(). */
int quarantine_release_find(struct core *core, const char *source, struct released *released);
void quarantine_release_clear(struct released *released);

#endif
