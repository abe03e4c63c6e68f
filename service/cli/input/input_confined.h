/*
 * input_confined.h - a command that reads foreign files gives up what it does not need before it reads the first
 * (service/common/confine). It keeps: reading the folders of its files, writing its output folder, what it has open.
 */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_CONFINED_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_CONFINED_H

#include "service/cli/input/input_collect.h"
#include "service/common/confine/confine_places.h"

/* Once, before there are other threads. `others` are files as well; output: a folder that is there, or NULL. kept: the
 * folder in which the output and folders above it were made, so that they can be removed; or NULL. Returns 0, or -errno after a
 * complaint. */
int cli_confine(enum confine_role role, const struct collection *files, char *const *others,
                size_t other_count, const char *output, const char *kept);

/* System calls, once no device has to be opened any more. 0, or -errno after a complaint. */
int cli_confine_calls(enum confine_role role);

#endif
