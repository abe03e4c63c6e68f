/*
 * call_filter.h - which system calls a child may still make once its work begins: seccomp, where the kernel has it.
 *
 * A table says what each role needs. What it names as never needed (to run programs, look into other processes, mount, load,
 * become another user) is EPERM, all else ENOSYS, as on a kernel that lacks it: libraries have a way round that. A worker of a
 * GPU may do all but what is never needed: what its driver calls is its maker's to change.
 */
#ifndef NOCTULE_CALL_FILTER_H
#define NOCTULE_CALL_FILTER_H

#include "service/common/confine/confine_places.h"

bool call_filter_possible(void);

/* Of all threads, for good; what is needed to start has to be done before. 0, also where the kernel has none, or -errno, which is in
 * the log. Nothing is filtered in builds with sanitizers, which trace themselves. */
int call_filter_install(enum confine_role role);

#endif
