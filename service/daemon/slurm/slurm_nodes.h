/*
 * slurm_nodes.h - excludes a node for an hour after it lost several jobs in a row. The counts end with the daemon: a
 * new one gives each node another chance. Pure except for memory; times are in milliseconds of any clock.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_NODES_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODES_LOST_MAX 3
#define NODES_REST_MS  3600000

struct nodes_row {
    char name[64];
    int lost;          /* jobs in a row */
    uint64_t until_ms; /* end of the exclusion; 0: not excluded */
};

struct nodes {
    struct nodes_row *rows;
    size_t count, room;
};

/* Counts a lost job. Returns whether the node is excluded from now on. */
bool nodes_lost(struct nodes *nodes, const char *name, uint64_t now_ms);
void nodes_well(struct nodes *nodes, const char *name);
/* Returns the excluded nodes as sbatch takes them, "a,b". The caller must free it. NULL: no memory. */
char *nodes_excluded(struct nodes *nodes, uint64_t now_ms);
void nodes_free(struct nodes *nodes);

#endif
