/*
 * sandbox.h - runs one program of the site with limited rights, and ends all of its processes.
 *
 *                 files                        network             processes
 *     bubblewrap  own mount namespace          own namespace       own namespace
 *     own         Landlock, own /proc          own namespace       own namespace
 *     weak        Landlock                     no sockets          found by their parents
 *     container   podman, docker or apptainer make all of it
 *
 * seccomp denies calls in the first three kinds (call_filter.h). A keeper process starts the program and takes over its
 * orphans. It ends when the program ends, when its parent dies, or by SIGTERM, and first kills and awaits all of them.
 * Single-threaded callers.
 */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_SANDBOX_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_SANDBOX_H

#include "base/error.h"
#include "service/common/confine/confine_places.h"

#include <stdint.h>
#include <sys/types.h>

enum sandbox_kind { SANDBOX_NONE, SANDBOX_CONTAINER, SANDBOX_WEAK, SANDBOX_OWN, SANDBOX_BUBBLEWRAP };

/* "bubblewrap", "own", "weak", "container"; "" for none. */
const char *sandbox_name(enum sandbox_kind kind);

struct sandbox_probe {
    enum sandbox_kind kind; /* the strongest that works */
    bool no_network;        /* it can keep a program from the network */
    bool host_proc;         /* bubblewrap must show the /proc of the machine */
    char why[256];          /* reason why no stronger one works; "" */
};

/* Starts /bin/true in each kind, the strongest first, until one works. Blocks for some milliseconds. The caller must have no
 * children, because all processes below it are killed. */
void sandbox_probe(struct sandbox_probe *probe);

struct sandbox_order {
    enum sandbox_kind kind;
    bool host_proc, host_network;
    char *const *argv, *const *environment;
    struct program_places places;
    int input, output, errors; /* descriptors of the standard streams; input -1: /dev/null */

    struct sandbox_limits { /* 0: none */
        int64_t data_bytes; /* of each process */
        int64_t file_bytes;
        int processes;
        int cpus, slot; /* the program gets `cpus` processors, from number slot * cpus on */
    } limits;
};

/* Starts the program. Returns the keeper, or -errno with the error PROGRAM_SANDBOX or PROGRAM_UNAVAILABLE. */
pid_t sandbox_start(const struct sandbox_order *order, struct error *error);

/* Number of processes of the sandbox itself below the keeper. */
int sandbox_own_tasks(enum sandbox_kind kind);

/* How a keeper ended, from its wait status. */
struct sandbox_end {
    bool failed;   /* the sandbox could not be made; the output has the reason */
    int exit_code; /* if no signal ended the program */
    int signal;    /* also if the program's shell reported the signal: exit status 128 + signal */
};

void sandbox_end_of(int status, struct sandbox_end *end);

/* -------------------------------------------------------------------------- process_tree.c ---- */

/* The processes below one process, from /proc. Single-threaded callers. */

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
