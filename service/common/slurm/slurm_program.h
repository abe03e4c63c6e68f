/*
 * slurm_program.h - run a program of the site to its end: without a shell, with a deadline and limited output.
 *
 * Blocks; must not run in the thread of an event loop. The program has no standard input. From this
 * process's environment it inherits only the variables that Slurm's commands need: the search path,
 * the user, the locale, and those of Slurm.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLURM_SLURM_PROGRAM_H
#define NOCTULE_SERVICE_COMMON_SLURM_SLURM_PROGRAM_H

#include "base/error.h"

#include <stddef.h>

struct program_output {
    char *text; /* standard output, NUL-terminated; the caller must free it */
    size_t size;
    char words[512]; /* standard error in one line; "": empty */
    int status;      /* exit status, or 128 plus the signal that ended the program */
};

/*
 * Runs a program. `arguments` is a NULL-terminated argv; the program is searched in PATH.
 *
 * Returns 0 if it ran to its end, with any exit status. Returns -ENOENT or -EACCES if the program cannot be executed.
 * Returns -ETIMEDOUT if it ran longer than `seconds`; it was then killed with all processes that it started. Returns
 * -EFBIG if its output is too long. On an error there is no text, and `error` has the reason.
 */
int program_run(const char *const arguments[], double seconds, struct program_output *output, struct error *error);

#endif
