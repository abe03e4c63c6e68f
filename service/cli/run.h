/*
 * run.h - `noctule run`: process files or folders now, without the daemon.
 */
#ifndef NOCTULE_RUN_H
#define NOCTULE_RUN_H

#include "config/config.h"

/* argv[0] is "run". Returns one of exit_codes.h, or 128 + the number of the signal that ended it.
 */
int run_command(const struct conf *conf, int argc, char **argv);

#endif
