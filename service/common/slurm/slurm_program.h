/*
 * slurm_program.h - a program of the site, run to its end: no shell, a deadline, and an end to what it may say.
 *
 * Blocks; any thread that is no loop's. The program gets no standard input, and of this process's
 * environment what Slurm's commands need: where programs are, whose they are, and what is named for
 * Slurm.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLURM_SLURM_PROGRAM_H
#define NOCTULE_SERVICE_COMMON_SLURM_SLURM_PROGRAM_H

#include "base/error.h"

#include <stddef.h>

struct program_output {
    char *text; /* what it wrote, ended by NUL; the caller frees it */
    size_t size;
    char words[512]; /* what it complained of, in one line; "": nothing */
    int status;      /* that it exited with; 128 + the signal that ended it */
};

/*
 * arguments: argv, ended by NULL, the program looked for in PATH. 0 when it was run to its end, well or
 * not; -ENOENT, -EACCES when there is no such program; -ETIMEDOUT when it took longer than `seconds`, and was
 * killed with all that it had started; -EFBIG when it wrote more than is read. Then there is no text, and
 * the error says what happened.
 */
int program_run(const char *const arguments[], double seconds, struct program_output *output,
                struct error *error);

#endif
