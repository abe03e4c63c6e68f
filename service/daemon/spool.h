/*
 * spool.h - the daemon's work on the folders below the root (layout.h): creates them, locks them, and removes
 * incomplete files of killed processes. All calls block shortly and return 0 or -errno.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SPOOL_H
#define NOCTULE_SERVICE_DAEMON_SPOOL_H

#include "base/error.h"

#include <stdint.h>

/* Creates the root and every folder in it. Returns 0, or -errno with a message. */
int spool_make(const char *root, struct error *error);

/* Locks the root for this process until spool_unlock(). Returns 0, or -EBUSY if another daemon uses it. Locks both the
 * lock file and the folder, since a lock file may be deleted. */
int spool_lock(const char *root, int fds[2], struct error *error);
void spool_unlock(const int fds[2]);

/* Removes *.part from incoming/. No receiver may be running. */
void spool_sweep_incoming(const char *root);

/* Removes the remains of a job that ended without results: *.part in its output folder, the folder if it is then empty,
 * and the job file. At start, spool_sweep_jobs() does this for every job file found. */
void spool_sweep_job(const char *root, int64_t job);
void spool_sweep_jobs(const char *root);
/* Removes the output of a job that was cancelled while it ran. No row refers to it. */
void spool_remove_output(const char *root, int64_t job);

/* Returns "<root>/jobs/17.job" or "<root>/outbox/17". The caller must free it; NULL: no memory. */
char *spool_job_file(const char *root, int64_t job);
char *spool_output_folder(const char *root, int64_t job);

/* Sets the free space for this user on the root's file system, in MiB. */
int spool_free_mib(const char *root, double *free_mib);

#endif
