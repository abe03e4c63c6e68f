/*
 * slurm_manifest.h - how an attempt ended, as the step that computed it leaves it: `manifest` in the attempt's
 * folder (slurm_folder.h).
 *
 * It is a sealed file (slurm_sealed.h):
 *
 *     HELLO  MANIFEST  SEGMENTS  BREACHES  FEATURES...  HISTOGRAM...  DONE  SEAL
 *
 * MANIFEST has the nonce, where it ran, and the name, size and SHA-256 of every file that the step left in
 * its own run-<random>/; what follows is what a worker of this machine sends over its pipe. It is the last
 * thing that a step writes, after all that it names is on disk, and gets its name only where there is none
 * yet: of two steps of one attempt the first to end is the one, with its own files, whole; the other
 * one's stay unnamed and go with the folder.
 *
 * So where there is a manifest that manifest_read accepts, the attempt has ended as it says; where there
 * is none, it has not, and no state of a scheduler says otherwise. DONE is as a worker's, and besides
 *
 *     RETRY with an ATTEMPT_ code    the folder, or what it names, is not as it was made
 *     RETRY with DEADLINE_EXCEEDED   it stopped at its deadline
 *     STOPPED with STOPPED           the step was told to end before it began this one
 *     STOPPED with another code      the node's device does not work: no job is to blame
 *     none at all                    the step was told to end, or ended, while it ran this one: why, the
 *                                    scheduler knows
 *
 * Calls block, as those of slurm_folder.h.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLURM_SLURM_MANIFEST_H
#define NOCTULE_SERVICE_COMMON_SLURM_SLURM_MANIFEST_H

#include "service/common/slurm/slurm_folder.h"
#include "service/common/slurm/slurm_sealed.h"

#include <limits.h>

#define MANIFEST_FILE "manifest"
#define MANIFEST_ROLE "manifest"
#define MANIFEST_RUN  "run-" /* begins the name of a step's folder */

/* A file that a step left: its name in the step's folder. */
struct manifest_file {
    char name[NAME_MAX + 1];
    struct digest digest;
};

/* ----------------------------------------------------------------------------- the step's -- */

/* A step's own folder in the attempt's; what it has put there. */
struct manifest_run {
    char name[24]; /* "run-0123456789abcdef" */
    struct manifest_file *files;
    size_t count;
};

/* Makes the folder, and copies every file of the folder `from` into it: all are on disk when it returns 0, none stays
 * otherwise. -ESTALE: the attempt was given up. */
int manifest_run_take(const struct attempt_folder *folder, const char *from,
                      struct manifest_run *run, struct error *error);
void manifest_run_free(struct manifest_run *run);

/* Begins a manifest for `run`, NULL: without files. The frames of the report follow, by sealed_add: DONE last. */
void manifest_begin(struct sealed_writer *writer, const struct attempt_folder *folder,
                    const struct manifest_run *run, const char *node, const char *device);
/*
 * Ends it, and gives it its name once it is on disk. -EEXIST: another step was first, and its manifest
 * stays; -ESTALE: the attempt was given up. Releases the writer.
 */
int manifest_publish(struct sealed_writer *writer, const struct attempt_folder *folder,
                     struct error *error);
/* Is there one, whatever it says? */
bool manifest_exists(const struct attempt_folder *folder);

/* --------------------------------------------------------------------------- the daemon's -- */

struct manifest {
    int folder; /* the attempt's, open */
    struct message_manifest told;
    struct manifest_file *files;
    size_t count;
    struct sealed sealed; /* at the frames of the report */
};

/*
 * The manifest of an attempt: opened anew, whole, of this version, with this job, attempt and nonce, its
 * report as a worker's, and no result in its DONE that is not among its files. -ENOENT: there is none (yet),
 * -ESTALE with ATTEMPT_OTHER: it is another attempt's. Its files are not looked at before
 * manifest_collect.
 */
int manifest_read(const char *share, const struct attempt_id *id, struct manifest **manifest,
                  struct error *error);
/* The same of the bytes of a file, which it takes over; no folder comes with it. For tests. */
int manifest_parse(uint8_t *bytes, size_t size, const struct attempt_id *id,
                   struct manifest **manifest, struct error *error);
/* The next frame of the report, for job_attempt_read_features and the like: FEATURES, HISTOGRAM or, last,
 * DONE. False: there are no more. */
bool manifest_next(struct manifest *manifest, struct proto_reader *reader);
/*
 * Copies its files into the folder `output`, which is made where it is missing: as a whole, synced, in
 * place of what results an earlier attempt left there. Each is digested while it is copied: one that is missing,
 * shorter, longer or another is ATTEMPT_FILE_DIFFERS, -EBADMSG, and none of them is in the folder then. *stop ends it
 * with -ECANCELED; NULL: nothing does.
 */
int manifest_collect(const struct manifest *manifest, const char *output, const atomic_bool *stop,
                     struct error *error);
void manifest_free(struct manifest *manifest);

#endif
