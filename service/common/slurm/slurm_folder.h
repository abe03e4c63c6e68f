/*
 * slurm_folder.h - the folder of one attempt of a job that runs on another machine, on a file
 * system that the daemon and the compute nodes share.
 *
 * A local worker receives a job and reports its result over a pipe. A machine behind a scheduler
 * has no such pipe, so both directions use files:
 *
 *     SHARE/job-17.2.<nonce>/   attempt 2 of job 17
 *         job                   by the daemon: the job spec, the same as for a local worker
 *         inputs/               by the daemon: copies of inputs that the nodes cannot read, and of masks
 *         attempt               by the daemon, last: ATTEMPT with the nonce, the resources, and the
 *                               SHA-256 of `job` and of every file that it names
 *         void                  by the daemon: the attempt was given up; later results are ignored
 *         run-<random>/         by each step that computes the attempt: its results
 *         manifest              by the step that ends first: the outcome (slurm_manifest.h)
 *
 * Each attempt has a new nonce, which the daemon must commit to its database before it submits the folder. The nonce is
 * the fence: a scheduler may run an attempt twice, or an abandoned attempt may run hours later on a node with a wrong
 * clock. Each step uses the folder of its own nonce. Only the folder whose nonce is in the database counts.
 *
 *     daemon                                      step (noctule run-job FOLDER)
 *     slurm_nonce_make, committed
 *     slurm_folder_make
 *     ... submits ...                             slurm_folder_open, _read, _check
 *                                                 computes; manifest_begin ... manifest_publish
 *     manifest_read: the outcome                  (slurm_folder_is_void: exits without a result)
 *     manifest_collect, committed
 *     slurm_folder_remove
 *
 * `attempt` and `manifest` are sealed files of frames (slurm_sealed.h). A job and its outcome thus
 * have one description for all executors. All calls block on the shared folder, possibly for long.
 * They must run in a pool thread, and a folder must be used by one thread at a time.
 *
 * The contents of the folder are untrusted. Links in it are not followed, sizes are limited
 * (base/limits.def), and data that does not match its digest is not used.
 *
 * Failures have a code: ATTEMPT_DAMAGED, ATTEMPT_OTHER_VERSION, ATTEMPT_OTHER (a different attempt
 * than expected), ATTEMPT_FILE_DIFFERS, or the code of a local error (error_set_system).
 */
#ifndef NOCTULE_SERVICE_COMMON_SLURM_SLURM_FOLDER_H
#define NOCTULE_SERVICE_COMMON_SLURM_SLURM_FOLDER_H

#include "service/common/jobs/job_file.h"
#include "service/common/slurm/slurm_digest.h"
#include "service/common/wire/messages.h"

#include <stdatomic.h>
#include <stdbool.h>

#define ATTEMPT_NONCE_SIZE 33 /* 128 bits, as hexadecimal digits */
#define ATTEMPT_NAME_SIZE  96

#define ATTEMPT_FILE       "attempt"
#define ATTEMPT_SPEC       "job"
#define ATTEMPT_INPUTS     "inputs"
#define ATTEMPT_ROLE       "attempt" /* in HELLO of the sealed file */

struct slurm_attempt_id {
    int64_t job;
    int64_t number; /* number of the job's attempt, from 1 */
    char nonce[ATTEMPT_NONCE_SIZE];
};

/* Creates a random, unique nonce. Returns 0 or -errno. */
int slurm_nonce_make(char nonce[ATTEMPT_NONCE_SIZE]);
/* Write and read the folder's name, "job-17.2.<nonce>". Reading returns false for any other name. */
void slurm_folder_name_write(const struct slurm_attempt_id *id, char name[ATTEMPT_NAME_SIZE]);
bool slurm_folder_name_read(const char *name, struct slurm_attempt_id *id);

/* Returns file `i` of a job: its inputs, its objects, and the masks that it has. Those that its programs make on the node
 * have no path. NULL: there are not so many. */
const char *slurm_folder_file(const struct job_spec *spec, size_t i);
size_t slurm_folder_files(const struct job_spec *spec);

/* ---------------------------------------------------------------------------- the daemon -- */

/* The work and resources of a step. All pointers are borrowed. */
struct slurm_attempt_order {
    struct slurm_attempt_id id;
    /* `output` is the same as for a local job, since the job record contains it. */
    const struct job_spec *spec;
    /* Limit of the computation, by the node's own clock. The step then stops with DEADLINE_EXCEEDED. */
    double deadline_seconds;
    const char *backend;  /* as compute.backend: "auto", "cpu" or "cuda" */
    int threads;          /* 0: one per processor of the task */
    int64_t memory_bytes; /* max memory of the job; 0: all available memory */
    /* Nodes can read files below this folder by the same path. Other files are copied. NULL: all are copied. */
    const char *shared;
};

/* Returns whether the path is below the folder that nodes can read, without "..". */
bool slurm_folder_is_shared(const char *shared, const char *path);

/* Creates the folder below `share`, with digests of all inputs. An input without a digest in the
 * spec is read completely. An input that nodes can read themselves and that has a digest is not
 * read. Returns 0 when all is on disk. On an error it removes the folder as far as possible. If
 * *stop becomes true, returns -ECANCELED. `stop` may be NULL. */
int slurm_folder_make(const char *share, const struct slurm_attempt_order *order, const atomic_bool *stop,
                      struct error *error);
/* Removes the folder and its contents. Returns 0, also if it does not exist, or -errno. */
int slurm_folder_remove(const char *share, const struct slurm_attempt_id *id);

/* ------------------------------------------------------------------------------ the step -- */

struct slurm_folder {
    char *path;
    int fd;
    struct slurm_attempt_id id; /* from the folder's name */
    /* Set by slurm_folder_read: */
    struct message_attempt head; /* its strings are in `memory` */
    struct job_spec *spec;
    struct digest *inputs; /* of its files (slurm_folder_file) */
    void *memory;
};

/* Opens the folder of an attempt by its name. */
int slurm_folder_open(const char *path, struct slurm_folder **folder, struct error *error);
/* Reads the work, once. Checks that `attempt` is complete and of this version, that its nonce and
 * numbers match the folder's name, and that `job` is unchanged. Does not check the inputs. */
int slurm_folder_read(struct slurm_folder *folder, struct error *error);
void slurm_folder_close(struct slurm_folder *folder);

/* Reads all inputs in at most `threads` threads and checks that each is unchanged since the folder
 * was made. If *stop becomes true, returns -ECANCELED. `stop` may be NULL. */
int slurm_folder_check(const struct slurm_folder *folder, int threads, const atomic_bool *stop, struct error *error);

/* Returns whether the attempt was given up, as far as this machine can see: voided, renamed or removed. */
bool slurm_folder_is_void(const struct slurm_folder *folder);

#endif
