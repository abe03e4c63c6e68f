/* echo.h - tests a destination or a source from this process, with the rights of its user. */
#ifndef NOCTULE_SERVICE_CLI_ECHO_H
#define NOCTULE_SERVICE_CLI_ECHO_H

#include "config/config.h"

#include <stddef.h>

/*
 * Tests a destination: sends a C-ECHO, tries STOW-RS, or checks that a folder is writable. Returns
 * 0 and the answer in `answer`, or -errno with a code and a message. `seconds` limits each wait; 0
 * uses the configured limits. Any thread may call it after dicom_init.
 */
int echo_destination(const struct conf *conf, const struct conf_destination *destination,
                     double seconds, char *answer, size_t size, struct error *error);
/* Does the same for an archive of `noctule pull`. */
int echo_source(const struct conf *conf, const struct conf_source *source, double seconds,
                char *answer, size_t size, struct error *error);

#endif
