/*
 * call_filter.h - restrict the system calls of a child once its work begins, with seccomp where the kernel has it.
 *
 * A table lists the calls that each role needs. Calls that no role needs fail with EPERM: start programs, access other
 * processes, mount, load modules, change the user. All other calls fail with ENOSYS, as on a kernel that lacks them;
 * libraries have fallbacks for that. A worker with a GPU may make all calls except those that no role needs, since its
 * driver's calls may change with each version. The same holds for programs of the site.
 */
#ifndef NOCTULE_SERVICE_COMMON_CONFINE_CALL_FILTER_H
#define NOCTULE_SERVICE_COMMON_CONFINE_CALL_FILTER_H

#include "service/common/confine/confine_places.h"

/* Returns whether the kernel has seccomp. Returns false in builds with sanitizers, which trace their own process. */
bool call_filter_possible(void);

/*
 * Installs the filter for all threads, permanently. Work that needs other calls must be done before.
 *
 * Returns 0, also if seccomp is not available, or -errno, which is logged. -ENOMEM and similar errors are transient.
 * The caller must exit on an error: the daemon restarts the child and raises an alert. A child that continued would
 * read untrusted bytes without its restrictions, and no alert would show it.
 */
int call_filter_install(enum confine_role role);

/* Returns a file with the filter of a program of the site, which bubblewrap loads, or -errno. The caller must close it. */
int call_filter_file(enum confine_role role);

#endif
