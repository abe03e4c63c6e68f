/*
 * program_masks.h - makes the masks of a job in the command that runs the job: noctule run, and noctule run-job on a node.
 * The daemon has a role for it (service/program).
 */
#ifndef NOCTULE_SERVICE_CLI_PROGRAM_MASKS_H
#define NOCTULE_SERVICE_CLI_PROGRAM_MASKS_H

#include "kernels/gpu.h"
#include "service/common/jobs/job_file.h"
#include "service/common/program/broker.h"
#include "service/common/wire/messages.h"

/* Files in the folder of a program below mask_maker.folder. */
#define MASKS_MASK    "mask"
#define MASKS_OUTPUT  "output.txt"
#define MASKS_OUTCOME "outcome"

struct progress;

struct mask_maker {
    struct broker *broker;
    const char *folder;        /* absolute; the caller removes it after the end of the broker */
    char gpu[KERNELS_UUID];    /* UUID or index of the GPU for programs that need one; "": none */
    int threads;               /* of the steps that read and write volumes */
    const atomic_bool *stop;   /* ends a program early */
    struct progress *progress; /* NULL: not shown */
    int64_t runs;              /* begun so far */
};

/*
 * Runs the programs of those masks of the job that have no path yet (NULL or ""), and sets their path, digest and
 * identity. A mask with an identity accepts no other one. A program without GPU memory runs once more with the whole GPU,
 * and then with its cpu_command. Prints the end of the output of a program that fails on standard error. Returns 0,
 * -ECANCELED after `stop`, or another -errno with the code in the error.
 */
int masks_make(struct mask_maker *maker, struct job_spec *spec, struct error *error);

/* Returns the outcome of a job without masks, after masks_make() has failed. */
enum proto_verdict masks_verdict(int rc, const struct error *error);

/* Copies the masks of a job into the folder of its results, as NAME.mask. Of masks that masks_make() has made it also copies
 * NAME.outcome and NAME.output.txt if `with_outcome`, and leaves other masks out. Durable unless `with_outcome`. Returns
 * 0, or -errno with the error filled. */
int masks_keep(const struct mask_maker *maker, const struct job_spec *spec, const char *folder, bool with_outcome,
               struct error *error);

/* Removes the masks of a job that masks_make() has made, so that it makes those of the next job. Warm programs stay. */
void masks_forget(const struct mask_maker *maker, struct job_mask *masks, size_t count);

#endif
