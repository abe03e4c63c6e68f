/*
 * call_filter.h - which system calls a child may still make once its work begins: seccomp, where the kernel has it.
 *
 * A table says what each role needs. What it names as never needed (to run programs, look into other processes, mount, load,
 * become another user) is EPERM, all else ENOSYS, as on a kernel that lacks it: libraries have a way round that. A worker of a
 * GPU may do all but what is never needed: what its driver calls is its maker's to change.
 */
#ifndef NOCTULE_SERVICE_COMMON_CONFINE_CALL_FILTER_H
#define NOCTULE_SERVICE_COMMON_CONFINE_CALL_FILTER_H

#include "service/common/confine/confine_places.h"

/* Has the kernel seccomp? Not in builds with sanitizers, which trace themselves. */
bool call_filter_possible(void);

/*
 * Of all threads, for good; what is needed to start has to be done before. 0, also where it is not possible, or -errno, which is
 * in the log: -ENOMEM and the like pass. The caller then ends, and does not go on without: the daemon starts it again and tells
 * what is wrong, while a child that reads foreign bytes with fewer bounds than the others would be told by nobody.
 */
int call_filter_install(enum confine_role role);

#endif
