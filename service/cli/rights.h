/*
 * rights.h - the rights of the service: root may read what the service may not, so root checks with the service's.
 */
#ifndef NOCTULE_SERVICE_CLI_RIGHTS_H
#define NOCTULE_SERVICE_CLI_RIGHTS_H

#include "config/config.h"

#include <pwd.h>

/*
 * Finds the service's user: the owner of the root folder, or the one that is installed where there is no such folder
 * (*user is NULL where neither is known). Root becomes that user, but keeps its own as the saved one. Returns 1 where
 * the rights changed, 0, or -errno. Call it before there are threads.
 */
int rights_take(const struct conf *conf, const struct passwd **user);

#endif
