/*
 * input_confined.h - confines a command before it reads foreign files (service/common/confine). The
 * process may still read the folders of its files, write its output folder, and use its open
 * descriptors.
 */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_CONFINED_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_CONFINED_H

#include "service/cli/input/input_collect.h"
#include "service/common/confine/confine_places.h"

/* Must be called once, before other threads start. `others` are additional input files. `output` is
 * an existing folder or NULL. `kept` is the folder in which the output path was created, so that it
 * can be removed again, or NULL. Returns 0, or -errno after an error message. */
int cli_confine(enum confine_role role, const struct collection *files, char *const *others,
                size_t other_count, const char *output, const char *kept);

/* Installs the system call filter. Must be called after the compute device is open. Returns 0, or
 * -errno after an error message. */
int cli_confine_calls(enum confine_role role);

#endif
