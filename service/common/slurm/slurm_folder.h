/*
 * slurm_folder.h - one attempt of a job that runs on another machine: a folder on a file system that
 * the daemon and the compute nodes share.
 *
 * A worker of this machine gets a job over a pipe and tells over it how the job ended. A machine that
 * is reached through a scheduler has no such pipe, so both directions are files:
 *
 *     SHARE/job-17.2.<nonce>/       attempt 2 of job 17
 *         job                       by the daemon: the job spec, as a worker of this machine gets it
 *         inputs/                   by the daemon: copies of inputs that nodes could not see else
 *         attempt                   by the daemon, last: ATTEMPT, which has the nonce, what to compute
 *                                   with, and the SHA-256 of `job` and of every file that it names
 *         void                      by the daemon: given up; what still comes of it is not looked at
 *         run-<random>/             by each step that computes it: its results
 *         manifest                  by the step that ends first: how it ended (slurm_manifest.h)
 *
 * The nonce is made anew for each attempt, and the daemon commits it to its database before it hands
 * the folder to anybody. That is the fence: a scheduler may run an attempt twice, or one that was
 * given up may come back hours later, on a node whose clock is wrong. Each finds the folder of its own
 * nonce, and only what lies in the folder of the nonce that the database has now ever counts.
 *
 *     daemon                                      step (noctule run-job FOLDER)
 *     attempt_nonce_make, committed
 *     attempt_folder_make
 *     ... submits ...                             attempt_folder_open, _read, _check
 *                                                 computes; manifest_begin ... manifest_publish
 *     manifest_read: the truth                    (attempt_folder_is_void: leaves without a word)
 *     manifest_collect, committed
 *     attempt_folder_remove
 *
 * `attempt` and `manifest` are sealed files of frames (slurm_sealed.h), so there is one description of a job
 * and one of how it ended, wherever it runs. All calls block on the shared folder, perhaps for long:
 * they are a pool thread's, and one thread's for one folder. What is read of the folder is foreign: no
 * link in it is followed, sizes are limited (base/limits.def), and nothing that does not agree with
 * its digest is used.
 *
 * Failures have a code: ATTEMPT_DAMAGED, ATTEMPT_OTHER_VERSION, ATTEMPT_OTHER (it is not the attempt that
 * was looked for), ATTEMPT_FILE_DIFFERS, or that of this machine (error_set_system).
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
#define ATTEMPT_VOID       "void"
#define ATTEMPT_ROLE       "attempt" /* in HELLO of the sealed file */

struct attempt_id {
    int64_t job;
    int64_t number; /* of the job's attempts, from 1 */
    char nonce[ATTEMPT_NONCE_SIZE];
};

/* A nonce that nobody can guess and that never comes again. 0 or -errno. */
int attempt_nonce_make(char nonce[ATTEMPT_NONCE_SIZE]);
/* The folder's name, "job-17.2.<nonce>"; and back, false for another name: it is not ours. */
void attempt_name_write(const struct attempt_id *id, char name[ATTEMPT_NAME_SIZE]);
bool attempt_name_read(const char *name, struct attempt_id *id);

/* --------------------------------------------------------------------------- the daemon's -- */

/* What a step is to do, and with what. Borrowed. */
struct attempt_order {
    struct attempt_id id;
    const struct job_spec *spec; /* `output` stays what it is of a local job: the record tells it */
    /* Of computing, by the node's own clock; the step stops then, and says DEADLINE_EXCEEDED. */
    double deadline_seconds;
    const char *backend;  /* as compute.backend: "auto", "cpu", "cuda" */
    int threads;          /* 0: as many as the task has processors */
    int64_t memory_bytes; /* that the job may take; 0: what there is */
    /* What lies below this folder the nodes see by the same path, and read there; the rest is copied.
     * NULL: all is copied. */
    const char *shared;
};

/* Is the path below the folder that nodes see, and leads nowhere else? */
bool attempt_is_shared(const char *shared, const char *path);

/*
 * Makes the folder below `share`, with digests of all inputs: one whose digest the spec does not have is read
 * whole, and one that nodes see themselves is else not read at all. All of it is on disk
 * when it returns 0; on a failure nothing stays, as far as this may be. *stop ends it with -ECANCELED;
 * NULL: nothing does.
 */
int attempt_folder_make(const char *share, const struct attempt_order *order,
                        const atomic_bool *stop, struct error *error);
/* Says to steps that still run that it is given up: a courtesy, the nonce is the fence. 0 or -errno. */
int attempt_folder_void(const char *share, const struct attempt_id *id);
/* With all in it; 0 also when it was not there, else -errno. */
int attempt_folder_remove(const char *share, const struct attempt_id *id);

/* ----------------------------------------------------------------------------- the step's -- */

struct attempt_folder {
    char *path;
    int fd;
    struct attempt_id id; /* as its name says */
    /* Once it is read: */
    struct message_attempt told; /* its strings are in `memory` */
    struct job_spec *spec;
    struct digest *inputs; /* of spec->inputs, then of spec->objects */
    void *memory;
};

/* Opens a folder that has the name of an attempt. */
int attempt_folder_open(const char *path, struct attempt_folder **folder, struct error *error);
/* Reads what is to be done, once: `attempt` whole and of this version, its nonce and numbers those of the folder's name,
 * and `job` as it was written. Inputs are not looked at yet. */
int attempt_folder_read(struct attempt_folder *folder, struct error *error);
void attempt_folder_close(struct attempt_folder *folder);

/* Reads every input whole, in up to `threads` threads: is each as it was when the folder was made? *stop
 * ends it with -ECANCELED; NULL: nothing does. */
int attempt_folder_check(const struct attempt_folder *folder, int threads, const atomic_bool *stop,
                         struct error *error);

/* Was it given up, as far as this machine can see: voided, renamed or removed? */
bool attempt_folder_is_void(const struct attempt_folder *folder);

#endif
