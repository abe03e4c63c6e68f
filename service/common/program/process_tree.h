/* process_tree.h - the processes below one process, from /proc. Single-threaded callers. */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_PROCESS_TREE_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_PROCESS_TREE_H

#include <stdint.h>
#include <sys/types.h>

struct process_usage {
    int tasks;     /* processes and threads */
    int64_t bytes; /* resident memory */
};

/* Measures all processes below `root`. Shared pages count per process, unless that exceeds `limit` (0: none): then they
 * count in proportion. */
void process_tree_measure(pid_t root, int64_t limit, struct process_usage *usage);

/* Kills all processes below this one, which must take over orphans (PR_SET_CHILD_SUBREAPER), and awaits them. Sets the
 * wait status of `pid` if it is one of them. */
void process_tree_end(pid_t pid, int *status);

#endif
