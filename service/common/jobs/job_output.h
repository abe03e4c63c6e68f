/*
 * job_output.h - the output folder of one job. Its files appear together and complete, or not at all.
 *
 * A file is written under a hidden name (".<name>.part", mode 0640). A thread of its own syncs it while the next file
 * is written or this one is read. It is renamed once all files of the job are on disk. The folder is locked with flock
 * while it is open, so hidden files of an earlier, killed run can be removed.
 *
 * Calls must come from one thread at a time. Files that output_create has returned may be written
 * and finished by different threads.
 */
#ifndef NOCTULE_SERVICE_COMMON_JOBS_JOB_OUTPUT_H
#define NOCTULE_SERVICE_COMMON_JOBS_JOB_OUTPUT_H

#include <stdbool.h>

struct output;

/*
 * Creates the folder and its parents if needed (each entry is synced), locks it, and removes hidden
 * files of killed runs. Returns 0, -EBUSY if another job writes into it, or another -errno.
 *
 * If `durable`, published files are on disk. Otherwise they stay available while this machine runs,
 * for a caller that copies them elsewhere, and no call waits for a disk.
 */
int output_open(const char *path, bool durable, struct output **output);

/* Creates a file and opens it for reading and writing. The output owns *fd. The caller may write to
 * it until output_finish, or until output_close after a write error. Returns 0 or -errno. */
int output_create(struct output *output, const char *name, int *fd);
/* Returns the file's current path, which the caller must free. Returns NULL if memory is short. */
char *output_part_path(const struct output *output, const char *name);
/* Marks a file as complete: starts its sync, then closes it. */
void output_finish(struct output *output, int fd);
/* Waits until the folder's entry and all files are on disk. Returns 0, or the -errno of the first
 * file that is not; -EBUSY if it is not finished. Sets *name to its name, which the output owns. */
int output_sync_all(struct output *output, const char **name);

/* Waits until all files are on disk and renames them to their final names. Then removes the results
 * of earlier runs (file names accepted by `is_result`; NULL: none) that this run did not create
 * again, and syncs the folder. An old SEG must not stay next to an EMPTY record. Returns 0 or
 * -errno; on an error no file of this run stays. */
int output_publish(struct output *output, bool (*is_result)(const char *name));

/* Unlocks the folder. Removes files that were not published, and folders that this run created for
 * them. NULL is allowed. */
void output_close(struct output *output);

#endif
