/*
 * spool.h - the daemon's side of the folders below the root (layout.h): making them, claiming them,
 * sweeping what killed processes left half-done. All calls block shortly; 0 or -errno.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SPOOL_H
#define NOCTULE_SERVICE_DAEMON_SPOOL_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* The root and every folder in it; -errno with a message. */
int spool_make(const char *root, struct error *error);

/* Claims the root for this process until spool_unlock; -EBUSY when another daemon has it. Locks its lock file, and the folder
 * itself, since a lock file may be deleted. */
int spool_lock(const char *root, int fds[2], struct error *error);
void spool_unlock(const int fds[2]);

/* Removes *.part from incoming/: only while no intake lives. */
void spool_sweep_incoming(const char *root);

/*
 * What a job left that ended without results: *.part in its output folder, and the folder if it is
 * empty then; its job file. Also called at start for every job file found.
 */
void spool_sweep_job(const char *root, int64_t job);
void spool_sweep_jobs(const char *root);
/* The output of a job that was cancelled while it ran: nothing of it is recorded anywhere. */
void spool_remove_output(const char *root, int64_t job);

/* "<root>/jobs/17.job", "<root>/outbox/17"; malloc'd, NULL when there is no memory. */
char *spool_job_file(const char *root, int64_t job);
char *spool_output_folder(const char *root, int64_t job);

/* Free space for this user on the root's file system. */
int spool_free_mib(const char *root, double *free_mib);

#endif
