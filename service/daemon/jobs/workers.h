/*
 * workers.h - which workers there are, and what each computes with: one per GPU, or one for the
 * CPUs.
 *
 * The daemon does not touch the driver: a child, the probe, tells which GPUs there are. It is asked
 * at the start and at each reload.
 *
 *     backend   GPUs found            none found, or the first probe fails
 *     auto      one worker each       one worker for the CPUs
 *     cuda      one worker each       none: jobs wait, and the probe is asked again and again
 *     cpu       one worker for the CPUs; the probe is not asked
 *
 * When a later probe fails, what the one before found holds.
 *
 * Where the machine has several nodes (numa.h) a GPU's worker is bound to its node, and shares the processors there with
 * the workers of other GPUs of it; that of the CPUs runs on all.
 *
 * A GPU whose worker cannot open it, or loses it, WORKERS_GIVE_UP times in a row without a job done
 * in between is given up until the next reload (auto): the others go on without it, and when it was
 * the last its worker takes the CPUs. With cuda it is tried for ever.
 *
 * Workers are numbered from 0; what runs in them is jobs.c's. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_WORKERS_H
#define NOCTULE_SERVICE_DAEMON_JOBS_WORKERS_H

#include "service/daemon/core.h"
#include "service/daemon/jobs/devices.h"

#define WORKERS_MAX     DEVICES_MAX
#define WORKERS_GIVE_UP 5

struct workers;

int workers_open(struct core *core, struct workers **workers);
/* NULL is allowed. */
void workers_close(struct workers *workers);

/* The pool is open: the first workers. 0 or -errno. */
int workers_start(struct workers *workers);
/* core->conf is another: tells those that stay, replaces and adds where what they compute with
 * changed. */
void workers_reload(struct workers *workers);
/* Now and then: a probe that does not answer, or has to be asked again. */
void workers_tick(struct workers *workers);

/* Numbers run to workers_count - 1; some may be without a child. */
size_t workers_count(const struct workers *workers);
int workers_slot(const struct workers *workers, size_t number);
/* It may be given jobs. */
bool workers_usable(const struct workers *workers, size_t number);
/* The number of the worker in this slot, or -1; and is it the probe's slot? */
int workers_find(const struct workers *workers, int slot);
bool workers_is_probe(const struct workers *workers, int slot);

/* What happens in a worker's slot, after jobs.c has seen to its jobs. */
void workers_ready(struct workers *workers, size_t number);
void workers_gone(struct workers *workers, size_t number, const struct pool_gone *gone);
/* It has told that its device is lost. */
void workers_device_lost(struct workers *workers, size_t number, const char *why);
/* A job of it ended well: its device is sound. */
void workers_proven(struct workers *workers, size_t number);

/* What happens in the probe's. An unknown frame is latched as an error in the reader. */
void workers_probe_frame(struct workers *workers, struct proto_reader *reader);
void workers_probe_gone(struct workers *workers, const struct pool_gone *gone);

/* Why no job can run; "" when one can, as far as is known. */
const char *workers_trouble(const struct workers *workers);
/* Unix milliseconds; 0: none. */
int64_t workers_trouble_since(const struct workers *workers);

#endif
