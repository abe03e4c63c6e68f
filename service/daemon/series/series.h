/*
 * series.h - when has a series come to rest, and what speaks for it? Pure: no I/O, no clock.
 *
 * Silence alone is weak evidence, so the wait depends on what is known: a short one when as many
 * instances are there as the tags announced, a long one while fewer are, the plain quiet time when
 * nothing was announced, none when an operator says so.
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
    int64_t due_ms; /* when to look again, if nothing comes before; not when settle is set */
    char evidence[SERIES_EVIDENCE]; /* of settle */
};

/*
 * listening_since_ms: since when arrivals could be heard at all (intake up and not paused); silence
 * before that proves nothing.
 */
void series_decide(const struct queue_series *series, const struct conf_series *timers,
                   int64_t listening_since_ms, int64_t now_ms, struct series_decision *decision);

/* Appends what the inspection found: "; 1 stack: 30 planes of 512 x 512, 5 mm apart", "; 2 stacks by
 * Echo Time (0018,0081): ...; 3 images passed over (LOCALIZER); 3 of 16 temporal positions". */
void series_add_geometry(char evidence[SERIES_EVIDENCE], const struct queue_stack *stacks,
                         size_t count);

/* Appends any text, cut at the end of the evidence. */
void series_add_evidence(char evidence[SERIES_EVIDENCE], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
