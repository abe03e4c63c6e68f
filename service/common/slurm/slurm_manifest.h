/*
 * slurm_manifest.h - the outcome of an attempt, written by the step that computed it: `manifest` in
 * the attempt's folder (slurm_folder.h).
 *
 * It is a sealed file (slurm_sealed.h):
 *
 *     HELLO  MANIFEST  SEGMENTS  BREACHES  FEATURES...  HISTOGRAM...  DONE  SEAL
 *
 * MANIFEST has the nonce, the node, and the name, size and SHA-256 of every file in the step's own run-<random>/. The
 * other frames are those that a local worker sends over its pipe. A step writes the manifest last, after all files that
 * it names are on disk. It is renamed into place only if there is no manifest. If two steps of one attempt end, the
 * first counts with its own complete files. The other step's files stay unnamed and are removed with the folder.
 *
 * If manifest_read accepts a manifest, the attempt has that outcome. Without a manifest the attempt has not ended,
 * whatever state the scheduler reports. DONE is that of a worker, with these additions:
 *
 *     RETRY with an ATTEMPT_ code    the folder, or a file that it names, was changed
 *     RETRY with DEADLINE_EXCEEDED   the step stopped at its deadline
 *     STOPPED with STOPPED           the step was stopped before it began this attempt
 *     STOPPED with another code      the node's device does not work; no job caused it
 *     no manifest                    the step was stopped, or ended, while it ran this attempt;
 *                                    the scheduler has the reason
 *
 * Calls block, like those of slurm_folder.h.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLURM_SLURM_MANIFEST_H
#define NOCTULE_SERVICE_COMMON_SLURM_SLURM_MANIFEST_H

#include "service/common/slurm/slurm_folder.h"
#include "service/common/slurm/slurm_sealed.h"

#include <limits.h>

#define MANIFEST_FILE "manifest"
#define MANIFEST_ROLE "manifest"
#define MANIFEST_RUN  "run-" /* prefix of a step's folder */

/* A file in the step's folder. */
struct manifest_file {
    char name[NAME_MAX + 1];
    struct digest digest;
};

/* ------------------------------------------------------------------------------ the step -- */

/* A step's own folder within the attempt's folder, and its files. */
struct manifest_run {
    char name[24]; /* "run-0123456789abcdef" */
    struct manifest_file *files;
    size_t count;
};

/* Creates the folder and copies every file of the folder `from` into it. Returns 0 when all files are on disk. After an
 * error, no file stays. Returns -ESTALE if the attempt was given up. */
int manifest_run_take(const struct slurm_folder *folder, const char *from, struct manifest_run *run,
                      struct error *error);
void manifest_run_free(struct manifest_run *run);

/* Begins a manifest for `run`; NULL: without files. The caller must then add the frames of the
 * report with sealed_add, DONE last. */
void manifest_begin(struct sealed_writer *writer, const struct slurm_folder *folder, const struct manifest_run *run,
                    const char *node, const char *device);
/* Finishes the manifest and renames it into place once it is on disk. Returns -EEXIST if another step was first; its
 * manifest stays. Returns -ESTALE if the attempt was given up. Releases the writer. */
int manifest_publish(struct sealed_writer *writer, const struct slurm_folder *folder, struct error *error);
/* Returns whether a manifest exists, valid or not. */
bool manifest_exists(const struct slurm_folder *folder);

/* ---------------------------------------------------------------------------- the daemon -- */

struct manifest {
    int folder; /* the attempt's folder, open */
    struct message_manifest head;
    struct manifest_file *files;
    size_t count;
    struct sealed sealed; /* positioned at the frames of the report */
};

/* Opens and checks the manifest of an attempt. It must be complete, of this version, and have this
 * job, attempt and nonce. Its report must be valid, and every result in its DONE must be one of its
 * files. Returns -ENOENT if there is no manifest yet, and -ESTALE with ATTEMPT_OTHER if it is of
 * another attempt. Does not read the files before manifest_collect. */
int manifest_read(const char *share, const struct slurm_attempt_id *id, struct manifest **manifest,
                  struct error *error);
/* Parses a manifest from bytes and takes ownership of them. It has no folder. For tests. */
int manifest_parse(uint8_t *bytes, size_t size, const struct slurm_attempt_id *id, struct manifest **manifest,
                   struct error *error);
/* Returns the next frame of the report (FEATURES, HISTOGRAM or, last, DONE), to be read with
 * job_attempt_read_features and similar functions. Returns false at the end. */
bool manifest_next(struct manifest *manifest, struct proto_reader *reader);
/* Copies its files into the folder `output`, which is created if it is missing. They replace the results of an earlier
 * attempt together, and are synced. Each file is digested while it is copied. Returns -EBADMSG with
 * ATTEMPT_FILE_DIFFERS if a file is missing or differs. The folder then has no file. If *stop becomes true, returns
 * -ECANCELED. `stop` may be NULL. */
int manifest_collect(const struct manifest *manifest, const char *output, const atomic_bool *stop, struct error *error);
void manifest_free(struct manifest *manifest);

#endif
