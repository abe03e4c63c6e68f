/*
 * workers.h - the workers and their compute devices: one per GPU, or one for the CPUs.
 *
 * The daemon must not touch the driver: a child process, the probe, reports the GPUs. It runs at the start and at each
 * reload.
 *
 *     backend   GPUs found            no GPU found, or the first probe fails
 *     auto      one worker each       one worker for the CPUs
 *     cuda      one worker each       no worker: jobs wait, and the probe is repeated
 *     cpu       one worker for the CPUs, without a probe
 *
 * If a later probe fails, the GPUs of the last successful one stay in use.
 *
 * A GPU that its worker cannot open, or loses, WORKERS_MAX_FAILURES times in a row without a finished job is not used
 * until the next reload (auto). If it was the last GPU, its worker uses the CPUs. With cuda it is retried forever.
 *
 * Workers are numbered from 0. jobs.c handles their jobs. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_WORKERS_H
#define NOCTULE_SERVICE_DAEMON_JOBS_WORKERS_H

#include "service/daemon/core.h"
#include "service/daemon/jobs/devices.h"

#define WORKERS_MAX          DEVICES_MAX
#define WORKERS_MAX_FAILURES 5

struct workers;

int workers_open(struct core *core, struct workers **workers);
/* NULL is allowed. */
void workers_close(struct workers *workers);

/* Starts the first workers. Must be called after the pool is open. Returns 0 or -errno. */
int workers_start(struct workers *workers);
/* Follows a change of core->conf: reloads workers that stay, and replaces or adds workers for
 * changed devices. */
void workers_reload(struct workers *workers);
/* Checks for a hung probe, or one to repeat, now and then. */
void workers_tick(struct workers *workers);

/* Returns the number of workers. Some may have no child. */
size_t workers_count(const struct workers *workers);
int workers_slot(const struct workers *workers, size_t number);
/* Returns whether the worker may get jobs. */
bool workers_usable(const struct workers *workers, size_t number);
/* Sets the UUID and the memory of the worker's GPU. Returns 0, -ENODEV for the CPU, or -EAGAIN if it has no device. */
int workers_device(const struct workers *workers, size_t number, char uuid[KERNELS_UUID], int64_t *memory_bytes);

/* Returns whether the worker is usable, and has had the time to get jobs since its start. */
bool workers_may_lend(const struct workers *workers, size_t number);
/* Gives the GPU of a usable worker to a program: the worker ends its jobs, then itself, and is not replaced until
 * workers_return(). */
void workers_lend(struct workers *workers, size_t number);
/* Returns whether a worker that was lent has ended. */
bool workers_lent(const struct workers *workers, size_t number);
void workers_return(struct workers *workers, size_t number);

/* Return the number of the worker in this slot, or -1; and whether it is the probe's slot. */
int workers_find(const struct workers *workers, int slot);
bool workers_is_probe(const struct workers *workers, int slot);

/* Events of a worker's slot. Must be called after jobs.c has handled its jobs. */
void workers_ready(struct workers *workers, size_t number);
void workers_gone(struct workers *workers, size_t number, const struct pool_gone *gone);
/* Handles a worker's report that its device is lost. */
void workers_device_lost(struct workers *workers, size_t number, const char *why);
/* Handles a successful job of the worker: its device works. */
void workers_proven(struct workers *workers, size_t number);

/* Events of the probe's slot. An unknown frame sets the reader's error. */
void workers_probe_frame(struct workers *workers, struct proto_reader *reader);
void workers_probe_gone(struct workers *workers, const struct pool_gone *gone);

/* Returns the reason why no job can run, and its start in Unix milliseconds; "" if jobs can run as far as is known. */
const char *workers_problem(const struct workers *workers, int64_t *since_ms);

#endif
