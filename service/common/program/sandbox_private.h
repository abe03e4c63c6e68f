/* sandbox_private.h - the parts of sandbox.c. */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_SANDBOX_PRIVATE_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_SANDBOX_PRIVATE_H

#include "service/common/program/sandbox.h"

#define SANDBOX_BUBBLEWRAP_PATH "/usr/bin/bwrap"

/* Descriptors of the process that starts the program. */
#define SANDBOX_REPORT_FD 3 /* close-on-exec: gets a byte if the sandbox cannot be made; bubblewrap's status */
#define SANDBOX_FILTER_FD 4 /* bubblewrap's filter */

/* Returns the command line of bubblewrap, or NULL without memory. The caller must free the array and its strings. */
char **sandbox_bubblewrap(const struct sandbox_order *order, const struct places *places, bool filtered);

/* Returns the command line of a container, which lets its engine write down its ID; NULL without memory. Only this array
 * and that path are not borrowed; the process executes or ends soon. */
char **sandbox_container(const struct sandbox_order *order);
/* Ends and removes the container of an order, if the engine has written down its ID. */
void sandbox_container_end(const struct sandbox_order *order);

/* Prepares the process that executes the program: descriptors, signals, limits. `keeps`: the descriptors above are left
 * open for bubblewrap. Returns 0 or -errno. */
int sandbox_prepare(const struct sandbox_order *order, int report, int filter);

/* Starts the program in namespaces of its own. Returns its process 1, or -errno. */
pid_t sandbox_namespaces(const struct sandbox_order *order, struct places *places, int report);

/* Confines this process as a program and executes it. Does not return. */
_Noreturn void sandbox_exec(const struct sandbox_order *order, struct places *places);

/* Waits for the process and its orphans. Returns its exit status in the form of a shell. */
int sandbox_reap(pid_t pid);

#endif
