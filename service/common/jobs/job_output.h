/*
 * job_output.h - the output folder of one job: its files appear in it all together, whole, or not at
 * all.
 *
 * A file is written under a hidden name (".<name>.part", mode 0640), synced by a thread of its own
 * while the next one is written or this one is read, and renamed when every file of the job is on
 * disk. The folder is locked (flock) while it is open, so what an earlier, killed run left under
 * hidden names can be swept away. One thread at a time, but files that output_create has returned
 * may be written and finished by different threads.
 */
#ifndef NOCTULE_SERVICE_COMMON_JOBS_JOB_OUTPUT_H
#define NOCTULE_SERVICE_COMMON_JOBS_JOB_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct output;

/*
 * Makes the folder if need be (parents too, each entry synced; its own like a file), locks it and
 * sweeps it. -EBUSY when another job is writing into it. lasts: what is published is on disk; else it is there for this
 * machine as long as it runs, for who copies it elsewhere, and nothing waits for a disk.
 */
int output_open(const char *path, bool lasts, struct output **output);

/* A new file, open for reading and writing. *fd stays the output's: the caller writes to it until
 * output_finish, or output_close where writing has failed. */
int output_create(struct output *output, const char *name, int *fd);
/* Where it lies for now; the caller frees it. NULL: no memory. */
char *output_part_path(const struct output *output, const char *name);
/* What was written to it is complete: begins to sync it, and closes it then. */
void output_finish(struct output *output, int fd);
/* Waits until the folder's entry and all files are on disk: 0, or -errno of the first one that is
 * not, -EBUSY of one that is not finished, with its name (the output's). */
int output_settle(struct output *output, const char **name);

/*
 * Settles, renames every file made into place, takes away files of earlier runs (those whose name
 * `is_result`) that this run did not make again (a SEG beside an EMPTY record would be a lie), and
 * syncs the folder. On an error none of this run's files is left.
 */
int output_publish(struct output *output, bool (*is_result)(const char *name));

/* Unlocks; what was not published is removed, and so are the folders that this run made for it. NULL
 * is allowed. */
void output_close(struct output *output);

#endif
