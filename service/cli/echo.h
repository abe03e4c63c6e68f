/* echo.h - is a destination or a source there? Asked by this process, as its user. */
#ifndef NOCTULE_SERVICE_CLI_ECHO_H
#define NOCTULE_SERVICE_CLI_ECHO_H

#include "config/config.h"

#include <stddef.h>

/*
 * 0 and what it said, or -errno with a code and why not: an AE is sent a C-ECHO, a folder has to be writable.
 * `seconds` bounds each of its waits, 0: as configured. Any thread, after dicom_init.
 */
int echo_destination(const struct conf *conf, const struct conf_destination *destination,
                     double seconds, char *said, size_t size, struct error *error);
/* The same of an archive that noctule pull asks. */
int echo_source(const struct conf *conf, const struct conf_source *source, double seconds,
                char *said, size_t size, struct error *error);

#endif
