/*
 * run_programs.h - the programs of the site that the pipeline of noctule run names: they run once per stack, or their
 * masks are given by --mask.
 */
#ifndef NOCTULE_SERVICE_CLI_RUN_PROGRAMS_H
#define NOCTULE_SERVICE_CLI_RUN_PROGRAMS_H

#include "service/cli/line/line.h"
#include "service/cli/program_masks.h"
#include "service/cli/scratch.h"

struct run_programs {
    struct mask_maker maker; /* its broker is NULL if no program runs */
    struct scratch scratch;
    const struct conf_program **of; /* the programs, borrowed */
    struct job_mask *masks;         /* of the programs; those of --mask have a path from the start */
    size_t count;
};

/* Starts the process that runs programs, and reads the masks of --mask ("NAME=FILE"). Must be called before other threads
 * exist and before the command is confined. Returns EXIT_OK, or another exit code after an error message. The caller must
 * call run_programs_close() in either case. */
int run_programs_open(struct run_programs *programs, const struct conf *conf, const struct conf_pipeline *pipeline,
                      const struct cli_texts *given);
/* Chooses the GPU of programs that need one. Must be called after the device is open and before calls are filtered. */
void run_programs_find_gpu(struct run_programs *programs, const struct conf_compute *compute);
void run_programs_close(struct run_programs *programs);

#endif
