/*
 * series.h - decides when a series is complete, with evidence. Pure: no I/O, no clock.
 *
 * Silence alone is weak evidence, so the wait depends on the announced number of instances: short
 * if all have arrived, long while some are missing, quiet_seconds if no number was announced, and
 * zero if an operator declares the series complete.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_SERIES_H
#define NOCTULE_SERVICE_DAEMON_SERIES_SERIES_H

#include "config/config.h"
#include "db/queue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIES_EVIDENCE 1024

struct series_decision {
    bool settle;
    int64_t due_ms;                 /* time of the next check, unless settle is set */
    char evidence[SERIES_EVIDENCE]; /* for settle */
};

/*
 * Decides from the times. listening_since_ms is the time since which the receiver can report
 * arrivals (running and not paused). Silence before it proves no completeness.
 */
void series_decide(const struct queue_series *series, const struct conf_series *timers,
                   int64_t listening_since_ms, int64_t now_ms, struct series_decision *decision);

/* Appends the inspection's findings: "; 1 stack: 30 planes of 512 x 512, 5 mm apart", "; 2 stacks
 * by Echo Time (0018,0081): ...; 3 images passed over (LOCALIZER); 3 of 16 temporal positions". */
void series_add_geometry(char evidence[SERIES_EVIDENCE], const struct queue_stack *stacks,
                         size_t count);

/* Appends a text, cut at the end of the evidence. */
void series_add_evidence(char evidence[SERIES_EVIDENCE], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
