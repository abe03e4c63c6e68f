/*
 * rights.h - the rights of the service. Root must check with them, since root may read files that
 * the service cannot read.
 */
#ifndef NOCTULE_SERVICE_CLI_RIGHTS_H
#define NOCTULE_SERVICE_CLI_RIGHTS_H

#include "config/config.h"

#include <pwd.h>

/*
 * Finds the service's user: the owner of the root folder, else the installed user. *user is NULL if
 * both are unknown. If root calls it, the process becomes that user, with the caller's ID as saved
 * ID. Returns 1 if the rights changed, 0 if not, or -errno. Must be called before other threads
 * start.
 */
int rights_take(const struct conf *conf, const struct passwd **user);

#endif
