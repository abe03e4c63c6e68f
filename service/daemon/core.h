/*
 * core.h - what the parts of the daemon share: the loop, the queue, the pool, the turn, and what
 * the daemon as a whole is up to. Owned by daemon.c; one thread.
 */
#ifndef NOCTULE_CORE_H
#define NOCTULE_CORE_H

#include "config/config.h"
#include "db/queue.h"
#include "service/daemon/pool.h"
#include "service/daemon/turn.h"

#include <stdbool.h>
#include <uv.h>

struct arrivals;
struct deliveries;
struct jobs;
struct workers;

struct core {
    uv_loop_t loop;
    const char *root;  /* absolute */
    struct conf *conf; /* the one in force; a reload exchanges it */
    struct queue *queue;
    struct turn *turn;
    struct pool *pool;
    struct arrivals *arrivals;
    struct jobs *jobs;
    struct workers *workers;
    struct deliveries *deliveries;
    int intake, courier; /* slots; courier -1: there is none, for nothing is delivered */
    bool draining;
    bool disk_low;
    bool trouble;  /* the database cannot be written */
    bool probing;  /* trying whether it can again */
    bool auditing; /* not all files that are missing are known yet: no series is judged */
    uv_timer_t probe;
};

/* Nothing new may begin. */
bool core_closed(const struct core *core);

/* Begins or joins the turn's transaction; says so and reports the trouble when it cannot. */
bool core_change(struct core *core);

/*
 * A call of the queue failed: logs it, and when the disk or the database is to blame pauses the
 * intake and tries again later. `what` names the call: "store an instance".
 */
void core_failed(struct core *core, int error, const char *what);

/* The probe's timer: tries again what could not be written. */
void core_probe(uv_timer_t *timer);
/* A commit went well while probing: work goes on. */
void core_recovered(struct core *core);

/* An event row; losing one to a full disk is logged and no more. */
void core_note(struct core *core, const char *kind, const char *detail);

/* The same of a child that died without being told to. */
void core_note_death(struct core *core, const char *kind, const struct pool_gone *gone);

/* Is the disk or the database to blame, and not what was to be written? */
bool core_is_trouble(int error);

/* "<root>/<path>"; a path that is absolute is only copied. malloc'd; NULL: no memory. */
char *core_path(const struct core *core, const char *path);

#endif
