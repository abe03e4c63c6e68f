/*
 * numa.h - a machine's nodes: the processors and the memory that a GPU is near to.
 *
 * Read anew by each call from what the kernel tells below `sys` (numa_sys; a test has a tree of its own). Where there is
 * one node with processors, or none is told, everything is anywhere. Any thread.
 */
#ifndef NOCTULE_SERVICE_COMMON_NUMA_NUMA_H
#define NOCTULE_SERVICE_COMMON_NUMA_NUMA_H

#include <sched.h>
#include <stdbool.h>

#define NUMA_LIST 256

struct numa_place {
    int node;                   /* -1: anywhere */
    char processors[NUMA_LIST]; /* of the node, as the kernel lists them: "0-15,64-79" */
};

extern const struct numa_place numa_anywhere;

/* "/sys"; in builds with crash points also what NOCTULE_FAKE_SYS names. */
const char *numa_sys(void);

/* Where a device on the PCI bus is ("0000:3b:00.0"). */
struct numa_place numa_of_pci(const char *sys, const char *pci);

/*
 * This thread, and all that it starts, run on the node's processors from now on, as far as they may run there already.
 * Memory that they touch first is the node's, as long as it has some. 0, or -errno: nothing has changed.
 */
int numa_bind(const char *sys, int node);

/* Numbers as the kernel lists them, "0-3,8"; false: it is no such list, or has more than a cpu_set_t. */
bool numa_read_list(const char *list, cpu_set_t *set);

#endif
